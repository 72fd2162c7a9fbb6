//! Partition tables: MBR with its four primary entries, and GPT with either header.
//!
//! Formats: UEFI Specification 2.10, section 5 (GUID partition table and protective MBR); the
//! IBM PC's boot sector for the rest. Logical partitions inside an extended one are not followed:
//! their chain may lie anywhere on the disk, and the extended partition itself is listed.

use rubus_boot::chain::FAT_TYPES;

use super::bytes::{Window, crc32};
use super::{Kind, Signature, Table, filesystems};

const MBR_FIRST_ENTRY: u64 = 446;
const MBR_ENTRIES: u64 = 4;
const TYPE_PROTECTIVE: u8 = 0xEE;
/// Logical blocks with which a GPT may have been written, the usual ones first.
const GPT_BLOCKS: [u64; 4] = [512, 4096, 2048, 1024];
/// No sane table has more; the standard asks for 128.
const GPT_MAX_ENTRIES: u32 = 1024;

/// One partition as its table describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionEntry {
    /// Its number, from 1.
    pub number: u32,
    /// Where it begins, in bytes from the start of the disk.
    pub start_bytes: u64,
    /// How long it is.
    pub size_bytes: u64,
    /// Type: `0x0c` in an MBR, a GUID in lower case in a GPT.
    pub type_id: String,
    /// Name, in a GPT.
    pub name: Option<String>,
    /// Its PARTUUID as the kernel says it: `3b0a02d1-02` in an MBR that has an identifier, a GUID in a GPT.
    pub partuuid: Option<String>,
}

/// The table that divides a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundTable {
    /// Kind of the table.
    pub kind: Table,
    /// Its identifier: eight hexadecimal digits, or a GUID.
    pub id: Option<String>,
    /// Its partitions, in the order of their numbers.
    pub partitions: Vec<PartitionEntry>,
}

/// The table of a disk: the GPT where there is one, even damaged; else the MBR.
pub fn partition_table(window: &Window<'_>) -> Option<FoundTable> {
    let mut found = Vec::new();
    sniff(window, &mut found);
    let first = found.into_iter().next()?;
    let Kind::PartitionTable(kind) = first.kind else {
        return None;
    };
    Some(FoundTable { kind, id: first.uuid, partitions: partitions(window) })
}

pub(super) fn sniff(window: &Window<'_>, found: &mut Vec<Signature>) {
    let gpt = gpt_header(window);
    if let Some(header) = &gpt {
        let claimed = header
            .last_block
            .checked_add(1)
            .and_then(|blocks| blocks.checked_mul(header.block_bytes));
        found.push(
            Signature::new(Kind::PartitionTable(Table::Gpt), header.offset)
                .uuid(window.guid(header.offset + 56))
                .size(claimed.filter(|_| header.intact)),
        );
    }
    if let Some(types) = mbr_types(window) {
        let protective = types.contains(&TYPE_PROTECTIVE);
        if protective && gpt.is_some() {
            return;
        }
        let table = if protective { Table::ProtectiveMbr } else { Table::Mbr };
        let id = window.le32(440).filter(|id| *id != 0);
        found.push(
            Signature::new(Kind::PartitionTable(table), 510).uuid(id.map(|id| format!("{id:08x}"))),
        );
    }
}

/// The partitions that the device's own table lists: those of the GPT where there is one, else
/// the used primary entries of the MBR. In the order of their numbers.
pub fn partitions(window: &Window<'_>) -> Vec<PartitionEntry> {
    match gpt_header(window) {
        Some(header) => gpt_entries(window, &header),
        None => mbr_entries(window),
    }
}

/// Whether the MBR beside a GPT lists the partition that begins at this byte first, as one of FAT: so boards start that know no
/// GPT. Source: raspberrypi/documentation, issue 1291; home-assistant/operating-system, pull request 969.
pub fn has_hybrid_mbr(window: &Window<'_>, start_bytes: u64) -> bool {
    let is_it = |entry: &PartitionEntry| {
        let is_fat = FAT_TYPES.contains(&entry.type_id.as_str());
        entry.number == 1 && entry.start_bytes == start_bytes && is_fat
    };
    gpt_header(window).is_some() && mbr_entries(window).iter().any(is_it)
}

