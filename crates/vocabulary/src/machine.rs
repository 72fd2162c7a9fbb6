//! What a machine is: the facts that the survey reads and everything else builds on.
//!
//! Every field that is read from the machine is a [`Fact`] or a list of things made of facts.
//! Names and units are the kernel's or the standard's; conversions happen where a fact is read.

pub mod device_index;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::fact::Fact;
use crate::kernel_log::KernelTrouble;
use crate::mount_entry::Entry;
pub use crate::throttling::Throttling;

/// Everything that is known about one machine at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Machine {
    /// Version of this structure: 1. Fields are only added within a version.
    pub schema: u32,
    /// When it was read, RFC 3339, UTC.
    pub read_at: String,
    /// Live, or from which capture.
    pub origin: Origin,
    /// The board.
    pub board: Board,
    /// Kernel and user space.
    pub system: System,
    /// The processor.
    pub cpu: Cpu,
    /// Heat, throttling, supply voltage.
    pub power: Power,
    /// Memory and its pressure.
    pub memory: Memory,
    /// Swap in all its forms.
    pub swap: Swap,
    /// Settings under `/proc/sys/vm` that matter for storage, by their short name
    /// ("dirty_ratio", "swappiness").
    pub vm: Vec<Setting>,
    /// Switches of the kernel configuration that matter, by name without `CONFIG_`.
    pub kernel_config: Vec<Setting>,
    /// Block devices, partitions included, in the kernel's order.
    pub block_devices: Vec<BlockDevice>,
    /// Buses that more than one device shares.
    pub shared_buses: Vec<SharedBus>,
    /// Mounted filesystems that sit on a device, are RAM disks, or come over the network.
    pub mounts: Vec<Mount>,
    /// The lines of `/etc/fstab` that name a volume of this machine. Those of network filesystems, which may hold a
    /// password, are left out.
    #[serde(default = "fstab_not_read")]
    pub fstab: Fact<Vec<Entry>>,
    /// Network links, loopback left out.
    pub links: Vec<Link>,
    /// What the kernel's log since the last start, and the counters of its filesystems, tell of trouble with storage.
    #[serde(default = "kernel_log_not_read", skip_serializing_if = "is_not_read")]
    pub kernel_log: Fact<Vec<KernelTrouble>>,
}

/// For machines that were read before there was this fact.
fn fstab_not_read() -> Fact<Vec<Entry>> {
    Fact::unknown(NOT_LOOKED_AT, "/etc/fstab")
}

/// For machines that were read before there was this fact.
fn kernel_log_not_read() -> Fact<Vec<KernelTrouble>> {
    Fact::unknown(NOT_LOOKED_AT, "dmesg")
}

/// Where the facts come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Origin {
    /// This machine, now.
    Live,
    /// A recorded machine.
    Capture {
        /// The capture's path.
        path: String,
        /// How it came to be, from its own label: "recorded by rubus 0.1.0 on 2026-11-21",
        /// "hand-built: …".
        label: String,
    },
}

/// A named setting whose value is kept as the kernel writes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Setting {
    /// Short name.
    pub name: String,
    /// Value as text ("20", "y", "m", "not set").
    pub value: Fact<String>,
}

/// The board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Board {
    /// "Raspberry Pi 4 Model B Rev 1.4", or vendor and product from DMI.
    pub model: Fact<String>,
    /// The device tree's `compatible` list, most specific first.
    pub compatible: Fact<Vec<String>>,
    /// The decoded revision code, on a Raspberry Pi.
    pub revision: Fact<Revision>,
    /// The system on chip ("BCM2711").
    pub soc: Fact<String>,
    /// Bootloader or firmware version, with its date where it has one.
    pub firmware: Fact<String>,
    /// Board serial number (a pseudonym in a capture).
    pub serial: Fact<String>,
    /// How the firmware of a Raspberry Pi started the running system, as it tells the kernel.
    #[serde(default = "bootloader_not_read", skip_serializing_if = "is_not_read")]
    pub bootloader: Fact<Bootloader>,
}

/// For machines that were read before there was this fact.
fn bootloader_not_read() -> Fact<Bootloader> {
    Fact::unknown(NOT_LOOKED_AT, Bootloader::SOURCE)
}

/// Why a fact is unknown that the version which read the machine did not have.
const NOT_LOOKED_AT: &str = "not looked at when this machine was read";

/// A record of an older version is written as it was.
fn is_not_read<T>(fact: &Fact<T>) -> bool {
    fact.reason() == Some(NOT_LOOKED_AT)
}

