//! Disks below LUKS or LVM that went away, of whose own reads and writes the kernel says nothing: what fails above them is theirs.

use std::collections::BTreeMap;

use rubus_vocabulary::kernel_log::TroubleKind::*;

use super::Told;
use super::harmless::soon_after;
use super::judge::{IS_ON_OTHERS, disk_of};
use super::usb_disks::UsbDisks;

/// What lies on a disk fails this soon after the disk went away, in seconds.
const SOON_LOST_S: f64 = 10.0;

/// The numbers of the lines about what lies on a USB disk that has just gone, with that disk.
pub(super) fn lost_disks(lines: &[Told<'_>], disks: &UsbDisks) -> BTreeMap<usize, String> {
    let mut found = BTreeMap::new();
    for (at, told) in lines.iter().enumerate() {
        let lost = told.part_of(UsbDisconnect).and_then(|port| disks.disk_at(port));
        let Some(disk) = lost else {
            continue;
        };
        let mut soon = soon_after(lines, at, SOON_LOST_S);
        let has_own = soon.any(|(_, later)| {
            later.part_of(Io).and_then(disk_of).is_some_and(|failed| failed == disk)
        });
        if has_own {
            continue;
        }
        let above = soon_after(lines, at, SOON_LOST_S).filter(|(_, later)| is_above(later));
        found.extend(above.map(|(number, _)| (number, disk.to_string())));
    }
    found
}

/// Whether something failed that lies on other disks.
fn is_above(told: &Told<'_>) -> bool {
    told.trouble.as_ref().is_some_and(|(kind, part)| {
        matches!(kind, Io | Filesystem | FilesystemReadOnly)
            && IS_ON_OTHERS.iter().any(|name| part.starts_with(name))
    })
}
