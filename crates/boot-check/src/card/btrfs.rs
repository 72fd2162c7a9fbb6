//! btrfs, read without mounting and without replaying its log: its trees, and the subvolumes that they list.
//!
//! Format: "On-disk Format" of the btrfs documentation, and `linux/btrfs_tree.h`. A filesystem of several devices is not read:
//! the other devices may have newer bytes, also where this one seems to hold all.

mod files;
mod lzo;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use rubus_host::{Files, ReadError};

use super::filesystem::CardFiles;
use super::{Span, damaged, le16, le32};

use files::BtrfsFiles;

const SUPERBLOCK: u64 = 64 << 10;
/// The subvolume that holds all others, `BTRFS_FS_TREE_OBJECTID`.
const TOP: u64 = 5;
/// The directory of the tree of roots, with the name of the default subvolume.
const ROOT_DIRECTORY: u64 = 6;
/// The first directory of each subvolume.
const FIRST_INODE: u64 = 256;
const ROOT_ITEM: u8 = 132;
const ROOT_BACKREF: u8 = 144;
const CHUNK_ITEM: u8 = 228;
const DIRECTORY_ITEM: u8 = 84;
const INODE_REF: u8 = 12;
const HEADER_BYTES: usize = 101;
const KEY_BYTES: usize = 17;
/// RAID0, RAID10, RAID5 and RAID6: pieces of the bytes lie on other devices.
const STRIPED: u64 = 1 << 3 | 1 << 6 | 1 << 7 | 1 << 8;
/// The largest number of levels of a tree; the format's own limit.
const MAX_LEVEL: u8 = 7;
/// Nodes that are read of one filesystem: a thousand snapshots take some ten thousand.
const MAX_NODES: usize = 200_000;
const MAX_DEPTH: usize = 256;

/// A btrfs filesystem.
#[derive(Clone)]
pub struct Btrfs<'a> {
    span: Span<'a>,
    node_bytes: usize,
    sector_bytes: usize,
    device: u64,
    chunks: Vec<Chunk>,
    /// Where the tree of roots begins.
    roots: u64,
    /// A damaged filesystem may send each search through all of it.
    nodes_left: Cell<usize>,
}

/// A run of addresses, and where it is on this device; absent where only other devices hold it.
#[derive(Clone, Debug)]
struct Chunk {
    from: u64,
    length: u64,
    on_disk: Option<u64>,
}

/// The place of an item in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    object: u64,
    kind: u8,
    offset: u64,
}

type Item = (Key, Vec<u8>);

/// The subvolumes of a filesystem.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subvolumes {
    /// Their numbers by their paths from the top, without a slash in front; the top itself is not among them.
    pub by_path: BTreeMap<String, u64>,
    /// Number of the one that is mounted where none is named.
    pub default: u64,
}

impl Subvolumes {
    /// The path of one, empty for the top.
    pub fn path_of(&self, number: u64) -> Option<&str> {
        if number == TOP {
            return Some("");
        }
        let mut all = self.by_path.iter();
        all.find(|(_, own)| **own == number).map(|(path, _)| path.as_str())
    }

    /// The number of the one with a path, or of the top.
    pub fn number_of(&self, path: &str) -> Option<u64> {
        if path.is_empty() { Some(TOP) } else { self.by_path.get(path).copied() }
    }

    /// The numbers that there are.
    pub fn numbers(&self) -> BTreeSet<u64> {
        self.by_path.values().copied().chain([TOP, 0]).collect()
    }
}

