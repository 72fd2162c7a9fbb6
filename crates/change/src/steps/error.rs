//! Why a step could not be done or undone.

use rubus_host::{ReadError, WriteError};

/// Why a step could not be done or undone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// Something else has changed it since the plan was made.
    #[error(
        "{path} was changed by something else since the plan was made; put it right by hand, or make a new plan"
    )]
    Changed { path: String },
    /// Something else has changed it since the change was applied.
    #[error(
        "{path} is neither as this change left it nor as it was before ({how}); put it right by hand, then go on"
    )]
    NotOurs {
        path: String,
        /// What differs, and what is expected.
        how: String,
    },
    /// It cannot be read.
    #[error("cannot read {path}: {reason}")]
    Unreadable {
        path: String,
        /// Why it cannot be read.
        reason: ReadError,
    },
    /// It cannot be changed.
    #[error(transparent)]
    Unwritable(#[from] WriteError),
    /// It was written and reads back as something else.
    #[error("{path} was written as {wanted} and reads back as {live}; look at the kernel log")]
    NotAsWritten {
        path: String,
        /// What was written.
        wanted: String,
        /// What is there.
        live: String,
    },
    /// A work on disks, filesystems or memory failed.
    #[error("cannot {tried}: {reason}")]
    Work {
        /// As a verb with its object ("mount the new root").
        tried: String,
        /// Why, with advice where there is some.
        reason: String,
    },
    /// The kernel took the value and did not act on it.
    #[error(
        "the kernel took {wanted} for {path} and still says {live}: it does not know this value"
    )]
    Ignored {
        path: String,
        /// What was set.
        wanted: String,
        /// What it says.
        live: String,
    },
}

/// A work that failed.
pub(super) fn failed(tried: impl Into<String>, reason: impl std::fmt::Display) -> StepError {
    StepError::Work { tried: tried.into(), reason: reason.to_string() }
}

/// The package that brings a program, where Debian has one.
pub(super) fn missing_program(program: &str) -> String {
    let package = match program {
        "mkfs.btrfs" | "btrfs" => "btrfs-progs",
        "mkfs.ext4" | "chattr" => "e2fsprogs",
        "mkfs.vfat" => "dosfstools",
        "mcopy" => "mtools",
        "mkswap" | "fallocate" => "util-linux",
        "mkinitramfs" | "lsinitramfs" => "initramfs-tools",
        other => other,
    };
    format!("{program} is not installed (`apt install {package}`)")
}
