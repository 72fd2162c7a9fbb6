//! What must hold before a running root is moved, whatever it is moved to.

use std::path::PathBuf;

use super::super::{NextStart, PathState, PlanBuilder, PlanInput, distribution};
use super::current::{self, Start};
use super::kernels::{Has, Kernel, has, kernels};
use rubus_boot::chain::Stop;
use rubus_boot::cmdline_txt::{CmdlineError, CmdlineTxt};
use rubus_boot::medium::{boot_point_on_demand, mounted_on_demand, start_medium};
use rubus_boot::model::{Kernels, Model};
use rubus_change::plan::TextFile;
use rubus_vocabulary::machine::{BlockKind, Machine, Mount, Setting};
use rubus_vocabulary::units::bytes_iec;

const MIB: u64 = 1 << 20;
/// Names of programs that install packages.
const INSTALLERS: [&str; 7] =
    ["apt", "apt-get", "aptitude", "dpkg", "unattended-upgr", "packagekitd", "rpi-update"];
/// The copy and the initial RAM filesystem need some memory, and swap on a card would be slow.
const MIN_AVAILABLE_BYTES: u64 = 64 * MIB;
/// What an initial RAM filesystem with the drivers of all disks may take, beside the one that is kept.
pub(crate) const INITRAMFS_BYTES: u64 = 40 * MIB;

/// Where a copy of the root alone would lack what makes its initial RAM filesystem.
const NEEDED: [&str; 12] = [
    "/bin",
    "/etc",
    "/lib",
    "/lib/modules",
    "/sbin",
    "/usr",
    "/usr/bin",
    "/usr/lib",
    "/usr/lib/modules",
    "/usr/sbin",
    "/usr/share",
    "/var",
];

/// What to do on boards that other loaders start.
const OTHER_BOARD: &str = "this board does not start from config.txt and cmdline.txt, which this recipe changes; install the system on \
    the other disk with the means of its makers";

/// What to look at for these checks, besides the boot partition and the kernels.
pub(crate) fn paths() -> Vec<PathBuf> {
    vec!["/proc/*/comm".into(), current::FSTAB.into()]
}

/// Files with the kernel's command line: the name, what is in the file, and what will be.
pub(crate) type CommandLines<'a> = Vec<(String, &'a TextFile, String)>;

/// The command lines, each as `changed` makes it; a check fails where one would be too long.
pub(crate) fn command_lines<'a>(
    start: &Start<'a>,
    draft: &mut PlanBuilder,
    mut changed: impl FnMut(&str) -> Result<String, CmdlineError>,
) -> Option<CommandLines<'a>> {
    let mut lines = Vec::new();
    for (name, file) in &start.cmdlines {
        match changed(&file.text) {
            Ok(text) => lines.push((name.clone(), *file, text)),
            Err(error) => {
                draft.check(
                    "the kernel's command line has room",
                    false,
                    format!("{name}: {error}"),
                    "take words out of it that you do not need",
                );
                return None;
            }
        }
    }
    Some(lines)
}

