//! The new swap: what was requested, whether it is possible, and the steps that make it.

use std::path::Path;

use super::super::{
    PathState, PlanBuilder, PlanInput, disks, distribution, identifiers, mounting, programs,
    swap_managers, tables, units,
};
use rubus_boot::fstab::Entry;
use rubus_change::plan::volume::{
    DiskIdentity, FilesystemKind, NewFilesystem, PartitionRole, Place, partition_path,
};
use rubus_change::plan::{Action, Step, TextFile};
use rubus_change::steps::{Format, MakeSwapFile, PartitionDisk, WriteFile};
use rubus_vocabulary::machine::{BlockDevice, BlockKind, Machine, Mount};
use rubus_vocabulary::units::{bytes_iec, bytes_si, parse_size};

const MIB: u64 = 1 << 20;
/// Filesystems on which the kernel takes a swap file.
const CAPABLE: [&str; 6] = ["ext4", "ext3", "ext2", "xfs", "f2fs", "btrfs"];
/// On a filesystem with a swap file this share stays free, but not less than this much and not more than that.
const MIN_FREE: f64 = 0.05;
const MIN_FREE_BYTES: u64 = 256 * MIB;
const MAX_FREE_BYTES: u64 = 2048 * MIB;

/// Where the swap goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum To {
    /// A disk or partition, by its node.
    Disk(String),
    File(String),
    /// Compressed in memory.
    Zram,
    Nowhere,
}

impl To {
    pub(super) fn parse(text: &str) -> Result<To, String> {
        match text.split_once(':') {
            Some(("disk", node)) => disks::node(node).map(|()| To::Disk(node.into())),
            Some(("file", path)) => mounting::place(path).map(|()| To::File(path.into())),
            None if text == "zram" => Ok(To::Zram),
            None if text == "none" => Ok(To::Nowhere),
            _ => Err("write disk:/dev/sda3, file:/path, zram or none".into()),
        }
    }
}

/// The new swap.
#[derive(Debug, Default)]
pub(super) struct New {
    /// What is used, `UUID=…` or a path; nothing where it exists only after a boot, or none was requested.
    pub(super) what: Option<String>,
    /// The path under which the kernel lists it.
    pub(super) path: Option<String>,
    /// The line in fstab, where one makes it.
    pub(super) fstab_source: Option<String>,
    /// What it is to people.
    pub(super) title: String,
    pub(super) size_bytes: u64,
    pub(super) priority: Option<i32>,
    /// The kernel's name of the disk that it stands on.
    pub(super) disk: Option<String>,
    /// The program that makes it at each boot, where that is not fstab.
    pub(super) manager: Option<String>,
    pub(super) is_in_memory: bool,
    /// Whether the plan makes the area, rather than using one that is there.
    pub(super) is_made: bool,
    /// Whether it is there only after a boot.
    after_boot: bool,
    pub(super) steps: Vec<Step>,
}

impl New {
    /// Whether the old areas can be given up at once.
    pub(super) fn replaces_now(&self) -> bool {
        !self.after_boot
    }

    pub(super) fn is_on_now(&self, machine: &Machine) -> bool {
        let mut areas = machine.swap.areas.iter();
        areas.any(|area| Some(&area.path) == self.path.as_ref())
    }
}

/// The new swap, with its checks. Nothing where an obstacle leaves nothing to plan from.
pub(super) fn resolve(to: &To, situation: &PlanInput<'_>, draft: &mut PlanBuilder) -> Option<New> {
    let new = match to {
        To::Disk(node) => device(node, situation, draft),
        To::File(path) => file(path, situation, draft),
        To::Zram => zram(situation, draft),
        To::Nowhere => Some(New { title: "none".into(), ..New::default() }),
    };
    let mut new = new?;
    let priority = situation.option("priority");
    let priority = priority.and_then(|text| text.parse().ok());
    new.priority = priority.or(new.priority);
    Some(new)
}

