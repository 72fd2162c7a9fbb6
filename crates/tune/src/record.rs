//! The record of settings that are changed for a trial: what restores them after a kill.
//!
//! It is one small file, replaced whole and durably before a setting is touched. It is removed when nothing is left to
//! restore, so its presence alone says that a trial was cut off.

use std::path::{Path, PathBuf};

use rubus_host::files::hands::{parent_of, replace};
use rubus_host::live::hands::make_directories;
use rubus_host::{Files, Hands, ReadError, WriteError};
use serde::{Deserialize, Serialize};

use crate::disk_seen::DiskSeen;

/// Version of the record's form.
const VERSION: u32 = 1;
/// Where the kernel names the present boot.
pub const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// What one trial has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Version of this form.
    pub version: u32,
    /// The boot in which it was written: another boot has forgotten every setting in it.
    pub boot: String,
    /// Tells the program that wrote it from all others.
    pub session: String,
    /// The settings, in the order in which they were first changed.
    pub entries: Vec<Entry>,
}

/// A changed setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// File of the kernel that holds it.
    pub path: PathBuf,
    /// Value before the trial.
    pub was: String,
    /// Every other value that was or may have been written: only over these it is restored.
    pub wrote: Vec<String>,
    /// The disk that it is a setting of; absent: of the machine.
    pub disk: Option<DiskSeen>,
    /// Settings that the kernel resets when this one changes, with their values before.
    pub companions: Vec<Companion>,
}

/// A setting that depends on another one: the kernel resets it when that one changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Companion {
    /// File of the kernel that holds it.
    pub path: PathBuf,
    /// Value before the trial.
    pub was: String,
}

/// Why there is no usable record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// It cannot be read.
    #[error("cannot read {path}: {reason}")]
    Unreadable {
        /// Path of the record.
        path: String,
        /// The system's reason.
        reason: ReadError,
    },
    /// It is not a record of this version.
    #[error(
        "cannot read {path}, which lists settings to restore: {reason}; use the version of rubus that wrote it, or drop it \
         with `rubus tune --forget`"
    )]
    Damaged {
        /// Path of the record.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// The kernel does not say which boot this is.
    #[error("cannot tell which boot this is: {BOOT_ID}: {0}")]
    NoBoot(ReadError),
    /// It cannot be written or removed.
    #[error("{0}")]
    Unwritable(#[from] WriteError),
}

/// The record's file.
pub fn file(directory: &Path) -> PathBuf {
    directory.join("record.json")
}

/// Path of the lock that one trial at a time holds.
pub fn lock(directory: &Path) -> PathBuf {
    directory.join("lock")
}

/// The present boot.
///
/// # Errors
/// When the kernel does not say.
pub fn boot(files: &dyn Files) -> Result<String, RecordError> {
    files.text(Path::new(BOOT_ID)).map_err(RecordError::NoBoot)
}

impl Record {
    /// An empty record of a session in this boot.
    pub fn new(boot: String, session: String) -> Record {
        Record { version: VERSION, boot, session, entries: Vec::new() }
    }

    /// The record in a directory, if there is one.
    ///
    /// # Errors
    /// When it cannot be read or understood.
    pub fn load(directory: &Path, files: &dyn Files) -> Result<Option<Record>, RecordError> {
        let path = file(directory);
        let text = match files.text(&path) {
            Ok(text) => text,
            Err(ReadError::Absent) => return Ok(None),
            Err(reason) => {
                return Err(RecordError::Unreadable { path: path.display().to_string(), reason });
            }
        };
        let damaged =
            |reason: String| RecordError::Damaged { path: path.display().to_string(), reason };
        let record: Record =
            serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        match record.version {
            VERSION => Ok(Some(record)),
            other => Err(damaged(format!("it has version {other} instead of {VERSION}"))),
        }
    }

    /// Makes it durable; an empty one is removed.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub fn store(&self, directory: &Path, hands: &mut dyn Hands) -> Result<(), RecordError> {
        if self.entries.is_empty() {
            return remove(directory, hands);
        }
        make_directories(hands, directory)?;
        let path = file(directory);
        let mut text = serde_json::to_string_pretty(self).map_err(|error| WriteError {
            tried: "write",
            path: path.display().to_string(),
            reason: error.to_string(),
        })?;
        text.push('\n');
        let fresh = path.with_extension("new");
        Ok(replace(&path, &fresh, text.as_bytes(), 0o644, hands)?)
    }
}

/// Removes the record durably, if there is one.
///
/// # Errors
/// When it cannot be removed.
pub fn remove(directory: &Path, hands: &mut dyn Hands) -> Result<(), RecordError> {
    let path = file(directory);
    if hands.files().text(&path) == Err(ReadError::Absent) {
        return Ok(());
    }
    hands.remove(&path)?;
    Ok(hands.sync_directory(&parent_of(&path))?)
}
