//! Block devices: disks, partitions and what is stacked on them, with their queues and sizes.
//!
//! Who a device is and what is on it is in `identity.rs`; how it is connected in `buses.rs`; SD
//! cards and eMMCs in `mmc.rs`.

use std::collections::HashSet;
use std::path::Path;

use crate::parse::swaps;
use rubus_host::Files;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::{BlockDevice, BlockKind};

use crate::probe::buses::{hops_of, network_hop};
use crate::probe::identity::{self, Disk, DiskLinks};
use crate::probe::mmc;
use crate::probe::mounts::MountTable;
use crate::probe::read::{flag, number, text};
use crate::probe::sysfs::{base_name, names, sort_naturally};
use crate::probe::udev::Udev;

/// The kernel counts sizes in these, whatever the device's blocks are.
const SECTOR_BYTES: u64 = 512;

/// All block devices with their partitions, disks in natural order of their names, each followed
/// by its partitions. Devices of drivers that are loaded but not set up (free loop, nbd, zram and
/// md devices, unused RAM disks) are left out.
pub fn block_devices(files: &dyn Files) -> Vec<BlockDevice> {
    let found = find(files);
    let numbers: Vec<(String, String)> =
        found.iter().map(|entry| (entry.major_minor.clone(), entry.name.clone())).collect();
    let surroundings = Surroundings {
        files,
        mounts: MountTable::read(files, &numbers),
        swaps: swap_names(files),
        links: DiskLinks::read(files),
        partitioned: found.iter().filter_map(|entry| entry.disk.as_deref()).collect(),
    };
    // The partitions of a disk follow it.
    let mut disk_at = None;
    let mut devices: Vec<BlockDevice> = Vec::with_capacity(found.len());
    for entry in &found {
        let device = match &entry.disk {
            None => surroundings.disk(entry),
            Some(disk) => match disk_at.and_then(|at: usize| devices.get(at)) {
                Some(found) if found.name == *disk => surroundings.partition(entry, found),
                _ => continue,
            },
        };
        if surroundings.is_set_up(&device) {
            if entry.disk.is_none() {
                disk_at = Some(devices.len());
            }
            devices.push(device);
        }
    }
    devices
}

/// The last components of the paths of all active swap areas.
fn swap_names(files: &dyn Files) -> HashSet<String> {
    let (areas, _) = swaps::parse(&files.text(Path::new("/proc/swaps")).unwrap_or_default());
    areas.iter().map(|area| base_name(&area.path).to_string()).collect()
}

/// A block device as its name and place tell it.
struct Entry {
    name: String,
    major_minor: String,
    kind: BlockKind,
    /// For a partition, its disk.
    disk: Option<String>,
    /// Its directory under `/sys/block`.
    directory: String,
}

fn find(files: &dyn Files) -> Vec<Entry> {
    let mut disks = names(files, "/sys/block");
    sort_naturally(&mut disks);
    let mut found = Vec::new();
    for disk in disks {
        let directory = format!("/sys/block/{disk}");
        // The single paths to a drive that has several are hidden behind one that is not.
        if flag(files, &format!("{directory}/hidden")).get() == Some(true) {
            continue;
        }
        let mut partitions: Vec<String> = names(files, &directory)
            .into_iter()
            .filter(|name| name.starts_with(&disk))
            .filter(|name| files.exists(Path::new(&format!("{directory}/{name}/partition"))))
            .collect();
        sort_naturally(&mut partitions);
        let entry = |name: String, directory: String, kind, disk| Entry {
            major_minor: text(files, &format!("{directory}/dev"))
                .text()
                .unwrap_or_default()
                .to_string(),
            name,
            kind,
            disk,
            directory,
        };
        let parts: Vec<Entry> = partitions
            .into_iter()
            .map(|part| {
                let place = format!("{directory}/{part}");
                entry(part, place, BlockKind::Partition, Some(disk.clone()))
            })
            .collect();
        let kind = kind_of(&disk);
        found.push(entry(disk, directory, kind, None));
        found.extend(parts);
    }
    found
}

