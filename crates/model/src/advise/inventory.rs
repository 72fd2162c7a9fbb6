//! What there is and could be: places for data, with their figures and the buses in front of them.

use rubus_core::advice::{Bases, Basis, Figures, MeasuredDisk, Purpose, What, Wish};
use rubus_core::machine::{BlockDevice, BlockKind, Hop, HopKind, Machine};
use rubus_core::platters::has_platters;
use rubus_core::reference::kinds::DeviceClass;

use super::buying::{bought, has_usb_3, worth_buying};
use super::words::list;
use super::{Question, links};
use crate::stages::network::Link;
use crate::stages::raid::Member;

/// From this line rate on it is USB 3.
pub(super) const USB_3_BITS: u64 = 5_000_000_000;
/// USB 3, and what the card slots, in practice (see `core/ceiling.rs`).
pub(super) const USB_3_BYTES: f64 = 440e6;
/// What one lane of PCIe Gen 3 carries.
const PCIE_3_BYTES: f64 = 900e6;

/// How a risk begins that says what would be lost.
pub(super) const LOST: &str = "What is on it";

/// A place for data.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    /// "sda", "usb3-ssd".
    pub name: String,
    /// For people.
    pub what: String,
    /// How it works.
    pub is: Is,
    /// Whether the root is there.
    pub is_now: bool,
    /// Whether it is there.
    pub is_here: bool,
    /// Euros, from and to.
    pub euros: (u32, u32),
    /// Sentences.
    pub risks: Vec<String>,
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
        rubus_core::advice::is_network(&self.name)
    }

    /// The buses that it is behind.
    pub fn buses(&self) -> impl Iterator<Item = &str> {
        let members: &[Member] = match &self.is {
            Is::Disk(member) => std::slice::from_ref(member),
            Is::Stripe(members) => members,
            Is::Network(..) => &[],
        };
        members
            .iter()
            .flat_map(|member| member.buses.iter().map(|(name, _)| name.as_str()))
    }
}

/// Everything that is to be weighed: what is there first, then what could be.
pub(super) fn places(question: &Question<'_>) -> Result<Vec<Place>, String> {
    let machine = question.machine;
    let mut places: Vec<Place> = disks(machine).map(|disk| of_disk(question, disk)).collect();
    if let Some(stripe) = root_on_several(question) {
        places.push(stripe);
    }
    for disk in disks(machine) {
        places.extend(in_a_better_port(question, disk));
    }
    for class in worth_buying(machine, &places) {
        places.push(bought(machine, class));
    }
    // What comes over the network cannot be given on over the same link at its full rate.
    let is_node = question.purpose == Purpose::StorageNode;
    let is_named = |wish: &Wish| matches!(wish, Wish::Network(address) if !address.is_empty());
    let is_weighed = !is_node && !question.with.iter().any(is_named);
    let is_known = |link| links::tells(link) || links::is_radio(link);
    if is_weighed && links::best(machine).is_some_and(is_known) {
        places.push(links::disk(question, "")?);
    }
    for wish in question.with {
        let wished = wished(question, wish)?;
        if places.iter().all(|place| place.name != wished.name) {
            places.push(wished);
        }
    }
    Ok(places)
}

/// What is made of matter, can be written, and has a size.
pub(super) fn disks(machine: &Machine) -> impl Iterator<Item = &BlockDevice> {
    machine.block_devices.iter().filter(|device| {
        device.kind == BlockKind::Disk
            && device.read_only.get() != Some(true)
            && device.size_bytes.get() != Some(0)
    })
}

/// The disks of the root.
pub(super) fn root_disks(machine: &Machine) -> Vec<&BlockDevice> {
    let root = machine.mounts.iter().find(|mount| mount.point == "/");
    let device = root.and_then(|mount| mount.device.as_deref());
    device.map_or(Vec::new(), |device| machine.disks_below(device))
}

fn is_root(machine: &Machine, disk: &BlockDevice) -> bool {
    matches!(root_disks(machine)[..], [only] if only.name == disk.name)
}

fn of_disk(question: &Question<'_>, disk: &BlockDevice) -> Place {
    let machine = question.machine;
    let class = class_of(disk);
    let measured = question.known.disks.get(&disk.name);
    let is_now = is_root(machine, disk);
    let mut risks: Vec<String> = Vec::new();
    if !class.risk.is_empty() {
        risks.push(class.risk.into());
    }
    if !is_now {
        risks.extend(what_would_be_lost(machine, disk));
    }
    let (member, bases) = member(disk, class, measured);
    Place {
        name: disk.name.clone(),
        what: words_of(disk, class),
        is: Is::Disk(member),
        is_now,
        is_here: true,
        euros: (0, 0),
        risks,
        source: source(class, measured, &bases),
        bases,
        directory: directory(machine, disk),
        cpu_s: measured.and_then(|measured| measured.cpu_s),
    }
}

