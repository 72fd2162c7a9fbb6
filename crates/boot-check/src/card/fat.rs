//! FAT12, FAT16 and FAT32, read without mounting.
//!
//! Format: Microsoft, "FAT: General Overview of On-Disk Format", version 1.03. Chains that lead in a circle or out of the
//! filesystem are errors, never endless.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;

use rubus_host::ReadError;

use super::filesystem::Filesystem;
use super::names::{Found, walk};
use super::{Span, damaged, le16, le32};

const ENTRY_BYTES: usize = 32;
const ATTRIBUTE_LONG_NAME: u8 = 0x0f;
const ATTRIBUTE_DIRECTORY: u8 = 0x10;
const ATTRIBUTE_VOLUME: u8 = 0x08;
/// A directory with more entries than this is damaged: the format's own limit.
const MAX_DIRECTORY_BYTES: usize = 65_536 * ENTRY_BYTES;
/// Bytes of the table that are kept at hand.
const PIECE_BYTES: u64 = 64 << 10;

/// A FAT filesystem.
pub struct Fat<'a> {
    span: Span<'a>,
    width: Width,
    cluster_bytes: u64,
    table_bytes: u64,
    data_bytes: u64,
    clusters: u32,
    root: Place,
    piece: RefCell<(u64, Vec<u8>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    Bits12,
    Bits16,
    Bits32,
}

/// Where a file or directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The root of a small filesystem: offset and length in bytes.
    Fixed(u64, usize),
    /// A chain of clusters; 0 for nothing.
    Chain(u32),
}

#[derive(Clone, Debug)]
struct Node {
    name: String,
    place: Place,
    size_bytes: u64,
    is_directory: bool,
}

