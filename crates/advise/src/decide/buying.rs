//! What could be bought: what is worth its money on a board, and what each kind of device is behind the buses that the board has.

use crate::advice::{Bases, Figures};
use crate::device_classes::DeviceClass;
use rubus_vocabulary::machine::{BlockDevice, Hop, HopKind, Machine};

use super::place::{Is, Place, USB_3_BITS, USB_3_BYTES, board_type, buses, by_id, class_of, disks};
use super::risk::Risk;
use crate::stages::raid::Member;

/// USB 2 in practice (see `core/ceiling.rs`).
const USB_2_BYTES: f64 = 35e6;
/// What one lane of PCIe Gen 2 carries.
const PCIE_2_BYTES: f64 = 450e6;

/// Whether the machine has USB 3: seen on it, or its board is known to have it.
pub(super) fn has_usb_3(machine: &Machine) -> bool {
    let seen = controllers(machine).any(|path| path.iter().any(is_fast_usb));
    seen || matches!(
        board_type(machine),
        Some("4B" | "400" | "5" | "500" | "500+" | "CM5" | "CM5 Lite")
    )
}

fn is_fast_usb(hop: &Hop) -> bool {
    let is_usb = matches!(hop.kind, HopKind::UsbController | HopKind::UsbDevice);
    is_usb && hop.line_bits_per_second.get() >= Some(USB_3_BITS)
}

/// The ways from the processor to what is connected.
fn controllers(machine: &Machine) -> impl Iterator<Item = &[Hop]> {
    let disks = machine.block_devices.iter().map(|disk| &disk.path[..]);
    disks.chain(machine.links.iter().map(|link| &link.path[..]))
}

/// What is worth its money on such a machine and not there yet.
pub(super) fn worth_buying(machine: &Machine, places: &[Place]) -> Vec<&'static DeviceClass> {
    let has = |id: &str| disks(machine).any(|disk| class_of(disk).id == id);
    let board = board_type(machine);
    let is_known = board.is_some() || disks(machine).any(|disk| disk.mmc.is_some());
    let is_here = |name: &str| places.iter().any(|place| place.name.ends_with(name));
    let mut classes = Vec::new();
    // A machine of unknown make, or a virtual one, has no ports to plug something into that we know of.
    if !is_known {
        return classes;
    }
    let cards: Vec<&BlockDevice> = disks(machine).filter(|disk| disk.mmc.is_some()).collect();
    if cards.iter().any(|disk| class_of(disk).id == "card") {
        classes.push(by_id("a1-card"));
    }
    if board == Some("5") && !has("a2-card-queued") && !cards.is_empty() {
        classes.push(by_id("a2-card-queued"));
    }
    let has_fast_usb =
        has("usb3-ssd") || has("usb3-ssd-storage") || is_here("@usb3") && has("usb2-ssd");
    // The advice must not be to buy what may be plugged in already.
    if !has("usb-unknown") {
        let has_usb_3 = has_usb_3(machine);
        if has_usb_3 && !has_fast_usb && !has("nvme") {
            classes.push(by_id("usb3-ssd"));
        } else if !has_usb_3 && !has("usb2-ssd") {
            classes.push(by_id("usb2-ssd"));
        }
    }
    if board == Some("5") && !has("nvme") {
        classes.push(by_id("nvme"));
    }
    classes
}

/// A kind of device as it is on this machine.
pub(super) fn bought(machine: &Machine, class: &'static DeviceClass) -> Place {
    let here = on_board(machine, class);
    let mut risks: Vec<Risk> = Risk::of_class(here.class).into_iter().collect();
    if here.class.id.starts_with("usb3") && !has_usb_3(machine) {
        risks.push(Risk::degradation(
            "This machine does not show whether it has USB 3; behind USB 2 it is a usb2-ssd.",
        ));
    }
    Place {
        name: class.id.into(),
        what: match here.why {
            Some(why) => format!("{} ({why})", here.class.what),
            None => class.what.into(),
        },
        is: Is::Disk(Member {
            name: class.id.into(),
            figures: Figures::of_class(here.class),
            buses: here.buses,
        }),
        is_now: false,
        is_here: false,
        euros: class.euros,
        risks,
        bases: Bases::of_class(here.class),
        source: format!("not there; {}", here.class.source),
        directory: None,
        cpu_s: None,
    }
}

