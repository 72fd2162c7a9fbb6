//! Files that a long job keeps over its interruptions: what it makes, under another name until it is whole, and a
//! journal beside it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::files::full_read::full_read;
use crate::files::new_file::directory_of;
use crate::files::syncs;

/// Makes a sparse file of `bytes` bytes, or sets the size of the existing one.
///
/// # Errors
/// If the file cannot be opened or resized.
pub fn make(path: &Path, bytes: u64) -> io::Result<()> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    let file = rustix::fs::open(path, flags, mode)?;
    Ok(rustix::fs::ftruncate(&file, bytes)?)
}

/// Gives a file that is whole and durable its name, in place of what may have had it, durably.
///
/// # Errors
/// If the rename fails, or the directory cannot be flushed.
pub fn publish(from: &Path, to: &Path) -> io::Result<()> {
    rustix::fs::rename(from, to)?;
    sync_directory(to)
}

/// Removes a file, if it is there.
///
/// # Errors
/// If it cannot be removed, or the directory cannot be flushed.
pub fn remove(path: &Path) -> io::Result<()> {
    match rustix::fs::unlink(path) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn sync_directory(of: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(directory_of(of), flags, Mode::empty())?;
    Ok(syncs::whole(directory.as_fd())?)
}

/// A file to whose end lines are added, each durable before the call comes back. Two programs cannot have it at
/// once.
#[derive(Debug)]
pub struct Appended {
    path: PathBuf,
    file: OwnedFd,
}

impl Appended {
    /// Opens a file, or makes it; gives it with what is in it, at most `most` bytes. Nothing when another program has
    /// it.
    ///
    /// # Errors
    /// The system's; `FileTooLarge` when there is more in it.
    pub fn open(path: &Path, most: usize) -> io::Result<Option<(Appended, Vec<u8>)>> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
        let locked = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
        // Some network filesystems have no locks, and say something else.
        if locked == Err(Errno::WOULDBLOCK) {
            return Ok(None);
        }
        let size = rustix::fs::fstat(&file)?.st_size;
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut bytes = vec![0; size];
        let got = full_read(&file, &mut bytes, 0).map_err(|failed| failed.errno)?;
        bytes.truncate(got);
        let path = path.to_path_buf();
        Ok(Some((Appended { path, file }, bytes)))
    }

    /// Cuts off what is behind `length`, where the next text goes. Durable with that.
    ///
    /// # Errors
    /// If the file cannot be truncated or flushed.
    pub fn cut(&self, length: u64) -> io::Result<()> {
        rustix::fs::ftruncate(&self.file, length)?;
        rustix::fs::seek(&self.file, rustix::fs::SeekFrom::Start(length))?;
        Ok(())
    }

    /// Writes `text` in place of all that was there, durably, and the file's name too.
    ///
    /// # Errors
    /// If the file cannot be written or flushed.
    pub fn begin(&self, text: &[u8]) -> io::Result<()> {
        // Cutting gives back what was reserved.
        if rustix::fs::fstat(&self.file)?.st_size > 0 {
            self.cut(0)?;
        }
        self.append(text)?;
        sync_directory(&self.path)
    }

    /// Sets room aside for what is written into an empty file later, so that a disk which is full then still takes it. Where the
    /// filesystem cannot, or has no room, nothing happens.
    pub fn reserve(&self, bytes: u64) {
        let keep = rustix::fs::FallocateFlags::KEEP_SIZE;
        // Without the reserve, what is missed is a record of progress.
        let _ = rustix::fs::fallocate(&self.file, keep, 0, bytes);
    }

    /// Adds `text` behind what was written last, durably.
    ///
    /// # Errors
    /// If the file cannot be written or flushed.
    pub fn append(&self, mut text: &[u8]) -> io::Result<()> {
        while !text.is_empty() {
            match rustix::io::write(&self.file, text) {
                Ok(count) => text = &text[count..],
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(syncs::data(self.file.as_fd())?)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file, durably.
    ///
    /// # Errors
    /// As for [`remove`].
    pub fn remove(self) -> io::Result<()> {
        remove(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_there_again_and_only_one_has_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let (file, bytes) = Appended::open(&path, 100).unwrap().unwrap();
        assert!(bytes.is_empty());
        assert!(Appended::open(&path, 100).unwrap().is_none(), "it is in use");
        let before = syncs::of_this_thread();
        file.begin(b"head\n").unwrap();
        assert_eq!(syncs::of_this_thread() - before, 2, "the file and its name");
        file.append(b"one\ntw").unwrap();
        drop(file);
        let (file, bytes) = Appended::open(&path, 100).unwrap().unwrap();
        assert_eq!(bytes, b"head\none\ntw");
        file.cut(9).unwrap();
        file.append(b"two\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"head\none\ntwo\n");
        drop(file);
        assert!(Appended::open(&path, 5).is_err(), "too long");
        remove(&path).unwrap();
        remove(&path).unwrap();
    }

    #[test]
    fn a_file_keeps_what_is_in_it_until_it_gets_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let (partial, path) = (directory.path().join("a.partial"), directory.path().join("a"));
        make(&partial, 10).unwrap();
        std::fs::write(&partial, b"0123456789").unwrap();
        make(&partial, 10).unwrap();
        assert_eq!(std::fs::read(&partial).unwrap(), b"0123456789");
        std::fs::write(&path, "old").unwrap();
        publish(&partial, &path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"0123456789");
        assert!(!partial.exists());
    }
}
