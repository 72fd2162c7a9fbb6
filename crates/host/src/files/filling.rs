//! Writing files that are large and empty, making a file durable, and how full a filesystem is.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::files::hands::WriteError;

/// Writes zeros to an existing file up to a size, so that every block of it is allotted and written. `tell` gets the
/// bytes that are done, every 16 MiB. Durable after [`sync_file`].
///
/// # Errors
/// When it cannot be written, or `stop` was raised; the file is then as long as it came.
pub fn fill_with_zeros(
    path: &Path,
    size_bytes: u64,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(u64),
) -> Result<(), WriteError> {
    const PIECE_BYTES: usize = 1 << 20;
    const TELL_EVERY_BYTES: u64 = 16 << 20;
    let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(path, flags, Mode::empty())
        .map_err(|errno| WriteError::of("open", path, errno))?;
    let zeros = vec![0_u8; PIECE_BYTES];
    let mut done: u64 = 0;
    while done < size_bytes {
        if stop.load(Ordering::Relaxed) {
            return Err(WriteError {
                tried: "fill",
                path: path.display().to_string(),
                reason: "it was stopped, as asked for".into(),
            });
        }
        let left = size_bytes - done;
        let piece = &zeros[..left.min(PIECE_BYTES as u64) as usize];
        match rustix::io::pwrite(&file, piece, done) {
            Ok(count) => done += count as u64,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(WriteError::of("fill", path, errno)),
        }
        if done % TELL_EVERY_BYTES == 0 {
            // So that the end is not one long wait, and the progress is that of the device.
            rustix::fs::fdatasync(&file).map_err(|errno| WriteError::of("fill", path, errno))?;
            tell(done);
        }
    }
    Ok(())
}

/// The contents of a file are on stable storage.
///
/// # Errors
/// When the device fails.
pub fn sync_file(path: &Path) -> Result<(), WriteError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::open(path, flags, Mode::empty())
        .and_then(rustix::fs::fsync)
        .map_err(|errno| WriteError::of("make durable", path, errno))
}

/// What is in use on a filesystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Bytes in use.
    pub bytes: u64,
    /// Files, directories and the rest; 0 where the filesystem does not count them (btrfs).
    pub entries: u64,
}

/// What is in use on the filesystem that a path is on.
///
/// # Errors
/// When it cannot be asked.
pub fn usage(path: &Path) -> Result<Usage, WriteError> {
    let found =
        rustix::fs::statvfs(path).map_err(|errno| WriteError::of("look at", path, errno))?;
    let used = found.f_blocks.saturating_sub(found.f_bfree);
    Ok(Usage {
        bytes: used.saturating_mul(found.f_frsize),
        entries: found.f_files.saturating_sub(found.f_ffree),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_filled_whole_or_stopped() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, b"").unwrap();
        let go = AtomicBool::new(false);
        let mut told = Vec::new();
        let size = (16 << 20) + 4096;
        fill_with_zeros(&path, size, &go, &mut |done| told.push(done)).unwrap();
        sync_file(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), size);
        assert_eq!(told, [16 << 20]);
        let stop = AtomicBool::new(true);
        let error = fill_with_zeros(&path, size, &stop, &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("stopped"), "{error}");
    }
}