/// What the firmware of a Raspberry Pi says of the current start in the device tree; each number is absent where this
/// firmware does not say it. Source: Raspberry Pi documentation, "config.txt", `/proc/device-tree/chosen/bootloader`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bootloader {
    /// What it started from, by the numbers of `BOOT_ORDER`: 1 an SD card or eMMC, 2 the network, 3 another machine over
    /// USB (rpiboot), 4 and 5 USB, 6 NVMe, 7 HTTP.
    pub boot_mode: Option<u32>,
    /// Number of the partition that it read; 0 for the first that it can start from.
    pub partition: Option<u32>,
    /// Whether it is a trial after `reboot '0 tryboot'`: not 0.
    pub tryboot: Option<u32>,
    /// When the bootloader was built, seconds since 1970, UTC.
    pub built_unix_s: Option<u32>,
}

impl Bootloader {
    /// Where it is read.
    pub const SOURCE: &'static str = "/proc/device-tree/chosen/bootloader";
}

/// A Raspberry Pi's revision code, decoded.
///
/// Source: "Raspberry Pi revision codes", raspberrypi.com documentation: bit 23 new style,
/// 20–22 memory, 16–19 manufacturer, 12–15 processor, 4–11 type, 0–3 revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Revision {
    /// The code as the firmware gives it.
    pub code: u32,
    /// Short name of the type: "3B", "4B", "CM4", "5"; "unknown type 0x1f" for one that is newer
    /// than this program.
    pub board_type: String,
    /// "BCM2835" … "BCM2712".
    pub processor: String,
    /// Fitted memory in MiB.
    pub memory_mib: Option<u32>,
    /// "Sony UK", "Embest", …
    pub manufacturer: String,
    /// "1.4".
    pub revision: String,
}

/// Kernel and user space.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct System {
    /// "Debian GNU/Linux 13 (trixie)".
    pub os: Fact<String>,
    /// `ID` and then the words of `ID_LIKE` in os-release(5): "raspbian", "debian". Empty where it says none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub os_ids: Vec<String>,
    /// "6.12.47+rpt-rpi-v8".
    pub kernel_release: Fact<String>,
    /// "aarch64", "armv7l", "x86_64".
    pub kernel_arch: Fact<String>,
    /// 32 or 64, of user space (from the ELF class of the shell).
    pub user_space_bits: Fact<u32>,
    /// Size of a memory page.
    pub page_bytes: Fact<u64>,
    /// The kernel's command line.
    pub command_line: Fact<String>,
    /// "kvm", "qemu", "none", … from the processor flags, DMI or the device tree.
    pub virtualization: Fact<String>,
    /// What made the container that this is seen from, in the words of systemd-detect-virt(1): "docker", "lxc". None outside
    /// of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
}

/// The processor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cpu {
    /// "Cortex-A72" or the x86 model name.
    pub model: Fact<String>,
    /// Cores that are online.
    pub cores: Fact<u32>,
    /// Clocks per group of cores that share one.
    pub clocks: Vec<Clock>,
    /// Instruction-set extensions that matter for ciphers and checksums, in the kernel's words
    /// ("aes", "pmull", "sha2", "neon", "vaes").
    pub crypto_features: Fact<Vec<String>>,
}

/// One clock domain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Clock {
    /// Cores in it ("0-3").
    pub cores: String,
    /// Now.
    pub current_hz: Fact<u64>,
    /// Lowest.
    pub min_hz: Fact<u64>,
    /// Highest.
    pub max_hz: Fact<u64>,
    /// "ondemand", "schedutil", "performance".
    pub governor: Fact<String>,
}

/// Heat, throttling, supply voltage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Power {
    /// Temperatures by the name of their zone, in thousandths of a degree Celsius.
    pub temperatures: Vec<Temperature>,
    /// The firmware's throttling word, on a Raspberry Pi.
    pub throttling: Fact<Throttling>,
    /// The kernel's undervoltage alarm (hwmon `rpi_volt`): true when it was raised since boot.
    pub undervoltage_alarm: Fact<bool>,
}

impl Power {
    /// Whether the supply voltage was too low since the start, by the firmware or the kernel's alarm; false where neither is known.
    pub fn has_sagged(&self) -> bool {
        let by_firmware = self
            .throttling
            .value()
            .is_some_and(|word| word.undervoltage_now || word.undervoltage_seen);
        by_firmware || self.undervoltage_alarm.get() == Some(true)
    }
}

/// One temperature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Temperature {
    /// "cpu-thermal".
    pub zone: String,
    /// In thousandths of a degree Celsius.
    pub millicelsius: Fact<i64>,
}

