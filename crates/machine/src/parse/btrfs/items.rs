//! Items of the trees: inodes, entries of directories, pieces of files.

/// Type of the items that say what a file is (`BTRFS_INODE_ITEM_KEY`).
pub const INODE_ITEM: u32 = 1;
/// Type of the items that list a directory in the order of making (`BTRFS_DIR_INDEX_KEY`).
pub const DIRECTORY_INDEX: u32 = 96;
/// Type of the items that say where a file's bytes are (`BTRFS_EXTENT_DATA_KEY`).
pub const EXTENT_DATA: u32 = 108;
/// Type of the items that say that a subvolume is below another (`BTRFS_ROOT_REF_KEY`).
pub const ROOT_REF: u32 = 156;
/// Type of the items that a directory entry names for a subvolume (`BTRFS_ROOT_ITEM_KEY`).
const ROOT_ITEM: u32 = 132;
/// Kinds of files in directory entries (`BTRFS_FT_REG_FILE`, `BTRFS_FT_DIR`).
const FILE_ENTRY: u8 = 1;
const DIRECTORY_ENTRY: u8 = 2;

/// Bytes before each item that a tree search returns.
const HEADER_BYTES: usize = 32;
/// Bytes of an extent item before the part that depends on its kind.
const FIXED_BYTES: usize = 21;
/// The bits of a mode that say what kind of file it is (`S_IFMT`), and two of the kinds.
const KIND: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;

/// Place of an item in a tree; the order is that of the tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// For files the inode.
    pub object: u64,
    /// What kind of item.
    pub kind: u32,
    /// For extents the position in the file.
    pub offset: u64,
}

impl Key {
    /// The place after this one; nothing after the last.
    pub fn next(self) -> Option<Key> {
        if let Some(offset) = self.offset.checked_add(1) {
            return Some(Key { offset, ..self });
        }
        let kind = self.kind.checked_add(1).filter(|kind| *kind <= 255);
        if let Some(kind) = kind {
            return Some(Key { kind, offset: 0, ..self });
        }
        let object = self.object.checked_add(1)?;
        Some(Key { object, kind: 0, offset: 0 })
    }
}

/// An item that a tree search returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// Where it was.
    pub key: Key,
    pub bytes: &'a [u8],
}

/// The items in the buffer of a tree search; what does not fit into the buffer is not there.
pub fn items(buffer: &[u8], count: usize) -> impl Iterator<Item = Item<'_>> {
    let mut rest = buffer;
    std::iter::from_fn(move || {
        let (header, after) = rest.split_at_checked(HEADER_BYTES)?;
        let number = |at: usize| Some(u64::from_ne_bytes(header.get(at..at + 8)?.try_into().ok()?));
        let small = |at: usize| Some(u32::from_ne_bytes(header.get(at..at + 4)?.try_into().ok()?));
        let key = Key { object: number(8)?, offset: number(16)?, kind: small(24)? };
        let (bytes, after) = after.split_at_checked(usize::try_from(small(28)?).ok()?)?;
        rest = after;
        Some(Item { key, bytes })
    })
    .take(count)
}

/// What kind of file an inode is, and how many names it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inode {
    /// None for a file that was deleted while it was open.
    pub names: u32,
    /// It has bytes of its own.
    pub is_regular: bool,
    /// It has files below it.
    pub is_directory: bool,
}

/// Reads an inode item (`btrfs_inode_item`); nothing where it is too short for one.
pub fn inode(bytes: &[u8]) -> Option<Inode> {
    let mode = little_u32(bytes, 52)?;
    Some(Inode {
        names: little_u32(bytes, 40)?,
        is_regular: mode & KIND == REGULAR,
        is_directory: mode & KIND == DIRECTORY,
    })
}

/// What an entry of a directory leads to, as far as files are below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Child {
    /// A regular file's inode.
    File(u64),
    /// A directory's inode.
    Directory(u64),
    /// Another subvolume, or a place where one was when a snapshot was taken.
    Subvolume(u64),
}

/// Reads the entry of a directory (`btrfs_dir_item`); nothing where it leads to something else, or is not one.
pub fn child(bytes: &[u8]) -> Option<Child> {
    let object = little_u64(bytes, 0)?;
    // The highest bit says that the name is encrypted.
    match (u32::from(*bytes.get(8)?), bytes.get(29)? & 0x7f) {
        (ROOT_ITEM, _) => Some(Child::Subvolume(object)),
        (INODE_ITEM, FILE_ENTRY) => Some(Child::File(object)),
        (INODE_ITEM, DIRECTORY_ENTRY) => Some(Child::Directory(object)),
        _ => None,
    }
}

/// A piece of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Its bytes are in the tree itself.
    Inline {
        /// Number of the method, see [`METHODS`].
        method: u8,
        /// Bytes in the tree.
        stored_bytes: u64,
        /// Bytes of the file.
        original_bytes: u64,
    },
    /// Its bytes are on the disk.
    Stored {
        /// Number of the method.
        method: u8,
        /// Where on the disk; the same for all who share it.
        at: u64,
        /// Bytes on the disk.
        stored_bytes: u64,
        /// Bytes when expanded.
        original_bytes: u64,
        /// Bytes of it that this piece of the file uses.
        used_bytes: u64,
    },
    /// Space that is set aside and holds nothing yet.
    Preallocated {
        /// Where on the disk; the same for all who share it.
        at: u64,
        /// Bytes on the disk.
        stored_bytes: u64,
        /// Bytes of the whole extent.
        original_bytes: u64,
        /// Bytes that this piece of the file has.
        used_bytes: u64,
    },
    /// Nothing: zeros without a place.
    Hole,
}

