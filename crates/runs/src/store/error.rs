//! What can go wrong with a history, in words that say what to do next.

use std::path::{Path, PathBuf};

use crate::history::RunId;
use rusqlite::ErrorCode;
use rusqlite::ffi;

/// Why the history could not be used. In every case the file is as it was before.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file or its directory cannot be opened.
    #[error("cannot open the history {path}: {reason}")]
    CannotOpen {
        /// The history's file.
        path: PathBuf,
        /// What is in the way.
        reason: String,
    },
    /// The file is something else.
    #[error(
        "{path} is not an SQLite database, so it cannot be the history; nothing was changed. \
         Move it away (mv {path} {path}.old) to start a new history"
    )]
    NotADatabase {
        /// Path of the history.
        path: PathBuf,
    },
    /// A database of another program.
    #[error(
        "{path} is the SQLite database of another program, not a history of rubus; nothing was \
         changed. Keep the history elsewhere"
    )]
    Foreign {
        /// Path of the history.
        path: PathBuf,
    },
    /// The file is torn or overwritten in places.
    #[error(
        "the history {path} is damaged ({reason}); nothing was changed. \
         'sqlite3 {path} .recover' may save its runs; move it away \
         (mv {path} {path}.damaged, with {path}-wal if that exists) to start a new history"
    )]
    Damaged {
        /// Path of the history.
        path: PathBuf,
        /// SQLite's error message.
        reason: String,
    },
    /// Written by a later version of this program.
    #[error(
        "the history {path} has version {found}, this rubus knows versions up to {known}; \
         nothing was changed. Use the newer rubus that wrote it"
    )]
    Newer {
        /// Path of the history.
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// The latest that this program knows.
        known: i64,
    },
    /// Readable, but not writable.
    #[error(
        "the history {path} cannot be written: {reason}. Make the file and its directory \
         writable for this user, then repeat"
    )]
    ReadOnly {
        /// Path of the history.
        path: PathBuf,
        /// What is in the way.
        reason: String,
    },
    /// The last commits of a killed program cannot be read without write permission.
    #[error(
        "the history {path} has changes in {path}-wal that can only be read with write permission \
         to its directory. Try as the user whose history it is"
    )]
    NeedsRecovery {
        /// Path of the history.
        path: PathBuf,
    },
    /// The filesystem is full.
    #[error(
        "no space is left for the history {path}: nothing was changed, all its runs are intact. \
         Free some space and repeat"
    )]
    Full {
        /// Path of the history.
        path: PathBuf,
    },
    /// Another program holds it.
    #[error(
        "the history {path} is locked by another program and stayed so for {waited_ms} ms. \
         Close the other program (fuser {path} names it), then repeat"
    )]
    Locked {
        /// Path of the history.
        path: PathBuf,
        /// How long it was tried.
        waited_ms: u32,
    },
    /// The device below fails.
    #[error(
        "the history {path} could not be read or written: {reason}. The device may be failing: \
         look at the kernel log (dmesg)"
    )]
    Io {
        /// Path of the history.
        path: PathBuf,
        /// SQLite's error message.
        reason: String,
    },
    /// There is no such run.
    #[error("the history {path} has no run {id}: {hint}")]
    NoSuchRun {
        /// Path of the history.
        path: PathBuf,
        /// The number asked for.
        id: RunId,
        /// Which numbers there are.
        hint: String,
    },
    /// The run's record does not read back.
    #[error(
        "run {id} in the history {path} was recorded by rubus {rubus_version} and cannot be read \
         by this one ({reason}). Use the version that recorded it"
    )]
    UnreadableRun {
        /// Path of the history.
        path: PathBuf,
        /// Number of the run.
        id: RunId,
        /// Who wrote it.
        rubus_version: String,
        /// What the parser says.
        reason: String,
    },
    /// A run that has no JSON form; a programming error, reported instead of crashing.
    #[error("this run cannot be written as JSON: {reason}")]
    NotJson {
        /// What the serializer says.
        reason: String,
    },
    /// Another user made a symbolic link that stands for the history or its directory.
    #[error(
        "the history {} is not opened: {} is a symbolic link that another user made. Remove it, or name another \
         directory with XDG_DATA_HOME",
        path.display(), link.display()
    )]
    LinkOfAnother {
        /// Path of the history.
        path: PathBuf,
        /// Path of the symbolic link.
        link: PathBuf,
    },
    /// What was to be imported is no export of a history.
    #[error(
        "what is to be imported is no export of a history and no run of rubus (value {number}: {reason}). \
         {added} runs before it were imported; importing again does not make them twice"
    )]
    NotAnExport {
        /// Which value of the input, from 1.
        number: u64,
        /// What is wrong with it.
        reason: String,
        /// How many runs had been imported before.
        added: u64,
    },
    /// The export could not be written.
    #[error("the export cannot be written: {reason}")]
    NotWritten {
        /// The system's words.
        reason: String,
    },
    /// Anything else that SQLite says.
    #[error("the history {path} failed: {reason}")]
    Other {
        /// Path of the history.
        path: PathBuf,
        /// SQLite's error message.
        reason: String,
    },
}

/// Turns SQLite's error into one that says what to do. `waited_ms` is the busy timeout.
pub(crate) fn explain(path: &Path, waited_ms: u32, error: rusqlite::Error) -> StoreError {
    let path = path.to_path_buf();
    let reason = error.to_string();
    let Some(code) = error.sqlite_error() else {
        return match error {
            // A value of the wrong type in a column can only come from damage: tables are STRICT.
            rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::FromSqlConversionFailure(..) => StoreError::Damaged { path, reason },
            _ => StoreError::Other { path, reason },
        };
    };
    if is_full(&error) {
        return StoreError::Full { path };
    }
    match code.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            StoreError::Locked { path, waited_ms }
        }
        ErrorCode::NotADatabase => StoreError::NotADatabase { path },
        ErrorCode::DatabaseCorrupt => StoreError::Damaged { path, reason },
        ErrorCode::ReadOnly => StoreError::ReadOnly { path, reason },
        ErrorCode::CannotOpen | ErrorCode::PermissionDenied => {
            StoreError::CannotOpen { reason: what_is_in_the_way(&path).unwrap_or(reason), path }
        }
        ErrorCode::SystemIoFailure => StoreError::Io { path, reason },
        _ => StoreError::Other { path, reason },
    }
}

/// Whether no space is left. On a full disk the shared-memory file is what fails to grow.
pub(crate) fn is_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|code| {
        code.code == ErrorCode::DiskFull || code.extended_code == ffi::SQLITE_IOERR_SHMSIZE
    })
}

/// SQLite only says that it cannot open a file; the file system says why.
fn what_is_in_the_way(path: &Path) -> Option<String> {
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty());
    if let Some(Err(error)) = directory.map(std::fs::metadata) {
        return Some(format!("its directory: {error}"));
    }
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_dir() => Some("it is a directory".into()),
        Ok(_) => std::fs::File::open(path).err().map(|e| e.to_string()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Some("it does not exist and its directory is not writable for this user".into())
        }
        Err(error) => Some(error.to_string()),
    }
}
