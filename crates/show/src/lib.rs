//! Pure drawing: tables, texts, pages and progress lines.
//!
//! Everything here turns values of `core` into strings; nothing here decides, measures, prints or
//! opens a file. Texts that come from the machine or from the user are cleaned of control
//! characters before they reach a terminal, and escaped before they reach a page.
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

pub mod advice;
pub mod bench;
pub mod checkup;
pub mod compare;
pub mod compression;
pub mod copy;
pub mod csv;
pub mod disk_copy;
mod ends;
pub mod findings;
pub mod fio_json;
pub mod history;
mod layout;
pub mod markdown;
pub mod memory;
mod network;
pub mod page;
pub mod picture;
pub mod plan;
pub mod processor;
pub mod progress;
pub mod side_by_side;
pub mod style;
pub mod suites;
pub mod survey;
pub mod table;
pub mod text;
pub mod watch;
pub mod words;
pub mod zswap;

pub use style::Style;
