//! From an approved plan to a changed machine, and back.
//!
//! What a [`plan`] says and how it is shown; the guard that stands before everything that overwrites a device; and the engine that
//! takes a plan step by step, with a journal. What makes plans is above it, in `rubus_recipes`; `rubus_boot` proves that the board
//! will start with one.
//!
//! Rules that hold here: nothing is written that the guard has not let through; what the guard
//! must know and cannot read is a reason to refuse.
#![deny(clippy::disallowed_methods)]
#![forbid(unsafe_code)]

pub mod apply;
pub mod disk;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
pub mod guard;
pub mod losses;
pub mod on_trial;
pub mod other_roots;
pub mod plan;
pub mod promises;
pub mod steps;
pub mod text;
pub mod unseen;
pub mod volume;
