//! What was measured, as the object of a sentence.

use rubus_vocabulary::machine::{BlockDevice, BlockKind, HopKind};
use rubus_vocabulary::result::Run;

/// "the SD card mmcblk0", "the USB disk sda", "memory (tmpfs)".
pub(super) fn device_in_words(run: &Run) -> String {
    let Some(device) = run.target.device.as_deref() else {
        return match run.target.filesystem.as_deref() {
            _ if run.target.nas.is_some() => "this share".into(),
            Some("tmpfs" | "ramfs") => "memory (tmpfs)".into(),
            Some(filesystem) => format!("this {filesystem} filesystem"),
            None => run.target.named.clone(),
        };
    };
    match run.machine.measured_device(device) {
        Some(whole) => format!("{} {}", kind_in_words(whole), whole.name),
        None => device.to_string(),
    }
}

fn kind_in_words(device: &BlockDevice) -> &'static str {
    match device.kind {
        BlockKind::Disk => match device.path.last().map(|hop| hop.kind) {
            _ if device.mmc.is_some() => {
                match device.mmc.as_ref().and_then(|mmc| mmc.kind.text()) {
                    Some("SD") => "the SD card",
                    Some("MMC") => "the eMMC",
                    _ => "the card",
                }
            }
            Some(HopKind::UsbDevice | HopKind::UsbHub | HopKind::UsbController) => "the USB disk",
            Some(HopKind::Nvme) => "the NVMe disk",
            Some(HopKind::Virtio) => "the virtual disk",
            _ => "the disk",
        },
        BlockKind::Loop => "the loop device",
        BlockKind::Md => "the array",
        BlockKind::Dm => "the mapped device",
        BlockKind::Nbd => "the network disk",
        BlockKind::Zram => "compressed memory",
        _ => "the device",
    }
}