/// The running system and how it starts.
pub(crate) fn system<'a>(situation: &PlanInput<'a>, draft: &mut PlanBuilder) -> Option<Start<'a>> {
    let machine = situation.machine;
    let root = current::root(machine);
    let is_on_disk = root.is_some_and(|root| !current::disks(machine, root).is_empty());
    draft.check(
        "the running system is on a disk of its own",
        is_on_disk,
        match root {
            Some(root) if root.filesystem == "btrfs" => format!(
                "/ is btrfs on {}; subvolumes and snapshots within it become directories of the copy",
                root.source
            ),
            Some(root) => format!("/ is {} on {}", root.filesystem, root.source),
            None => "it is unknown what is mounted at /".into(),
        },
        &own_disk(machine, root),
    );
    stacked(machine, draft);
    in_one(machine, draft);
    let boot = current::boot(machine);
    draft.check(
        "the boot partition is mounted",
        boot.is_some(),
        match boot {
            Some(boot) => format!("{} is {} on {}", boot.point, boot.filesystem, boot.source),
            None => "no FAT filesystem is mounted at /boot/firmware or /boot".into(),
        },
        &boot_mounted(machine),
    );
    writable(situation, boot?, draft);
    let start = Start::of(situation);
    let found = match &start {
        Ok(start) => {
            let first = start.paths.first();
            let first = first
                .map_or(String::new(), |path| format!("{} with {}", path.kernel, path.cmdline));
            format!("config.txt leads to {first}").into()
        }
        Err(what) => what.clone(),
    };
    draft.check(
        "how the board starts is known",
        start.is_ok(),
        found,
        // An EFI system partition is FAT, too.
        if Model::of(&machine.board).kernels == Kernels::Named {
            OTHER_BOARD
        } else {
            "mount the boot partition that the firmware reads (`rubus boot` says which): the recipe changes its config.txt and cmdline.txt"
        },
    );
    if let Ok(start) = &start {
        own_boot_files(start, draft);
    }
    let other_root = start.as_ref().ok().and_then(|start| start.other_root(situation));
    if start.is_ok() && other_root.is_none() {
        would_start(situation, Edited::CommandLine, draft);
    }
    if let Some(found) = other_root {
        draft.check(
            "the next start is from the running root",
            false,
            found,
            "put root= of the running system into that line, or restart first, so that the system that is copied is the \
             one that starts",
        );
    }
    start.ok().filter(|_| is_on_disk)
}

/// What of the boot files a plan changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edited {
    /// Settings, which the firmware reads whatever it loads.
    Settings,
    /// What the kernel is told.
    CommandLine,
}

/// Whether the board would start as it is now, from the files that are changed: what is not certain beside that is a caution.
pub(crate) fn would_start(situation: &PlanInput<'_>, edited: Edited, draft: &mut PlanBuilder) {
    let (what, stop) = match (&situation.facts.next_start, edited) {
        (NextStart::NotAsked | NextStart::Starts, _) => return,
        (NextStart::Stops(stop), _) => ("the board would start as it is now", stop),
        (NextStart::Elsewhere(stop), _) | (NextStart::ByLoader(stop), Edited::CommandLine) => {
            ("the next start reads the files that are changed", stop)
        }
        (NextStart::ByLoader(Stop { why, .. }), Edited::Settings) | (NextStart::Unsure(why), _) => {
            let why = why.trim_start_matches("not certain: ");
            draft.risks.push(format!(
                "Whether the board starts as it is now is not certain: {why}. See `rubus boot`."
            ));
            return;
        }
    };
    draft.check(what, false, stop.why.as_str(), &stop.remedy);
}

/// What to do where no root of a disk is mounted.
fn own_disk(machine: &Machine, root: Option<&Mount>) -> String {
    let line = machine.system.command_line.text();
    let names_none = line.is_some_and(|line| CmdlineTxt::parse(line).get("root").is_none());
    if root.is_some() && names_none {
        // Volumio, Batocera and the like: an image, and an initial RAM filesystem that looks for it.
        return "this system puts its root together at each start, and a copy would not start; install it afresh on the other \
                disk"
            .into();
    }
    // A pool, a volume group, an encrypted volume.
    let is_stacked = root
        .is_some_and(|root| root.filesystem == "zfs" || root.source.starts_with("/dev/mapper/"));
    if is_stacked {
        return "this recipe moves roots on plain partitions only; install the system afresh on the other disk".into();
    }
    format!(
        "with an overlay switch that off{}; a root over the network is not copied",
        distribution::raspi_config(machine, "Performance Options, Overlay File System")
    )
}

