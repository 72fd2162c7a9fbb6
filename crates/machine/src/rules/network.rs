//! Network links and what hangs on them.

use super::Look::Facts;
use super::{Rule, Seen, Weight, root};
use crate::ceiling;
use crate::parse::network_mount;
use rubus_vocabulary::machine::{BlockKind, HopKind, Link, Machine};
use rubus_vocabulary::units::{bit_rate, rate_si};

const OTHER_CABLE: &str =
    "`ethtool` on the link: Speed 1000Mb/s, Duplex Full, and it is as fast as the chip.";

pub(super) static RULES: &[Rule] = &[
    Rule {
        name: "link-below-gigabit",
        weight: Weight::Cost,
        when: "a chip that does a gigabit runs at less",
        source: "IEEE 802.3: 1000BASE-T needs all four pairs, 100BASE-TX two",
        disproof: OTHER_CABLE,
        look: Facts(slow_link),
    },
    Rule {
        name: "half-duplex",
        weight: Weight::Cost,
        when: "a cable link runs at half duplex",
        source: "IEEE 802.3: half duplex sends or receives, and collides",
        disproof: OTHER_CABLE,
        look: Facts(half_duplex),
    },
    Rule {
        name: "gigabit-behind-usb2",
        weight: Weight::Hint,
        when: "a gigabit link hangs on a USB 2 bus",
        source: "Raspberry Pi 3B+ product brief: Gigabit Ethernet over USB 2.0, about 300 Mbit/s at most",
        disproof: "`iperf3` to another machine: more than 350 Mbit/s, and the bus is not in the way.",
        look: Facts(gigabit_behind_usb2),
    },
    Rule {
        name: "disk-over-wifi",
        weight: Weight::Danger,
        when: "a network disk or filesystem is mounted and only Wi-Fi is up",
        source: "a link that is lost and found again, under a block device or a root filesystem",
        disproof: "Use it for a week of ordinary work: `rubus watch` shows no replaced connection, and this link \
        holds.",
        look: Facts(over_wifi),
    },
    Rule {
        name: "root-over-100-mbit",
        weight: Weight::Cost,
        when: "the root filesystem comes over a link of less than a gigabit",
        source: "TCP in 1500-byte frames: 94 % of the line rate",
        disproof: "`rubus checkup /`: more than 12 MB/s, and the link is faster than it says.",
        look: Facts(root_over_slow_link),
    },
];

/// Drivers of chips that do a gigabit on the boards that have them.
const GIGABIT_DRIVERS: [&str; 12] = [
    "bcmgenet",
    "macb",
    "lan78xx",
    "r8169",
    "r8125",
    "igb",
    "igc",
    "e1000e",
    "ax88179_178a",
    "r8152",
    "stmmac",
    "dwmac-rk",
];

fn is_up(link: &&Link) -> bool {
    link.kind == "ethernet" && link.state.text() == Some("up")
}

fn slow_link(machine: &Machine) -> Vec<Seen> {
    machine
        .links
        .iter()
        .filter(is_up)
        .filter_map(|link| {
            let rate = link.bits_per_second.get().filter(|rate| *rate < 1_000_000_000)?;
            let driver = link.driver.text()?;
            GIGABIT_DRIVERS.contains(&driver).then(|| Seen {
                about: link.name.clone(),
                evidence: format!("a gigabit chip ({driver}) runs at {}", bit_rate(rate as f64)),
                read_from: link.bits_per_second.source().into(),
                consequence: format!(
                    "{} instead of 118 MB/s: a network disk is slower than a good card.",
                    rate_si(ceiling::ethernet(rate).bytes_per_second)
                ),
                fix: "Try another cable first (all four pairs), then another port of the switch; ethtool says what the other end offers.".into(),
                command: None,
            })
        })
        .collect()
}

fn half_duplex(machine: &Machine) -> Vec<Seen> {
    machine
        .links
        .iter()
        .filter(is_up)
        .filter(|link| link.duplex.text() == Some("half"))
        .map(|link| Seen {
            about: link.name.clone(),
            evidence: "half duplex".into(),
            read_from: link.duplex.source().into(),
            consequence: "Requests and answers stand in each other's way: well under half of the line rate, with long pauses.".into(),
            fix: "One end has its speed set by hand, or the cable is broken: let both ends agree by themselves.".into(),
            command: None,
        })
        .collect()
}

fn gigabit_behind_usb2(machine: &Machine) -> Vec<Seen> {
    machine
        .links
        .iter()
        .filter(is_up)
        .filter(|link| link.bits_per_second.get() >= Some(1_000_000_000))
        .filter_map(|link| {
            let hop = link.path.iter().find(|hop| {
                hop.kind == HopKind::UsbDevice
                    && hop.line_bits_per_second.get() == Some(480_000_000)
            })?;
            Some(Seen {
                about: link.name.clone(),
                evidence: format!("a gigabit link behind {}", hop.link),
                read_from: hop.line_bits_per_second.source().into(),
                consequence: "About 35 MB/s of the 118 that the cable carries.".into(),
                fix: "A USB 3 port if the board has one; else that is all there is.".into(),
                command: None,
            })
        })
        .collect()
}

fn over_wifi(machine: &Machine) -> Vec<Seen> {
    let is_wired = machine.links.iter().any(|link| is_up(&link));
    let has_wifi =
        machine.links.iter().any(|link| link.kind == "wifi" && link.state.text() == Some("up"));
    if is_wired || !has_wifi {
        return Vec::new();
    }
    let on_network = machine.mounts.iter().filter(|mount| {
        let device = mount.device.as_deref().and_then(|name| machine.device(name));
        device.is_some_and(|device| device.kind == BlockKind::Nbd)
            || network_mount::of(&mount.filesystem, &mount.options).is_some()
    });
    on_network
        .map(|mount| Seen {
            about: mount.point.clone(),
            evidence: format!("{} comes over Wi-Fi, the only link that is up", mount.source),
            read_from: "/proc/self/mountinfo".into(),
            consequence: "Each loss of the signal stops every program that uses it; 2 to 10 ms for each commit instead of under 1 ms.".into(),
            fix: "A cable.".into(),
            command: None,
        })
        .collect()
}

fn root_over_slow_link(machine: &Machine) -> Vec<Seen> {
    let Some(root) = root(machine) else {
        return Vec::new();
    };
    let device = root.device.as_deref().and_then(|name| machine.device(name));
    let is_remote = device.is_some_and(|device| device.kind == BlockKind::Nbd)
        || root.filesystem.starts_with("nfs");
    let fastest = machine
        .links
        .iter()
        .filter(is_up)
        .filter_map(|link| Some((link, link.bits_per_second.get()?)));
    let Some((link, rate)) = fastest
        .max_by_key(|(_, rate)| *rate)
        .filter(|(_, rate)| is_remote && *rate < 1_000_000_000)
    else {
        return Vec::new();
    };
    vec![Seen {
        about: "/".into(),
        evidence: format!("the root filesystem comes over {} at {}", link.name, bit_rate(rate as f64)),
        read_from: link.bits_per_second.source().into(),
        consequence: format!("{} at most, shared with all other traffic. Random operations gain over a card, long reads lose.", rate_si(ceiling::ethernet(rate).bytes_per_second)),
        fix: "A gigabit link where the board has one; compression of the filesystem makes the cable wider.".into(),
        command: None,
    }]
}
