//! By what a person recognises a device: model, serial number, name under `/dev/disk/by-id`, how it
//! is connected.
//!
//! A serial number counts only when it is worth the name and no other disk of the machine says the
//! same: cheap bridges all say "0123456789ABCDEF".

use std::path::{Path, PathBuf};

use rubus_vocabulary::machine::BlockKind;

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
        export: export(sys, &disk),
        connected: connected(sys, &disk),
    }
}

/// What a network disk is attached to. Rubus tells the driver the address behind its own name; other programs may tell
/// it anything.
fn export(sys: &Sys<'_>, disk: &Node) -> Option<String> {
    if disk.kind() != BlockKind::Nbd {
        return None;
    }
    let told = sys.files.text(&disk.directory.join("backend")).ok()?;
    let told = told.trim();
    let address = told.strip_prefix("rubus ").unwrap_or(told);
    (!address.is_empty()).then(|| address.to_string())
}

/// Vendor and model, or the name that a card gives itself; of a network disk, what it is attached to: another export
/// behind the same node is another disk.
fn model(sys: &Sys<'_>, disk: &Node) -> Option<String> {
    if let Some(export) = export(sys, disk) {
        return Some(export);
    }
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
    let page = sys.files.read_prefix(&disk.directory.join("device/vpd_pg80"), 256).ok()?;
    let header = page.get(..4)?;
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let text = page.get(4..4 + length.min(page.len() - 4))?;
    let text = String::from_utf8_lossy(text);
    // What is no text is sorted out with the other numbers that are none.
    Some(text.trim_matches(['\0', ' ', '\n']).to_string())
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
    let digits = serial.trim_start_matches("0x").to_ascii_uppercase();
    let meaning = digits.replace('0', "");
    let repeats_one_letter = meaning.chars().all(|c| meaning.starts_with(c));
    let counts_up = digits.as_bytes().windows(2).all(|pair| follows(pair[0], pair[1]));
    let is_text = serial.chars().all(|c| c.is_ascii_graphic() || c == ' ');
    serial.len() >= SHORTEST && is_text && !repeats_one_letter && !counts_up
}

/// Whether one digit comes after another in counting, in tens or in sixteens.
fn follows(first: u8, second: u8) -> bool {
    match first {
        b'9' => second == b'0' || second == b'A',
        b'F' => second == b'0',
        _ => second == first.wrapping_add(1),
    }
}

