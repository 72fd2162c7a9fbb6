//! PCI Express hops: negotiated and possible speed and width of each link on a path.

use crate::ceiling::PcieLink;
use crate::usb_ids::{parse_id, pci_chip};
use rubus_host::Files;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::{Hop, HopKind};

use crate::probe::hop::usable;
use crate::probe::read::text;
use crate::probe::sysfs::{base_name, driver, names};

/// The controller of the one lane that leaves a Raspberry Pi 5, by its registers (Linux, bcm2712.dtsi: `pcie1`).
const BCM2712_CONNECTOR: &str = "1000110000.pcie";

/// Whether a name in sysfs is a PCI address ("0000:01:00.0").
pub(crate) fn is_address(name: &str) -> bool {
    let hex = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let mut parts = name.splitn(3, ':');
    let (Some(domain), Some(bus), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let Some((device, function)) = rest.split_once('.') else {
        return false;
    };
    hex(domain, domain.len().max(4)) && hex(bus, 2) && hex(device, 2) && hex(function, 1)
}

/// Whether a name in sysfs is the root of a PCI domain ("pci0000:00").
pub(crate) fn is_root(name: &str) -> bool {
    name.strip_prefix("pci").and_then(|rest| rest.split_once(':')).is_some_and(|(domain, bus)| {
        let hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        domain.len() >= 4 && bus.len() == 2 && hex(domain) && hex(bus)
    })
}

/// The hop to the last device of a chain of PCI devices, given by their sysfs directories from
/// the root on. None where no link ends: at ports that begin one, and at devices inside the root
/// complex, which have no link.
///
/// Every link has two ends in the chain: root port and device, or root port, a switch's upstream
/// port, its downstream port and the device. So each second one ends a link.
pub(crate) fn hop(files: &dyn Files, chain: &[String]) -> Option<Hop> {
    let directory = chain.last()?;
    let upstream = match chain {
        [.., upstream, _] if chain.len() % 2 == 0 => Some(upstream),
        [_] => None,
        _ => return None,
    };
    let current = link(files, directory, "current");
    if upstream.is_none() && current.get().is_none() {
        return None;
    }
    Some(build(files, directory, upstream, current))
}

/// The hop to a bridge chip whose devices the device tree hangs directly below the PCIe
/// controller, as it is with the RP1 of a Raspberry Pi 5: the chip itself stands beside them.
pub(crate) fn hop_to_bridge_chip(files: &dyn Files, controller: &str) -> Option<Hop> {
    let child = |directory: &str, wanted: fn(&str) -> bool| {
        let name = names(files, directory).into_iter().find(|name| wanted(name))?;
        Some(format!("{directory}/{name}"))
    };
    let root = child(controller, is_root)?;
    let port = child(&root, is_address)?;
    let chip = child(&port, is_address)?;
    hop(files, &[port, chip])
}

fn build(
    files: &dyn Files,
    directory: &str,
    upstream: Option<&String>,
    current: Fact<PcieLink>,
) -> Hop {
    let own_best = link(files, directory, "max");
    let common_best = match upstream {
        Some(upstream) => {
            let other = link_at_best(files, upstream);
            own_best
                .clone()
                .and_then(|own| other.get().map_or(Ok(own), |other| Ok(own.common(other))))
        }
        None => own_best.clone(),
    };
    let ids = chip_ids(files, directory);
    Hop {
        kind: HopKind::Pcie,
        id: base_name(directory).to_string(),
        name: name(files, directory, ids),
        chip: ids.map(|(vendor, device)| format!("{vendor:04x}:{device:04x}")),
        line_bits_per_second: current.clone().map(PcieLink::line_bits_per_second),
        max_line_bits_per_second: common_best.map(PcieLink::line_bits_per_second),
        link: words(current.get(), own_best.get()),
        driver: driver(files, directory),
        usable_bytes_per_second: usable(&current, |link| Some(link.ceiling())),
        speaks_bulk_only: None,
    }
}

/// "PCIe Gen 2 ×1 (of Gen 3 ×4)".
fn words(current: Option<PcieLink>, best: Option<PcieLink>) -> String {
    let Some(current) = current else {
        return "PCIe, speed unknown".to_string();
    };
    match best {
        Some(best) if best != current => {
            let best = best.name();
            let best = best.strip_prefix("PCIe ").unwrap_or(&best);
            format!("{} (of {best})", current.name())
        }
        _ => current.name(),
    }
}

/// One end's `current` or `max` link.
fn link(files: &dyn Files, directory: &str, which: &str) -> Fact<PcieLink> {
    let width = text(files, &format!("{directory}/{which}_link_width"));
    text(files, &format!("{directory}/{which}_link_speed")).and_then(|speed| match width.text() {
        Some(width) => PcieLink::parse(&speed, width)
            .ok_or_else(|| format!("it says '{speed}' over '{width}' lanes")),
        None => Err("the width of the link is not known".to_string()),
    })
}

/// The best that the upper end of a link can do. The connector of a Raspberry Pi 5 says there what `config.txt` set, which is
/// generation 2 where nothing is set; it can do 3, for which the board is not certified.
fn link_at_best(files: &dyn Files, upstream: &str) -> Fact<PcieLink> {
    let said = link(files, upstream, "max");
    let is_connector = upstream.split('/').any(|step| step == BCM2712_CONNECTOR);
    said.map(|link| {
        if is_connector && link.generation() < 3 {
            PcieLink { megatransfers: 8_000, ..link }
        } else {
            link
        }
    })
}

fn chip_ids(files: &dyn Files, directory: &str) -> Option<(u16, u16)> {
    let id = |leaf: &str| parse_id(text(files, &format!("{directory}/{leaf}")).text()?);
    Some((id("vendor")?, id("device")?))
}

fn name(files: &dyn Files, directory: &str, ids: Option<(u16, u16)>) -> String {
    if let Some(name) = ids.and_then(|(vendor, device)| pci_chip(vendor, device)) {
        return name.to_string();
    }
    let class = text(files, &format!("{directory}/class"));
    // Class codes: PCI Code and ID Assignment Specification; the last two digits are the
    // programming interface.
    let what = match class.text().and_then(|class| class.trim().get(..6)) {
        Some("0x0106") => "SATA controller",
        Some("0x0107") => "SAS controller",
        // The drive itself is the next hop; this one is its link.
        Some("0x0108") => "PCIe slot",
        Some("0x0104") => "RAID controller",
        Some("0x0200") => "Ethernet controller",
        Some("0x0280") => "wireless controller",
        Some("0x0604") => "PCIe switch",
        Some("0x0c03") => "USB controller",
        _ => "PCIe device",
    };
    match ids {
        Some((vendor, device)) if what != "PCIe slot" => {
            format!("{what} {vendor:04x}:{device:04x}")
        }
        _ => what.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_roots_are_told_apart() {
        assert!(is_address("0000:01:00.0"));
        assert!(is_address("10000:e1:00.0"), "domains may be longer");
        for other in ["pci0000:00", "0000:01:00", "0:0:0:0", "1-1.2:1.0", "", "::."] {
            assert!(!is_address(other), "{other}");
        }
        assert!(is_root("pci0001:00"));
        for other in ["pci_bus", "pci0000", "0000:00:00.0", "pci:"] {
            assert!(!is_root(other), "{other}");
        }
    }
}
