//! SD cards and eMMC.

use std::collections::HashSet;

use super::Look::Facts;
use super::{Rule, Seen, Weight, disks, is_card};
use rubus_draw::quote::typed;
use rubus_vocabulary::machine::device_index::DeviceIndex;
use rubus_vocabulary::machine::{BlockDevice, HopKind, Machine, Mmc};

const OTHER_READER: &str = "`cat /sys/kernel/debug/mmc*/ios` as root shows timing and bus width: SDR50 or faster on \
    4 lines, and the bus is not in the way.";

pub(super) static RULES: &[Rule] = &[
    Rule {
        name: "card-bus-slower-than-card",
        weight: Weight::Cost,
        when: "a card of class U1 or better runs at high speed or DDR50",
        source: "SD Physical Layer Simplified Specification, section 3.9: high speed 25 MB/s, DDR50 50 MB/s, SDR104 104 MB/s",
        disproof: OTHER_READER,
        look: Facts(slow_bus),
    },
    Rule {
        name: "a2-card-without-queueing",
        weight: Weight::Cost,
        when: "a card of class A2 and a host without command queueing",
        source: "SD Physical Layer Simplified Specification, section 4.16: class A2 is promised with command queueing and cache only",
        disproof: "`rubus bench / --suite class`: 4000 random reads and 2000 random writes per second, and it is A2 \
        here all the same.",
        look: Facts(a2_without_queueing),
    },
    Rule {
        name: "card-one-data-line",
        weight: Weight::Cost,
        when: "one data line to the card is in use",
        source: "SD Physical Layer Simplified Specification: one data line instead of four is a quarter of the rate",
        disproof: OTHER_READER,
        look: Facts(one_line),
    },
    Rule {
        name: "card-without-application-class",
        weight: Weight::Hint,
        when: "the card that carries the system has no class A1 or A2",
        source: "SD Physical Layer Simplified Specification, section 4.15: A1 promises 500 random writes and 1500 random reads per second",
        disproof: "`rubus bench / --suite class`: 1500 random reads and 500 random writes per second, and it is as \
        good as A1.",
        look: Facts(no_application_class),
    },
    Rule {
        name: "card-write-protected",
        weight: Weight::Danger,
        when: "the card refuses writes",
        source: "SD Physical Layer Simplified Specification, CSD register; makers let worn cards become read-only",
        disproof: "Write a file to the card in another reader: it works, and the switch or this reader is at fault.",
        look: Facts(write_protected),
    },
    Rule {
        name: "card-of-no-maker",
        weight: Weight::Danger,
        when: "no maker has the card's maker and OEM numbers",
        source: "SD Physical Layer Simplified Specification, CID register: the maker's number is given out by the \
        SD-3C; 0 and letters that cannot be printed belong to no maker",
        disproof: "`rubus bench --suite capacity` on the empty card: all bytes come back, and it at least holds what \
        it says.",
        look: Facts(no_maker),
    },
    Rule {
        name: "system-on-card-beside-a-disk",
        weight: Weight::Cost,
        when: "the system is on a card, and a disk on USB or PCIe, no stick, is plugged in of which nothing is in use",
        source: "SD Association, application performance classes: 500 to 2000 random writes per second are promised at best",
        disproof: "`rubus checkup` on both: the card does as many random writes and commits, and moving gains \
        nothing.",
        look: Facts(beside_a_disk),
    },
];

fn cards(machine: &Machine) -> impl Iterator<Item = (&BlockDevice, &Mmc)> {
    disks(machine).filter(|disk| is_card(disk)).filter_map(|disk| Some((disk, disk.mmc.as_ref()?)))
}

