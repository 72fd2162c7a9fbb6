//! Results, findings and verdicts as texts.

pub mod checkup;
pub mod disturbances;
pub mod findings;
pub mod picture;
pub mod progress;
pub(crate) mod share;
pub mod so_far;
pub mod suites;
