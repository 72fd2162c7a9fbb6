//! ext2, ext3 and ext4, read without mounting and without replaying the journal.
//!
//! Format: Linux, Documentation/filesystems/ext4. Directories are read as lists, which indexed ones are too.

use std::path::Path;

use rubus_host::ReadError;

use super::filesystem::Filesystem;
use super::names::{Found, walk};
use super::{Span, damaged, le16, le32};

const ROOT: u32 = 2;
const INCOMPATIBLE_64_BIT: u32 = 0x80;
const INCOMPATIBLE_META_BG: u32 = 0x10;
const INCOMPATIBLE_FILETYPE: u32 = 0x2;
const FLAG_EXTENTS: u32 = 0x8_0000;
const FLAG_INLINE: u32 = 0x1000_0000;
const FLAG_ENCRYPTED: u32 = 0x800;
const TYPE_MASK: u16 = 0o170_000;
const TYPE_DIRECTORY: u16 = 0o040_000;
const TYPE_FILE: u16 = 0o100_000;
const TYPE_LINK: u16 = 0o120_000;
const PERMISSIONS: u16 = 0o7777;
/// A directory larger than this is damaged.
const MAX_DIRECTORY_BYTES: u64 = 64 << 20;
/// Depth of a tree of extents; the format's own limit.
const MAX_DEPTH: u16 = 5;
/// Pieces of one file; a file of any size that is read here has fewer.
const MAX_PIECES: usize = 100_000;

/// An ext4 filesystem.
pub struct Ext4<'a> {
    span: Span<'a>,
    block_bytes: u64,
    inodes: u32,
    inodes_per_group: u32,
    inode_bytes: u64,
    descriptor_bytes: u64,
    first_data_block: u64,
    has_types: bool,
}

#[derive(Clone)]
struct Inode {
    mode: u16,
    size_bytes: u64,
    flags: u32,
    /// The 60 bytes with the places of its blocks.
    places: Vec<u8>,
}

/// A run of blocks of a file: first block in the file, how many, first block on the disk; 0 for a hole.
type Piece = (u64, u64, u64);

