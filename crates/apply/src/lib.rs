//! From an approved intention to a changed machine: the guard that stands before everything that
//! overwrites a device, and the engine that takes a plan step by step, with a journal.
//!
//! Rules that hold here: nothing is written that the guard has not let through; what the guard
//! must know and cannot read is a reason to refuse.
#![deny(clippy::disallowed_methods)]
#![forbid(unsafe_code)]

pub mod change;
pub mod copy;
pub mod guard;
pub mod works;
