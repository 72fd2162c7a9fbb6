//! The drives of a board as the emulator sees them: which file is behind each, how it is attached,
//! and what can be turned while the board runs.
//!
//! From the guest down, a USB disk is these layers, and their names are what [`crate::session`]
//! turns at run time: `usbN` (the disk's own limit, throttle group `limits-usbN`), `usbN-bus` (the
//! limit that all disks of a bus share, `limits-busN`), `usbN-format`, `usbN-file`. The SD card has
//! `limits-sd` alone. With a log of writes, `usbN-logged` is between `usbN-bus` and `usbN-format`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::board::{Board, Throttle};
use crate::usb_disk::UsbDisk;

/// The PCI device before a PC's card.
pub const CARD_READER: &str = "sdhci";

/// The serial number of a card that is in a USB reader.
pub const READER_SERIAL: &str = "20120926571200000";

/// The reader's place on its controller, behind those of all USB disks.
const READER_PORT: &str = "4";

/// A file behind a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drive {
    /// The file that the emulator writes to.
    pub path: PathBuf,
    /// What the file is.
    pub format: Format,
}

/// What the file behind a drive is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The disk's bytes, and nothing else.
    Raw,
    /// A qcow2 file with what differs from another file.
    Overlay,
}

/// A USB disk.
#[derive(Clone, Debug)]
pub struct UsbDrive {
    /// What is behind it.
    pub drive: Drive,
    /// Its serial number.
    pub serial: String,
    /// The controller that it is plugged into, from 0 on.
    pub bus: usize,
    /// Whether its bridge can do UAS.
    pub has_uas: bool,
    /// Its own limits.
    pub limits: Option<Throttle>,
}

/// All drives of a board.
#[derive(Clone, Debug)]
pub struct Drives {
    /// The SD card; without one, the slot is empty.
    pub sd: Option<Drive>,
    /// Limits of the SD card.
    pub limits_sd: Option<Throttle>,
    /// USB disks, in the order of their ports.
    pub usb: Vec<UsbDrive>,
    /// Whether the card is in a USB reader, and not in the board's slot. Only a PC can have that.
    pub card_in_reader: bool,
    /// The directory with the logs of all that is written to the disks; see [`Drives::logs`].
    pub log_directory: Option<PathBuf>,
}

impl Drives {
    /// Those of a card and of USB disks in files that hold their bytes.
    #[must_use]
    pub fn of_files(card: &Path, usb: &[(&Path, UsbDisk)]) -> Self {
        let raw = |path: &Path| Drive { path: path.to_path_buf(), format: Format::Raw };
        let usb = usb.iter().map(|(path, disk)| UsbDrive {
            drive: raw(path),
            serial: disk.serial.clone(),
            bus: disk.bus,
            has_uas: disk.has_uas,
            limits: disk.limits,
        });
        Self {
            sd: Some(raw(card)),
            limits_sd: None,
            usb: usb.collect(),
            card_in_reader: false,
            log_directory: None,
        }
    }

    /// The files with what is written to the card in a reader, and to each USB disk, in the format of `dm-log-writes`. None
    /// without a directory for them.
    #[must_use]
    pub fn logs(&self) -> Vec<PathBuf> {
        let Some(directory) = &self.log_directory else {
            return Vec::new();
        };
        let names = (0..self.usb.len()).map(|number| format!("usb{number}.log"));
        let names = std::iter::once("sd.log".to_owned()).chain(names);
        names.map(|name| directory.join(name)).collect()
    }

    /// Emulator arguments for all drives.
    #[must_use]
    pub fn arguments(&self, board: Board) -> Vec<String> {
        let mut arguments = Vec::new();
        if !self.card_in_reader {
            self.card(board, &mut arguments);
        }
        for bus in 0..board.usb_buses() {
            group(&format!("bus{bus}"), None, &mut arguments);
            if board == Board::Pc {
                push(&mut arguments, "-device", format!("qemu-xhci,id=xhci{bus}"));
            }
        }
        let one_plug = board.shares_plug(self.usb.len());
        if one_plug {
            push(&mut arguments, "-device", "usb-bot,id=plug,port=1".into());
        }
        for (number, usb) in self.usb.iter().enumerate() {
            group(&format!("usb{number}"), usb.limits, &mut arguments);
            for node in usb_nodes(number, usb, self.log(number + 1).as_deref()) {
                push(&mut arguments, "-blockdev", node.to_string());
            }
            if usb.has_uas {
                let port = number + 1;
                let (bus, serial) = (usb.bus, &usb.serial);
                let bridge = format!(
                    "usb-uas,id=bridge{number},bus=xhci{bus}.0,port={port},serial={serial}"
                );
                push(&mut arguments, "-device", bridge);
            }
            let device = usb_device(board, number, usb, one_plug);
            push(&mut arguments, "-device", device.to_string());
        }
        if self.card_in_reader {
            self.reader(board, &mut arguments);
        }
        arguments
    }

    fn log(&self, number: usize) -> Option<PathBuf> {
        self.logs().into_iter().nth(number)
    }

