//! Who a block device is and what is on it: vendor, model, serial number, content, labels.
//!
//! The udev database knows most of it and is world-readable. Without udev the rest comes from sysfs, the links under
//! `/dev/disk`, the mount table and the swap areas; what is on an unused device then stays unknown, because looking
//! takes root.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::sd;
use rubus_host::Files;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::{BlockKind, Identity};

use crate::probe::mounts::MountTable;
use crate::probe::read::{filled_text, first_known, text};
use crate::probe::sysfs::{base_name, names};
use crate::probe::udev::{Udev, unescape};

/// What is asked about one disk.
pub(crate) struct Disk<'a> {
    /// Kernel name.
    pub(crate) name: &'a str,
    /// What it is.
    pub(crate) kind: BlockKind,
    /// What udev knows of it.
    pub(crate) udev: &'a Udev,
    /// Its resolved place in sysfs.
    pub(crate) real_path: &'a str,
}

impl Disk<'_> {
    fn directory(&self) -> String {
        format!("/sys/block/{}", self.name)
    }

    fn file(&self, leaf: &str) -> String {
        format!("{}/{leaf}", self.directory())
    }

    fn is_mmc(&self) -> bool {
        self.name.starts_with("mmcblk")
    }

    fn is_nvme(&self) -> bool {
        self.name.starts_with("nvme")
    }

    fn is_virtio(&self) -> bool {
        self.name.starts_with("vd")
    }
}

/// A device that only software makes has no maker.
fn none_has<T>(what: &str, disk: &Disk<'_>) -> Fact<T> {
    Fact::unknown(format!("a virtual device has no {what}"), disk.directory())
}

fn is_made_by_software(kind: BlockKind) -> bool {
    !matches!(kind, BlockKind::Disk | BlockKind::Rom | BlockKind::MmcArea | BlockKind::Partition)
}

/// Who made it.
pub(crate) fn vendor(files: &dyn Files, disk: &Disk<'_>) -> Fact<String> {
    if is_made_by_software(disk.kind) || disk.is_virtio() {
        return none_has("vendor", disk);
    }
    if disk.is_nvme() {
        return Fact::unknown("an NVMe drive says its maker in its model", disk.directory());
    }
    if disk.is_mmc() {
        let is_emmc = text(files, &disk.file("device/type")).text() == Some("MMC");
        return filled_text(files, &disk.file("device/manfid")).and_then(|id| {
            let number = u32::from_str_radix(id.trim_start_matches("0x"), 16).ok();
            number
                .and_then(|number| sd::manufacturer(number, is_emmc))
                .map(str::to_string)
                .ok_or_else(|| format!("no known maker has the manufacturer id {id}"))
        });
    }
    if says_it_as_ata(disk) {
        return Fact::unknown("an ATA drive says its maker in its model", disk.directory());
    }
    filled_text(files, &disk.file("device/vendor"))
}

/// Whether udev could ask the drive itself for its ATA identity, which is more than the SCSI face
/// that a bridge puts on it: that one cuts the model into "vendor" and "model" after 8 letters.
fn says_it_as_ata(disk: &Disk<'_>) -> bool {
    disk.udev.get("ID_BUS") == Some("ata") && disk.udev.get("ID_MODEL").is_some()
}

/// What its maker calls it; of devices made by software, what they are.
pub(crate) fn model(files: &dyn Files, disk: &Disk<'_>) -> Fact<String> {
    match disk.kind {
        BlockKind::Md => md_model(files, disk),
        BlockKind::Dm => dm_model(files, disk),
        BlockKind::Nbd => filled_text(files, &disk.file("backend")),
        kind if is_made_by_software(kind) => none_has("model", disk),
        _ if disk.is_mmc() => filled_text(files, &disk.file("device/name")),
        _ if disk.is_virtio() => none_has("model", disk),
        // udev replaces spaces in names by underscores.
        _ if says_it_as_ata(disk) => {
            disk.udev.fact("ID_MODEL").map(|model| model.replace('_', " "))
        }
        _ => filled_text(files, &disk.file("device/model")),
    }
}

/// "raid1, 2 members, clean".
fn md_model(files: &dyn Files, disk: &Disk<'_>) -> Fact<String> {
    let members = text(files, &disk.file("md/raid_disks"));
    let state = text(files, &disk.file("md/array_state"));
    filled_text(files, &disk.file("md/level")).map(|level| {
        let mut words = vec![level];
        words.extend(members.text().map(|count| format!("{count} members")));
        words.extend(state.text().map(str::to_string));
        words.join(", ")
    })
}

/// "LUKS2 cryptroot", "LVM vg-root", by the prefix that the maker of the mapping gave its UUID.
fn dm_model(files: &dyn Files, disk: &Disk<'_>) -> Fact<String> {
    let uuid = text(files, &disk.file("dm/uuid"));
    let uuid = uuid.text().unwrap_or("");
    let what = match uuid.split('-').collect::<Vec<_>>()[..] {
        ["CRYPT", format, ..] => format,
        ["LVM", ..] => "LVM",
        ["mpath", ..] => "multipath",
        _ => "device mapper",
    }
    .to_string();
    filled_text(files, &disk.file("dm/name")).map(|name| format!("{what} {name}"))
}

