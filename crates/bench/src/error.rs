//! Why a session could not begin or had to end, in words for people.

use rubus_core::units::bytes_iec;

/// Why a session could not begin or ended early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BenchError {
    /// The target cannot be used.
    #[error("cannot use {path}: {reason}")]
    Target {
        /// The target as named.
        path: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// The target is too small, or has too little free space.
    #[error(
        "{path} has {} {what}, but the test needs {}; {remedy}",
        bytes_iec(*available_bytes),
        bytes_iec(*needed_bytes)
    )]
    NoSpace {
        /// The target as named.
        path: String,
        /// "of free space", "in all".
        what: &'static str,
        /// What there is.
        available_bytes: u64,
        /// What is needed.
        needed_bytes: u64,
        /// What to do.
        remedy: &'static str,
    },
    /// No job of the suite can run on this target.
    #[error("nothing to measure on {path}: {reason}")]
    NothingToDo {
        /// The target as named.
        path: String,
        /// Why.
        reason: String,
    },
    /// The target failed while a job ran.
    #[error("the target failed during '{job}': {error}; look at the kernel log and at the cable")]
    TargetFailed {
        /// The job.
        job: String,
        /// What failed, in words.
        error: String,
    },
    /// The user stopped the session.
    #[error("stopped during '{job}'")]
    Interrupted {
        /// The job that ran or was to run next.
        job: String,
    },
    /// This program could not do its part.
    #[error("cannot measure '{job}': {error}")]
    Engine {
        /// The job.
        job: String,
        /// What failed, in words.
        error: String,
    },
}