    /// The card in a reader, on the last controller.
    fn reader(&self, board: Board, arguments: &mut Vec<String>) {
        let Some(drive) = &self.sd else {
            return;
        };
        group("sd", self.limits_sd, arguments);
        let mut nodes = vec![
            file_node("sd-file", &drive.path),
            json!({"driver": drive.format.driver(), "node-name": "sd-format", "file": "sd-file",
                "discard": "unmap"}),
        ];
        let mut below = "sd-format".to_owned();
        if let Some(log) = self.log(0) {
            nodes.push(log_node("sd", &below, &log));
            below = "sd-logged".to_owned();
        }
        nodes.push(json!({"driver": "throttle", "node-name": "sd", "throttle-group": "limits-sd",
            "file": below, "discard": "unmap"}));
        for node in nodes {
            push(arguments, "-blockdev", node.to_string());
        }
        let device = json!({"driver": "usb-storage", "id": "reader", "drive": "sd",
            "serial": READER_SERIAL, "bus": format!("xhci{}.0", board.usb_buses() - 1),
            "port": READER_PORT});
        push(arguments, "-device", device.to_string());
    }

    fn card(&self, board: Board, arguments: &mut Vec<String>) {
        let Some(drive) = &self.sd else {
            return;
        };
        group("sd", self.limits_sd, arguments);
        let start = match board {
            Board::Pi3 => "if=sd,id=sd",
            Board::Pc => "if=none,id=sd",
        };
        let path = drive.path.display().to_string().replace(',', ",,");
        let format = drive.format.driver();
        let text = format!(
            "{start},driver=throttle,throttle-group=limits-sd,cache.direct=off,discard=unmap,\
             file.driver={format},file.discard=unmap,\
             file.file.driver=file,file.file.discard=unmap,file.file.cache.no-flush=on,\
             file.file.filename={path}"
        );
        push(arguments, "-drive", text);
        if board == Board::Pc {
            push(arguments, "-device", format!("sdhci-pci,id={CARD_READER}"));
            push(arguments, "-device", "sd-card,drive=sd".into());
        }
    }
}

impl Format {
    fn driver(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Overlay => "qcow2",
        }
    }
}

/// The layers of a USB disk, lowest first.
fn usb_nodes(number: usize, usb: &UsbDrive, log: Option<&Path>) -> Vec<Value> {
    let name = format!("usb{number}");
    let mut below = format!("{name}-format");
    let mut nodes = vec![
        file_node(&format!("{name}-file"), &usb.drive.path),
        format_node(number, usb, &format!("{name}-file")),
    ];
    if let Some(log) = log {
        nodes.push(log_node(&name, &below, log));
        below = format!("{name}-logged");
    }
    nodes.extend([
        json!({"driver": "throttle", "node-name": format!("{name}-bus"),
            "throttle-group": format!("limits-bus{}", usb.bus), "file": below,
            "discard": "unmap"}),
        json!({"driver": "throttle", "node-name": name,
            "throttle-group": format!("limits-{name}"), "file": format!("{name}-bus"),
            "discard": "unmap"}),
    ]);
    nodes
}

/// The layer that logs what is written, flushed and discarded. Nothing waits for this machine's own disk.
fn log_node(name: &str, below: &str, log: &Path) -> Value {
    json!({"driver": "blklogwrites", "node-name": format!("{name}-logged"), "file": below,
        "discard": "unmap",
        "log": {"driver": "file", "filename": log, "cache": {"no-flush": true}}})
}

/// A file of this machine. What a board flushes is not flushed to this machine's own disk: a power cut of the board is the
/// end of a process, and what that has written is there for the next one.
fn file_node(name: &str, path: &Path) -> Value {
    json!({"driver": "file", "node-name": name, "filename": path, "discard": "unmap",
        "cache": {"no-flush": true}})
}

/// The layer above a file node, which can be set upon another one while the board runs.
#[must_use]
pub fn format_node(number: usize, usb: &UsbDrive, file: &str) -> Value {
    json!({"driver": usb.drive.format.driver(), "node-name": format!("usb{number}-format"),
        "file": file, "discard": "unmap"})
}

/// The device of a USB disk; `id` is `diskN`.
#[must_use]
pub fn usb_device(board: Board, number: usize, usb: &UsbDrive, one_plug: bool) -> Value {
    let mut device = json!({"id": format!("disk{number}"), "drive": format!("usb{number}"),
        "serial": usb.serial, "rerror": "report", "werror": "report"});
    if one_plug || usb.has_uas {
        device["driver"] = json!("scsi-hd");
        device["bus"] =
            if usb.has_uas { json!(format!("bridge{number}.0")) } else { json!("plug.0") };
        device["lun"] = json!(if usb.has_uas { 0 } else { number });
        device["removable"] = json!(false);
    } else {
        device["driver"] = json!("usb-storage");
        // Unnamed, the emulator would put a full-speed hub before a Pi's disk.
        device["port"] = json!((number + 1).to_string());
        if board == Board::Pc {
            device["bus"] = json!(format!("xhci{}.0", usb.bus));
        }
    }
    device
}

