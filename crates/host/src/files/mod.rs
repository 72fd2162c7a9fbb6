//! Reading the machine: files, directories, links and a few calls, live or from a capture.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub mod btrfs;
pub mod clone_file;
pub mod copy_io;
pub mod digest;
pub mod directory_size;
pub mod document;
pub(crate) mod fat;
pub mod filling;
pub(crate) mod full_read;
pub mod hands;
pub mod kept_file;
pub mod mounting;
pub mod new_file;
pub mod output_file;
pub mod own_files;
pub mod polled_file;
pub mod reread;
pub mod shared_mapping;
pub mod shm_words;
pub mod socket_place;
pub mod syncs;

/// Why something could not be read. The text says what was tried, on what, and why it failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadError {
    /// There is no such file or directory.
    #[error("no such file")]
    Absent,
    /// This user may not read it.
    #[error("permission denied; root may read it")]
    Denied,
    /// A capture was asked for something that was not recorded.
    #[error("not in the capture")]
    NotCaptured,
    /// A program ended with a status other than 0. Some programs answer that way.
    #[error("exit status {status}: {complaint}")]
    Failed {
        /// Its exit status.
        status: i32,
        /// The first line of its error output.
        complaint: String,
        /// Its standard output.
        output: String,
    },
    /// Anything else, in the system's words.
    #[error("{0}")]
    Other(String),
}

/// Size and free space of a mounted filesystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Space {
    /// Size of the filesystem in bytes.
    pub size_bytes: u64,
    /// Free for an ordinary user, in bytes.
    pub available_bytes: u64,
}

/// The answer of a reader that does not keep something of what is at a path, as its permissions.
///
/// # Errors
/// Always: [`ReadError::NotCaptured`] where something is there, else [`ReadError::Absent`].
pub fn not_kept<T>(files: &dyn Files, path: &Path) -> Result<T, ReadError> {
    Err(if files.exists(path) { ReadError::NotCaptured } else { ReadError::Absent })
}

/// The read side of a machine. Paths are absolute and begin with `/`; a capture answers them from
/// what was recorded. Nothing is ever changed through this trait. Each reader says itself what it
/// answers; only what is made of these answers is written here.
pub trait Files {
    /// The first `limit` bytes of a file.
    ///
    /// # Errors
    /// [`ReadError`] when it does not exist or may not be read.
    fn read_prefix(&self, path: &Path, limit: usize) -> Result<Vec<u8>, ReadError>;

    /// The names in a directory, sorted by byte value, without `.` and `..`.
    ///
    /// # Errors
    /// [`ReadError`] when it does not exist or may not be read.
    fn list(&self, path: &Path) -> Result<Vec<String>, ReadError>;

    /// The path with all symbolic links resolved.
    ///
    /// # Errors
    /// [`ReadError`] when a component does not exist or may not be read.
    fn real_path(&self, path: &Path) -> Result<PathBuf, ReadError>;

    /// Size and free space of the filesystem that `path` is on.
    ///
    /// # Errors
    /// [`ReadError`] when the path does not exist or may not be reached.
    fn space(&self, path: &Path) -> Result<Space, ReadError>;

    /// The output of a program that only looks (`vcgencmd get_throttled`), found in the standard
    /// directories, with a time limit. Only programs that change nothing may be passed.
    ///
    /// # Errors
    /// [`ReadError::Absent`] when it is not installed, [`ReadError::Failed`] when it ends with a
    /// status other than 0, [`ReadError::Other`] when it takes longer than 5 s or cannot be run.
    fn ask(&self, program: &str, arguments: &[&str]) -> Result<String, ReadError>;

    /// The permission bits of what is at a path, not following a link at its end.
    ///
    /// # Errors
    /// [`ReadError`] when it does not exist or may not be reached; a capture does not keep them.
    fn mode(&self, path: &Path) -> Result<u32, ReadError>;

    /// Whether the filesystem of a path keeps permission bits. FAT and its kin answer for all
    /// files what they were mounted with.
    fn keeps_modes(&self, path: &Path) -> bool;

    /// Where a symbolic link points, as it is written.
    ///
    /// # Errors
    /// [`ReadError`] when nothing is there, or something that is no link; a capture does not keep them.
    fn link(&self, path: &Path) -> Result<PathBuf, ReadError>;

    /// Asks the Raspberry Pi firmware for one property of one word through `/dev/vcio`, by its tag
    /// ("Mailbox property interface", raspberrypi/firmware wiki).
    ///
    /// # Errors
    /// [`ReadError::Absent`] where there is no such mailbox.
    fn firmware_word(&self, tag: u32) -> Result<u32, ReadError>;

    /// A whole small file (1 MiB at most) as text, trailing white space and NUL bytes removed;
    /// bytes that are not UTF-8 are replaced.
    ///
    /// # Errors
    /// [`ReadError`] when it does not exist or may not be read.
    fn text(&self, path: &Path) -> Result<String, ReadError> {
        let bytes = self.read_prefix(path, 1 << 20)?;
        let text = String::from_utf8_lossy(&bytes);
        Ok(text.trim_end_matches(['\0', '\n', ' ', '\t', '\r']).to_string())
    }

    /// Whether something of that name exists and can be reached.
    fn exists(&self, path: &Path) -> bool {
        self.real_path(path).is_ok()
    }
}
