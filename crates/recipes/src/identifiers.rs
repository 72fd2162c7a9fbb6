//! New identifiers for disks, filesystems and arrays, from the random numbers among the facts.

use rubus_change::disk::guid::Guid;
use rubus_change::disk::layout::{Wishes, divide};
use rubus_change::plan::volume::{DiskIdentity, PartitionRole, PartitionTable};
use rubus_vocabulary::checksum::xxh64;

const MIB: u64 = 1 << 20;
/// Partitions are aligned so coarsely that the size of a disk's blocks does not matter.
const BLOCK_BYTES: u32 = 512;

/// 16 bytes that are another for each purpose.
fn bytes(random: &[u8; 32], purpose: &str) -> [u8; 16] {
    let mut seed = random.to_vec();
    seed.extend_from_slice(purpose.as_bytes());
    let (first, second) = (xxh64(&seed, 1), xxh64(&seed, 2));
    (u128::from(first) << 64 | u128::from(second)).to_be_bytes()
}

/// A UUID of version 4 (RFC 9562), lower case.
pub(super) fn uuid(random: &[u8; 32], purpose: &str) -> String {
    Guid::version_4(bytes(random, purpose)).to_string()
}

/// A serial number of a FAT filesystem, `XXXX-XXXX`.
pub(super) fn fat_serial(random: &[u8; 32], purpose: &str) -> String {
    let bytes = bytes(random, purpose);
    let hex: String = bytes[..4].iter().map(|b| format!("{b:02X}")).collect();
    format!("{}-{}", &hex[..4], &hex[4..])
}

/// A UUID of an array as mdadm writes it.
pub(super) fn array_uuid(random: &[u8; 32], purpose: &str) -> String {
    let bytes = bytes(random, purpose);
    let words = bytes.chunks(4).map(|word| {
        let word: String = word.iter().map(|byte| format!("{byte:02x}")).collect();
        word
    });
    words.collect::<Vec<_>>().join(":")
}

/// One partition on a whole disk, in a table as small boards expect it; not larger than `max_bytes`, where that is
/// given.
///
/// # Errors
/// A sentence when the disk is too small.
pub(super) fn one_partition(
    random: &[u8; 32],
    purpose: &str,
    role: PartitionRole,
    disk: &DiskIdentity,
    max_bytes: Option<u64>,
) -> Result<PartitionTable, String> {
    let wishes = Wishes { root: role, ..Wishes::default() };
    let seed = bytes(random, purpose);
    let layout = divide(disk.size_bytes, BLOCK_BYTES, &wishes, &seed);
    let mut table = layout.map_err(|error| format!("{}: {error}", disk.path.display()))?.table;
    for partition in &mut table.partitions {
        let max_bytes = max_bytes.unwrap_or(u64::MAX);
        partition.size_bytes = partition.size_bytes.min(max_bytes / MIB * MIB);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn each_purpose_has_its_own_and_each_has_its_form() {
        let random = [7; 32];
        let (one, other) = (uuid(&random, "one"), uuid(&random, "other"));
        assert_ne!(one, other);
        assert_ne!(one, uuid(&[8; 32], "one"));
        assert_eq!(one.len(), 36);
        assert_eq!(&one[14..15], "4");
        assert!("89ab".contains(&one[19..20]), "{one}");
        assert_eq!(fat_serial(&random, "x").len(), 9);
        assert_eq!(array_uuid(&random, "x").split(':').count(), 4);
    }

    #[test]
    fn one_partition_is_as_large_as_it_may_be() {
        let mut disk = testing::disk("/dev/sda", "serial");
        disk.size_bytes = 3 << 30;
        let table = |disk: &DiskIdentity, most| {
            one_partition(&[1; 32], "x", PartitionRole::Linux, disk, most)
        };
        let whole = table(&disk, None).unwrap();
        assert!(whole.partitions[0].size_bytes > 3_200_000_000);
        let less = table(&disk, Some(100 << 20)).unwrap();
        assert_eq!(less.partitions[0].size_bytes, 100 << 20);
        assert_eq!(less.partitions[0].partuuid, whole.partitions[0].partuuid);
        disk.size_bytes = 1 << 20;
        assert!(table(&disk, None).is_err());
    }
}
