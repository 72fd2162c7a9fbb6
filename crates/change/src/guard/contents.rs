//! What would be lost: what the bytes of the device and of its partitions say.
//!
//! Only a part of the device is read: both ends of it and of every partition, and between them the places where
//! partitions usually begin, where filesystems keep a copy of their superblock, and blocks at equal distances. A device
//! counts as blank when all of that is zero.

use rubus_host::block::blockdev::OpenDevice;
use rubus_machine::signature::{self, END_BYTES, Kind, Window, all_zero};

use super::facts::{Content, SpanOnDisk};

/// How many blocks at equal distances are looked at between the ends, and how long each is.
const SAMPLES: u64 = 62;
const SAMPLE_BYTES: usize = 4096;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Where partitioning programs and images of boards let partitions begin, in MiB: behind the first one's 4 or 8 MiB of
/// Raspberry Pi OS, its boot partition of 128, 256 or 512 MiB, and the starts of other systems.
const PARTITION_STARTS_MIB: [u64; 22] = [
    1, 2, 4, 8, 16, 32, 64, 100, 128, 132, 136, 256, 257, 260, 264, 272, 512, 513, 516, 520, 1024,
    1028,
];
/// How much of a partition's start is looked at: every format that is recognised has a mark in it.
const START_BYTES: usize = 128 << 10;

/// The copies of the superblock of btrfs. Source: btrfs documentation, "On-disk format".
const BTRFS_MIRRORS: [u64; 2] = [64 * MIB, 256 * GIB];

/// The groups of ext4 that have a copy of the superblock, with the feature `sparse_super`. Source: Linux,
/// Documentation/filesystems/ext4/special_inodes.rst, blockgroup.rst.
const EXT4_BACKUP_GROUPS: [u64; 5] = [1, 3, 5, 7, 9];
/// The size of a group for blocks of 1, 2 and 4 KiB: one block has as many bits as the group has blocks.
const EXT4_GROUP_BYTES: [u64; 3] = [8 * MIB, 32 * MIB, 128 * MIB];
/// XFS repeats its superblock in each allocation group, and makes four on a single disk.
const XFS_GROUPS: u64 = 4;

/// No table that a person made has more; the rest is counted.
const MAX_PARTITIONS: usize = 32;

/// Everything on the device, itself first, then its partitions in the order of the disk. Empty
/// only for a device that is blank and has no partitions. What cannot be read counts as content.
pub(super) fn look(device: &OpenDevice, partitions: &[SpanOnDisk]) -> Vec<Content> {
    let whole = SpanOnDisk { name: String::new(), start_bytes: 0, size_bytes: device.size_bytes() };
    let on = |partition: Option<&str>, what: String, size_bytes: Option<u64>| Content {
        partition: partition.map(str::to_string),
        what,
        size_bytes,
    };
    let mut found = Vec::new();
    let own = span(device, &whole);
    let partitions = match &own {
        Ok(own) if partitions.is_empty() => own.partitions.clone(),
        _ => partitions.to_vec(),
    };
    match own {
        Ok(own) if own.signatures.is_empty() => {
            let middle = if own.blank { middle(device) } else { None };
            let what = match (own.blank, middle) {
                (true, None) => None,
                (true, Some(why)) => Some(why),
                (false, _) => Some("data of an unknown kind".to_string()),
            };
            if let Some(what) = what.filter(|_| partitions.is_empty()) {
                found.push(on(None, what, None));
            }
        }
        Ok(own) => found.extend(own.signatures.into_iter().map(|what| on(None, what, None))),
        Err(why) => found.push(on(None, unreadable(&why), None)),
    }
    for partition in partitions.iter().take(MAX_PARTITIONS) {
        let what = match span(device, partition) {
            Ok(own) if !own.signatures.is_empty() => own.signatures.join(" and "),
            Ok(own) if own.blank => "nothing but zeros at both ends".to_string(),
            Ok(_) => "data of an unknown kind".to_string(),
            Err(why) => unreadable(&why),
        };
        found.push(on(Some(&partition.name), what, Some(partition.size_bytes)));
    }
    if let Some(more) = partitions.len().checked_sub(MAX_PARTITIONS).filter(|n| *n > 0) {
        found.push(on(None, format!("{more} more partitions"), None));
    }
    found
}

fn unreadable(why: &str) -> String {
    format!("something that cannot be told: {why}")
}

struct SpanContents {
    /// Signatures found, in words.
    signatures: Vec<String>,
    /// Whether both ends are all zero.
    blank: bool,
    /// The partitions that a table in it lists.
    partitions: Vec<SpanOnDisk>,
}

