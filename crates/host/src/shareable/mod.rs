//! What may leave the machine: each value is let through by a rule of its own, and what no rule knows stays.
//!
//! Nothing here looks for secrets. A text passes because it is a number, one of a list of words, a kernel's name for a
//! device, or a parameter that is known together with the form of its value. Everything else becomes a pseudonym that is
//! counted within one document (`server-1`), so that two places that name the same thing still do, or [`LEFT_OUT`].
//! Hashes are no pseudonyms: a hardware address or a serial number has few enough values to try them all.

pub mod bus_ids;
pub mod command_line;
pub mod identities;
mod in_a_row;
pub mod kernel_names;
pub mod list;
pub mod options;
pub mod paths;
#[cfg(test)]
pub(crate) mod planted;
pub mod products;
pub mod pseudonyms;
pub mod releases;
#[cfg(test)]
mod spelling_tests;
#[cfg(test)]
pub(crate) mod spelt;
pub mod words;

pub use pseudonyms::{Kind, Pseudonyms};

/// What stands in the place of a text that no rule lets through.
pub const LEFT_OUT: &str = "left out";
