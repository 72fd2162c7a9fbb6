//! The bytes of a disk image: a regular file or a block device that is served to others.
//!
//! Reading comes in two kinds, one of which never waits for a device. Whatever one program writes no
//! other may write at the same time: a file is locked while it is open here.

mod descriptions;

use std::ffi::OsStr;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{
    Advice, FallocateFlags, FileType, FlockOperation, Mode, OFlags, ResolveFlags, SeekFrom,
    StatxFlags, XattrFlags,
};
use rustix::io::{Errno, ReadWriteFlags};

use self::descriptions::Descriptions;
use crate::block::blockdev::{BlockReader, ClaimedDevice};
use crate::files::syncs;
use crate::net::splice::{self, Conduit};

/// Why an image cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// There is none.
    #[error("there is no such file")]
    Missing,
    /// It is something else.
    #[error("it is no regular file")]
    NotAFile,
    /// Another program has it.
    #[error("another program has it open and locked, which may write to it")]
    Locked,
    /// It is a symbolic link to something outside of the directory that it was looked for in.
    #[error("it is a symbolic link out of its directory")]
    LeadsOut,
    /// Any other error.
    #[error(transparent)]
    Other(#[from] io::Error),
}

/// What the bytes lie on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backing {
    File,
    /// A file of a filesystem in memory: there is no device to be waited for, unless it was swapped out.
    FileInMemory,
    Device {
        block_bytes: u64,
    },
}

/// An image that is open.
#[derive(Debug)]
pub struct Image {
    fd: OwnedFd,
    size_bytes: u64,
    is_writable: bool,
    backing: Backing,
    /// The filesystem cannot say what is in memory.
    cannot_ask: AtomicBool,
    /// The filesystem cannot take what is in a pipe.
    cannot_drain: AtomicBool,
    descriptions: Descriptions,
    /// It had a name when it was opened.
    was_named: bool,
}

/// Of a read that is as long it is first looked whether its last byte is in memory.
const PROBED_BYTES: usize = 16 << 10;
/// Zeros are written in pieces of this size.
const ZEROS_BYTES: usize = 256 << 10;
static ZEROS: [u8; ZEROS_BYTES] = [0; ZEROS_BYTES];

impl Image {
    /// Opens a regular file and locks it: exclusively for writing, shared for reading.
    ///
    /// # Errors
    /// If the file is missing, locked, or no regular file, or cannot be opened.
    pub fn open(path: &Path, writable: bool) -> Result<Image, ImageError> {
        let fd = rustix::fs::open(path, open_flags(writable), Mode::empty()).map_err(why_not)?;
        Image::of_file(fd, writable)
    }

