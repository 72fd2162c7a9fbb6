//! What must hold before a root is moved, and what was found.

use std::path::{Path, PathBuf};

use super::super::moving::checks::{self as moving, setting};
use super::super::moving::foreseen::{self, NextStart};
use super::super::moving::steps::config_text;
use super::super::programs::{look as look_for, paths as program_paths};
use super::super::tables::{self, About};
use super::super::{Answer, Found, PlanBuilder, PlanInput, disks, distribution, zswap};
use super::compression::{Chosen, choose};
use super::current::{self, FSTAB, Start, disk_name, old_disks, used_bytes};
use super::fallback::Fallback;
use super::filesystem::RootFilesystem;
use super::layout::{NewDisk, new_disk};
use super::options::{Choice, Compress, SwapKind};
use super::scene::Scene;
use super::{gains, memory, root, trial};
use rubus_boot::fstab::Fstab;
use rubus_boot::volume::NamedVolume;
use rubus_change::plan::TextFile;
use rubus_change::plan::volume::DiskIdentity;
use rubus_draw::quote::quote;
use rubus_draw::text::listed;
use rubus_machine::in_use::{free_disks, is_on, uses};
use rubus_vocabulary::machine::{BlockDevice, BlockKind, Machine};
use rubus_vocabulary::units::{bytes_iec, bytes_si};

/// What to look at for the checks.
pub(super) fn paths() -> Vec<PathBuf> {
    let mut paths = moving::paths();
    paths.extend(tables::paths().map(PathBuf::from));
    paths.extend(program_paths(all_programs().map(|(program, _)| program)));
    paths
}

/// Programs of every way, with their Debian packages.
const PROGRAMS: [(&str, &str); 2] = [("mkinitramfs", INITRAMFS_TOOLS), ("mkswap", "util-linux")];
const INITRAMFS_TOOLS: &str = "initramfs-tools";
/// What a copy of the boot partition takes.
const BOOT_COPY: (&str, &str) = ("mkfs.vfat", "dosfstools");

/// Programs that the steps run, with their Debian packages.
fn programs(choice: &Choice) -> Vec<(&'static str, &'static str)> {
    let mut programs = choice.filesystem.programs().to_vec();
    programs.extend(PROGRAMS);
    programs.extend(choice.boot_copy.then_some(BOOT_COPY));
    programs
}

/// Those of every choice.
fn all_programs() -> impl Iterator<Item = (&'static str, &'static str)> {
    let made = RootFilesystem::ALL
        .into_iter()
        .flat_map(|filesystem| filesystem.programs().iter().copied());
    made.chain(PROGRAMS).chain([BOOT_COPY])
}

/// Checks everything; what the steps need, where enough was found.
pub(super) fn look<'a>(
    situation: &PlanInput<'a>,
    choice: &Choice,
    draft: &mut PlanBuilder,
) -> Option<Scene<'a>> {
    let machine = situation.machine;
    let start = moving::system(situation, draft);
    let disk = disk(situation, choice, draft);
    let old_disks = old_disks(machine);
    tools(situation, choice, draft);
    moving::quiet(situation, draft);
    let kernels = start
        .as_ref()
        .and_then(|start| moving::boot(situation, start, &choice.filesystem.needed(), draft));
    let fstab = situation.file(Path::new(FSTAB));
    draft.check(
        "the table of mounts can be read",
        fstab.is_some(),
        situation.presence(Path::new(FSTAB)),
        "this system is set up in another way; the recipe needs /etc/fstab",
    );
    compressed_swap(situation, choice, draft);
    let (start, disk, kernels, fstab) = (start?, disk?, kernels?, fstab?);
    tables::check(disk_name(&disk.path), &|_| false, situation, draft);
    let device = machine.device(disk_name(&disk.path))?;
    let link = gains::link(situation, Some(device));
    suited(situation, choice, draft);
    let chosen = choose(choice, &link, situation);
    let new = divided(situation, choice, disk, &chosen, draft)?;
    let (cmdlines, removed) = command_lines(situation, &start, &new, &chosen, draft)?;
    let table = root::fstab(&fstab.text, &new, machine);
    let config_txt = config_text(&start, &kernels);
    next_start(situation, &start, &config_txt, &cmdlines, &table.text, &new, draft);
    let is_tried = trial::is_made(situation, choice, &start, draft);
    let fallback = Fallback::of(situation, choice, &start, &old_disks, draft);
    Some(Scene {
        fallback,
        is_tried,
        trial_initramfs: is_tried.then(|| trial::initramfs(machine, &kernels)).flatten(),
        start,
        device,
        old_disks,
        kernels,
        table,
        chosen,
        link,
        new,
        cmdlines,
        removed,
    })
}

