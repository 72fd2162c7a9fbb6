//! `rubus tune`: settings that can be changed live, tried in turns on the disk under a directory.
//!
//! `place` says which disk is below a directory, `candidates` which settings are worth trying there, `course` tries them
//! in turns within a time, `decide` says what the rounds are worth, `report` and `text` what that means, `lasting` makes
//! the recipe. `live` is the only place that changes a setting, with a `record` from which it is put back, and a `keeper`
//! that does so after a kill.
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

pub mod candidates;
#[cfg(test)]
mod candidates_tests;
pub mod cli;
pub mod course;
pub mod decide;
pub mod disk_seen;
pub mod keeper;
pub mod lasting;
pub mod live;
#[cfg(test)]
mod live_tests;
pub mod live_trial;
pub mod place;
pub mod proof;
pub mod record;
pub mod report;
mod set_by;
pub mod setting;
#[cfg(test)]
mod simulated;
#[cfg(test)]
mod simulation_tests;
pub mod text;
#[cfg(test)]
mod text_tests;
pub mod trial_left;
pub mod words;
pub mod works;
