//! What must be known of filesystems to measure on them honestly.
//!
//! Magic numbers: `statfs(2)` and `linux/magic.h`.

use std::os::fd::BorrowedFd;

use rustix::fs::{IFlags, fstat, fstatfs, ioctl_getflags};

/// A filesystem and its peculiarities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filesystem {
    /// Its name ("ext4"); an unknown one by its number.
    pub(crate) name: String,
    /// Whether `fdatasync` of a file without a name is known to do the same as for any other file.
    /// A filesystem may do less, since the data could not be found after a crash, or more.
    pub(crate) syncs_nameless_files: bool,
    cache: HiddenCache,
    /// Its device number belongs to no block device.
    is_virtual: bool,
}

/// Why direct I/O is not what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HiddenCache {
    /// It is, as far as known.
    None,
    /// Files live in memory.
    Memory,
    /// Writes of files with checksums go through the page cache (btrfs since Linux 6.14).
    Checksums,
    /// Another program or machine serves it, with caches of its own.
    Served,
}

/// The filesystem that an open file lives on; absent where the kernel does not say.
pub(crate) fn of(file: BorrowedFd<'_>) -> Option<Filesystem> {
    let magic = fstatfs(file).ok()?.f_type as u32;
    let mut filesystem = by_magic(magic);
    filesystem.is_virtual = fstat(file).is_ok_and(|stat| rustix::fs::major(stat.st_dev) == 0);
    if filesystem.cache == HiddenCache::Checksums
        && ioctl_getflags(file).is_ok_and(|flags| flags.contains(IFlags::NOCOW))
    {
        filesystem.cache = HiddenCache::None;
    }
    Some(filesystem)
}

fn by_magic(magic: u32) -> Filesystem {
    use HiddenCache::{Checksums, Memory, None, Served};
    let (name, syncs_nameless_files, cache) = match magic {
        // ext2, ext3 and ext4 share the number.
        0xef53 => ("ext4", true, None),
        0x5846_5342 => ("xfs", true, None),
        0x4d44 => ("vfat", true, None),
        0x2011_bab0 => ("exfat", true, None),
        0x9123_683e => ("btrfs", false, Checksums),
        0xf2f5_2010 => ("f2fs", false, None),
        0x7366_746e => ("ntfs", false, None),
        0xca45_1a4e => ("bcachefs", false, None),
        0x2fc1_2fc1 => ("zfs", false, Checksums),
        0x0102_1994 => ("tmpfs", true, Memory),
        0x8584_58f6 => ("ramfs", true, Memory),
        0x6573_5546 => ("fuse", false, Served),
        0x6969 => ("nfs", false, Served),
        0xff53_4d42 | 0xfe53_4d42 => ("cifs", false, Served),
        0x0102_1997 => ("9p", false, Served),
        0x794c_7630 => ("overlay", false, None),
        _ => {
            return Filesystem {
                name: format!("filesystem {magic:#x}"),
                syncs_nameless_files: false,
                cache: None,
                is_virtual: false,
            };
        }
    };
    Filesystem { name: name.into(), syncs_nameless_files, cache, is_virtual: false }
}

impl Filesystem {
    /// Whether no block device of this machine is below it, whatever the path suggests: it lives in
    /// memory, or another machine or program serves it.
    pub(crate) fn has_no_device(&self) -> bool {
        self.is_virtual && matches!(self.cache, HiddenCache::Memory | HiddenCache::Served)
    }

    /// Why a direct operation may still be answered from memory, where that is known.
    pub(crate) fn hidden_cache(&self) -> Option<String> {
        let name = &self.name;
        match self.cache {
            HiddenCache::None => None,
            HiddenCache::Memory => Some(format!("{name} keeps files in memory")),
            HiddenCache::Checksums => Some(format!("{name} copies data to check its sums")),
            HiddenCache::Served => Some(format!("{name} is served with caches of its own")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_filesystem_is_known_as_one() {
        let tmpfs = by_magic(0x0102_1994);
        assert_eq!(tmpfs.hidden_cache().as_deref(), Some("tmpfs keeps files in memory"));
    }

    #[test]
    fn an_unknown_filesystem_is_named_by_its_number_and_trusted_with_nothing() {
        let unknown = by_magic(0x1234);
        assert_eq!(unknown.name, "filesystem 0x1234");
        assert!(!unknown.syncs_nameless_files);
        assert_eq!(unknown.hidden_cache(), None);
    }
}