/// What a kind of device is where a board can connect it.
struct OnBoard {
    /// The kind whose figures it has there.
    class: &'static DeviceClass,
    buses: Vec<(String, f64)>,
    /// Why it is another kind there.
    why: Option<&'static str>,
}

fn on_board(machine: &Machine, class: &'static DeviceClass) -> OnBoard {
    let as_it_is = |buses| OnBoard { class, buses, why: None };
    let usb_ssd = if lacks_usb_3(machine) { by_id("usb2-ssd") } else { by_id("usb3-ssd") };
    match class.id {
        "usb2-ssd" => as_it_is(usb(machine, false)),
        "usb3-ssd" | "usb3-ssd-storage" if lacks_usb_3(machine) => {
            OnBoard { class: usb_ssd, buses: usb(machine, false), why: Some("no USB 3 here") }
        }
        "usb3-ssd" | "usb3-ssd-storage" | "usb-stick" | "usb-disk" | "usb-unknown" => {
            as_it_is(usb(machine, !lacks_usb_3(machine)))
        }
        "nvme" if lacks_pcie(machine) => OnBoard {
            class: usb_ssd,
            buses: usb(machine, !lacks_usb_3(machine)),
            why: Some("NVMe in a USB case: no PCIe here"),
        },
        "nvme" => as_it_is(vec![("the PCIe Gen 2 bus".into(), PCIE_2_BYTES)]),
        "a2-card-queued" if generation(machine).is_some_and(|generation| generation < 5) => {
            OnBoard { class: by_id("a2-card"), buses: slot(machine), why: Some("no queue here") }
        }
        "virtual-disk" => as_it_is(Vec::new()),
        _ => as_it_is(slot(machine)),
    }
}

/// Whether it is known to have no USB faster than 2: its processor has none, or there is USB on it and none of it is.
fn lacks_usb_3(machine: &Machine) -> bool {
    let mut hops = controllers(machine).flatten();
    let has_usb = hops.any(|hop| hop.kind == HopKind::UsbController);
    let is_old = generation(machine).is_some_and(|generation| generation < 4);
    !has_usb_3(machine) && (has_usb || is_old)
}

/// Whether it is known to have no PCIe for a disk.
fn lacks_pcie(machine: &Machine) -> bool {
    let has_nvme = disks(machine).any(|disk| class_of(disk).id == "nvme");
    let is_module = board_type(machine) == Some("CM4");
    let is_older = generation(machine).is_some_and(|generation| generation < 5);
    is_older && !is_module && !has_nvme
}

/// Of a Raspberry Pi's processor: 1 to 5.
fn generation(machine: &Machine) -> Option<u32> {
    let revision = machine.board.revision.value()?;
    match revision.processor.as_str() {
        "BCM2835" => Some(1),
        "BCM2836" => Some(2),
        "BCM2837" => Some(3),
        "BCM2711" => Some(4),
        "BCM2712" => Some(5),
        _ => None,
    }
}

/// The widest USB bus of its generation that something is on already, with what lies before it; else one of the usual width.
fn usb(machine: &Machine, is_usb_3: bool) -> Vec<(String, f64)> {
    let is_it = |hop: &Hop| {
        hop.kind == HopKind::UsbController
            && hop.usable_bytes_per_second.get().is_some()
            && is_fast_usb(hop) == is_usb_3
    };
    let seen = controllers(machine).filter_map(|path| {
        let end = path.iter().position(is_it)?;
        Some(buses(&path[..=end]))
    });
    let narrowest = |buses: &Vec<(String, f64)>| {
        let rates = buses.iter().map(|(_, usable)| *usable);
        rates.fold(f64::INFINITY, f64::min)
    };
    let widest = seen.reduce(|a, b| if narrowest(&b) > narrowest(&a) { b } else { a });
    widest.unwrap_or_else(|| {
        if is_usb_3 {
            vec![("the USB 3 bus".into(), USB_3_BYTES)]
        } else {
            vec![("the USB 2 bus".into(), USB_2_BYTES)]
        }
    })
}

/// The card slot, where there is one.
fn slot(machine: &Machine) -> Vec<(String, f64)> {
    let disk = disks(machine).find(|disk| disk.mmc.is_some());
    disk.map_or(Vec::new(), |disk| buses(&disk.path))
}