fn source(class: &DeviceClass, measured: Option<&MeasuredDisk>, bases: &Bases) -> String {
    let usual = format!("{}: {}", class.what, class.source);
    match measured.filter(|measured| !measured.when().is_empty()) {
        None => format!("not measured; {usual}"),
        Some(measured) => partly(measured, bases, &usual),
    }
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
    let seen = kinds
        .iter()
        .filter(|(_, basis)| *basis == Basis::Measured)
        .map(|(what, _)| what.words());
    match seen.clone().count() {
        5 => measured.when(),
        0 => format!("{}; the rest: {rest}", measured.when()),
        _ => format!(
            "{} {}; the rest not measured: {rest}",
            list(seen),
            measured.when()
        ),
    }
}

fn member(
    disk: &BlockDevice,
    class: &DeviceClass,
    measured: Option<&MeasuredDisk>,
) -> (Member, Bases) {
    let (mut figures, mut bases) = (Figures::of_class(class), Bases::of_class(class));
    let mut most_measured: f64 = 0.0;
    if let Some(known) = measured {
        known.lay_over(&mut figures, &mut bases);
        if known.cpu_s.is_some() {
            bases.cpu_share = Basis::Measured;
        }
        let rates = [known.sequential_read, known.sequential_write];
        for rate in rates.into_iter().flatten() {
            most_measured = most_measured.max(rate.value);
        }
    }
    let member = Member {
        name: disk.name.clone(),
        figures,
        // What came through a bus shows that it can carry it, whatever the rule of thumb says.
        buses: buses(&disk.path)
            .into_iter()
            .map(|(name, usable)| (name, usable.max(most_measured * 1.02)))
            .collect(),
    };
    (member, bases)
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
        let class = mmc
            .promises
            .get()
            .map_or(0, |status| status.application_class);
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
        let is_fast = usb
            .line_bits_per_second
            .get()
            .is_some_and(|bits| bits >= USB_3_BITS);
        match (
            disk.removable.get() == Some(true),
            has_platters(disk),
            is_fast,
        ) {
            (true, _, _) => "usb-stick",
            (false, Some(true), _) => "usb-disk",
            (false, None, _) if disk.rotational.get() == Some(true) => "usb-unknown",
            (false, _, true) if usb.driver.text() == Some("uas") => "usb3-ssd",
            (false, _, true) => "usb3-ssd-storage",
            (false, _, false) => "usb2-ssd",
        }
    } else if over(HopKind::Virtio) || disk.path.is_empty() {
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
    let classes = &rubus_core::reference::kinds::CLASSES;
    DeviceClass::by_id(id).unwrap_or(&classes[0])
}

fn words_of(disk: &BlockDevice, class: &DeviceClass) -> String {
    match disk.model.text() {
        Some(model) => format!("{} {}", class.what, model.trim()),
        None => class.what.into(),
    }
}

/// Filesystems of a disk that are in use and not the system's own start, the largest first.
fn mounts_of<'m>(machine: &'m Machine, disk: &BlockDevice) -> Vec<&'m rubus_core::machine::Mount> {
    let on = |mount: &&rubus_core::machine::Mount| {
        let device = mount.device.as_deref();
        let disks = device.map_or(Vec::new(), |device| machine.disks_below(device));
        disks.iter().any(|other| other.name == disk.name) && !mount.point.starts_with("/boot")
    };
    let mut mounts: Vec<_> = machine.mounts.iter().filter(on).collect();
    mounts.sort_by_key(|mount| std::cmp::Reverse(mount.size_bytes.get()));
    mounts
}

/// Where data can be put on a disk: the root, else its largest filesystem.
fn directory(machine: &Machine, disk: &BlockDevice) -> Option<String> {
    let mounts = mounts_of(machine, disk);
    let is_writable =
        |mount: &&&rubus_core::machine::Mount| mount.options.iter().all(|o| o != "ro");
    let root = mounts.iter().find(|mount| mount.point == "/");
    let mount = root.or_else(|| mounts.iter().find(is_writable))?;
    Some(mount.point.clone())
}

fn what_would_be_lost(machine: &Machine, disk: &BlockDevice) -> Option<String> {
    let used = |mount: &&rubus_core::machine::Mount| {
        let size = mount.size_bytes.get()?;
        Some(size.saturating_sub(mount.available_bytes.get()?))
    };
    let mounts = mounts_of(machine, disk);
    match mounts.first() {
        Some(mount) => Some(format!(
            "{LOST} ({}{}) is lost by that.",
            mount.point,
            used(mount).map_or(String::new(), |bytes| {
                format!(", {}", rubus_core::units::bytes_si(bytes))
            })
        )),
        None => {
            let parts = machine.block_devices.iter();
            let mut parts = parts.filter(|part| part.parent.as_deref() == Some(&disk.name));
            let has = parts.any(|part| part.content.text().is_some());
            has.then(|| format!("{LOST} is lost by that."))
        }
    }
}

