//! Who uses a device: mounts, swap, arrays and mappings, loop devices, programs; on the device, on
//! its partitions and disk, on what stands on it and on what it stands on.
//!
//! The kernel's own claim (`O_EXCL`) finds most of this in one call, but does not say who, and
//! knows nothing of loop devices over a device, of exports, or of a file that backs two devices.

use std::path::Path;

use rubus_boot::medium;
use rubus_host::block::blockdev::{DeviceNumber, LoopBacking};
use rubus_host::process::openers::Opener;
use rubus_host::{Files, ReadError};
use rubus_machine::parse::mountinfo::{self, MountLine};
use rubus_machine::parse::swaps;
use rubus_vocabulary::machine::Bootloader;

use super::exporters;
use super::facts::{DeviceFacts, Relation, Use, UseKind};
use super::sysfs::{Node, Sys, cannot_read};

/// A loop device that has a backing.
#[derive(Clone, Debug)]
pub(super) struct LoopFact {
    /// The kernel's name.
    pub name: String,
    /// Backing file as sysfs names it.
    pub backing_path: String,
    /// Backing file by numbers, where the driver could be asked.
    pub backing: Option<LoopBacking>,
}

/// What [`find`] found, and what it could not read.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub uses: Vec<Use>,
    pub unreadable: Vec<String>,
    /// The target and the devices whose use is its use, with their numbers.
    pub numbers: Vec<(String, Relation, DeviceNumber)>,
}

/// Every use of the target and its relatives that the kernel's tables tell.
pub(super) fn find(sys: &Sys<'_>, target: &Node, loops: &[LoopFact]) -> Found {
    let mut search = Search {
        sys,
        loops,
        own_loops: own_loops(sys, target, loops),
        found: Found::default(),
        territory: Vec::new(),
    };
    search.walk(target);
    let tables = Tables::read(sys, &mut search.found.unreadable);
    for (name, relation) in search.territory.clone() {
        search.mounts(&tables, &name, relation);
        search.swap(&tables, &name, relation);
        search.loops_on_filesystem(&tables, &name, relation);
        let number = sys.by_name(&name).ok().and_then(|node| sys.number(&node));
        search.found.numbers.extend(number.map(|number| (name, relation, number)));
    }
    search.backing_is_swap(&tables);
    search.exports();
    search.found.uses.extend(starts_board(sys, target));
    search.found
}

/// Whether the firmware said that it started from the target. Only where one disk can be meant: of several USB disks it does
/// not say which. A card without a table started nothing: it was put in since.
fn starts_board(sys: &Sys<'_>, target: &Node) -> Option<Use> {
    let number = |name: &str| {
        let path = Path::new(Bootloader::SOURCE).join(name);
        let bytes = sys.files.read_prefix(&path, 4).ok()?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    };
    let mode = number("boot-mode")?;
    let disk = target.parent_name().unwrap_or_else(|| target.name.clone());
    let prefix = medium::name_prefix(mode)?;
    if !disk.starts_with(prefix) {
        return None;
    }
    let is_read = match target.parent_name() {
        None => !sys.partitions(target).ok()?.is_empty(),
        Some(_) => {
            let own = sys.files.text(&target.directory.join("partition")).ok()?;
            let own = own.trim().parse().ok();
            // 0 is the first that the firmware can start from.
            own.is_some() && own == number("partition").map(|number| number.max(1))
        }
    };
    is_read.then(|| Use {
        device: target.name.clone(),
        relation: Relation::Itself,
        kind: UseKind::StartsBoard { says: format!("{}/boot-mode is {mode}", Bootloader::SOURCE) },
    })
}

fn own_loop<'a>(node: &Node, loops: &'a [LoopFact]) -> Option<&'a LoopFact> {
    let name = node.parent_name().unwrap_or_else(|| node.name.clone());
    loops.iter().find(|own| own.name == name)
}

