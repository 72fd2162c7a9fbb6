//! Many machines at once: which ones an inventory names, how their settings differ, which one
//! stands apart, and what became faster or slower since another time.
//!
//! [`remote`] reads the files that name machines, and lets them work; nothing else here touches a machine.
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

mod changes;
pub mod cli;
pub mod compare;
pub mod compare_text;
pub mod figures;
pub mod inventory;
pub mod next;
pub mod outliers;
pub mod page_names;
pub mod remote;
pub mod settings;
mod spread;
pub mod subjects;
pub mod text;
