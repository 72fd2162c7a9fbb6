//! Captures: a recorded machine in a file, to be surveyed anywhere.
//!
//! A capture is a directory, or a tar of one (compressed with gzip if its name ends with `.gz` or
//! `.tgz`), that holds
//! - `manifest.json`: what it is, and everything that is not the content of a file: lists of
//!   directories, links, free space, outputs of programs, words of the firmware, and errors;
//! - `files/`: the files that were read, below it at their own paths (`files/proc/cpuinfo`).
//!
//! A hand-built capture needs only `{"format": "rubus capture", "version": 1, "label": "…",
//! "missing": "absent"}` as its manifest: with that, the tree below `files/` is everything there
//! is, directories list what is in them, and symbolic links in the tree count; an absolute target
//! means a path of the captured machine. Links may also be written into the manifest.
//!
//! Captures are only ever unpacked to memory; nothing in one can name a file of this machine.

mod bundle;
mod containers;
mod cpu_flags;
mod escapes;
mod file_rules;
mod kernel_forms;
mod known_forms;
mod known_names;
mod manifest;
mod module_names;
mod open;
mod partition_types;
mod passwords;
mod patterns;
mod redact;
mod save;
mod secrets;
mod shapes;

use std::path::PathBuf;

pub use containers::{manager_by_groups, manager_by_name};
pub use file_rules::{FILE_IS_THERE, TEXT_IS_THERE};
pub use open::Captured;
pub use save::{Identities, Saved, save};

/// What may be in a capture at most. A real one has under a thousand files and one megabyte.
pub(crate) struct Limits {
    /// Files, directories and links together.
    pub(crate) entries: usize,
    /// One file, the manifest included.
    pub(crate) file_bytes: u64,
    /// All files together.
    pub(crate) total_bytes: u64,
    /// The length of a path.
    pub(crate) path_bytes: usize,
}

pub(crate) const LIMITS: Limits =
    Limits { entries: 50_000, file_bytes: 16 << 20, total_bytes: 128 << 20, path_bytes: 4096 };

/// Why a capture could not be saved or read. The text says what is wrong, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file or directory could not be opened, read or written.
    #[error("{doing} {}: {error}", path.display())]
    Io {
        /// "cannot read", "cannot write".
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's words.
        error: std::io::Error,
    },
    /// Nothing is at the path.
    #[error("there is no such file or directory; `rubus survey --save FILE` makes a capture")]
    Absent,
    /// There is something at the path that a capture must not replace.
    #[error("{} exists already and nothing is overwritten; give another name, or remove it", .0.display())]
    Exists(PathBuf),
    /// It is not a capture, or it is damaged.
    #[error("{} is not a usable capture: {what}. {remedy}", path.display())]
    Broken {
        /// Path of the capture.
        path: PathBuf,
        /// What is wrong, and where in it.
        what: String,
        /// What to do.
        remedy: &'static str,
    },
    /// It was written by a program that is newer than this one.
    #[error(
        "{} has format version {found}, and this rubus reads up to version {known}; \
         use the rubus that saved it ({saved_by}), or a newer one",
        path.display()
    )]
    Newer {
        /// Path of the capture.
        path: PathBuf,
        /// Format version of the capture.
        found: u32,
        /// The newest that is understood.
        known: u32,
        /// Who saved it.
        saved_by: String,
    },
}

#[cfg(test)]
mod planted_tests;
#[cfg(test)]
mod reading;
#[cfg(test)]
mod tests;
