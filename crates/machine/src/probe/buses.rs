//! The path of buses from the processor to a device, read off its place in sysfs, and the buses
//! that several devices share. One kind of hop per file: `usb.rs`, `pcie.rs`, `mmc.rs`; the rest
//! is here.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use crate::ceiling::{sata, sata_name};
use rubus_host::Files;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::{BlockDevice, Hop, HopKind, Link, SharedBus};

use crate::probe::hop::{usable, without_rate};
use crate::probe::read::{filled_text, text};
use crate::probe::sysfs::{base_name, driver, names};
use crate::probe::{mmc, pcie, usb};

/// The hops from the processor to a device, by any path of the device in sysfs
/// (`/sys/block/sda`, `/sys/class/net/eth0/device`); links are followed. Empty for devices that
/// only exist in software, and where the path cannot be resolved.
pub fn hops_of(files: &dyn Files, sysfs_device_path: &Path) -> Vec<Hop> {
    let Ok(real) = files.real_path(sysfs_device_path) else {
        return Vec::new();
    };
    let real = real.to_string_lossy();
    if let Some(controller) = nvme_controller(files, &real) {
        return hops_of(files, Path::new(&controller));
    }
    let steps = steps(&real);
    (0..steps.len()).filter_map(|at| hop_at(files, &steps, at)).collect()
}

/// A drive with several paths shows below a virtual subsystem; its first controller is real.
fn nvme_controller(files: &dyn Files, real: &str) -> Option<String> {
    let (before, after) = real.split_once("/nvme-subsystem/")?;
    let subsystem = after.split('/').next()?;
    let directory = format!("{before}/nvme-subsystem/{subsystem}");
    let controller = names(files, &directory).into_iter().find(|name| is_numbered(name, "nvme"))?;
    let real = files.real_path(Path::new(&format!("{directory}/{controller}"))).ok()?;
    let real = real.to_string_lossy().into_owned();
    // A controller below the subsystem itself would lead here again.
    (!real.contains("/nvme-subsystem/")).then_some(real)
}

/// The directories of a path below `/sys/devices`, each with all that is before it.
fn steps(real: &str) -> Vec<String> {
    let Some(rest) = real.strip_prefix("/sys/devices/") else {
        return Vec::new();
    };
    let mut path = "/sys/devices".to_string();
    rest.split('/')
        .map(|name| {
            path.push('/');
            path.push_str(name);
            path.clone()
        })
        .collect()
}

/// The hop that the path takes at one of its directories, if it is one.
fn hop_at(files: &dyn Files, steps: &[String], at: usize) -> Option<Hop> {
    let directory = steps.get(at)?.as_str();
    let name = base_name(directory);
    let name_at = |at: usize| steps.get(at).map_or("", |step| base_name(step));
    let before = at.checked_sub(1).map_or("", name_at);
    let came_by = |wanted: fn(&str) -> bool| steps[..at].iter().any(|step| wanted(base_name(step)));
    match name {
        "platform" if at == 0 => Some(without_rate(
            HopKind::Soc,
            "soc",
            "system on chip",
            "on the chip",
            "buses on the chip do not say",
        )),
        _ if pcie::is_address(name) => {
            let first = steps[..at]
                .iter()
                .rposition(|step| !pcie::is_address(base_name(step)))
                .map_or(0, |last_other| last_other + 1);
            // A port from which a link goes on to the next directory.
            let begins_link = first == at && pcie::is_address(name_at(at + 1));
            let ends_link = || pcie::hop(files, &steps[first..=at]);
            if begins_link { None } else { ends_link() }
        }
        _ if name.ends_with(".pcie") && !pcie::is_root(name_at(at + 1)) => {
            pcie::hop_to_bridge_chip(files, directory)
        }
        _ if usb::is_root_hub(name) => Some(usb::controller(files, directory)),
        _ if usb::is_device(name) => {
            let next = steps.get(at + 1).map(String::as_str);
            let interface = next.filter(|next| usb::is_interface(base_name(next)));
            Some(usb::device(files, directory, interface))
        }
        _ if mmc::is_host(name) && before == "mmc_host" => Some(mmc::host_hop(files, directory)),
        _ if is_numbered(name, "ata") => Some(sata_hop(files, directory)),
        _ if is_numbered(name, "virtio") => Some(virtio_hop(files, directory)),
        _ if is_numbered(name, "nvme") => Some(nvme_hop(files, directory)),
        _ if is_numbered(name, "session") => Some(network_hop(name, "iSCSI over the network")),
        // A bridge's or port's SCSI host is no hop of its own.
        _ if is_numbered(name, "host")
            && !came_by(usb::is_device)
            && !came_by(|step| is_numbered(step, "ata") || is_numbered(step, "virtio")) =>
        {
            Some(scsi_hop(files, directory, &steps[..at]))
        }
        _ => None,
    }
}