struct GptHeader {
    offset: u64,
    block_bytes: u64,
    /// Whether its checksum is right. A damaged table is still one.
    intact: bool,
    last_block: u64,
}

/// The header that is intact, the first before the backup; else any that has the magic text.
fn gpt_header(window: &Window<'_>) -> Option<GptHeader> {
    let mut damaged = None;
    for block_bytes in GPT_BLOCKS {
        let backup = window.device_bytes().checked_sub(block_bytes);
        for offset in [Some(block_bytes), backup].into_iter().flatten() {
            if !window.is(offset, b"EFI PART") {
                continue;
            }
            let own = window.le64(offset + 24).unwrap_or(0);
            let other = window.le64(offset + 32).unwrap_or(0);
            let header = GptHeader {
                offset,
                block_bytes,
                intact: gpt_checksum_is_right(window, offset, block_bytes),
                last_block: own.max(other),
            };
            if header.intact {
                return Some(header);
            }
            damaged.get_or_insert(header);
        }
    }
    damaged
}

fn gpt_checksum_is_right(window: &Window<'_>, offset: u64, block_bytes: u64) -> bool {
    let Some(length) = window.le32(offset + 12) else {
        return false;
    };
    if length < 92 || u64::from(length) > block_bytes {
        return false;
    }
    let Some(bytes) = window.at(offset, length as usize) else {
        return false;
    };
    // The checksum's own field counts as zero.
    window.le32(offset + 16) == Some(crc32(&[&bytes[..16], &[0; 4], &bytes[20..]]))
}

fn gpt_entries(window: &Window<'_>, header: &GptHeader) -> Vec<PartitionEntry> {
    let field = |at: u64| window.le32(header.offset + at).unwrap_or(0);
    let count = field(80).min(GPT_MAX_ENTRIES);
    let entry_bytes = u64::from(field(84));
    let table =
        window.le64(header.offset + 72).and_then(|block| block.checked_mul(header.block_bytes));
    let Some(table) = table.filter(|_| entry_bytes >= 128) else {
        return Vec::new();
    };
    (0..count)
        .filter_map(|index| {
            let at = table.checked_add(u64::from(index) * entry_bytes)?;
            let type_id = window.guid(at)?;
            let first = window.le64(at + 32)?;
            let last = window.le64(at + 40)?;
            let blocks = last.checked_sub(first)?.checked_add(1)?;
            Some(PartitionEntry {
                number: index + 1,
                start_bytes: first.checked_mul(header.block_bytes)?,
                size_bytes: blocks.checked_mul(header.block_bytes)?,
                type_id,
                name: window.text_utf16(at + 56, 36).filter(|name| !name.is_empty()),
                partuuid: window.guid(at + 16),
            })
        })
        .collect()
}

/// The four type bytes when sector 0 is an MBR: the boot mark, and boot flags that are flags. The
/// boot sector of a filesystem has the same mark, but code where the entries would be, or says
/// itself what it is.
fn mbr_types(window: &Window<'_>) -> Option<[u8; 4]> {
    if !window.is(510, &[0x55, 0xAA]) || filesystems::is_boot_sector(window) {
        return None;
    }
    let mut types = [0; 4];
    for index in 0..MBR_ENTRIES {
        let entry = window.at(MBR_FIRST_ENTRY + 16 * index, 16)?;
        if entry[0] & 0x7F != 0 {
            return None;
        }
        types[index as usize] = entry[4];
    }
    Some(types)
}

fn mbr_entries(window: &Window<'_>) -> Vec<PartitionEntry> {
    if mbr_types(window).is_none() {
        return Vec::new();
    }
    let block = u64::from(window.logical_block_bytes());
    let disk_id = window.le32(440).filter(|id| *id != 0);
    (0..MBR_ENTRIES)
        .filter_map(|index| {
            let at = MBR_FIRST_ENTRY + 16 * index;
            let type_id = window.u8(at + 4)?;
            let first = u64::from(window.le32(at + 8)?);
            let blocks = u64::from(window.le32(at + 12)?);
            (type_id != 0 && blocks != 0).then(|| PartitionEntry {
                number: index as u32 + 1,
                start_bytes: first * block,
                size_bytes: blocks * block,
                type_id: format!("0x{type_id:02x}"),
                name: None,
                partuuid: disk_id.map(|id| format!("{id:08x}-{:02x}", index + 1)),
            })
        })
        .collect()
}