/// As large as the memory, within reason.
fn usual_bytes(machine: &Machine) -> u64 {
    let memory = machine.memory.total_bytes.get().unwrap_or(1 << 30);
    (memory.next_multiple_of(MIB)).clamp(512 * MIB, 2048 * MIB)
}

fn wished_bytes(situation: &PlanInput<'_>) -> Option<u64> {
    let wished = situation.option("size");
    wished.and_then(|text| parse_size(text).ok()).map(|bytes| bytes.next_multiple_of(MIB))
}

fn device(node: &str, situation: &PlanInput<'_>, draft: &mut PlanBuilder) -> Option<New> {
    let device = disks::find(node, situation, draft)?;
    let machine = situation.machine;
    let is_remote = disks::is_on_network(machine, &device.name);
    draft.check(
        "the swap is not on the network",
        !is_remote,
        if is_remote {
            format!("{node} is a network disk")
        } else {
            format!("{node} is a disk of this machine")
        },
        "take to=zram: the network needs memory itself when memory is short",
    );
    let is_memory = matches!(device.kind, BlockKind::Zram | BlockKind::Ram);
    if is_memory {
        draft.check("it is a disk", false, format!("{node} is memory"), "take to=zram");
        return None;
    }
    warn_of_card(node, &device.name, machine, draft);
    let disk_name = machine.disks_below(&device.name).first().map(|disk| disk.name.clone());
    let whole = disks::whole(machine, node);
    let mut new = match swap_on(device, machine) {
        Some(area) => existing(area, draft),
        None if device.parent.is_some() => {
            let identity = disks::take(&whole, situation, draft)?;
            tables::check(&device.name, &Entry::is_swap, situation, draft);
            let content = device.content.text().unwrap_or("unknown contents");
            let lost = format!("What is on {node} now ({content}) is lost.");
            draft.risks.push(lost);
            let place = disks::existing_partition(node, &whole, device, &identity, draft)?;
            fresh(place, node.into(), device.size_bytes.get().unwrap_or(0), Vec::new(), situation)
        }
        None => {
            let identity = disks::take(&whole, situation, draft)?;
            tables::check(&device.name, &|_| false, situation, draft);
            whole_disk(identity, device, situation, draft)?
        }
    };
    new.disk = disk_name;
    Some(new)
}

/// A swap area that is already there: on the device itself, or as the only partition of the disk.
fn swap_on<'a>(device: &'a BlockDevice, machine: &'a Machine) -> Option<&'a BlockDevice> {
    let is_swap = |device: &BlockDevice| {
        device.content.text() == Some("swap") && device.identity.uuid.is_some()
    };
    let parts = machine.block_devices.iter();
    let parts = parts.filter(|part| part.parent.as_deref() == Some(&device.name));
    let parts: Vec<&BlockDevice> = parts.collect();
    match parts[..] {
        [] if is_swap(device) => Some(device),
        [only] if is_swap(only) => Some(only),
        _ => None,
    }
}

fn existing(device: &BlockDevice, draft: &mut PlanBuilder) -> New {
    let path = format!("/dev/{}", device.name);
    let uuid = device.identity.uuid.clone().unwrap_or_default();
    let size_bytes = device.size_bytes.get().unwrap_or(0);
    draft.check(
        "there is a swap area on it",
        true,
        format!("{path}: {}, UUID {uuid}; it is used as it is", bytes_iec(size_bytes)),
        "",
    );
    New {
        what: Some(format!("UUID={uuid}")),
        fstab_source: Some(format!("UUID={uuid}")),
        title: format!("on {path}"),
        path: Some(path),
        size_bytes,
        ..New::default()
    }
}