/// How to get a boot partition mounted that is mounted on demand.
fn look_into(machine: &Machine) -> Option<String> {
    let read = start_medium(machine).partition;
    let point = match read.and_then(|read| mounted_on_demand(machine, &read)) {
        Some(point) => point,
        None => boot_point_on_demand(machine)?,
    };
    Some(format!("the next look into it mounts it: ls {point}; then plan again"))
}

/// How to get the boot partition mounted.
fn boot_mounted(machine: &Machine) -> String {
    if let Some(remedy) = look_into(machine) {
        return remedy;
    }
    if Model::of(&machine.board).kernels == Kernels::Named {
        return OTHER_BOARD.into();
    }
    if distribution::is_debian(machine) {
            "mount it (mount /boot/firmware); the recipe is for boards that start from config.txt and cmdline.txt"
        } else {
            "this recipe knows systems that mount the FAT partition with config.txt and cmdline.txt there; this one is set up in \
             another way"
        }
    .into()
}

/// How the board starts, where that is known; checks say so, and that its boot partition can be written to. `elsewhere`: what to do
/// on other machines.
pub(crate) fn start_is_known<'a>(
    situation: &PlanInput<'a>,
    edited: Edited,
    elsewhere: &str,
    draft: &mut PlanBuilder,
) -> Option<Start<'a>> {
    let boot = current::boot(situation.machine);
    let start = match boot {
        Some(_) => Start::of(situation),
        None => Err("no FAT filesystem is mounted at /boot/firmware or /boot".into()),
    };
    let on_demand = look_into(situation.machine).filter(|_| boot.is_none());
    draft.check(
        "how the board starts is known",
        start.is_ok(),
        match &start {
            Ok(start) => {
                let names: Vec<&str> = start.cmdlines.keys().map(String::as_str).collect();
                format!("with the command line in {}", names.join(", ")).into()
            }
            Err(what) => what.clone(),
        },
        on_demand.as_deref().unwrap_or(elsewhere),
    );
    if let (Ok(start), Some(boot)) = (&start, boot) {
        would_start(situation, edited, draft);
        if edited == Edited::CommandLine {
            stays(situation, start, draft);
        }
        writable(situation, boot, draft);
    }
    start.ok()
}

/// The boot partition can be written to.
fn writable(situation: &PlanInput<'_>, boot: &Mount, draft: &mut PlanBuilder) {
    let device = boot.device.as_deref().and_then(|name| situation.machine.device(name));
    let is_locked = device.and_then(|device| device.read_only.get()) == Some(true);
    let is_read_only = boot.options.iter().any(|option| option == "ro");
    let point = &boot.point;
    draft.check(
        "the boot partition can be written to",
        !is_locked && !is_read_only,
        match (is_locked, is_read_only) {
            (true, _) => format!("{} refuses writes", boot.source),
            (_, true) => format!("{point} is mounted read-only"),
            _ => format!("{point} is mounted read-write"),
        },
        &if is_locked { "look at the card's lock switch; a card that has locked itself is worn out".to_string() } else { format!(
                "sudo mount -o remount,rw {point}; where /etc/fstab says ro for it, take that out too, or updates cannot \
                 write kernels there{}",
                distribution::raspi_config(situation.machine, "Performance Options, Overlay File System")
            ) },
    );
}

/// No other command line takes the place of the one that is edited.
fn stays(situation: &PlanInput<'_>, start: &Start<'_>, draft: &mut PlanBuilder) {
    if let Some(found) = start.untried_set(situation) {
        draft.check(
            "no other boot files wait to be tried",
            false,
            found,
            "have that done first: sudo piboot-try --reboot; then plan again",
        );
    }
}

/// A set of boot files that other programs replace as a whole is not edited.
pub(crate) fn own_boot_files(start: &Start<'_>, draft: &mut PlanBuilder) {
    if let Some(found) = switched_by_others(start) {
        draft.check(
            "no other program switches the boot files",
            false,
            found,
            "this recipe changes one set of boot files, as Raspberry Pi OS and Debian have it; install the system \
             afresh on the other disk",
        );
    }
}