/// Memory and its pressure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Memory {
    /// What the kernel manages.
    pub total_bytes: Fact<u64>,
    /// What programs can have without swapping.
    pub available_bytes: Fact<u64>,
    /// Page cache and buffers.
    pub cached_bytes: Fact<u64>,
    /// Written by programs, not yet on a device.
    pub dirty_bytes: Fact<u64>,
    /// Pressure stall information, by resource ("cpu", "io", "memory").
    pub pressure: Vec<Pressure>,
}

/// Pressure stall information of one resource: shares of wall time, in percent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pressure {
    /// "cpu", "io", "memory".
    pub resource: String,
    /// Some task waited, average over 10 s.
    pub some_avg10: Fact<f64>,
    /// Some task waited, average over 300 s.
    pub some_avg300: Fact<f64>,
    /// All tasks waited, average over 10 s.
    pub full_avg10: Fact<f64>,
}

/// Swap in all its forms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Swap {
    /// Active areas.
    pub areas: Vec<SwapArea>,
    /// zswap, the compressed cache in front of them.
    pub zswap: Zswap,
    /// zram devices.
    pub zram: Vec<Zram>,
    /// Which program configures swap and its settings as `name = value` lines
    /// (`/etc/dphys-swapfile`, `/etc/rpi/swap.conf` with its drop-ins, `/etc/systemd/zram-generator.conf`).
    pub managers: Vec<SwapManager>,
}

/// One active swap area.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SwapArea {
    /// Path of the file or device.
    pub path: String,
    /// "partition" or "file".
    pub kind: String,
    /// Size.
    pub size_bytes: u64,
    /// In use.
    pub used_bytes: u64,
    /// The higher is used first.
    pub priority: i32,
    /// Kernel name of the block device that it finally sits on.
    pub device: Fact<String>,
}

/// zswap's parameters and counters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Zswap {
    /// Whether it is on.
    pub enabled: Fact<bool>,
    /// All parameters of this kernel, by name.
    pub parameters: Vec<Setting>,
    /// All debugfs counters of this kernel, by name; empty without root, with `counters_unknown`.
    pub counters: Vec<Setting>,
    /// Why there are no counters, if there are none.
    pub counters_unknown: Option<String>,
}

/// One zram device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Zram {
    /// "zram0".
    pub name: String,
    /// Uncompressed capacity.
    pub size_bytes: Fact<u64>,
    /// Compressor in use.
    pub algorithm: Fact<String>,
    /// Uncompressed bytes stored.
    pub original_bytes: Fact<u64>,
    /// Their compressed size.
    pub compressed_bytes: Fact<u64>,
    /// Memory used for them.
    pub memory_bytes: Fact<u64>,
    /// Device for write-back ("none" when there is none).
    pub backing_device: Fact<String>,
}

/// A program that configures swap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SwapManager {
    /// "dphys-swapfile", "rpi-swap", "zram-generator", "zram-tools".
    pub name: String,
    /// Its settings, comments left out.
    pub settings: Fact<Vec<String>>,
}

/// What kind of block device it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum BlockKind {
    /// A whole disk, card or stick.
    Disk,
    /// A part of a disk.
    Partition,
    /// A loop device over a file.
    Loop,
    /// Software RAID.
    Md,
    /// Device mapper: LVM, LUKS.
    Dm,
    /// Compressed RAM.
    Zram,
    /// Network block device.
    Nbd,
    /// A RAM disk.
    Ram,
    /// Optical.
    Rom,
    /// A boot or replay-protected area of an eMMC.
    MmcArea,
}