/// Another disk that says the same serial number.
fn twin(sys: &Sys<'_>, disk: &Node, own: &str) -> Option<String> {
    let names = sys.files.list(Path::new("/sys/block")).unwrap_or_default();
    names.into_iter().filter(|name| *name != disk.name).find(|name| {
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
    const NUMBERS: [&str; 5] = ["wwn-", "nvme-eui.", "nvme-nvme.", "dm-uuid-", "lvm-pv-uuid-"];
    let own = sys.files.real_path(Path::new(&node_path(&node.name))).ok()?;
    let mut names = sys.files.list(Path::new(BY_ID)).ok()?;
    names.sort_by_key(|name| NUMBERS.iter().any(|prefix| name.starts_with(prefix)));
    names.retain(|name| !is_of_any_array(name));
    names.into_iter().find(|name| {
        let leads_to = sys.files.real_path(&Path::new(BY_ID).join(name));
        leads_to.is_ok_and(|path| path == own)
    })
}

/// Whether it is udev's name of an array that has no identity (`mdadm --build` writes none): all such arrays have it.
fn is_of_any_array(name: &str) -> bool {
    let uuid = name.strip_prefix("md-uuid-");
    uuid.is_some_and(|uuid| uuid.chars().all(|c| matches!(c, '0' | ':')))
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
        _ if has("/mmc") => match sys.files.text(&disk.directory.join("device/type")).as_deref() {
            Ok("SD" | "SDcombo") => "SD card".into(),
            Ok("MMC") => "eMMC".into(),
            _ => "SD or eMMC".into(),
        },
        _ if has("/nvme") => "NVMe".into(),
        _ if has("/ata") => "SATA".into(),
        _ if has("/virtio") => "virtio, a virtual machine's disk".into(),
        _ => "unknown bus".into(),
    }
}

#[cfg(test)]
mod tests {
    use rubus_host::simulated::fake::FakeFiles;

    use super::*;

    const USB: &str = "/sys/devices/platform/usb2/2-1";
    const SDA: &str = "/sys/devices/platform/usb2/2-1/2-1:1.0/host0/target0:0:0/0:0:0:0/block/sda";

    fn with_links(files: FakeFiles, name: &str, directory: &str) -> FakeFiles {
        files
            .dir(directory)
            .link(format!("/sys/class/block/{name}"), directory)
            .file(format!("/dev/{name}"), "")
    }

    fn listed(files: FakeFiles, name: &str, directory: &str) -> FakeFiles {
        with_links(files, name, directory).link(format!("/sys/block/{name}"), directory)
    }

    fn identity(files: &FakeFiles, name: &str) -> Identity {
        let sys = Sys::new(files);
        read(&sys, &sys.by_name(name).unwrap())
    }

    fn stick() -> FakeFiles {
        let files = FakeFiles::new()
            .files(USB, [("idVendor", "0781\n"), ("serial", "4C530001230\n")])
            .file("/sys/devices/platform/usb2/idVendor", "1d6b\n")
            .file("/sys/devices/platform/usb2/serial", "xhci-hcd.0.auto\n")
            .link(format!("{SDA}/device"), "../../../0:0:0:0")
            .file(format!("{SDA}/../../vendor"), "SanDisk \n")
            .file(format!("{SDA}/../../model"), "Ultra           \n")
            .link("/dev/disk/by-id/usb-SanDisk_Ultra-0:0", "../../sda")
            .link("/dev/disk/by-id/usb-SanDisk_Ultra-0:0-part1", "../../sda1")
            .link("/dev/disk/by-id/wwn-0x5001", "../../sda");
        let files = listed(files, "sda", SDA);
        with_links(files, "sda1", &format!("{SDA}/sda1"))
            .file(format!("{SDA}/sda1/partition"), "1\n")
    }

    #[test]
    fn a_stick_is_known_by_its_usb_device() {
        let found = identity(&stick(), "sda");
        assert_eq!(found.model.as_deref(), Some("SanDisk Ultra"));
        assert_eq!(found.serial.as_deref(), Some("4C530001230"));
        assert_eq!(found.serial_shared_with, None);
        assert_eq!(found.by_id.as_deref(), Some("usb-SanDisk_Ultra-0:0"));
        assert_eq!(found.partition, None);
        assert_eq!(found.connected, "USB");
    }

    #[test]
    fn arrays_without_an_identity_have_no_name_of_their_own() {
        let array = |uuid: &str| {
            let at = "/sys/devices/virtual/block/md10";
            let files =
                FakeFiles::new().link(format!("/dev/disk/by-id/md-uuid-{uuid}"), "../../md10");
            identity(&listed(files, "md10", at), "md10").by_id
        };
        let own = "3aaa0122:29827cfa:5331ad66:ca767371";
        assert_eq!(array(own), Some(format!("md-uuid-{own}")));
        assert_eq!(array("00000000:00000000:00000000:00000000"), None);
    }

    #[test]
    fn a_partition_is_known_by_its_disk_and_its_number() {
        let found = identity(&stick(), "sda1");
        assert_eq!(found.serial.as_deref(), Some("4C530001230"));
        assert_eq!(found.partition, Some(1));
        assert_eq!(found.by_id.as_deref(), Some("usb-SanDisk_Ultra-0:0-part1"));
    }

    #[test]
    fn a_network_disk_is_known_by_its_export() {
        const NBD0: &str = "/sys/devices/virtual/block/nbd0";
        let files = listed(FakeFiles::new(), "nbd0", NBD0);
        let attached = files.file(format!("{NBD0}/backend"), "rubus nbd://192.168.1.2/root\n");
        let found = identity(&attached, "nbd0");
        assert_eq!(found.export.as_deref(), Some("nbd://192.168.1.2/root"));
        assert_eq!(found.model, found.export, "another export is another disk");
        let free = listed(FakeFiles::new(), "nbd0", NBD0).file(format!("{NBD0}/backend"), "\n");
        assert_eq!(identity(&free, "nbd0").export, None);
        assert_eq!(identity(&free, "nbd0").model, None);
    }

    #[test]
    fn the_disk_behind_a_bridge_has_its_own_number() {
        let page = b"\0\x80\0\x0c WD-12A45\0\0\0".to_vec();
        let files = stick().file(format!("{SDA}/../../vpd_pg80"), page);
        assert_eq!(identity(&files, "sda").serial.as_deref(), Some("WD-12A45"));
        for broken in [&b"\0"[..], b"\0\x80\xff\xff\x01\x02\x03\x04\x05", b""] {
            let files = stick().file(format!("{SDA}/../../vpd_pg80"), broken);
            assert_eq!(identity(&files, "sda").serial.as_deref(), Some("4C530001230"));
        }
    }

    #[test]
    fn a_number_that_two_disks_say_is_told() {
        let other = "/sys/devices/pci/virtio1/block/vdb";
        let files = listed(stick(), "vdb", other).file(format!("{other}/serial"), "4C530001230\n");
        assert_eq!(identity(&files, "sda").serial_shared_with.as_deref(), Some("vdb"));
        assert_eq!(identity(&files, "vdb").serial_shared_with.as_deref(), Some("sda"));
    }

    #[test]
    fn numbers_that_are_none_do_not_count() {
        for serial in [
            "",
            "1",
            "000000000000",
            "0123456789ABCDEF",
            "123456789012",
            "FFFFFFFF",
            "1234",
            "a\x07bcde",
        ] {
            assert!(!is_worth_the_name(serial), "{serial}");
        }
        for serial in ["0x1b2c3d4e", "4C53", "WD-WX12", "DD56419883891", "S3Z9 NB0K"] {
            assert!(is_worth_the_name(serial), "{serial}");
        }
    }

    #[test]
    fn cards_and_virtual_disks_say_how_they_are_connected() {
        let card = "/sys/devices/platform/soc/mmc/mmc_host/mmc0/mmc0:aaaa/block/mmcblk0";
        let files = listed(FakeFiles::new(), "mmcblk0", card)
            .link(format!("{card}/device"), "../../../mmc0:aaaa")
            .files(
                format!("{card}/../.."),
                [("type", "SD\n"), ("name", "SC64G\n"), ("serial", "0x1b2c3d4e\n")],
            );
        let found = identity(&files, "mmcblk0");
        assert_eq!(found.connected, "SD card");
        assert_eq!(found.model.as_deref(), Some("SC64G"));
        assert_eq!(found.serial.as_deref(), Some("0x1b2c3d4e"));

        let device = "/sys/devices/virtual/block/loop3";
        let files = listed(FakeFiles::new(), "loop3", device)
            .file(format!("{device}/loop/backing_file"), "/srv/disk.img\n");
        let found = identity(&files, "loop3");
        assert_eq!(found.connected, "loop device over /srv/disk.img");
        assert_eq!((found.serial, found.by_id, found.model), (None, None, None));
    }
}
