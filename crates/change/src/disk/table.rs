//! A plan's partition table as bytes, and whether those bytes are on a disk.

pub use super::extent::{Extent, TableError};
use super::guid::Guid;
use super::{gpt, mbr};
use crate::volume::{Partition, PartitionTable, TableKind};
use rubus_machine::signature::{self, Table, Window};

/// What has to be written so that a disk has this table, in this order, with a flush after each: a cut
/// leaves no table, or one that can be read. The rest of the disk is not touched: remains of an older table or filesystem
/// have to be overwritten before ([`remains`]).
///
/// # Errors
/// [`TableError`] when the table cannot be on a disk of that size.
pub fn extents(
    table: &PartitionTable,
    device_bytes: u64,
    logical_block_bytes: u32,
) -> Result<Vec<Extent>, TableError> {
    check(table, device_bytes, logical_block_bytes)?;
    match &table.kind {
        TableKind::Mbr { disk_id } => {
            mbr::extents(*disk_id, &table.partitions, logical_block_bytes)
        }
        TableKind::Gpt { disk_guid } => gpt::extents(
            guid("the disk's identifier", disk_guid)?,
            &table.partitions,
            device_bytes,
            logical_block_bytes,
        ),
    }
}

/// Where remains of older tables, filesystems and arrays can be, as (offset, length): the first and the last
/// MiB of the disk.
pub fn remains(device_bytes: u64) -> Vec<(u64, u64)> {
    let end = (signature::END_BYTES as u64).min(device_bytes);
    if device_bytes > 2 * end {
        vec![(0, end), (device_bytes - end, end)]
    } else {
        vec![(0, device_bytes)]
    }
}

/// Whether a disk has exactly this table, and nothing in it is damaged. What is different, in words, if
/// not.
pub fn difference(table: &PartitionTable, window: &Window<'_>) -> Option<String> {
    let wanted = match extents(table, window.device_bytes(), window.logical_block_bytes()) {
        Ok(wanted) => wanted,
        Err(error) => return Some(error.to_string()),
    };
    let found = match signature::partition_table(window) {
        Some(found) => found,
        None => return Some("there is no partition table".into()),
    };
    let kind = match table.kind {
        TableKind::Mbr { .. } => Table::Mbr,
        TableKind::Gpt { .. } => Table::Gpt,
    };
    if found.kind != kind {
        let phrase = signature::Kind::PartitionTable(found.kind).phrase();
        return Some(format!("there is {phrase}"));
    }
    let partuuids = |numbers: Vec<(u32, Option<&str>)>| -> String {
        let words: Vec<String> =
            numbers.iter().map(|(number, id)| format!("{number}: {}", id.unwrap_or("?"))).collect();
        words.join(", ")
    };
    let differs = |extent: &&Extent| !is_as_written(extent, window);
    let extent = wanted.iter().find(differs)?;
    let there = found.partitions.iter();
    let there = partuuids(there.map(|p| (p.number, p.partuuid.as_deref())).collect());
    Some(format!(
        "the table differs at byte {}; it has the partitions {there}",
        extent.offset_bytes
    ))
}

/// Boot code may have been put in front of the table afterwards.
fn is_as_written(extent: &Extent, window: &Window<'_>) -> bool {
    let skipped = if extent.offset_bytes == 0 { 440 } else { 0 };
    let offset = extent.offset_bytes + skipped as u64;
    let there = window.at(offset, extent.bytes.len() - skipped);
    there == Some(&extent.bytes[skipped..])
}

/// Whether a table can be on a disk of that size.
///
/// # Errors
/// [`TableError`] when it cannot.
pub fn check(
    table: &PartitionTable,
    device_bytes: u64,
    logical_block_bytes: u32,
) -> Result<(), TableError> {
    let is_block =
        logical_block_bytes.is_power_of_two() && (512..=65_536).contains(&logical_block_bytes);
    if !is_block {
        return Err(TableError::BadBlock(logical_block_bytes));
    }
    let (mut first_bytes, last_bytes, most) = room(&table.kind, device_bytes, logical_block_bytes);
    if table.partitions.is_empty() {
        return Err(TableError::Empty);
    }
    let mut before = 0;
    for partition in &table.partitions {
        let number = partition.number;
        if number <= before || number > most {
            return Err(TableError::BadNumber { number, most });
        }
        before = number;
        first_bytes = check_place(partition, logical_block_bytes, first_bytes, last_bytes)?;
        check_identifier(partition, &table.kind)?;
    }
    check_disk_identifier(&table.kind)
}

/// Where partitions may begin, where the last must end, and their largest number.
fn room(kind: &TableKind, device_bytes: u64, block_bytes: u32) -> (u64, u64, u32) {
    let whole = device_bytes - device_bytes % u64::from(block_bytes);
    match kind {
        TableKind::Mbr { .. } => (u64::from(block_bytes), whole, 4),
        TableKind::Gpt { .. } => {
            let (start, end) = gpt::end_bytes(block_bytes);
            (start, whole.saturating_sub(end), 128)
        }
    }
}

/// Where the next one may begin.
fn check_place(
    partition: &Partition,
    block_bytes: u32,
    first_bytes: u64,
    last_bytes: u64,
) -> Result<u64, TableError> {
    let (number, start_bytes) = (partition.number, partition.start_bytes);
    let block = u64::from(block_bytes);
    let is_even = start_bytes % block == 0 && partition.size_bytes % block == 0;
    if !is_even || partition.size_bytes == 0 {
        return Err(TableError::Uneven { number, block_bytes });
    }
    let end_bytes = start_bytes.saturating_add(partition.size_bytes);
    if start_bytes < first_bytes || end_bytes > last_bytes {
        return Err(TableError::OutOfPlace {
            number,
            start_bytes,
            end_bytes,
            first_bytes,
            last_bytes,
        });
    }
    Ok(end_bytes)
}

fn check_identifier(partition: &Partition, kind: &TableKind) -> Result<(), TableError> {
    let wanted = match kind {
        TableKind::Mbr { disk_id } => mbr_partuuid(*disk_id, partition.number),
        TableKind::Gpt { .. } => guid("a PARTUUID", &partition.partuuid)?.to_string(),
    };
    if wanted == partition.partuuid {
        return Ok(());
    }
    Err(TableError::BadIdentifier {
        what: format!("the PARTUUID of partition {}", partition.number),
        text: partition.partuuid.clone(),
    })
}

fn check_disk_identifier(kind: &TableKind) -> Result<(), TableError> {
    match kind {
        TableKind::Mbr { disk_id: 0 } => Err(TableError::BadIdentifier {
            what: "the disk's identifier".into(),
            text: "0".into(),
        }),
        TableKind::Mbr { .. } => Ok(()),
        TableKind::Gpt { disk_guid } => guid("the disk's identifier", disk_guid).map(|_| ()),
    }
}

fn guid(what: &str, text: &str) -> Result<Guid, TableError> {
    Guid::parse(text)
        .ok_or_else(|| TableError::BadIdentifier { what: what.into(), text: text.into() })
}

/// The PARTUUID that the kernel gives to a partition of an MBR (Linux, block/partitions/msdos.c).
pub fn mbr_partuuid(disk_id: u32, number: u32) -> String {
    format!("{disk_id:08x}-{number:02x}")
}

#[cfg(test)]
mod tests;