/// Whether a name is a prefix and a number ("nvme0", but not "nvme0n1").
fn is_numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix)
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A network hop, below which another machine stores the data.
pub(crate) fn network_hop(id: &str, link: &str) -> Hop {
    without_rate(HopKind::Network, id, "network", link, "it depends on the network and the server")
}

fn virtio_hop(files: &dyn Files, directory: &str) -> Hop {
    let driver = driver(files, directory);
    let name = match driver.text() {
        Some("virtio_blk") => "virtio disk",
        Some("virtio_scsi") => "virtio SCSI host",
        Some("virtio_net") => "virtio network card",
        _ => "virtio device",
    };
    let why = "a paravirtual device is as fast as its host lets it be";
    Hop { driver, ..without_rate(HopKind::Virtio, base_name(directory), name, "paravirtual", why) }
}

fn nvme_hop(files: &dyn Files, directory: &str) -> Hop {
    let id = base_name(directory);
    let model = filled_text(files, &format!("{directory}/model"));
    let transport = filled_text(files, &format!("{directory}/transport"));
    let link = match transport.text() {
        Some("pcie") | None => "NVMe over PCIe".to_string(),
        Some(other) => format!("NVMe over the network ({other})"),
    };
    let parent = directory.rsplitn(3, '/').nth(2).unwrap_or_default();
    Hop {
        driver: driver(files, parent),
        ..without_rate(
            HopKind::Nvme,
            id,
            model.text().unwrap_or("NVMe drive"),
            &link,
            "the link is the hop before",
        )
    }
}

/// A SATA port; its speed is that of the link below it.
fn sata_hop(files: &dyn Files, directory: &str) -> Hop {
    let link_directory = names(files, directory)
        .into_iter()
        .find(|name| is_numbered(name, "link"))
        .map(|link| format!("{directory}/{link}/ata_link/{link}"))
        .unwrap_or_else(|| format!("{directory}/link"));
    let current = sata_speed(files, &format!("{link_directory}/sata_spd"));
    let parent = directory.rsplit_once('/').map_or("", |(parent, _)| parent);
    let coded = |bits: u64| bits / 10 * 8;
    Hop {
        line_bits_per_second: current.clone().map(coded),
        max_line_bits_per_second: sata_speed(files, &format!("{link_directory}/hw_sata_spd_limit"))
            .map(coded),
        driver: driver(files, parent),
        usable_bytes_per_second: usable(&current, |bits| Some(sata(bits))),
        ..without_rate(
            HopKind::Scsi,
            base_name(directory),
            "SATA port",
            &current.get().map_or("SATA, speed unknown".into(), sata_name),
            "",
        )
    }
}

/// The kernel's "6.0 Gbps" in bits per second.
fn sata_speed(files: &dyn Files, path: &str) -> Fact<u64> {
    text(files, path).and_then(|speed| {
        speed
            .trim()
            .strip_suffix(" Gbps")
            .and_then(|number| number.parse::<f64>().ok())
            .filter(|gigabits| (1.0..100.0).contains(gigabits))
            .map(|gigabits| (gigabits * 1e9).round() as u64)
            .ok_or_else(|| format!("it says '{}'", speed.trim()))
    })
}

