//! Whether a disk has platters that turn.

use crate::machine::{BlockDevice, BlockKind, HopKind};

/// Beginnings and parts of the names that makers give to disks with platters.
const NAMES: [&str; 11] = [
    "HDD",
    "WDC WD",
    "HGST",
    "Hitachi",
    "TOSHIBA MQ",
    "TOSHIBA DT",
    "TOSHIBA HD",
    "Expansion",
    "Elements",
    "My Passport",
    "My Book",
];
/// Parts of the names of SSDs that look like one of the others.
const SSD_NAMES: [&str; 2] = ["SSD", "WDC WDS"];

/// True and false where that is known. A bridge from USB to SATA that says nothing about the disk behind it makes the kernel
/// say that it turns: that alone is not believed, only together with a name.
pub fn has_platters(disk: &BlockDevice) -> Option<bool> {
    let model = disk.model.text().unwrap_or_default().trim();
    if is_virtual(disk) {
        return Some(false);
    }
    if SSD_NAMES.iter().any(|name| model.contains(name)) {
        return Some(false);
    }
    let said = disk.rotational.get()?;
    let is_behind_usb = disk.path.iter().any(|hop| hop.kind == HopKind::UsbDevice);
    match (said, is_behind_usb) {
        (true, true) => is_named_so(model).then_some(true),
        (said, _) => Some(said),
    }
}

/// A disk made of a file or of memory has no heads, whatever the kernel's flag says: it is 1 by default.
fn is_virtual(disk: &BlockDevice) -> bool {
    let is_made = match disk.kind {
        BlockKind::Loop | BlockKind::Zram | BlockKind::Ram | BlockKind::Nbd => true,
        BlockKind::Disk
        | BlockKind::Partition
        | BlockKind::Md
        | BlockKind::Dm
        | BlockKind::Rom
        | BlockKind::MmcArea => false,
    };
    is_made || disk.path.iter().any(|hop| hop.kind == HopKind::Virtio)
}

fn is_named_so(model: &str) -> bool {
    // Seagate: "ST1000LM035".
    let seagate = model.strip_prefix("ST").unwrap_or_default();
    NAMES.iter().any(|name| model.contains(name))
        || seagate.starts_with(|first: char| first.is_ascii_digit())
}