fn whole_disk(
    disk: DiskIdentity,
    device: &BlockDevice,
    situation: &PlanInput<'_>,
    draft: &mut PlanBuilder,
) -> Option<New> {
    let node = disk.path.display().to_string();
    draft.risks.push(format!(
        "Everything on {node} is lost: {}.",
        if disk.contents.is_empty() {
            "nothing was found on it".into()
        } else {
            disk.contents.join("; ")
        }
    ));
    if device.kind != BlockKind::Disk {
        // Arrays and loop devices carry the area themselves.
        let bytes = disk.size_bytes;
        return Some(fresh(Place::Disk { disk }, node, bytes, Vec::new(), situation));
    }
    let wished = wished_bytes(situation).unwrap_or_else(|| usual_bytes(situation.machine));
    let table = identifiers::one_partition(
        &situation.facts.random,
        "swap",
        PartitionRole::Swap,
        &disk,
        Some(wished),
    );
    let table = match table {
        Ok(table) => table,
        Err(why) => {
            draft.check("the disk is large enough", false, why, "take a larger one");
            return None;
        }
    };
    let part = table.partitions.first()?.clone();
    if part.size_bytes + 64 * MIB < disk.size_bytes {
        draft.notes.push(format!(
            "The swap takes {} of the {} of {node}; the rest stays unused. size= takes more.",
            bytes_iec(part.size_bytes),
            bytes_si(disk.size_bytes)
        ));
    }
    let place = disks::partition(&disk, part.number, &part.partuuid);
    let path = partition_path(&disk.path, part.number);
    let steps = vec![Step {
        id: "partition".into(),
        why: "A partition says what it is for, so that the disk does not look empty.".into(),
        action: Action::Partition(PartitionDisk { disk, table }),
    }];
    Some(fresh(place, path, part.size_bytes, steps, situation))
}

/// An area that is made.
fn fresh(
    place: Place,
    path: String,
    size_bytes: u64,
    mut steps: Vec<Step>,
    situation: &PlanInput<'_>,
) -> New {
    let uuid = identifiers::uuid(&situation.facts.random, "swap");
    let filesystem = NewFilesystem {
        kind: FilesystemKind::Swap,
        uuid: uuid.clone(),
        label: "rubus-swap".into(),
        subvolumes: Vec::new(),
        mount_options: String::new(),
    };
    steps.push(Step {
        id: "area".into(),
        why: "The kernel swaps only to an area that is marked as one; by its UUID it is found under any name.".into(),
        action: Action::Format(Format { place, filesystem }),
    });
    New {
        what: Some(format!("UUID={uuid}")),
        fstab_source: Some(format!("UUID={uuid}")),
        title: format!("on {path}"),
        path: Some(path),
        size_bytes,
        is_made: true,
        steps,
        ..New::default()
    }
}

fn warn_of_card(what: &str, device: &str, machine: &Machine, draft: &mut PlanBuilder) {
    if disks::is_on_card(machine, device) {
        draft.risks.push(format!(
            "{what} is on an SD card or soldered flash: swapping wears it out and is slow there. A USB disk, or zram where \
             there is none, is better."
        ));
    }
}

fn file(path: &str, situation: &PlanInput<'_>, draft: &mut PlanBuilder) -> Option<New> {
    let machine = situation.machine;
    let mount = machine.mount_holding(Path::new(path));
    let kind = mount.map_or("unknown", |mount| mount.filesystem.as_str());
    let found = match mount {
        Some(mount) => format!("{path} is on {} ({kind}) at {}", mount.source, mount.point),
        None => "no mounted filesystem holds it".into(),
    };
    draft.check(
        "it is on a filesystem that can hold swap",
        CAPABLE.contains(&kind),
        found,
        &format!("take a path on one of {}", CAPABLE.join(", ")),
    );
    let mount = mount.filter(|_| CAPABLE.contains(&kind))?;
    let device = mount.device.as_deref().unwrap_or_default();
    draft.check(
        "the swap is not on the network",
        !disks::is_on_network(machine, device),
        format!("{path} is on {}", mount.source),
        "take to=zram: the network needs memory itself when memory is short",
    );
    warn_of_card(path, device, machine, draft);
    let in_use = machine.swap.areas.iter().find(|area| area.path == path);
    let size_bytes = wished_bytes(situation).unwrap_or_else(|| usual_bytes(machine));
    let mut new = New {
        what: Some(path.into()),
        fstab_source: Some(path.into()),
        title: path.into(),
        path: Some(path.into()),
        size_bytes: in_use.map_or(size_bytes, |area| area.size_bytes),
        disk: machine.disks_below(device).first().map(|disk| disk.name.clone()),
        is_made: in_use.is_none(),
        ..New::default()
    };
    if in_use.is_some() {
        return Some(new);
    }
    check_free(path, size_bytes, mount, situation, draft);
    mounting::check_covered(Path::new(path), situation, draft);
    if kind == "btrfs" {
        check_btrfs(path, mount, machine, draft);
        programs::check_each(&["chattr", "fallocate"], situation, draft);
    }
    draft.effort.written_bytes += size_bytes;
    draft.effort.most_s += size_bytes as f64 / 10e6;
    let directory = Path::new(path).parent().unwrap_or(Path::new("/"));
    draft.directory("place", "The file lies in it.", directory, situation);
    new.steps.push(Step {
        id: "file".into(),
        why: "The kernel swaps only to a file whose every block has its place on the disk.".into(),
        action: Action::MakeSwapFile(MakeSwapFile { path: path.into(), size_bytes }),
    });
    Some(new)
}

