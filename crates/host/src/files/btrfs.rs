//! Looking into the trees of a mounted btrfs filesystem.
//!
//! Interface: `BTRFS_IOC_TREE_SEARCH_V2` of `linux/btrfs.h`, which needs root, `BTRFS_IOC_INO_LOOKUP` and
//! `BTRFS_IOC_FS_INFO`. They only read.

use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl;

/// Room for the items of one search. The kernel refuses an item that does not fit, and the largest node of a
/// tree is 64 KiB.
const ROOM_BYTES: usize = 256 << 10;
/// Room for what belongs to one inode, which rarely is much: the kernel touches all of the room at each search.
const SMALL_ROOM_BYTES: usize = 16 << 10;
const BTRFS_MAGIC: u64 = 0x9123_683e;

/// Why a filesystem cannot be looked into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchError {
    path: String,
    reason: String,
}

impl std::error::Error for SearchError {}

impl fmt::Display for SearchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot look into {}: {}", self.path, self.reason)
    }
}

/// `struct btrfs_ioctl_search_key`, 104 bytes on every machine.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct SearchKey {
    tree: u64,
    min_object: u64,
    max_object: u64,
    min_offset: u64,
    max_offset: u64,
    min_transaction: u64,
    max_transaction: u64,
    min_kind: u32,
    max_kind: u32,
    items: u32,
    unused: u32,
    reserved: [u64; 4],
}

/// `struct btrfs_ioctl_search_args_v2` with its buffer.
#[repr(C)]
struct Search {
    key: SearchKey,
    buffer_bytes: u64,
    buffer: [u8; ROOM_BYTES],
}

/// `struct btrfs_ioctl_ino_lookup_args`.
#[repr(C)]
struct InodeLookup {
    tree: u64,
    object: u64,
    name: [u8; 4080],
}

/// `struct btrfs_ioctl_fs_info_args`, of which only the filesystem's UUID is wanted.
#[repr(C)]
struct FilesystemInfo {
    devices: [u64; 2],
    uuid: [u8; 16],
    rest: [u8; 992],
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The tree of the subvolume that it is in.
    pub tree: u64,
    /// Its inode there; [`Spot::TOP`] at the top of the subvolume.
    pub inode: u64,
    /// A directory, or a file.
    pub is_directory: bool,
    /// UUID of the filesystem.
    pub filesystem: [u8; 16],
}

impl Spot {
    /// The inode at the top of every subvolume (`BTRFS_FIRST_FREE_OBJECTID`).
    pub const TOP: u64 = 256;
}

/// The trees of a mounted filesystem.
pub struct Trees {
    opened: OwnedFd,
    path: String,
    search: Box<Search>,
}

impl Trees {
    /// The tree of all trees, which also says which subvolume is below which.
    pub const ROOTS: u64 = 1;

    /// The trees of the filesystem that a path is on, which may be a directory or a file. What is still on its way to
    /// the disk is written first, since before that it has no place in a tree.
    ///
    /// # Errors
    /// [`SearchError`] where it is not on btrfs.
    pub fn of(at: &Path) -> Result<Trees, SearchError> {
        let path = at.display().to_string();
        // Whatever it is, opening it must neither wait nor do anything.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = rustix::fs::open(at, flags, Mode::empty())
            .map_err(|errno| SearchError::of(&path, errno))?;
        let kind = rustix::fs::fstatfs(&opened).map_err(|errno| SearchError::of(&path, errno))?;
        // The width and sign of the field differ between processors; the number has 32 bits.
        if u64::from(kind.f_type as u32) != BTRFS_MAGIC {
            return Err(SearchError { path, reason: "it is not on btrfs".into() });
        }
        // Where it is mounted read-only there is nothing on its way.
        let _ = rustix::fs::syncfs(&opened);
        Ok(Trees {
            opened,
            path,
            search: Box::new(Search {
                key: SearchKey::default(),
                buffer_bytes: 0,
                buffer: [0; ROOM_BYTES],
            }),
        })
    }

