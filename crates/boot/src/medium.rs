//! From which disk the board starts, mounted or not.
//!
//! The firmware of a Raspberry Pi tells the kernel from what it started (device tree, `chosen/bootloader`, since the
//! bootloaders of 2021). Where it says nothing, the mounted boot partition is the best guess; where there is none, a card
//! that could be started from: the firmware looks there first unless it was told otherwise (Raspberry Pi documentation,
//! "Boot sequence", `BOOT_ORDER`).

use rubus_vocabulary::machine::{BlockDevice, BlockKind, Bootloader, HopKind, Machine, Mount};

use crate::fstab::Entry;
use crate::model::{Kernels, Model};
use crate::volume::{Name, NamedVolume};

/// Where boot partitions are mounted: today, and by older systems.
const BOOT_POINTS: [&str; 2] = ["/boot/firmware", "/boot"];
const FAT: [&str; 2] = ["vfat", "msdos"];

/// How sure something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    NotKnown,
    Likely,
    Certain,
}

/// From where the running system was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Medium {
    /// The disks that it may have been, by their kernel names; none where it was no disk, or nothing is known.
    pub disks: Vec<String>,
    /// The partition that the firmware read, by its kernel name, where that is known.
    pub partition: Option<String>,
    /// Whether it was one of them: certain where the firmware says so.
    pub certainty: Certainty,
    /// From what that follows, as a clause.
    pub why: String,
}

/// What the numbers of `BOOT_ORDER` and `boot-mode` are. Source: Raspberry Pi documentation, "BOOT_ORDER".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// An SD card or eMMC.
    Card,
    Usb,
    Nvme,
    /// The network, or another machine over USB.
    NoDisk(&'static str),
}

impl Mode {
    /// By its number.
    pub fn of(number: u32) -> Option<Mode> {
        match number {
            0 | 1 => Some(Mode::Card),
            2 => Some(Mode::NoDisk("the network")),
            3 => Some(Mode::NoDisk("another machine over USB")),
            4 | 5 => Some(Mode::Usb),
            6 => Some(Mode::Nvme),
            7 => Some(Mode::NoDisk("HTTP")),
            _ => None,
        }
    }

    /// For a sentence: "a USB disk".
    pub fn words(self) -> &'static str {
        match self {
            Mode::Card => "the SD card or eMMC",
            Mode::Usb => "a USB disk",
            Mode::Nvme => "an NVMe disk",
            Mode::NoDisk(what) => what,
        }
    }

    /// Whether a disk is of that kind; absent where it would follow from its way to the processor, and that is not known.
    pub fn holds(self, disk: &BlockDevice) -> Option<bool> {
        let is_nvme = disk.name.starts_with("nvme");
        match self {
            Mode::Card => Some(is_card(disk)),
            Mode::Usb if is_card(disk) || is_nvme => Some(false),
            Mode::Usb if disk.path.is_empty() => None,
            Mode::Usb => Some(disk.path.iter().any(|hop| hop.kind == HopKind::UsbDevice)),
            Mode::Nvme => Some(is_nvme),
            Mode::NoDisk(_) => Some(false),
        }
    }
}

/// How the kernel names the disks that a `boot-mode` means, where their names tell them from others.
pub fn name_prefix(boot_mode: u32) -> Option<&'static str> {
    match Mode::of(boot_mode)? {
        Mode::Card => Some("mmcblk"),
        Mode::Nvme => Some("nvme"),
        Mode::Usb | Mode::NoDisk(_) => None,
    }
}

/// From where the running system was started.
pub fn start_medium(machine: &Machine) -> Medium {
    let told = machine.board.bootloader.get().unwrap_or_default();
    let mounted = mounted(machine);
    match told.boot_mode.and_then(Mode::of) {
        Some(mode) => of_mode(machine, mode, told, mounted),
        None => assumed(machine, mounted),
    }
}

/// Why a disk may not be given a new content although nothing of it is mounted: the board starts from it, or may do so.
pub fn starts_from(machine: &Machine, disk: &str) -> Option<String> {
    let medium = start_medium(machine);
    if !medium.disks.iter().any(|name| name == disk) {
        return comes_first(machine, disk);
    }
    Some(match (medium.certainty, medium.disks.len()) {
        (Certainty::Certain, 1) => format!("the board starts from it ({})", medium.why),
        _ => format!("the board may start from it ({})", medium.why),
    })
}

/// Boards without an EEPROM look for a card first and do not say from where they started: a card may have been it although the
/// boot partition of another disk is mounted, a copy of the card's mostly.
fn comes_first(machine: &Machine, disk: &str) -> Option<String> {
    let is_told = machine.board.bootloader.get().is_some_and(|told| told.boot_mode.is_some());
    let kernels = Model::of(&machine.board).kernels;
    let looks_there = !kernels.has_eeprom() && kernels != Kernels::Named;
    let device = machine.device(disk)?;
    let may_be = !is_told && looks_there && is_card(device) && can_hold_firmware(machine, device);
    may_be.then(|| "the board may start from it (it looks for a card first)".into())
}

