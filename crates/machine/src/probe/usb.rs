//! USB hops: controllers, hubs and devices, what they negotiated and what they could do.

use std::path::Path;

use crate::ceiling::{usb as ceiling, usb_name};
use crate::usb_ids::{parse_id, usb_chip};
use rubus_host::Files;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::{Hop, HopKind};

use crate::probe::hop::usable;
use crate::probe::read::{filled_text, text};
use crate::probe::sysfs::{base_name, driver, names};

/// Class code of hubs.
const CLASS_HUB: &str = "09";

/// Whether a name in sysfs is a root hub ("usb1").
pub(crate) fn is_root_hub(name: &str) -> bool {
    name.strip_prefix("usb")
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a name in sysfs is a USB device ("1-1.2").
pub(crate) fn is_device(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name.split_once('-').is_some_and(|(bus, ports)| digits(bus) && ports.split('.').all(digits))
}

/// Whether a name in sysfs is an interface of a USB device ("1-1.2:1.0").
pub(crate) fn is_interface(name: &str) -> bool {
    name.split_once(':').is_some_and(|(device, _)| is_device(device))
}

/// The hop for a host controller by the directory of its root hub.
pub(crate) fn controller(files: &dyn Files, directory: &str) -> Hop {
    let speed = speed(files, directory);
    let parent = directory.rsplit_once('/').map_or("", |(parent, _)| parent);
    let product = text(files, &format!("{directory}/product"));
    Hop {
        kind: HopKind::UsbController,
        id: base_name(directory).to_string(),
        name: match product.text().filter(|product| !product.is_empty()) {
            Some(product) => product.to_string(),
            None => "USB controller".to_string(),
        },
        chip: None,
        line_bits_per_second: speed.clone().map(bits),
        max_line_bits_per_second: speed.clone().map(bits),
        link: link_words(speed.get(), None),
        driver: driver(files, parent),
        usable_bytes_per_second: usable(&speed, ceiling),
        speaks_bulk_only: None,
    }
}

/// The hop for a hub or device by its directory; `interface` is the directory of the interface
/// through which the path goes on.
pub(crate) fn device(files: &dyn Files, directory: &str, interface: Option<&str>) -> Hop {
    let speed = speed(files, directory);
    let class = text(files, &format!("{directory}/bDeviceClass"));
    let is_hub = class.text() == Some(CLASS_HUB);
    let ids = chip_ids(files, directory);
    let id = base_name(directory).to_string();
    let own_interface = format!("{directory}/{id}:1.0");
    let driver = driver(files, interface.unwrap_or(&own_interface));
    let is_storage = matches!(driver.text(), Some("uas" | "usb-storage"));
    let capable = if is_hub {
        // A USB 3 hub is two hubs; this half of it always runs as it does.
        speed.clone()
    } else {
        capable_speed(files, directory, speed.get(), is_storage)
    };
    Hop {
        kind: if is_hub { HopKind::UsbHub } else { HopKind::UsbDevice },
        id,
        name: name(files, directory, ids, is_hub),
        chip: ids.map(|(vendor, product)| format!("{vendor:04x}:{product:04x}")),
        line_bits_per_second: speed.clone().map(bits),
        max_line_bits_per_second: within_machine(files, capable.clone()).map(bits),
        link: link_words(speed.get(), capable.get()),
        driver,
        usable_bytes_per_second: usable(&speed, ceiling),
        speaks_bulk_only: speaks_bulk_only(files, directory),
    }
}

/// Whether one of a device's interface settings is a disk's by bulk-only transport; nothing where none is a disk's.
fn speaks_bulk_only(files: &dyn Files, directory: &str) -> Option<bool> {
    let path = format!("{directory}/descriptors");
    let bytes = files.read_prefix(Path::new(&path), 4096).ok()?;
    let protocols = storage_protocols(&bytes);
    (!protocols.is_empty()).then(|| protocols.contains(&BULK_ONLY))
}

/// Protocol of a mass-storage interface (USB Mass Storage Class Specification Overview, 1.4, section 3): bulk-only transport.
/// UAS is 62h.
const BULK_ONLY: u8 = 0x50;

/// The protocols of all interface settings that are mass storage with SCSI commands, from the device's and configurations'
/// descriptors one after the other (USB 2.0 specification, 9.6.5).
fn storage_protocols(bytes: &[u8]) -> Vec<u8> {
    const INTERFACE: u8 = 4;
    const MASS_STORAGE: u8 = 8;
    const SCSI: u8 = 6;
    let mut protocols = Vec::new();
    let mut rest = bytes;
    while let [length, kind, ..] = *rest {
        let Some(descriptor) = rest.get(..usize::from(length)).filter(|_| length >= 2) else {
            break;
        };
        if let (INTERFACE, [_, _, _, _, _, MASS_STORAGE, SCSI, protocol, ..]) = (kind, descriptor) {
            protocols.push(*protocol);
        }
        rest = &rest[descriptor.len()..];
    }
    protocols
}

/// The kernel's `speed` in Mbit/s. The slowest rate is "1.5".
fn speed(files: &dyn Files, directory: &str) -> Fact<u32> {
    text(files, &format!("{directory}/speed")).and_then(|speed| {
        let speed = speed.trim();
        speed
            .parse::<f64>()
            .ok()
            .filter(|mbit| (1.0..1e6).contains(mbit))
            .map(|mbit| mbit as u32)
            .ok_or_else(|| format!("it says '{speed}'"))
    })
}

/// The best speed that the device says it has, in Mbit/s, whatever port it is on.
///
/// Its BOS descriptor lists it exactly. Where the kernel does not show that one, the version
/// tells: a USB 3 device says 3.x on a USB 3 port and must say 2.10 on a USB 2 port (USB 3.2
/// specification, 9.6.1). Other kinds of devices say 2.10 for other reasons, storage hardly ever.
fn capable_speed(
    files: &dyn Files,
    directory: &str,
    current: Option<u32>,
    is_storage: bool,
) -> Fact<u32> {
    let path = format!("{directory}/bos_descriptors");
    if let Ok(bytes) = files.read_prefix(Path::new(&path), 4096) {
        if let Some(mbit) = fastest_in_bos(&bytes) {
            return Fact::known(mbit.max(current.unwrap_or(0)), path);
        }
    }
    let current = current.unwrap_or(0);
    text(files, &format!("{directory}/version")).and_then(|version| match version.trim() {
        "1.00" | "1.10" => Ok(12.max(current)),
        "2.00" | "2.01" => Ok(480.max(current)),
        "2.10" if is_storage => Ok(5_000.max(current)),
        version if version.starts_with('3') => Ok(5_000.max(current)),
        other => Err(format!("USB version '{other}' says nothing about speed")),
    })
}

/// The fastest mode in a BOS descriptor, in Mbit/s: SuperSpeed (capability 3) or SuperSpeedPlus
/// (capability 10, with a list of lane speeds).
fn fastest_in_bos(bytes: &[u8]) -> Option<u32> {
    let mut rest = bytes.get(5..)?;
    let mut best = None;
    while let [length, 0x10, capability, ..] = *rest {
        let length = usize::from(length);
        let descriptor = rest.get(..length).filter(|_| length >= 3)?;
        let found = match capability {
            0x03 => descriptor.get(4).filter(|speeds| *speeds & 0b1000 != 0).map(|_| 5_000),
            0x0a => fastest_lane(descriptor),
            _ => None,
        };
        best = best.max(found);
        rest = &rest[length..];
    }
    best
}

/// The fastest sublink of a SuperSpeedPlus capability: each is 32 bits with the exponent of 1000
/// in bits 4 and 5 and the mantissa in the upper half.
fn fastest_lane(descriptor: &[u8]) -> Option<u32> {
    descriptor
        .get(12..)?
        .chunks_exact(4)
        .filter_map(|word| {
            let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            let mantissa = word >> 16;
            match (word >> 4) & 0b11 {
                3 => mantissa.checked_mul(1_000),
                2 => Some(mantissa),
                _ => None,
            }
        })
        .max()
}

/// A device cannot be faster than the best port of the machine.
fn within_machine(files: &dyn Files, capable: Fact<u32>) -> Fact<u32> {
    let buses = "/sys/bus/usb/devices";
    let best_port = names(files, buses)
        .iter()
        .filter(|name| is_root_hub(name))
        .filter_map(|name| speed(files, &format!("{buses}/{name}")).get())
        .max();
    match best_port {
        Some(best_port) => capable.map(|mbit| mbit.min(best_port)),
        None => capable,
    }
}

fn bits(mbit: u32) -> u64 {
    u64::from(mbit) * 1_000_000
}

/// "USB 2, 480 Mbit/s (the device could do 5 Gbit/s)".
fn link_words(current: Option<u32>, capable: Option<u32>) -> String {
    let Some(current) = current else {
        return "USB, speed unknown".to_string();
    };
    let now = usb_name(current);
    match capable {
        Some(capable) if capable > current => {
            let best = usb_name(capable);
            let rate = best.split_once(", ").map_or(best.as_str(), |(_, rate)| rate);
            format!("{now} (the device could do {rate})")
        }
        _ => now,
    }
}

fn chip_ids(files: &dyn Files, directory: &str) -> Option<(u16, u16)> {
    let id = |leaf: &str| parse_id(text(files, &format!("{directory}/{leaf}")).text()?);
    Some((id("idVendor")?, id("idProduct")?))
}

/// The chip's name where it is one of the known ones, else what the device says of itself.
fn name(files: &dyn Files, directory: &str, ids: Option<(u16, u16)>, is_hub: bool) -> String {
    if let Some(chip) = ids.and_then(|(vendor, product)| usb_chip(vendor, product)) {
        return chip.name.to_string();
    }
    let said: Vec<String> = ["manufacturer", "product"]
        .iter()
        .filter_map(|leaf| filled_text(files, &format!("{directory}/{leaf}")).value().cloned())
        .collect();
    let what = if is_hub { "USB hub" } else { "USB device" };
    match (said.is_empty(), ids) {
        (false, _) => said.join(" "),
        (true, Some((vendor, product))) => format!("{what} {vendor:04x}:{product:04x}"),
        (true, None) => what.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_sysfs_are_told_apart() {
        assert!(is_root_hub("usb12") && !is_root_hub("usb") && !is_root_hub("usbmon"));
        assert!(is_device("1-1") && is_device("2-1.4.3") && !is_device("1-0:1.0"));
        assert!(!is_device("1-") && !is_device("mmc0") && !is_device("1-1."));
        assert!(is_interface("1-1.2:1.0") && !is_interface("0000:01:00.0"));
    }

    /// LPM, SuperSpeed and SuperSpeedPlus at 10 Gbit/s, as a USB 3.2 Gen 2 bridge has them.
    const BOS: &[u8] = &[
        5, 0x0f, 42, 0, 3, //
        7, 0x10, 0x02, 0x06, 0, 0, 0, //
        10, 0x10, 0x03, 0x00, 0x0e, 0x00, 0x01, 0x0a, 0xff, 0x07, //
        20, 0x10, 0x0a, 0x00, 0x01, 0, 0, 0, 0x00, 0x11, 0, 0, //
        0x30, 0x40, 0x0a, 0x00, 0xb0, 0x40, 0x0a, 0x00,
    ];

    #[test]
    fn the_fastest_mode_is_found_in_the_descriptor() {
        assert_eq!(fastest_in_bos(BOS), Some(10_000));
        assert_eq!(fastest_in_bos(&BOS[..22]), Some(5_000));
        assert_eq!(fastest_in_bos(&BOS[..12]), None);
        assert_eq!(fastest_in_bos(&[]), None);
        assert_eq!(fastest_in_bos(&[5, 0x0f, 0, 0, 1, 0, 0x10, 3]), None);
    }

    /// A device's descriptor and the head of its configuration: lengths and kinds are what counts.
    fn descriptors(settings: &[[u8; 9]]) -> Vec<u8> {
        let mut bytes = vec![0; 18 + 9];
        (bytes[0], bytes[1], bytes[18], bytes[19]) = (18, 1, 9, 2);
        for setting in settings {
            bytes.extend(setting);
            // A bulk endpoint, and what belongs to it at USB 3.
            bytes.extend([7, 5, 0x81, 2, 0, 4, 0, 6, 0x30, 15, 0, 0, 0]);
        }
        bytes
    }

    #[test]
    fn a_bridge_tells_whether_it_speaks_bulk_only_transport() {
        let bulk_only = [9, 4, 0, 0, 2, 8, 6, 0x50, 0];
        let uas = [9, 4, 0, 1, 4, 8, 6, 0x62, 0];
        let keyboard = [9, 4, 1, 0, 1, 3, 1, 1, 0];
        let of = |settings: &[[u8; 9]]| storage_protocols(&descriptors(settings));
        assert_eq!(of(&[bulk_only, uas]), [0x50, 0x62]);
        assert_eq!(of(&[uas, keyboard]), [0x62]);
        assert!(of(&[keyboard]).is_empty());
        // A descriptor that says it is longer than what is there, or has no length.
        assert!(storage_protocols(&descriptors(&[uas])[..34]).is_empty());
        assert!(storage_protocols(&[0, 4, 0, 0, 2, 8, 6, 0x50, 0]).is_empty());
    }

    proptest::proptest! {
        #[test]
        fn no_descriptor_makes_it_panic(bytes in proptest::collection::vec(0_u8..=255, 0..80)) {
            fastest_in_bos(&bytes);
            storage_protocols(&bytes);
        }
    }
}