/// One block device or partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockDevice {
    /// Kernel name: "mmcblk0p2", "sda", "nvme0n1".
    pub name: String,
    /// "179:2".
    pub major_minor: String,
    /// What it is.
    pub kind: BlockKind,
    /// The disk that a partition is a part of.
    pub parent: Option<String>,
    /// Devices on top of it (md, dm, …), by kernel name.
    pub holders: Vec<String>,
    /// Devices below it (members of an array, the disk under LUKS), by kernel name; for a loop
    /// device the device that its backing file sits on.
    pub below: Vec<String>,
    /// Backing file of a loop device.
    pub backing_file: Option<String>,
    /// Size.
    pub size_bytes: Fact<u64>,
    /// Smallest addressable unit.
    pub logical_block_bytes: Fact<u32>,
    /// Unit that it really works in, as far as it says.
    pub physical_block_bytes: Fact<u32>,
    /// Whether writes are refused.
    pub read_only: Fact<bool>,
    /// Whether the medium or device can be taken out.
    pub removable: Fact<bool>,
    /// Whether it has spinning platters.
    pub rotational: Fact<bool>,
    /// The active I/O scheduler.
    pub scheduler: Fact<String>,
    /// "write back" or "write through".
    pub write_cache: Fact<String>,
    /// Largest discard; 0 means no TRIM.
    pub discard_max_bytes: Fact<u64>,
    /// Requests that the kernel queues.
    pub queue_requests: Fact<u32>,
    /// Commands that the device takes at once (SCSI queue depth, NVMe queues, MMC queueing), if
    /// it says.
    pub device_queue_depth: Fact<u32>,
    /// Vendor, if it says.
    pub vendor: Fact<String>,
    /// Model, if it says.
    pub model: Fact<String>,
    /// Serial number, if it says (a pseudonym in a capture).
    pub serial: Fact<String>,
    /// What is on it: filesystem, swap, RAID member, partition table.
    pub content: Fact<String>,
    /// Label and UUIDs, for finding it again.
    pub identity: Identity,
    /// From the processor to the device. Empty for partitions (see the parent) and virtual devices.
    pub path: Vec<Hop>,
    /// What an SD card or eMMC says of itself and how it is connected.
    pub mmc: Option<Mmc>,
}

/// Names under which a device or filesystem is found again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Identity {
    /// Filesystem label.
    pub label: Option<String>,
    /// Filesystem UUID.
    pub uuid: Option<String>,
    /// Partition UUID.
    pub partuuid: Option<String>,
    /// Name of the partition, in a GPT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partlabel: Option<String>,
    /// Further paths that udev makes for it ("/dev/disk/by-id/…", "/dev/disk/by-path/…", "/dev/mapper/…").
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
}

/// What kind of a hop it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum HopKind {
    /// The root of the system on chip.
    Soc,
    /// A PCI Express device or bridge.
    Pcie,
    /// A USB host controller with its root hub.
    UsbController,
    /// A USB hub.
    UsbHub,
    /// The USB device itself (bridge, stick, card reader).
    UsbDevice,
    /// An SD or eMMC host controller.
    MmcHost,
    /// A SATA or SCSI port.
    Scsi,
    /// An NVMe controller.
    Nvme,
    /// A paravirtual device.
    Virtio,
    /// The network, below NBD.
    Network,
}

/// One hop on the path of buses from the processor to a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hop {
    /// What it is.
    pub kind: HopKind,
    /// The kernel's name of it ("usb1", "1-1.2", "0000:01:00.0", "mmc0"): two devices with the same
    /// hop share it.
    pub id: String,
    /// For people: "VIA VL805 USB 3 controller", "JMicron JMS578 bridge".
    pub name: String,
    /// Vendor and product id of a USB or PCI chip ("152d:0578"), for looking it up and for the
    /// kernel's quirk settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chip: Option<String>,
    /// Negotiated line rate in bits per second: 480 000 000 for USB 2; for PCIe lanes × rate after
    /// line coding; for MMC clock × width (× 2 for DDR).
    pub line_bits_per_second: Fact<u64>,
    /// The best line rate that both ends could have, where known.
    pub max_line_bits_per_second: Fact<u64>,
    /// How it is connected, for people: "USB 2, 480 Mbit/s", "PCIe Gen 2 ×1 (of Gen 3 ×4)".
    pub link: String,
    /// Kernel driver ("uas", "usb-storage", "xhci_hcd", "mmc-bcm2835").
    pub driver: Fact<String>,
    /// What this hop carries in practice, in bytes per second, with the source of the rule; used
    /// as its pipe's width when nothing was measured.
    #[serde(deserialize_with = "crate::fact::positive")]
    pub usable_bytes_per_second: Fact<f64>,
    /// Whether a USB disk can be driven without UAS: one of its interface settings speaks bulk-only
    /// transport. Absent where its descriptors say nothing of disks or cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speaks_bulk_only: Option<bool>,
}

/// A bus that several devices share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SharedBus {
    /// The [`Hop::id`] that they have in common, the deepest one.
    pub id: String,
    /// For people.
    pub name: String,
    /// Kernel names of the block devices and network links on it.
    pub members: Vec<String>,
    /// What it carries in practice, for all members together.
    #[serde(deserialize_with = "crate::fact::positive")]
    pub usable_bytes_per_second: Fact<f64>,
}

