//! The disk below a filesystem, for reading the contents of many small files in one go.
//!
//! Only where that is known to give what the files hold: on ext2, ext3 and ext4 without data journaling. A caller must
//! hold the file open, and check afterwards whether it or its extents changed.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::data::File;
use super::directory::Directory;
use super::failure::Failure;
use crate::files::full_read::full_read;

/// Offsets, lengths and memory must be multiples of this.
pub const DISK_ALIGNMENT: usize = 4096;

/// A part of a file, and where it lies on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Offset on the disk, in bytes.
    pub place: u64,
    /// Length in bytes; at the end of a file it may go beyond it.
    pub bytes: u64,
    /// Whether it was reserved and never written: its contents are zeros, whatever lies there.
    pub is_unwritten: bool,
}

/// The disk that a filesystem lies on, open for reading past the page cache.
#[derive(Debug)]
pub struct Disk {
    fd: OwnedFd,
}

impl Disk {
    /// The disk below a directory; `None` if file contents cannot be read from it, or this user may not read it.
    pub fn below(directory: &Directory) -> Option<Self> {
        const EXT: u64 = 0xef53;
        let device = directory.look().ok()?.device;
        if directory.filesystem().ok()?.magic != EXT || device.0 == 0 || journals_data(device) {
            return None;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let fd = rustix::fs::open(node(device)?, flags, Mode::empty()).ok()?;
        let raw = rustix::fs::fstat(&fd).ok()?;
        let is_it = FileType::from_raw_mode(raw.st_mode) == FileType::BlockDevice
            && raw.st_rdev == rustix::fs::makedev(device.0, device.1);
        is_it.then_some(Disk { fd })
    }

    /// Fills the buffer from an offset; both and the memory are multiples of [`DISK_ALIGNMENT`].
    ///
    /// # Errors
    /// When the disk fails or ends before.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Failure> {
        let failure = Failure::of("read the disk");
        match full_read(&self.fd, buffer, offset) {
            Ok(done) if done < buffer.len() => Err(failure(Errno::INVAL)),
            Ok(_) => Ok(()),
            Err(failed) => Err(failure(failed.errno)),
        }
    }
}

/// The node of a device, by the name that the kernel gave it.
fn node(device: (u32, u32)) -> Option<PathBuf> {
    let path = format!("/sys/dev/block/{}:{}/uevent", device.0, device.1);
    let text = std::fs::read_to_string(path).ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("DEVNAME="))?;
    Some(Path::new("/dev").join(name))
}

/// Whether contents may be in a journal and not yet at their place. When that cannot be read, they may.
fn journals_data(device: (u32, u32)) -> bool {
    let Ok(mounts) = std::fs::read_to_string("/proc/self/mountinfo") else {
        return true;
    };
    let number = format!("{}:{}", device.0, device.1);
    let own = mounts.lines().filter(|line| line.split(' ').nth(2) == Some(&number));
    let mut is_known = false;
    for line in own {
        is_known = true;
        if line.contains("data=journal") {
            return true;
        }
    }
    !is_known
}

/// Extents that are asked for; a file in more pieces is read through the filesystem.
const MAX_EXTENTS: usize = 8;

impl File {
    /// All parts of the file that are on the disk, after what was still to be written was written. Nothing when the
    /// filesystem does not tell, when there are many, or when one is not simply its contents (`FIEMAP_EXTENT_*`).
    pub fn extents(&self) -> Option<Vec<Extent>> {
        const SYNC: u32 = 1;
        let mut room = [RawExtent::default(); MAX_EXTENTS];
        let raw = self.fiemap(SYNC, &mut room)?;
        const LAST: u32 = 0x1;
        const UNWRITTEN: u32 = 0x800;
        const MERGED: u32 = 0x1000;
        let is_all = raw.last().is_none_or(|last| last.flags & LAST != 0);
        let is_plain = |extent: &RawExtent| {
            let others = extent.flags & !(LAST | UNWRITTEN | MERGED);
            let aligned = extent.place % DISK_ALIGNMENT as u64 == 0
                && extent.length % DISK_ALIGNMENT as u64 == 0;
            others == 0 && aligned
        };
        if !is_all || !raw.iter().all(is_plain) {
            return None;
        }
        let extents = raw.iter().map(|raw| Extent {
            offset: raw.offset,
            place: raw.place,
            bytes: raw.length,
            is_unwritten: raw.flags & UNWRITTEN != 0,
        });
        Some(extents.collect())
    }

    /// Where on its disk the file begins, in bytes, if the filesystem tells.
    pub fn first_place(&self) -> Option<u64> {
        const UNKNOWN_PLACE: u32 = 0x2 | 0x4;
        let mut room = [RawExtent::default(); MAX_EXTENTS];
        let first = self.fiemap(0, &mut room)?.first()?;
        (first.flags & UNKNOWN_PLACE == 0).then_some(first.place)
    }

    /// `FS_IOC_FIEMAP` for the whole file.
    fn fiemap<'a>(
        &self,
        flags: u32,
        room: &'a mut [RawExtent; MAX_EXTENTS],
    ) -> Option<&'a [RawExtent]> {
        const FIEMAP: rustix::ioctl::Opcode = rustix::ioctl::opcode::read_write::<Head>(b'f', 11);
        let mut asked = Asked {
            head: Head {
                length: u64::MAX,
                flags,
                extent_count: MAX_EXTENTS as u32,
                ..Head::default()
            },
            extents: *room,
        };
        // SAFETY: the kernel reads the head, and writes the head and at most `extent_count` extents, for which
        // there is room.
        let answered = unsafe {
            let call = rustix::ioctl::Updater::<FIEMAP, Asked>::new(&mut asked);
            rustix::ioctl::ioctl(self.fd.as_fd(), call)
        };
        answered.ok()?;
        *room = asked.extents;
        room.get(..asked.head.mapped_extents as usize)
    }
}

/// `struct fiemap` (`linux/fiemap.h`) without its extents; its size is part of the call's number.
#[repr(C)]
#[derive(Default)]
struct Head {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
}

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawExtent {
    offset: u64,
    place: u64,
    length: u64,
    reserved_64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

#[repr(C)]
struct Asked {
    head: Head,
    extents: [RawExtent; MAX_EXTENTS],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_the_kernels_structures() {
        assert_eq!(size_of::<Head>(), 32);
        assert_eq!(size_of::<RawExtent>(), 56);
        assert_eq!(size_of::<Asked>(), 32 + MAX_EXTENTS * 56);
    }

    #[test]
    fn a_filesystem_that_is_not_known_has_no_disk_to_read() {
        let proc = Directory::open_root(Path::new("/proc")).unwrap();
        assert!(Disk::below(&proc).is_none());
    }
}
