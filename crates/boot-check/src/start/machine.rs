//! The start of a machine that runs, or of a captured one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rubus_boot::chain::{ChainFacts, Choice, RootFiles, Running, StartChain, named_root, paths};
use rubus_boot::eeprom::Eeprom;
use rubus_boot::medium::{
    Certainty, Medium, kernels_are_elsewhere, mounted_on_demand, start_medium,
};
use rubus_boot::model::{Kernels, Model};
use rubus_boot::proof::{BootPartition, Images};
use rubus_boot::volume::NamedVolume;
use rubus_host::{Files, ReadError};
use rubus_vocabulary::machine::{BlockDevice, Machine, Mount, Origin};

use super::boot_files::BootFiles;
use super::ladder::{self, mode_of};
use super::root_files::{init_of, modules_into, root_files, unread};
use super::{Start, THIS_MACHINE};

const BOOT_POINTS: [&str; 2] = ["/boot/firmware", "/boot"];
const FAT: [&str; 2] = ["vfat", "msdos"];
/// Writes each kernel that is installed to /boot/firmware.
const UPDATE_HOOK: &str = "/etc/kernel/postinst.d/z50-raspi-firmware";

/// Follows the start of the machine that `files` shows.
pub fn of_machine(files: &dyn Files, machine: &Machine) -> Start {
    let is_whole = matches!(machine.origin, Origin::Live);
    let mut facts = facts(files, machine, is_whole);
    facts.eeprom.settings = eeprom_settings(files, &facts.model);
    boot_files_into(files, machine, &mut facts);
    root_into(files, machine, is_whole, &mut facts);
    let chain = StartChain::of(&facts);
    let rungs = ladder::of_machine(machine, &facts, &chain);
    let of = match &machine.origin {
        Origin::Live => THIS_MACHINE.to_string(),
        Origin::Capture { path, .. } => path.clone(),
    };
    Start { of, facts, chain, rungs }
}

/// The command lines that the next start may use, by their paths. Kernels and initial RAM filesystems are not looked into.
pub fn command_lines(files: &dyn Files, machine: &Machine) -> BTreeMap<PathBuf, String> {
    if Model::of(&machine.board).kernels == Kernels::Named {
        return BTreeMap::new();
    }
    let mut facts = facts(files, machine, matches!(machine.origin, Origin::Live));
    let Some(point) = boot_point(machine, &facts.medium) else { return BTreeMap::new() };
    let Ok(mut boot) = BootFiles::at(files, &point) else { return BTreeMap::new() };
    boot.texts_into(&mut facts);
    let lines = paths(&facts).into_iter().filter_map(|path| {
        let text = facts.partition.text(&path.cmdline)?.to_string();
        Some((point.join(&path.cmdline), text))
    });
    lines.collect()
}

/// The settings of the EEPROM, which a program is asked for, are not among them.
fn facts(files: &dyn Files, machine: &Machine, is_whole: bool) -> ChainFacts {
    let model = Model::of(&machine.board);
    let medium = with_partition(files, machine, start_medium(machine), &model);
    let disk = medium.disks.first().and_then(|name| machine.device(name));
    let bootloader = machine.board.bootloader.get();
    ChainFacts {
        board: machine.board.model.text().unwrap_or("this board").to_string(),
        serial: serial(machine),
        other_loader: other_loader(files, &model),
        eeprom: Eeprom {
            built_unix_s: bootloader.and_then(|told| told.built_unix_s).map(u64::from),
            settings: None,
        },
        bootloader,
        mode: if medium.disks.len() == 1 { disk.and_then(mode_of) } else { None },
        table: None,
        choice: Choice::OthersUnread,
        partition: BootPartition::default(),
        is_whole,
        unread: None,
        encodings: Default::default(),
        images: Images::default(),
        loaders: Default::default(),
        faulty_kernels: Default::default(),
        volumes: NamedVolume::all_of(machine),
        are_all_volumes: true,
        mounted_boot: mounted_boot(machine, &medium),
        kernels_are_elsewhere: kernels_are_elsewhere(machine),
        updates_miss_mount: updates_miss_mount(files, machine),
        root: RootFiles::default(),
        running: Some(Running {
            root: root_mount(machine).and_then(|mount| mount.device.clone()).map(node),
            subvolume: root_mount(machine)
                .filter(|mount| mount.filesystem == "btrfs")
                .map(|mount| mount.root.clone()),
            release: machine.system.kernel_release.text().map(str::to_string),
            command_line: machine.system.command_line.text().map(str::to_string),
            had_initramfs: had_initramfs(files, is_whole),
        }),
        medium,
        model,
    }
}

