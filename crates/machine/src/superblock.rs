//! Which filesystem, swap area or member is on a volume, in the words of `blkid`, with its identifiers and its block.
//!
//! The formats are read by [`crate::signature`]; the places of the block sizes are in the same sources as there.

use crate::signature::{self, Kind, Window};

/// What a volume holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// The type as `blkid` says it: "ext4", "btrfs", "vfat", "swap", "crypto_LUKS", "linux_raid_member", "LVM2_member".
    pub kind: String,
    /// UUID or serial number as `blkid` prints it.
    pub uuid: Option<String>,
    pub label: Option<String>,
    /// The filesystem's block (btrfs: its sector; FAT: its sector; swap: its page) in bytes, where it is
    /// known.
    pub block_bytes: Option<u32>,
    /// The size that it claims, in bytes.
    pub size_bytes: Option<u64>,
    /// How many devices the filesystem spans: above 1 only for btrfs.
    pub devices: u64,
    /// True for what is mounted or used as swap, false for what only wraps or is part of something.
    pub is_volume: bool,
}

/// What is on a volume; none where nothing is recognised, or a partition table.
pub fn identify(window: &Window<'_>) -> Option<Superblock> {
    let signature = signature::sniff(window).into_iter().next()?;
    let (kind, is_volume) = match signature.kind {
        Kind::PartitionTable(_) => return None,
        Kind::Filesystem(name) => (name, true),
        Kind::Swap => ("swap", true),
        Kind::Encrypted("BitLocker") => ("BitLocker", false),
        Kind::Encrypted(_) => ("crypto_LUKS", false),
        Kind::Member("LVM2") => ("LVM2_member", false),
        Kind::Member("zfs") => ("zfs_member", false),
        Kind::Member(name) if name.starts_with("md ") => ("linux_raid_member", false),
        Kind::Member(name) => (name, false),
    };
    Some(Superblock {
        kind: kind.to_string(),
        block_bytes: block_bytes(kind, signature.offset_bytes, window),
        devices: match kind {
            "btrfs" => window.le64(BTRFS_SUPER + 0x88).unwrap_or(1),
            _ => 1,
        },
        uuid: signature.uuid,
        label: signature.label,
        size_bytes: signature.size_bytes,
        is_volume,
    })
}

const BTRFS_SUPER: u64 = 64 * 1024;

fn block_bytes(kind: &str, offset_bytes: u64, window: &Window<'_>) -> Option<u32> {
    let found = match kind {
        "ext2" | "ext3" | "ext4" => 1024_u32.checked_shl(window.le32(1024 + 0x18)?),
        "btrfs" => window.le32(BTRFS_SUPER + 0x90),
        "xfs" => window.be32(4),
        "vfat" => window.le16(11).map(u32::from),
        "f2fs" => 1_u32.checked_shl(window.le32(1024 + 16)?),
        // The mark is the last ten bytes of the first page.
        "swap" => u32::try_from(offset_bytes + 10).ok(),
        _ => None,
    };
    found.filter(|bytes| bytes.is_power_of_two() && (256..=65_536).contains(bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_swap_area_says_its_page() {
        for page in [4096_usize, 16_384] {
            let mut image = vec![0; 1 << 20];
            image[page - 10..page].copy_from_slice(b"SWAPSPACE2");
            image[1024..1028].copy_from_slice(&1_u32.to_le_bytes());
            image[1028..1032].copy_from_slice(&63_u32.to_le_bytes());
            image[1036..1052].copy_from_slice(&[0xAB; 16]);
            let found = identify(&Window::whole(&image)).expect("is swap");
            assert_eq!(found.kind, "swap");
            assert_eq!(found.block_bytes, Some(page as u32));
            assert_eq!(found.size_bytes, Some(64 * page as u64));
            assert!(found.is_volume);
        }
    }

    #[test]
    fn a_btrfs_says_its_sector_and_its_devices() {
        let mut image = vec![0; 1 << 20];
        let at = BTRFS_SUPER as usize;
        image[at + 0x40..at + 0x48].copy_from_slice(b"_BHRfS_M");
        image[at + 0x20..at + 0x30].copy_from_slice(&[0x11; 16]);
        image[at + 0x88] = 2;
        image[at + 0x90..at + 0x94].copy_from_slice(&4096_u32.to_le_bytes());
        let found = identify(&Window::whole(&image)).expect("is btrfs");
        assert_eq!((found.kind.as_str(), found.devices), ("btrfs", 2));
        assert_eq!(found.block_bytes, Some(4096));
        let uuid = "11111111-1111-1111-1111-111111111111";
        assert_eq!(found.uuid.as_deref(), Some(uuid));
    }

    #[test]
    fn a_member_is_no_volume_and_an_empty_disk_nothing() {
        let mut image = vec![0; 1 << 20];
        assert_eq!(identify(&Window::whole(&image)), None);
        image[4096..4104].copy_from_slice(&[0xFC, 0x4E, 0x2B, 0xA9, 1, 0, 0, 0]);
        let found = identify(&Window::whole(&image)).expect("is a member");
        assert_eq!(found.kind, "linux_raid_member");
        assert!(!found.is_volume);
    }

    proptest! {
        #[test]
        fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..4096), at in 0_usize..70_000) {
            let mut image = vec![0; 1 << 17];
            image[at..(at + bytes.len()).min(1 << 17)].copy_from_slice(&bytes[..bytes.len().min((1 << 17) - at)]);
            let _ = identify(&Window::whole(&image));
        }
    }
}
