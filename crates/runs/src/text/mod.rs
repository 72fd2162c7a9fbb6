//! Runs, comparisons and the history as texts.

#![deny(clippy::disallowed_methods)]

pub mod compare;
pub mod gallery;
pub mod history;
pub mod run;
pub mod side_by_side;
