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
/// Names that hypervisors give to their disks: QEMU, VirtualBox, Hyper-V and WSL, VMware, Google.
const HYPERVISOR_NAMES: [&str; 7] = [
    "QEMU HARDDISK",
    "VBOX HARDDISK",
    "Virtual Disk",
    "Virtual disk",
    "VMware Virtual S",
    "VMware Virtual I",
    "PersistentDisk",
];

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
    match (said, is_behind_usb(disk)) {
        (true, true) => is_named_so(model).then_some(true),
        (said, _) => Some(said),
    }
}

/// Whether a hypervisor made it, by its name. One on an emulated USB bus stands for any disk there.
pub fn is_of_hypervisor(disk: &BlockDevice) -> bool {
    let model = disk.model.text().unwrap_or_default().trim();
    HYPERVISOR_NAMES.contains(&model) && !is_behind_usb(disk)
}

fn is_behind_usb(disk: &BlockDevice) -> bool {
    disk.path.iter().any(|hop| hop.kind == HopKind::UsbDevice)
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
    let is_on_virtio = disk.path.iter().any(|hop| hop.kind == HopKind::Virtio);
    is_made || is_on_virtio || is_of_hypervisor(disk)
}

fn is_named_so(model: &str) -> bool {
    // Seagate: "ST1000LM035".
    let seagate = model.strip_prefix("ST").unwrap_or_default();
    NAMES.iter().any(|name| model.contains(name))
        || seagate.starts_with(|first: char| first.is_ascii_digit())
}
