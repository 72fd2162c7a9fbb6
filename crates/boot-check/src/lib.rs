//! Whether a machine, a card or an image starts: what is read for it, and the verb `rubus boot`.
//!
//! [`card`] reads a disk or an image of one without mounting it, [`start`] follows a start through the files of this machine,
//! a captured one or a card. How boards start is the room `boot`.

#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

pub mod card;
pub mod cli;
pub mod start;