/// Systems that were upgraded in place from before Debian 12 may still mount the partition where kernels went then. Source:
/// RPi-Distro/repo, issue 355; the package raspi-firmware.
fn updates_miss_mount(files: &dyn Files, machine: &Machine) -> bool {
    let is_at = |point: &str| {
        let mut mounts = machine.mounts.iter();
        mounts.any(|mount| mount.point == point && FAT.contains(&mount.filesystem.as_str()))
    };
    is_at("/boot") && !is_at("/boot/firmware") && files.exists(Path::new(UPDATE_HOOK))
}

/// Firmware hands the place of an initial RAM filesystem to the kernel. Source: Devicetree Specification and Linux,
/// Documentation/devicetree/usage-model.rst, `chosen`.
fn had_initramfs(files: &dyn Files, is_whole: bool) -> Option<bool> {
    let chosen = Path::new("/proc/device-tree/chosen");
    let was_given = files.exists(&chosen.join("linux,initrd-start"));
    (was_given || is_whole && files.exists(chosen)).then_some(was_given)
}

fn node(name: String) -> String {
    format!("/dev/{name}")
}

fn serial(machine: &Machine) -> Option<u64> {
    let text = machine.board.serial.text()?;
    u64::from_str_radix(text, 16).ok()
}

/// Boards that are no Raspberry Pi start in other ways.
fn other_loader(files: &dyn Files, model: &Model) -> Option<String> {
    if model.kernels != Kernels::Named {
        return None;
    }
    let has = |path: &str| files.exists(Path::new(path));
    if has("/sys/firmware/efi") {
        return Some("UEFI (with GRUB, systemd-boot or the like)".into());
    }
    if has("/boot/extlinux/extlinux.conf") {
        return Some("U-Boot with extlinux.conf".into());
    }
    if has("/boot/armbianEnv.txt") || has("/boot/boot.scr") {
        return Some("U-Boot with a boot script".into());
    }
    has("/boot/grub").then(|| "the BIOS with GRUB".into())
}

/// Users in the group `video` may ask for them.
fn eeprom_settings(files: &dyn Files, model: &Model) -> Option<String> {
    if !matches!(model.kernels, Kernels::Armv8Or7l | Kernels::Bcm2712) {
        return None;
    }
    let text = files.ask("vcgencmd", &["bootloader_config"]).ok()?;
    text.contains('=').then_some(text)
}

/// Where nothing says which partition was read, it is the first FAT partition of the one disk.
fn with_partition(
    files: &dyn Files,
    machine: &Machine,
    mut medium: Medium,
    model: &Model,
) -> Medium {
    let is_pi = model.kernels != Kernels::Named;
    if let ([disk], None, true) = (medium.disks.as_slice(), &medium.partition, is_pi) {
        let is_first = |part: &&BlockDevice| {
            let is_fat = part.content.text().is_some_and(|kind| FAT.contains(&kind));
            part.parent.as_ref() == Some(disk) && is_fat
        };
        medium.partition = machine.block_devices.iter().find(is_first).map(|one| one.name.clone());
        medium.certainty = medium.certainty.min(Certainty::Likely);
        // Some systems mount it at a place of their own.
        let point = boot_point(machine, &medium);
        if let Some(point) = point.filter(|point| files.exists(&point.join("config.txt"))) {
            medium.certainty = Certainty::Likely;
            medium.why = format!("{} is on it", point.display());
        }
    }
    medium
}

fn root_mount(machine: &Machine) -> Option<&Mount> {
    machine.mounts.iter().rfind(|mount| mount.point == "/")
}