/// An SD card or eMMC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mmc {
    /// "SD" or "MMC".
    pub kind: Fact<String>,
    /// Manufacturer id of the CID register.
    pub manufacturer_id: Fact<u32>,
    /// OEM id of the CID register, two characters.
    pub oem_id: Fact<String>,
    /// Month of manufacture ("03/2024").
    pub date: Fact<String>,
    /// Speed mode: "high speed", "UHS-I SDR104", "UHS-I DDR50", "HS400".
    pub timing: Fact<String>,
    /// Bus clock.
    pub clock_hz: Fact<u64>,
    /// Data lines: 1, 4 or 8.
    pub width: Fact<u32>,
    /// What the card promises in its SD Status register (`ssr`).
    pub promises: Fact<SdStatus>,
    /// Whether the host uses command queueing.
    pub command_queueing: Fact<bool>,
}

/// The SD Status register, decoded (SD Physical Layer Simplified Specification, section 4.10.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SdStatus {
    /// Speed class: 0, 2, 4, 6, 10.
    pub speed_class: u8,
    /// UHS speed grade: 0, 1, 3.
    pub uhs_grade: u8,
    /// Video speed class: 0, 6, 10, 30, 60, 90.
    pub video_class: u8,
    /// Application performance class: 0, 1 (A1), 2 (A2).
    pub application_class: u8,
    /// Allocation unit in KiB; 0 if it does not say.
    pub allocation_unit_kib: u32,
    /// Deepest command queue that the card offers; 0 for none.
    pub queue_depth: u8,
    /// Whether the card offers a cache.
    pub cache: bool,
}

/// A mounted filesystem.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mount {
    /// Where.
    pub point: String,
    /// Source as the kernel names it ("/dev/mmcblk0p2", "tmpfs", "server:/export").
    pub source: String,
    /// Kernel name of the block device below, where there is one.
    pub device: Option<String>,
    /// Root of the mount within the filesystem ("/", "/@home").
    pub root: String,
    /// "ext4", "btrfs", "vfat", "tmpfs", "nfs4".
    pub filesystem: String,
    /// Mount and superblock options together, in the kernel's order.
    pub options: Vec<String>,
    /// Compression as mounted ("zstd:3"), for filesystems that have it.
    pub compression: Option<String>,
    /// Size of the filesystem.
    pub size_bytes: Fact<u64>,
    /// Free for this user.
    pub available_bytes: Fact<u64>,
}

/// A network link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Link {
    /// "eth0".
    pub name: String,
    /// "ethernet", "wifi", "virtual".
    pub kind: String,
    /// "up", "down", …
    pub state: Fact<String>,
    /// Negotiated line rate.
    pub bits_per_second: Fact<u64>,
    /// "full" or "half".
    pub duplex: Fact<String>,
    /// Kernel driver.
    pub driver: Fact<String>,
    /// From the processor to the network chip.
    pub path: Vec<Hop>,
}

impl BlockDevice {
    /// The stick, or the bridge between USB and the disk; absent where the disk is not reached over USB.
    pub fn usb_device(&self) -> Option<&Hop> {
        let mut hops = self.path.iter();
        hops.find(|hop| hop.kind == HopKind::UsbDevice)
    }
}

impl Machine {
    /// A block device by its kernel name.
    pub fn device(&self, name: &str) -> Option<&BlockDevice> {
        self.block_devices.iter().find(|device| device.name == name)
    }

    /// The mount that holds a path; of two at one place the later one, which hides the other.
    pub fn mount_holding(&self, path: &Path) -> Option<&Mount> {
        let above = self.mounts.iter().filter(|mount| path.starts_with(&mount.point));
        above.max_by_key(|mount| mount.point.len())
    }

    /// What a run on this device measured: the device itself, or the disk of a partition. What lies below a loop device, an
    /// array or an encrypted volume is another device.
    pub fn measured_device(&self, name: &str) -> Option<&BlockDevice> {
        let device = self.device(name)?;
        let disk = device.parent.as_deref().and_then(|parent| self.device(parent));
        Some(disk.unwrap_or(device))
    }

    /// The same where it is a physical disk or a network disk, so that nothing lies below it.
    pub fn measured_disk(&self, name: &str) -> Option<&BlockDevice> {
        self.measured_device(name).filter(|device| device.below.is_empty())
    }

    /// The physical disks below a device: itself for a disk, the parent of a partition, every
    /// member of an array, followed down to the bottom. In the kernel's order, each once.
    pub fn disks_below<'a>(&'a self, name: &str) -> Vec<&'a BlockDevice> {
        device_index::DeviceIndex::of(self).disks_below(name)
    }
}
