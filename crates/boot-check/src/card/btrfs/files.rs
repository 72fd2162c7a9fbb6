//! The files of a subvolume, and of those below it.

use std::io::Read;
use std::path::Path;

use flate2::read::ZlibDecoder;
use rubus_host::ReadError;

use super::super::filesystem::Filesystem;
use super::super::names::{Found, walk};
use super::super::{damaged, le32};
use super::{Btrfs, FIRST_INODE, Key, ROOT_ITEM, key, le64, lzo, name_at};

const INODE_ITEM: u8 = 1;
const DIRECTORY_INDEX: u8 = 96;
const EXTENT_DATA: u8 = 108;
const TYPE_MASK: u32 = 0o170_000;
const TYPE_DIRECTORY: u32 = 0o040_000;
const TYPE_FILE: u32 = 0o100_000;
const TYPE_LINK: u32 = 0o120_000;
const INLINE: u8 = 0;
const PREALLOCATED: u8 = 2;
/// Where the bytes of an inline extent begin.
const FIXED_BYTES: usize = 21;
/// An extent that is compressed has no more when expanded. Source: Linux, fs/btrfs/compression.h.
const MAX_EXPANDED_BYTES: usize = 128 << 10;

/// The files of a subvolume.
pub(super) struct BtrfsFiles<'a> {
    filesystem: Btrfs<'a>,
    tree: u64,
}

#[derive(Clone)]
struct Inode {
    /// The tree of its subvolume.
    tree: u64,
    number: u64,
    mode: u32,
    size_bytes: u64,
}