impl<'a> Btrfs<'a> {
    /// # Errors
    /// When it is no btrfs, damaged, or spread over several devices.
    pub fn open(span: Span<'a>) -> Result<Btrfs<'a>, ReadError> {
        let superblock = span.exactly(SUPERBLOCK, 4096)?;
        let node_bytes = le32(&superblock, 148) as usize;
        if &superblock[64..72] != b"_BHRfS_M" || !(4096..=65_536).contains(&node_bytes) {
            return Err(damaged("its superblock contradicts itself"));
        }
        let sector_bytes = le32(&superblock, 144) as usize;
        if !(512..=65_536).contains(&sector_bytes) {
            return Err(damaged("its superblock contradicts itself"));
        }
        let devices = le64(&superblock, 136);
        if devices > 1 {
            return Err(ReadError::Other(format!(
                "this btrfs lies on {devices} devices, and only one was given"
            )));
        }
        let mut found = Btrfs {
            span,
            node_bytes,
            sector_bytes,
            device: le64(&superblock, 201),
            chunks: Vec::new(),
            roots: le64(&superblock, 80),
            nodes_left: Cell::new(MAX_NODES),
        };
        // The chunks that hold the tree of all chunks.
        let length = (le32(&superblock, 160) as usize).min(2048);
        let mut rest = &superblock[811..811 + length];
        while rest.len() > KEY_BYTES + 48 {
            let (key, item) = (key(rest, 0), &rest[KEY_BYTES..]);
            let bytes = 48 + 32 * usize::from(le16(item, 44));
            found.add_chunk(key, item.get(..bytes).unwrap_or(item));
            rest = item.get(bytes..).unwrap_or_default();
        }
        for (key, item) in found.items(le64(&superblock, 88), Key::MIN, Key::MAX)? {
            found.add_chunk(key, &item);
        }
        Ok(found)
    }

    fn add_chunk(&mut self, key: Key, item: &[u8]) {
        if key.kind != CHUNK_ITEM || item.len() < 80 {
            return;
        }
        let is_whole = le64(item, 24) & STRIPED == 0 || le16(item, 44) == 1;
        let mut stripes = item[48..].chunks_exact(32);
        let own = stripes.find(|stripe| is_whole && le64(stripe, 0) == self.device);
        let on_disk = own.map(|stripe| le64(stripe, 8));
        if !self.chunks.iter().any(|chunk| chunk.from == key.offset) {
            self.chunks.push(Chunk { from: key.offset, length: le64(item, 0), on_disk });
        }
    }

    /// Bytes by their address.
    fn read(&self, address: u64, length: usize) -> Result<Vec<u8>, ReadError> {
        let is_in = |chunk: &&Chunk| {
            let into = address.checked_sub(chunk.from);
            into.is_some_and(|into| into.saturating_add(length as u64) <= chunk.length)
        };
        let chunk = self.chunks.iter().find(is_in);
        let chunk = chunk.ok_or_else(|| damaged("an address is in no chunk"))?;
        let on_disk = chunk.on_disk.ok_or_else(|| {
            ReadError::Other("a btrfs of several disks is not read without mounting it".into())
        })?;
        let at = on_disk.checked_add(address - chunk.from);
        self.span.exactly(at.ok_or_else(|| damaged("a chunk is out of place"))?, length)
    }

    /// The items of a tree from a key on, up to another.
    fn items(&self, tree: u64, from: Key, to: Key) -> Result<Vec<Item>, ReadError> {
        let mut found = Vec::new();
        self.descend(tree, (from, to), MAX_LEVEL + 1, &mut found)?;
        Ok(found)
    }

    fn descend(
        &self,
        node: u64,
        (from, to): (Key, Key),
        below: u8,
        found: &mut Vec<Item>,
    ) -> Result<(), ReadError> {
        self.nodes_left.set(self.nodes_left.get().checked_sub(1).ok_or_else(too_large)?);
        let bytes = self.read(node, self.node_bytes)?;
        let (count, level) = (le32(&bytes, 96) as usize, bytes[100]);
        if le64(&bytes, 48) != node || level >= below {
            return Err(damaged("a tree contradicts itself"));
        }
        let entry_bytes = if level == 0 { KEY_BYTES + 8 } else { KEY_BYTES + 16 };
        let entries = bytes[HEADER_BYTES..].chunks_exact(entry_bytes).take(count);
        let entries: Vec<&[u8]> = entries.collect();
        for (at, entry) in entries.iter().enumerate() {
            let own = key(entry, 0);
            if own > to {
                break;
            }
            if level == 0 {
                if own < from {
                    continue;
                }
                let start = HEADER_BYTES + le32(entry, KEY_BYTES) as usize;
                let end = start.saturating_add(le32(entry, KEY_BYTES + 4) as usize);
                let item = bytes.get(start..end).ok_or_else(|| damaged("an item has no place"))?;
                found.push((own, item.to_vec()));
                continue;
            }
            // What comes before the next key is below this one.
            if entries.get(at + 1).is_some_and(|next| key(next, 0) <= from) {
                continue;
            }
            self.descend(le64(entry, KEY_BYTES), (from, to), level, found)?;
        }
        Ok(())
    }

    /// The items of one kind that an object has.
    fn of(&self, tree: u64, object: u64, kind: u8) -> Result<Vec<Item>, ReadError> {
        let from = Key { object, kind, offset: 0 };
        self.items(tree, from, Key { offset: u64::MAX, ..from })
    }

    /// Where the tree of a subvolume begins.
    fn tree_of(&self, subvolume: u64) -> Result<u64, ReadError> {
        let found = self.of(self.roots, subvolume, ROOT_ITEM)?;
        let (_, item) = found.last().ok_or(ReadError::Absent)?;
        Ok(le64(item, 176))
    }

    /// Number of the subvolume that is mounted where none is named.
    ///
    /// # Errors
    /// When the filesystem is damaged.
    pub fn default_subvolume(&self) -> Result<u64, ReadError> {
        let entries = self.of(self.roots, ROOT_DIRECTORY, DIRECTORY_ITEM)?;
        let named =
            entries.iter().find(|(_, item)| name_at(item, 27, 30) == Some("default".into()));
        Ok(named.map_or(TOP, |(_, item)| le64(item, 0)))
    }

    /// All subvolumes.
    ///
    /// # Errors
    /// When the filesystem is damaged.
    pub fn subvolumes(&self) -> Result<Subvolumes, ReadError> {
        let mut parents: BTreeMap<u64, (u64, u64, String)> = BTreeMap::new();
        for (key, item) in self.items(self.roots, Key::MIN, Key::MAX)? {
            if let Some(name) = name_at(&item, 16, 18).filter(|_| key.kind == ROOT_BACKREF) {
                parents.insert(key.object, (key.offset, le64(&item, 0), name));
            }
        }
        let mut by_path = BTreeMap::new();
        for number in parents.keys() {
            if let Some(path) = self.path_of(*number, &parents)? {
                by_path.insert(path, *number);
            }
        }
        Ok(Subvolumes { by_path, default: self.default_subvolume()? })
    }

    /// The path of a subvolume; absent where it is being deleted.
    fn path_of(
        &self,
        number: u64,
        parents: &BTreeMap<u64, (u64, u64, String)>,
    ) -> Result<Option<String>, ReadError> {
        let (mut names, mut here) = (Vec::new(), number);
        while here != TOP {
            if names.len() > MAX_DEPTH {
                return Err(damaged("a subvolume is below itself"));
            }
            let Some((parent, directory, name)) = parents.get(&here) else { return Ok(None) };
            names.push(name.clone());
            let (tree, mut directory) = (self.tree_of(*parent)?, *directory);
            while directory != FIRST_INODE {
                let found = self.of(tree, directory, INODE_REF)?;
                let Some((key, item)) = found.first() else { return Ok(None) };
                if names.len() > MAX_DEPTH {
                    return Err(damaged("a directory is below itself"));
                }
                names.extend(name_at(item, 8, 10));
                directory = key.offset;
            }
            here = *parent;
        }
        names.reverse();
        Ok(Some(names.join("/")))
    }

    /// The files of a subvolume.
    ///
    /// # Errors
    /// When there is none of this number, or the filesystem is damaged.
    pub fn files(&self, subvolume: u64) -> Result<Box<dyn Files + 'a>, ReadError> {
        let tree = self.tree_of(subvolume)?;
        Ok(Box::new(CardFiles(BtrfsFiles::new(self.clone(), tree))))
    }
}

impl Key {
    const MIN: Key = Key { object: 0, kind: 0, offset: 0 };
    const MAX: Key = Key { object: u64::MAX, kind: u8::MAX, offset: u64::MAX };
}

fn too_large() -> ReadError {
    damaged("a tree has more nodes than any")
}

fn key(bytes: &[u8], at: usize) -> Key {
    let kind = bytes.get(at + 8).copied().unwrap_or_default();
    Key { object: le64(bytes, at), kind, offset: le64(bytes, at + 9) }
}

/// A name with its length before it.
fn name_at(item: &[u8], length_at: usize, at: usize) -> Option<String> {
    let length = usize::from(le16(item, length_at));
    let name = item.get(at..at + length).filter(|name| !name.is_empty())?;
    Some(String::from_utf8_lossy(name).into_owned())
}

fn le64(bytes: &[u8], at: usize) -> u64 {
    u64::from(le32(bytes, at)) | u64::from(le32(bytes, at + 4)) << 32
}
