//! USB: ports, bridges, drivers, what shares a bus.

use super::Look::Facts;
use super::{Rule, Seen, Weight, disks};
use crate::ceiling;
use rubus_vocabulary::machine::{BlockDevice, BlockKind, Link, Machine, SharedBus};
use rubus_vocabulary::units::rate_si;

const OTHER_PORT: &str = "`lsusb -t` shows the speed of each plug: 5000M beside the disk, and it is connected as \
    fast as it can be.";

const WITHOUT_UAS: &str = "`dmesg | grep -i uas` after a day of full load: no reset, and this bridge is one of the \
    good ones.";

const TOGETHER: &str = "`rubus bench A B --together` measures both alone and at once: no slower together, and they \
    share nothing that matters.";

pub(super) static RULES: &[Rule] = &[
    Rule {
        name: "usb3-disk-at-usb2",
        weight: Weight::Cost,
        when: "a disk that can do 5 Gbit/s is connected with less",
        source: "USB 2.0 and 3.2 specifications; 34 to 35 against 430 to 450 MB/s measured on Raspberry Pi 4",
        disproof: OTHER_PORT,
        look: Facts(fast_disk_in_slow_port),
    },
    Rule {
        name: "usb-full-speed",
        weight: Weight::Cost,
        when: "a disk is connected with 12 Mbit/s",
        source: "USB 2.0 specification: 12 Mbit/s carry 1.2 MB/s at most",
        disproof: OTHER_PORT,
        look: Facts(full_speed),
    },
    Rule {
        name: "usb-storage-for-uas",
        weight: Weight::Cost,
        when: "usb-storage serves an SSD at 5 Gbit/s or more",
        source: "Linux documentation of usb-storage and uas: bulk-only transport has one command at a time, UAS queues them",
        disproof: "`lsusb -v` of the bridge: no interface with protocol 98, and it does not speak UAS.",
        look: Facts(bulk_only),
    },
    Rule {
        name: "uas-trouble",
        weight: Weight::Danger,
        when: "uas serves a bridge for which the kernel has it switched off",
        source: "Linux, drivers/usb/storage/unusual_uas.h: bridges whose UAS is limited or switched off",
        disproof: WITHOUT_UAS,
        look: Facts(uas_trouble),
    },
    Rule {
        name: "uas-quirk",
        weight: Weight::Hint,
        when: "uas serves a bridge with a fault that the kernel works around",
        source: "Linux, drivers/usb/storage/unusual_uas.h: bridges whose UAS is limited",
        disproof: WITHOUT_UAS,
        look: Facts(uas_quirk),
    },
    Rule {
        name: "no-trim-over-usb",
        weight: Weight::Cost,
        when: "no TRIM reaches an SSD behind a USB bridge",
        source: "Linux documentation, sysfs block queue: discard_max_bytes 0 means that no TRIM reaches the device",
        disproof: "`sudo fstrim -v` on its mount point: it tells the bytes trimmed, and TRIM reaches the disk.",
        look: Facts(no_trim),
    },
    Rule {
        name: "network-and-disk-share-usb",
        weight: Weight::Cost,
        when: "a network link and a disk are on one bus that carries less than 100 MB/s",
        source: "Raspberry Pi documentation: up to the 3B+ Ethernet and all USB ports hang on one USB 2 port of the chip",
        disproof: TOGETHER,
        look: Facts(network_on_the_bus),
    },
    Rule {
        name: "array-on-one-bus",
        weight: Weight::Cost,
        when: "all members of an array are on one bus",
        source: "operational analysis: a resource that all members share is not widened by more members",
        disproof: TOGETHER,
        look: Facts(array_on_one_bus),
    },
    Rule {
        name: "disks-share-usb2",
        weight: Weight::Hint,
        when: "two disks are on one bus that carries less than 100 MB/s",
        source: "USB 2 bulk in practice: 34 to 35 MB/s for all devices of a bus together",
        disproof: TOGETHER,
        look: Facts(disks_on_one_bus),
    },
];

fn fast_disk_in_slow_port(machine: &Machine) -> Vec<Seen> {
    let has_usb3 = machine
        .block_devices
        .iter()
        .flat_map(|device| &device.path)
        .chain(machine.links.iter().flat_map(|link| &link.path))
        .any(|hop| {
            hop.line_bits_per_second.get() >= Some(5_000_000_000) && hop.link.starts_with("USB")
        });
    let board = machine.board.revision.value().map(|revision| revision.board_type.as_str());
    let has_usb3_ports = has_usb3 || matches!(board, Some("4B" | "400" | "5" | "500" | "500+"));
    disks(machine)
        .filter_map(|disk| {
            let hop = disk.usb_device()?;
            let (now, most) = (hop.line_bits_per_second.get()?, hop.max_line_bits_per_second.get()?);
            if now >= 5_000_000_000 || most < 5_000_000_000 {
                return None;
            }
            // What the device could do is said already; the link says it again in brackets.
            let link = hop.link.split(" (").next().unwrap_or_default();
            Some(Seen {
                about: disk.name.clone(),
                evidence: format!("{} could do 5 Gbit/s and is connected with {link}", hop.name),
                read_from: hop.line_bits_per_second.source().into(),
                consequence: "The link carries about 35 MB/s instead of 440 MB/s, whatever the disk could do, and every other device of the USB 2 bus takes its share.".into(),
                fix: if has_usb3_ports {
                    "Put it into one of the blue ports, with a cable that has all the wires of USB 3; push the plug in fully.".into()
                } else {
                    "This board has no USB 3 port: compress what is written (`rubus recipes desktop`), or take a board with USB 3.".into()
                },
                command: None,
            })
        })
        .collect()
}