impl<'a> Ext4<'a> {
    /// # Errors
    /// When it is no ext4, damaged, or laid out in a way that is not read here.
    pub fn open(span: Span<'a>) -> Result<Ext4<'a>, ReadError> {
        let superblock = span.exactly(1024, 1024)?;
        let incompatible = le32(&superblock, 0x60);
        let log = le32(&superblock, 0x18);
        let inodes_per_group = le32(&superblock, 0x28);
        if le16(&superblock, 0x38) != 0xef53 || log > 6 || inodes_per_group == 0 {
            return Err(damaged("its superblock contradicts itself"));
        }
        if incompatible & INCOMPATIBLE_META_BG != 0 {
            return Err(ReadError::Other(
                "ext4 with meta_bg is not read without mounting it".into(),
            ));
        }
        let is_old = le32(&superblock, 0x4c) == 0;
        let inode_bytes = if is_old { 128 } else { u64::from(le16(&superblock, 0x58)) };
        let descriptor_bytes = if incompatible & INCOMPATIBLE_64_BIT == 0 {
            32
        } else {
            u64::from(le16(&superblock, 0xfe))
        };
        if inode_bytes < 128 || descriptor_bytes < 32 {
            return Err(damaged("its superblock contradicts itself"));
        }
        Ok(Ext4 {
            span,
            block_bytes: 1024 << log,
            inodes: le32(&superblock, 0),
            inodes_per_group,
            inode_bytes,
            descriptor_bytes,
            first_data_block: u64::from(le32(&superblock, 0x14)),
            has_types: incompatible & INCOMPATIBLE_FILETYPE != 0,
        })
    }

    fn inode(&self, number: u32) -> Result<Inode, ReadError> {
        if number == 0 || number > self.inodes {
            return Err(damaged("a name leads to an inode that is not there"));
        }
        let group = u64::from((number - 1) / self.inodes_per_group);
        let index = u64::from((number - 1) % self.inodes_per_group);
        let descriptors = (self.first_data_block + 1) * self.block_bytes;
        let at = descriptors + group * self.descriptor_bytes;
        let descriptor = self.span.exactly(at, self.descriptor_bytes as usize)?;
        let high = if self.descriptor_bytes >= 64 { le32(&descriptor, 0x28) } else { 0 };
        let table = u64::from(high) << 32 | u64::from(le32(&descriptor, 8));
        let at = table
            .checked_mul(self.block_bytes)
            .and_then(|start| start.checked_add(index * self.inode_bytes))
            .ok_or_else(|| damaged("a table of inodes is out of place"))?;
        let bytes = self.span.exactly(at, 128)?;
        let size_high =
            if le16(&bytes, 0) & TYPE_MASK == TYPE_FILE { le32(&bytes, 0x6c) } else { 0 };
        Ok(Inode {
            mode: le16(&bytes, 0),
            size_bytes: u64::from(size_high) << 32 | u64::from(le32(&bytes, 4)),
            flags: le32(&bytes, 0x20),
            places: bytes[0x28..0x28 + 60].to_vec(),
        })
    }

    /// At most `limit` bytes of a file or directory.
    fn contents(&self, inode: &Inode, limit: u64) -> Result<Vec<u8>, ReadError> {
        let length = inode.size_bytes.min(limit) as usize;
        if inode.flags & FLAG_ENCRYPTED != 0 {
            return Err(ReadError::Other("it is encrypted".into()));
        }
        if inode.flags & FLAG_INLINE != 0 {
            if length <= inode.places.len() {
                return Ok(inode.places[..length].to_vec());
            }
            return Err(ReadError::Other("a file inside its inode is not read".into()));
        }
        let mut bytes = vec![0; length];
        for (first, count, on_disk) in self.pieces(inode, length as u64)? {
            let start = first.saturating_mul(self.block_bytes);
            if on_disk == 0 || start >= length as u64 {
                continue;
            }
            let wanted = count.saturating_mul(self.block_bytes).min(length as u64 - start) as usize;
            let offset = on_disk.checked_mul(self.block_bytes);
            let offset = offset.ok_or_else(|| damaged("a file's block is out of place"))?;
            let read = self.span.exactly(offset, wanted)?;
            bytes[start as usize..start as usize + wanted].copy_from_slice(&read);
        }
        Ok(bytes)
    }

    fn pieces(&self, inode: &Inode, length: u64) -> Result<Vec<Piece>, ReadError> {
        let mut pieces = Vec::new();
        if inode.flags & FLAG_EXTENTS != 0 {
            self.extents(&inode.places, MAX_DEPTH, &mut pieces)?;
            return Ok(pieces);
        }
        let blocks = length.div_ceil(self.block_bytes);
        for index in 0..12u64.min(blocks) {
            pieces.push((index, 1, u64::from(le32(&inode.places, 4 * index as usize))));
        }
        let mut first = 12;
        for level in 0..3u32 {
            let node = u64::from(le32(&inode.places, 48 + 4 * level as usize));
            first = self.indirect(node, level, first, blocks, &mut pieces)?;
        }
        Ok(pieces)
    }

    /// The extents of a node of the tree.
    fn extents(
        &self,
        node: &[u8],
        depth_left: u16,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), ReadError> {
        let (magic, count, depth) = (le16(node, 0), usize::from(le16(node, 2)), le16(node, 6));
        if magic != 0xf30a || depth > depth_left || count * 12 + 12 > node.len() {
            return Err(damaged("a tree of extents contradicts itself"));
        }
        for entry in node[12..12 + 12 * count].chunks_exact(12) {
            if pieces.len() > MAX_PIECES {
                return Err(damaged("a file has more pieces than any"));
            }
            if depth == 0 {
                let length = u64::from(le16(entry, 4));
                let on_disk = u64::from(le16(entry, 6)) << 32 | u64::from(le32(entry, 8));
                // Longer than this means: reserved, and not written yet.
                let (length, on_disk) =
                    if length > 32_768 { (length - 32_768, 0) } else { (length, on_disk) };
                pieces.push((u64::from(le32(entry, 0)), length, on_disk));
            } else {
                let below = u64::from(le16(entry, 8)) << 32 | u64::from(le32(entry, 4));
                let at = below.checked_mul(self.block_bytes);
                let at = at.ok_or_else(|| damaged("a tree of extents is out of place"))?;
                let bytes = self.span.exactly(at, self.block_bytes as usize)?;
                self.extents(&bytes, depth - 1, pieces)?;
            }
        }
        Ok(())
    }

    /// The blocks that a block of ext2 lists, at any level; the number of the block behind them.
    fn indirect(
        &self,
        node: u64,
        level: u32,
        first: u64,
        blocks: u64,
        pieces: &mut Vec<Piece>,
    ) -> Result<u64, ReadError> {
        let per_node = self.block_bytes / 4;
        let covered = per_node.pow(level + 1);
        if first >= blocks || node == 0 {
            return Ok(first + covered);
        }
        if pieces.len() > MAX_PIECES {
            return Err(damaged("a file has more pieces than any"));
        }
        let bytes = self.span.exactly(node * self.block_bytes, self.block_bytes as usize)?;
        let mut at = first;
        for entry in bytes.chunks_exact(4) {
            let block = u64::from(le32(entry, 0));
            if level == 0 {
                if at < blocks {
                    pieces.push((at, 1, block));
                }
                at += 1;
            } else {
                at = self.indirect(block, level - 1, at, blocks, pieces)?;
            }
        }
        Ok(first + covered)
    }

    fn entries(&self, directory: &Inode) -> Result<Vec<(String, u32)>, ReadError> {
        if directory.mode & TYPE_MASK != TYPE_DIRECTORY {
            return Err(ReadError::Absent);
        }
        let bytes = self.contents(directory, MAX_DIRECTORY_BYTES)?;
        let mut found = Vec::new();
        for block in bytes.chunks(self.block_bytes as usize) {
            let mut at = 0;
            while at + 8 <= block.len() {
                let (inode, length) = (le32(block, at), usize::from(le16(block, at + 4)));
                let name_bytes = if self.has_types {
                    usize::from(block[at + 6])
                } else {
                    usize::from(le16(block, at + 6))
                };
                if length < 8 || at + 8 + name_bytes > block.len() {
                    break;
                }
                let name = String::from_utf8_lossy(&block[at + 8..at + 8 + name_bytes]);
                if inode != 0 && name != "." && name != ".." && !name.is_empty() {
                    found.push((name.into_owned(), inode));
                }
                at += length;
            }
        }
        Ok(found)
    }

    fn find(&self, path: &Path) -> Result<Inode, ReadError> {
        let look = |directory: &Inode, name: &str| {
            let entries = self.entries(directory)?;
            let found = entries.into_iter().find(|(own, _)| own == name);
            let (_, number) = found.ok_or(ReadError::Absent)?;
            let inode = self.inode(number)?;
            if inode.mode & TYPE_MASK != TYPE_LINK {
                return Ok(Found::Node(inode));
            }
            self.link_text(&inode).map(Found::Link)
        };
        walk(self.inode(ROOT)?, path, &look)
    }

    /// What is at a path, a link at its end not followed.
    fn inode_itself(&self, path: &Path) -> Result<Inode, ReadError> {
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return self.find(path);
        };
        let entries = self.entries(&self.find(directory)?)?;
        let found = entries.into_iter().find(|(own, _)| name == own.as_str());
        self.inode(found.ok_or(ReadError::Absent)?.1)
    }

    /// Short links are where the places of blocks would be.
    fn link_text(&self, inode: &Inode) -> Result<String, ReadError> {
        let is_short = inode.size_bytes < 60 && inode.flags & FLAG_EXTENTS == 0;
        let bytes = if is_short {
            inode.places[..inode.size_bytes as usize].to_vec()
        } else {
            self.contents(inode, 4096)?
        };
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Filesystem for Ext4<'_> {
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

    fn mode(&self, path: &Path) -> Option<Result<u32, ReadError>> {
        Some(self.inode_itself(path).map(|inode| u32::from(inode.mode & PERMISSIONS)))
    }
}