impl<'a> Fat<'a> {
    /// # Errors
    /// When it is no FAT, or damaged.
    pub fn open(span: Span<'a>) -> Result<Fat<'a>, ReadError> {
        let sector = span.exactly(0, 512)?;
        let sector_bytes = u64::from(le16(&sector, 11));
        let cluster_bytes = sector_bytes * u64::from(sector[13]);
        let reserved = u64::from(le16(&sector, 14));
        let tables = u64::from(sector[16]);
        let root_entries = u64::from(le16(&sector, 17));
        let sectors = match le16(&sector, 19) {
            0 => u64::from(le32(&sector, 32)),
            few => u64::from(few),
        };
        let table_sectors = match le16(&sector, 22) {
            0 => u64::from(le32(&sector, 36)),
            few => u64::from(few),
        };
        let is_sound = sector_bytes.is_power_of_two()
            && (512..=4096).contains(&sector_bytes)
            && cluster_bytes.is_power_of_two()
            && tables > 0
            && reserved > 0;
        if !is_sound {
            return Err(damaged("its first sector contradicts itself"));
        }
        let root_bytes = (root_entries * ENTRY_BYTES as u64).div_ceil(sector_bytes) * sector_bytes;
        let table_bytes = reserved * sector_bytes;
        let root_at = table_bytes + tables * table_sectors * sector_bytes;
        let data_bytes = root_at + root_bytes;
        let data_sectors = (sectors * sector_bytes).saturating_sub(data_bytes);
        let clusters = u32::try_from(data_sectors / cluster_bytes).unwrap_or(u32::MAX >> 4);
        let width = match clusters {
            0..4085 => Width::Bits12,
            4085..65_525 => Width::Bits16,
            _ => Width::Bits32,
        };
        let root = if root_entries == 0 {
            Place::Chain(le32(&sector, 44))
        } else {
            Place::Fixed(root_at, root_bytes as usize)
        };
        let width = if root_entries == 0 { Width::Bits32 } else { width };
        let piece = RefCell::new((u64::MAX, Vec::new()));
        Ok(Fat { span, width, cluster_bytes, table_bytes, data_bytes, clusters, root, piece })
    }

    /// The cluster behind another one; nothing at the end.
    fn next(&self, cluster: u32) -> Result<Option<u32>, ReadError> {
        let (at, end) = match self.width {
            Width::Bits12 => (u64::from(cluster) * 3 / 2, 0xff7),
            Width::Bits16 => (u64::from(cluster) * 2, 0xfff7),
            Width::Bits32 => (u64::from(cluster) * 4, 0x0fff_fff7),
        };
        let next = match self.width {
            Width::Bits12 => {
                let pair = u32::from(self.table_le16(at)?);
                if cluster % 2 == 0 { pair & 0xfff } else { pair >> 4 }
            }
            Width::Bits16 => u32::from(self.table_le16(at)?),
            Width::Bits32 => {
                let low = u32::from(self.table_le16(at)?);
                (low | u32::from(self.table_le16(at + 2)?) << 16) & 0x0fff_ffff
            }
        };
        Ok((next < end).then_some(next))
    }

    fn table_le16(&self, at: u64) -> Result<u16, ReadError> {
        let low = self.table_byte(at)?;
        Ok(u16::from_le_bytes([low, self.table_byte(at + 1)?]))
    }

    fn table_byte(&self, at: u64) -> Result<u8, ReadError> {
        let number = at / PIECE_BYTES;
        let mut piece = self.piece.borrow_mut();
        if piece.0 != number {
            let start = self.table_bytes + number * PIECE_BYTES;
            let left = self.span.size_bytes.saturating_sub(start).min(PIECE_BYTES);
            *piece = (number, self.span.exactly(start, left as usize)?);
        }
        let byte = piece.1.get((at % PIECE_BYTES) as usize);
        byte.copied().ok_or_else(|| damaged("its table ends too early"))
    }

    /// At most `limit` bytes of a place.
    fn contents(&self, place: Place, limit: usize) -> Result<Vec<u8>, ReadError> {
        let first = match place {
            Place::Fixed(offset, length) => return self.span.exactly(offset, length.min(limit)),
            Place::Chain(first) => first,
        };
        let mut bytes = Vec::new();
        let mut cluster = Some(first).filter(|first| *first != 0);
        let mut runs = BTreeSet::new();
        while let Some(here) = cluster.filter(|_| bytes.len() < limit) {
            let (run, next) = self.run(here, limit - bytes.len())?;
            if !runs.insert(here) {
                return Err(damaged("a file's clusters lead in a circle"));
            }
            let offset = self.data_bytes + u64::from(here - 2) * self.cluster_bytes;
            let length = (u64::from(run) * self.cluster_bytes).min((limit - bytes.len()) as u64);
            bytes.extend(self.span.exactly(offset, length as usize)?);
            cluster = next;
        }
        Ok(bytes)
    }

    /// How many clusters follow each other on the disk from one on, for at most `limit` bytes, and what follows them.
    fn run(&self, first: u32, limit: usize) -> Result<(u32, Option<u32>), ReadError> {
        let mut here = first;
        let mut count = 1;
        loop {
            if here < 2 || here - 2 >= self.clusters {
                return Err(damaged("a file's clusters lead out of it"));
            }
            let next = self.next(here)?;
            let is_next = next == Some(here + 1);
            if !is_next || u64::from(count) * self.cluster_bytes >= limit as u64 {
                return Ok((count, next));
            }
            here += 1;
            count += 1;
        }
    }

    fn root_node(&self) -> Node {
        Node { name: String::new(), place: self.root, size_bytes: 0, is_directory: true }
    }

    fn entries(&self, directory: &Node) -> Result<Vec<Node>, ReadError> {
        if !directory.is_directory {
            return Err(ReadError::Absent);
        }
        let bytes = self.contents(directory.place, MAX_DIRECTORY_BYTES)?;
        let mut nodes = Vec::new();
        let mut long = LongName::default();
        for entry in bytes.chunks_exact(ENTRY_BYTES) {
            match (entry[0], entry[11]) {
                (0, _) => break,
                (0xe5, _) => long = LongName::default(),
                (_, ATTRIBUTE_LONG_NAME) => long.add(entry),
                (_, attributes) if attributes & ATTRIBUTE_VOLUME != 0 => long = LongName::default(),
                (_, attributes) => {
                    let name = std::mem::take(&mut long).name(entry);
                    nodes.push(self.node(name, entry, attributes));
                }
            }
        }
        nodes.retain(|node| node.name != "." && node.name != "..");
        Ok(nodes)
    }

    fn node(&self, name: String, entry: &[u8], attributes: u8) -> Node {
        let high = if self.width == Width::Bits32 { le16(entry, 20) } else { 0 };
        Node {
            name,
            place: Place::Chain(u32::from(high) << 16 | u32::from(le16(entry, 26))),
            size_bytes: u64::from(le32(entry, 28)),
            is_directory: attributes & ATTRIBUTE_DIRECTORY != 0,
        }
    }

    fn find(&self, path: &Path) -> Result<Node, ReadError> {
        let look = |directory: &Node, name: &str| {
            let entries = self.entries(directory)?;
            let found = entries.into_iter().find(|entry| entry.name.eq_ignore_ascii_case(name));
            found.map(Found::Node).ok_or(ReadError::Absent)
        };
        walk(self.root_node(), path, &look)
    }
}

/// A long name, as its entries come before the short one.
#[derive(Default)]
struct LongName {
    units: Vec<u16>,
    checksum: Option<u8>,
}

impl LongName {
    fn add(&mut self, entry: &[u8]) {
        const PLACES: [usize; 13] = [1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30];
        if entry[0] & 0x40 != 0 {
            *self = LongName { units: Vec::new(), checksum: Some(entry[13]) };
        }
        let units = PLACES.iter().map(|place| le16(entry, *place));
        let mut units: Vec<u16> = units.take_while(|unit| *unit != 0 && *unit != 0xffff).collect();
        units.append(&mut self.units);
        self.units = units;
    }