/// Ubuntu keeps whole sets of boot files below `current`, `new` and `old`, and switches between them with its own trial.
fn switched_by_others(start: &Start<'_>) -> Option<String> {
    let is_set = start.has_prefix && start.has("current");
    if is_set {
        return Some(format!(
            "config.txt loads a set of files below {} (os_prefix), which a new set replaces after each update of the kernel",
            start.point.join("current").display()
        ));
    }
    let mut below = start.paths.iter().filter_map(|path| path.cmdline.rsplit_once('/'));
    let (directory, _) = below.next()?;
    Some(format!(
        "config.txt loads the files below {} (os_prefix), which updates of the kernel do not reach",
        start.point.join(directory).display()
    ))
}

/// Only the root is copied; in the copy, its own programs make the initial RAM filesystem, below `/var/tmp`.
fn in_one(machine: &Machine, draft: &mut PlanBuilder) {
    let mounts = machine.mounts.iter().map(|mount| mount.point.as_str());
    let mut apart: Vec<&str> = mounts.filter(|point| NEEDED.contains(point)).collect();
    apart.sort_unstable();
    apart.dedup();
    if !apart.is_empty() {
        let apart = apart.join(", ");
        draft.check(
            "programs, settings and state are on the root",
            false,
            format!("another filesystem is mounted at {apart}: it is no part of the copy"),
            "copy what is mounted there to the root itself and take its line out of /etc/fstab, then plan again; or install the system \
             afresh on the other disk",
        );
    }
}

/// A root on a device mapper or an array is not moved: the copy of an encrypted one would lie there in plain text, and the
/// initial RAM filesystem that is made for the new root is not made to open the old one.
fn stacked(machine: &Machine, draft: &mut PlanBuilder) {
    let device = current::root(machine).and_then(|root| root.device.as_deref());
    let device = device.and_then(|name| machine.device(name));
    let Some(device) = device.filter(|device| matches!(device.kind, BlockKind::Dm | BlockKind::Md))
    else {
        return;
    };
    let model = device.model.text().unwrap_or("a device of the device mapper");
    draft.check(
        "the running root is on a partition of its own",
        false,
        match device.kind {
            BlockKind::Md => format!("it is on the array {}", device.name),
            _ if model.starts_with("LUKS") => {
                format!("it is on {} ({model}), encrypted: its copy would be plain text", device.name)
            }
            _ => format!(
                "it is on {} ({model}): if that is encrypted, its copy would be plain text",
                device.name
            ),
        },
        "this recipe moves roots on plain partitions only; install the system afresh on the other disk, with \
         encryption if you \
         want it",
    );
}

/// Nothing is in the way now.
pub(crate) fn quiet(situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let mut at_work: Vec<&str> = Vec::new();
    for (path, sight) in &situation.facts.seen {
        if let (true, PathState::Text(file)) = (path.ends_with("comm"), sight) {
            let name = file.text.trim();
            if path.starts_with("/proc") && INSTALLERS.contains(&name) && !at_work.contains(&name) {
                at_work.push(name);
            }
        }
    }
    draft.check(
        "no package manager is running",
        at_work.is_empty(),
        if at_work.is_empty() {
            "no apt, dpkg or rpi-update".into()
        } else {
            format!("{} runs", at_work.join(", "))
        },
        "wait until it has ended, or the copy has half of a package",
    );
    let power = &situation.machine.power.throttling;
    match power.value() {
        Some(word) => draft.check(
            "the supply voltage is sufficient now",
            !word.undervoltage_now,
            match (word.undervoltage_now, word.undervoltage_seen) {
                (true, _) => "too low",
                (false, true) => "yes, but it was too low at some time since the boot",
                (false, false) => "never too low since the boot",
            },
            "use a stronger power supply or a shorter cable; disks lose data before the board stops",
        ),
        // An unknown voltage is neither right nor wrong.
        None => draft.notes.push(format!(
            "Whether the supply voltage is sufficient is not known here ({}): a USB disk needs a power supply that carries it too.",
            power.reason().unwrap_or("it was not looked at")
        )),
    }
    let available = situation.machine.memory.available_bytes.get();
    draft.check(
        "there is enough memory",
        available.map(|bytes| bytes >= MIN_AVAILABLE_BYTES),
        match available {
            Some(bytes) => format!("{} available", bytes_iec(bytes)),
            None => "not known".into(),
        },
        "end some programs first",
    );
}