/// The loop device that the target is, or is a partition of, and those below it, from the target down to the file.
pub(super) fn own_loops<'a>(
    sys: &Sys<'_>,
    target: &Node,
    loops: &'a [LoopFact],
) -> Vec<&'a LoopFact> {
    let mut own: Vec<&LoopFact> = Vec::new();
    let mut next = own_loop(target, loops);
    while let Some(one) = next.filter(|one| own.iter().all(|known| known.name != one.name)) {
        own.push(one);
        let below = one.backing.and_then(|backing| sys.by_number(backing.block?).ok());
        next = below.and_then(|below| own_loop(&below, loops));
    }
    own
}

struct Search<'a> {
    sys: &'a Sys<'a>,
    loops: &'a [LoopFact],
    /// The loop devices that are the target under other names: see [`own_loops`].
    own_loops: Vec<&'a LoopFact>,
    found: Found,
    /// Devices whose use is a use of the target, with their relation to it, each once.
    territory: Vec<(String, Relation)>,
}

impl Search<'_> {
    fn walk(&mut self, target: &Node) {
        self.up(target, Relation::Itself);
        if let Some(disk) = self.parent(target) {
            // The disk's other partitions are no concern of this one; what uses the disk as a
            // whole is.
            self.note(&disk.name, Relation::WholeDisk);
            self.stands_on(&disk, Relation::WholeDisk);
        }
        self.down(target);
        self.twins();
    }

    /// The device, its partitions, and all that stands on them.
    fn up(&mut self, node: &Node, relation: Relation) {
        if !self.note(&node.name, relation) {
            return;
        }
        let of_partitions = match relation {
            Relation::Itself => Relation::Partition,
            Relation::Twin | Relation::Below => relation,
            _ => Relation::Above,
        };
        let partitions = self.sys.partitions(node);
        for name in self.or_unreadable(partitions) {
            if let Some(partition) = self.node(&name) {
                self.up(&partition, of_partitions);
            }
        }
        self.stands_on(node, relation);
    }

    /// Records what stands directly on a device, and goes on up from there.
    fn stands_on(&mut self, node: &Node, relation: Relation) {
        let above = match relation {
            Relation::Twin | Relation::Below => relation,
            _ => Relation::Above,
        };
        let holders = self.sys.holders(node);
        for name in self.or_unreadable(holders) {
            let what = self.sys.holder_phrase(&name);
            self.add(&node.name, relation, UseKind::Holder { what });
            if let Some(holder) = self.node(&name) {
                self.up(&holder, above);
            }
        }
        let Some(number) = self.sys.number(node) else {
            let why = format!("the number of {} cannot be read", node.name);
            self.found.unreadable.push(why);
            return;
        };
        for on_it in self.loops {
            let is_own = self.own_loops.iter().any(|own| own.name == on_it.name);
            if is_own || !on_it.stands_on_block(number, &node.name) {
                continue;
            }
            let kind =
                UseKind::Loop { name: on_it.name.clone(), backing: on_it.backing_path.clone() };
            self.add(&node.name, relation, kind);
            if let Some(holder) = self.node(&on_it.name) {
                self.up(&holder, above);
            }
        }
    }

    /// What the target stands on. Members of an array and disks below a mapping may carry other
    /// volumes as well, which is no conflict; their own use is. A loop device over a block device
    /// is that device under another name, so everything on it counts.
    fn down(&mut self, node: &Node) {
        let slaves = self.sys.slaves(node);
        for name in self.or_unreadable(slaves) {
            let Some(slave) = self.node(&name) else {
                continue;
            };
            if self.note(&slave.name, Relation::Below) {
                if let Some(disk) = self.parent(&slave) {
                    self.note(&disk.name, Relation::Below);
                }
                self.down(&slave);
            }
        }
        let Some(block) = own_loop(node, self.loops).and_then(|own| own.backing?.block) else {
            return;
        };
        match self.sys.by_number(block) {
            Ok(below) => {
                self.up(&below, Relation::Below);
                if let Some(disk) = self.parent(&below) {
                    self.note(&disk.name, Relation::Below);
                }
                self.down(&below);
            }
            Err(why) => self.found.unreadable.push(why),
        }
    }

    /// Other loop devices over the same file: their content is the target's content.
    fn twins(&mut self) {
        let own_loops = self.own_loops.clone();
        let is_own = |twin: &LoopFact| own_loops.iter().any(|own| own.name == twin.name);
        for own in &own_loops {
            let twins = self.loops.iter();
            for twin in twins.filter(|twin| !is_own(twin) && own.same_backing(twin)) {
                let backing = own.backing_path.clone();
                self.add(&twin.name, Relation::Twin, UseKind::SameBacking { backing });
                if let Some(node) = self.node(&twin.name) {
                    self.up(&node, Relation::Twin);
                }
            }
        }
    }

    fn mounts(&mut self, tables: &Tables, name: &str, relation: Relation) {
        let mut mounted: Vec<(String, Vec<String>)> = Vec::new();
        let has_volume = tables.btrfs.iter().any(|v| v.devices.iter().any(|d| d == name));
        for mount in &tables.mounts {
            let told_below = has_volume && mount.line.filesystem == "btrfs";
            if told_below || !mount.devices.iter().any(|d| d == name) {
                continue;
            }
            let filesystem = &mount.line.filesystem;
            match mounted.iter_mut().find(|(known, _)| known == filesystem) {
                Some((_, points)) => points.push(mount.line.point.clone()),
                None => mounted.push((filesystem.clone(), vec![mount.line.point.clone()])),
            }
        }
        for (filesystem, points) in mounted {
            self.add(name, relation, UseKind::Mounted { filesystem, points });
        }
        for volume in tables.btrfs.iter().filter(|v| v.devices.iter().any(|d| d == name)) {
            let of_volume = |mount: &&Mounted| {
                mount.line.filesystem == "btrfs"
                    && mount.devices.iter().any(|d| volume.devices.contains(d))
            };
            let points = tables.mounts.iter().filter(of_volume);
            let points = points.map(|mount| mount.line.point.clone()).collect();
            let kind = UseKind::Btrfs { name: volume.name.clone(), points };
            self.add(name, relation, kind);
        }
    }

    fn swap(&mut self, tables: &Tables, name: &str, relation: Relation) {
        for area in &tables.swaps {
            let kind = match &area.device {
                Some(device) if device == name => UseKind::Swap,
                None if area.on_devices.iter().any(|d| d == name) => {
                    UseKind::SwapFile { path: area.path.clone() }
                }
                _ => continue,
            };
            self.add(name, relation, kind);
        }
    }

    /// Loop devices whose backing file lies on a filesystem on the device.
    fn loops_on_filesystem(&mut self, tables: &Tables, name: &str, relation: Relation) {
        for on_it in self.loops {
            if on_it.backing.is_some_and(|backing| backing.block.is_some()) {
                continue;
            }
            let by_number = on_it
                .backing
                .filter(|backing| backing.on_device.major != 0)
                .and_then(|backing| self.sys.by_number(backing.on_device).ok())
                .is_some_and(|holding| holding.name == name);
            let by_path = || {
                let path = undeleted(&on_it.backing_path);
                tables.devices_under(path).iter().any(|d| d == name)
            };
            if by_number || by_path() {
                let kind =
                    UseKind::Loop { name: on_it.name.clone(), backing: on_it.backing_path.clone() };
                self.add(name, relation, kind);
            }
        }
    }

    fn backing_is_swap(&mut self, tables: &Tables) {
        let files = tables.swaps.iter().filter(|area| area.device.is_none());
        for area in files {
            let over_it = self.own_loops.iter().find(|own| own.is_over(&area.path));
            if let Some(name) = over_it.map(|own| own.name.clone()) {
                let kind = UseKind::BackingIsSwap { path: area.path.clone() };
                self.add(&name, Relation::Itself, kind);
            }
        }
    }

    /// What the kernel itself exports: a device of the territory, or the file under the target.
    fn exports(&mut self) {
        for exported in exporters::all(self.sys.files) {
            let path = exported.path.to_string_lossy().into_owned();
            let kind = UseKind::Exported { by: exported.by };
            let device = device_of_path(self.sys, &path);
            let known = self.territory.iter().find(|(name, _)| Some(name) == device.as_ref());
            if let Some((name, relation)) = known.cloned() {
                self.add(&name, relation, kind);
                continue;
            }
            let over_it = self.own_loops.iter().find(|own| own.is_over(&path));
            if let Some(name) = over_it.map(|own| own.name.clone()) {
                self.add(&name, Relation::Itself, kind);
            }
        }
    }

    fn add(&mut self, device: &str, relation: Relation, kind: UseKind) {
        let new = Use { device: device.to_string(), relation, kind };
        if !self.found.uses.contains(&new) {
            self.found.uses.push(new);
        }
    }

    /// Takes a device into the territory; false when it is there already.
    fn note(&mut self, name: &str, relation: Relation) -> bool {
        let is_new = !self.territory.iter().any(|(known, _)| known == name);
        if is_new {
            self.territory.push((name.to_string(), relation));
        }
        is_new
    }

    fn parent(&mut self, node: &Node) -> Option<Node> {
        let name = node.parent_name()?;
        self.node(&name)
    }

    fn node(&mut self, name: &str) -> Option<Node> {
        match self.sys.by_name(name) {
            Ok(node) => Some(node),
            Err(why) => {
                self.found.unreadable.push(why);
                None
            }
        }
    }

    fn or_unreadable(&mut self, names: Result<Vec<String>, String>) -> Vec<String> {
        names.unwrap_or_else(|why| {
            self.found.unreadable.push(why);
            Vec::new()
        })
    }
}

