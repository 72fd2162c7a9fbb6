//! A large file that is read and written at offsets by several threads, owned by one program at a time: what lies below
//! a copy-on-write overlay, and below the image that it covers.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut};
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, CWD, FallocateFlags, FileType, FlockOperation, Mode, OFlags, SeekFrom};
use rustix::io::{Errno, ReadWriteFlags};

use crate::files::full_read::full_read;
use crate::files::new_file::directory_of;

/// An open file; the lock on it, where there is one, goes with it.
#[derive(Debug)]
pub struct CloneFile {
    file: OwnedFd,
}

/// By what a file is recognised without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Its size; that of the medium for a block device.
    pub size_bytes: u64,
    /// When it was last changed, nanoseconds since 1970; a block device has none.
    pub changed_ns: Option<i128>,
    /// How much of its filesystem it takes.
    pub taken_bytes: u64,
}

/// Who may open a file meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// No lock: others may open it, too.
    None,
    /// An exclusive lock: no other program that locks may open it.
    Alone,
}

impl CloneFile {
    /// Opens a file or a block device for reading.
    ///
    /// # Errors
    /// If the path cannot be opened, or is neither a file nor a block device.
    pub fn read_only(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::open(path, flags, Mode::empty())?;
        match FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) {
            FileType::RegularFile | FileType::BlockDevice => Ok(CloneFile { file }),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is neither a file nor a block device",
            )),
        }
    }

    /// Opens a file that exists, for reading and writing; never through a link.
    ///
    /// # Errors
    /// `WouldBlock` when another one has it alone; the system's.
    pub fn open(path: &Path, lock: Lock) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        loop {
            let file = rustix::fs::open(path, flags, Mode::empty())?;
            let opened = rustix::fs::fstat(&file)?;
            if FileType::from_raw_mode(opened.st_mode) != FileType::RegularFile {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
            }
            if lock == Lock::None {
                return Ok(CloneFile { file });
            }
            rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            // Another file may have taken the name before the lock was ours.
            let named = rustix::fs::lstat(path)?;
            if (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino) {
                return Ok(CloneFile { file });
            }
        }
    }

    /// A file without a name in a directory: it is gone when it is closed, however that happens.
    ///
    /// # Errors
    /// If the directory cannot be written to.
    pub fn without_name(directory: &Path) -> io::Result<Self> {
        let mode = Mode::RUSR | Mode::WUSR;
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::TMPFILE;
        match rustix::fs::open(directory, flags, mode) {
            Ok(file) => Ok(CloneFile { file }),
            // Not every filesystem can; the name is gone at once then.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                let path = directory.join(format!(".nameless-{}", rustix::process::getpid()));
                let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::CREATE | OFlags::EXCL;
                let file = rustix::fs::open(&path, flags, mode)?;
                rustix::fs::unlink(&path)?;
                Ok(CloneFile { file })
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// Begins a file that will replace `path`, locked and under a temporary name. What an earlier attempt left is
    /// removed.
    ///
    /// # Errors
    /// If the file cannot be created or locked.
    pub fn begin(path: &Path) -> io::Result<Unnamed> {
        let unfinished = unfinished(path)?;
        match rustix::fs::unlink(&unfinished) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::CREATE | OFlags::EXCL;
        let file = rustix::fs::open(&unfinished, flags, Mode::RUSR | Mode::WUSR)?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Unnamed { file: Some(CloneFile { file }), path: path.into(), unfinished })
    }

    /// Takes a shared lock for as long as it is open, which excludes exclusive locks.
    ///
    /// # Errors
    /// `WouldBlock` if another program has an exclusive lock.
    pub fn share_lock(&self) -> io::Result<()> {
        match rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockShared) {
            Err(Errno::WOULDBLOCK) => Err(io::ErrorKind::WouldBlock.into()),
            // Some network filesystems have no locks.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Lets others have it.
    pub fn unlock(&self) {
        // An unlock of an open file cannot fail; the close would do it, too.
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }

    /// Its device number and inode number.
    ///
    /// # Errors
    /// If the file cannot be examined.
    pub fn inode(&self) -> io::Result<(u64, u64)> {
        let found = rustix::fs::fstat(&self.file)?;
        // The fields' types differ between processors.
        #[allow(clippy::unnecessary_cast)]
        Ok((found.st_dev as u64, found.st_ino as u64))
    }

    /// What it is recognised by.
    ///
    /// # Errors
    /// If the file cannot be examined.
    pub fn stamp(&self) -> io::Result<Stamp> {
        let found = rustix::fs::fstat(&self.file)?;
        let taken_bytes = found.st_blocks as u64 * 512;
        if FileType::from_raw_mode(found.st_mode) == FileType::BlockDevice {
            return Ok(Stamp {
                size_bytes: rustix::fs::seek(&self.file, SeekFrom::End(0))?,
                changed_ns: None,
                taken_bytes,
            });
        }
        let seconds = i128::from(found.st_mtime as i64);
        Ok(Stamp {
            size_bytes: found.st_size as u64,
            changed_ns: Some(seconds * 1_000_000_000 + i128::from(found.st_mtime_nsec as i64)),
            taken_bytes,
        })
    }

    /// Fills `into` from `offset`; bytes beyond the end of the file read as zeros.
    ///
    /// # Errors
    /// If the device reports an I/O error.
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let done = full_read(&self.file, into, offset).map_err(|failed| failed.errno)?;
        into[done..].fill(0);
        Ok(())
    }

    /// [`CloneFile::read_at`] of what is in memory.
    ///
    /// # Errors
    /// `WouldBlock` when a device would have to be waited for, or where the kernel cannot tell.
    pub fn read_ready_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let bytes = into.len();
        let parts = &mut [IoSliceMut::new(into)];
        match rustix::io::preadv2(&self.file, parts, offset, ReadWriteFlags::NOWAIT) {
            Ok(count) if count == bytes => Ok(()),
            Ok(_) | Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::INTR | Errno::NOSYS) => {
                Err(io::ErrorKind::WouldBlock.into())
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// Writes all parts one behind the other.
    ///
    /// # Errors
    /// The system's; a part of it may have been written.
    pub fn write_at(&self, mut offset: u64, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        IoSlice::advance_slices(&mut parts, 0);
        while !parts.is_empty() {
            let written = match &*parts {
                [one] => rustix::io::pwrite(&self.file, one, offset),
                several => rustix::io::pwritev(&self.file, several, offset),
            };
            match written {
                Ok(0) => return Err(Errno::NOSPC.into()),
                Ok(count) => {
                    offset += count as u64;
                    IoSlice::advance_slices(&mut parts, count);
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Everything that was written is on stable storage when this returns.
    ///
    /// # Errors
    /// The system's; what was written may be lost then.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fdatasync(&self.file)?)
    }

    /// Sets the length of the file; what is added is a hole.
    ///
    /// # Errors
    /// If the filesystem is full or cannot hold a file of that size.
    pub fn set_length(&self, bytes: u64) -> io::Result<()> {
        Ok(rustix::fs::ftruncate(&self.file, bytes)?)
    }

    /// Gives a range its place, so that writing there needs no more; it is zeros.
    ///
    /// # Errors
    /// The system's, that there is no space among them.
    pub fn reserve(&self, offset: u64, bytes: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), offset, bytes) {
            Err(Errno::OPNOTSUPP) => self.write_zeros(offset, bytes),
            done => Ok(done?),
        }
    }

    /// Makes a range a hole, which is read as zeros.
    ///
    /// # Errors
    /// `Unsupported` where the filesystem knows no holes; the system's.
    pub fn punch(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(rustix::fs::fallocate(&self.file, flags, offset, bytes)?)
    }

    /// Makes a range zeros that have their place.
    ///
    /// # Errors
    /// `Unsupported` where the filesystem cannot do so without writing them; the system's.
    pub fn zero_in_place(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let flags = FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE;
        Ok(rustix::fs::fallocate(&self.file, flags, offset, bytes)?)
    }

    /// Writes zeros over `bytes` bytes from `offset`.
    ///
    /// # Errors
    /// As for [`CloneFile::write_at`].
    pub fn write_zeros(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let zeros = [0; 64 << 10];
        let mut done = 0;
        while done < bytes {
            let now = (bytes - done).min(zeros.len() as u64) as usize;
            self.write_at(offset + done, &mut [IoSlice::new(&zeros[..now])])?;
            done += now as u64;
        }
        Ok(())
    }

    /// Makes the range from `to` on share the whole contents of another file.
    ///
    /// # Errors
    /// When they are not on one filesystem that can.
    pub fn share(&self, from: &CloneFile, to: u64) -> io::Result<()> {
        let range = Range {
            from: i64::from(from.file.as_raw_fd()),
            from_offset: 0,
            bytes: 0,
            to_offset: to,
        };
        // SAFETY: the kernel reads one `struct file_clone_range`, which lives until the call returns.
        let answer =
            unsafe { libc::ioctl(self.file.as_raw_fd(), libc::FICLONERANGE, &raw const range) };
        match answer {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The next piece that may hold data at or after an offset, as its begin and end; nothing when a hole follows up to
    /// the end of the file. Where holes are not known, all is data.
    ///
    /// # Errors
    /// If the filesystem reports an error.
    pub fn next_data(&self, offset: u64) -> io::Result<Option<(u64, u64)>> {
        match rustix::fs::seek(&self.file, SeekFrom::Data(offset)) {
            Ok(start) => Ok(Some((start, rustix::fs::seek(&self.file, SeekFrom::Hole(start))?))),
            Err(Errno::NXIO) => Ok(None),
            // Devices know no holes.
            Err(Errno::INVAL) => Ok(Some((offset, u64::MAX))),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Asks the kernel to begin reading a range. Only a hint.
    pub fn will_need(&self, offset: u64, bytes: u64) {
        let length = NonZeroU64::new(bytes);
        let _ = rustix::fs::fadvise(&self.file, offset, length, Advice::WillNeed);
    }
}

/// `struct file_clone_range` of include/uapi/linux/fs.h.
#[repr(C)]
struct Range {
    from: i64,
    from_offset: u64,
    bytes: u64,
    to_offset: u64,
}

/// A file that has not its name yet. It is removed when this is dropped before it has.
#[derive(Debug)]
pub struct Unnamed {
    file: Option<CloneFile>,
    path: PathBuf,
    unfinished: PathBuf,
}

impl Unnamed {
    /// The file, still under its temporary name.
    pub fn file(&self) -> &CloneFile {
        match &self.file {
            Some(file) => file,
            None => unreachable!("it is taken when this is consumed"),
        }
    }

    /// Puts it on stable storage and gives it its name, durably, in place of what may have it.
    ///
    /// # Errors
    /// The system's; nothing is left of it then.
    pub fn replace(mut self) -> io::Result<CloneFile> {
        rustix::fs::fsync(&self.file().file)?;
        rustix::fs::rename(&self.unfinished, &self.path)?;
        sync_directory(&directory_of(&self.path))?;
        self.file.take().ok_or_else(|| io::ErrorKind::Other.into())
    }

    /// Like [`Unnamed::replace`], but fails if something has that name.
    ///
    /// # Errors
    /// `AlreadyExists` if something has that name; else if the file cannot be flushed or linked.
    pub fn name(mut self) -> io::Result<CloneFile> {
        rustix::fs::fsync(&self.file().file)?;
        rustix::fs::linkat(CWD, &self.unfinished, CWD, &self.path, rustix::fs::AtFlags::empty())?;
        rustix::fs::unlink(&self.unfinished)?;
        sync_directory(&directory_of(&self.path))?;
        self.file.take().ok_or_else(|| io::ErrorKind::Other.into())
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        if self.file.is_some() {
            // Nothing more can be done when it cannot be removed; its name says that it is not whole.
            let _ = rustix::fs::unlink(&self.unfinished);
        }
    }
}

/// Removes a file, durably.
///
/// # Errors
/// If it cannot be removed, or the directory cannot be flushed.
pub fn remove(path: &Path) -> io::Result<()> {
    rustix::fs::unlink(path)?;
    sync_directory(&directory_of(path))
}

/// The names in a directory, sorted.
///
/// # Errors
/// If the directory cannot be read.
pub fn names_in(directory: &Path) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        names.push(entry?.file_name());
    }
    names.sort();
    Ok(names)
}

/// Makes a directory that may exist already, for its owner alone.
///
/// # Errors
/// If it cannot be created, or something else has that name.
pub fn make_directory(path: &Path) -> io::Result<()> {
    match rustix::fs::mkdir(path, Mode::RWXU) {
        Ok(()) => sync_directory(&directory_of(path)),
        Err(Errno::EXIST) if path.is_dir() => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// The canonical path, with all symbolic links resolved.
///
/// # Errors
/// If a component of the path does not exist or cannot be searched.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    std::fs::canonicalize(path)
}

/// A new random number of 128 bits, in the form of a UUID.
///
/// # Errors
/// If `/proc` is not mounted.
pub fn random_uuid() -> io::Result<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    Ok(text.trim_end().to_string())
}

fn sync_directory(directory: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(directory, flags, Mode::empty())?;
    Ok(rustix::fs::fsync(directory.as_fd())?)
}

/// A hidden temporary name beside the file, which does not look like the finished file.
fn unfinished(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(".unfinished");
    Ok(path.with_file_name(hidden))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let names = names_in(directory).unwrap();
        names.into_iter().map(|name| name.into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_has_its_name_only_when_it_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let file = CloneFile::begin(&path).unwrap();
        assert_eq!(names(directory.path()), [".a.unfinished"]);
        drop(file);
        assert!(names(directory.path()).is_empty());

        let new = CloneFile::begin(&path).unwrap();
        new.file().write_at(0, &mut [IoSlice::new(b"one")]).unwrap();
        let kept = new.name().unwrap();
        assert_eq!(names(directory.path()), ["a"]);
        let taken = CloneFile::open(&path, Lock::Alone).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::WouldBlock);
        drop(kept);
        assert!(CloneFile::open(&path, Lock::Alone).is_ok());

        let second = CloneFile::begin(&path).unwrap().name().unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::AlreadyExists);
        let replaced = CloneFile::begin(&path).unwrap().replace().unwrap();
        assert_eq!(replaced.stamp().unwrap().size_bytes, 0);
        assert_eq!(names(directory.path()), ["a"]);
    }

    #[test]
    fn a_file_without_a_name_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let file = CloneFile::without_name(directory.path()).unwrap();
        file.write_at(5, &mut [IoSlice::new(b"a"), IoSlice::new(b"bc")]).unwrap();
        let mut read = [9; 6];
        file.read_at(4, &mut read).unwrap();
        assert_eq!(&read, b"\0abc\0\0");
        assert!(names(directory.path()).is_empty());
    }

    #[test]
    fn a_link_is_not_followed_for_writing() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        std::fs::write(&file, "x").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(CloneFile::open(&file, Lock::None).is_ok());
        assert!(CloneFile::open(&link, Lock::None).is_err());
    }
}
