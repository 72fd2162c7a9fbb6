//! Copies trees of files whole, and compares them.

#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

pub mod cli;
pub mod receipt;
pub mod run;
pub mod text;
