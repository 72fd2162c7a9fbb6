//! A place for data: how it works, the buses in front of it, and of what kind a disk is.

use crate::advice::{Bases, MeasuredDisk};
use crate::device_classes::DeviceClass;
use rubus_machine::purpose::What;
use rubus_vocabulary::machine::{BlockDevice, BlockKind, Hop, HopKind, Machine};
use rubus_vocabulary::platters::{has_platters, is_of_hypervisor};

use super::phrases::list;
use super::risk::Risk;
use crate::stages::network::Link;
use crate::stages::raid::Member;

/// From this line rate on it is USB 3.
pub(super) const USB_3_BITS: u64 = 5_000_000_000;

/// USB 3, and what the card slots, in practice (see `core/ceiling.rs`).
pub(super) const USB_3_BYTES: f64 = 440e6;

/// A place for data.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    /// A kernel name or a device class: "sda", "usb3-ssd".
    pub name: String,
    /// Description for people.
    pub what: String,
    /// How it works.
    pub is: Is,
    /// Whether the root is there.
    pub is_now: bool,
    /// Whether it is there.
    pub is_here: bool,
    /// Euros, from and to.
    pub euros: (u32, u32),
    /// What may go wrong.
    pub risks: Vec<Risk>,
    /// How its figures are known.
    pub bases: Bases,
    /// Where the figures come from.
    pub source: String,
    /// Where data can be put without losing any: a directory.
    pub directory: Option<String>,
    /// Processor seconds of a small operation, where that was measured.
    pub cpu_s: Option<f64>,
}

/// How a place works.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Is {
    /// One device behind its buses.
    Disk(Member),
    /// Several as one.
    Stripe(Vec<Member>),
    /// A network disk; with its address where it is known.
    Network(Link, String),
}

impl Place {
    /// Whether a network is in the way.
    pub fn is_network(&self) -> bool {
        crate::advice::is_network(&self.name)
    }

    /// The buses that it is behind.
    pub fn buses(&self) -> impl Iterator<Item = &str> {
        let members: &[Member] = match &self.is {
            Is::Disk(member) => std::slice::from_ref(member),
            Is::Stripe(members) => members,
            Is::Network(..) => &[],
        };
        members.iter().flat_map(|member| member.buses.iter().map(|(name, _)| name.as_str()))
    }
}

/// What is made of matter, can be written, and has a size.
pub(super) fn disks(machine: &Machine) -> impl Iterator<Item = &BlockDevice> {
    machine.block_devices.iter().filter(|device| {
        device.kind == BlockKind::Disk
            && device.read_only.get() != Some(true)
            && device.size_bytes.get() != Some(0)
    })
}

pub(super) fn root_disks(machine: &Machine) -> Vec<&BlockDevice> {
    let root = machine.mounts.iter().find(|mount| mount.point == "/");
    let device = root.and_then(|mount| mount.device.as_deref());
    device.map_or(Vec::new(), |device| machine.disks_below(device))
}

/// What was measured of it, and where the rest is from.
pub(super) fn partly(measured: &MeasuredDisk, bases: &Bases, rest: &str) -> String {
    let kinds = [
        (What::SequentialRead, bases.sequential_read),
        (What::SequentialWrite, bases.sequential_write),
        (What::RandomRead, bases.random_read),
        (What::RandomWrite, bases.random_write),
        (What::Commit, bases.commits),
    ];
    let seen = kinds.iter().filter(|(_, basis)| basis.is_measured()).map(|(what, _)| what.words());
    match seen.clone().count() {
        5 => measured.when(),
        0 => format!("{}; the rest: {rest}", measured.when()),
        _ => format!("{} {}; the rest not measured: {rest}", list(seen), measured.when()),
    }
}

/// The buses on the way, by names that two devices on the same one share; of a chain that carries the same everywhere the first
/// only, which is the one with most devices behind it.
pub(super) fn buses(path: &[Hop]) -> Vec<(String, f64)> {
    let mut buses: Vec<(String, f64)> = Vec::new();
    for hop in path {
        let Some(usable) = hop.usable_bytes_per_second.get() else {
            continue;
        };
        if buses.iter().all(|(_, other)| *other != usable) {
            buses.push((bus_name(hop), usable));
        }
    }
    buses
}

fn bus_name(hop: &Hop) -> String {
    let link = hop.link.split([',', '(']).next().unwrap_or_default().trim();
    let link = link.replace('×', "x");
    match hop.kind {
        HopKind::MmcHost => format!("the card slot {}", hop.id),
        _ => format!("the {link} bus {}", hop.id),
    }
}

/// What kind of device a disk is, as far as it tells.
pub(super) fn class_of(disk: &BlockDevice) -> &'static DeviceClass {
    let over = |kind| disk.path.iter().any(|hop| hop.kind == kind);
    let usb = disk.path.iter().find(|hop| hop.kind == HopKind::UsbDevice);
    let id = if let Some(mmc) = &disk.mmc {
        let class = mmc.promises.get().map_or(0, |status| status.application_class);
        let is_queued = mmc.command_queueing.get() == Some(true);
        match (mmc.kind.text(), class) {
            (Some("MMC"), _) => "emmc",
            (_, 2) if is_queued => "a2-card-queued",
            (_, 2) => "a2-card",
            (_, 1) => "a1-card",
            _ => "card",
        }
    } else if over(HopKind::Nvme) {
        "nvme"
    } else if let Some(usb) = usb {
        let is_fast = usb.line_bits_per_second.get().is_some_and(|bits| bits >= USB_3_BITS);
        match (disk.removable.get() == Some(true), has_platters(disk), is_fast) {
            (true, _, _) => "usb-stick",
            (false, Some(true), _) => "usb-disk",
            (false, None, _) => "usb-unknown",
            (false, _, true) if usb.driver.text() == Some("uas") => "usb3-ssd",
            (false, _, true) => "usb3-ssd-storage",
            (false, _, false) => "usb2-ssd",
        }
    } else if over(HopKind::Virtio) || disk.path.is_empty() || is_of_hypervisor(disk) {
        "virtual-disk"
    } else if disk.rotational.get() == Some(true) {
        "usb-disk"
    } else {
        "usb3-ssd"
    };
    by_id(id)
}

/// A kind that is in the table.
pub(super) fn by_id(id: &str) -> &'static DeviceClass {
    let classes = &crate::device_classes::CLASSES;
    DeviceClass::by_id(id).unwrap_or(&classes[0])
}

/// "3B+", "4B", "5".
pub(super) fn board_type(machine: &Machine) -> Option<&str> {
    let revision = machine.board.revision.value()?;
    Some(revision.board_type.as_str())
}
