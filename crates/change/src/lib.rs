//! Recipes become plans, and plans become changes that can be undone.
//!
//! [`recipe`] makes a [`plan`] of facts and wishes; `rubus_boot` proves that the board will start with it. From an approved plan to a changed
//! machine: the guard that stands before everything that
//! overwrites a device, and the engine that takes a plan step by step, with a journal.
//!
//! Rules that hold here: nothing is written that the guard has not let through; what the guard
//! must know and cannot read is a reason to refuse.
#![deny(clippy::disallowed_methods)]
#![forbid(unsafe_code)]

pub mod apply;
pub mod cli;
pub mod disk;
pub mod fallen_back;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
pub mod guard;
pub mod losses;
pub mod on_trial;
pub mod other_roots;
pub mod plan;
pub mod promises;
pub mod recipe;
pub mod sight;
pub mod steps;
pub mod text;
pub mod unseen;
pub mod volume;