impl LoopFact {
    /// Whether it stands on the file of this name, by whichever of its names it was attached.
    fn is_over(&self, path: &str) -> bool {
        let numbers = super::backing_by_path(path);
        undeleted(&self.backing_path) == path || numbers.is_some() && self.backing == numbers
    }

    fn stands_on_block(&self, number: DeviceNumber, name: &str) -> bool {
        match self.backing {
            Some(backing) => backing.block == Some(number),
            None => self.backing_path == super::sysfs::node_path(name),
        }
    }

    fn same_backing(&self, other: &LoopFact) -> bool {
        match (self.backing, other.backing) {
            (Some(a), Some(b)) if a.block.is_some() || b.block.is_some() => a.block == b.block,
            (Some(a), Some(b)) => a.on_device == b.on_device && a.inode == b.inode,
            _ => self.backing_path == other.backing_path,
        }
    }
}

fn undeleted(path: &str) -> &str {
    path.strip_suffix(" (deleted)").unwrap_or(path)
}

/// The kernel's tables of mounts, btrfs volumes and swap, with the devices that they are about.
struct Tables {
    mounts: Vec<Mounted>,
    btrfs: Vec<BtrfsVolume>,
    swaps: Vec<SwapArea>,
}

struct Mounted {
    line: MountLine,
    /// Kernel names of the devices below.
    devices: Vec<String>,
}

