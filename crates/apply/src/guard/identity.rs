//! By what a person recognises a device: model, serial number, name under `/dev/disk/by-id`, how it
//! is connected.
//!
//! A serial number counts only when it is worth the name and no other disk of the machine says the
//! same: cheap bridges all say "0123456789ABCDEF".

use std::path::{Path, PathBuf};

use rubus_core::machine::BlockKind;

use super::facts::Identity;
use super::sysfs::{Node, Sys, node_path};

const BY_ID: &str = "/dev/disk/by-id";

pub(super) fn read(sys: &Sys<'_>, node: &Node) -> Identity {
    let disk = match node.parent_name().map(|name| sys.by_name(&name)) {
        Some(Ok(disk)) => disk,
        _ => node.clone(),
    };
    let serial = serial(sys, &disk);
    let partition = sys.files.text(&node.directory.join("partition")).ok();
    Identity {
        model: model(sys, &disk),
        serial_shared_with: serial.as_ref().and_then(|own| twin(sys, &disk, own)),
        serial,
        partition: partition.and_then(|text| text.trim().parse().ok()),
        by_id: by_id(sys, node),
        connected: connected(sys, &disk),
    }
}

/// Vendor and model, or the name that a card gives itself.
fn model(sys: &Sys<'_>, disk: &Node) -> Option<String> {
    let text = |file: &str| {
        let text = sys.files.text(&disk.directory.join(file)).ok()?;
        Some(text.trim().to_string()).filter(|text| !text.is_empty())
    };
    let model = text("device/model").or_else(|| text("device/name"))?;
    // "ATA" is no vendor but the kernel's word for a disk behind a SATA port.
    match text("device/vendor").filter(|vendor| vendor != "ATA" && !vendor.starts_with("0x")) {
        Some(vendor) if !model.starts_with(&vendor) => Some(format!("{vendor} {model}")),
        _ => Some(model),
    }
}

/// The serial number, from the first place that has one worth the name: the disk's own attribute
/// (virtio), its device's (NVMe, SD), SCSI's unit serial number page, the USB device above it.
fn serial(sys: &Sys<'_>, disk: &Node) -> Option<String> {
    let text = |path: PathBuf| sys.files.text(&path).ok();
    let own = [
        text(disk.directory.join("serial")),
        text(disk.directory.join("device/serial")),
        unit_serial_page(sys, disk),
        usb_device(sys, disk).and_then(|usb| text(usb.join("serial"))),
    ];
    own.into_iter()
        .flatten()
        .map(|text| text.trim().to_string())
        .find(|serial| is_worth_the_name(serial))
}

/// SCSI's vital product data page 0x80: four bytes of header, the last two the length.
fn unit_serial_page(sys: &Sys<'_>, disk: &Node) -> Option<String> {
    let page = sys
        .files
        .read_prefix(&disk.directory.join("device/vpd_pg80"), 256)
        .ok()?;
    let header = page.get(..4)?;
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let text = page.get(4..4 + length.min(page.len() - 4))?;
    let is_text = text.iter().all(|byte| (0x20..0x7F).contains(byte));
    is_text.then(|| String::from_utf8_lossy(text).into_owned())
}

/// The directory of the USB device that a disk belongs to.
fn usb_device(sys: &Sys<'_>, disk: &Node) -> Option<PathBuf> {
    let is_usb_device = |path: &&Path| sys.files.exists(&path.join("idVendor"));
    let real = sys.files.real_path(&disk.directory.join("device")).ok()?;
    // The root hub has an `idVendor` too, so the nearest one counts.
    real.ancestors().find(is_usb_device).map(Path::to_path_buf)
}

fn is_worth_the_name(serial: &str) -> bool {
    const SHORTEST: usize = 4;
    let meaning: String = serial
        .trim_start_matches("0x")
        .chars()
        .filter(|c| *c != '0')
        .collect();
    let first = meaning.chars().next();
    let repeats_one_letter = meaning.chars().all(|c| Some(c) == first);
    let counts_up = "123456789ABCDEF".starts_with(&meaning.to_uppercase());
    let is_text = serial.chars().all(|c| c.is_ascii_graphic() || c == ' ');
    serial.len() >= SHORTEST && is_text && !repeats_one_letter && !counts_up
}

/// Another disk that says the same serial number.
fn twin(sys: &Sys<'_>, disk: &Node, own: &str) -> Option<String> {
    let names = sys.files.list(Path::new("/sys/block")).unwrap_or_default();
    names
        .into_iter()
        .filter(|name| *name != disk.name)
        .find(|name| {
            let other = sys.by_name(name).ok();
            // A disk's own boot areas and mappings of it repeat its number.
            other
                .filter(|other| other.kind() == BlockKind::Disk)
                .and_then(|other| serial(sys, &other))
                .is_some_and(|serial| serial == own)
        })
}

/// The name under `/dev/disk/by-id` that leads to the device. Names made of the maker's model and
/// serial come before mere numbers.
fn by_id(sys: &Sys<'_>, node: &Node) -> Option<String> {
    const NUMBERS: [&str; 5] = [
        "wwn-",
        "nvme-eui.",
        "nvme-nvme.",
        "dm-uuid-",
        "lvm-pv-uuid-",
    ];
    let own = sys
        .files
        .real_path(Path::new(&node_path(&node.name)))
        .ok()?;
    let mut names = sys.files.list(Path::new(BY_ID)).ok()?;
    names.sort_by_key(|name| NUMBERS.iter().any(|prefix| name.starts_with(prefix)));
    names.into_iter().find(|name| {
        let leads_to = sys.files.real_path(&Path::new(BY_ID).join(name));
        leads_to.is_ok_and(|path| path == own)
    })
}

/// How the disk is connected, for people.
fn connected(sys: &Sys<'_>, disk: &Node) -> String {
    let path = disk.directory.to_string_lossy();
    let has = |part: &str| path.contains(part);
    match disk.kind() {
        BlockKind::Loop => match sys.loop_backing_path(&disk.name) {
            Some(file) => format!("loop device over {file}"),
            None => "loop device without a file".into(),
        },
        BlockKind::Md => "RAID array".into(),
        BlockKind::Dm => "device-mapper volume".into(),
        BlockKind::Nbd => "network block device".into(),
        BlockKind::Zram | BlockKind::Ram => "memory".into(),
        _ if has("/usb") => "USB".into(),
        _ if has("/mmc") => match sys
            .files
            .text(&disk.directory.join("device/type"))
            .as_deref()
        {
            Ok("SD") => "SD card".into(),
            Ok("MMC") => "eMMC".into(),
            _ => "SD or eMMC".into(),
        },
        _ if has("/nvme") => "NVMe".into(),
        _ if has("/ata") => "SATA".into(),
        _ if has("/virtio") => "virtio, a virtual machine's disk".into(),
        _ => "unknown bus".into(),
    }
}