/// The disk that is to be the new root.
fn disk<'a>(
    situation: &PlanInput<'a>,
    choice: &Choice,
    draft: &mut PlanBuilder,
) -> Option<&'a DiskIdentity> {
    let machine = situation.machine;
    let path = choice.device.as_ref()?;
    let shown = path.display();
    let disk = match situation.facts.disks.get(path) {
        Some(Ok(disk)) => disk,
        other => {
            let why = match other {
                Some(Err(why)) => Found::from(why),
                _ => format!("{shown} was not looked at").into(),
            };
            let what = format!("{shown} is a disk that can be written to");
            draft.check(&what, false, why, &others(machine, path));
            return None;
        }
    };
    let model = disk.model.as_deref().unwrap_or("a disk without a name");
    let holds = if disk.contents.is_empty() {
        "nothing was found on it".to_string()
    } else {
        format!("the change erases what it holds: {}", disk.contents.join(", "))
    };
    draft.check(
        &format!("{shown} is a disk that can be written to"),
        true,
        format!("{model}, {}; {holds}", bytes_si(disk.size_bytes)),
        "",
    );
    let name = disk_name(&disk.path);
    if disks::is_on_network(machine, name) {
        draft.check(
            "it is a disk of this machine",
            false,
            format!("{shown} is a network disk"),
            "take a disk that is plugged in: swap over the network stops a machine that is short of memory, and this boot \
             finds no disk over the network",
        );
    }
    let used_for = uses(machine, name);
    draft.check(
        "the running system does not use it",
        used_for.is_empty(),
        if used_for.is_empty() {
            "neither root, boot partition nor swap is on it, and nothing of it is mounted".into()
        } else {
            used_for.join(", ")
        },
        &taken_out_of_use(machine, path),
    );
    let marks: Vec<String> = [
        disk.serial
            .as_ref()
            .filter(|_| disk.has_own_number())
            .map(|serial| format!("serial number {serial}")),
        disk.wwn.as_ref().map(|wwn| format!("world-wide name {wwn}")),
        disk.diskseq.map(|number| format!("number {number} of this boot")),
    ]
    .into_iter()
    .flatten()
    .collect();
    draft.check(
        "the disk is uniquely identifiable",
        !marks.is_empty(),
        if marks.is_empty() {
            "it has neither a serial number of its own nor a world-wide name".into()
        } else if !disk.has_own_number() {
            format!("{} alone: it has no serial number of its own", marks.join(", "))
        } else {
            marks.join(", ")
        },
        "use a disk or enclosure with a serial number, or a kernel from 5.15 on",
    );
    Some(disk)
}

/// "`sudo umount /srv/data` first, if …; or another disk: …". Of what the system itself uses only another disk helps.
fn taken_out_of_use(machine: &Machine, path: &Path) -> String {
    let disk = disk_name(path);
    let others = others(machine, path);
    let points = points_on(machine, disk);
    let is_systems = |point: &&str| *point == "/" || point.starts_with("/boot");
    if points.is_empty() || points.iter().any(is_systems) {
        return format!("name another disk; {others}");
    }
    let points: Vec<String> = points.iter().map(|point| quote(point)).collect();
    format!(
        "copy what you need from it to another machine or a new disk, then `sudo umount {}`: the change erases this disk; {others}",
        points.join(" ")
    )
}

/// Where what lies on a disk is mounted.
fn points_on<'m>(machine: &'m Machine, disk: &str) -> Vec<&'m str> {
    let mounts = machine.mounts.iter();
    let mounts = mounts
        .filter(|mount| mount.device.as_deref().is_some_and(|device| is_on(machine, device, disk)));
    mounts.map(|mount| mount.point.as_str()).collect()
}

