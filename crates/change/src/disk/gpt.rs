//! Building a GUID partition table. Format: UEFI Specification 2.10, section 5.3.

use super::extent::{Extent, TableError};
use super::guid::Guid;
use super::mbr;
use crate::volume::{Partition, PartitionRole};
use rubus_machine::signature::crc32;

const ENTRIES: u32 = 128;
const ENTRY_BYTES: u32 = 128;
const HEADER_BYTES: u32 = 92;

/// How many bytes the table takes at each end, with the protective MBR at the start.
pub(super) fn end_bytes(block_bytes: u32) -> (u64, u64) {
    let block = u64::from(block_bytes);
    let entries = u64::from(ENTRIES * ENTRY_BYTES).next_multiple_of(block);
    (2 * block + entries, entries + block)
}

/// The backup first, then entries and header, then the protective MBR, so that a write that is cut
/// leaves either nothing that looks whole or something that can be read from one end.
pub(super) fn extents(
    disk: Guid,
    partitions: &[Partition],
    device_bytes: u64,
    block_bytes: u32,
) -> Result<Vec<Extent>, TableError> {
    let block = u64::from(block_bytes);
    let blocks = device_bytes / block;
    let entries = entries(partitions, block)?;
    let entry_blocks = entries.len() as u64 / block;
    let header = |own: u64, other: u64, entries_at: u64| Header {
        own,
        other,
        entries_at,
        first_usable: 2 + entry_blocks,
        last_usable: blocks - entry_blocks - 2,
        disk,
        entries_checksum: crc32(&[&entries[..(ENTRIES * ENTRY_BYTES) as usize]]),
    };
    let backup_entries = blocks - entry_blocks - 1;
    let primary = header(1, blocks - 1, 2).bytes(block_bytes);
    let backup = header(blocks - 1, 1, backup_entries).bytes(block_bytes);
    Ok(vec![
        extent(backup_entries * block, entries.clone()),
        extent((blocks - 1) * block, backup),
        extent(2 * block, entries),
        extent(block, primary),
        mbr::protective(blocks, block_bytes),
    ])
}

fn extent(offset_bytes: u64, bytes: Vec<u8>) -> Extent {
    Extent { offset_bytes, bytes }
}

struct Header {
    own: u64,
    other: u64,
    entries_at: u64,
    first_usable: u64,
    last_usable: u64,
    disk: Guid,
    entries_checksum: u32,
}

impl Header {
    /// One logical block.
    fn bytes(&self, block_bytes: u32) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(block_bytes as usize);
        bytes.extend(b"EFI PART");
        for word in [0x0001_0000, HEADER_BYTES, 0, 0] {
            bytes.extend(u32::to_le_bytes(word));
        }
        for place in [self.own, self.other, self.first_usable, self.last_usable] {
            bytes.extend(place.to_le_bytes());
        }
        bytes.extend(self.disk.efi_bytes());
        bytes.extend(self.entries_at.to_le_bytes());
        for word in [ENTRIES, ENTRY_BYTES, self.entries_checksum] {
            bytes.extend(word.to_le_bytes());
        }
        let checksum = crc32(&[&bytes]);
        bytes[16..20].copy_from_slice(&checksum.to_le_bytes());
        bytes.resize(block_bytes as usize, 0);
        bytes
    }
}

/// All entries, used or not, in whole logical blocks.
fn entries(partitions: &[Partition], block: u64) -> Result<Vec<u8>, TableError> {
    let length = u64::from(ENTRIES * ENTRY_BYTES).next_multiple_of(block);
    let mut bytes = vec![0; length as usize];
    for partition in partitions {
        let number = partition.number;
        let own = Guid::parse(&partition.partuuid).ok_or_else(|| TableError::BadIdentifier {
            what: format!("the PARTUUID of partition {number}"),
            text: partition.partuuid.clone(),
        })?;
        let (kind, name) = type_guid(partition.role);
        let first = partition.start_bytes / block;
        let last = first + partition.size_bytes / block - 1;
        let at = (ENTRY_BYTES * (number - 1)) as usize;
        let entry = &mut bytes[at..at + ENTRY_BYTES as usize];
        entry[..16].copy_from_slice(&kind.efi_bytes());
        entry[16..32].copy_from_slice(&own.efi_bytes());
        entry[32..40].copy_from_slice(&first.to_le_bytes());
        entry[40..48].copy_from_slice(&last.to_le_bytes());
        for (index, unit) in name.encode_utf16().enumerate() {
            entry[56 + 2 * index..58 + 2 * index].copy_from_slice(&unit.to_le_bytes());
        }
    }
    Ok(bytes)
}

/// The type for what a partition is for, and its name. Sources: UEFI Specification (EFI system partition),
/// the discoverable partitions specification and util-linux for the others. The firmware of a Raspberry Pi
/// reads FAT from a partition of basic data.
pub(super) fn type_guid(role: PartitionRole) -> (Guid, &'static str) {
    let (digits, name) = match role {
        PartitionRole::Boot => (0xebd0_a0a2_b9e5_4433_87c0_68b6_b726_99c7, "boot"),
        PartitionRole::Linux => (0x0fc6_3daf_8483_4772_8e79_3d69_d847_7de4, "linux"),
        PartitionRole::Swap => (0x0657_fd6d_a4ab_43c4_84e5_0933_c84b_4f4f, "swap"),
        PartitionRole::Raid => (0xa19d_880f_05fc_4d3b_a006_743f_0f84_911e, "raid"),
    };
    (Guid::from_u128(digits), name)
}