    /// The long name where it belongs to this entry, else the short one.
    fn name(self, entry: &[u8]) -> String {
        let sum = entry[..11].iter().fold(0u8, |sum, byte| sum.rotate_right(1).wrapping_add(*byte));
        if self.checksum == Some(sum) && !self.units.is_empty() {
            return String::from_utf16_lossy(&self.units);
        }
        let part = |bytes: &[u8], is_small: bool| {
            let text = String::from_utf8_lossy(bytes).trim_end().to_string();
            if is_small { text.to_ascii_lowercase() } else { text }
        };
        let base = part(&entry[..8], entry[12] & 0x08 != 0);
        let end = part(&entry[8..11], entry[12] & 0x10 != 0);
        if end.is_empty() { base } else { format!("{base}.{end}") }
    }
}

impl Filesystem for Fat<'_> {
    fn read_prefix(&self, path: &Path, limit: usize) -> Result<Vec<u8>, ReadError> {
        let node = self.find(path)?;
        if node.is_directory {
            return Err(ReadError::Other("it is a directory".into()));
        }
        let length = usize::try_from(node.size_bytes).unwrap_or(usize::MAX).min(limit);
        let bytes = self.contents(node.place, length)?;
        if bytes.len() < length {
            return Err(damaged("a file ends before its size"));
        }
        Ok(bytes)
    }

    fn names(&self, path: &Path) -> Result<Vec<String>, ReadError> {
        let entries = self.entries(&self.find(path)?)?;
        Ok(entries.into_iter().map(|entry| entry.name).collect())
    }

    fn look_up(&self, path: &Path) -> Result<(), ReadError> {
        self.find(path).map(|_| ())
    }

    /// It has none.
    fn mode(&self, _: &Path) -> Option<Result<u32, ReadError>> {
        None
    }
}
