//! Building the table of the IBM PC: one sector with four entries.

use super::extent::{Extent, TableError};
use crate::volume::{Partition, PartitionRole};

/// The whole first logical block, without boot code. The table counts in logical blocks.
pub(super) fn extents(
    disk_id: u32,
    partitions: &[Partition],
    block_bytes: u32,
) -> Result<Vec<Extent>, TableError> {
    let mut bytes = vec![0; block_bytes as usize];
    bytes[440..444].copy_from_slice(&disk_id.to_le_bytes());
    for partition in partitions {
        let entry = entry(partition, block_bytes)?;
        let at = 446 + 16 * (partition.number as usize - 1);
        bytes[at..at + 16].copy_from_slice(&entry);
    }
    bytes[510..512].copy_from_slice(&[0x55, 0xAA]);
    Ok(vec![Extent { offset_bytes: 0, bytes }])
}

/// The entry in front of a GPT: everything is taken. Source: UEFI Specification 2.10, section 5.2.3.
pub(super) fn protective(blocks: u64, block_bytes: u32) -> Extent {
    let mut bytes = vec![0; block_bytes as usize];
    let length = u32::try_from(blocks - 1).unwrap_or(u32::MAX);
    bytes[447..450].copy_from_slice(&[0x00, 0x02, 0x00]);
    bytes[450] = 0xEE;
    bytes[451..454].copy_from_slice(&[0xFF, 0xFF, 0xFF]);
    bytes[454..458].copy_from_slice(&1_u32.to_le_bytes());
    bytes[458..462].copy_from_slice(&length.to_le_bytes());
    bytes[510..512].copy_from_slice(&[0x55, 0xAA]);
    Extent { offset_bytes: 0, bytes }
}

fn entry(partition: &Partition, block_bytes: u32) -> Result<[u8; 16], TableError> {
    let block = u64::from(block_bytes);
    let beyond = || TableError::BeyondMbr { number: partition.number };
    let first = u32::try_from(partition.start_bytes / block).map_err(|_| beyond())?;
    let count = u32::try_from(partition.size_bytes / block).map_err(|_| beyond())?;
    let last = first.checked_add(count - 1).ok_or_else(beyond)?;
    let mut entry = [0; 16];
    entry[1..4].copy_from_slice(&cylinder_head_sector(first));
    entry[4] = type_code(partition.role);
    entry[5..8].copy_from_slice(&cylinder_head_sector(last));
    entry[8..12].copy_from_slice(&first.to_le_bytes());
    entry[12..16].copy_from_slice(&count.to_le_bytes());
    Ok(entry)
}

/// The type code for what a partition is for.
pub(super) fn type_code(role: PartitionRole) -> u8 {
    match role {
        // FAT32 that is addressed by blocks.
        PartitionRole::Boot => 0x0C,
        PartitionRole::Linux => 0x83,
        PartitionRole::Swap => 0x82,
        PartitionRole::Raid => 0xFD,
    }
}

/// The old way to say a place, with the usual 255 heads and 63 sectors; what lies beyond its 1024
/// cylinders gets the largest value.
fn cylinder_head_sector(block: u32) -> [u8; 3] {
    let (cylinder, rest) = (block / (255 * 63), block % (255 * 63));
    if cylinder > 1023 {
        return [0xFE, 0xFF, 0xFF];
    }
    let (head, sector) = (rest / 63, rest % 63 + 1);
    [head as u8, sector as u8 | (cylinder >> 2 & 0xC0) as u8, (cylinder & 0xFF) as u8]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_addresses_are_those_of_fdisk() {
        assert_eq!(cylinder_head_sector(2048), [0x20, 0x21, 0x00]);
        assert_eq!(cylinder_head_sector(16_384), [0x05, 0x05, 0x01]);
        assert_eq!(cylinder_head_sector(1023 * 255 * 63), [0x00, 0xC1, 0xFF]);
        assert_eq!(cylinder_head_sector(u32::MAX), [0xFE, 0xFF, 0xFF]);
    }
}