fn check_free(
    path: &str,
    size_bytes: u64,
    mount: &Mount,
    situation: &PlanInput<'_>,
    draft: &mut PlanBuilder,
) {
    let (is_free, found) = match situation.facts.seen.get(Path::new(path)) {
        Some(PathState::Absent) => (Some(true), format!("there is no {path} yet").into()),
        Some(PathState::Hidden(why)) => (None, format!("{path} was not looked at: {why}").into()),
        _ => (Some(false), situation.presence(Path::new(path))),
    };
    draft.check(
        "nothing is at its path",
        is_free,
        found,
        "take another path, or remove what is there",
    );
    let free = mount.available_bytes.get();
    let whole = mount.size_bytes.get().unwrap_or(0);
    let left = (whole as f64 * MIN_FREE) as u64;
    let left = left.clamp(MIN_FREE_BYTES, MAX_FREE_BYTES);
    draft.check(
        "there is room for it",
        free.map(|free| free >= size_bytes.saturating_add(left)),
        match free {
            Some(free) => format!(
                "{} free at {}, {} for the file, {} stay free",
                bytes_iec(free),
                mount.point,
                bytes_iec(size_bytes),
                bytes_iec(left)
            ),
            None => format!("not known: {}", mount.available_bytes.reason().unwrap_or("?")),
        },
        "make it smaller with size=, or take another filesystem",
    );
}

/// What btrfs wants of a swap file (btrfs(5), "Swapfile support"): one device, Linux 5.0, no copying on write (which making
/// the file sees to), and no snapshot of its subvolume while it is in use.
fn check_btrfs(path: &str, mount: &Mount, machine: &Machine, draft: &mut PlanBuilder) {
    let device = mount.device.as_deref().and_then(|name| machine.device(name));
    let uuid = device.and_then(|device| device.identity.uuid.as_ref());
    let members = machine.block_devices.iter();
    let members = members.filter(|other| uuid.is_some() && other.identity.uuid.as_ref() == uuid);
    let members = members.count().max(1);
    draft.check(
        "the btrfs is on one device",
        members == 1,
        format!("{members}"),
        "take a partition of its own: the kernel takes no swap file on a btrfs with several devices",
    );
    let release = machine.system.kernel_release.text().unwrap_or_default();
    let major = release.split('.').next().and_then(|text| text.parse::<u32>().ok());
    draft.check(
        "the kernel takes swap files on btrfs",
        major.map(|major| major >= 5),
        match major {
            Some(_) => format!("Linux {release}"),
            None => "not known: the kernel's release was not read".into(),
        },
        "Linux 5.0 or newer does; else take a partition",
    );
    let own = Path::new(path).parent() == Some(Path::new(&mount.point)) && mount.point != "/";
    if !own {
        draft.risks.push(format!(
            "While the swap is in use no snapshot can be taken of the subvolume that holds {path}; a snapshot taken while it is \
             off makes the file useless for ever. A subvolume of its own for it avoids both: `btrfs subvolume create`."
        ));
    }
}

