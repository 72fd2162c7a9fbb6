//! What to do about several volumes that have one name.

use std::collections::BTreeSet;

use crate::volume::{Name, NamedVolume};

const OF_TWO_DISKS: &str = "take one of the disks off; or give the copy new identifiers (sfdisk --disk-id, tune2fs -U random), and \
                            write them into the copy's cmdline.txt and /etc/fstab";

/// Copies of a whole disk are told apart by taking one of them off; of partitions of one disk, the PARTUUID tells which is meant.
pub(super) fn remedy(name: &Name, several: &[&NamedVolume], source: &str) -> String {
    if !are_on_one_disk(several) {
        return OF_TWO_DISKS.into();
    }
    let rename = renaming(name, several);
    let own: Vec<String> = several
        .iter()
        .filter_map(|one| Some(format!("{} is {}", one.partuuid.as_ref()?, one.path)))
        .collect();
    let distinct: BTreeSet<&String> = own.iter().collect();
    if matches!(name, Name::PartUuid(_)) || distinct.len() < several.len() {
        return rename;
    }
    let own = own.join(", ");
    format!("name the root by its PARTUUID in {source} and /etc/fstab ({own}), or {rename}")
}

/// Whether they are partitions of one disk, as all of an image are.
fn are_on_one_disk(several: &[&NamedVolume]) -> bool {
    let of_image = |one: &&NamedVolume| !one.path.starts_with("/dev/");
    if several.iter().all(of_image) {
        return true;
    }
    let disks: Option<BTreeSet<&str>> = several.iter().map(|one| one.disk()).collect();
    disks.is_some_and(|disks| disks.len() == 1)
}

/// How one of them is given another identifier of this kind.
fn renaming(name: &Name, several: &[&NamedVolume]) -> String {
    let filesystem = several.last().and_then(|one| one.filesystem.as_deref()).unwrap_or_default();
    let (what, command) = match (name, filesystem) {
        (Name::Label(_), "ext2" | "ext3" | "ext4") => ("label", "e2label DEVICE NAME"),
        (Name::Label(_), "btrfs") => ("label", "btrfs filesystem label DEVICE NAME"),
        (Name::Label(_), "xfs") => ("label", "xfs_admin -L NAME DEVICE"),
        (Name::Label(_), "f2fs") => ("label", "f2fslabel DEVICE NAME"),
        (Name::Label(_), "vfat") => ("label", "fatlabel DEVICE NAME"),
        (Name::Label(_), _) => ("label", ""),
        (Name::Uuid(_), "ext2" | "ext3" | "ext4") => ("UUID", "tune2fs -U random DEVICE"),
        (Name::Uuid(_), "btrfs") => ("UUID", "btrfstune -u DEVICE"),
        (Name::Uuid(_), "xfs") => ("UUID", "xfs_admin -U generate DEVICE"),
        (Name::Uuid(_), _) => ("UUID", ""),
        (Name::PartLabel(_), _) => ("PARTLABEL", "sfdisk --part-label DISK NUMBER NAME"),
        (Name::PartUuid(_), _) => ("PARTUUID", "sfdisk --part-uuid DISK NUMBER UUID"),
        (Name::Path(_) | Name::Other(_), _) => ("name", ""),
    };
    let with = if command.is_empty() { String::new() } else { format!(": sudo {command}") };
    format!("give the other one another {what}{with}")
}