fn full_speed(machine: &Machine) -> Vec<Seen> {
    let slow = disks(machine).filter_map(|disk| Some((disk, disk.usb_device()?)));
    slow.filter(|(_, hop)| hop.line_bits_per_second.get() == Some(12_000_000))
        .map(|(disk, hop)| Seen {
            about: disk.name.clone(),
            evidence: format!("{} is connected with {}", hop.name, hop.link),
            read_from: hop.line_bits_per_second.source().into(),
            consequence: "About 1 MB/s. No disk of today is meant to be connected like that: a bad cable or plug, or a hub of USB 1.".into(),
            fix: "Another cable, another port, no hub between.".into(),
            command: None,
        })
        .collect()
}

fn bulk_only(machine: &Machine) -> Vec<Seen> {
    let slow = disks(machine).filter_map(|disk| Some((disk, disk.usb_device()?)));
    slow.filter(|(disk, hop)| {
        hop.driver.text() == Some("usb-storage")
            && hop.line_bits_per_second.get() >= Some(5_000_000_000)
            && disk.rotational.get() == Some(false)
            && disk.removable.get() != Some(true)
    })
    .map(|(disk, hop)| {
        let chip = hop.chip.as_deref().unwrap_or("unknown");
        let quirk = machine.system.command_line.text().is_some_and(|line| {
            line.contains("usb-storage.quirks=") && line.contains(&format!("{chip}:u"))
        });
        Seen {
            about: disk.name.clone(),
            evidence: format!("the driver usb-storage serves {} ({chip})", hop.name),
            read_from: hop.driver.source().into(),
            consequence: "One command at a time: a queue gains nothing, where an SSD under uas does several times the random operations.".into(),
            fix: if quirk {
                format!("The kernel's command line forbids uas for it (usb-storage.quirks={chip}:u). Take that away only if the bridge's firmware is newer than the trouble.")
            } else {
                "If the bridge can do UAS the kernel takes it by itself; this one cannot, or is known to the kernel as faulty. A bridge with another chip (JMS583, ASM2362, RTL9210) can.".into()
            },
            command: None,
        }
    })
    .collect()
}

/// Bridges for which the kernel has switched UAS off altogether: when `uas` serves them all the same, that was
/// overridden.
const UAS_SWITCHED_OFF: [&str; 3] = ["0984:0301", "4971:1012", "174c:5106"];
/// Bridges whose FUA the kernel found broken: an acknowledged write may not be on the medium.
const BROKEN_FUA: [&str; 2] = ["152d:0567", "152d:0578"];

fn uas_trouble(machine: &Machine) -> Vec<Seen> {
    let what =
        "is one for which the kernel has UAS switched off, since it answers nonsense under load";
    let fix = "Let the older driver usb-storage serve it, which is slower: one command at a time.";
    served_by_uas(machine, &UAS_SWITCHED_OFF, what, fix)
}

fn uas_quirk(machine: &Machine) -> Vec<Seen> {
    let what = "is known for a write-through command (FUA) that does not do what it says; the kernel flushes instead";
    let fix = "Nothing, as long as `dmesg | grep -i reset` shows no resets of it. Else let the older driver usb-storage serve it, which is slower.";
    served_by_uas(machine, &BROKEN_FUA, what, fix)
}

fn served_by_uas(machine: &Machine, chips: &[&str], what: &str, fix: &str) -> Vec<Seen> {
    let with_uas = disks(machine).filter_map(|disk| Some((disk, disk.usb_device()?)));
    with_uas
        .filter(|(_, hop)| hop.driver.text() == Some("uas"))
        .filter_map(|(disk, hop)| {
            let chip = hop.chip.as_deref().filter(|chip| chips.contains(chip))?;
            Some(Seen {
                about: disk.name.clone(),
                evidence: format!("{} ({chip}) {what}", hop.name),
                read_from: hop.driver.source().into(),
                consequence:
                    "If the disk resets under load, reads and writes stop for half a minute each time."
                        .into(),
                fix: fix.into(),
                command: Some(format!("rubus plan usb-quirk device=/dev/{}", disk.name)),
            })
        })
        .collect()
}

