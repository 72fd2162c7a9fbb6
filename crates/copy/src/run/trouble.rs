//! What can go wrong with a copy, and what of it ends the copy.

use rubus_host::files::copy_io::{Failure, Reason, is_root};

/// Why a copy was not begun, or ended early. After all but the first two errors, the copy can be resumed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CopyError {
    /// It would be wrong to begin.
    #[error("{0}")]
    Refused(String),
    /// The source cannot be read at all.
    #[error("cannot copy from {path}: {failure}")]
    Source {
        /// Path of the source.
        path: String,
        /// What failed while reading.
        failure: Failure,
    },
    /// The target cannot be written.
    #[error("the target {path}: {failure}{}", advice(failure))]
    Target {
        /// What was being written.
        path: String,
        /// What failed while writing.
        failure: Failure,
    },
    /// The caller wanted it to end.
    #[error("the copy was stopped; the same command continues it")]
    Stopped,
}

fn advice(failure: &Failure) -> &'static str {
    match failure.reason() {
        Reason::Full => {
            "; make room there, or take a larger one, and run it again: it goes on where it was"
        }
        Reason::Device => {
            "; look at the kernel log and at the cable; what was copied last may be lost"
        }
        Reason::ReadOnly => {
            "; it is mounted read-only, or became so after an error: look at the kernel log"
        }
        Reason::Denied => "; run it as root",
        Reason::Gone => "; make the directory above it first, or mount what should be there",
        Reason::TooManyOpen => "; raise the limit of open files (ulimit -n), or take fewer workers",
        _ => "",
    }
}

/// A failure, and on which side.
#[derive(Clone, Copy, Debug)]
pub(super) enum Trouble {
    Source(Failure),
    Target(Failure),
}

impl Trouble {
    /// Whether nothing more can be copied.
    pub(super) fn is_fatal(&self) -> bool {
        match self {
            Trouble::Source(failure) => failure.reason() == Reason::TooManyOpen,
            Trouble::Target(failure) => matches!(
                failure.reason(),
                Reason::Full | Reason::Device | Reason::ReadOnly | Reason::TooManyOpen
            ),
        }
    }

    /// Whether the entry went away in the source.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Trouble::Source(failure) if failure.reason() == Reason::Gone)
    }

    pub(super) fn words(&self) -> String {
        match self {
            Trouble::Source(failure) => failure.to_string(),
            Trouble::Target(failure) if failure.reason() == Reason::Denied && !is_root() => {
                format!("in the target: {failure}; run it as root")
            }
            Trouble::Target(failure) => format!("in the target: {failure}"),
        }
    }

    pub(super) fn into_error(self, path: String) -> CopyError {
        match self {
            Trouble::Source(failure) => CopyError::Source { path, failure },
            Trouble::Target(failure) => CopyError::Target { path, failure },
        }
    }
}
