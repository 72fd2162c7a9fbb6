//! Disks and partitions that a user names: which are meant, what is on them, whether they are available.

use std::path::{Path, PathBuf};

use super::{Found, PlanBuilder, PlanInput};
use rubus_boot::medium::starts_from;
use rubus_change::plan::volume::{DiskIdentity, Place, partition_path};
use rubus_machine::in_use::mounted_with_others;
use rubus_vocabulary::machine::{BlockDevice, BlockKind, Machine};
use rubus_vocabulary::units::bytes_si;

/// A node below `/dev`, or a sentence that says what one is.
pub(super) fn node(value: &str) -> Result<(), String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match value.strip_prefix("/dev/") {
        Some(name) if !name.is_empty() && name.chars().all(is_name) => Ok(()),
        _ => Err("write a device by its node, such as /dev/sda (`rubus survey` lists them)".into()),
    }
}

/// The kernel's name of a node.
pub(super) fn name(node: &str) -> &str {
    node.strip_prefix("/dev/").unwrap_or(node)
}

/// The whole disk of a node, by the survey; itself where that does not know it.
pub(super) fn whole(machine: &Machine, node: &str) -> PathBuf {
    let parent = machine.device(name(node)).and_then(|device| device.parent.as_deref());
    match parent {
        Some(parent) => Path::new("/dev").join(parent),
        None => node.into(),
    }
}

/// The device of a node, or an obstacle that lists those that there are.
pub(super) fn find<'a>(
    node: &str,
    situation: &PlanInput<'a>,
    draft: &mut PlanBuilder,
) -> Option<&'a BlockDevice> {
    let found = situation.machine.device(name(node));
    if found.is_none() {
        let disks = situation.machine.block_devices.iter();
        let disks = disks.filter(|device| device.kind == BlockKind::Disk);
        let disks: Vec<String> = disks.map(|device| format!("/dev/{}", device.name)).collect();
        draft.check(
            "the named device is there",
            false,
            format!("there is no {node}"),
            &if disks.is_empty() {
                "plug it in".to_string()
            } else {
                format!("plug it in, or take one of {}", disks.join(", "))
            },
        );
    }
    found
}

/// What tells the disk from others and what is on it, or an obstacle: it is in use, or cannot be looked at.
pub(super) fn take(
    path: &Path,
    situation: &PlanInput<'_>,
    draft: &mut PlanBuilder,
) -> Option<DiskIdentity> {
    let (found, disk): (Found, _) = match situation.facts.disks.get(path) {
        Some(Ok(disk)) => match uses(situation.machine, path) {
            uses if uses.is_empty() => (words(disk).into(), Some(disk.clone())),
            uses => (uses.join("; ").into(), None),
        },
        Some(Err(why)) => (why.into(), None),
        None => ("it was not looked at".into(), None),
    };
    draft.check(
        &format!("{} is not in use and can be taken", path.display()),
        disk.is_some(),
        found,
        "unmount what is on it, or take another disk",
    );
    disk
}

/// How a disk or a part of it is in use, by the survey.
fn uses(machine: &Machine, path: &Path) -> Vec<String> {
    let path = path.display().to_string();
    let disk = name(&path);
    let parts = machine.block_devices.iter();
    let parts = parts.filter(|part| part.name == disk || part.parent.as_deref() == Some(disk));
    let mut uses = Vec::new();
    for part in parts {
        let own = |device: Option<&str>| device == Some(part.name.as_str());
        let mounts = machine.mounts.iter();
        let mounts = mounts.filter(|mount| own(mount.device.as_deref()));
        uses.extend(
            mounts.map(|mount| format!("/dev/{} is mounted at {}", part.name, mount.point)),
        );
        let mut areas = machine.swap.areas.iter();
        if areas.any(|area| area.kind == "partition" && own(area.device.text())) {
            uses.push(format!("/dev/{} is swap in use", part.name));
        }
        if !part.holders.is_empty() {
            uses.push(format!("/dev/{} is a part of {}", part.name, part.holders.join(", ")));
        }
        uses.extend(mounted_with_others(machine, part));
    }
    if uses.is_empty() {
        uses.extend(starts_from(machine, disk));
    }
    uses
}

/// A disk and what is on it.
pub(super) fn words(disk: &DiskIdentity) -> String {
    let model = disk.model.as_deref().unwrap_or("a disk");
    let serial = disk.serial.as_deref().map(|serial| format!(", serial {serial}"));
    let contents = if disk.contents.is_empty() {
        "nothing found on it".into()
    } else {
        format!("on it: {}", disk.contents.join("; "))
    };
    format!("{model}{}, {}; {contents}", serial.unwrap_or_default(), bytes_si(disk.size_bytes))
}

/// The partition of that number.
pub(super) fn partition(disk: &DiskIdentity, number: u32, partuuid: &str) -> Place {
    Place::Partition { disk: disk.clone(), number, partuuid: partuuid.into() }
}

/// The number of a partition, from its node and that of its disk.
pub(super) fn number(disk: &Path, node: &str) -> Option<u32> {
    (1..=128).find(|number| partition_path(disk, *number) == node)
}

/// Whether it finally stands on an SD card or a soldered flash of its kind.
pub(super) fn is_on_card(machine: &Machine, name: &str) -> bool {
    let disks = machine.disks_below(name);
    disks.iter().any(|disk| disk.mmc.is_some() || disk.name.starts_with("mmcblk"))
}

/// Whether it finally stands on the network.
pub(super) fn is_on_network(machine: &Machine, name: &str) -> bool {
    let disks = machine.disks_below(name);
    name.starts_with("nbd") || disks.iter().any(|disk| disk.kind == BlockKind::Nbd)
}

/// A partition that is there, by its PARTUUID; or an obstacle.
pub(super) fn existing_partition(
    node: &str,
    whole: &Path,
    device: &BlockDevice,
    disk: &DiskIdentity,
    draft: &mut PlanBuilder,
) -> Option<Place> {
    let number = number(whole, node);
    let partuuid = device.identity.partuuid.as_deref();
    draft.check(
        "the partition has a PARTUUID by which it is found again",
        number.is_some() && partuuid.is_some(),
        match partuuid {
            Some(partuuid) => format!("{node}: {partuuid}"),
            None => format!("{node} has none that can be seen"),
        },
        "run it as root; a disk without a partition table has none: name the whole disk",
    );
    Some(partition(disk, number?, partuuid?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;

    #[test]
    fn every_use_is_found() {
        let mut machine = fixture::pi3_with_usb_ssd();
        let of = |machine: &Machine| uses(machine, Path::new("/dev/sda"));
        assert_eq!(of(&machine), ["/dev/sda1 is mounted at /srv/data"]);
        machine.mounts.retain(|mount| mount.device.as_deref() != Some("sda1"));
        assert!(of(&machine).is_empty());
        let part = machine.block_devices.iter_mut().find(|part| part.name == "sda1");
        part.expect("it is there").holders = vec!["md0".into()];
        machine.swap.areas[0].device = rubus_vocabulary::fact::Fact::known("sda1".into(), "test");
        assert_eq!(of(&machine), ["/dev/sda1 is swap in use", "/dev/sda1 is a part of md0"]);
    }
}
