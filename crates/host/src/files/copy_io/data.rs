//! The contents of files: where data and holes are, reading, writing, sharing, and hints to the page cache.

use std::ffi::OsStr;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Advice, AtFlags, Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use super::directory::{Directory, Meta, look, quietly};
use super::failure::Failure;
use crate::files::full_read::full_read;

/// An open regular file.
#[derive(Debug)]
pub struct File {
    pub(super) fd: OwnedFd,
}

impl Directory {
    /// Opens a file for reading, without changing its time of access where that is allowed. Never waits for a pipe that
    /// took the file's place.
    ///
    /// # Errors
    /// When there is none of that name, it is a link, or it may not be read.
    pub fn read_file(&self, name: &OsStr) -> Result<File, Failure> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fd = quietly(|quiet| rustix::fs::openat(&self.fd, name, flags | quiet, Mode::empty()));
        Ok(File { fd: fd.map_err(Failure::of("open"))? })
    }

    /// Makes a file that only its owner may use, for writing.
    ///
    /// # Errors
    /// When anything of that name exists, even a link.
    pub fn make_file(&self, name: &OsStr) -> Result<File, Failure> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR);
        Ok(File { fd: fd.map_err(Failure::of("make the file"))? })
    }

    /// Opens a file for reading and appending to it at offsets of our choice; it must exist.
    ///
    /// # Errors
    /// When there is none of that name, it is a link, or may not be written.
    pub fn write_file(&self, name: &OsStr) -> Result<File, Failure> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fd = rustix::fs::openat(&self.fd, name, flags, Mode::empty());
        Ok(File { fd: fd.map_err(Failure::of("open"))? })
    }
}

impl File {
    /// What is known about it.
    ///
    /// # Errors
    /// When the filesystem fails.
    pub fn look(&self) -> Result<Meta, Failure> {
        look(self.fd.as_fd(), c"", AtFlags::EMPTY_PATH)
    }

    /// Reads at an offset until the buffer is full or the file ends; says how much it was.
    ///
    /// # Errors
    /// When the device fails.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, Failure> {
        let failure = Failure::of("read");
        full_read(&self.fd, buffer, offset).map_err(|failed| failure(failed.errno))
    }

    /// Writes all bytes at an offset.
    ///
    /// # Errors
    /// When the filesystem is full or fails.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Failure> {
        let mut done = 0;
        while done < bytes.len() {
            match rustix::io::pwrite(&self.fd, &bytes[done..], offset + done as u64) {
                Ok(0) => return Err(Failure::of("write")(Errno::NOSPC)),
                Ok(written) => done += written,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Failure::of("write")(errno)),
            }
        }
        Ok(())
    }

    /// The next piece that holds data at or after an offset, as its begin and end; nothing when only a hole follows.
    /// Where the filesystem does not know holes, all is data.
    ///
    /// # Errors
    /// When the filesystem fails.
    pub fn next_data(&self, offset: u64) -> Result<Option<(u64, u64)>, Failure> {
        let failed = Failure::of("look for holes");
        let start = match rustix::fs::seek(&self.fd, SeekFrom::Data(offset)) {
            Ok(start) => start,
            Err(Errno::NXIO) => return Ok(None),
            Err(errno) => return Err(failed(errno)),
        };
        let end = rustix::fs::seek(&self.fd, SeekFrom::Hole(start)).map_err(failed)?;
        Ok(Some((start, end)))
    }

    /// Sets the length; what is added is a hole.
    ///
    /// # Errors
    /// When it is longer than the filesystem allows.
    pub fn set_length(&self, bytes: u64) -> Result<(), Failure> {
        rustix::fs::ftruncate(&self.fd, bytes).map_err(Failure::of("set the length"))
    }

    /// Makes this file share the contents of another (`FICLONE`).
    ///
    /// # Errors
    /// When they are not on one filesystem that can.
    pub fn share(&self, from: &File) -> Result<(), Failure> {
        rustix::fs::ioctl_ficlone(&self.fd, &from.fd).map_err(Failure::of("share the contents"))
    }

    /// Copies at most `bytes` bytes at the same offset within the kernel; says how many. 0 is the end of the file.
    ///
    /// # Errors
    /// When the filesystems cannot, or reading or writing fails; which of the two is not known.
    pub fn copy_from(&self, from: &File, offset: u64, bytes: u64) -> Result<u64, Failure> {
        let (mut read, mut written) = (offset, offset);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let copied = rustix::fs::copy_file_range(
            &from.fd,
            Some(&mut read),
            &self.fd,
            Some(&mut written),
            bytes,
        );
        let copied = copied.map_err(Failure::of("copy within the kernel"))?;
        Ok(copied as u64)
    }

    /// Asks the kernel to begin reading a range. Only a hint.
    pub fn will_need(&self, offset: u64, bytes: u64) {
        let _ = rustix::fs::fadvise(&self.fd, offset, NonZeroU64::new(bytes), Advice::WillNeed);
    }

    /// Tells the kernel that it will be read once, from its begin to its end. Only a hint.
    pub fn in_sequence(&self) {
        let _ = rustix::fs::fadvise(&self.fd, 0, None, Advice::Sequential);
    }

    /// Asks the kernel to forget a range: what is clean leaves the page cache, writing of the rest begins. Only a hint.
    pub fn not_needed(&self, offset: u64, bytes: u64) {
        let _ = rustix::fs::fadvise(&self.fd, offset, NonZeroU64::new(bytes), Advice::DontNeed);
    }

    /// Brings the contents to stable storage.
    ///
    /// # Errors
    /// When the device fails or is full.
    pub fn sync(&self) -> Result<(), Failure> {
        rustix::fs::fdatasync(&self.fd).map_err(Failure::of("write to stable storage"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, Write};

    #[test]
    fn holes_are_found_where_the_filesystem_knows_them() {
        let root = tempfile::tempdir().unwrap();
        let mut file = std::fs::File::create(root.path().join("sparse")).unwrap();
        file.write_all(b"begin").unwrap();
        file.seek(std::io::SeekFrom::Start(8 << 20)).unwrap();
        file.write_all(b"end").unwrap();
        let directory = Directory::open_root(root.path()).unwrap();
        let file = directory.read_file(OsStr::new("sparse")).unwrap();
        let (start, end) = file.next_data(0).unwrap().unwrap();
        assert_eq!(start, 0);
        assert!((5..=(8 << 20) + 3).contains(&end));
        assert_eq!(file.next_data((8 << 20) + 3).unwrap(), None);
        let mut buffer = [0_u8; 16];
        assert_eq!(file.read_at(&mut buffer, 8 << 20).unwrap(), 3);
    }

    #[test]
    fn a_file_is_never_written_over() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("there"), "x").unwrap();
        std::os::unix::fs::symlink("nowhere", root.path().join("link")).unwrap();
        let directory = Directory::open_root(root.path()).unwrap();
        for name in ["there", "link"] {
            let failure = directory.make_file(OsStr::new(name)).unwrap_err();
            assert_eq!(failure.reason(), super::super::Reason::Exists);
        }
        assert!(!root.path().join("nowhere").exists());
    }
}