fn slow_bus(machine: &Machine) -> Vec<Seen> {
    cards(machine)
        .filter_map(|(disk, mmc)| {
            let promises = mmc.promises.value().filter(|promises| promises.uhs_grade >= 1)?;
            let timing = mmc.timing.text()?;
            let (now, could) = match timing {
                "high speed" => (22.5, 90.0),
                "UHS-I DDR50" => (45.0, 90.0),
                _ => return None,
            };
            Some(Seen {
                about: disk.name.clone(),
                evidence: format!("a card of class U{} runs at {timing}", promises.uhs_grade),
                read_from: mmc.timing.source().into(),
                consequence: format!("Long reads get about {now} MB/s; in a reader with SDR104 the card might give up to {could} MB/s. Small random operations lose little."),
                fix: "The slots of the Pi 1 to 3 do high speed, those of the Pi 4 DDR50, of the Pi 5 SDR104. For long transfers use a USB 3 disk.".into(),
                command: None,
            })
        })
        .collect()
}

/// Where a disk is mounted, the root first.
fn mounted_at<'m>(machine: &'m Machine, disk: &BlockDevice) -> Option<&'m str> {
    let is_on_it = |mount: &&rubus_vocabulary::machine::Mount| {
        let device = mount.device.as_deref().and_then(|name| machine.measured_disk(name));
        let is_disk = device.is_some_and(|device| device.name == disk.name);
        is_disk && !mount.point.starts_with("/boot")
    };
    machine
        .mounts
        .iter()
        .filter(is_on_it)
        .map(|mount| mount.point.as_str())
        .min_by_key(|at| at.len())
}

fn a2_without_queueing(machine: &Machine) -> Vec<Seen> {
    cards(machine)
        .filter_map(|(disk, mmc)| {
            let is_a2 = mmc.promises.value()?.application_class == 2;
            (is_a2 && mmc.command_queueing.get() == Some(false)).then(|| Seen {
                about: disk.name.clone(),
                evidence: "a card of class A2, and the host sends it one command at a time".into(),
                read_from: mmc.command_queueing.source().into(),
                consequence: "A2 promises 4000 random reads and 2000 random writes per second with a command queue only; without one it need not be better than A1 (1500 and 500), and some are worse.".into(),
                fix: "Only hosts with command queueing use it (Pi 5 with a recent kernel); elsewhere a good A1 card is as fast and cheaper.".into(),
                command: mounted_at(machine, disk).map(|at| typed(&["rubus", "bench", at, "--suite", "class"])),
            })
        })
        .collect()
}

fn one_line(machine: &Machine) -> Vec<Seen> {
    cards(machine)
        .filter(|(_, mmc)| mmc.width.get() == Some(1))
        .map(|(disk, mmc)| Seen {
            about: disk.name.clone(),
            evidence: "one data line is in use instead of four".into(),
            read_from: mmc.width.source().into(),
            consequence: "A quarter of the rate: about 6 MB/s at high speed.".into(),
            fix: "Clean the card's contacts, try another card; if it stays, the slot is damaged or set so in the device tree.".into(),
            command: None,
        })
        .collect()
}

