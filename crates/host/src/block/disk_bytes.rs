//! The bytes of a disk or of the image of one, read in any place and never written.

use std::path::Path;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::block::blockdev::Geometry;
use crate::files::full_read::full_read;

/// Why a disk or an image cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiskBytesError {
    /// Nothing of that name exists.
    #[error("no such file or device")]
    Missing,
    /// This user may not read it.
    #[error("permission denied; root may read it")]
    Denied,
    /// A directory, a terminal or the like.
    #[error("it is neither a disk nor a file")]
    OtherKind,
    /// A reader without a card.
    #[error("no medium is in it")]
    NoMedium,
    /// Anything else, in the system's words.
    #[error("{0}")]
    Other(String),
}

impl From<Errno> for DiskBytesError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => DiskBytesError::Missing,
            Errno::ACCESS | Errno::PERM => DiskBytesError::Denied,
            Errno::NOMEDIUM | Errno::NXIO => DiskBytesError::NoMedium,
            other => DiskBytesError::Other(std::io::Error::from(other).to_string()),
        }
    }
}

/// A disk or an image that is open for reading.
#[derive(Debug)]
pub struct DiskBytes {
    fd: OwnedFd,
    size_bytes: u64,
    /// The smallest addressable unit of a device.
    logical_block_bytes: Option<u32>,
}

impl DiskBytes {
    /// Opens for reading, even if it is in use.
    ///
    /// # Errors
    /// If it cannot be opened, is neither a file nor a block device, or has no medium.
    pub fn open(path: &Path) -> Result<DiskBytes, DiskBytesError> {
        // Not to block: the path may be that of a FIFO.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let fd = rustix::fs::open(path, flags, Mode::empty())?;
        let found = rustix::fs::fstat(&fd)?;
        let kind = FileType::from_raw_mode(found.st_mode);
        let (size_bytes, logical_block_bytes) = match kind {
            FileType::RegularFile => (u64::try_from(found.st_size).unwrap_or_default(), None),
            FileType::BlockDevice => {
                let geometry = Geometry::of(fd.as_fd())?;
                (geometry.size_bytes, Some(geometry.logical_block_bytes))
            }
            _ => return Err(DiskBytesError::OtherKind),
        };
        if logical_block_bytes.is_some() && size_bytes == 0 {
            return Err(DiskBytesError::NoMedium);
        }
        Ok(DiskBytes { fd, size_bytes, logical_block_bytes })
    }

    /// Size of the file or device, in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Whether it is a device and not a file.
    pub fn is_device(&self) -> bool {
        self.logical_block_bytes.is_some()
    }

    /// The smallest addressable unit of a device; absent for a file.
    pub fn logical_block_bytes(&self) -> Option<u32> {
        self.logical_block_bytes
    }

    /// The bytes from `offset` on; fewer at the end.
    ///
    /// # Errors
    /// A sentence with the place.
    pub fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; length];
        let done = full_read(&self.fd, &mut bytes, offset).map_err(|failed| {
            let why = std::io::Error::from(failed.errno);
            format!("cannot read at byte {}: {why}", offset + failed.done as u64)
        })?;
        bytes.truncate(done);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_from_any_place_and_end_with_the_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("image");
        std::fs::write(&path, b"0123456789").expect("a file");
        let disk = DiskBytes::open(&path).expect("it opens");
        assert_eq!((disk.size_bytes(), disk.is_device()), (10, false));
        assert_eq!(disk.read(4, 3), Ok(b"456".to_vec()));
        assert_eq!(disk.read(8, 30), Ok(b"89".to_vec()));
        assert_eq!(disk.read(800, 3), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_disk_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let open = |path: &Path| DiskBytes::open(path).map(|_| ());
        assert_eq!(open(directory.path()), Err(DiskBytesError::OtherKind));
        assert_eq!(open(&directory.path().join("none")), Err(DiskBytesError::Missing));
        assert_eq!(open(Path::new("/dev/null")), Err(DiskBytesError::OtherKind));
    }
}
