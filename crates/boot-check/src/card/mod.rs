//! A disk or an image of one as its partitions and their files, read without mounting anything.
//!
//! Each filesystem is one file here, and answers as [`Files`]: paths begin at its own root. Nothing is ever written.

mod btrfs;
mod ext4;
mod fat;
mod filesystem;
mod names;

pub use btrfs::{Btrfs, Subvolumes};

use rubus_host::block::disk_bytes::DiskBytes;
use rubus_host::{Files, ReadError};
use rubus_machine::signature::{
    END_BYTES, FoundTable, PartitionEntry, Table, Window, has_hybrid_mbr, partition_table,
};
use rubus_machine::superblock::{self, Superblock};

use ext4::Ext4;
use fat::Fat;
use filesystem::CardFiles;

/// The unit of most disks, and of what is read from a file.
pub const USUAL_BLOCK_BYTES: u32 = 512;
/// The units in which partition tables count.
const BLOCKS: [u32; 2] = [USUAL_BLOCK_BYTES, 4096];

/// Bytes that can be read in any place.
pub trait Bytes {
    fn size_bytes(&self) -> u64;

    /// The unit in which a partition table on it counts.
    fn block_bytes(&self) -> u32 {
        USUAL_BLOCK_BYTES
    }

    /// The bytes from `offset` on; fewer at the end.
    ///
    /// # Errors
    /// A sentence with the place.
    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, String>;
}

impl Bytes for DiskBytes {
    fn size_bytes(&self) -> u64 {
        DiskBytes::size_bytes(self)
    }

    fn block_bytes(&self) -> u32 {
        self.logical_block_bytes().unwrap_or(USUAL_BLOCK_BYTES)
    }

    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, String> {
        DiskBytes::read(self, offset, length)
    }
}

impl Bytes for Vec<u8> {
    fn size_bytes(&self) -> u64 {
        self.len() as u64
    }

    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, String> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.len());
        let end = start.saturating_add(length).min(self.len());
        Ok(self[start..end].to_vec())
    }
}

/// A part of a disk.
#[derive(Clone, Copy)]
pub struct Span<'a> {
    disk: &'a dyn Bytes,
    start_bytes: u64,
    size_bytes: u64,
}

impl<'a> Span<'a> {
    /// At most `size_bytes` of a disk from a place on.
    pub fn new(disk: &'a dyn Bytes, start_bytes: u64, size_bytes: u64) -> Self {
        let there = disk.size_bytes().saturating_sub(start_bytes);
        Span { disk, start_bytes, size_bytes: size_bytes.min(there) }
    }

    /// Exactly these bytes.
    fn exactly(&self, offset: u64, length: usize) -> Result<Vec<u8>, ReadError> {
        let end = offset.saturating_add(length as u64);
        if end > self.size_bytes {
            return Err(damaged("it points beyond the end of its partition"));
        }
        let bytes = self.disk.read(self.start_bytes + offset, length).map_err(ReadError::Other)?;
        if bytes.len() < length {
            return Err(damaged("the disk ends within it"));
        }
        Ok(bytes)
    }
}

fn damaged(why: &str) -> ReadError {
    ReadError::Other(format!("the filesystem is damaged: {why}"))
}

fn le16(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |two| u16::from_le_bytes([two[0], two[1]]))
}

fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from(le16(bytes, at)) | u32::from(le16(bytes, at + 2)) << 16
}

/// A disk as it is divided.
pub struct Card<'a> {
    disk: &'a dyn Bytes,
    /// Its table; a disk that one filesystem fills has none.
    pub table: Option<FoundTable>,
    pub partitions: Vec<Partition>,
    /// The unit in which its table counts, where that is another than the disk's: nothing is where the table says.
    pub foreign_blocks: Option<u32>,
    /// Whether an MBR beside a GPT names the first FAT partition first.
    pub is_hybrid: bool,
}

/// A partition and what is on it.
#[derive(Clone, Debug)]
pub struct Partition {
    pub entry: PartitionEntry,
    /// What its first bytes say; absent where nothing is recognised.
    pub filesystem: Option<Superblock>,
    /// Whether the disk ends before the partition does.
    pub is_cut: bool,
}

impl<'a> Card<'a> {
    /// Reads the table, and the first bytes of each partition.
    ///
    /// # Errors
    /// A sentence when nothing can be read.
    pub fn open(disk: &'a dyn Bytes) -> Result<Card<'a>, String> {
        let size = disk.size_bytes();
        let first = disk.read(0, END_BYTES)?;
        let last = disk.read(size.saturating_sub(END_BYTES as u64), END_BYTES)?;
        let window = Window::new(size, &first, &last);
        let own = disk.block_bytes();
        let (table, partitions) = divided(disk, window.with_logical_block(own))?;
        let mut foreign_blocks = None;
        if !has_any(&partitions) && table.as_ref().is_some_and(|table| table.kind == Table::Mbr) {
            for other in BLOCKS.into_iter().filter(|bytes| *bytes != own) {
                let (_, found) = divided(disk, window.with_logical_block(other))?;
                let fits = found.iter().all(|partition| !partition.is_cut);
                foreign_blocks = foreign_blocks.or((fits && has_any(&found)).then_some(other));
            }
        }
        let is_fat =
            |part: &&Partition| part.filesystem.as_ref().is_some_and(|found| found.kind == "vfat");
        let fat = partitions.iter().find(is_fat);
        let is_hybrid = fat.is_some_and(|fat| {
            has_hybrid_mbr(&window.with_logical_block(own), fat.entry.start_bytes)
        });
        Ok(Card { disk, table, partitions, foreign_blocks, is_hybrid })
    }

    /// The unit in which a table on the disk counts.
    pub fn block_bytes(&self) -> u32 {
        self.disk.block_bytes()
    }

    /// The bytes of a partition.
    pub fn span(&self, partition: &Partition) -> Span<'a> {
        Span::new(self.disk, partition.entry.start_bytes, partition.entry.size_bytes)
    }

