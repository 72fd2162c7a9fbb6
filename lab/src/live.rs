//! What is done to a running board from outside: the speed of its disks and buses changes, a disk is
//! pulled out and put back, a disk starts to fail.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::board::Throttle;
use crate::drives::{self, UsbDrive};
use crate::session::Session;

/// How a disk fails. What fails is answered with an input/output error at once. Flushes never fail: the
/// emulator itself flushes a disk when it is broken or mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Every write and discard fails; reads succeed.
    Writes,
    /// Every read fails; writes succeed.
    Reads,
    /// Every read, write and discard fails.
    All,
    /// Reads and writes that touch the 512 bytes at this offset.
    Spot {
        /// Offset in bytes, a multiple of 512.
        offset_bytes: u64,
    },
}

impl Session {
    /// The board's name of a USB disk, for example `/dev/sda`. With more than one, names change from
    /// boot to boot, as in real life: the disk is told by its serial number, which udev knows a moment after the kernel has
    /// the disk.
    ///
    /// # Errors
    /// When the board does not have it, or not within some seconds.
    pub fn usb_device(&mut self, number: usize) -> Result<String> {
        let serial = self.usb(number)?.serial.clone();
        self.device_of(&serial)
    }

    /// The board's name of the disk with a serial number.
    ///
    /// # Errors
    /// As [`Session::usb_device`].
    pub fn device_of(&mut self, serial: &str) -> Result<String> {
        let script = format!(
            "for try in $(seq 120); do lsblk -dno SERIAL,PATH | grep -q '^{serial} ' && break; sleep 0.5; done; \
             lsblk -dno SERIAL,PATH"
        );
        let list = self.must(&script, "root", Duration::from_secs(400))?;
        let row = list.lines().find_map(|row| row.strip_prefix(serial));
        let path =
            row.with_context(|| format!("the board has no disk {serial}; it has\n{list}"))?;
        Ok(path.trim().to_owned())
    }

    /// Stops the board's clockwork between two instructions, with no write under way: a copy of its
    /// disks now is what a power cut at this moment would leave.
    ///
    /// # Errors
    /// When the emulator refuses.
    pub fn pause(&mut self) -> Result<()> {
        self.monitor.command("stop", json!({})).map(|_| ())
    }

    /// Lets a paused board go on.
    ///
    /// # Errors
    /// When the emulator refuses.
    pub fn go_on(&mut self) -> Result<()> {
        self.monitor.command("cont", json!({})).map(|_| ())
    }

    /// Pulls the plug of the network, or puts it back.
    ///
    /// # Errors
    /// When the board has no network.
    pub fn plug_network(&mut self, is_in: bool) -> Result<()> {
        let arguments = json!({"name": "net", "up": is_in});
        self.monitor.command("set_link", arguments).map(|_| ())
    }

    /// Limits the SD card from now on; `None` is no limit.
    ///
    /// # Errors
    /// When the emulator refuses.
    pub fn throttle_sd(&mut self, limits: Option<Throttle>) -> Result<()> {
        self.throttle("sd", limits)
    }

    /// Limits a USB disk from now on; `None` is no limit.
    ///
    /// # Errors
    /// When the emulator refuses.
    pub fn throttle_usb(&mut self, number: usize, limits: Option<Throttle>) -> Result<()> {
        self.throttle(&format!("usb{number}"), limits)
    }

    /// Limits all USB disks of a controller together, as its wire would; `None` is no limit.
    ///
    /// # Errors
    /// When the emulator refuses.
    pub fn throttle_bus(&mut self, bus: usize, limits: Option<Throttle>) -> Result<()> {
        self.throttle(&format!("bus{bus}"), limits)
    }

    fn throttle(&mut self, name: &str, limits: Option<Throttle>) -> Result<()> {
        let path = format!("/objects/limits-{name}");
        let arguments =
            json!({"path": path, "property": "limits", "value": drives::limits(limits)});
        self.monitor
            .command("qom-set", arguments)
            .with_context(|| format!("could not limit {name}"))?;
        Ok(())
    }

    /// Pulls a USB disk out while the board runs.
    ///
    /// # Errors
    /// When it is not plugged in.
    pub fn unplug_usb(&mut self, number: usize) -> Result<()> {
        let id = format!("disk{number}");
        self.monitor.command("device_del", json!({"id": id}))?;
        self.monitor.wait_for(|event| {
            event["event"] == "DEVICE_DELETED" && event["data"]["device"] == id.as_str()
        })
    }

    /// Puts a USB disk back that was pulled out.
    ///
    /// # Errors
    /// When it is plugged in.
    pub fn plug_usb(&mut self, number: usize) -> Result<()> {
        let one_plug = self.board().shares_plug(self.drives.usb.len());
        let device = drives::usb_device(self.board(), number, self.usb(number)?, one_plug);
        self.monitor.command("device_add", device)?;
        Ok(())
    }

    /// Makes a USB disk fail from now on, or mends it (`None`).
    ///
    /// # Errors
    /// When the emulator refuses.
    pub fn break_usb(&mut self, number: usize, fault: Option<Fault>) -> Result<()> {
        let name = format!("usb{number}");
        let sound = format!("{name}-file");
        let broken = format!("{name}-fault");
        self.stand_on(number, &sound)?;
        // Not there unless the disk was broken before.
        let _ = self.monitor.command("blockdev-del", json!({"node-name": broken}));
        if let Some(fault) = fault {
            let node = json!({"driver": "blkdebug", "node-name": broken, "image": sound,
                "discard": "unmap", "inject-error": rules(fault)});
            self.monitor.command("blockdev-add", node)?;
            self.stand_on(number, &broken)?;
        }
        Ok(())
    }

    fn stand_on(&mut self, number: usize, file: &str) -> Result<()> {
        let node = drives::format_node(number, self.usb(number)?, file);
        self.monitor.command("blockdev-reopen", json!({"options": [node]}))?;
        Ok(())
    }

    fn usb(&self, number: usize) -> Result<&UsbDrive> {
        match self.drives.usb.get(number) {
            Some(disk) => Ok(disk),
            None => bail!("the board has no USB disk {number}"),
        }
    }
}

/// A fault in the words of the emulator's block driver for errors.
fn rules(fault: Fault) -> Vec<Value> {
    const EIO: u32 = 5;
    let (kinds, offset): (&[&str], Option<u64>) = match fault {
        Fault::Writes => (&["write", "write-zeroes", "discard"], None),
        Fault::Reads => (&["read"], None),
        Fault::All => (&["read", "write", "write-zeroes", "discard"], None),
        Fault::Spot { offset_bytes } => (&["read", "write", "write-zeroes"], Some(offset_bytes)),
    };
    let rule = |kind: &&str| {
        let mut rule = json!({"event": "none", "iotype": kind, "errno": EIO});
        if let Some(offset) = offset {
            rule["sector"] = json!(offset / 512);
        }
        rule
    };
    kinds.iter().map(rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spot_is_named_by_its_sector_and_reads_stay_sound_when_writes_fail() {
        let spot = rules(Fault::Spot { offset_bytes: 1024 });
        assert!(spot.iter().all(|rule| rule["sector"] == 2), "{spot:?}");
        let writes = rules(Fault::Writes);
        assert!(writes.iter().all(|rule| rule["iotype"] != "read"));
        assert!(writes.iter().all(|rule| rule.get("sector").is_none()));
    }
}