struct BtrfsVolume {
    name: String,
    devices: Vec<String>,
}

struct SwapArea {
    path: String,
    /// Kernel name, when it is a device.
    device: Option<String>,
    /// Kernel names of the devices that a swap file lies on.
    on_devices: Vec<String>,
}

impl Tables {
    fn read(sys: &Sys<'_>, unreadable: &mut Vec<String>) -> Tables {
        let btrfs = btrfs_volumes(sys, unreadable);
        let mut tables =
            Tables { mounts: mounts(sys, &btrfs, unreadable), btrfs, swaps: Vec::new() };
        tables.swaps = swap_areas(sys, &tables, unreadable);
        tables
    }

    /// The devices of the filesystem that a path lies on.
    fn devices_under(&self, path: &str) -> &[String] {
        let lines = self.mounts.iter().map(|mount| &mount.line);
        let holding = mountinfo::holding(lines, path);
        let found = self
            .mounts
            .iter()
            .find(|mount| holding.is_some_and(|line| std::ptr::eq(line, &mount.line)));
        found.map_or(&[], |mount| &mount.devices)
    }
}

fn mounts(sys: &Sys<'_>, btrfs: &[BtrfsVolume], unreadable: &mut Vec<String>) -> Vec<Mounted> {
    let path = Path::new("/proc/self/mountinfo");
    let text = match whole_text(sys.files, path) {
        Ok(text) => text,
        Err(why) => {
            unreadable.push(cannot_read(path, &why));
            return Vec::new();
        }
    };
    let (lines, strange) = mountinfo::parse(&text);
    unreadable.extend(
        strange
            .iter()
            .map(|line| format!("{} has a line that makes no sense: {line}", path.display())),
    );
    let with_devices =
        |line: MountLine| Mounted { devices: mount_devices(sys, &line, btrfs), line };
    lines.into_iter().map(with_devices).collect()
}