/// The partition that the firmware reads, where another one is mounted in its place: the kernel name of each, and from
/// what it follows.
pub fn other_partition_mounted(machine: &Machine) -> Option<(String, String, String)> {
    let medium = start_medium(machine);
    if medium.certainty != Certainty::Certain {
        return None;
    }
    let mounted = mounted(machine)?.device.clone()?;
    let read = medium.partition?;
    (read != mounted).then_some((read, mounted, medium.why))
}

/// The line of `/etc/fstab` for a partition, by its kernel name.
pub fn line_of<'a>(machine: &'a Machine, partition: &str) -> Option<&'a Entry> {
    let device = machine.device(partition)?;
    let volume = NamedVolume {
        path: format!("/dev/{partition}"),
        partuuid: device.identity.partuuid.clone(),
        uuid: device.identity.uuid.clone(),
        label: device.identity.label.clone(),
        partlabel: device.identity.partlabel.clone(),
        links: device.identity.links.clone(),
        filesystem: None,
    };
    let is_its = |entry: &&Entry| {
        !entry.is_swap() && !Name::of(entry).resolve(std::slice::from_ref(&volume)).is_empty()
    };
    machine.fstab.value()?.iter().find(is_its)
}

/// The usual place of boot partitions where this one is mounted by whatever reaches into it. Source: systemd.automount(5),
/// fstab(5) and systemd-fstab-generator(8), `x-systemd.automount`.
pub fn mounted_on_demand(machine: &Machine, partition: &str) -> Option<&'static str> {
    on_demand(line_of(machine, partition)?)
}

/// The usual place of boot partitions where one is mounted by whatever reaches into it, whichever the firmware reads.
pub fn boot_point_on_demand(machine: &Machine) -> Option<&'static str> {
    machine.fstab.value()?.iter().find_map(on_demand)
}

/// That place while nothing is mounted there but what mounts it.
pub fn idle_boot_point(machine: &Machine) -> Option<&'static str> {
    let point = boot_point_on_demand(machine)?;
    let is_it = |mount: &Mount| mount.point == point && FAT.contains(&mount.filesystem.as_str());
    (!machine.mounts.iter().any(is_it)).then_some(point)
}

fn on_demand(line: &Entry) -> Option<&'static str> {
    let point = BOOT_POINTS.iter().find(|point| line.target.trim_end_matches('/') == **point)?;
    line.is_on_demand().then_some(*point)
}

/// Whether the system writes its kernels to the root, where another loader on the boot partition reads them, and leaves that
/// partition unmounted. Source: nixpkgs, nixos/modules/installer/sd-card/sd-image.nix (`noauto`) and
/// generic-extlinux-compatible. Or updates write them to the share from which a server hands them out.
pub fn kernels_are_elsewhere(machine: &Machine) -> bool {
    let is_share = |mount: &Mount| {
        BOOT_POINTS.contains(&mount.point.as_str()) && mount.filesystem.starts_with("nfs")
    };
    machine.system.os_ids.iter().any(|id| id == "nixos") || machine.mounts.iter().any(is_share)
}

/// The partition that this start read and the first one on its disk that the firmware would take by itself, where they
/// differ: with two systems on a card, or PINN's menu.
pub fn not_the_first_partition(machine: &Machine) -> Option<(String, String)> {
    let medium = start_medium(machine);
    let read = medium.partition?;
    let [disk] = medium.disks.as_slice() else { return None };
    let first = partitions(machine, disk).find(|part| may_be_fat(part))?;
    (first.name != read).then(|| (read, first.name.clone()))
}

fn of_mode(machine: &Machine, mode: Mode, told: Bootloader, mounted: Option<&Mount>) -> Medium {
    let number = told.boot_mode.unwrap_or_default();
    let why = format!("{}/boot-mode is {number}: {}", Bootloader::SOURCE, mode.words());
    let of = |wanted: Option<bool>| -> Vec<String> {
        let disks = disks(machine)
            .filter(|disk| mode.holds(disk) == wanted && can_hold_firmware(machine, disk));
        disks.map(|disk| disk.name.clone()).collect()
    };
    let (mut names, mut certainty) = (of(Some(true)), Certainty::Certain);
    if names.is_empty() {
        names = of(None);
        certainty = Certainty::Likely;
    }
    if names.is_empty() && !matches!(mode, Mode::NoDisk(_)) {
        // What the firmware says and what is plugged in contradict each other: the medium was taken out.
        let mut medium = assumed(machine, mounted);
        medium.certainty = Certainty::NotKnown;
        return medium;
    }
    // Of several the firmware does not say which; the mounted boot partition does in all but strange set-ups.
    if names.len() > 1 {
        certainty = Certainty::Likely;
        if let Some(disk) = mounted.and_then(|mount| disk_of(machine, mount)) {
            if names.contains(&disk) {
                names = vec![disk];
            }
        }
    }
    let partition = match names.as_slice() {
        [disk] => read_partition(machine, disk, told.partition),
        _ => None,
    };
    // 0 is the first that can be started from, and another one than the first is mounted.
    let own = mounted.and_then(|mount| mount.device.as_deref());
    let is_behind = |first: &str| {
        let is_other = |part: &BlockDevice| may_be_fat(part) && part.name != first;
        let mut parts = names.iter().flat_map(|disk| partitions(machine, disk));
        parts.any(|part| is_other(part) && Some(part.name.as_str()) == own)
    };
    if told.partition == Some(0) && partition.as_deref().is_some_and(is_behind) {
        return Medium { disks: names, partition: None, certainty: Certainty::Likely, why };
    }
    Medium { disks: names, partition, certainty, why }
}