fn zram(situation: &PlanInput<'_>, draft: &mut PlanBuilder) -> Option<New> {
    let machine = situation.machine;
    let switch = machine.kernel_config.iter().find(|setting| setting.name == "ZRAM");
    let switch = switch.and_then(|setting| setting.value.text());
    let has_zram = !machine.swap.zram.is_empty() || matches!(switch, Some("y" | "m"));
    draft.check(
        "the kernel has zram",
        has_zram || switch.is_none(),
        match switch {
            Some(value) => format!("CONFIG_ZRAM={value}"),
            None if has_zram => "a zram device is there".into(),
            None => "its configuration cannot be seen".into(),
        },
        "use a kernel with CONFIG_ZRAM=m: Raspberry Pi OS and Debian have it",
    );
    let named = |name: &str| machine.swap.managers.iter().any(|manager| manager.name == name);
    let manager = ["rpi-swap", "zram-generator"].into_iter().find(|name| named(name));
    draft.check(
        "a program makes the zram swap at each boot",
        manager.is_some(),
        manager.map_or("none".into(), str::to_string),
        &match units::system_of_others(machine) {
            Some(id) => format!(
                "take to=file:/PATH or to=disk:/dev/PARTITION: the program that this recipe sets up needs systemd, and {id} has none"
            ),
            None => distribution::install(machine, &["systemd-zram-generator"]),
        },
    );
    let manager = manager?;
    let on_now = machine.swap.areas.iter().find(|area| disks::name(&area.path).starts_with("zram"));
    let size_bytes = wished_bytes(situation);
    let is_as_wished = on_now.is_some_and(|area| {
        // The kernel keeps one page of the area for itself.
        size_bytes.is_none_or(|wished| area.size_bytes.abs_diff(wished) <= MIB)
    });
    // A file beside it would be there again after the next boot.
    let mut files = machine.swap.areas.iter().filter(|area| area.kind == "file");
    let is_as_wished =
        is_as_wished && !(manager == "rpi-swap" && files.any(|area| area.path == "/var/swap"));
    let size_bytes = size_bytes.unwrap_or_else(|| usual_bytes(machine));
    let mut new = New {
        title: "in compressed memory".into(),
        path: Some(on_now.map_or("/dev/zram0".into(), |area| area.path.clone())),
        size_bytes,
        priority: Some(100),
        manager: Some(manager.into()),
        is_in_memory: true,
        after_boot: !is_as_wished,
        ..New::default()
    };
    if is_as_wished {
        return Some(new);
    }
    let mib = size_bytes / MIB;
    let (path, text) = match manager {
        "rpi-swap" => (
            swap_managers::rpi_swap_file(&machine.swap.managers),
            format!(
                "# Made by rubus (swap).\n[Main]\nMechanism=zram\n\n[Zram]\nFixedSizeMiB={mib}\n"
            ),
        ),
        _ => (
            swap_managers::zram_generator_file(&machine.swap.managers),
            format!("# Made by rubus (swap).\n[zram0]\nzram-size = {mib}\nswap-priority = 100\n"),
        ),
    };
    let path = path.as_path();
    let was = situation.file(path).cloned();
    let becomes = TextFile::public(text);
    if was.as_ref() != Some(&becomes) {
        if let Some(directory) = path.parent() {
            draft.directory("zram-directory", "The file below needs it.", directory, situation);
        }
        new.steps.push(Step {
            id: "zram".into(),
            why: format!("{manager} reads here at each boot what it makes."),
            action: Action::WriteFile(WriteFile { path: path.into(), was, becomes }),
        });
    }
    draft.notes.push(
        "The compressed swap takes memory only for what is in it; it is there after the next boot."
            .into(),
    );
    Some(new)
}