/// The disks that could be named: those that hold nothing. What is unused and holds data is named as that.
pub(super) fn others(machine: &Machine, not: &Path) -> String {
    let disks = free_disks(machine);
    let disks = disks.filter(|device| Path::new("/dev").join(&device.name) != not);
    let (empty, full): (Vec<_>, Vec<_>) = disks.partition(|disk| holds(machine, disk).is_empty());
    let each = |disks: &[&BlockDevice], words: fn(&Machine, &BlockDevice) -> String| {
        let all: Vec<String> = disks.iter().map(|disk| words(machine, disk)).collect();
        all.join("; ")
    };
    if !empty.is_empty() {
        return format!("empty here: {}", each(&empty, as_an_option));
    }
    let in_use = in_use_besides_system(machine, not);
    match (full.is_empty(), in_use.is_empty()) {
        (true, true) => "this machine shows no other disk that is free: plug one in".into(),
        (true, false) => format!("no other is free: {}", in_use.join("; ")),
        (false, _) => {
            let mut words = vec![each(&full, what_it_holds)];
            words.extend(in_use);
            format!("no other is empty: {}; device=DISK erases that disk", words.join("; "))
        }
    }
}

/// "sda (SSD, 240 GB) is mounted at /srv/data", of disks that the system can do without.
fn in_use_besides_system(machine: &Machine, not: &Path) -> Vec<String> {
    let disks = machine.block_devices.iter().filter(|device| {
        device.kind == BlockKind::Disk
            && device.parent.is_none()
            && Path::new("/dev").join(&device.name) != not
    });
    let used = disks.filter_map(|disk| {
        let points = points_on(machine, &disk.name);
        let is_data = |point: &&str| {
            ["/srv", "/mnt", "/media", "/data"].iter().any(|top| Path::new(point).starts_with(top))
        };
        (!points.is_empty() && points.iter().all(is_data))
            .then(|| format!("{} is mounted at {}", about(disk), points.join(", ")))
    });
    used.collect()
}

/// "device=/dev/sda (SSD, 240 GB)".
fn as_an_option(_: &Machine, disk: &BlockDevice) -> String {
    format!("device=/dev/{}", about(disk))
}

/// "sda (SSD, 240 GB)".
fn about(disk: &BlockDevice) -> String {
    let size = disk.size_bytes.get().map_or(String::new(), |size| format!(", {}", bytes_si(size)));
    format!("{} ({}{size})", disk.name, disk.model.text().unwrap_or("no name"))
}

/// "sdb (stick, 30.8 GB) holds exfat "BACKUP"".
fn what_it_holds(machine: &Machine, disk: &BlockDevice) -> String {
    format!("{} holds {}", about(disk), holds(machine, disk).join(", "))
}

/// The filesystems, swap areas and members of a disk and its partitions, each with its label.
fn holds(machine: &Machine, disk: &BlockDevice) -> Vec<String> {
    let is_of_it = |device: &&BlockDevice| {
        device.name == disk.name || device.parent.as_deref() == Some(&disk.name)
    };
    let named = |device: &BlockDevice| {
        let content = device.content.text()?;
        let is_table = content.starts_with("partition table");
        let label = device.identity.label.as_ref().map(|label| format!(" \"{label}\""));
        (!is_table).then(|| format!("{content}{}", label.unwrap_or_default()))
    };
    machine.block_devices.iter().filter(is_of_it).filter_map(named).collect()
}