    /// The files of a partition.
    ///
    /// # Errors
    /// Why they cannot be read.
    pub fn files(&self, partition: &Partition) -> Result<Box<dyn Files + 'a>, ReadError> {
        let kind = partition.filesystem.as_ref().map_or("nothing", |found| found.kind.as_str());
        let span = self.span(partition);
        match kind {
            "vfat" => Ok(Box::new(CardFiles(Fat::open(span)?))),
            "ext2" | "ext3" | "ext4" => Ok(Box::new(CardFiles(Ext4::open(span)?))),
            // What is mounted where no subvolume is named.
            "btrfs" => {
                let btrfs = Btrfs::open(span)?;
                btrfs.files(btrfs.default_subvolume()?)
            }
            other => Err(ReadError::Other(format!("{other} is not read without mounting it"))),
        }
    }
}

impl<'a> Card<'a> {
    /// A partition as a btrfs; absent where it is none, or one that cannot be read.
    pub fn btrfs(&self, partition: &Partition) -> Option<Btrfs<'a>> {
        let kind = partition.filesystem.as_ref()?.kind.as_str();
        (kind == "btrfs").then(|| Btrfs::open(self.span(partition)).ok())?
    }
}

/// Whether anything is recognised on one of them.
fn has_any(partitions: &[Partition]) -> bool {
    partitions.iter().any(|partition| partition.filesystem.is_some())
}

/// The table of a disk, and its partitions where that table has them.
fn divided(
    disk: &dyn Bytes,
    window: Window<'_>,
) -> Result<(Option<FoundTable>, Vec<Partition>), String> {
    let table = partition_table(&window);
    let entries = table.as_ref().map_or(Vec::new(), |table| table.partitions.clone());
    let block_bytes = u64::from(window.logical_block_bytes());
    let mut partitions = Vec::new();
    for entry in with_logical(disk, block_bytes, table.as_ref(), entries)? {
        let begin = disk.read(entry.start_bytes, END_BYTES.min(entry.size_bytes as usize))?;
        partitions.push(Partition {
            filesystem: superblock::identify(&Window::new(entry.size_bytes, &begin, &[])),
            is_cut: entry.start_bytes.saturating_add(entry.size_bytes) > window.device_bytes(),
            entry,
        });
    }
    Ok((table, partitions))
}

/// The logical partitions in the extended one of an MBR: a chain of tables, each with one partition and the place of the next.
fn with_logical(
    disk: &dyn Bytes,
    block_bytes: u64,
    table: Option<&FoundTable>,
    mut entries: Vec<PartitionEntry>,
) -> Result<Vec<PartitionEntry>, String> {
    const EXTENDED: [&str; 3] = ["0x05", "0x0f", "0x85"];
    /// More than any system makes; a chain that is longer leads in a circle.
    const MAX_LOGICAL: u32 = 60;
    let Some(table) = table.filter(|table| table.kind == Table::Mbr) else { return Ok(entries) };
    let is_extended = |entry: &PartitionEntry| EXTENDED.contains(&entry.type_id.as_str());
    let Some(extended) = entries.iter().find(|entry| is_extended(entry)).cloned() else {
        return Ok(entries);
    };
    let mut next = extended.start_bytes;
    for number in 5..5 + MAX_LOGICAL {
        let sector = disk.read(next, USUAL_BLOCK_BYTES as usize)?;
        if le16(&sector, 510) != 0xAA55 {
            break;
        }
        let (first, blocks) = (u64::from(le32(&sector, 454)), u64::from(le32(&sector, 458)));
        if let (Some(kind), true) = (sector.get(450).filter(|kind| **kind != 0), blocks > 0) {
            entries.push(PartitionEntry {
                number,
                start_bytes: next + first * block_bytes,
                size_bytes: blocks * block_bytes,
                type_id: format!("{kind:#04x}"),
                name: None,
                partuuid: table.id.as_ref().map(|id| format!("{id}-{number:02x}")),
            });
        }
        let link = u64::from(le32(&sector, 470));
        if link == 0 {
            break;
        }
        next = extended.start_bytes + link * block_bytes;
    }
    entries.retain(|entry| !is_extended(entry));
    Ok(entries)
}

#[cfg(test)]
mod tests;
