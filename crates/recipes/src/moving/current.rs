//! What the machine has now: where its root is, how it starts, which disks it stands on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::super::{Found, PathState, PlanInput};
use super::table::is_counted;
use rubus_boot::chain::UNTRIED_SET_STATE;
use rubus_boot::cmdline_txt::CmdlineTxt;
use rubus_boot::config_txt::{BootPath, ConfigTxt, Reader};
use rubus_boot::medium::other_partition_mounted;
use rubus_boot::model::{Kernels, Model};
use rubus_boot::volume::{Name, NamedVolume};
use rubus_change::plan::TextFile;
use rubus_change::plan::volume::{FilesystemKind, Volume};
use rubus_machine::not_copied::swap_file_bytes;
use rubus_vocabulary::machine::{BlockDevice, Machine, Mount, Origin};

/// Where boot partitions are mounted: today, and by older systems.
const BOOT_POINTS: [&str; 2] = ["/boot/firmware", "/boot"];
/// What is kept of a file in the boot partition.
pub(crate) const KEPT: &str = "before-rubus";
/// The table of mounts.
pub(crate) const FSTAB: &str = "/etc/fstab";
const FAT: [&str; 2] = ["vfat", "msdos"];

/// The filesystem of `/`.
pub(crate) fn root(machine: &Machine) -> Option<&Mount> {
    machine.mounts.iter().rfind(|mount| mount.point == "/")
}

/// The filesystem of `/`, to be mounted beside it; nothing where it is of another kind, or its UUID is not known.
pub(crate) fn root_volume(machine: &Machine) -> Option<Volume> {
    let mount = root(machine)?;
    let device = machine.device(mount.device.as_deref()?)?;
    let kind = FilesystemKind::of_root(&mount.filesystem)?;
    let mount_options = match kind {
        FilesystemKind::Btrfs => format!("subvol={}", mount.root),
        _ => String::new(),
    };
    Some(Volume {
        kind,
        uuid: device.identity.uuid.clone()?,
        mount_options,
        title: format!("the current root ({})", mount.source),
    })
}

/// The boot partition, where one is mounted.
pub(crate) fn boot(machine: &Machine) -> Option<&Mount> {
    let at = |point: &&str| {
        let mut mounts = machine.mounts.iter().rev();
        mounts.find(|mount| {
            // A directory of it that is bound to /boot has no config.txt (Alpine).
            let is_whole = mount.root == "/";
            mount.point == **point && is_whole && FAT.contains(&mount.filesystem.as_str())
        })
    };
    BOOT_POINTS.iter().find_map(at)
}

/// The mount point of the boot partition, or where it would be today.
pub(crate) fn boot_point(machine: &Machine) -> PathBuf {
    boot(machine).map_or(BOOT_POINTS[0], |mount| &mount.point).into()
}

/// Texts in the boot partition that usual systems have.
const BOOT_TEXTS: [&str; 10] = [
    "config.txt",
    "cmdline.txt",
    "cmdline.txt.before-rubus",
    "config.txt.before-rubus",
    "usercfg.txt",
    "syscfg.txt",
    "distroconfig.txt",
    "extraconfig.txt",
    "nobtcmd.txt",
    UNTRIED_SET_STATE,
];

/// A boot partition in a file, for `boot_ramdisk=1`.
const BOOT_IMAGE: &str = "boot.img";

/// What to look at in the boot partition.
pub(crate) fn boot_paths(point: &Path) -> Vec<PathBuf> {
    let texts = BOOT_TEXTS.map(|name| point.join(name));
    std::iter::once(point.to_path_buf()).chain(texts).collect()
}

/// The disks below a mount.
pub(crate) fn disks<'a>(machine: &'a Machine, mount: &Mount) -> Vec<&'a BlockDevice> {
    let device = mount.device.as_deref();
    device.map_or(Vec::new(), |device| machine.disks_below(device))
}