fn kind_of(name: &str) -> BlockKind {
    let is = |prefix: &str| {
        name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    match name {
        _ if is("loop") => BlockKind::Loop,
        _ if is("md") || name.starts_with("md_") => BlockKind::Md,
        _ if is("dm-") => BlockKind::Dm,
        _ if is("zram") => BlockKind::Zram,
        _ if is("nbd") => BlockKind::Nbd,
        _ if is("ram") => BlockKind::Ram,
        _ if is("sr") => BlockKind::Rom,
        _ if mmc_area_parent(name).is_some() => BlockKind::MmcArea,
        _ => BlockKind::Disk,
    }
}

/// "mmcblk0" for "mmcblk0boot1", "mmcblk0gp2" and "mmcblk0rpmb".
fn mmc_area_parent(name: &str) -> Option<&str> {
    let digits = name.strip_prefix("mmcblk")?;
    let end = digits.find(|c: char| !c.is_ascii_digit())?;
    let area = &digits[end..];
    let is_area = ["boot", "gp", "rpmb"].iter().any(|known| area.starts_with(known));
    (end > 0 && is_area).then(|| &name[..name.len() - area.len()])
}

/// What the devices are looked at in the light of.
struct Surroundings<'a> {
    files: &'a dyn Files,
    mounts: MountTable,
    swaps: HashSet<String>,
    links: DiskLinks,
    /// Disks that have partitions.
    partitioned: HashSet<&'a str>,
}