impl<'a> BtrfsFiles<'a> {
    pub(super) fn new(filesystem: Btrfs<'a>, tree: u64) -> BtrfsFiles<'a> {
        BtrfsFiles { filesystem, tree }
    }

    fn inode(&self, tree: u64, number: u64) -> Result<Inode, ReadError> {
        let found = self.filesystem.of(tree, number, INODE_ITEM)?;
        let (_, item) =
            found.first().ok_or_else(|| damaged("a name leads to an inode that is not there"))?;
        Ok(Inode { tree, number, mode: le32(item, 52), size_bytes: le64(item, 16) })
    }

    fn entries(&self, directory: &Inode) -> Result<Vec<(String, Key)>, ReadError> {
        if directory.mode & TYPE_MASK != TYPE_DIRECTORY {
            return Err(ReadError::Absent);
        }
        let items = self.filesystem.of(directory.tree, directory.number, DIRECTORY_INDEX)?;
        let entry = |(_, item): &(Key, Vec<u8>)| Some((name_at(item, 27, 30)?, key(item, 0)));
        Ok(items.iter().filter_map(entry).collect())
    }

    /// What an entry of a directory leads to; a subvolume below another is a directory.
    fn led_to(&self, tree: u64, place: Key) -> Result<Inode, ReadError> {
        if place.kind == ROOT_ITEM {
            return self.inode(self.filesystem.tree_of(place.object)?, FIRST_INODE);
        }
        self.inode(tree, place.object)
    }

    fn find(&self, path: &Path) -> Result<Inode, ReadError> {
        let look = |directory: &Inode, name: &str| {
            let entries = self.entries(directory)?;
            let found = entries.into_iter().find(|(own, _)| own == name);
            let (_, place) = found.ok_or(ReadError::Absent)?;
            let inode = self.led_to(directory.tree, place)?;
            if inode.mode & TYPE_MASK != TYPE_LINK {
                return Ok(Found::Node(inode));
            }
            let text = self.contents(&inode, 4096)?;
            Ok(Found::Link(String::from_utf8_lossy(&text).into_owned()))
        };
        walk(self.inode(self.tree, FIRST_INODE)?, path, &look)
    }

    /// At most `limit` bytes of a file.
    fn contents(&self, inode: &Inode, limit: u64) -> Result<Vec<u8>, ReadError> {
        let length = inode.size_bytes.min(limit) as usize;
        let first = Key { object: inode.number, kind: EXTENT_DATA, offset: 0 };
        let last = Key { offset: length as u64, ..first };
        let mut bytes = vec![0; length];
        for (own, item) in self.filesystem.items(inode.tree, first, last)? {
            let start = (own.offset as usize).min(length);
            let piece = self.piece(&item, length - start)?;
            let end = (start + piece.len()).min(length);
            bytes[start..end].copy_from_slice(&piece[..end - start]);
        }
        Ok(bytes)
    }

    /// At most `limit` bytes of an extent; none for a hole.
    fn piece(&self, item: &[u8], limit: usize) -> Result<Vec<u8>, ReadError> {
        if item.len() < FIXED_BYTES {
            return Err(damaged("an extent is too short"));
        }
        let (method, kind) = (item[16], item[20]);
        let original = le64(item, 8) as usize;
        if kind == INLINE {
            let mut bytes = self.expanded(&item[FIXED_BYTES..], method, original)?;
            bytes.truncate(limit);
            return Ok(bytes);
        }
        let (address, stored) = (le64(item, 21), le64(item, 29));
        let (skipped, used) = (le64(item, 37), le64(item, 45) as usize);
        if address == 0 || kind == PREALLOCATED {
            return Ok(Vec::new());
        }
        let wanted = used.min(limit);
        if method == 0 {
            let from = address.checked_add(skipped);
            return self
                .filesystem
                .read(from.ok_or_else(|| damaged("an extent is out of place"))?, wanted);
        }
        if stored > MAX_EXPANDED_BYTES as u64 {
            return Err(damaged("a compressed extent is larger than any"));
        }
        let packed = self.filesystem.read(address, stored as usize)?;
        let bytes = self.expanded(&packed, method, original)?;
        let skipped = (skipped as usize).min(bytes.len());
        let end = skipped.saturating_add(wanted).min(bytes.len());
        Ok(bytes[skipped..end].to_vec())
    }

    fn expanded(&self, packed: &[u8], method: u8, original: usize) -> Result<Vec<u8>, ReadError> {
        let most = original.min(MAX_EXPANDED_BYTES);
        let sector_bytes = self.filesystem.sector_bytes;
        let mut bytes = Vec::new();
        let limit = most as u64;
        let read = match method {
            0 => return Ok(packed.to_vec()),
            1 => ZlibDecoder::new(packed).take(limit).read_to_end(&mut bytes).ok(),
            2 => lzo::extent(packed, sector_bytes, most).map(|made| {
                bytes = made;
                bytes.len()
            }),
            // Behind the frame the rest of its sector is zeros.
            3 => zstd::stream::read::Decoder::with_buffer(packed)
                .and_then(|decoder| decoder.single_frame().take(limit).read_to_end(&mut bytes))
                .ok(),
            _ => {
                return Err(ReadError::Other(
                    "a file that is compressed in a way that is not known".into(),
                ));
            }
        };
        read.ok_or_else(|| damaged("a compressed extent cannot be expanded"))?;
        Ok(bytes)
    }
}

impl Filesystem for BtrfsFiles<'_> {
    fn read_prefix(&self, path: &Path, limit: usize) -> Result<Vec<u8>, ReadError> {
        let inode = self.find(path)?;
        if inode.mode & TYPE_MASK != TYPE_FILE {
            return Err(ReadError::Other("it is no file".into()));
        }
        self.contents(&inode, limit as u64)
    }

    fn names(&self, path: &Path) -> Result<Vec<String>, ReadError> {
        let entries = self.entries(&self.find(path)?)?;
        Ok(entries.into_iter().map(|(name, _)| name).collect())
    }

    fn look_up(&self, path: &Path) -> Result<(), ReadError> {
        self.find(path).map(|_| ())
    }

    /// They are not read.
    fn mode(&self, _: &Path) -> Option<Result<u32, ReadError>> {
        None
    }
}