fn tools(situation: &PlanInput<'_>, choice: &Choice, draft: &mut PlanBuilder) {
    let needed: Vec<(&str, &str)> = programs(choice);
    let answers = |answer: Answer| {
        let is_it = |(program, _): &&(&str, &str)| look_for(program, situation).0 == answer;
        needed.iter().filter(is_it).copied().collect::<Vec<_>>()
    };
    let (mut missing, mut unknown) = (answers(Answer::Fails), answers(Answer::Unknown));
    // What no package of this system has is missing, whatever a capture holds.
    let has_no_package = |(_, package): &(&str, &str)| {
        *package == INITRAMFS_TOOLS && !distribution::is_debian(situation.machine)
    };
    missing.extend(unknown.iter().copied().filter(has_no_package));
    unknown.retain(|program| !has_no_package(program));
    let names = |of: &[(&str, &str)]| -> Vec<String> {
        of.iter().map(|(program, _)| (*program).to_string()).collect()
    };
    let (answer, found) = match (&missing[..], &unknown[..]) {
        ([], []) => (Answer::Holds, names(&needed).join(", ")),
        ([], unknown) => (
            Answer::Unknown,
            format!("not known: it does not say whether {} are there", listed(&names(unknown))),
        ),
        (missing, _) => (Answer::Fails, format!("there is no {}", names(missing).join(", no "))),
    };
    let mut packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    packages.dedup();
    let remedy = missing_programs(situation.machine, &packages);
    draft.check("the required programs are installed", answer, found, &remedy);
}

/// Only Debian and what is made from it has initramfs-tools.
fn missing_programs(machine: &Machine, packages: &[&str]) -> String {
    if packages.contains(&INITRAMFS_TOOLS) && !distribution::is_debian(machine) {
        "this recipe makes initial RAM filesystems with Debian's initramfs-tools, which this system does not have. \
                 Install the system afresh on the other disk"
            .into()
    } else {
        distribution::install(machine, packages)
    }
}

/// What was asked for has to be something that the filesystem can.
pub(super) fn suited(situation: &PlanInput<'_>, choice: &Choice, draft: &mut PlanBuilder) {
    let name = choice.filesystem.name();
    let page_bytes = match situation.facts.image {
        None => situation.machine.system.page_bytes.get(),
        // The board's, which this machine does not know.
        Some(_) => None,
    };
    let in_file = choice.swap == SwapKind::File;
    if let Some((found, remedy)) = choice.filesystem.obstacle(page_bytes, in_file) {
        draft.check(&format!("{name} can be the new root"), false, found.to_string(), remedy);
    }
    if let (Compress::Method(method), false) = (&choice.compress, choice.filesystem.is_btrfs()) {
        draft.check(
            "the new filesystem can compress",
            false,
            format!("compress={method} with filesystem={name}, which has no compression"),
            "leave compress= out, or take filesystem=btrfs",
        );
    }
}

pub(super) fn compressed_swap(situation: &PlanInput<'_>, choice: &Choice, draft: &mut PlanBuilder) {
    if choice.swap == SwapKind::None {
        return;
    }
    let config = setting(&situation.machine.kernel_config, "ZSWAP");
    let has = zswap::parameters(situation.machine).is_some();
    draft.check(
        "the kernel has zswap",
        has,
        match (has, config) {
            (true, Some("y")) if situation.facts.image.is_some() => {
                "yes (config-* in /boot of the image)".into()
            }
            (true, _) => format!("yes ({})", zswap::PARAMETERS),
            (false, Some(value)) => format!("no: CONFIG_ZSWAP is {value}"),
            (false, None) if situation.facts.image.is_some() => {
                "no config-* in /boot of the image says so for every kernel".into()
            }
            (false, None) => format!("no ({})", zswap::PARAMETERS),
        },
        "use the kernel of Raspberry Pi OS or Debian, or build yours with CONFIG_ZSWAP=y, CONFIG_ZSMALLOC=y and \
         CONFIG_CRYPTO_ZSTD=m; swap=none does without",
    );
}

/// What the final proof will ask is asked now, before the disk is erased.
fn next_start(
    situation: &PlanInput<'_>,
    start: &Start<'_>,
    config_txt: &str,
    cmdlines: &[(String, &TextFile, String)],
    fstab: &str,
    new: &NewDisk,
    draft: &mut PlanBuilder,
) {
    let disk = disk_name(&new.disk.path);
    // These lines have a check of their own.
    let about = About::new(disk, situation);
    let mut table = Fstab::parse(fstab);
    table.remove(|entry| about.is_about(entry));
    let mut volumes = foreseen::staying(situation, Some(disk));
    volumes.extend(new.volumes());
    let boot = current::boot(situation.machine).and_then(|boot| boot.device.as_ref());
    let boot = boot.map(|device| format!("/dev/{device}"));
    let next = NextStart {
        start,
        config_txt,
        cmdlines,
        fstab: table.text(),
        volumes: &volumes,
        firmware_volume: boot.as_deref(),
    };
    foreseen::check(&next, situation, draft);
}