/// How the machine starts: the boot partition's text files, and what follows from them.
#[derive(Clone, Debug)]
pub(crate) struct Start<'a> {
    /// Mount point of the boot partition.
    pub(crate) point: PathBuf,
    /// Names at its top.
    pub(crate) names: BTreeSet<&'a str>,
    /// Contents of `config.txt`.
    pub(crate) config: &'a TextFile,
    /// What the firmware may load, the usual case first.
    pub(crate) paths: Vec<BootPath>,
    /// What of that a Raspberry Pi 5 may load; nothing where no such board starts from here.
    pub(crate) on_pi5: Vec<BootPath>,
    /// Whether any board may start from here, as from an image.
    pub(crate) is_for_any: bool,
    /// The files with the kernel's command line, by name.
    pub(crate) cmdlines: BTreeMap<String, &'a TextFile>,
    /// Whether files are loaded with a prefix to their names (`os_prefix`).
    pub(crate) has_prefix: bool,
}

impl<'a> Start<'a> {
    /// # Errors
    /// What is missing, as a sentence.
    pub(crate) fn of(situation: &PlanInput<'a>) -> Result<Start<'a>, Found> {
        let machine = situation.machine;
        let point = boot_point(machine);
        if let Some(found) = other_partition(situation) {
            return Err(found.into());
        }
        let config_path = point.join("config.txt");
        let Some(config) = situation.facts.seen.get(&config_path).and_then(text) else {
            return Err(unread(situation, &config_path));
        };
        let names: BTreeSet<&str> = match situation.facts.seen.get(&point) {
            Some(PathState::Directory(names)) => names.iter().map(String::as_str).collect(),
            _ => return Err(situation.presence(&point)),
        };
        let parsed = ConfigTxt::parse(config.text.as_str());
        let includes = included(situation, &point, &parsed);
        readable(situation, &point, &config_path, &parsed, &includes)?;
        let model = Model::of(&machine.board);
        let reader = Reader::usual(&model, &includes);
        let settings = parsed.settings(&reader);
        let says = |name: &str, value: &str| {
            settings.iter().rfind(|setting| setting.name == name).is_some_and(|s| s.value == value)
        };
        if says("boot_ramdisk", "1") && is_file(&names, BOOT_IMAGE) {
            return Err(format!(
                "{} says boot_ramdisk=1: the firmware reads what is inside {}, and nothing else here",
                config_path.display(),
                point.join(BOOT_IMAGE).display()
            )
            .into());
        }
        let has_prefix = settings.iter().any(|setting| setting.name == "os_prefix");
        let exists = |name: &str| is_there(situation, &point, &names, name);
        let paths = match situation.facts.image {
            None => parsed.boot_paths(&reader, &exists),
            Some(_) => parsed.boot_paths_anywhere(&includes, &exists),
        };
        let is_for_any = situation.facts.image.is_some();
        let on_pi5 = match (is_for_any, model.kernels) {
            (true, _) => parsed.boot_paths_of(Kernels::Bcm2712, &includes, &exists),
            (false, Kernels::Bcm2712) => paths.clone(),
            (false, _) => Vec::new(),
        };
        if paths.is_empty() {
            return Err(format!(
                "{} names no kernel for {}",
                config_path.display(),
                match situation.facts.image {
                    None => "this board",
                    Some(_) => "any board that is known",
                }
            )
            .into());
        }
        let mut cmdlines = BTreeMap::new();
        for path in &paths {
            let file = point.join(&path.cmdline);
            let Some(text) = situation.facts.seen.get(&file).and_then(text) else {
                return Err(unread(situation, &file));
            };
            cmdlines.insert(path.cmdline.clone(), text);
        }
        Ok(Start { point, names, config, paths, on_pi5, is_for_any, cmdlines, has_prefix })
    }

    /// Whether a file is at the top of the boot partition. FAT does not know capital letters.
    pub(crate) fn has(&self, name: &str) -> bool {
        is_file(&self.names, name)
    }

    /// Why the usual start does not lead to the root that runs, as a sentence without its full stop; nothing where it does,
    /// or what `root=` names cannot be told. An image has no running root.
    pub(crate) fn other_root(&self, situation: &PlanInput<'_>) -> Option<String> {
        if self.is_for_any {
            return None;
        }
        let running = root(situation.machine)?;
        let device = situation.machine.device(running.device.as_deref()?)?;
        let known = NamedVolume::all_of(situation.machine);
        let own = known.iter().find(|volume| volume.path == format!("/dev/{}", device.name))?;
        let usual = self.paths.iter().filter(|path| path.only_if.is_empty());
        let mut names = usual.map(|path| path.cmdline.as_str());
        names.find_map(|name| {
            let line = CmdlineTxt::parse(self.cmdlines.get(name)?.text.as_str());
            let Some(named) = line.get("root") else {
                return Some(format!(
                    "{name} has no root= in its first line, which is all that the firmware passes on; the running root is {}",
                    own.path
                ));
            };
            if let Some(found) = other_volume(&Name::parse(named), own, &known) {
                let running = &own.path;
                let named = Name::shown(named);
                return Some(format!("root={named} in {name} is {found}, and the running root is {running}"));
            }
            let is_btrfs = running.filesystem == "btrfs";
            let own = running.root.trim_matches('/');
            if is_btrfs && has_lost_subvolume(&line, own, situation.machine) {
                return Some(format!(
                    "rootflags= in {name} no longer names the subvolume {own}, which runs"
                ));
            }
            let other = line.subvolume().filter(|one| is_btrfs && *one != own)?;
            Some(format!(
                "rootflags= in {name} names the subvolume {other}, and the running root is {}",
                running.root
            ))
        })
    }

    /// Why the command line will not stay what it is made, as a sentence without its full stop: a set of boot files with a copy
    /// of the old one waits to be tried, and takes the place of this set.
    pub(crate) fn untried_set(&self, situation: &PlanInput<'_>) -> Option<String> {
        let path = self.point.join(UNTRIED_SET_STATE);
        let state = situation.text(&path).trim();
        let waits = self.has_prefix && matches!(state, "unknown" | "trying");
        waits.then(|| {
            format!(
                "{} says {state}: the next start tries the files beside it, and their command line takes the place of this one",
                path.display()
            )
        })
    }

    /// Whether an earlier change by Rubus kept the command line that it replaced.
    pub(crate) fn has_kept_command_line(&self) -> bool {
        let kept = |name: &&str| {
            let name = name.to_ascii_lowercase();
            self.cmdlines
                .keys()
                .any(|line| name.starts_with(&format!("{}.{KEPT}", line.to_ascii_lowercase())))
        };
        self.names.iter().any(kept)
    }

    /// The root of a command line that is named as the kernel counts disks, on a disk of the kind that is added.
    pub(crate) fn counted_root(&self, machine: &Machine) -> Option<String> {
        let lines = self.cmdlines.values();
        let mut roots = lines.filter_map(|file| {
            CmdlineTxt::parse(file.text.as_str()).get("root").map(str::to_string)
        });
        roots.find(|root| root.starts_with("/dev/sd") && is_counted(&Name::parse(root), machine))
    }

    /// The volumes that `root=` of the command lines names.
    pub(crate) fn roots<'v>(&self, volumes: &'v [NamedVolume]) -> Vec<&'v NamedVolume> {
        let lines = self.cmdlines.values();
        let names = lines.filter_map(|file| {
            let line = CmdlineTxt::parse(file.text.as_str());
            line.get("root").map(Name::parse)
        });
        names.flat_map(|name| name.resolve(volumes)).collect()
    }
}

