//! What there is and could be: places for data, with their figures and the buses in front of them.

use crate::advice::{Bases, Basis, Figures, MeasuredDisk, Wish};
use crate::device_classes::DeviceClass;
use rubus_draw::quote::quote;
use rubus_machine::purpose::Purpose;
use rubus_vocabulary::machine::{BlockDevice, Hop, HopKind, Machine};

use super::buying::{bought, has_usb_3, worth_buying};
use super::place::{
    Is, Place, USB_3_BYTES, board_type, buses, by_id, class_of, disks, partly, root_disks,
};
use super::risk::Risk;
use super::{Question, links, network_disk};
use crate::stages::raid::Member;

/// What one lane of PCIe Gen 3 carries.
const PCIE_3_BYTES: f64 = 900e6;

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
        places.push(network_disk::disk(question, "")?);
    }
    for wish in question.with {
        let wished = wished(question, wish)?;
        if places.iter().all(|place| place.name != wished.name) {
            places.push(wished);
        }
    }
    Ok(places)
}

fn is_root(machine: &Machine, disk: &BlockDevice) -> bool {
    matches!(root_disks(machine)[..], [only] if only.name == disk.name)
}

fn of_disk(question: &Question<'_>, disk: &BlockDevice) -> Place {
    let machine = question.machine;
    let class = class_of(disk);
    let measured = question.known.disks.get(&disk.name);
    let is_now = is_root(machine, disk);
    let mut risks: Vec<Risk> = Risk::of_class(class).into_iter().collect();
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

fn words_of(disk: &BlockDevice, class: &DeviceClass) -> String {
    match disk.model.text() {
        // What a card lacks is no part of its name.
        Some(model) if disk.mmc.is_some() => format!("{}, {}", class.what, model.trim()),
        Some(model) => format!("{} {}", class.what, model.trim()),
        None => class.what.into(),
    }
}

/// Filesystems of a disk that are in use and not the system's own start, the largest first.
fn mounts_of<'m>(
    machine: &'m Machine,
    disk: &BlockDevice,
) -> Vec<&'m rubus_vocabulary::machine::Mount> {
    let on = |mount: &&rubus_vocabulary::machine::Mount| {
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
        |mount: &&&rubus_vocabulary::machine::Mount| mount.options.iter().all(|o| o != "ro");
    let root = mounts.iter().find(|mount| mount.point == "/");
    let mount = root.or_else(|| mounts.iter().find(is_writable))?;
    Some(mount.point.clone())
}

/// What overwriting the disk loses, and how it is taken out of use before.
fn what_would_be_lost(machine: &Machine, disk: &BlockDevice) -> Option<Risk> {
    let name = &disk.name;
    let used = |mount: &&rubus_vocabulary::machine::Mount| {
        let size = mount.size_bytes.get()?;
        Some(size.saturating_sub(mount.available_bytes.get()?))
    };
    let mounts = mounts_of(machine, disk);
    match mounts.first() {
        Some(mount) => {
            let points: Vec<String> = mounts.iter().map(|mount| quote(&mount.point)).collect();
            Some(Risk::loss(format!(
                "Applying the plan erases {name} ({}{}): copy that elsewhere first, then `sudo umount {}`.",
                mount.point,
                used(mount).map_or(String::new(), |bytes| {
                    format!(", {}", rubus_vocabulary::units::bytes_si(bytes))
                }),
                points.join(" ")
            )))
        }
        None => {
            let parts = machine.block_devices.iter();
            let mut parts = parts.filter(|part| part.parent.as_deref() == Some(&disk.name));
            let has = parts.any(|part| part.content.text().is_some());
            has.then(|| Risk::loss(format!("Applying the plan erases what is on {name}.")))
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
    let mut bases = Bases { cpu_share: Basis::Assumed, ..Bases::all(Basis::Measured) };
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
        risks: vec![Risk::failure("One disk that fails takes everything with it.")],
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
        let pair = hop.line_bits_per_second.get().zip(hop.max_line_bits_per_second.get());
        // The slot says what it is set to; that the drive could do more stands in the words of the link.
        let is_held_back = hop.kind == HopKind::Pcie
            && hop.link.contains("Gen 2")
            && ["of Gen 3", "of Gen 4", "of Gen 5"].iter().any(|more| hop.link.contains(more));
        is_held_back || pair.is_some_and(|(now, most)| most > now)
    };
    let hop = disk.path.iter().find(could)?;
    let now = class_of(disk);
    let (class, bytes_per_second, what, risk) = match hop.kind {
        HopKind::UsbDevice if has_usb_3(machine) => (
            by_id(if now.id == "usb2-ssd" { "usb3-ssd" } else { now.id }),
            USB_3_BYTES,
            format!("{} in a USB 3 port", disk.name),
            None,
        ),
        HopKind::Pcie if board_type(machine) == Some("5") => (
            now,
            PCIE_3_BYTES,
            format!("{} at PCIe Gen 3", disk.name),
            Some(Risk::failure(
                "Gen 3 is beyond what the board is certified for; some drives fail with it.",
            )),
        ),
        _ => return None,
    };
    let is_usb = hop.kind == HopKind::UsbDevice;
    let mut risks: Vec<Risk> = Risk::of_class(class).into_iter().chain(risk).collect();
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
                if is_usb { "the USB 3 bus" } else { "the PCIe Gen 3 bus" }.into(),
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

fn wished(question: &Question<'_>, wish: &Wish) -> Result<Place, String> {
    match wish {
        Wish::Class(id) => Ok(bought(question.machine, by_id(id))),
        Wish::Stripe(names) => stripe(question, names),
        Wish::Network(address) => network_disk::disk(question, address),
    }
}