/// The kernel names of the devices below a mount: by its number, or, where the number is an
/// anonymous one, by its source; for btrfs all devices of the volume.
fn mount_devices(sys: &Sys<'_>, line: &MountLine, btrfs: &[BtrfsVolume]) -> Vec<String> {
    let (major, minor) = line.device;
    if major != 0 {
        let node = sys.by_number(DeviceNumber { major, minor });
        return node.map(|node| vec![node.name]).unwrap_or_default();
    }
    let Some(name) = device_of_path(sys, &line.source) else {
        return Vec::new();
    };
    let volume = btrfs.iter().find(|volume| volume.devices.contains(&name));
    match volume {
        Some(volume) if line.filesystem == "btrfs" => volume.devices.clone(),
        _ => vec![name],
    }
}

/// The kernel name of the block device that a path below `/dev` names.
fn device_of_path(sys: &Sys<'_>, path: &str) -> Option<String> {
    if !path.starts_with("/dev/") {
        return None;
    }
    let real = sys.files.real_path(Path::new(path)).ok()?;
    let below_dev = real.strip_prefix("/dev").ok()?.to_string_lossy().into_owned();
    Some(sys.by_name(&below_dev.replace('/', "!")).ok()?.name)
}

/// Volumes that are in use now, from sysfs: it knows them even when they are mounted in another
/// mount namespace only.
fn btrfs_volumes(sys: &Sys<'_>, unreadable: &mut Vec<String>) -> Vec<BtrfsVolume> {
    let root = Path::new("/sys/fs/btrfs");
    let uuids = match sys.files.list(root) {
        Ok(names) => names,
        Err(ReadError::Absent) => return Vec::new(),
        Err(why) => {
            unreadable.push(cannot_read(root, &why));
            return Vec::new();
        }
    };
    let mut volumes = Vec::new();
    for uuid in uuids {
        let directory = root.join(&uuid).join("devices");
        match sys.files.list(&directory) {
            Ok(devices) => {
                let label = sys.files.text(&root.join(&uuid).join("label"));
                let name = label.ok().filter(|label| !label.is_empty()).unwrap_or(uuid);
                volumes.push(BtrfsVolume { name, devices });
            }
            // `features` is no volume.
            Err(ReadError::Absent) => {}
            Err(why) => unreadable.push(cannot_read(&directory, &why)),
        }
    }
    volumes
}

fn swap_areas(sys: &Sys<'_>, tables: &Tables, unreadable: &mut Vec<String>) -> Vec<SwapArea> {
    let path = Path::new("/proc/swaps");
    let text = match whole_text(sys.files, path) {
        Ok(text) => text,
        // A kernel without swap has no such file.
        Err(ReadError::Absent) => return Vec::new(),
        Err(why) => {
            unreadable.push(cannot_read(path, &why));
            return Vec::new();
        }
    };
    let (lines, strange) = swaps::parse(&text);
    unreadable.extend(
        strange
            .iter()
            .map(|line| format!("{} has a line that makes no sense: {line}", path.display())),
    );
    let area = |line: swaps::SwapLine| SwapArea {
        device: device_of_path(sys, &line.path),
        on_devices: tables.devices_under(&line.path).to_vec(),
        path: line.path,
    };
    lines.into_iter().map(area).collect()
}

