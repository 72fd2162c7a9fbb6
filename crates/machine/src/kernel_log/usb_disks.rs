//! Which USB ports carry disks, by what the log says when they are found.
//!
//! `usb-storage 1-1.4:1.0: USB Mass Storage device detected` and `scsi host0: usb-storage 1-1.4:1.0` name the port; UAS says
//! `scsi host0: uas` alone, right after the device of the port was found. `sd 0:0:0:0: [sda]` ties the disk to the host.

use std::collections::{BTreeMap, BTreeSet};

use rubus_vocabulary::kernel_log::TroubleKind;

use super::Told;

#[derive(Default)]
pub(super) struct UsbDisks {
    port_of_host: BTreeMap<u32, String>,
    disk_of_port: BTreeMap<String, String>,
    disk_of_host: BTreeMap<u32, String>,
    /// Hosts whose disk the log has as it was found.
    with_inquiry: BTreeSet<u32>,
    /// Ports by the address on the bus: before Linux 3.3 `usb-storage` named no port.
    port_of_address: BTreeMap<String, String>,
}

impl UsbDisks {
    pub fn of(lines: &[Told<'_>]) -> Self {
        let mut disks = Self::default();
        let mut newest_port = None;
        for Told { line, trouble } in lines {
            if let Some((TroubleKind::UsbConnect | TroubleKind::UsbDisk, port)) = trouble {
                newest_port = Some(port.clone());
                if let Some((_, address)) = line.message.split_once(" and address ") {
                    disks.port_of_address.insert(address.trim().to_string(), port.clone());
                }
            }
            if let Some((host, named)) = host_of_usb(&line.message) {
                if let Some(port) = named.map(str::to_string).or(newest_port.clone()) {
                    disks.port_of_host.insert(host, port);
                }
            } else if let Some((host, disk)) = disk_of_host(&line.message) {
                disks.disk_of_host.entry(host).or_insert_with(|| disk.to_string());
                let Some(port) = disks.port_of_host.get(&host) else {
                    continue;
                };
                disks.disk_of_port.entry(port.clone()).or_insert_with(|| disk.to_string());
            } else {
                disks.with_inquiry.extend(host_with_inquiry(&line.message));
            }
        }
        disks
    }

    /// The disk at a port.
    pub fn disk_at(&self, port: &str) -> Option<&str> {
        self.disk_of_port.get(port).map(String::as_str)
    }

    /// Whether the log has how a disk was found, and its host is not on USB.
    pub fn is_elsewhere(&self, disk: &str) -> bool {
        let mut hosts = self.disk_of_host.iter().filter(|(_, found)| *found == disk).peekable();
        hosts.peek().is_some()
            && hosts.all(|(host, _)| {
                self.with_inquiry.contains(host) && !self.port_of_host.contains_key(host)
            })
    }

    /// The ports that carry disks.
    pub fn ports(&self) -> impl Iterator<Item = &str> {
        self.disk_of_port.keys().map(String::as_str)
    }

    /// The disk of a part that is a port or a SCSI host (`host14`), or its port; none for a host of which nothing is known.
    pub fn name_of(&self, part: String) -> Option<String> {
        let Some(host) = part.strip_prefix("host") else {
            return Some(self.disk_at(&part).map_or(part, str::to_string));
        };
        let host = host.parse().ok()?;
        let port = self.port_of_host.get(&host);
        let at_port = port.map(|port| self.disk_at(port).unwrap_or(port));
        at_port.or(self.disk_of_host.get(&host).map(String::as_str)).map(str::to_string)
    }

    /// The port of a disk with UAS or of an old kernel, which no message of its own names.
    pub fn port(&self, message: &str) -> Option<(TroubleKind, String)> {
        if let Some(address) = message.strip_prefix("usb-storage: device found at ") {
            let port = self.port_of_address.get(address.trim())?;
            return Some((TroubleKind::UsbDisk, port.clone()));
        }
        let (host, None) = host_of_usb(message)? else {
            return None;
        };
        self.port_of_host.get(&host).map(|port| (TroubleKind::UsbDisk, port.clone()))
    }
}

/// The number of a SCSI host on USB, and its port where the message has it.
fn host_of_usb(message: &str) -> Option<(u32, Option<&str>)> {
    // `scsi3 : usb-storage 2-1:1.0` before Linux 3.16.
    let host = message.strip_prefix("scsi host").or_else(|| message.strip_prefix("scsi"))?;
    let (host, driver) = host.split_once(" : ").or_else(|| host.split_once(": "))?;
    let host = host.parse().ok()?;
    match driver.trim_end() {
        "uas" => Some((host, None)),
        driver => {
            let port = driver.strip_prefix("usb-storage ")?.split(':').next()?;
            Some((host, Some(port)))
        }
    }
}

/// `scsi 0:0:0:0: Direct-Access     ATA      WDC WD10EZEX    1A01 PQ: 0 ANSI: 5`.
fn host_with_inquiry(message: &str) -> Option<u32> {
    let (address, rest) = message.strip_prefix("scsi ")?.split_once(": ")?;
    let host = address.split(':').next()?.parse().ok()?;
    rest.starts_with("Direct-Access").then_some(host)
}

/// `sd 0:0:0:0: [sda] …`.
fn disk_of_host(message: &str) -> Option<(u32, &str)> {
    let (address, rest) = message.strip_prefix("sd ")?.split_once(": [")?;
    let host = address.split(':').next()?.parse().ok()?;
    Some((host, rest.split(']').next()?))
}
