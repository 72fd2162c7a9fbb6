//! What the kernel's log says of trouble with storage.

use serde::{Deserialize, Serialize};

/// A kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TroubleKind {
    /// A transfer to or from a card failed or took too long; the kernel tries again.
    CardTransfer,
    /// A card did not come up, or did not leave its busy state.
    CardStart,
    /// A card is read-only.
    CardReadOnly,
    /// The command queue of a card stalled, and was emptied and filled again.
    CardQueue,
    /// A card went away while it was in use.
    CardGone,
    /// A read or write failed for good.
    Io,
    /// The disk says that it cannot read or write a place of its medium.
    Medium,
    /// The disk says that it is broken.
    Hardware,
    /// A SATA cable or port lost or damaged what it carried.
    AtaLink,
    /// A SATA or SCSI disk did not answer in time.
    AtaTimeout,
    /// A command to a disk behind a USB bridge with UAS was given up.
    UasAbort,
    /// A USB device was reset.
    UsbReset,
    /// A USB device did not answer when it was addressed.
    UsbEnumeration,
    /// A USB device went away.
    UsbDisconnect,
    /// A USB device appeared.
    UsbConnect,
    /// A USB port carries a disk.
    UsbDisk,
    /// A USB controller stopped, and all that is behind it is gone.
    UsbController,
    /// A USB port gave more current than it may.
    OverCurrent,
    /// The supply voltage of the board was too low.
    Undervoltage,
    /// An NVMe controller did not answer in time.
    NvmeTimeout,
    /// An NVMe controller is gone.
    NvmeGone,
    /// An NVMe controller says of itself that it has a fatal error.
    NvmeFatal,
    /// PCI Express repeated a transfer.
    PcieCorrected,
    /// PCI Express lost a transfer.
    PcieUncorrected,
    /// A filesystem is damaged, or could not read or write what it needs.
    Filesystem,
    /// A filesystem became read-only because of an error.
    FilesystemReadOnly,
    /// A filesystem read something whose checksum is wrong.
    Checksum,
    /// An array lost a member.
    ArrayMember,
    /// A file server (NFS, SMB) did not answer in time.
    ServerSilent,
}

/// Trouble of one kind with one part, counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelTrouble {
    /// What happened.
    pub kind: TroubleKind,
    /// The part by the name that the kernel gives it: a disk or partition (`sda1`, `mmcblk0`), a card's host (`mmc0`), a SATA port
    /// (`ata3`), an NVMe controller (`nvme0`), a USB port (`1-1.4`), a PCI function; empty for the board.
    pub part: String,
    /// How often.
    pub times: u64,
    /// When first, in seconds since the kernel started; absent where the log has other times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_s: Option<f64>,
    /// When last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_s: Option<f64>,
}