/// Reads an extent item (`btrfs_file_extent_item`); nothing where it is not one, or of a kind that is not known.
pub fn extent(bytes: &[u8]) -> Option<Extent> {
    let number = |at: usize| little_u64(bytes, at);
    let original_bytes = number(8)?;
    let (method, kind) = (*bytes.get(16)?, *bytes.get(20)?);
    if usize::from(method) >= METHODS.len() {
        return None;
    }
    Some(match kind {
        0 => Extent::Inline {
            method,
            stored_bytes: (bytes.len() - FIXED_BYTES) as u64,
            original_bytes,
        },
        1 | 2 if number(21)? == 0 => Extent::Hole,
        1 => Extent::Stored {
            method,
            at: number(21)?,
            stored_bytes: number(29)?,
            original_bytes,
            used_bytes: number(45)?,
        },
        2 => Extent::Preallocated {
            at: number(21)?,
            stored_bytes: number(29)?,
            original_bytes,
            used_bytes: number(45)?,
        },
        _ => return None,
    })
}

/// The methods by their number in the items.
pub const METHODS: [&str; 4] = ["none", "zlib", "lzo", "zstd"];

fn little_u64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn little_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_follow_one_another_as_in_the_tree() {
        let key = |object, kind, offset| Key { object, kind, offset };
        assert_eq!(key(1, 2, 3).next(), Some(key(1, 2, 4)));
        assert_eq!(key(1, 2, u64::MAX).next(), Some(key(1, 3, 0)));
        assert_eq!(key(1, 255, u64::MAX).next(), Some(key(2, 0, 0)));
        assert_eq!(key(u64::MAX, 255, u64::MAX).next(), None);
    }

    #[test]
    fn an_inode_tells_its_kind_and_its_names() {
        let mut bytes = vec![0; 160];
        bytes[40] = 3;
        bytes[52..56].copy_from_slice(&0o100_644_u32.to_le_bytes());
        let file = inode(&bytes).expect("an inode");
        assert!(file.is_regular && !file.is_directory);
        assert_eq!(file.names, 3);
        bytes[52..56].copy_from_slice(&0o040_755_u32.to_le_bytes());
        assert!(inode(&bytes).expect("an inode").is_directory);
        // A symbolic link has an inline extent, too, and is no regular file.
        bytes[52..56].copy_from_slice(&0o120_777_u32.to_le_bytes());
        let link = inode(&bytes).expect("an inode");
        assert!(!link.is_regular && !link.is_directory);
        assert_eq!(inode(&bytes[..50]), None);
    }

    #[test]
    fn an_entry_leads_to_a_file_a_directory_or_a_subvolume() {
        let mut bytes = vec![0; 40];
        bytes[..8].copy_from_slice(&258_u64.to_le_bytes());
        bytes[8] = 1;
        bytes[29] = 1;
        assert_eq!(child(&bytes), Some(Child::File(258)));
        bytes[29] = 2;
        assert_eq!(child(&bytes), Some(Child::Directory(258)));
        // A symbolic link.
        bytes[29] = 7;
        assert_eq!(child(&bytes), None);
        bytes[8] = 132;
        assert_eq!(child(&bytes), Some(Child::Subvolume(258)));
        bytes[8] = 7;
        assert_eq!(child(&bytes), None);
        assert_eq!(child(&bytes[..4]), None);
    }

    fn search_result(items: &[(Key, Vec<u8>)]) -> Vec<u8> {
        let mut buffer = Vec::new();
        for (key, bytes) in items {
            buffer.extend(7_u64.to_ne_bytes());
            buffer.extend(key.object.to_ne_bytes());
            buffer.extend(key.offset.to_ne_bytes());
            buffer.extend(key.kind.to_ne_bytes());
            buffer.extend((bytes.len() as u32).to_ne_bytes());
            buffer.extend(bytes);
        }
        buffer
    }

    proptest! {
        /// What is written into a search buffer is read from it, and a torn end says nothing.
        #[test]
        fn items_are_read_as_they_were_written(
            wanted in prop::collection::vec(
                ((any::<u64>(), 0_u32..256, any::<u64>()), prop::collection::vec(any::<u8>(), 0..80)), 0..8),
            cut in 0_usize..40,
        ) {
            let wanted: Vec<(Key, Vec<u8>)> = wanted
                .into_iter()
                .map(|((object, kind, offset), bytes)| (Key { object, kind, offset }, bytes))
                .collect();
            let buffer = search_result(&wanted);
            let found: Vec<_> = items(&buffer, wanted.len())
                .map(|item| (item.key, item.bytes.to_vec()))
                .collect();
            prop_assert_eq!(&found, &wanted);
            let torn = &buffer[..buffer.len().saturating_sub(cut)];
            let left = items(torn, wanted.len()).count();
            prop_assert!(left <= wanted.len() && (cut == 0 || wanted.is_empty() || left < wanted.len()));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = (extent(&bytes), inode(&bytes), child(&bytes));
            let _ = items(&bytes, 5).count();
        }
    }
}