/// Whether a line names no subvolume, while the running kernel was told its own.
fn has_lost_subvolume(line: &CmdlineTxt, own: &str, machine: &Machine) -> bool {
    let given = CmdlineTxt::parse(machine.system.command_line.text().unwrap_or_default());
    let names_none = line.subvolume().is_none() && line.subvolume_id().is_none();
    names_none && !own.is_empty() && given.subvolume() == Some(own)
}

/// The firmware reads another partition than the one that is mounted in its place.
fn other_partition(situation: &PlanInput<'_>) -> Option<String> {
    if situation.facts.image.is_some() {
        return None;
    }
    let (read, mounted, why) = other_partition_mounted(situation.machine)?;
    Some(format!(
        "the firmware reads /dev/{read} ({why}), but /dev/{mounted} is mounted at {}; mount /dev/{read} there, or the next \
         start would know nothing of what is changed",
        boot_point(situation.machine).display()
    ))
}

/// What a name means where that is not the volume `own`; nothing where it may be.
fn other_volume(name: &Name, own: &NamedVolume, known: &[NamedVolume]) -> Option<String> {
    let found = name.resolve(known);
    // Several disks of one btrfs have one UUID.
    let is_own = |volume: &&NamedVolume| {
        let is_same_btrfs = own.filesystem.as_deref() == Some("btrfs") && volume.uuid == own.uuid;
        volume.path == own.path || (is_same_btrfs && own.uuid.is_some())
    };
    if found.iter().any(is_own) {
        return None;
    }
    if let [other, ..] = found.as_slice() {
        return Some(other.path.clone());
    }
    // An identifier that the survey did not see of the running root may well be its own.
    let is_seen = match name {
        Name::PartUuid(_) => own.partuuid.is_some(),
        Name::Uuid(_) => own.uuid.is_some(),
        Name::Label(_) => own.label.is_some(),
        Name::PartLabel(_) => own.partlabel.is_some(),
        Name::Path(path) => name.is_known_to_kernel() && path != "/dev/root",
        Name::Other(_) => true,
    };
    is_seen.then(|| {
        if name.is_volume() { "no volume of this machine".into() } else { "no volume".into() }
    })
}

