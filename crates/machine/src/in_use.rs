//! Which disks the running system uses.

use std::collections::HashSet;

use rubus_boot::medium::starts_from;
use rubus_vocabulary::machine::device_index::DeviceIndex;
use rubus_vocabulary::machine::{BlockDevice, BlockKind, Machine, Mount};

/// Whether a device is the disk, or a part of it, or stands on it.
pub fn is_on(machine: &Machine, device: &str, disk: &str) -> bool {
    machine.disks_below(device).iter().any(|below| below.name == disk)
}

/// What of the running system is on a disk, one clause each: mounts, active swap areas, and what the board starts
/// from, mounted or not.
pub fn uses(machine: &Machine, disk: &str) -> Vec<String> {
    let index = DeviceIndex::of(machine);
    let is_on = |device: &str| index.disks_below(device).iter().any(|below| below.name == disk);
    let mounts = machine.mounts.iter().filter(|mount| mount.device.as_deref().is_some_and(is_on));
    let mut used: Vec<String> = mounts.map(|mount| format!("{} is on it", mount.point)).collect();
    let areas = machine.swap.areas.iter().filter(|area| area.device.text().is_some_and(is_on));
    used.extend(areas.map(|area| format!("the swap {} is on it", area.path)));
    if used.is_empty() {
        let parts = machine.block_devices.iter();
        let parts = parts.filter(|part| part.name == disk || part.parent.as_deref() == Some(disk));
        used.extend(parts.filter_map(|part| mounted_with_others(machine, part)));
    }
    if used.is_empty() {
        used.extend(starts_from(machine, disk));
    }
    used
}

/// Of a filesystem on several disks the kernel names one, or the pool, as what is mounted: how this part of it is in use. A copy of
/// a mounted btrfs has its UUID, too, and counts as a part, since the two cannot be told apart by names.
pub fn mounted_with_others(machine: &Machine, part: &BlockDevice) -> Option<String> {
    let named = machine.mounts.iter().find(|mount| names_member(mount, &part.name));
    if let Some(mount) = named {
        return Some(format!(
            "{} is a part of the {} at {}",
            part.name, mount.filesystem, mount.point
        ));
    }
    let kind = part.content.text()?;
    let is_mounted = |mount: &&Mount| match kind {
        "btrfs" | "bcachefs" => {
            let mounted = mount.device.as_deref().and_then(|device| machine.device(device));
            mount.filesystem == kind
                && part.identity.uuid.is_some()
                && mounted.is_some_and(|mounted| {
                    mounted.name != part.name && mounted.identity.uuid == part.identity.uuid
                })
        }
        "zfs_member" => {
            let pool = mount.source.split('/').next();
            mount.filesystem == "zfs"
                && part.identity.label.as_deref().is_none_or(|label| pool == Some(label))
        }
        _ => false,
    };
    let mount = machine.mounts.iter().find(is_mounted)?;
    let filesystem = &mount.filesystem;
    Some(format!("{} is a part of the {filesystem} at {}", part.name, mount.point))
}

/// bcachefs names all its members, joined with colons, also where udev is older than bcachefs and does not know them.
fn names_member(mount: &Mount, name: &str) -> bool {
    let mut members = mount.source.split(':');
    mount.filesystem == "bcachefs"
        && mount.device.as_deref() != Some(name)
        && members.any(|member| member.strip_prefix("/dev/") == Some(name))
}

/// The disks of which nothing is in use.
pub fn free_disks(machine: &Machine) -> impl Iterator<Item = &BlockDevice> {
    let used = used_by_name(machine);
    machine.block_devices.iter().filter(move |device| {
        device.kind == BlockKind::Disk
            && device.parent.is_none()
            && device.size_bytes.get().unwrap_or(0) > 0
            && !used.contains(device.name.as_str())
            && uses(machine, &device.name).is_empty()
    })
}

/// Disks below what is mounted or holds swap, all found in one look.
fn used_by_name(machine: &Machine) -> HashSet<&str> {
    let index = DeviceIndex::of(machine);
    let mounted = machine.mounts.iter().filter_map(|mount| mount.device.as_deref());
    let swapped = machine.swap.areas.iter().filter_map(|area| area.device.text());
    let disks = mounted.chain(swapped).flat_map(|device| index.disks_below(device));
    disks.map(|disk| disk.name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use rubus_fixtures::pi3_with_usb_ssd;
    use rubus_vocabulary::fact::Fact;

    use super::*;

    #[test]
    fn a_part_of_a_mounted_pool_is_in_use_though_another_disk_is_named() {
        let mut machine = pi3_with_usb_ssd();
        let mount = machine.mounts.iter_mut().find(|mount| mount.device.as_deref() == Some("sda1"));
        let mount = mount.expect("the stick is mounted");
        (mount.filesystem, mount.source, mount.device) = ("zfs".into(), "tank/home".into(), None);
        let part = |machine: &mut Machine, kind: &str, label: &str| {
            let part = machine.block_devices.iter_mut().find(|part| part.name == "sda1");
            let part = part.expect("it has a partition");
            part.content = Fact::known(kind.into(), "a test");
            part.identity.label = Some(label.into());
        };
        part(&mut machine, "zfs_member", "tank");
        assert_eq!(uses(&machine, "sda"), ["sda1 is a part of the zfs at /srv/data"]);
        part(&mut machine, "zfs_member", "other");
        assert!(uses(&machine, "sda").is_empty());

        let mount = machine.mounts.iter_mut().find(|mount| mount.filesystem == "zfs");
        let mount = mount.expect("it was made above");
        (mount.filesystem, mount.source) = ("bcachefs".into(), "/dev/sdz1:/dev/sda1".into());
        assert_eq!(uses(&machine, "sda"), ["sda1 is a part of the bcachefs at /srv/data"]);
        let mount = machine.mounts.iter_mut().find(|mount| mount.filesystem == "bcachefs");
        let mount = mount.expect("it was made above");
        (mount.filesystem, mount.source) = ("zfs".into(), "tank/home".into());
        part(&mut machine, "btrfs", "");
        let first = machine.block_devices.iter().find(|part| part.name == "sda1").cloned();
        let mut first = first.expect("it has a partition");
        (first.name, first.parent) = ("sdb1".into(), None);
        machine.block_devices.push(first);
        let mount = machine.mounts.iter_mut().find(|mount| mount.filesystem == "zfs");
        let mount = mount.expect("it was made above");
        (mount.filesystem, mount.device) = ("btrfs".into(), Some("sdb1".into()));
        assert_eq!(uses(&machine, "sda"), ["sda1 is a part of the btrfs at /srv/data"]);
    }
}
