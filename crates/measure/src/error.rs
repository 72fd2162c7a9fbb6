//! Why a session could not begin or had to end, in words for people.

use rubus_vocabulary::units::bytes_iec;
use rustix::io::Errno;

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
        needed_bytes: u64,
        /// What to do.
        remedy: &'static str,
    },
    /// No job of the suite can run on this target.
    #[error("nothing to measure on {path}: {reason}")]
    NothingToDo {
        /// The target as named.
        path: String,
        /// The reason, as a sentence.
        reason: String,
    },
    /// The target failed while a job ran.
    #[error("the target failed during '{job}': {error}")]
    TargetFailed {
        job: String,
        /// What failed and what to do, in words.
        error: String,
    },
    /// The user stopped the session.
    #[error("stopped during '{job}'")]
    Interrupted {
        /// The job that ran or was to run next, in plain words, as all jobs here.
        job: String,
    },
    /// This program could not do its part.
    #[error("cannot measure '{job}': {error}")]
    Engine {
        job: String,
        /// What failed, in words.
        error: String,
    },
}

/// What to do about a system error, to follow its text; empty where nothing can be said.
pub(crate) fn advice(errno: Errno) -> &'static str {
    match errno {
        Errno::ACCESS | Errno::PERM => "; name a place that you may write to",
        Errno::ROFS => "; it is read-only now: name another place, or look at the kernel log",
        Errno::NOSPC | Errno::DQUOT => "; free some space or name another place",
        Errno::FBIG => {
            "; allow larger files first (`ulimit -f unlimited`; on FAT the limit is 4 GiB)"
        }
        Errno::NOENT => "; check the spelling",
        Errno::IO | Errno::NODEV | Errno::NXIO | Errno::TIMEDOUT => {
            "; look at the kernel log and at the cable"
        }
        _ => "",
    }
}

/// What went wrong, in words: a short operation or the system's error.
#[cold]
pub(crate) fn io_failure(
    verb: &str,
    block_bytes: usize,
    offset: u64,
    moved: Result<usize, Errno>,
) -> String {
    match moved {
        Ok(moved) => {
            format!("a {verb} of {block_bytes} bytes at byte {offset} moved only {moved} bytes")
        }
        Err(errno) => {
            let error = std::io::Error::from(errno);
            let advice = advice(errno);
            format!("a {verb} of {block_bytes} bytes at byte {offset} failed: {error}{advice}")
        }
    }
}