impl Surroundings<'_> {
    fn disk(&self, entry: &Entry) -> BlockDevice {
        let files = self.files;
        let file = |leaf: &str| format!("{}/{leaf}", entry.directory);
        let udev = Udev::read(files, &entry.major_minor);
        let real_path = files
            .real_path(Path::new(&entry.directory))
            .map_or_else(|_| entry.directory.clone(), |p| p.to_string_lossy().into());
        let disk = Disk { name: &entry.name, kind: entry.kind, udev: &udev, real_path: &real_path };
        let has_partitions = self.partitioned.contains(entry.name.as_str());
        let is_mmc = entry.name.starts_with("mmcblk");
        let backing_file = self.backing_file(entry);
        BlockDevice {
            parent: mmc_area_parent(&entry.name).map(str::to_string),
            holders: self.neighbours(&file("holders")),
            below: self.below(entry, backing_file.as_deref()),
            backing_file,
            size_bytes: self.size(entry),
            logical_block_bytes: number(files, &file("queue/logical_block_size")),
            physical_block_bytes: number(files, &file("queue/physical_block_size")),
            read_only: flag(files, &file("ro")),
            removable: flag(files, &file("removable")),
            rotational: flag(files, &file("queue/rotational")),
            scheduler: text(files, &file("queue/scheduler")).map(active_scheduler),
            write_cache: text(files, &file("queue/write_cache")),
            discard_max_bytes: number(files, &file("queue/discard_max_bytes")),
            queue_requests: number(files, &file("queue/nr_requests")),
            device_queue_depth: device_queue_depth(files, entry),
            vendor: identity::vendor(files, &disk),
            model: identity::model(files, &disk),
            serial: identity::serial(files, &disk),
            content: identity::content(
                &udev,
                &entry.name,
                false,
                has_partitions,
                &self.mounts,
                &self.swaps,
            ),
            identity: identity::identity(&udev, &entry.name, &self.links),
            path: match entry.kind {
                BlockKind::Disk | BlockKind::Rom => hops_of(files, Path::new(&entry.directory)),
                BlockKind::Nbd => vec![network_hop(&entry.name, "network block device")],
                _ => Vec::new(),
            },
            mmc: (is_mmc && entry.kind == BlockKind::Disk)
                .then(|| mmc::card(files, &entry.name, host_of(&real_path))),
            name: entry.name.clone(),
            major_minor: entry.major_minor.clone(),
            kind: entry.kind,
        }
    }

    /// A partition has its disk's queue and maker, and its own size, holders and content.
    fn partition(&self, entry: &Entry, disk: &BlockDevice) -> BlockDevice {
        let file = |leaf: &str| format!("{}/{leaf}", entry.directory);
        let udev = Udev::read(self.files, &entry.major_minor);
        BlockDevice {
            name: entry.name.clone(),
            major_minor: entry.major_minor.clone(),
            kind: BlockKind::Partition,
            parent: Some(disk.name.clone()),
            holders: self.neighbours(&file("holders")),
            below: Vec::new(),
            backing_file: None,
            size_bytes: self.size(entry),
            read_only: flag(self.files, &file("ro")),
            content: identity::content(&udev, &entry.name, true, false, &self.mounts, &self.swaps),
            identity: identity::identity(&udev, &entry.name, &self.links),
            path: Vec::new(),
            mmc: None,
            ..disk.clone()
        }
    }

    fn size(&self, entry: &Entry) -> Fact<u64> {
        number::<u64>(self.files, &format!("{}/size", entry.directory)).and_then(|sectors| {
            sectors
                .checked_mul(SECTOR_BYTES)
                .ok_or_else(|| format!("{sectors} sectors are more than 64 bits of bytes"))
        })
    }

    fn neighbours(&self, directory: &str) -> Vec<String> {
        let mut found = names(self.files, directory);
        sort_naturally(&mut found);
        found
    }

    fn backing_file(&self, entry: &Entry) -> Option<String> {
        if entry.kind != BlockKind::Loop {
            return None;
        }
        let path = format!("{}/loop/backing_file", entry.directory);
        let file = text(self.files, &path).value()?.clone();
        (!file.is_empty()).then_some(file)
    }

    fn below(&self, entry: &Entry, backing_file: Option<&str>) -> Vec<String> {
        match backing_file {
            Some(file) => {
                let file = file.strip_suffix(" (deleted)").unwrap_or(file);
                let below = self.mounts.device_holding(file);
                below.map(str::to_string).into_iter().collect()
            }
            None => self.neighbours(&format!("{}/slaves", entry.directory)),
        }
    }

    /// Whether there is something behind the device.
    fn is_set_up(&self, device: &BlockDevice) -> bool {
        let has_size = device.size_bytes.get() != Some(0);
        let is_used = !device.holders.is_empty()
            || self.mounts.filesystem_on(&device.name).is_some()
            || self.swaps.contains(&device.name);
        match device.kind {
            BlockKind::Loop => has_size && device.backing_file.is_some(),
            BlockKind::Nbd | BlockKind::Zram | BlockKind::Md | BlockKind::Dm => has_size,
            // The kernels of Raspberry Pi OS make sixteen of them at boot.
            BlockKind::Ram => is_used,
            _ => true,
        }
    }
}

/// The one in brackets: "none [mq-deadline] kyber".
fn active_scheduler(line: String) -> String {
    line.split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or(line.trim(), |(active, _)| active)
        .to_string()
}

/// Commands that the device takes at once.
fn device_queue_depth(files: &dyn Files, entry: &Entry) -> Fact<u32> {
    let name = entry.name.as_str();
    match entry.kind {
        BlockKind::Disk if name.starts_with("mmcblk") => mmc::queue_depth(files, name),
        BlockKind::Disk | BlockKind::Rom if name.starts_with("sd") || name.starts_with("sr") => {
            number(files, &format!("{}/device/queue_depth", entry.directory))
        }
        BlockKind::Disk | BlockKind::Nbd => {
            number(files, &format!("{}/mq/0/nr_tags", entry.directory))
        }
        _ => Fact::unknown("the devices below it decide", &entry.directory),
    }
}

/// The MMC host on a path in sysfs ("mmc0" in ".../mmc_host/mmc0/mmc0:aaaa/...").
fn host_of(real_path: &str) -> Option<&str> {
    let (_, after) = real_path.split_once("/mmc_host/")?;
    after.split('/').next().filter(|host| mmc::is_host(host))
}

#[cfg(test)]
mod tests;
