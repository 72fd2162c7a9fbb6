//! Disks and filesystems in a plan: which disk is meant, how it is divided, and what is on each part.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What tells one disk from every other, as it was when the plan was made. All of it is looked at again
/// before anything is written to the disk, because names move: `/dev/sda` may be another disk after a
/// boot, or after a cable was touched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskIdentity {
    /// Its node when the plan was made; a hint only.
    pub path: PathBuf,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Vendor and model, as the disk says them.
    pub model: Option<String>,
    /// Its serial number.
    pub serial: Option<String>,
    /// Its world-wide name.
    pub wwn: Option<String>,
    /// Number that the kernel gave to the disk when it appeared; never given twice during one boot.
    pub diskseq: Option<u64>,
    /// The boot (`/proc/sys/kernel/random/boot_id`) in which `diskseq` was seen.
    pub boot_id: Option<String>,
    /// What was found on it, in words, one item each; empty: nothing but zeros where it was looked.
    pub contents: Vec<String>,
    /// What the user has to type to give everything on it away.
    pub confirmation: String,
}

impl DiskIdentity {
    /// Whether the disk has a number, or as a network disk an address, that no other disk of the machine had when the plan was
    /// made. A serial number that two disks say confirms nothing.
    #[must_use]
    pub fn has_own_number(&self) -> bool {
        let confirmation = Some(&self.confirmation);
        self.wwn.is_some()
            || self.serial.as_ref() == confirmation
            || self.model.as_ref() == confirmation
    }
}

/// A partition table to be written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartitionTable {
    /// Its kind and its identifier.
    pub kind: TableKind,
    /// Its partitions, in ascending order of number and of place.
    pub partitions: Vec<Partition>,
}

/// The kind of a partition table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "table", rename_all = "snake_case")]
pub enum TableKind {
    /// A master boot record. Its partitions have PARTUUIDs like `3b0a02d1-02`.
    Mbr {
        /// The disk identifier; not zero.
        disk_id: u32,
    },
    /// A GUID partition table.
    Gpt {
        /// The disk's identifier, lower case with hyphens.
        disk_guid: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Partition {
    /// Its number, from 1.
    pub number: u32,
    /// Where it begins, in bytes from the start of the disk; a multiple of 1 MiB.
    pub start_bytes: u64,
    /// Its size in bytes; a multiple of 512.
    pub size_bytes: u64,
    /// What it is for.
    pub role: PartitionRole,
    /// Its PARTUUID as the kernel and `/dev/disk/by-partuuid` say it, lower case.
    pub partuuid: String,
}

/// What a partition is for; gives the type code in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PartitionRole {
    /// A FAT32 partition that firmware can read.
    Boot,
    /// A Linux filesystem.
    Linux,
    Swap,
    /// A member of an array.
    Raid,
}

/// A kind of filesystem, or swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FilesystemKind {
    Btrfs,
    /// ext4.
    Ext4,
    F2fs,
    /// FAT32.
    Vfat,
    /// A swap area.
    Swap,
}

impl FilesystemKind {
    /// As `mount -t` and `rootfstype=` say it.
    pub fn name(self) -> &'static str {
        match self {
            FilesystemKind::Btrfs => "btrfs",
            FilesystemKind::Ext4 => "ext4",
            FilesystemKind::F2fs => "f2fs",
            FilesystemKind::Vfat => "vfat",
            FilesystemKind::Swap => "swap",
        }
    }

    /// The filesystem of a root by its name in `/proc/mounts`; nothing for one that no root of ours has.
    pub fn of_root(name: &str) -> Option<FilesystemKind> {
        let roots = [FilesystemKind::Btrfs, FilesystemKind::Ext4, FilesystemKind::F2fs];
        roots.into_iter().find(|kind| kind.name() == name)
    }
}

/// A filesystem to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewFilesystem {
    /// What it is.
    pub kind: FilesystemKind,
    /// Its identifier: a lower-case UUID, or for FAT `XXXX-XXXX`.
    pub uuid: String,
    /// Its label; empty for none.
    pub label: String,
    /// For btrfs: the subvolumes to be made at its top, such as `@`.
    pub subvolumes: Vec<String>,
    /// For btrfs: how it is mounted from the first byte on, such as `compress=zstd:3`.
    pub mount_options: String,
}

/// A filesystem that exists, or will when the step before is done, and where it can be mounted from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Volume {
    /// What it is.
    pub kind: FilesystemKind,
    /// Its identifier, as in [`NewFilesystem::uuid`].
    pub uuid: String,
    /// How it is mounted, with `subvol=` where one is meant.
    pub mount_options: String,
    /// What it is to people: "the new root on /dev/sda2".
    pub title: String,
}

/// Where a filesystem or an array is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "on", rename_all = "snake_case")]
pub enum Place {
    /// The whole disk, without partitions.
    Disk {
        /// Which disk.
        disk: DiskIdentity,
    },
    /// A partition that an earlier step made.
    Partition {
        /// The disk that it is on.
        disk: DiskIdentity,
        /// Its number in the partition table, from 1 on.
        number: u32,
        /// Its PARTUUID, by which it is found again.
        partuuid: String,
    },
    /// An array that an earlier step made.
    Array {
        /// Its UUID, as mdadm writes it in `mdadm.conf`.
        uuid: String,
        /// What it is made of.
        members: Vec<Place>,
    },
}

impl Place {
    /// The disks that it stands on.
    pub fn disks(&self) -> Vec<&DiskIdentity> {
        match self {
            Place::Disk { disk } | Place::Partition { disk, .. } => vec![disk],
            Place::Array { members, .. } => members.iter().flat_map(Place::disks).collect(),
        }
    }

    /// The same disks, to refresh what is known to be on them.
    pub fn disks_mut(&mut self) -> Vec<&mut DiskIdentity> {
        match self {
            Place::Disk { disk } | Place::Partition { disk, .. } => vec![disk],
            Place::Array { members, .. } => members.iter_mut().flat_map(Place::disks_mut).collect(),
        }
    }

    /// What it is to people, by the names of when the plan was made.
    pub fn title(&self) -> String {
        match self {
            Place::Disk { disk } => disk.path.display().to_string(),
            Place::Partition { disk, number, .. } => partition_path(&disk.path, *number),
            Place::Array { members, .. } => {
                let members: Vec<String> = members.iter().map(Place::title).collect();
                format!("the array of {}", members.join(" and "))
            }
        }
    }
}

/// The node of a partition: `/dev/sda2`, and with a `p` between where the disk's name ends with a digit. In a file, which
/// has no such nodes, it is told by its number.
pub fn partition_path(disk: &std::path::Path, number: u32) -> String {
    if !disk.starts_with("/dev") {
        return format!("partition {number} of {}", disk.display());
    }
    let disk = disk.display().to_string();
    if disk.ends_with(|last: char| last.is_ascii_digit()) {
        format!("{disk}p{number}")
    } else {
        format!("{disk}{number}")
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn partitions_are_named_as_the_kernel_names_them() {
        for (disk, path) in [
            ("/dev/sda", "/dev/sda2"),
            ("/dev/mmcblk0", "/dev/mmcblk0p2"),
            ("/dev/nvme0n1", "/dev/nvme0n1p2"),
            ("/dev/loop7", "/dev/loop7p2"),
            ("/home/me/new.img", "partition 2 of /home/me/new.img"),
        ] {
            assert_eq!(partition_path(Path::new(disk), 2), path);
        }
    }
}