fn scsi_hop(files: &dyn Files, directory: &str, before: &[String]) -> Hop {
    let parent = before.last().map_or("", String::as_str);
    Hop {
        driver: driver(files, parent),
        ..without_rate(
            HopKind::Scsi,
            base_name(directory),
            "SCSI host",
            "SCSI",
            "the host does not say its speed",
        )
    }
}

/// The buses that more than one disk or network link goes through and that carry only so much
/// for all of them: hubs, single-port USB controllers, PCIe links, enclosures with several disks.
///
/// Of several hops with the same members the deepest counts. A bus inside a narrower or equal one
/// is left out, since the outer one already says it.
pub fn shared_buses(devices: &[BlockDevice], links: &[Link]) -> Vec<SharedBus> {
    let paths: Vec<(&str, &[Hop])> = devices
        .iter()
        .filter(|device| device.parent.is_none())
        .map(|device| (device.name.as_str(), device.path.as_slice()))
        .chain(links.iter().map(|link| (link.name.as_str(), link.path.as_slice())))
        .collect();
    let mut members: HashMap<&str, Vec<&str>> = HashMap::new();
    for (name, path) in &paths {
        let ids: BTreeSet<&str> = path.iter().map(|hop| hop.id.as_str()).collect();
        ids.into_iter().for_each(|id| members.entry(id).or_default().push(name));
    }
    // The deepest hop for each set of members, with its turn.
    let mut deepest: HashMap<&[&str], (usize, &Hop)> = HashMap::new();
    let hops = paths.iter().flat_map(|(_, path)| path.iter()).filter(|hop| is_one_pipe(hop));
    for (turn, hop) in hops.enumerate() {
        let shared = members.get(hop.id.as_str()).map_or(&[][..], Vec::as_slice);
        // Paths go from the outside in, so a later one with the same members is deeper.
        let is_known = deepest.get(shared).is_some_and(|(_, known)| is_same_pipe(known, hop));
        if shared.len() > 1 && !is_known {
            deepest.insert(shared, (turn, hop));
        }
    }
    let mut found: Vec<(usize, SharedBus)> = deepest
        .into_iter()
        .map(|(members, (turn, hop))| (turn, shared_bus(hop, members)))
        .collect();
    found.sort_by_key(|(turn, _)| *turn);
    let mut buses: Vec<SharedBus> = found.into_iter().map(|(_, bus)| bus).collect();
    let all = buses.clone();
    buses.retain(|bus| !all.iter().any(|outer| says_it_already(outer, bus)));
    buses
}

fn shared_bus(hop: &Hop, members: &[&str]) -> SharedBus {
    SharedBus {
        id: hop.id.clone(),
        name: format!("{}, {}", hop.name, hop.link),
        members: members.iter().map(|name| (*name).to_string()).collect(),
        usable_bytes_per_second: hop.usable_bytes_per_second.clone(),
    }
}

fn is_same_pipe(one: &Hop, other: &Hop) -> bool {
    let parts = |hop: &Hop| (hop.id.clone(), hop.name.clone(), hop.link.clone());
    parts(one) == parts(other) && one.usable_bytes_per_second == other.usable_bytes_per_second
}

/// Whether what goes through a hop shares its capacity. An xHCI root hub gives each of its ports
/// the full rate, so it is no shared pipe; a controller of the older kinds is.
fn is_one_pipe(hop: &Hop) -> bool {
    let is_xhci = hop.driver.text().is_some_and(|driver| {
        driver.starts_with("xhci") || driver.starts_with("dwc3") || driver.starts_with("cdns3")
    });
    let splits = hop.kind == HopKind::UsbController && is_xhci;
    hop.usable_bytes_per_second.get().is_some() && !splits
}

fn says_it_already(outer: &SharedBus, inner: &SharedBus) -> bool {
    let all: HashSet<&String> = outer.members.iter().collect();
    let holds_all = || inner.members.iter().all(|name| all.contains(name));
    let is_no_wider =
        match (outer.usable_bytes_per_second.get(), inner.usable_bytes_per_second.get()) {
            (Some(outer), Some(inner)) => outer <= inner,
            _ => false,
        };
    outer.members.len() > inner.members.len() && is_no_wider && holds_all()
}

#[cfg(test)]
mod tests;