/// A card that carries the system, and a disk on USB or PCIe of which nothing is in use.
fn beside_a_disk(machine: &Machine) -> Vec<Seen> {
    let root = super::root(machine).and_then(|root| root.device.as_deref());
    let below = root.map_or(Vec::new(), |root| machine.disks_below(root));
    let Some(card) = below.into_iter().find(|disk| disk.mmc.is_some()) else {
        return Vec::new();
    };
    let index = DeviceIndex::of(machine);
    let stacked = machine.block_devices.iter().filter(|device| !device.below.is_empty());
    let held: HashSet<&str> = stacked
        .flat_map(|device| index.disks_below(&device.name))
        .map(|disk| disk.name.as_str())
        .collect();
    let is_held = |disk: &BlockDevice| held.contains(disk.name.as_str());
    let is_local = |hop: &rubus_vocabulary::machine::Hop| {
        matches!(hop.kind, HopKind::UsbDevice | HopKind::Nvme)
    };
    let mut free = crate::in_use::free_disks(machine)
        .filter(|disk| disk.mmc.is_none() && disk.path.iter().any(is_local) && !is_held(disk))
        // A stick may be slower than the card.
        .filter(|disk| disk.removable.get() != Some(true));
    let Some(disk) = free.next() else {
        return Vec::new();
    };
    let model = disk.model.text().unwrap_or("a disk without a name");
    let unused =
        format!("the system is on the card, and of {} ({model}) nothing is in use", disk.name);
    let may_have_platters = disk.rotational.get() == Some(true);
    let (evidence, consequence, fix, command) = if may_have_platters {
        (
            format!(
                "{unused}; it reports itself as rotational, as an SSD behind some bridges does too"
            ),
            "Cards do 20 to 500 small random writes per second, an SSD thousands, a disk with platters some 100.",
            "Measure it before you move the system: a directory of a filesystem on it with `rubus checkup`.",
            "rubus advise desktop".to_string(),
        )
    } else {
        (
            unused,
            "Cards do 20 to 500 small random writes per second, an SSD thousands: that is what a desktop waits for.",
            "Move the system to it, with compression; the card only starts it. What is on the disk is lost.",
            format!("rubus plan desktop device=/dev/{}", disk.name),
        )
    };
    vec![Seen {
        about: card.name.clone(),
        evidence,
        read_from: "/proc/self/mountinfo, /sys/class/block".into(),
        consequence: consequence.into(),
        fix: fix.into(),
        command: Some(command),
    }]
}

fn no_application_class(machine: &Machine) -> Vec<Seen> {
    cards(machine)
        .filter_map(|(disk, mmc)| {
            let promises = mmc.promises.value()?;
            let carries_root = super::root(machine)
                .and_then(|root| root.device.as_deref())
                .is_some_and(|root| machine.disks_below(root).iter().any(|below| below.name == disk.name));
            (promises.application_class == 0 && carries_root).then(|| Seen {
                about: disk.name.clone(),
                evidence: "the card that carries the system promises nothing for random operations".into(),
                read_from: mmc.promises.source().into(),
                consequence: "Cards for cameras do 20 to 300 random writes of 4 KiB per second, where A1 promises 500.".into(),
                fix: "Measure it; if it is slow, an A1 card or a USB SSD is the cheapest gain there is.".into(),
                command: Some("rubus checkup".into()),
            })
        })
        .collect()
}

fn write_protected(machine: &Machine) -> Vec<Seen> {
    cards(machine)
        .filter(|(disk, _)| disk.read_only.get() == Some(true))
        .map(|(disk, _)| Seen {
            about: disk.name.clone(),
            evidence: "the card refuses writes".into(),
            read_from: disk.read_only.source().into(),
            consequence: "A card that does so by itself is worn out. What is on it can still be read, perhaps not for long.".into(),
            fix: "Look at the lock of its adapter; if that is open, copy the card to a new one now.".into(),
            command: None,
        })
        .collect()
}

fn no_maker(machine: &Machine) -> Vec<Seen> {
    cards(machine)
        .filter_map(|(disk, mmc)| {
            let maker = mmc.manufacturer_id.get()?;
            let oem = mmc.oem_id.text().unwrap_or("??");
            let is_left_out = oem == rubus_host::shareable::LEFT_OUT;
            let is_text = oem.len() == 2 && oem.bytes().all(|byte| byte.is_ascii_graphic());
            (maker == 0 || maker == 0xff || (mmc.oem_id.value().is_some() && !is_text && !is_left_out)).then(|| Seen {
                about: disk.name.clone(),
                evidence: format!("the card says maker {maker:#04x}, OEM {oem:?}: numbers of no maker"),
                read_from: mmc.manufacturer_id.source().into(),
                consequence: "Counterfeits look like that, and many are smaller than they say: what is written beyond their end is lost.".into(),
                fix: "Test its capacity before you trust it (a new, empty card: the test overwrites it).".into(),
                command: Some(format!("sudo rubus bench /dev/{} --suite capacity", disk.name)),
            })
        })
        .collect()
}
