//! A filesystem on a disk or partition, and where it is mounted: the single steps of larger recipes.

use std::path::Path;

use super::mounting::{self, MountRequest};
use super::{
    OptionSpec, PlanBuilder, PlanInput, Queries, Recipe, Wishes, disks, identifiers, programs,
    tables,
};
use rubus_boot::fstab::Entry;
use rubus_change::plan::Action;
use rubus_change::plan::promise::{Look, Promise};
use rubus_change::plan::volume::{FilesystemKind, NewFilesystem, PartitionRole, Place};
use rubus_change::steps::{Format, PartitionDisk};
use rubus_vocabulary::machine::{BlockDevice, Machine};

pub(super) static RECIPE: Recipe = Recipe {
    name: "format",
    title: "Put an empty filesystem on a disk or partition, and mount it now and at each boot.",
    guide: super::Guide {
        changes: "Overwrites the disk or partition. With at= it also writes /etc/fstab.",
        needs: "A disk or partition that is not in use and may lose everything.",
        example: "sudo rubus plan format device=/dev/sda at=/mnt/data",
    },
    options: &[
        OptionSpec {
            name: "device",
            what: "the disk or partition, such as /dev/sda or /dev/sda1; everything on it is lost",
            default: None,
            check: disks::node,
        },
        OptionSpec {
            name: "filesystem",
            what: "ext4, btrfs, vfat or swap",
            default: Some("ext4"),
            check: |value| kind(value).map(drop),
        },
        OptionSpec {
            name: "label",
            what: "a name for it, up to 11 letters, digits, hyphens and underscores",
            default: None,
            check: label,
        },
        OptionSpec {
            name: "partition",
            what: "yes: a whole disk gets a partition table with one partition; no: the filesystem takes the bare disk",
            default: Some("yes"),
            check: |value| match value {
                "yes" | "no" => Ok(()),
                _ => Err("write yes or no".into()),
            },
        },
        OptionSpec {
            name: "at",
            what: "where it is mounted, such as /mnt/data; else it is not",
            default: None,
            check: mounting::place,
        },
    ],
    look_at,
    draw_up,
};

/// The programs that make a filesystem and mount it.
pub(super) const PROGRAMS: [&str; 5] = ["mkfs.ext4", "mkfs.btrfs", "mkfs.vfat", "mkswap", "mount"];

pub(super) fn kind(value: &str) -> Result<FilesystemKind, String> {
    match value {
        "ext4" => Ok(FilesystemKind::Ext4),
        "btrfs" => Ok(FilesystemKind::Btrfs),
        "vfat" => Ok(FilesystemKind::Vfat),
        "swap" => Ok(FilesystemKind::Swap),
        _ => Err("write ext4, btrfs, vfat or swap".into()),
    }
}

/// The shortest of all limits is that of FAT.
pub(super) fn label(value: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !value.is_empty() && value.len() <= 11 && value.chars().all(is_plain) {
        Ok(())
    } else {
        Err("write up to 11 letters, digits, hyphens and underscores".into())
    }
}

fn look_at(machine: &Machine, wishes: &Wishes) -> Queries {
    let mut paths = wishes.get("at").map_or(Vec::new(), |at| mounting::look_at(at));
    paths.extend(programs::paths(PROGRAMS));
    paths.extend(tables::paths().map(Into::into));
    let disks = wishes.get("device").map(|node| disks::whole(machine, node));
    Queries { disks: disks.into_iter().collect(), ..Queries::paths(paths) }
}

fn draw_up(situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    draw(situation, draft);
    programs::check(situation, draft);
}

/// The checks and steps; which programs they take is looked at by the caller, who may have more steps.
pub(super) fn draw(situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let (Some(node), Some(kind)) = (
        situation.option("device"),
        situation.option("filesystem").and_then(|text| kind(text).ok()),
    ) else {
        let remedy = "say which: rubus plan format device=/dev/sda";
        return draft.check("the device is named", false, "no", remedy);
    };
    let Some(device) = disks::find(node, situation, draft) else {
        return;
    };
    if is_done(device, kind, situation) {
        draft.check("it is as wished already", true, node, "");
        return draft.notes.push(format!(
            "{node} has such a filesystem already; nothing on it is touched. To empty it all the same, take its marks away first: \
             wipefs --all."
        ));
    }
    if let Some(at) = situation.option("at") {
        if kind == FilesystemKind::Swap {
            let remedy = "leave at= out; the recipe swap makes use of a swap area";
            return draft.check("a swap area is not mounted", false, at, remedy);
        }
        mounting::check_place(Path::new(at), situation, draft);
    }
    let Some(place) = place(node, device, kind, situation, draft) else {
        return;
    };
    let label = situation.option("label").unwrap_or_default();
    let new = new_filesystem(kind, label, situation);
    make(place, new, situation.option("at"), situation, draft);
}

