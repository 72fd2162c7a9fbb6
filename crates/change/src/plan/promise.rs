//! What a plan promises for the time after it: things that can be looked at on the running machine.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::volume::FilesystemKind;

/// Something that holds once a plan is applied and, where it needs one, the machine was started again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Promise {
    /// As a sentence: "the root filesystem is btrfs on the USB disk".
    pub what: String,
    /// How it is looked at.
    pub look: Look,
    /// True when it holds only after the machine was started again.
    pub needs_boot: bool,
}

impl Look {
    /// Whether a start on trial is kept only when this holds: the root is the new one, the swap is in use, a link is as fast
    /// as it was set. Whatever else does not hold is told, and is no reason to go back to the old system.
    pub fn decides_trial(&self) -> bool {
        matches!(
            self,
            Look::Mounted { .. }
                | Look::MountedFrom { .. }
                | Look::SwapOn { .. }
                | Look::PcieLink { .. }
        )
    }
}

/// How a promise is looked at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "look", rename_all = "snake_case")]
pub enum Look {
    /// A filesystem is mounted there.
    Mounted {
        /// Where.
        at: PathBuf,
        /// What it is.
        kind: FilesystemKind,
        /// The filesystem's UUID.
        uuid: String,
        /// Options that must be among those that the kernel says, such as `compress=zstd:3`.
        options: Vec<String>,
    },
    /// Whatever is on a device is mounted there.
    MountedFrom {
        /// Where.
        at: PathBuf,
        /// The kernel's name of the device ("nbd0").
        device: String,
    },
    /// A directory lies in memory.
    InMemory {
        /// Where.
        at: PathBuf,
    },
    /// What lies on a btrfs filesystem is compressed.
    Compressed {
        /// Where it is mounted.
        at: PathBuf,
        /// Most share of their original size that all files together may take, 0 to 1; space that is only
        /// set aside does not count.
        at_most: f64,
    },
    /// A setting of the kernel, in `/sys` or `/proc/sys`.
    Knob {
        /// Absolute path.
        path: PathBuf,
        /// What it says.
        value: String,
    },
    /// A swap area is in use.
    SwapOn {
        /// UUID of the area, or absolute path of the file.
        what: String,
        /// Its priority, where one was given.
        priority: Option<i32>,
    },
    /// No swap lies on this disk (directly, through a partition or a file).
    NoSwapOnDisk {
        /// The kernel's name of the disk ("mmcblk0").
        disk: String,
        /// PARTUUID of a partition on it, by which it is found again when it has got another name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        partuuid: Option<String>,
    },
    /// Hardly anything is written to this disk while nothing is done: less than this in the time of the look.
    QuietDisk {
        /// The kernel's name of the disk ("mmcblk0").
        disk: String,
        /// PARTUUID of a partition on it, by which it is found again when it has got another name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        partuuid: Option<String>,
        /// Bytes per second that may be written to it.
        at_most_bytes_per_second: u64,
    },
    /// This kernel driver serves a USB bridge.
    UsbDriver {
        /// Vendor and product id, "152d:0578".
        chip: String,
        /// The driver's name, "usb-storage".
        driver: String,
    },
    /// The link of PCI Express that leads to a disk runs at this rate, and the kernel's log has no errors of it.
    PcieLink {
        /// The kernel's name of the disk ("nvme0n1").
        disk: String,
        /// Rate of all its lanes after coding.
        line_bits_per_second: u64,
    },
    /// A server of network disks answers.
    Served {
        /// How it is asked: an address such as `nbd+unix:///?socket=/run/rubus-serve-disk.socket`.
        address: String,
        /// The export that it must list; absent: any.
        export: Option<String>,
    },
    /// An array runs with all its members.
    Array {
        /// Its UUID, as mdadm writes it in `mdadm.conf`.
        uuid: String,
        /// Number of members.
        members: u32,
    },
}
