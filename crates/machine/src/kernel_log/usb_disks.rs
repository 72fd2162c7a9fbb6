//! Which USB ports carry disks, by what the log says when they are found.
//!
//! `usb-storage 1-1.4:1.0: USB Mass Storage device detected` and `scsi host0: usb-storage 1-1.4:1.0` name the port; UAS says
//! `scsi host0: uas` alone, right after the device of the port was found. `sd 0:0:0:0: [sda]` ties the disk to the host.

use std::collections::BTreeMap;

use rubus_vocabulary::kernel_log::TroubleKind;

use super::Told;

#[derive(Default)]
pub(super) struct UsbDisks {
    port_of_host: BTreeMap<u32, String>,
    disk_of_port: BTreeMap<String, String>,
}

impl UsbDisks {
    pub fn of(lines: &[Told<'_>]) -> Self {
        let mut disks = Self::default();
        let mut newest_port = None;
        for Told { line, trouble } in lines {
            if let Some((TroubleKind::UsbConnect | TroubleKind::UsbDisk, port)) = trouble {
                newest_port = Some(port.clone());
            }
            if let Some((host, named)) = host_of_usb(line.message) {
                if let Some(port) = named.map(str::to_string).or(newest_port.clone()) {
                    disks.port_of_host.insert(host, port);
                }
            } else if let Some((host, disk)) = disk_of_host(line.message)
                && let Some(port) = disks.port_of_host.get(&host)
            {
                disks.disk_of_port.entry(port.clone()).or_insert_with(|| disk.to_string());
            }
        }
        disks
    }

    /// The disk at a port.
    pub fn disk_at(&self, port: &str) -> Option<&str> {
        self.disk_of_port.get(port).map(String::as_str)
    }

    /// The port of a disk with UAS, which no message of its own names.
    pub fn port(&self, message: &str) -> Option<(TroubleKind, String)> {
        let (host, None) = host_of_usb(message)? else {
            return None;
        };
        self.port_of_host.get(&host).map(|port| (TroubleKind::UsbDisk, port.clone()))
    }
}

/// The number of a SCSI host on USB, and its port where the message has it.
fn host_of_usb(message: &str) -> Option<(u32, Option<&str>)> {
    let (host, driver) = message.strip_prefix("scsi host")?.split_once(": ")?;
    let host = host.parse().ok()?;
    match driver.trim_end() {
        "uas" => Some((host, None)),
        driver => {
            let port = driver.strip_prefix("usb-storage ")?.split(':').next()?;
            Some((host, Some(port)))
        }
    }
}

/// `sd 0:0:0:0: [sda] …`.
fn disk_of_host(message: &str) -> Option<(u32, &str)> {
    let (address, rest) = message.strip_prefix("sd ")?.split_once(": [")?;
    let host = address.split(':').next()?.parse().ok()?;
    Some((host, rest.split(']').next()?))
}