    /// The same for a file of a directory, of which others may make symbolic links: one that leads out of
    /// the directory is not followed.
    ///
    /// # Errors
    /// As for [`Image::open`], and [`ImageError::LeadsOut`] for such a link.
    pub fn open_in(directory: &Path, name: &OsStr, writable: bool) -> Result<Image, ImageError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(directory, flags, Mode::empty()).map_err(why_not)?;
        let fd = open_beneath(&directory, name, open_flags(writable))
            .or_else(|errno| match errno {
                // Linux before 5.6, or a sandbox that does not know the call.
                Errno::NOSYS | Errno::PERM => {
                    let flags = open_flags(writable) | OFlags::NOFOLLOW;
                    rustix::fs::openat(&directory, name, flags, Mode::empty())
                }
                errno => Err(errno),
            })
            .map_err(|errno| match errno {
                Errno::XDEV | Errno::LOOP => ImageError::LeadsOut,
                errno => why_not(errno),
            })?;
        Image::of_file(fd, writable)
    }

    fn of_file(fd: OwnedFd, writable: bool) -> Result<Image, ImageError> {
        let stat = rustix::fs::fstat(&fd).map_err(io::Error::from)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(ImageError::NotAFile);
        }
        let lock = if writable {
            FlockOperation::NonBlockingLockExclusive
        } else {
            FlockOperation::NonBlockingLockShared
        };
        // Some network filesystems have no locks, which is no reason not to serve from them.
        if rustix::fs::flock(&fd, lock) == Err(Errno::WOULDBLOCK) {
            return Err(ImageError::Locked);
        }
        let backing = if is_in_memory(fd.as_fd()) { Backing::FileInMemory } else { Backing::File };
        let mut image = Image::new(fd, stat.st_size as u64, writable, backing);
        image.was_named = stat.st_nlink > 0;
        Ok(image)
    }

    /// An image on a device that the guard has given.
    pub fn of_claimed(device: ClaimedDevice) -> Image {
        let (size_bytes, block_bytes) = (device.size_bytes(), device.logical_block_bytes());
        let backing = Backing::Device { block_bytes: u64::from(block_bytes).max(512) };
        Image::new(device.into_fd(), size_bytes, true, backing)
    }

    /// An image on a device that is only read.
    pub fn of_reader(device: BlockReader) -> Image {
        let (size_bytes, block_bytes) = (device.size_bytes(), device.logical_block_bytes());
        let backing = Backing::Device { block_bytes: u64::from(block_bytes).max(512) };
        Image::new(device.into_fd(), size_bytes, false, backing)
    }

    fn new(fd: OwnedFd, size_bytes: u64, is_writable: bool, backing: Backing) -> Image {
        Image {
            descriptions: Descriptions::of(fd.as_fd(), is_writable),
            fd,
            size_bytes,
            is_writable,
            backing,
            cannot_ask: AtomicBool::new(false),
            cannot_drain: AtomicBool::new(false),
            was_named: false,
        }
    }

    /// Its size when it was opened.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Whether it was opened for writing.
    pub fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// Whether it is a block device.
    pub fn is_device(&self) -> bool {
        matches!(self.backing, Backing::Device { .. })
    }

    /// Whether the file is as long as it was and still has a name. A write behind the end of one that became shorter
    /// would make zeros of what is missing, and what is in a file without a name is gone when it is closed.
    ///
    /// # Errors
    /// That it is not so, in words; the system's.
    #[inline]
    pub fn is_whole(&self) -> io::Result<()> {
        if self.is_device() {
            return Ok(());
        }
        let flags = rustix::fs::AtFlags::EMPTY_PATH | rustix::fs::AtFlags::STATX_DONT_SYNC;
        let wanted = StatxFlags::SIZE | StatxFlags::NLINK;
        let stat = rustix::fs::statx(&self.fd, "", flags, wanted)?;
        if stat.stx_size < self.size_bytes {
            return Err(io::Error::other(format!(
                "the image was cut off: it has {} bytes and had {}",
                stat.stx_size, self.size_bytes
            )));
        }
        if stat.stx_nlink == 0 && self.was_named {
            Err(io::Error::other("the image was deleted or replaced"))
        } else {
            Ok(())
        }
    }

    /// Fills `into` with what is in memory, without waiting for a device.
    ///
    /// # Errors
    /// `WouldBlock` if not all of it is in memory, or that is unknown; else if the device reports
    /// an I/O error.
    #[inline]
    pub fn read_ready(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        if self.backing == Backing::FileInMemory {
            return self.read(offset, into);
        }
        if self.cannot_ask.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let wanted = into.len();
        // Whatever is read before the first byte that is not there is copied for nothing. A device that is
        // read in order has the end last.
        if wanted >= PROBED_BYTES {
            self.read_part_ready(offset + wanted as u64 - 1, &mut [0])?;
        }
        self.read_part_ready(offset, into)
    }

    #[inline]
    fn read_part_ready(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let wanted = into.len();
        let mut part = [IoSliceMut::new(into)];
        match rustix::io::preadv2(&self.fd, &mut part, offset, ReadWriteFlags::NOWAIT) {
            Ok(count) if count == wanted => Ok(()),
            // The rest may come from a device, and may fail.
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Err(io::ErrorKind::WouldBlock.into()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                self.cannot_ask.store(true, Ordering::Relaxed);
                Err(io::ErrorKind::WouldBlock.into())
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// Has a conduit take bytes that are in memory.
    ///
    /// # Errors
    /// `WouldBlock` if they are not in memory, or that is unknown, or the conduit has no room for
    /// `bytes` bytes: then it is still empty. After any other error the conduit is unusable.
    pub fn fill_ready(&self, conduit: &mut Conduit, offset: u64, bytes: usize) -> io::Result<()> {
        let is_here = match self.backing {
            Backing::FileInMemory => true,
            // The last page may be there and still be read from the device; the others then, too.
            Backing::File | Backing::Device { .. } => {
                splice::is_in_memory(self.fd.as_fd(), offset, bytes)
                    && self.read_ready(offset + bytes as u64 - 1, &mut [0]).is_ok()
            }
        };
        if !is_here || !Conduit::has_room(offset, bytes) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        conduit.fill(self.fd.as_fd(), offset, bytes)
    }

    /// Fills `into` from `offset`.
    ///
    /// # Errors
    /// The system's; `UnexpectedEof` when the file has become shorter.
    #[inline]
    pub fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < into.len() {
            match rustix::io::pread(&self.fd, &mut into[done..], offset + done as u64) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => done += count,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Writes all of `from`; durable after [`Image::sync`].
    ///
    /// # Errors
    /// If the device reports an I/O error, or the filesystem is full.
    #[inline]
    pub fn write(&self, offset: u64, from: &[u8]) -> io::Result<()> {
        let mut done = 0;
        while done < from.len() {
            match rustix::io::pwrite(&self.fd, &from[done..], offset + done as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => done += count,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Writes all of `from`, durably, and makes nothing else durable that need not be.
    ///
    /// # Errors
    /// The system's; also that writes before this one may be lost.
    pub fn write_durably(&self, offset: u64, from: &[u8]) -> io::Result<()> {
        let own = self.fd.as_fd();
        let mut done = 0;
        while done < from.len() {
            let part = [IoSlice::new(&from[done..])];
            let at = offset + done as u64;
            let write =
                |fd: BorrowedFd<'_>| rustix::io::pwritev2(fd, &part, at, ReadWriteFlags::DSYNC);
            match self.descriptions.with(own, write) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => done += count,
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                    self.write(at, &from[done..])?;
                    return self.sync();
                }
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Writes the first `bytes` bytes of a conduit. What cannot be spliced is copied.
    ///
    /// # Errors
    /// The system's. What is there afterwards, and in the conduit, is undefined.
    pub fn write_from(&self, conduit: &mut Conduit, offset: u64, bytes: usize) -> io::Result<()> {
        let held = conduit.held_bytes();
        match conduit.drain(self.fd.as_fd(), offset, bytes) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                self.cannot_drain.store(true, Ordering::Relaxed);
                let done = held - conduit.held_bytes();
                let rest = conduit.take(bytes - done)?;
                self.write(offset + done as u64, &rest)
            }
            answer => answer,
        }
    }

    /// Whether [`Image::write_from`] need not copy, as far as is known.
    #[inline]
    pub fn takes_from_conduits(&self) -> bool {
        !self.cannot_drain.load(Ordering::Relaxed)
    }

    /// Everything that was written, by whatever way, is on stable storage.
    ///
    /// # Errors
    /// The system's; then what was written may be lost.
    pub fn sync(&self) -> io::Result<()> {
        if !self.is_writable {
            return Ok(());
        }
        Ok(self.descriptions.with(self.fd.as_fd(), syncs::data)?)
    }

    /// Like [`Image::sync`], but including all metadata, such as its labels.
    ///
    /// # Errors
    /// As for [`Image::sync`].
    pub fn sync_whole(&self) -> io::Result<()> {
        Ok(self.descriptions.with(self.fd.as_fd(), syncs::whole)?)
    }

    /// Gives space back, where that can be done; the bytes are then zeros, or what they were.
    ///
    /// # Errors
    /// The system's, but not that it cannot be done.
    pub fn discard(&self, offset: u64, length: u64) -> io::Result<()> {
        let answer = match self.backing {
            Backing::Device { block_bytes } => match split_at_blocks(offset, length, block_bytes) {
                [_, (_, 0), _] => Ok(()),
                [_, (from, bytes), _] => self.discard_blocks(from, bytes),
            },
            _ => self.punch(offset, length),
        };
        match answer {
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOTTY) => Ok(()),
            answer => Ok(answer?),
        }
    }

    /// Makes bytes zeros. They may give their space back if `may_punch`.
    ///
    /// # Errors
    /// The system's; `Unsupported` when it is to be done only if it is fast, and is not.
    pub fn zero(
        &self,
        offset: u64,
        length: u64,
        may_punch: bool,
        only_if_fast: bool,
    ) -> io::Result<()> {
        let Backing::Device { block_bytes } = self.backing else {
            return self.zero_range(offset, length, may_punch, only_if_fast);
        };
        // The kernel refuses to zero part of a device's block; writing one goes through the page cache.
        let [head, blocks, tail] = split_at_blocks(offset, length, block_bytes);
        // First, because it alone can be refused as not fast.
        self.zero_range(blocks.0, blocks.1, may_punch, only_if_fast)?;
        self.write_zeros(head.0, head.1)?;
        self.write_zeros(tail.0, tail.1)
    }

    fn zero_range(
        &self,
        offset: u64,
        length: u64,
        may_punch: bool,
        only_if_fast: bool,
    ) -> io::Result<()> {
        if length == 0 {
            return Ok(());
        }
        let is_device = self.is_device();
        let mut answer = Err(Errno::OPNOTSUPP);
        if may_punch {
            answer = self.punch(offset, length);
        }
        // On a device this writes zeros where the device has no quicker way.
        if not_possible(answer) && !(is_device && only_if_fast) {
            let flags = FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE;
            answer = self.allocate(flags, offset, length);
        }
        // Where that is not known (tmpfs), room that was given back can be taken again.
        if not_possible(answer) && !is_device {
            answer = self
                .punch(offset, length)
                .and_then(|()| self.allocate(FallocateFlags::KEEP_SIZE, offset, length));
        }
        match answer {
            answer if !not_possible(answer) => Ok(answer?),
            _ if only_if_fast => Err(io::ErrorKind::Unsupported.into()),
            _ => self.write_zeros(offset, length),
        }
    }

    fn write_zeros(&self, offset: u64, length: u64) -> io::Result<()> {
        let mut done = 0;
        while done < length {
            let now = (length - done).min(ZEROS_BYTES as u64);
            self.write(offset + done, &ZEROS[..now as usize])?;
            done += now;
        }
        Ok(())
    }

    fn punch(&self, offset: u64, length: u64) -> Result<(), Errno> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        self.allocate(flags, offset, length)
    }

    fn allocate(&self, flags: FallocateFlags, offset: u64, length: u64) -> Result<(), Errno> {
        through_signals(|| rustix::fs::fallocate(&self.fd, flags, offset, length))
    }

    fn discard_blocks(&self, offset: u64, length: u64) -> Result<(), Errno> {
        const BLKDISCARD: rustix::ioctl::Opcode = rustix::ioctl::opcode::none(0x12, 119);
        // SAFETY: this number makes the kernel read two 64-bit numbers, and write nothing.
        unsafe {
            let range = rustix::ioctl::Setter::<BLKDISCARD, [u64; 2]>::new([offset, length]);
            rustix::ioctl::ioctl(&self.fd, range)
        }
    }

    /// From `offset` on, where the next bytes are that take space, and where they end; nothing when
    /// there are none before `end`. A device has them everywhere.
    ///
    /// # Errors
    /// The system's; `UnexpectedEof` when the file has become shorter than `end`.
    pub fn next_data(&self, offset: u64, end: u64) -> io::Result<Option<(u64, u64)>> {
        if self.is_device() {
            return Ok(Some((offset, end)));
        }
        let start = match rustix::fs::seek(&self.fd, SeekFrom::Data(offset)) {
            Ok(start) => start,
            Err(Errno::NXIO) => {
                // Behind the end of a file that became shorter there are no zeros.
                let stat = rustix::fs::fstat(&self.fd)?;
                return if (stat.st_size as u64) < end {
                    Err(io::ErrorKind::UnexpectedEof.into())
                } else {
                    Ok(None)
                };
            }
            // The filesystem does not tell.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(Some((offset, end))),
            Err(errno) => return Err(errno.into()),
        };
        if start >= end {
            return Ok(None);
        }
        match rustix::fs::seek(&self.fd, SeekFrom::Hole(start)) {
            Ok(hole) => Ok(Some((start, hole.clamp(start + 1, end)))),
            Err(Errno::NXIO) => Ok(Some((start, end))),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Drops the image's clean pages from the page cache, so that reading it again reads the disk.
    /// Dirty pages stay.
    ///
    /// # Errors
    /// If the filesystem does not support it.
    pub fn forget(&self) -> io::Result<()> {
        Ok(rustix::fs::fadvise(&self.fd, 0, None, Advice::DontNeed)?)
    }

    /// Time of the last write, as a text that changes with the next write.
    ///
    /// # Errors
    /// If the file cannot be examined.
    pub fn written_at(&self) -> io::Result<String> {
        let flags = rustix::fs::AtFlags::EMPTY_PATH;
        let stat = rustix::fs::statx(&self.fd, "", flags, StatxFlags::BASIC_STATS)?;
        Ok(format!("{}.{}", stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec))
    }

    /// Size in bytes, and times of the last write and the last change (mtime and ctime), in
    /// nanoseconds since 1970.
    ///
    /// # Errors
    /// If the file cannot be examined.
    pub fn times(&self) -> io::Result<(u64, i64, i64)> {
        let flags = rustix::fs::AtFlags::EMPTY_PATH;
        let stat = rustix::fs::statx(&self.fd, "", flags, StatxFlags::BASIC_STATS)?;
        let ns = |at: &rustix::fs::StatxTimestamp| {
            at.tv_sec.saturating_mul(1_000_000_000).saturating_add(at.tv_nsec.into())
        };
        Ok((stat.stx_size, ns(&stat.stx_mtime), ns(&stat.stx_ctime)))
    }

    /// Whether another machine, or another program, says when the file was written.
    pub fn is_remote(&self) -> bool {
        // NFS, CIFS, SMB2, FUSE, 9p, Ceph, AFS.
        const REMOTE: [u64; 7] =
            [0x6969, 0xff53_4d42, 0xfe53_4d42, 0x6573_5546, 0x0102_1997, 0x00c3_6400, 0x5346_414f];
        is_on(self.fd.as_fd(), &REMOTE)
    }

    /// Has the kernel read bytes into memory, without waiting for them.
    ///
    /// # Errors
    /// If the filesystem does not support it.
    pub fn prefetch(&self, offset: u64, length: u64) -> io::Result<()> {
        let Some(length) = std::num::NonZeroU64::new(length) else {
            return Ok(());
        };
        let advice = Advice::WillNeed;
        Ok(rustix::fs::fadvise(&self.fd, offset, Some(length), advice)?)
    }

    /// Has the kernel begin to write bytes back, without waiting for the end. Nothing is durable by that.
    pub fn start_write_back(&self, offset: u64, length: u64) {
        syncs::start(self.fd.as_fd(), offset, length);
    }

    /// A text that was left with the file under a name.
    pub fn label(&self, name: &str) -> Option<String> {
        let mut text = [0; 256];
        let length = rustix::fs::fgetxattr(&self.fd, name, &mut text[..]).ok()?;
        String::from_utf8(text.get(..length)?.to_vec()).ok()
    }

    /// Leaves a short text with the file under a name, where the filesystem can keep one.
    ///
    /// # Errors
    /// If the filesystem has no extended attributes, or no room for this one.
    pub fn set_label(&self, name: &str, text: &str) -> io::Result<()> {
        let flags = XattrFlags::empty();
        Ok(rustix::fs::fsetxattr(&self.fd, name, text.as_bytes(), flags)?)
    }

    /// Its device number and inode number, which all hard links share.
    ///
    /// # Errors
    /// If the file cannot be examined.
    pub fn inode(&self) -> io::Result<(u64, u64)> {
        let stat = rustix::fs::fstat(&self.fd)?;
        // The fields' types differ between processors.
        #[allow(clippy::unnecessary_cast)]
        Ok((stat.st_dev as u64, stat.st_ino as u64))
    }

    /// What tells this file from its copies and from what had its name before: inode, and moment of
    /// birth where the filesystem keeps that. `with_device` also the number of the filesystem's
    /// device, which another start of the machine may change.
    ///
    /// # Errors
    /// If the file cannot be examined.
    pub fn mark(&self, with_device: bool) -> io::Result<String> {
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        let stat = rustix::fs::statx(&self.fd, "", rustix::fs::AtFlags::EMPTY_PATH, wanted)?;
        let device = if with_device {
            format!("{}:{}:", stat.stx_dev_major, stat.stx_dev_minor)
        } else {
            String::new()
        };
        let birth = stat.stx_btime;
        Ok(format!("{device}{}:{}.{}", stat.stx_ino, birth.tv_sec, birth.tv_nsec))
    }
}

impl AsFd for Image {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn open_flags(writable: bool) -> OFlags {
    let mode = if writable { OFlags::RDWR } else { OFlags::RDONLY };
    // NONBLOCK: a pipe of that name would be waited for.
    mode | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY
}

fn open_beneath(directory: &OwnedFd, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut left = 16;
    loop {
        match rustix::fs::openat2(directory, name, flags, Mode::empty(), resolve) {
            // A directory was renamed meanwhile.
            Err(Errno::AGAIN) if left > 0 => left -= 1,
            answer => return answer,
        }
    }
}

fn why_not(errno: Errno) -> ImageError {
    match errno {
        Errno::NOENT => ImageError::Missing,
        Errno::ISDIR => ImageError::NotAFile,
        errno => ImageError::Other(errno.into()),
    }
}

/// A range of bytes as three, each with its offset and length: what lies before the first whole block, the
/// whole blocks, and what lies behind them. A part without bytes has length 0.
fn split_at_blocks(offset: u64, length: u64, block_bytes: u64) -> [(u64, u64); 3] {
    let end = offset + length;
    let from = offset.next_multiple_of(block_bytes).min(end);
    let to = (end / block_bytes * block_bytes).max(from);
    [(offset, from - offset), (from, to - from), (to, end - to)]
}

/// Repeats a call that a signal interrupted.
fn through_signals(mut call: impl FnMut() -> Result<(), Errno>) -> Result<(), Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            answer => return answer,
        }
    }
}

fn not_possible(answer: Result<(), Errno>) -> bool {
    matches!(answer, Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOTTY))
}

/// Whether the file is on a filesystem that lives in memory alone.
fn is_in_memory(fd: BorrowedFd<'_>) -> bool {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58f6;
    is_on(fd, &[TMPFS, RAMFS])
}

fn is_on(fd: BorrowedFd<'_>, filesystems: &[u64]) -> bool {
    let found = rustix::fs::fstatfs(fd);
    // The field's type differs between processors.
    #[allow(clippy::unnecessary_cast)]
    found.is_ok_and(|found| filesystems.contains(&(found.f_type as u64 & 0xffff_ffff)))
}

#[cfg(test)]
mod tests;