/// Whether such a filesystem is mounted at the requested mount point, or has the requested label.
fn is_done(device: &BlockDevice, kind: FilesystemKind, situation: &PlanInput<'_>) -> bool {
    let machine = situation.machine;
    let parts = machine.block_devices.iter();
    let mut candidates = parts
        .filter(|part| part.name == device.name || part.parent.as_deref() == Some(&device.name));
    let at = situation.option("at");
    let label = situation.option("label");
    candidates.any(|part| {
        let is_kind = part.content.text() == Some(kind.name());
        let is_there = machine.mounts.iter().any(|mount| {
            mount.device.as_deref() == Some(&part.name) && Some(mount.point.as_str()) == at
        });
        let is_labelled = label.is_some() && part.identity.label.as_deref() == label;
        is_kind && (is_there || at.is_none() && is_labelled)
    })
}

/// Where it is made, after the partition that holds it.
fn place(
    node: &str,
    device: &BlockDevice,
    kind: FilesystemKind,
    situation: &PlanInput<'_>,
    draft: &mut PlanBuilder,
) -> Option<Place> {
    let whole = disks::whole(situation.machine, node);
    let disk = disks::take(&whole, situation, draft)?;
    // The line of the mount point is replaced.
    let at = situation.option("at");
    let is_replaced = |entry: &Entry| !entry.is_swap() && Some(entry.target.as_str()) == at;
    tables::check(&device.name, &is_replaced, situation, draft);
    draft.risks.push(format!("What is on {node} now is lost."));
    if device.parent.is_some() {
        return disks::existing_partition(node, &whole, device, &disk, draft);
    }
    if situation.option("partition") == Some("no") {
        return Some(Place::Disk { disk });
    }
    let role = match kind {
        FilesystemKind::Swap => PartitionRole::Swap,
        FilesystemKind::Vfat => PartitionRole::Boot,
        _ => PartitionRole::Linux,
    };
    let random = &situation.facts.random;
    let table = match identifiers::one_partition(random, "format", role, &disk, None) {
        Ok(table) => table,
        Err(why) => {
            draft.check("the disk is large enough", false, why, "take a larger one");
            return None;
        }
    };
    let part = table.partitions.first()?;
    let place = disks::partition(&disk, part.number, &part.partuuid);
    draft.step(
        "partition",
        "A partition table says what is on the disk, so that it does not look empty.",
        Action::Partition(PartitionDisk { disk, table }),
    );
    Some(place)
}

/// A filesystem with a new identifier.
pub(super) fn new_filesystem(
    kind: FilesystemKind,
    label: &str,
    situation: &PlanInput<'_>,
) -> NewFilesystem {
    let random = &situation.facts.random;
    NewFilesystem {
        kind,
        uuid: match kind {
            FilesystemKind::Vfat => identifiers::fat_serial(random, "filesystem"),
            _ => identifiers::uuid(random, "filesystem"),
        },
        label: label.into(),
        subvolumes: Vec::new(),
        mount_options: match kind {
            FilesystemKind::Btrfs => "noatime,compress=zstd:3".into(),
            FilesystemKind::Swap => String::new(),
            _ => "noatime".into(),
        },
    }
}

/// The filesystem, and what mounts it now and at each boot where a place is named.
pub(super) fn make(
    place: Place,
    new: NewFilesystem,
    at: Option<&str>,
    situation: &PlanInput<'_>,
    draft: &mut PlanBuilder,
) {
    let (kind, uuid, options) = (new.kind, new.uuid.clone(), new.mount_options.clone());
    draft.step(
        "filesystem",
        match kind {
            FilesystemKind::Swap => "The kernel swaps only to an area that is marked as one.",
            _ => "Files need one; by its identifier it is found under whatever name the disk has.",
        },
        Action::Format(Format { place, filesystem: new }),
    );
    let Some(at) = at else {
        return;
    };
    let line = format!("{options},nofail,x-systemd.device-timeout=30s");
    let wanted = MountRequest {
        at: Path::new(at),
        what: &format!("UUID={uuid}"),
        kind: kind.name(),
        options: &line,
        pass: match kind {
            FilesystemKind::Btrfs => 0,
            _ => 2,
        },
    };
    mounting::put(&wanted, "It is there at once, without a boot.", situation, draft);
    draft
        .notes
        .push(format!("A boot without the disk goes on after 30 seconds, and {at} is empty then."));
    draft.promises.push(Promise {
        what: format!("{} is mounted at {at}", kind.name()),
        look: Look::Mounted {
            at: at.into(),
            kind,
            uuid,
            options: match kind {
                FilesystemKind::Btrfs => vec!["compress=zstd:3".into()],
                _ => Vec::new(),
            },
        },
        needs_boot: false,
    });
}

#[cfg(test)]
mod tests;
