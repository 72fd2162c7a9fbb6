//! Pure drawing: tables, texts, styles and layout.
//!
//! Everything here turns values into strings; nothing here decides, measures, prints or
//! opens a file. Texts that come from the machine or from the user are cleaned of control
//! characters before they reach a terminal, and escaped before they reach a page.
#![warn(missing_docs)]
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

pub mod csv;
pub mod ends;
pub mod layout;
pub mod markdown;
pub mod network;
pub mod next_step;
pub mod quote;
pub mod style;
pub mod table;
pub mod text;
pub mod words;

pub use style::Style;