fn span(device: &OpenDevice, span: &SpanOnDisk) -> Result<SpanContents, String> {
    let end_bytes = span.size_bytes.min(END_BYTES as u64);
    let last_begins = span.size_bytes - end_bytes;
    let read = |offset: u64| -> Result<Vec<u8>, String> {
        let at = span.start_bytes.checked_add(offset).ok_or("it lies beyond any device")?;
        device.read(at, end_bytes as usize)
    };
    let first = read(0)?;
    let last = read(last_begins)?;
    let window = Window::new(span.size_bytes, &first, &last)
        .with_logical_block(device.logical_block_bytes());
    let signatures = signature::sniff(&window);
    let divided = signatures.iter().any(|found| matches!(found.kind, Kind::PartitionTable(_)));
    let partitions = signature::partitions(&window).into_iter().map(|entry| SpanOnDisk {
        name: format!("partition {}", entry.number),
        start_bytes: span.start_bytes.saturating_add(entry.start_bytes),
        size_bytes: entry.size_bytes,
    });
    Ok(SpanContents {
        partitions: partitions.filter(|_| divided).collect(),
        signatures: signatures.iter().map(|found| found.phrase()).collect(),
        blank: all_zero(&first) && all_zero(&last),
    })
}

/// Data between blank ends, from a few places; none when those are zero as well.
fn middle(device: &OpenDevice) -> Option<String> {
    for (offset, length) in places_between(device.size_bytes()) {
        match device.read(offset, length) {
            Ok(bytes) if all_zero(&bytes) => {}
            Ok(bytes) => return Some(behind_a_blank_start(device, offset, &bytes)),
            Err(why) => return Some(unreadable(&why)),
        }
    }
    None
}

/// What bytes that are not zero are, in words: a filesystem that begins there, or anything.
fn behind_a_blank_start(device: &OpenDevice, offset: u64, bytes: &[u8]) -> String {
    let window = Window::new(device.size_bytes() - offset, bytes, &[]);
    let found = signature::sniff(&window);
    let what = found.first().map(|found| found.phrase());
    let what = what.unwrap_or_else(|| "data of an unknown kind".into());
    format!("{what} behind a blank start")
}

/// Where to look between the first and the last MiB of a device, as (offset, length), in ascending order. All of it lies
/// on the device.
fn places_between(size: u64) -> Vec<(u64, usize)> {
    let (first, last) = (END_BYTES as u64, size.saturating_sub(END_BYTES as u64));
    let starts = PARTITION_STARTS_MIB.iter().map(|at| (at * MIB, START_BYTES));
    let copies =
        BTRFS_MIRRORS.into_iter().chain(EXT4_GROUP_BYTES.into_iter().flat_map(|group_bytes| {
            EXT4_BACKUP_GROUPS.into_iter().map(move |group| group * group_bytes)
        }));
    // A group is a whole number of blocks of 4 KiB.
    let xfs_group = size.div_ceil(4096).div_ceil(XFS_GROUPS) * 4096;
    let copies = copies.chain((1..XFS_GROUPS).map(|group| group * xfs_group));
    let copies = copies.map(|at| (at, SAMPLE_BYTES));
    let distance = last.saturating_sub(first) / SAMPLES;
    let spread = (0..SAMPLES).map(|sample| (first + distance * sample, SAMPLE_BYTES));
    let mut places: Vec<(u64, usize)> = starts.chain(copies).chain(spread).collect();
    // What lies in the ends was looked at with them. At one place the longer look comes first.
    places.retain(|(at, _)| *at >= first && *at < last);
    places.sort_by_key(|(at, length)| (*at, std::cmp::Reverse(*length)));
    places.dedup_by_key(|(at, _)| *at);
    for (at, length) in &mut places {
        *length = (size - *at).min(*length as u64) as usize;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_seen(size: u64, at: u64, length: u64) -> bool {
        let places = places_between(size);
        places.iter().any(|(start, bytes)| *start <= at && at + length <= *start + *bytes as u64)
    }

    #[test]
    fn a_partition_behind_a_blank_start_is_seen_on_a_disk_of_any_size() {
        for gigabytes in [2_u64, 16, 60, 128, 500, 2000] {
            let size = gigabytes * 1_000_000_000;
            for start in [1, 4, 8, 132, 256, 260, 264, 512, 516, 520] {
                // FAT's boot sector, the marks of ext4, md 1.2 and btrfs.
                for (mark, length) in [(0, 512), (1080, 2), (4096, 8), (65_600, 8)] {
                    assert!(is_seen(size, start * MIB + mark, length), "{gigabytes} GB, {start}");
                }
            }
        }
    }

    #[test]
    fn copies_of_superblocks_are_seen() {
        let size = 500_000_000_000;
        assert!(is_seen(size, 64 * MIB + 0x40, 8) && is_seen(size, 256 * GIB + 0x40, 8));
        // A block of 1 KiB stands before the first group.
        for (group_bytes, before) in [(8 * MIB, 1024), (32 * MIB, 0), (128 * MIB, 0)] {
            for group in [1, 3, 5] {
                assert!(is_seen(size, group * group_bytes + before + 0x38, 2), "{group_bytes}");
            }
        }
    }

    #[test]
    fn nothing_is_read_beyond_the_device() {
        for size in [0, 1, 512, MIB, 2 * MIB, 2 * MIB + 512, 5 * MIB - 512, 65 * MIB, 3 * GIB + 512]
        {
            for (at, length) in places_between(size) {
                assert!(at + length as u64 <= size && length > 0, "{size}: {at} {length}");
            }
        }
    }
}