fn is_file(names: &BTreeSet<&str>, name: &str) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether a file is in the boot partition; below the top only as far as it was looked at.
fn is_there(situation: &PlanInput<'_>, point: &Path, names: &BTreeSet<&str>, name: &str) -> bool {
    let Some((directory, file)) = name.rsplit_once('/') else {
        return is_file(names, name);
    };
    match situation.facts.seen.get(&point.join(directory)) {
        Some(PathState::Directory(names)) => {
            names.iter().any(|known| known.eq_ignore_ascii_case(file))
        }
        _ => false,
    }
}

/// The texts that the settings include, and those that these include.
pub(crate) fn included(
    situation: &PlanInput<'_>,
    point: &Path,
    config: &ConfigTxt,
) -> BTreeMap<String, String> {
    config.included(&|name| situation.file(&point.join(name)).map(|file| file.text.clone()))
}

/// # Errors
/// Which included file is there, and cannot be read. The firmware passes over one that is not there.
fn readable(
    situation: &PlanInput<'_>,
    point: &Path,
    by: &Path,
    config: &ConfigTxt,
    texts: &BTreeMap<String, String>,
) -> Result<(), Found> {
    let inner =
        texts.iter().map(|(name, text)| (point.join(name), ConfigTxt::parse(text.as_str())));
    for (by, config) in std::iter::once((by.to_path_buf(), config.clone())).chain(inner) {
        for name in config.includes().into_iter().filter(|name| !texts.contains_key(*name)) {
            let path = point.join(name);
            if situation.facts.seen.get(&path) != Some(&PathState::Absent) {
                let includes = format!(", which {} includes", by.display());
                return Err(situation.presence(&path).followed_by(&includes));
            }
        }
    }
    Ok(())
}

