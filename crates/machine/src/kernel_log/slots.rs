//! Slots of PCI Express that lost the link to an NVMe disk: the kernel names the slot's port, and then only errors of the disk.

use std::collections::BTreeMap;

use rubus_vocabulary::kernel_log::TroubleKind;

use super::Told;
use super::harmless::soon_after;
use super::judge::disk_of;

/// A disk whose reads or writes fail this soon after a slot lost its link was in that slot, in seconds.
const SOON_LOST_S: f64 = 10.0;

/// The numbers of the lines that tell of a lost link, with the disk that failed next.
pub(super) fn lost_disks(lines: &[Told<'_>]) -> BTreeMap<usize, String> {
    let lost = lines.iter().enumerate().filter(|(_, told)| is_lost_link(&told.line.message));
    let with_disk = lost.filter_map(|(at, _)| {
        let failed = soon_after(lines, at, SOON_LOST_S).find_map(|(_, later)| {
            let disk = later.part_of(TroubleKind::Io).and_then(disk_of)?;
            disk.starts_with("nvme").then_some(disk)
        })?;
        Some((at, failed))
    });
    with_disk.collect()
}

/// `pcieport 0000:00:1c.4: pciehp: Slot(12): Link Down` (Linux, drivers/pci/hotplug/pciehp_ctrl.c).
fn is_lost_link(message: &str) -> bool {
    message.contains(": pciehp: Slot(")
        && ["): Link Down", "): Card not present"].iter().any(|words| message.contains(words))
}
