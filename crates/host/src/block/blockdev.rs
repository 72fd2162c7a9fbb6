//! Block devices: what a path really names, size and block, careful opening, reading.
//!
//! Whether a device *may* be written is not decided here. Every opening goes through a [`Pinned`]
//! node: the path is resolved once, symbolic links included, without opening what it names, and
//! the device is then opened through that very node. So nothing can be exchanged between looking
//! and opening, and nothing is ever created: a node that does not exist cannot be pinned, and no
//! call here passes `O_CREAT`.

use std::fmt;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl;

use crate::files::full_read::full_read;

/// Major and minor number of a device. Shown as `8:1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceNumber {
    /// Major number: the driver.
    pub major: u32,
    /// Minor number: the device of that driver.
    pub minor: u32,
}

impl DeviceNumber {
    pub(crate) fn of(raw: u64) -> Self {
        DeviceNumber { major: rustix::fs::major(raw), minor: rustix::fs::minor(raw) }
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// What a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A block device.
    Block(DeviceNumber),
    /// A character device.
    Character(DeviceNumber),
    /// A directory.
    Directory,
    /// A regular file.
    Regular,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// Something newer than this program.
    Unknown,
}

/// Why a path could not be pinned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PinError {
    /// Nothing of that name exists.
    #[error("no such file or device")]
    Missing,
    /// It is a symbolic link to something that does not exist.
    #[error("a symbolic link to {target}, which does not exist")]
    Dangling {
        /// What the link says.
        target: PathBuf,
    },
    /// This user may not go there.
    #[error("permission denied")]
    Denied,
    /// Anything else, in the system's words.
    #[error("{0}")]
    Other(String),
}

/// A node of the filesystem, held so that it cannot be exchanged, but not opened: holding it
/// neither wakes the device nor keeps anybody else from it.
#[derive(Debug)]
pub struct Pinned {
    node: OwnedFd,
    path: PathBuf,
    kind: NodeKind,
    on_device: DeviceNumber,
    inode: u64,
}

impl Pinned {
    /// Resolves a path, symbolic links included, and holds what it names.
    ///
    /// # Errors
    /// [`PinError`] when nothing is there or it may not be reached.
    pub fn new(path: &Path) -> Result<Pinned, PinError> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let node = rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| match errno {
            Errno::NOENT => match std::fs::read_link(path) {
                Ok(target) => PinError::Dangling { target },
                Err(_) => PinError::Missing,
            },
            Errno::ACCESS | Errno::PERM => PinError::Denied,
            other => PinError::Other(words(other)),
        })?;
        let stat = rustix::fs::fstat(&node).map_err(|errno| PinError::Other(words(errno)))?;
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::BlockDevice => NodeKind::Block(DeviceNumber::of(stat.st_rdev)),
            FileType::CharacterDevice => NodeKind::Character(DeviceNumber::of(stat.st_rdev)),
            FileType::Directory => NodeKind::Directory,
            FileType::RegularFile => NodeKind::Regular,
            FileType::Fifo => NodeKind::Fifo,
            FileType::Socket => NodeKind::Socket,
            _ => NodeKind::Unknown,
        };
        let path = std::fs::read_link(self_fd(&node)).unwrap_or_else(|_| path.to_path_buf());
        Ok(Pinned {
            path,
            kind,
            on_device: DeviceNumber::of(stat.st_dev),
            inode: stat.st_ino,
            node,
        })
    }

    /// The path with all symbolic links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it is.
    pub fn kind(&self) -> NodeKind {
        self.kind
    }

    /// The number of the device that the node itself lies on; major 0 for filesystems without one
    /// (btrfs, tmpfs, network).
    pub fn on_device(&self) -> DeviceNumber {
        self.on_device
    }

    /// The inode's number on that device.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// The device's number, when it is a block device.
    pub fn block_number(&self) -> Option<DeviceNumber> {
        match self.kind {
            NodeKind::Block(number) => Some(number),
            _ => None,
        }
    }

    fn reopen(&self, flags: OFlags) -> Result<OpenDevice, OpenError> {
        let NodeKind::Block(number) = self.kind else {
            return Err(OpenError::NotBlock);
        };
        // Through /proc the very node is opened that was pinned, whatever its name leads to now.
        let fd = rustix::fs::open(self_fd(&self.node), flags | OFlags::CLOEXEC, Mode::empty())?;
        let stat = rustix::fs::fstat(&fd)?;
        let opened = DeviceNumber::of(stat.st_rdev);
        if FileType::from_raw_mode(stat.st_mode) != FileType::BlockDevice || opened != number {
            return Err(OpenError::Exchanged { expected: number, found: opened });
        }
        let geometry = Geometry::of(fd.as_fd())?;
        Ok(OpenDevice { fd, path: self.path.clone(), number, geometry })
    }
}