/// The limits of a throttle group, as the emulator's objects have them.
#[must_use]
pub fn limits(throttle: Option<Throttle>) -> Value {
    let throttle = throttle.unwrap_or(Throttle { bytes_per_second: 0, operations_per_second: 0 });
    json!({"bps-total": throttle.bytes_per_second, "iops-total": throttle.operations_per_second})
}

fn group(name: &str, throttle: Option<Throttle>, arguments: &mut Vec<String>) {
    let object = json!({"qom-type": "throttle-group", "id": format!("limits-{name}"),
        "limits": limits(throttle)});
    push(arguments, "-object", object.to_string());
}

fn push(arguments: &mut Vec<String>, name: &str, value: String) {
    arguments.push(name.to_owned());
    arguments.push(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(path: &str) -> Drive {
        Drive { path: path.into(), format: Format::Raw }
    }

    fn drives(disks: usize) -> Drives {
        let usb = (0..disks).map(|number| UsbDrive {
            drive: raw(&format!("/u{number}")),
            serial: format!("S{number}"),
            bus: 0,
            has_uas: false,
            limits: None,
        });
        Drives {
            sd: Some(raw("/a,b")),
            limits_sd: Some(Throttle { bytes_per_second: 5, operations_per_second: 0 }),
            usb: usb.collect(),
            card_in_reader: false,
            log_directory: None,
        }
    }

    #[test]
    fn no_board_waits_for_this_machines_own_disk() {
        let mut in_reader = drives(2);
        in_reader.card_in_reader = true;
        for drives in [drives(2), in_reader] {
            let arguments = drives.arguments(Board::Pc);
            let files = arguments.iter().filter(|argument| {
                argument.contains("\"driver\":\"file\"") || argument.contains("driver=file")
            });
            let flushed = |argument: &&String| {
                !argument.contains("\"no-flush\":true") && !argument.contains("no-flush=on")
            };
            assert_eq!(files.clone().count(), 3, "{arguments:#?}");
            assert_eq!(files.clone().find(flushed), None);
        }
    }

    #[test]
    fn writes_to_each_disk_are_logged_below_its_limits() {
        let mut logged = drives(2);
        (logged.card_in_reader, logged.log_directory) = (true, Some("/logs".into()));
        let arguments = logged.arguments(Board::Pc);
        let nodes: Vec<Value> =
            arguments.iter().filter_map(|argument| serde_json::from_str(argument).ok()).collect();
        let node = |name: &str| {
            let found = nodes.iter().find(|node: &&Value| node["node-name"] == name);
            found.unwrap_or_else(|| panic!("no {name}: {arguments:#?}"))
        };
        for (name, above, log) in [
            ("sd", "sd", "/logs/sd.log"),
            ("usb0", "usb0-bus", "/logs/usb0.log"),
            ("usb1", "usb1-bus", "/logs/usb1.log"),
        ] {
            let layer = node(&format!("{name}-logged"));
            assert_eq!(layer["driver"], "blklogwrites");
            assert_eq!(layer["file"], format!("{name}-format"));
            assert_eq!(layer["log"]["filename"], log);
            assert_eq!(node(above)["file"], format!("{name}-logged"));
        }
        let text = arguments.join(" ");
        assert!(!text.contains("sdhci"), "{text}");
        assert!(text.contains(READER_SERIAL), "{text}");
        assert!(!drives(2).arguments(Board::Pc).join(" ").contains("blklogwrites"));
    }

    #[test]
    fn only_the_card_is_throttled_and_commas_in_paths_are_kept() {
        for board in [Board::Pi3, Board::Pc] {
            let arguments = drives(1).arguments(board);
            let card = arguments.iter().find(|a| a.contains("/a,,b")).unwrap();
            assert!(card.contains("throttle-group=limits-sd"), "{card}");
            let has = |id: &str, bytes: u64| {
                let wanted = json!({"qom-type": "throttle-group", "id": id,
                    "limits": {"bps-total": bytes, "iops-total": 0}});
                assert!(arguments.contains(&wanted.to_string()), "{arguments:#?}");
            };
            has("limits-sd", 5);
            has("limits-usb0", 0);
            has("limits-bus0", 0);
        }
    }

    #[test]
    fn a_pi_with_two_disks_has_them_behind_one_plug_and_a_pc_on_two_ports() {
        let pi = drives(2).arguments(Board::Pi3).join(" ");
        assert_eq!(pi.matches("usb-bot,id=plug,port=1").count(), 1, "{pi}");
        assert_eq!(pi.matches("\"scsi-hd\"").count(), 2, "{pi}");
        let pc = drives(2).arguments(Board::Pc).join(" ");
        assert_eq!(pc.matches("\"usb-storage\"").count(), 2, "{pc}");
        assert!(pc.contains("\"port\":\"2\""), "{pc}");
        assert!(!pc.contains("usb-bot"), "{pc}");
    }

    #[test]
    fn an_empty_slot_has_no_card() {
        let mut without = drives(1);
        without.sd = None;
        let arguments = without.arguments(Board::Pc).join(" ");
        assert!(!arguments.contains("sd-card"), "{arguments}");
    }
}