/// A root over several disks: an array.
fn root_on_several(question: &Question<'_>) -> Option<Place> {
    let disks = root_disks(question.machine);
    if disks.len() < 2 {
        return None;
    }
    let names: Vec<String> = disks.iter().map(|disk| disk.name.clone()).collect();
    let mut place = stripe(question, &names).ok()?;
    place.is_now = true;
    Some(place)
}

fn stripe(question: &Question<'_>, names: &[String]) -> Result<Place, String> {
    let mut members = Vec::new();
    let mut bases = Bases {
        cpu_share: Basis::Assumed,
        ..Bases::all(Basis::Measured)
    };
    for name in names {
        let disk = disks(question.machine).find(|disk| disk.name == *name);
        let disk = disk.ok_or_else(|| {
            let known: Vec<&str> = disks(question.machine).map(|d| d.name.as_str()).collect();
            format!("there is no disk {name}; there are {}", known.join(", "))
        })?;
        let measured = question.known.disks.get(name);
        let (member, of_it) = member(disk, class_of(disk), measured);
        bases = bases.worse(of_it);
        members.push(member);
    }
    Ok(Place {
        name: format!("raid0:{}", names.join(",")),
        what: format!("{} as one (RAID-0)", names.join(" and ")),
        is: Is::Stripe(members),
        is_now: false,
        is_here: true,
        euros: (0, 0),
        risks: vec!["One disk that fails takes everything with it.".into()],
        bases,
        source: "from the figures of its disks".into(),
        directory: None,
        cpu_s: None,
    })
}

/// The same disk where it could do more: a USB 3 port, PCIe Gen 3.
fn in_a_better_port(question: &Question<'_>, disk: &BlockDevice) -> Option<Place> {
    let machine = question.machine;
    let could = |hop: &&Hop| {
        let pair = hop
            .line_bits_per_second
            .get()
            .zip(hop.max_line_bits_per_second.get());
        // The slot says what it is set to; that the drive could do more stands in the words of the link.
        let is_held_back = hop.kind == HopKind::Pcie
            && hop.link.contains("Gen 2")
            && ["of Gen 3", "of Gen 4", "of Gen 5"]
                .iter()
                .any(|more| hop.link.contains(more));
        is_held_back || pair.is_some_and(|(now, most)| most > now)
    };
    let hop = disk.path.iter().find(could)?;
    let now = class_of(disk);
    let (class, bytes_per_second, what, risk) = match hop.kind {
        HopKind::UsbDevice if has_usb_3(machine) => (
            by_id(if now.id == "usb2-ssd" {
                "usb3-ssd"
            } else {
                now.id
            }),
            USB_3_BYTES,
            format!("{} in a USB 3 port", disk.name),
            "",
        ),
        HopKind::Pcie if board_type(machine) == Some("5") => (
            now,
            PCIE_3_BYTES,
            format!("{} at PCIe Gen 3", disk.name),
            "Gen 3 is beyond what the board is certified for; some drives fail with it.",
        ),
        _ => return None,
    };
    let is_usb = hop.kind == HopKind::UsbDevice;
    let mut risks: Vec<String> = [class.risk, risk]
        .into_iter()
        .filter(|risk| !risk.is_empty())
        .map(str::to_string)
        .collect();
    if !is_root(machine, disk) {
        risks.extend(what_would_be_lost(machine, disk));
    }
    Some(Place {
        name: format!("{}@{}", disk.name, if is_usb { "usb3" } else { "gen3" }),
        what,
        is: Is::Disk(Member {
            name: disk.name.clone(),
            figures: Figures::of_class(class),
            buses: vec![(
                if is_usb {
                    "the USB 3 bus"
                } else {
                    "the PCIe Gen 3 bus"
                }
                .into(),
                bytes_per_second,
            )],
        }),
        is_now: false,
        is_here: true,
        euros: (0, 0),
        risks,
        bases: Bases::of_class(class),
        source: format!("not measured; {}: {}", class.what, class.source),
        directory: directory(machine, disk),
        cpu_s: None,
    })
}

/// "3B+", "4B", "5".
pub(super) fn board_type(machine: &Machine) -> Option<&str> {
    let revision = machine.board.revision.value()?;
    Some(revision.board_type.as_str())
}

fn wished(question: &Question<'_>, wish: &Wish) -> Result<Place, String> {
    match wish {
        Wish::Class(id) => Ok(bought(question.machine, by_id(id))),
        Wish::Stripe(names) => stripe(question, names),
        Wish::Network(address) => links::disk(question, address),
    }
}