fn self_fd(fd: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

/// Why a device could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// It is no block device.
    #[error("not a block device")]
    NotBlock,
    /// It is claimed already: by a mounted filesystem, active swap, an array or a program.
    #[error("busy: another program has claimed it")]
    Busy,
    /// This user may not open it.
    #[error("permission denied; root may open it")]
    Denied,
    /// It refuses to be written.
    #[error("write-protected")]
    ReadOnly,
    /// There is a node, but no medium or no device behind it (any more).
    #[error("no medium or no device behind it")]
    NoDevice,
    /// The number behind the node changed while it was opened.
    #[error("it changed from device {expected} to {found} while it was opened")]
    Exchanged {
        /// The number when it was pinned.
        expected: DeviceNumber,
        /// The number after opening.
        found: DeviceNumber,
    },
    /// Anything else, in the system's words.
    #[error("{0}")]
    Other(String),
}

impl From<Errno> for OpenError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::BUSY => OpenError::Busy,
            Errno::ACCESS | Errno::PERM => OpenError::Denied,
            Errno::ROFS => OpenError::ReadOnly,
            Errno::NXIO | Errno::NODEV | Errno::NOMEDIUM | Errno::NOENT => OpenError::NoDevice,
            other => OpenError::Other(words(other)),
        }
    }
}

fn words(errno: Errno) -> String {
    std::io::Error::from(errno).to_string()
}

/// Size and blocks of an open device, as its driver says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Size (`BLKGETSIZE64`); 0 when there is no medium.
    pub size_bytes: u64,
    /// Smallest addressable unit (`BLKSSZGET`).
    pub logical_block_bytes: u32,
    /// Whether writes are refused (`BLKROGET`).
    pub read_only: bool,
    /// The kernel's running number of the medium (`BLKGETDISKSEQ`): it never repeats, so another
    /// medium behind the same name shows. None before Linux 5.15.
    pub disk_sequence: Option<u64>,
}

impl Geometry {
    pub(crate) fn of(fd: BorrowedFd<'_>) -> Result<Geometry, Errno> {
        // The kernel declares the size's number with `size_t` but always writes 64 bits.
        const BLKGETSIZE64: ioctl::Opcode = ioctl::opcode::read::<usize>(0x12, 114);
        const BLKROGET: ioctl::Opcode = ioctl::opcode::none(0x12, 94);
        const BLKGETDISKSEQ: ioctl::Opcode = ioctl::opcode::read::<u64>(0x12, 128);
        // SAFETY: each of these numbers makes the kernel write exactly the type named here.
        let (size_bytes, read_only, disk_sequence) = unsafe {
            (
                ioctl::ioctl(fd, ioctl::Getter::<BLKGETSIZE64, u64>::new())?,
                ioctl::ioctl(fd, ioctl::Getter::<BLKROGET, libc::c_int>::new())?,
                ioctl::ioctl(fd, ioctl::Getter::<BLKGETDISKSEQ, u64>::new()).ok(),
            )
        };
        Ok(Geometry {
            size_bytes,
            logical_block_bytes: rustix::fs::ioctl_blksszget(fd)?,
            read_only: read_only != 0,
            disk_sequence,
        })
    }
}

/// What [`BlockReader`] and [`ClaimedDevice`] have in common: an open block device with its name.
#[derive(Debug)]
pub struct OpenDevice {
    fd: OwnedFd,
    path: PathBuf,
    number: DeviceNumber,
    geometry: Geometry,
}

impl OpenDevice {
    /// The canonical path, for messages. To read or write use the descriptor.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Major and minor number.
    pub fn number(&self) -> DeviceNumber {
        self.number
    }

    /// Size and blocks at the moment of opening.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Size at the moment of opening.
    pub fn size_bytes(&self) -> u64 {
        self.geometry.size_bytes
    }

    /// Smallest addressable unit.
    pub fn logical_block_bytes(&self) -> u32 {
        self.geometry.logical_block_bytes
    }