/// Why a text that a plan may edit cannot be read.
fn unread(situation: &PlanInput<'_>, path: &Path) -> Found {
    let shown = path.display();
    match situation.facts.seen.get(path) {
        Some(PathState::Text(_)) => format!(
            "{shown} is UTF-16 and not UTF-8: the firmware finds no word in it; save it as UTF-8"
        )
        .into(),
        Some(PathState::Something) => {
            format!("{shown} is no text in UTF-8, or too large for one; save it as UTF-8").into()
        }
        _ if is_not_captured(situation) => Found {
            words: format!("{shown} is not in the capture"),
            is_denied: false,
            is_not_captured: true,
        },
        _ => situation.presence(path),
    }
}

/// Whether a capture holds nothing of the boot partition, which was mounted: that it has no files would be a wrong answer.
fn is_not_captured(situation: &PlanInput<'_>) -> bool {
    let machine = situation.machine;
    let is_captured = matches!(machine.origin, Origin::Capture { .. });
    let names = match situation.facts.seen.get(&boot_point(machine)) {
        Some(PathState::Directory(names)) => names.as_slice(),
        _ => &[],
    };
    is_captured && boot(machine).is_some() && names.is_empty()
}

fn text(sight: &PathState) -> Option<&TextFile> {
    match sight {
        PathState::Text(file) if !file.is_utf_16() => Some(file),
        _ => None,
    }
}

/// The disks that the machine starts from and runs on.
pub(crate) fn old_disks(machine: &Machine) -> Vec<&BlockDevice> {
    let mounts = [root(machine), boot(machine)].into_iter().flatten();
    let mut found: Vec<&BlockDevice> = Vec::new();
    for disk in mounts.flat_map(|mount| disks(machine, mount)) {
        if !found.iter().any(|known| known.name == disk.name) {
            found.push(disk);
        }
    }
    found
}

/// How the boot partition comes before another computer, for a board that does not start: "put the card into any PC".
pub(crate) fn way_to_boot_files(machine: &Machine) -> String {
    let disk = boot(machine).and_then(|mount| disks(machine, mount).into_iter().next());
    let mmc = disk.and_then(|disk| disk.mmc.as_ref());
    match disk {
        // An image is written to a card.
        None => "put the card into any PC".into(),
        Some(disk) if disk.name.starts_with("mmcblk") => {
            match mmc.and_then(|mmc| mmc.kind.text()) {
                Some("MMC") => {
                    "start the board from another medium, where its soldered flash is a disk".into()
                }
                _ => "put the card into any PC".into(),
            }
        }
        Some(disk) => {
            let model = disk.model.text().map_or(String::new(), |model| format!(", {model}"));
            format!("connect the disk that it starts from ({}{model}) to any PC", disk.name)
        }
    }
}

/// Whether the board starts from an SD card, as far as is known.
pub(crate) fn starts_from_card(machine: &Machine) -> bool {
    let disk = boot(machine).and_then(|mount| disks(machine, mount).into_iter().next());
    disk.is_none_or(|disk| disk.name.starts_with("mmcblk"))
}

/// The kernel's name of a disk by its path; a link is followed only through what the survey knows.
pub(crate) fn disk_name(path: &Path) -> &str {
    path.strip_prefix("/dev").ok().and_then(Path::to_str).unwrap_or_default()
}

/// What there is to copy on the root of the running system, bytes: all that is in use but active swap files.
pub(crate) fn used_bytes(situation: &PlanInput<'_>) -> Option<u64> {
    let in_use = match situation.facts.trees.get(Path::new("/")) {
        Some(size) => size.bytes,
        None => {
            let root = root(situation.machine)?;
            let size = root.size_bytes.get()?;
            size.checked_sub(root.available_bytes.get()?)?
        }
    };
    Some(in_use.saturating_sub(swap_file_bytes(situation.machine)))
}

/// The narrowest hop on the way to a disk.
pub(crate) fn bus_bytes_per_second(disk: &BlockDevice) -> Option<(f64, String)> {
    let hops = disk.path.iter().filter_map(|hop| {
        let rate = hop.usable_bytes_per_second.value()?;
        Some((*rate, hop))
    });
    let (rate, hop) = hops.min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some((rate, format!("the disk was not measured; {} carries this", hop.link)))
}