/// Whether everything fits, and the disk divided.
fn divided(
    situation: &PlanInput<'_>,
    choice: &Choice,
    disk: &DiskIdentity,
    chosen: &Chosen,
    draft: &mut PlanBuilder,
) -> Option<NewDisk> {
    let what = "everything fits on it";
    let Some(used) = used_bytes(situation) else {
        let found = "it is unknown how much space the running system takes".to_string();
        draft.check(what, false, found, "mount / so that its size can be read");
        return None;
    };
    let memory = situation.machine.memory.total_bytes.get();
    let swap = memory::swap_bytes(choice, memory, disk.size_bytes);
    let swap = if choice.swap == SwapKind::None { 0 } else { swap };
    let least = choice.filesystem.root_min_bytes(used, chosen.share());
    let method = chosen.method.as_deref();
    let made = new_disk(situation, choice, disk, least, swap, method);
    let compressed = match &chosen.forecast {
        Some(forecast) => format!(", {:.2} times smaller when compressed", forecast.ratio),
        None => String::new(),
    };
    let need = format!(
        "{} are in use{compressed}; with 15 % to spare{} {} are needed",
        bytes_iec(used),
        if swap > 0 { format!(" and {} of swap", bytes_iec(swap)) } else { String::new() },
        bytes_iec(least.saturating_add(swap))
    );
    let found = match &made {
        Ok(_) => format!("{need}, it has {}", bytes_iec(disk.size_bytes)),
        Err(error) => format!("{need}: {error}"),
    };
    draft.check(
        what,
        made.is_ok(),
        found,
        "take a larger disk, remove what you do not need, or wish for less swap (swap-size=)",
    );
    made.ok()
}

/// The command lines of the new root, and the words that they lose.
pub(super) fn command_lines<'a>(
    situation: &PlanInput<'_>,
    start: &Start<'a>,
    new: &NewDisk,
    chosen: &Chosen,
    draft: &mut PlanBuilder,
) -> Option<(moving::CommandLines<'a>, Vec<String>)> {
    let is_32_bit_arm = situation.has_32_bit_arm_kernel();
    let mut removed = Vec::new();
    let lines = moving::command_lines(start, draft, |old| {
        let (text, words) = root::cmdline(old, new, chosen.method.as_deref(), is_32_bit_arm)?;
        removed.extend(words);
        Ok(text)
    })?;
    Some((lines, removed))
}

/// Whether the change is made already, in words.
pub(super) fn already(situation: &PlanInput<'_>, choice: &Choice) -> Option<(String, String)> {
    let machine = situation.machine;
    let path = choice.device.as_ref()?;
    let disk = match situation.facts.disks.get(path) {
        Some(Ok(disk)) => disk_name(&disk.path),
        _ => disk_name(path),
    };
    let root = current::root(machine)?;
    let is_there = |device: &str| is_on(machine, device, disk);
    let name = choice.filesystem.name();
    if root.filesystem == name && root.device.as_deref().is_some_and(is_there) {
        let options = choice.filesystem.mount_options(root.compression.as_deref());
        let note = "The root is on that disk already; `rubus verify` looks whether everything is as promised.";
        let compression = if choice.filesystem.is_btrfs() {
            " Another compression is a word in /etc/fstab and in cmdline.txt."
        } else {
            ""
        };
        return Some((
            format!("/ is {name} on {} ({options})", root.source),
            format!("{note}{compression}"),
        ));
    }
    // Without it another program wrote the command line, and the disk is not what this change would make of it.
    let start = Start::of(situation).ok().filter(Start::has_kept_command_line)?;
    let known = NamedVolume::all_of(machine);
    let roots = start.roots(&known);
    let next = roots.iter().find(|volume| {
        let device = volume.path.strip_prefix("/dev/").unwrap_or_default();
        is_there(device) && volume.filesystem.as_deref() == Some(name)
    })?;
    Some((
        format!("the next start is from {name} on {}", next.path),
        "The change is made and waits for the next boot: start the machine again.".into(),
    ))
}
