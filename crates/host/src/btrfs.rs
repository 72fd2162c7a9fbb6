//! Looking into the trees of a mounted btrfs filesystem.
//!
//! Interface: `BTRFS_IOC_TREE_SEARCH_V2` of `linux/btrfs.h`; needs root. It only reads.

use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl;

/// Room for the items of one search. The kernel refuses an item that does not fit, and the largest node of a
/// tree is 64 KiB.
const ROOM_BYTES: usize = 256 << 10;
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

/// The tree of the subvolume that a directory is in.
pub struct Subvolume {
    directory: OwnedFd,
    path: String,
    search: Box<Search>,
}

impl Subvolume {
    /// The subvolume of a directory. What is still on its way to the disk is written first, since before that it has no
    /// place in the tree.
    ///
    /// # Errors
    /// [`SearchError`] where it is not on btrfs.
    pub fn of(directory: &Path) -> Result<Subvolume, SearchError> {
        let path = directory.display().to_string();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(directory, flags, Mode::empty())
            .map_err(|errno| SearchError::of(&path, errno))?;
        let kind = rustix::fs::fstatfs(&opened).map_err(|errno| SearchError::of(&path, errno))?;
        // The width and sign of the field differ between processors; the number has 32 bits.
        if u64::from(kind.f_type as u32) != BTRFS_MAGIC {
            return Err(SearchError {
                path,
                reason: "it is not on btrfs".into(),
            });
        }
        // Where it is mounted read-only there is nothing on its way.
        let _ = rustix::fs::syncfs(&opened);
        Ok(Subvolume {
            directory: opened,
            path,
            search: Box::new(Search {
                key: SearchKey::default(),
                buffer_bytes: 0,
                buffer: [0; ROOM_BYTES],
            }),
        })
    }

    /// The items of the tree from a place (object, kind, offset) on, as many as fit into the buffer, as the
    /// kernel lays them out; and how many there are, 0 at the end of the tree.
    ///
    /// # Errors
    /// [`SearchError`] without root.
    pub fn items_from(
        &mut self,
        (object, kind, offset): (u64, u32, u64),
    ) -> Result<(&[u8], usize), SearchError> {
        // The number was made from the structure without its buffer: 104 bytes of key and 8 of length.
        const TREE_SEARCH_V2: ioctl::Opcode = ioctl::opcode::read_write::<[u64; 14]>(0x94, 17);
        let search = &mut *self.search;
        search.key = SearchKey {
            min_object: object,
            max_object: u64::MAX,
            min_kind: kind,
            max_kind: u32::MAX,
            min_offset: offset,
            max_offset: u64::MAX,
            max_transaction: u64::MAX,
            items: u32::MAX,
            ..SearchKey::default()
        };
        search.buffer_bytes = ROOM_BYTES as u64;
        // SAFETY: the kernel reads the key and the length, and writes the key, the length and at most that
        // many bytes behind them, which is what `Search` has room for.
        let searched = unsafe {
            ioctl::ioctl(
                self.directory.as_fd(),
                ioctl::Updater::<TREE_SEARCH_V2, Search>::new(search),
            )
        };
        searched.map_err(|errno| SearchError::of(&self.path, errno))?;
        Ok((&self.search.buffer, self.search.key.items as usize))
    }
}

impl SearchError {
    fn of(path: &str, errno: Errno) -> SearchError {
        let reason = match errno {
            Errno::PERM | Errno::ACCESS => "only root may; run it as root".into(),
            errno => std::io::Error::from(errno).to_string(),
        };
        SearchError {
            path: path.into(),
            reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structures_have_the_sizes_that_the_kernel_expects() {
        assert_eq!(size_of::<SearchKey>(), 104);
        assert_eq!(std::mem::offset_of!(Search, buffer), 112);
    }

    #[test]
    fn what_is_not_btrfs_is_refused_in_words() {
        let refused = |path: &str| match Subvolume::of(Path::new(path)) {
            Ok(_) => panic!("{path} is not btrfs"),
            Err(error) => error.to_string(),
        };
        assert!(refused("/proc").contains("not on btrfs"));
        assert!(refused("/no/such").contains("/no/such"));
    }
}