    /// Where the path leads to.
    ///
    /// # Errors
    /// [`SearchError`] when the kernel does not say, or when it is neither a directory nor a regular file.
    pub fn spot(&self) -> Result<Spot, SearchError> {
        const INODE_LOOKUP: ioctl::Opcode = ioctl::opcode::read_write::<InodeLookup>(0x94, 18);
        const FILESYSTEM_INFO: ioctl::Opcode = ioctl::opcode::read::<FilesystemInfo>(0x94, 31);
        let failed = |errno| SearchError::of(&self.path, errno);
        let stat = rustix::fs::fstat(&self.opened).map_err(failed)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if !matches!(kind, FileType::Directory | FileType::RegularFile) {
            return Err(SearchError {
                path: self.path.clone(),
                reason: "it is neither a directory nor a regular file".into(),
            });
        }
        let mut lookup = InodeLookup { tree: 0, object: Spot::TOP, name: [0; 4080] };
        // SAFETY: the kernel reads and writes one structure of this layout.
        let looked = unsafe {
            let asked = ioctl::Updater::<INODE_LOOKUP, InodeLookup>::new(&mut lookup);
            ioctl::ioctl(self.opened.as_fd(), asked)
        };
        looked.map_err(failed)?;
        let mut info = FilesystemInfo { devices: [0; 2], uuid: [0; 16], rest: [0; 992] };
        // SAFETY: as above.
        let told = unsafe {
            let asked = ioctl::Updater::<FILESYSTEM_INFO, FilesystemInfo>::new(&mut info);
            ioctl::ioctl(self.opened.as_fd(), asked)
        };
        told.map_err(failed)?;
        Ok(Spot {
            tree: lookup.tree,
            inode: stat.st_ino,
            is_directory: kind == FileType::Directory,
            filesystem: info.uuid,
        })
    }

    /// The items of a tree from a place (object, kind, offset) to another, as many as fit into the buffer, as the
    /// kernel lays them out; and how many there are, 0 when there are no more.
    ///
    /// # Errors
    /// [`SearchError`] without root, or when there is no such tree.
    pub fn items(
        &mut self,
        tree: u64,
        from: (u64, u32, u64),
        to: (u64, u32, u64),
    ) -> Result<(&[u8], usize), SearchError> {
        let room = if from.0 == to.0 { SMALL_ROOM_BYTES } else { ROOM_BYTES };
        let count = match self.search(tree, from, to, room) {
            // An item is larger than the room.
            Err(Errno::OVERFLOW) => self.search(tree, from, to, ROOM_BYTES),
            searched => searched,
        };
        let count = count.map_err(|errno| SearchError::of(&self.path, errno))?;
        Ok((&self.search.buffer, count))
    }

    fn search(
        &mut self,
        tree: u64,
        from: (u64, u32, u64),
        to: (u64, u32, u64),
        room: usize,
    ) -> Result<usize, Errno> {
        // The number was made from the structure without its buffer: 104 bytes of key and 8 of length.
        const TREE_SEARCH_V2: ioctl::Opcode = ioctl::opcode::read_write::<[u64; 14]>(0x94, 17);
        let search = &mut *self.search;
        search.key = SearchKey {
            tree,
            min_object: from.0,
            max_object: to.0,
            min_kind: from.1,
            max_kind: to.1,
            min_offset: from.2,
            max_offset: to.2,
            max_transaction: u64::MAX,
            items: u32::MAX,
            ..SearchKey::default()
        };
        search.buffer_bytes = room.min(ROOM_BYTES) as u64;
        // SAFETY: the kernel reads the key and the length, and writes the key, the length and at most that
        // many bytes behind them, which is what `Search` has room for.
        unsafe {
            let asked = ioctl::Updater::<TREE_SEARCH_V2, Search>::new(search);
            ioctl::ioctl(self.opened.as_fd(), asked)
        }?;
        Ok(self.search.key.items as usize)
    }
}

impl SearchError {
    fn of(path: &str, errno: Errno) -> SearchError {
        let reason = match errno {
            Errno::PERM | Errno::ACCESS => "only root may; run it as root".into(),
            errno => std::io::Error::from(errno).to_string(),
        };
        SearchError { path: path.into(), reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structures_have_the_sizes_that_the_kernel_expects() {
        assert_eq!(size_of::<SearchKey>(), 104);
        assert_eq!(std::mem::offset_of!(Search, buffer), 112);
        assert_eq!(size_of::<InodeLookup>(), 4096);
        assert_eq!(size_of::<FilesystemInfo>(), 1024);
    }

    #[test]
    fn what_is_not_btrfs_is_refused_in_words() {
        let refused = |path: &str| match Trees::of(Path::new(path)) {
            Ok(_) => panic!("{path} is not btrfs"),
            Err(error) => error.to_string(),
        };
        assert!(refused("/proc").contains("not on btrfs"));
        assert!(refused("/no/such").contains("/no/such"));
    }
}
