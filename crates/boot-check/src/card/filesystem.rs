//! What a card answers as [`Files`], whichever filesystem it has: no machine is around it, and nothing else is mounted.

use std::path::{Path, PathBuf};

use rubus_host::files::not_kept;
use rubus_host::{Files, ReadError, Space};

/// Reads one filesystem. Paths begin at its own root; links are followed inside of it.
pub(super) trait Filesystem {
    /// The first `limit` bytes of a file.
    fn read_prefix(&self, path: &Path, limit: usize) -> Result<Vec<u8>, ReadError>;

    /// The names in a directory, in any order.
    fn names(&self, path: &Path) -> Result<Vec<String>, ReadError>;

    /// Succeeds where something is at a path.
    fn look_up(&self, path: &Path) -> Result<(), ReadError>;

    /// The permission bits of what is at a path, not following a link at its end; `None` where
    /// none are read.
    fn mode(&self, path: &Path) -> Option<Result<u32, ReadError>>;
}

/// The files of one filesystem of a card.
pub(super) struct CardFiles<F>(pub(super) F);

impl<F: Filesystem> Files for CardFiles<F> {
    fn read_prefix(&self, path: &Path, limit: usize) -> Result<Vec<u8>, ReadError> {
        self.0.read_prefix(path, limit)
    }

    fn list(&self, path: &Path) -> Result<Vec<String>, ReadError> {
        let mut names = self.0.names(path)?;
        names.sort_unstable();
        Ok(names)
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, ReadError> {
        self.0.look_up(path).map(|()| path.to_path_buf())
    }

    fn space(&self, _: &Path) -> Result<Space, ReadError> {
        Err(ReadError::Absent)
    }

    fn ask(&self, _: &str, _: &[&str]) -> Result<String, ReadError> {
        Err(ReadError::Absent)
    }

    fn mode(&self, path: &Path) -> Result<u32, ReadError> {
        self.0.mode(path).unwrap_or_else(|| not_kept(self, path))
    }

    fn keeps_modes(&self, _: &Path) -> bool {
        true
    }

    fn link(&self, path: &Path) -> Result<PathBuf, ReadError> {
        not_kept(self, path)
    }

    fn firmware_word(&self, _: u32) -> Result<u32, ReadError> {
        Err(ReadError::Absent)
    }
}
