//! From an approved intention to a changed machine. So far: the guard that stands before
//! everything that overwrites a device.
//!
//! Rules that hold here: nothing is written that the guard has not let through; what the guard
//! must know and cannot read is a reason to refuse.
#![deny(clippy::disallowed_methods)]
#![forbid(unsafe_code)]

pub mod guard;