    /// Size and blocks now: another size or sequence number than [`Self::geometry`] means that the
    /// medium was removed or exchanged.
    ///
    /// # Errors
    /// [`OpenError::NoDevice`] when the device is gone.
    pub fn geometry_now(&self) -> Result<Geometry, OpenError> {
        Ok(Geometry::of(self.fd.as_fd())?)
    }

    /// Switches `O_DIRECT` on or off. With it, reads and writes bypass the page cache and must be
    /// aligned to the logical block, in the file and in memory.
    ///
    /// # Errors
    /// [`OpenError::Other`] when the device does not support it.
    pub fn set_direct(&self, on: bool) -> Result<(), OpenError> {
        let mut flags = rustix::fs::fcntl_getfl(&self.fd)?;
        flags.set(OFlags::DIRECT, on);
        Ok(rustix::fs::fcntl_setfl(&self.fd, flags)?)
    }

    /// Reads `length` bytes at `offset`; bytes beyond the end of the device are left out, so the
    /// result may be shorter. Works with and without `O_DIRECT`.
    ///
    /// # Errors
    /// A sentence with the offset when the device cannot be read there.
    pub fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, String> {
        let end = offset.saturating_add(length as u64).min(self.size_bytes());
        if offset >= end {
            return Ok(Vec::new());
        }
        let block = u64::from(self.logical_block_bytes()).max(512);
        let from = offset / block * block;
        let to = end.div_ceil(block) * block;
        let mut bytes = self.read_aligned(from, (to - from) as usize)?;
        let wanted = (end - offset) as usize;
        bytes.drain(..(offset - from) as usize);
        if bytes.len() < wanted {
            return Err(format!("the device ends before its size at byte {end}"));
        }
        bytes.truncate(wanted);
        Ok(bytes)
    }

    /// Waits until everything that was written to the device, by anybody, is on stable storage.
    ///
    /// # Errors
    /// When a write or the flush failed.
    pub fn flush(&self) -> Result<(), OpenError> {
        Ok(rustix::fs::fsync(&self.fd)?)
    }

    fn read_aligned(&self, offset: u64, length: usize) -> Result<Vec<u8>, String> {
        /// More than any device asks for.
        const MEMORY_ALIGNMENT: usize = 64 * 1024;
        let mut room = vec![0_u8; length + MEMORY_ALIGNMENT];
        let start = room.as_ptr().align_offset(MEMORY_ALIGNMENT);
        let part = &mut room[start..start + length];
        let done = full_read(&self.fd, part, offset).map_err(|failed| {
            let at = offset + failed.done as u64;
            format!("cannot read at byte {at}: {}", words(failed.errno))
        })?;
        room.truncate(start + done);
        room.drain(..start);
        Ok(room)
    }
}

impl AsFd for OpenDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A block device that is open for reading only.
#[derive(Debug)]
pub struct BlockReader(OpenDevice);

impl BlockReader {
    /// Opens for reading, even if the device is in use.
    ///
    /// # Errors
    /// If the device cannot be opened.
    pub fn open(node: &Pinned) -> Result<BlockReader, OpenError> {
        node.reopen(OFlags::RDONLY).map(BlockReader)
    }

    /// Opens for reading with a claim (`O_EXCL`): it fails with [`OpenError::Busy`] when a mounted
    /// filesystem, active swap, an array or another claim is on the device, on a partition of it
    /// or on the disk that it is a part of. Nothing is written, not even on closing.
    ///
    /// # Errors
    /// If the device is claimed ([`OpenError::Busy`]) or cannot be opened.
    pub fn open_exclusive(node: &Pinned) -> Result<BlockReader, OpenError> {
        node.reopen(OFlags::RDONLY | OFlags::EXCL).map(BlockReader)
    }

    /// The descriptor alone.
    pub fn into_fd(self) -> OwnedFd {
        self.0.fd
    }
}

impl Deref for BlockReader {
    type Target = OpenDevice;

    fn deref(&self) -> &OpenDevice {
        &self.0
    }
}

/// A block device that is open for reading and writing and claimed (`O_EXCL`) for as long as this
/// value or its descriptor lives: until then it cannot be mounted, used for swap or put into an
/// array.
///
/// A value of this type is the permission to overwrite the device. Only the guard makes one.
#[derive(Debug)]
pub struct ClaimedDevice(OpenDevice);