/// What is mounted at the usual place, else wherever the partition that is read is mounted.
fn mounted_boot(machine: &Machine, medium: &Medium) -> Option<String> {
    let at = |point: &&str| {
        let mut mounts = machine.mounts.iter().rev();
        mounts.find(|mount| mount.point == **point && FAT.contains(&mount.filesystem.as_str()))
    };
    let usual = BOOT_POINTS.iter().find_map(at).and_then(|mount| mount.device.clone());
    let read = medium.partition.clone().filter(|_| boot_point(machine, medium).is_some());
    usual.or(read).map(node)
}

/// Where the partition that the firmware read is mounted.
fn boot_point(machine: &Machine, medium: &Medium) -> Option<PathBuf> {
    let partition = medium.partition.as_deref()?;
    // Alpine shows a directory of it at /boot, and the whole at /media/mmcblk0p1.
    let of_it = |mount: &&Mount| mount.device.as_deref() == Some(partition) && mount.root == "/";
    let points: Vec<&str> =
        machine.mounts.iter().rev().filter(of_it).map(|mount| mount.point.as_str()).collect();
    let usual = BOOT_POINTS.iter().find(|point| points.contains(point)).copied();
    let on_demand = || mounted_on_demand(machine, partition);
    usual.or(points.first().copied()).or_else(on_demand).map(PathBuf::from)
}

fn boot_files_into(files: &dyn Files, machine: &Machine, facts: &mut ChainFacts) {
    if facts.model.kernels == Kernels::Named {
        return;
    }
    let Some(point) = boot_point(machine, &facts.medium) else {
        facts.unread = Some(match (&facts.medium.partition, facts.medium.disks.is_empty()) {
            (Some(partition), _) => {
                format!("{partition} is not mounted, so its files are not known")
            }
            (None, true) => "no boot partition is known".into(),
            (None, false) => "which partition of it is read is not known".into(),
        });
        return;
    };
    match BootFiles::at(files, &point) {
        Ok(mut boot) => {
            boot.texts_into(facts);
            boot.images_into(facts);
        }
        Err(why) => facts.unread = Some(unread_boot_files(machine, facts, &point, &why)),
    }
}

/// Why the boot files could not be read from where they are mounted.
fn unread_boot_files(
    machine: &Machine,
    facts: &ChainFacts,
    point: &Path,
    why: &ReadError,
) -> String {
    let of = facts.medium.partition.as_ref().map_or(String::new(), |name| format!(" of {name}"));
    let point = point.display();
    match (&machine.origin, why) {
        (Origin::Capture { .. }, ReadError::Absent) => {
            format!("the boot files{of} ({point}) are not in the capture")
        }
        _ => format!("the boot files{of} cannot be read: {point}: {why}"),
    }
}

/// The files of the root that the command line names, where it is the one that runs.
fn root_into(files: &dyn Files, machine: &Machine, is_whole: bool, facts: &mut ChainFacts) {
    let path = paths(facts).into_iter().next();
    let named = path.as_ref().and_then(|path| named_root(facts, path)).map(|one| one.path.clone());
    let running = facts.running.as_ref().and_then(|running| running.root.clone());
    let is_other = matches!((&named, &running), (Some(named), Some(running)) if named != running);
    if is_other {
        let named = named.unwrap_or_default();
        facts.root = unread(format!("{named} is not the running root; its files were not read"));
        return;
    }
    let init = path.as_ref().and_then(|path| init_of(facts, path));
    facts.root = root_files(files, is_whole, init.as_deref());
    facts.root.subvolumes = mounted_subvolumes(machine);
    modules_into(files, facts);
}

/// The subvolumes of the running root that are mounted: they are there.
fn mounted_subvolumes(machine: &Machine) -> Option<BTreeSet<String>> {
    let root = root_mount(machine).filter(|mount| mount.filesystem == "btrfs")?;
    let same = machine.mounts.iter().filter(|mount| mount.device == root.device);
    Some(same.map(|mount| mount.root.trim_matches('/').to_string()).collect())
}