/// Its serial number: the drive's own where it is available, else that of its USB bridge.
pub(crate) fn serial(files: &dyn Files, disk: &Disk<'_>) -> Fact<String> {
    if is_made_by_software(disk.kind) {
        return none_has("serial number", disk);
    }
    if disk.is_mmc() || disk.is_nvme() {
        return filled_text(files, &disk.file("device/serial"));
    }
    if disk.is_virtio() {
        return filled_text(files, &disk.file("serial"));
    }
    first_known(&[
        &|| disk.udev.fact("ID_SERIAL_SHORT"),
        &|| page_serial(files, &disk.file("device/vpd_pg80")),
        &|| usb_serial(files, disk),
    ])
}

/// The unit serial number page: four bytes of head, the length in the last of them, then text
/// (SCSI Primary Commands, "Unit Serial Number VPD page").
fn page_serial(files: &dyn Files, path: &str) -> Fact<String> {
    match files.read_prefix(Path::new(path), 256) {
        Ok(bytes) => {
            let length = bytes.get(3).map_or(0, |length| usize::from(*length));
            let serial = bytes.get(4..).unwrap_or_default();
            let serial = &serial[..length.min(serial.len())];
            let serial = String::from_utf8_lossy(serial);
            match serial.trim_matches(['\0', ' ', '\n']) {
                "" => Fact::unknown("the page has no serial number", path),
                serial => Fact::known(serial.to_string(), path),
            }
        }
        Err(error) => Fact::unknown(error.to_string(), path),
    }
}

fn usb_serial(files: &dyn Files, disk: &Disk<'_>) -> Fact<String> {
    let mut directory = disk.real_path;
    while let Some((parent, name)) = directory.rsplit_once('/') {
        if crate::probe::usb::is_device(name) {
            return filled_text(files, &format!("{directory}/serial"));
        }
        directory = parent;
    }
    Fact::unknown("it is not on USB", disk.real_path)
}

/// What is on a disk or partition: a filesystem, swap, a part of an array, a partition table.
pub(crate) fn content(
    udev: &Udev,
    name: &str,
    is_partition: bool,
    has_partitions: bool,
    mounts: &MountTable,
    swaps: &HashSet<String>,
) -> Fact<String> {
    let filesystem = udev.fact("ID_FS_TYPE");
    if filesystem.value().is_some() {
        return filesystem;
    }
    // Partitions inherit the property from their disk.
    if let (Some(table), false) = (udev.get("ID_PART_TABLE_TYPE"), is_partition) {
        return udev.fact("ID_PART_TABLE_TYPE").map(|_| format!("partition table ({table})"));
    }
    if has_partitions {
        let source = format!("/sys/block/{name}");
        return Fact::known("partition table".to_string(), source);
    }
    if let Some(filesystem) = mounts.filesystem_on(name) {
        return Fact::known(filesystem.to_string(), "/proc/self/mountinfo");
    }
    if swaps.contains(name) {
        return Fact::known("swap".to_string(), "/proc/swaps");
    }
    let node = format!("/dev/{name}");
    if udev.is_there() {
        Fact::unknown("udev recognised nothing on it", node)
    } else {
        Fact::unknown("there is no udev database; root can read the device", node)
    }
}

/// The links under `/dev/disk`, read once for all devices; only where udev's database does not
/// answer.
#[derive(Debug, Default)]
pub(crate) struct DiskLinks {
    /// The link's name by the kernel name of the device, for each kind of link.
    labels: HashMap<String, String>,
    uuids: HashMap<String, String>,
    partuuids: HashMap<String, String>,
}

impl DiskLinks {
    pub(crate) fn read(files: &dyn Files) -> DiskLinks {
        let read = |kind: &str| -> HashMap<String, String> {
            let directory = format!("/dev/disk/by-{kind}");
            // Of several links the first counts.
            names(files, &directory)
                .into_iter()
                .rev()
                .filter_map(|link| {
                    let real = files.real_path(Path::new(&format!("{directory}/{link}"))).ok()?;
                    let device = base_name(&real.to_string_lossy()).to_string();
                    Some((device, unescape(&link)))
                })
                .collect()
        };
        DiskLinks { labels: read("label"), uuids: read("uuid"), partuuids: read("partuuid") }
    }
}

/// The names under which a device is found again.
pub(crate) fn identity(udev: &Udev, name: &str, links: &DiskLinks) -> Identity {
    let linked = |links: &HashMap<String, String>| links.get(name).cloned();
    let label = udev
        .get("ID_FS_LABEL_ENC")
        .map(unescape)
        .or_else(|| udev.get("ID_FS_LABEL").map(str::to_string));
    let known = |property: &str| udev.get(property).map(str::to_string);
    Identity {
        label: label.or_else(|| linked(&links.labels)),
        uuid: known("ID_FS_UUID").or_else(|| linked(&links.uuids)),
        partuuid: known("ID_PART_ENTRY_UUID").or_else(|| linked(&links.partuuids)),
        partlabel: udev.get("ID_PART_ENTRY_NAME").map(unescape),
        links: udev.links(),
    }
}