impl ClaimedDevice {
    /// Opens for writing with a claim. **Only for the guard** (`rubus_change::guard`), which has
    /// looked at what is on the device and who uses it; every other caller goes through the guard.
    ///
    /// # Errors
    /// [`OpenError`]; [`OpenError::Busy`] as for [`BlockReader::open_exclusive`].
    pub fn claim_for_the_guard(node: &Pinned) -> Result<ClaimedDevice, OpenError> {
        node.reopen(OFlags::RDWR | OFlags::EXCL).map(ClaimedDevice)
    }

    /// The descriptor alone; it keeps the claim.
    pub fn into_fd(self) -> OwnedFd {
        self.0.fd
    }
}

impl Deref for ClaimedDevice {
    type Target = OpenDevice;

    fn deref(&self) -> &OpenDevice {
        &self.0
    }
}

/// What a loop device reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopBacking {
    /// Device that the backing file lies on; major 0 for filesystems without one.
    pub on_device: DeviceNumber,
    /// The backing file's inode there.
    pub inode: u64,
    /// The backing device, when the loop device stands on a block device instead of a file.
    pub block: Option<DeviceNumber>,
}

/// The backing of a loop device, from the loop driver itself: right even when the backing file was
/// deleted or is visible in another mount namespace only.
///
/// # Errors
/// [`OpenError::NoDevice`] when the loop device has no backing.
pub fn loop_backing(node: &Pinned) -> Result<LoopBacking, OpenError> {
    /// `struct loop_info64` of include/uapi/linux/loop.h.
    #[repr(C)]
    struct LoopInfo64 {
        device: u64,
        inode: u64,
        rdevice: u64,
        rest: [u8; 208],
    }
    const LOOP_GET_STATUS64: ioctl::Opcode = 0x4C05;
    let device = node.reopen(OFlags::RDONLY | OFlags::NONBLOCK)?;
    // SAFETY: this number makes the loop driver fill a `struct loop_info64`, which is 232 bytes.
    let info = unsafe {
        ioctl::ioctl(device.as_fd(), ioctl::Getter::<LOOP_GET_STATUS64, LoopInfo64>::new())?
    };
    Ok(LoopBacking {
        on_device: kernel_number(info.device),
        inode: info.inode,
        block: (info.rdevice != 0).then(|| kernel_number(info.rdevice)),
    })
}

/// The kernel's "huge" encoding, which the loop driver uses, is the one of `stat`.
fn kernel_number(raw: u64) -> DeviceNumber {
    DeviceNumber::of(raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_directories_and_character_devices_are_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, b"x").unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("file", &link).unwrap();
        assert_eq!(Pinned::new(&file).unwrap().kind(), NodeKind::Regular);
        let through = Pinned::new(&link).unwrap();
        assert_eq!(through.kind(), NodeKind::Regular);
        assert_eq!(through.path(), std::fs::canonicalize(&file).unwrap());
        assert_eq!(Pinned::new(directory.path()).unwrap().kind(), NodeKind::Directory);
        assert_eq!(
            Pinned::new(Path::new("/dev/null")).unwrap().kind(),
            NodeKind::Character(DeviceNumber { major: 1, minor: 3 })
        );
    }

    #[test]
    fn what_is_missing_is_not_created_and_a_dangling_link_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("missing");
        assert_eq!(Pinned::new(&missing).unwrap_err(), PinError::Missing);
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        assert_eq!(
            Pinned::new(&link).unwrap_err(),
            PinError::Dangling { target: PathBuf::from("nowhere") }
        );
        let names: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
        assert_eq!(names.len(), 1, "only the link is there");
    }

    #[test]
    fn only_block_devices_are_opened() {
        let node = Pinned::new(Path::new("/dev/zero")).unwrap();
        assert_eq!(BlockReader::open(&node).unwrap_err(), OpenError::NotBlock);
        assert_eq!(ClaimedDevice::claim_for_the_guard(&node).unwrap_err(), OpenError::NotBlock);
    }

    #[test]
    fn a_file_exchanged_for_another_is_still_the_pinned_one() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, b"x").unwrap();
        let pinned = Pinned::new(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        assert_eq!(pinned.kind(), NodeKind::Regular);
        assert_ne!(pinned.inode(), Pinned::new(&file).unwrap().inode());
    }
}
