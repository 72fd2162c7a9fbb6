//! Which disks the running system uses.

use rubus_boot::medium::starts_from;
use rubus_vocabulary::machine::{BlockDevice, BlockKind, Machine};

/// Whether a device is the disk, or a part of it, or stands on it.
pub fn is_on(machine: &Machine, device: &str, disk: &str) -> bool {
    machine.disks_below(device).iter().any(|below| below.name == disk)
}

/// What of the running system is on a disk, one clause each: mounts, active swap areas, and what the board starts
/// from, mounted or not.
pub fn uses(machine: &Machine, disk: &str) -> Vec<String> {
    let mounts = machine.mounts.iter().filter(|mount| {
        let device = mount.device.as_deref();
        device.is_some_and(|device| is_on(machine, device, disk))
    });
    let mut used: Vec<String> = mounts.map(|mount| format!("{} is on it", mount.point)).collect();
    let areas = machine.swap.areas.iter().filter(|area| {
        let device = area.device.text();
        device.is_some_and(|device| is_on(machine, device, disk))
    });
    used.extend(areas.map(|area| format!("the swap {} is on it", area.path)));
    if used.is_empty() {
        used.extend(starts_from(machine, disk));
    }
    used
}

/// The disks of which nothing is in use.
pub fn free_disks(machine: &Machine) -> impl Iterator<Item = &BlockDevice> {
    machine.block_devices.iter().filter(|device| {
        device.kind == BlockKind::Disk
            && device.parent.is_none()
            && uses(machine, &device.name).is_empty()
            && device.size_bytes.get().unwrap_or(0) > 0
    })
}