/// Without the firmware's word.
fn assumed(machine: &Machine, mounted: Option<&Mount>) -> Medium {
    if let Some((mount, disk)) = mounted.and_then(|mount| Some((mount, disk_of(machine, mount)?))) {
        return Medium {
            disks: vec![disk],
            partition: mount.device.clone(),
            certainty: Certainty::Likely,
            why: format!("{} is on it", mount.point),
        };
    }
    let cards = disks(machine).filter(|disk| is_card(disk));
    let cards: Vec<&BlockDevice> = cards.collect();
    let is_used = |disk: &&BlockDevice| has_root(machine, &disk.name);
    let is_pi = Model::of(&machine.board).kernels != Kernels::Named;
    let has_device_tree = machine.board.compatible.value().is_some();
    let (names, why): (Vec<&BlockDevice>, &str) = match (is_pi, has_device_tree) {
        (true, _) => {
            // A card without the firmware's files is passed over, and then the disk of the root is the next that is known.
            let may_start = |disk: &&BlockDevice| {
                (is_card(disk) || is_used(disk)) && can_hold_firmware(machine, disk)
            };
            (
                disks(machine).filter(may_start).collect(),
                "no boot partition is mounted, and a Raspberry Pi looks for one on its card first",
            )
        }
        // U-Boot lies before the first partition, where no table shows it.
        (false, true) if !cards.iter().any(is_used) => (
            cards,
            "most boards load U-Boot from a card or eMMC, from sectors that no partition shows",
        ),
        (false, _) => (Vec::new(), "this is no board whose start is understood"),
    };
    Medium {
        disks: names.into_iter().map(|disk| disk.name.clone()).collect(),
        partition: None,
        certainty: Certainty::NotKnown,
        why: why.into(),
    }
}

fn read_partition(machine: &Machine, disk: &str, number: Option<u32>) -> Option<String> {
    match number? {
        0 => {
            let mut parts = partitions(machine, disk);
            parts.find(|part| may_be_fat(part)).map(|part| part.name.clone())
        }
        number => {
            let gap = if disk.ends_with(|c: char| c.is_ascii_digit()) { "p" } else { "" };
            let name = format!("{disk}{gap}{number}");
            partitions(machine, disk).any(|part| part.name == name).then_some(name)
        }
    }
}

fn disks(machine: &Machine) -> impl Iterator<Item = &BlockDevice> {
    let devices = machine.block_devices.iter();
    devices.filter(|device| device.kind == BlockKind::Disk && device.parent.is_none())
}

fn partitions<'a>(machine: &'a Machine, disk: &'a str) -> impl Iterator<Item = &'a BlockDevice> {
    machine.block_devices.iter().filter(move |part| part.parent.as_deref() == Some(disk))
}

/// Whether the firmware could find its files there. What is not known may be FAT.
fn can_hold_firmware(machine: &Machine, disk: &BlockDevice) -> bool {
    let mut parts = partitions(machine, &disk.name).peekable();
    match parts.peek() {
        Some(_) => parts.any(may_be_fat),
        None => disk.content.text().is_some_and(|content| FAT.contains(&content)),
    }
}

fn may_be_fat(part: &BlockDevice) -> bool {
    part.content.text().is_none_or(|content| FAT.contains(&content))
}

fn is_card(disk: &BlockDevice) -> bool {
    disk.mmc.is_some() || disk.name.starts_with("mmcblk")
}

fn mounted(machine: &Machine) -> Option<&Mount> {
    let at = |point: &&str| {
        let mut mounts = machine.mounts.iter().rev();
        mounts.find(|mount| mount.point == **point && FAT.contains(&mount.filesystem.as_str()))
    };
    BOOT_POINTS.iter().find_map(at)
}

fn disk_of(machine: &Machine, mount: &Mount) -> Option<String> {
    let disks = machine.disks_below(mount.device.as_deref()?);
    disks.first().map(|disk| disk.name.clone())
}

fn has_root(machine: &Machine, disk: &str) -> bool {
    let mut mounts = machine.mounts.iter();
    mounts.any(|mount| {
        let is_system = mount.point == "/" || BOOT_POINTS.contains(&mount.point.as_str());
        is_system && disk_of(machine, mount).as_deref() == Some(disk)
    })
}

#[cfg(test)]
mod tests;