/// A table of the kernel, whole: with hundreds of containers a mount table is longer than a page.
fn whole_text(files: &dyn Files, path: &Path) -> Result<String, ReadError> {
    const MAX_BYTES: usize = 64 << 20;
    let bytes = files.read_prefix(path, MAX_BYTES)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Adds that the kernel refused a claim, with the mounts of other namespaces that explain it when
/// nothing else was found.
pub(super) fn add_claim(files: &dyn Files, facts: &mut DeviceFacts) {
    let explained = |found: &Use| {
        !matches!(
            found.kind,
            UseKind::Loop { .. } | UseKind::SameBacking { .. } | UseKind::StartsBoard { .. }
        )
    };
    if facts.uses.iter().any(explained) {
        return;
    }
    facts.uses.push(Use {
        device: facts.name.clone(),
        relation: Relation::Itself,
        kind: UseKind::Claimed { elsewhere: mounts_elsewhere(files, facts) },
    });
}

fn mounts_elsewhere(files: &dyn Files, facts: &DeviceFacts) -> Vec<String> {
    const ENOUGH: usize = 3;
    let sys = Sys::new(files);
    let names: Vec<String> = sys
        .by_name(&facts.name)
        .and_then(|node| {
            let mut names = sys.partitions(&node)?;
            names.extend(node.parent_name());
            names.push(node.name);
            Ok(names)
        })
        .unwrap_or_default();
    let mut found: Vec<(String, String)> = Vec::new();
    for pid in files.list(Path::new("/proc")).unwrap_or_default() {
        if pid.parse::<u32>().is_err() || found.len() >= ENOUGH {
            continue;
        }
        let process = Path::new("/proc").join(&pid);
        let text = whole_text(files, &process.join("mountinfo")).unwrap_or_default();
        for line in mountinfo::parse(&text).0 {
            let devices = mount_devices(&sys, &line, &[]);
            let is_new = !found.iter().any(|(point, _)| *point == line.point);
            if is_new && devices.iter().any(|device| names.contains(device)) {
                let program = files.text(&process.join("comm")).unwrap_or_default();
                let words = format!("{} as process {pid} ({program}) sees it", line.point);
                found.push((line.point, words));
            }
        }
    }
    found.into_iter().map(|(_, words)| words).collect()
}

/// Adds the programs that have one of the devices open for writing, and those that export devices
/// even when they only read. `claimed_by_us` leaves this program itself out.
pub(super) fn add_openers(
    sys: &Sys<'_>,
    found: &mut Found,
    openers: &[Opener],
    claimed_by_us: bool,
) {
    for opener in openers {
        let is_own = opener.pid == std::process::id();
        let exports = serves(&opener.name);
        let is_ours = is_own && (claimed_by_us || !opener.writes);
        if is_ours || !(opener.writes || exports) {
            continue;
        }
        let opened = found.numbers.iter().find(|(_, _, number)| *number == opener.number);
        let Some((device, relation, _)) = opened else {
            continue;
        };
        if drives(sys, opener, device) {
            continue;
        }
        found.uses.push(Use {
            device: device.clone(),
            relation: *relation,
            kind: UseKind::Open {
                pid: opener.pid,
                program: opener.name.clone(),
                writes: opener.writes,
            },
        });
    }
}

/// Whether a program of this name is a server or a virtual machine: what it reads, others rely on.
pub(super) fn serves(program: &str) -> bool {
    const SERVERS: [&str; 6] = ["nbd", "qemu", "tgtd", "targetcli", "cloud-hyper", "ublk"];
    SERVERS.iter().any(|name| program.starts_with(name))
}

/// Adds the programs that have the file under a loop device open for writing: a server of that image, or a virtual
/// machine. This program's own is the one that made the loop device.
pub(super) fn add_backing_openers(node: &Node, found: &mut Found, openers: &[Opener]) {
    let others = openers.iter().filter(|opener| opener.writes && opener.pid != std::process::id());
    for opener in others {
        found.uses.push(Use {
            device: node.name.clone(),
            relation: Relation::Itself,
            kind: UseKind::BackingOpen { pid: opener.pid, program: opener.name.clone() },
        });
    }
}

/// Whether a process is the one that a network device lives by: its connection, not its user. The
/// kernel names the thread.
fn drives(sys: &Sys<'_>, opener: &Opener, device: &str) -> bool {
    let pid = format!("/sys/class/block/{device}/pid");
    let Ok(thread) = sys.files.text(Path::new(&pid)) else {
        return false;
    };
    let own_thread = format!("/proc/{}/task/{}", opener.pid, thread.trim());
    !thread.trim().is_empty() && sys.files.exists(Path::new(&own_thread))
}

#[cfg(test)]
mod tests;
