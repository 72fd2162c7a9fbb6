//! What the guard has to know about a target: plain data, gathered by the other files here and
//! judged by `judge`. Nothing is read or decided here.

use rubus_host::block::blockdev::{DeviceNumber, Geometry};
use rubus_vocabulary::machine::BlockKind;

use crate::unseen::Unseen;

/// What a path turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetFacts {
    /// Nothing of that name exists.
    Missing {
        /// The path as the user gave it.
        asked: String,
    },
    /// A symbolic link that leads nowhere.
    Dangling {
        /// The path as the user gave it.
        asked: String,
        /// What the link says.
        target: String,
    },
    /// It cannot be reached or opened.
    Unreachable {
        /// The path as the user gave it.
        asked: String,
        /// Why, in the system's words.
        why: Unseen,
    },
    /// It exists but is no block device.
    NotBlock {
        /// The path as the user gave it.
        asked: String,
        /// What it is, with its article: "a directory".
        what: &'static str,
    },
    /// A node of a block device without a device or medium behind it.
    NoMedium {
        /// The path as the user gave it.
        asked: String,
    },
    /// A block device of which nothing more than the name matters.
    Named {
        /// The path as the user gave it.
        asked: String,
    },
    /// A block device.
    Device(Box<DeviceFacts>),
}

impl TargetFacts {
    /// The path as the user gave it.
    pub fn asked(&self) -> &str {
        match self {
            TargetFacts::Missing { asked }
            | TargetFacts::Dangling { asked, .. }
            | TargetFacts::Unreachable { asked, .. }
            | TargetFacts::NotBlock { asked, .. }
            | TargetFacts::NoMedium { asked }
            | TargetFacts::Named { asked } => asked,
            TargetFacts::Device(device) => &device.asked,
        }
    }
}

/// A block device, who uses it and what is on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceFacts {
    /// The path as the user gave it.
    pub asked: String,
    /// The path with symbolic links resolved.
    pub path: String,
    /// The kernel's name: "sda1", "loop3".
    pub name: String,
    /// Major and minor number.
    pub number: DeviceNumber,
    /// What kind of device it is.
    pub kind: BlockKind,
    /// The kernel's name of the disk that it is a partition of.
    pub disk: Option<String>,
    /// Size, blocks, write protection, running number of the medium; none when it could not be
    /// opened, and then `unreadable` says why.
    pub geometry: Option<Geometry>,
    /// By what a person recognises it.
    pub identity: Identity,
    /// Everything that uses it, its partitions, its disk, what stands on it and below it.
    pub uses: Vec<Use>,
    /// Everything that would be lost, as far as the bytes tell.
    pub contents: Vec<Content>,
    /// What had to be read to be sure and could not be, a sentence each without a full stop. The
    /// guard lets nothing through that it cannot see.
    pub unreadable: Vec<String>,
    /// Whether it was not opened because this user may not.
    pub is_denied: bool,
}

/// By what a person recognises a device. For a partition these are the facts of its disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Vendor and model, as far as it says.
    pub model: Option<String>,
    /// Serial number, if it says one that is worth the name.
    pub serial: Option<String>,
    /// Another disk of this machine that says the same serial number, by its kernel name.
    pub serial_shared_with: Option<String>,
    /// Number of the partition on its disk.
    pub partition: Option<u32>,
    /// Its name below `/dev/disk/by-id`, without the directory.
    pub by_id: Option<String>,
    /// What a network disk is attached to, as its driver was told ("nbd://192.168.1.2/root").
    pub export: Option<String>,
    /// How it is connected: "USB", "SD card", "loop device over /srv/disk.img".
    pub connected: String,
}

/// How a device that is in use is related to the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// It is the target.
    Itself,
    /// It is a partition of the target.
    Partition,
    /// It is the disk that the target is a partition of.
    WholeDisk,
    /// It stands on the target, directly or through others: an array, a mapping, a loop device.
    Above,
    /// The target stands on it.
    Below,
    /// It is another loop device over the same file as the target.
    Twin,
}

/// One way in which a device is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// The kernel's name of the used device.
    pub device: String,
    /// How it is related to the target.
    pub relation: Relation,
    /// What uses it.
    pub kind: UseKind,
}

/// What uses a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UseKind {
    /// A mounted filesystem, with all its mount points.
    Mounted {
        /// Type of the filesystem: "ext4".
        filesystem: String,
        /// Where, in the order of the mount table.
        points: Vec<String>,
    },
    /// A btrfs filesystem of several devices that is mounted, by whatever device.
    Btrfs {
        /// Label if it has one, else its UUID.
        name: String,
        /// Where, as far as this process can see.
        points: Vec<String>,
    },
    /// Active swap.
    Swap,
    /// A swap file on its filesystem.
    SwapFile {
        /// Path of the file.
        path: String,
    },
    /// An array, a mapping or a cache.
    Holder {
        /// For a sentence: "the RAID array md0", "the device-mapper volume cryptroot (dm-0)".
        what: String,
    },
    /// A loop device that stands on the device itself or on a file on it.
    Loop {
        /// The kernel's name of the loop device.
        name: String,
        /// The backing file or device as the kernel names it.
        backing: String,
    },
    /// Another loop device over the same backing file.
    SameBacking {
        /// The backing file.
        backing: String,
    },
    /// Active swap in the very file that backs the target.
    BackingIsSwap {
        /// Path of the file.
        path: String,
    },
    /// The firmware of this board reads it at each start, mounted or not.
    StartsBoard {
        /// The firmware's word for it: "/proc/device-tree/chosen/bootloader/boot-mode is 1".
        says: String,
    },
    /// A program has it open.
    Open {
        /// Process id.
        pid: u32,
        /// Name of the program.
        program: String,
        /// Whether it may write.
        writes: bool,
    },
    /// The kernel exports it, or the file that backs it, to other machines.
    Exported {
        /// For a sentence: "the USB gadget g1 (lun.0)".
        by: String,
    },
    /// A program has the file that backs the target open for writing.
    BackingOpen {
        /// Process id.
        pid: u32,
        /// Name of the program.
        program: String,
    },
    /// The kernel says that it is claimed. Where it can be told: what might have claimed it.
    Claimed {
        /// Mounts of it that other mount namespaces have, for a sentence:
        /// "/data in the namespace of process 123 (dockerd)".
        elsewhere: Vec<String>,
    },
}

/// Something on the device that would be lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// On which partition; none for the device itself.
    pub partition: Option<String>,
    /// What, with its article: "an ext4 filesystem \"rootfs\"".
    pub what: String,
    /// How large, where it is known.
    pub size_bytes: Option<u64>,
}

/// A partition as the kernel knows it: where on its disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SpanOnDisk {
    /// The kernel's name, or "partition 1" from a table that the kernel has not read.
    pub name: String,
    pub start_bytes: u64,
    /// Length in bytes.
    pub size_bytes: u64,
}