/// A part of the kernel that the new root needs.
pub(crate) struct Needed {
    /// The module's name.
    pub(crate) module: &'static str,
    /// The switch of the kernel's configuration, without `CONFIG_`.
    pub(crate) config: &'static str,
    /// Which kernels have it.
    pub(crate) remedy: &'static str,
}

/// The kernels that can be started, and room for their initial RAM filesystems.
pub(crate) fn boot(
    situation: &PlanInput<'_>,
    start: &Start<'_>,
    needed: &Needed,
    draft: &mut PlanBuilder,
) -> Option<Vec<Kernel>> {
    let module = needed.module;
    let machine = situation.machine;
    let kernels = match kernels(situation, start) {
        Ok(kernels) => kernels,
        Err(what) => {
            draft.check(
                "the kernels that can be started are known",
                false,
                format!("not known: {what}"),
                "name them in config.txt (kernel=, initramfs), with their modules in /lib/modules; where rpi-update was used, \
                 take the packages' kernel again, or remove from /lib/modules what is not started",
            );
            return None;
        }
    };
    let running = machine.system.kernel_release.text();
    let config = |name: &str| setting(&machine.kernel_config, name);
    let is_in = |kernel: &Kernel| {
        let by_config =
            || Some(kernel.release.as_str()) == running && config(needed.config) == Some("y");
        has(situation, &kernel.release, module) != Has::Not || by_config()
    };
    let words: Vec<String> = kernels
        .iter()
        .map(|kernel| {
            let has = if is_in(kernel) { "with" } else { "without" };
            format!("{} is {} {has} {module}", kernel.file, kernel.release)
        })
        .collect();
    draft.check(
        &format!("every kernel that can be started has {module}"),
        kernels.iter().all(is_in),
        words.join(", "),
        &distribution::kernel(machine, needed.remedy),
    );
    let blank: Vec<&str> = kernels
        .iter()
        .filter(|kernel| !kernel.is_loaded && !kernel.initramfs.starts_with("initramfs"))
        .map(|kernel| kernel.file.as_str())
        .collect();
    draft.check(
        "an initial RAM filesystem can be loaded with each",
        blank.is_empty(),
        if blank.is_empty() {
            kernels.iter().map(|kernel| kernel.initramfs.as_str()).collect::<Vec<_>>().join(", ")
        } else {
            format!("none is named for {}", blank.join(", "))
        },
        "write a line like `initramfs initrd.img followkernel` into config.txt and put one there",
    );
    if situation.facts.image.is_some() {
        // The new image gets a boot partition of its own.
        return Some(kernels);
    }
    let need = kernels.len() as u64 * INITRAMFS_BYTES;
    let available = current::boot(machine).and_then(|mount| mount.available_bytes.get());
    draft.check(
        "the boot partition has room for them",
        available.map(|bytes| bytes >= need),
        match available {
            Some(bytes) => {
                format!("{} free, at most {} are needed", bytes_iec(bytes), bytes_iec(need))
            }
            None => "not known".into(),
        },
        "remove kernels that you do not use any more",
    );
    Some(kernels)
}

pub(crate) fn setting<'a>(settings: &'a [Setting], name: &str) -> Option<&'a str> {
    let found = settings.iter().find(|setting| setting.name == name);
    found.and_then(|setting| setting.value.text())
}