fn no_trim(machine: &Machine) -> Vec<Seen> {
    let over_usb = disks(machine).filter_map(|disk| Some((disk, disk.usb_device()?)));
    over_usb
        .filter(|(disk, _)| {
            disk.discard_max_bytes.get() == Some(0)
                && disk.rotational.get() == Some(false)
                && disk.removable.get() == Some(false)
        })
        .map(|(disk, hop)| Seen {
            about: disk.name.clone(),
            evidence: format!("no TRIM reaches the SSD behind {}", hop.name),
            read_from: disk.discard_max_bytes.source().into(),
            consequence: "The SSD takes every block that was ever written as still in use: its write cache gets smaller and long writes slower the fuller it looks.".into(),
            fix: "Many bridges support TRIM without announcing it: `sg_vpd -p bl` (package sg3-utils) then shows a maximum unmap count above 0. Make a backup first, since a bridge that passes TRIM on wrongly destroys data. Write `unmap` to the disk's provisioning_mode (a udev rule keeps it), then fstrim. Else leave a part of the SSD without a partition.".into(),
            command: None,
        })
        .collect()
}

fn network_on_the_bus(machine: &Machine) -> Vec<Seen> {
    let on_it = |bus: &SharedBus| {
        let mut links = machine.links.iter();
        let link = links.find(|link| bus.members.contains(&link.name))?;
        let disk = disks(machine).find(|disk| bus.members.contains(&disk.name))?;
        let carries = bus.usable_bytes_per_second.get()?;
        (carries < 100e6).then(|| Seen {
            about: bus.name.clone(),
            evidence: format!("{} and {} share it", disk.name, link.name),
            read_from: bus.usable_bytes_per_second.source().into(),
            consequence: passed_twice(carries, disk, link),
            fix: "No setting changes that. What is on the card and sent passes the bus once; a board whose network is not on USB (Pi 4, Pi 5) has it free for disks.".into(),
            command: None,
        })
    };
    machine.shared_buses.iter().filter_map(on_it).collect()
}

/// What a bus leaves of itself to whom it sends what a disk on it has, if the link is on it, too.
fn passed_twice(carries: f64, disk: &BlockDevice, link: &Link) -> String {
    let half = carries / 2.0;
    let most = link.bits_per_second.get();
    let most = most.map(|bits| ceiling::ethernet(bits).bytes_per_second);
    let gives = match most {
        Some(most) if most < half => format!(
            "while {} is full ({}), {} are left for everything else on it",
            link.name,
            rate_si(most),
            rate_si(carries - 2.0 * most)
        ),
        _ => format!("a file server gives {} at most", rate_si(half)),
    };
    format!(
        "{} for both together, and what is read from {} and sent passes the bus twice: {gives}.",
        rate_si(carries),
        disk.name
    )
}

fn array_on_one_bus(machine: &Machine) -> Vec<Seen> {
    let arrays = machine.block_devices.iter().filter(|device| device.kind == BlockKind::Md);
    arrays
        .filter_map(|array| {
            let bus = machine.shared_buses.iter().find(|bus| {
                array.below.len() > 1
                    && machine
                        .disks_below(&array.name)
                        .iter()
                        .all(|disk| bus.members.contains(&disk.name))
            })?;
            let carries = bus.usable_bytes_per_second.get()?;
            Some(Seen {
                about: array.name.clone(),
                evidence: format!("all {} members are on {}", array.below.len(), bus.name),
                read_from: bus.usable_bytes_per_second.source().into(),
                consequence: format!("The bus carries {} however many members there are; striping gains nothing in long transfers.", rate_si(carries)),
                fix: "Spread the members over buses of their own, or save the trouble and the risk.".into(),
                command: None,
            })
        })
        .collect()
}

fn disks_on_one_bus(machine: &Machine) -> Vec<Seen> {
    machine
        .shared_buses
        .iter()
        .filter_map(|bus| {
            let shared: Vec<&str> = disks(machine)
                .filter(|disk| bus.members.contains(&disk.name))
                .map(|disk| disk.name.as_str())
                .collect();
            let carries = bus.usable_bytes_per_second.get()?;
            (shared.len() > 1 && carries < 100e6).then(|| Seen {
                about: bus.name.clone(),
                evidence: format!("{} are on it", shared.join(" and ")),
                read_from: bus.usable_bytes_per_second.source().into(),
                consequence: format!(
                    "{} for all of them together: a copy from one to the other gets {} at most.",
                    rate_si(carries),
                    rate_si(carries / 2.0)
                ),
                fix: "Measure them together: it says whether they really share this pipe.".into(),
                command: Some(format!(
                    "sudo rubus bench {} --together",
                    shared.iter().map(|name| format!("/dev/{name}")).collect::<Vec<_>>().join(" ")
                )),
            })
        })
        .collect()
}
