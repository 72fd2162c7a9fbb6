//! The kernel with its modules, and the initial RAM filesystem with what it can find.

use super::device_tree::Missing;
use super::link::{Doubt, Link, Stage, Subject};
use super::naming::{RootKind, root_filesystem, root_kind, root_name};
use super::remake::{Lacks, remake};
use super::running::{has_this_line, is_this_kernel, went_alone};
use super::width::{file_name, has_large_pages, is_32_bit};
use super::{ChainFacts, Fault, device_tree, drivers, setting};
use crate::cmdline_txt::CmdlineTxt;
use crate::config_txt::BootPath;
use crate::eeprom::Ability;
use crate::initramfs::Listing;
use crate::medium::Certainty;
use crate::model::Kernels;
use crate::modules::{Known, Modules};

pub(super) fn kernel(facts: &ChainFacts, path: &BootPath) -> Link {
    let link = Link::new(Stage::Kernel, path.kernel.as_str(), "config.txt");
    if let Some(stub) = &path.armstub
        && is_uefi(facts, stub)
    {
        let found =
            format!("armstub={stub} is UEFI, which starts the rest; its settings are not read");
        return link
            .not_known(found)
            .in_doubt_of(Doubt::Loader, "make this change in what UEFI starts (GRUB, systemd-boot)")
            .last();
    }
    match facts.partition.size_bytes(&path.kernel) {
        None => return missing(facts, path, link),
        Some(0) if facts.is_whole => {
            return link.stopped(format!("{} is empty", path.kernel), "install the kernel again");
        }
        Some(_) => {}
    }
    if let Some(directory) = hidden_by_label(facts, path) {
        return link
            .with(Certainty::Likely)
            .stopped(
                format!(
                    "the firmware finds nothing below {directory}/, since its partition has the same name as its label"
                ),
                "give the partition another label: sudo fatlabel DEVICE bootfs",
            )
            .unless_it_runs(is_this_kernel(facts, &path.kernel));
    }
    if let Some(loader) = loader(facts, &path.kernel) {
        return handed_on(path, loader, link);
    }
    match facts.faulty_kernels.get(&path.kernel) {
        Some(Fault::Cut) => {
            let why = format!("{} ends too early", path.kernel);
            return link.stopped(why, "install the kernel again");
        }
        Some(Fault::NoKernel) => {
            let remedy = "install the kernel again, unless it is a program that needs no system";
            return link
                .not_known(format!("{}: no kernel is recognised in it", path.kernel))
                .in_doubt_of(Doubt::Other, remedy)
                .last();
        }
        None => {}
    }
    let has_no_64_bit = matches!(facts.model.kernels, Kernels::Armv6 | Kernels::Armv7);
    if has_no_64_bit && is_32_bit(facts, path) == Some(false) {
        return link
            .stopped(
                format!("{} is a 64-bit kernel, and this board has no 64-bit mode", path.kernel),
                "name a 32-bit kernel in config.txt, or take arm_64bit= out",
            )
            .for_others()
            .unless_it_runs(is_this_kernel(facts, &path.kernel));
    }
    let looks: [fn(&ChainFacts, &BootPath, Link) -> Link; 4] =
        [with_mode, device_tree::check, with_pages, with_release];
    let is_judged = |link: &Link| link.stop.is_some() || link.certainty == Certainty::NotKnown;
    looks
        .iter()
        .fold(link, |link, look| if is_judged(&link) { link } else { look(facts, path, link) })
}

/// The directory of the kernel or an initramfs, where the label of the boot partition is the same name: the firmware takes the
/// label's entry for the directory's. Source: raspberrypi/firmware, issue 1529.
fn hidden_by_label<'a>(facts: &ChainFacts, path: &'a BootPath) -> Option<&'a str> {
    let partition = facts.medium.partition.as_deref()?;
    let is_own = |path: &str| path == partition || path.strip_prefix("/dev/") == Some(partition);
    let boot = facts.volumes.iter().find(|volume| is_own(&volume.path))?;
    let label = boot.label.as_deref()?;
    let files = std::iter::once(&path.kernel).chain(&path.initramfs);
    let mut directories = files.filter_map(|file| Some(file.split_once('/')?.0));
    directories.find(|directory| directory.eq_ignore_ascii_case(label))
}

/// A named kernel that is not in the list of files.
fn missing(facts: &ChainFacts, path: &BootPath, link: Link) -> Link {
    if let Some(loader) = loader(facts, &path.kernel).filter(|_| facts.running.is_some()) {
        return handed_on(path, loader, link);
    }
    let has_no_64_bit = matches!(facts.model.kernels, Kernels::Armv6 | Kernels::Armv7);
    if has_no_64_bit && facts.is_whole && facts.partition.size_bytes("kernel8.img").is_some() {
        return link.for_others().stopped(
            format!(
                "there is no {}: the system is for 64 bits, which this board does not have",
                path.kernel
            ),
            "write an image for 32 bits",
        );
    }
    let prefix = setting(facts, "os_prefix").filter(|prefix| !prefix.is_empty());
    if let Some(prefix) = prefix.filter(|_| facts.is_whole) {
        // The firmware passes over a prefix below which it finds no kernel.
        let places =
            format!("neither in {prefix} (os_prefix) nor at the top of the boot partition");
        return link.stopped(
            format!("{} is {places}", path.kernel),
            "put the files of the kernel back there, or correct os_prefix= in config.txt",
        );
    }
    if let Some(Missing { why, .. }) = device_tree::missing(facts, path) {
        return link.for_others().with(Certainty::Likely).stopped(
            format!("there is no {}, and {}", path.kernel, why.trim_start_matches("there is ")),
            "write a newer image, or one for this board",
        );
    }
    let why = format!("{} is not in the boot partition", path.kernel);
    let is_narrow_wanted = setting(facts, "arm_64bit").as_deref() == Some("0");
    // Newer systems have no kernel for 32 bits on a Raspberry Pi 4. Source: raspberrypi/linux, issue 7627.
    let remedy = if is_narrow_wanted && facts.partition.size_bytes("kernel8.img").is_some() {
        "take arm_64bit=0 out of config.txt: kernel8.img runs programs of 32 bits, too"
    } else {
        "install the kernel again, or correct kernel= in config.txt"
    };
    if facts.is_whole || facts.running.is_none() {
        return link.stopped(why, remedy);
    }
    // A capture lists what was looked at. Where the kernel that runs is there, the settings were changed since the start.
    let mut others = facts.partition.names().filter(|name| !name.ends_with(".txt")).peekable();
    if others.peek().is_none() {
        let found = format!("{}: which kernels are there was not recorded", path.kernel);
        return link.not_known(found).last();
    }
    let is_next = others.any(|name| is_this_kernel(facts, name));
    let link = link.stopped(why, remedy).unless_it_runs(!is_next);
    if link.stop.is_some() { link } else { link.last() }
}

/// Whether a stub, which has some hundred bytes otherwise, is a firmware of its own. Source: pftf/RPi4, which is
/// `armstub=RPI_EFI.fd` without a kernel.
fn is_uefi(facts: &ChainFacts, stub: &str) -> bool {
    const MAX_STUB_BYTES: u64 = 64 << 10;
    let bytes = facts.partition.size_bytes(stub);
    let is_named_so = stub.to_ascii_lowercase().ends_with(".fd");
    bytes.is_some_and(|bytes| is_named_so || bytes > MAX_STUB_BYTES)
}

/// What follows a program that loads the kernel in its turn.
fn handed_on(path: &BootPath, loader: &str, link: Link) -> Link {
    let found = format!("{}: {loader} starts the rest, and its settings are not read", path.kernel);
    let remedy = format!("make this change in the settings of {loader}");
    link.not_known(found).in_doubt_of(Doubt::Loader, remedy).last()
}

/// A program that loads the kernel in its turn, by what it holds or by its name.
fn loader(facts: &ChainFacts, kernel: &str) -> Option<&'static str> {
    if let Some(loader) = facts.loaders.get(kernel) {
        return Some(loader);
    }
    let is_kernel = facts.images.kernels.get(kernel).is_some_and(|one| one.release.is_some());
    if is_kernel {
        return None;
    }
    let name = kernel.to_ascii_lowercase();
    if ["u-boot", "uboot", "u_boot"].iter().any(|word| name.contains(word)) {
        return Some("U-Boot");
    }
    if name.contains("barebox") {
        return Some("barebox");
    }
    let is_efi = [".efi", "_efi.fd", "_efi.img"].iter().any(|end| name.ends_with(end));
    is_efi.then_some("UEFI")
}

/// A board with both modes starts a kernel in the one that the settings ask for. Source: Raspberry Pi documentation,
/// `arm_64bit`: names that the firmware knows decide by themselves, others do not (raspberrypi/firmware, issue 1685).
fn with_mode(facts: &ChainFacts, path: &BootPath, link: Link) -> Link {
    const KNOWN: [&str; 5] =
        ["kernel.img", "kernel7.img", "kernel7l.img", "kernel8-32.img", "kernel8.img"];
    let kernels = facts.model.kernels;
    let has_both = matches!(kernels, Kernels::Armv7Or8 | Kernels::Armv8Or7l);
    let is_known = KNOWN.contains(&file_name(&path.kernel));
    let Some(is_narrow) = is_32_bit(facts, path).filter(|_| has_both && !is_known) else {
        return link;
    };
    let said = setting(facts, "arm_64bit").map(|value| value != "0");
    let is_wide_wanted = said.or((kernels == Kernels::Armv7Or8).then_some(false));
    match is_wide_wanted {
        // The default of a Raspberry Pi 4 was another in older firmware.
        None => link.with(Certainty::Likely),
        Some(is_wide) if is_wide != is_narrow => link,
        Some(is_wide) => {
            let (bits, wanted) = if is_narrow { (32, 0) } else { (64, 1) };
            let says = match said {
                Some(_) => format!("config.txt says arm_64bit={}", u8::from(is_wide)),
                None => format!("config.txt does not say arm_64bit={wanted}"),
            };
            link.with(Certainty::Likely)
                .stopped(
                    format!("{} is a {bits}-bit kernel, and {says}", path.kernel),
                    format!("write arm_64bit={wanted} into config.txt"),
                )
                .unless_it_runs(is_this_kernel(facts, &path.kernel))
        }
    }
}

/// f2fs has blocks of 4 KiB on these disks, and mounts only where pages are as large. Source: raspberrypi/linux, issue 6006.
fn with_pages(facts: &ChainFacts, path: &BootPath, link: Link) -> Link {
    let filesystem = root_name(facts, path).and_then(|name| root_filesystem(facts, &name));
    if filesystem.as_deref() != Some("f2fs") || !has_large_pages(facts, path) {
        return link;
    }
    link.with(Certainty::Likely)
        .stopped(
            format!(
                "{} has pages of 16 KiB, with which the root (f2fs) does not mount",
                path.kernel
            ),
            "write kernel=kernel8.img into config.txt, whose pages are 4 KiB",
        )
        .unless_it_runs(is_this_kernel(facts, &path.kernel))
}

/// Which release the kernel is, and whether the root has its modules.
fn with_release(facts: &ChainFacts, path: &BootPath, link: Link) -> Link {
    let release = facts.images.kernels.get(&path.kernel).and_then(|one| one.release.clone());
    let Some(release) = release else { return link };
    let found = format!("{}: {release}", path.kernel);
    let link = Link { found, source: "config.txt, the kernel's file".into(), ..link };
    let Some(releases) = facts.root.releases.as_ref().filter(|all| !all.contains(&release)) else {
        return link;
    };
    let others: Vec<&str> = releases.iter().map(String::as_str).collect();
    let there = if others.is_empty() { "none".into() } else { others.join(", ") };
    let running = facts.running.as_ref().and_then(|running| running.release.as_deref());
    let what = format!("the root has no modules for {release} (there: {there})");
    let remedy = format!("install the modules of {release}, or a kernel that has modules there");
    let link = link.noted_of(Subject::NoModules, what.as_str(), remedy.as_str());
    if running == Some(&release) {
        return link;
    }
    // What is in the kernel carries some boards to a login without network. FAT often is not in it, and then fstab ends
    // the start.
    link.with(Certainty::Likely).stopped(what, remedy)
}

pub(super) fn initramfs(facts: &ChainFacts, path: &BootPath) -> Link {
    let source = if path.is_auto_initramfs { "config.txt, auto_initramfs" } else { "config.txt" };
    let link = Link::new(Stage::Initramfs, path.initramfs.join(", "), source);
    if path.initramfs.is_empty() {
        return alone(facts, path, Link { found: "none".into(), ..link });
    }
    if let Some(file) = path.initramfs.iter().find(|name| is_gone(facts, name)) {
        let found =
            format!("{file} is not there, or empty; the firmware starts the kernel without");
        return alone(facts, path, Link { found, ..link });
    }
    inside(facts, path, by_age(facts, path, link))
}

/// Whether the firmware hands the kernel an initial RAM filesystem.
pub(super) fn has_initramfs(facts: &ChainFacts, path: &BootPath) -> bool {
    !path.initramfs.is_empty() && !path.initramfs.iter().any(|name| is_gone(facts, name))
}

fn is_gone(facts: &ChainFacts, name: &str) -> bool {
    match facts.partition.size_bytes(name) {
        None => true,
        Some(bytes) => bytes == 0 && facts.is_whole,
    }
}

/// `auto_initramfs` came with Raspberry Pi OS 12 in 2023; which firmware was the first is not known.
fn by_age(facts: &ChainFacts, path: &BootPath, link: Link) -> Link {
    if !path.is_auto_initramfs || facts.running.is_some() {
        return link;
    }
    if facts.model.kernels == Kernels::Bcm2712 {
        return by_name(facts, path, link);
    }
    let source = link.source.clone();
    link.with(Certainty::Likely).from(source, Some("2023"))
}

/// Older bootloaders take that of the usual kernel with any other. Source: raspberrypi/firmware, issue 1965.
fn by_name(facts: &ChainFacts, path: &BootPath, link: Link) -> Link {
    const USUAL: (&str, &str) = ("kernel_2712.img", "initramfs_2712");
    let is_named = setting(facts, "kernel").is_some_and(|name| file_name(&name) != USUAL.0);
    let has_usual = facts.partition.size_bytes(USUAL.1).is_some();
    let can = facts.eeprom.can(Ability::MatchInitramfs, facts.model.kernels);
    if !is_named || !has_usual || can == Some(true) {
        return link;
    }
    let since = Ability::MatchInitramfs.since(facts.model.kernels).unwrap_or_default();
    let own = path.initramfs.join(",");
    link.with(Certainty::Likely).noted(
        format!("bootloaders of before {since} load {} in place of {own}", USUAL.1),
        format!("update the bootloader, or write initramfs {own} followkernel into config.txt"),
    )
}

/// Without an initial RAM filesystem, the kernel has to find and mount the root.
fn alone(facts: &ChainFacts, path: &BootPath, link: Link) -> Link {
    let link = without_help(facts, path, link);
    drivers::check(facts, path, &[], link).unless_it_runs(went_alone(facts, path))
}

fn without_help(facts: &ChainFacts, path: &BootPath, link: Link) -> Link {
    let Some(name) = root_name(facts, path) else { return link };
    let line = CmdlineTxt::parse(facts.partition.text(&path.cmdline).unwrap_or_default());
    let named = line.get("root").unwrap_or_default();
    // Links are made by udev; the kernel takes quotes off the ends of a value, and not off what it names. Source: Linux,
    // block/early-lookup.c, lib/cmdline.c.
    let is_for_programs = named.starts_with("/dev/disk/") || named.contains('"');
    if is_for_programs || name.is_volume() && !name.is_known_to_kernel() {
        return link.stopped(
            format!("without an initramfs the kernel cannot find root={named}"),
            "name the root by its PARTUUID, or have config.txt load an initramfs",
        );
    }
    let Some(filesystem) = root_filesystem(facts, &name) else { return link };
    let kernel = facts.images.kernels.get(&path.kernel);
    let modules = kernel.map(|kernel| &kernel.modules).filter(|modules| !modules.is_empty());
    match modules.map(|modules| modules.find(&filesystem)) {
        Some(Known::BuiltIn) => without_waiting(facts, path, link),
        Some(Known::Files(_) | Known::No) => link.stopped(
            format!("{filesystem} is no part of the kernel, and no initramfs brings it"),
            format!("have config.txt load an initramfs with {filesystem}"),
        ),
        None if facts.running.is_some() => without_waiting(facts, path, link),
        // Kernels that come without an initramfs have it.
        None if filesystem == "ext4" => without_waiting(facts, path, link).with(Certainty::Likely),
        None => {
            let found = format!("{}; whether the kernel has {filesystem} is not known", link.found);
            link.not_known(found)
        }
    }
}

/// Cards and USB disks appear after the kernel has looked for its root.
fn without_waiting(facts: &ChainFacts, path: &BootPath, link: Link) -> Link {
    let line = CmdlineTxt::parse(facts.partition.text(&path.cmdline).unwrap_or_default());
    if line.has("rootwait") || line.has("rootdelay") {
        return link;
    }
    link.with(Certainty::Likely).stopped(
        "without rootwait the kernel does not wait for its root, and disks appear late",
        format!("add rootwait to the first line of {}", path.cmdline),
    )
}

/// What the initial RAM filesystem holds, against what the root needs.
fn inside(facts: &ChainFacts, path: &BootPath, link: Link) -> Link {
    let mut listings: Vec<&Listing> = Vec::new();
    for name in &path.initramfs {
        match facts.images.initramfs.get(name) {
            Some(Ok(listing)) => listings.push(listing),
            Some(Err(why)) => return damaged(facts, path, name, why, link),
            // Not looked into, as in a capture.
            None if facts.running.is_some() => return link,
            None => return link.with(Certainty::Likely),
        }
    }
    let releases: Vec<&str> = listings.iter().flat_map(|listing| listing.releases()).collect();
    let found = if releases.is_empty() {
        format!("{}, without modules", link.found)
    } else {
        format!("{}: modules of {}", link.found, releases.join(", "))
    };
    let link = contents(facts, path, &listings, &releases, Link { found, ..link });
    let does_run = is_this_kernel(facts, &path.kernel)
        && has_this_line(facts, path)
        && !is_of_another_kernel(facts, path, &releases);
    let Some(stop) = link.stop.clone().filter(|_| does_run) else {
        return link;
    };
    let remedy = format!("if the initramfs was made again since this start: {}", stop.remedy);
    link.unless_it_runs(true).in_doubt_of(Doubt::Other, remedy.clone()).noted_of(
        Subject::InitramfsInDoubt,
        stop.why,
        remedy,
    )
}

fn contents(
    facts: &ChainFacts,
    path: &BootPath,
    listings: &[&Listing],
    releases: &[&str],
    link: Link,
) -> Link {
    let link = hook(facts, path, listings, link);
    if link.stop.is_some() {
        return link;
    }
    let link = for_this_kernel(facts, path, listings, releases, link);
    let link = with_overlay(facts, path, listings, link);
    drivers::check(facts, path, listings, link)
}

/// Whether the kernel gets to its root by a module, and the initramfs has those of others alone: where that kernel runs, the
/// initramfs was made after it had started.
fn is_of_another_kernel(facts: &ChainFacts, path: &BootPath, releases: &[&str]) -> bool {
    let Some(kernel) = facts.images.kernels.get(&path.kernel) else { return false };
    let Some(release) = kernel.release.as_deref() else { return false };
    let is_module = |name: String| matches!(kernel.modules.find(&name), Known::Files(_));
    let is_other = !releases.is_empty() && !releases.contains(&release);
    let line = CmdlineTxt::parse(facts.partition.text(&path.cmdline).unwrap_or_default());
    let overlay = (line.get("boot") == Some("overlay")).then(|| "overlay".to_string());
    is_other && needed_module(facts, path).into_iter().chain(overlay).any(is_module)
}

/// The script that raspi-config puts into the initramfs of older systems has no root where the module fails. Source:
/// RPi-Distro/raspi-config, issue 212.
fn with_overlay(facts: &ChainFacts, path: &BootPath, listings: &[&Listing], link: Link) -> Link {
    let line = CmdlineTxt::parse(facts.partition.text(&path.cmdline).unwrap_or_default());
    let has_script = listings.iter().any(|listing| listing.has("scripts/overlay"));
    let is_asked_for = has_script && line.get("boot") == Some("overlay");
    let Some(kernel) = facts.images.kernels.get(&path.kernel).filter(|_| is_asked_for) else {
        return link;
    };
    let Some(release) = kernel.release.as_deref() else { return link };
    let is_inside = listings.iter().any(|one| one.module(release, "overlay").is_some());
    let is_module = matches!(kernel.modules.find("overlay"), Known::Files(_));
    if link.stop.is_some() || is_inside || !is_module {
        return link;
    }
    link.with(Certainty::Likely).stopped(
        format!("boot=overlay needs the module overlay of {release}; the initramfs lacks it"),
        remake(listings, Lacks::Freshness),
    )
}

/// A damaged image is as none, or a part of one: the kernel keeps what it could unpack.
fn damaged(facts: &ChainFacts, path: &BootPath, name: &str, why: &str, link: Link) -> Link {
    let what = format!("{name} cannot be unpacked: {why}");
    let remedy = remake(&[], Lacks::Freshness);
    let link = alone(facts, path, link.noted(what.as_str(), remedy.as_str()));
    if link.stop.is_some() {
        return Link { stop: None, ..link }.with(Certainty::Likely).stopped(what, remedy);
    }
    if facts.images.void.contains(name) {
        return link.with(Certainty::Likely);
    }
    link.not_known(what)
}

/// A root that has to be opened first needs the program for it.
fn hook(facts: &ChainFacts, path: &BootPath, listings: &[&Listing], link: Link) -> Link {
    const PLACES: [&str; 4] = ["sbin", "usr/sbin", "bin", "usr/bin"];
    let holds = |path: &str| listings.iter().any(|listing| listing.has(path));
    let has = |program: &str| PLACES.iter().any(|place| holds(&format!("{place}/{program}")));
    let opens = has("cryptsetup") || holds("usr/lib/systemd/systemd-cryptsetup");
    match root_kind(facts, path) {
        RootKind::Encrypted(_) if !opens => link.stopped(
            "the root is encrypted (LUKS), and the initramfs has no cryptsetup to open it",
            remake(listings, Lacks::Cryptsetup),
        ),
        RootKind::Lvm if !has("lvm") => link.stopped(
            "the root is a logical volume, and the initramfs has no lvm to find it",
            remake(listings, Lacks::Lvm),
        ),
        RootKind::Encrypted(_) | RootKind::Lvm | RootKind::Plain | RootKind::Elsewhere => link,
    }
}

/// Modules of another release are of no use to a kernel.
fn for_this_kernel(
    facts: &ChainFacts,
    path: &BootPath,
    listings: &[&Listing],
    releases: &[&str],
    link: Link,
) -> Link {
    let Some(kernel) = facts.images.kernels.get(&path.kernel) else {
        return link.with(Certainty::Likely);
    };
    let Some(release) = kernel.release.as_deref() else { return link.with(Certainty::Likely) };
    let Some(filesystem) = needed_module(facts, path) else { return link };
    let modules = &kernel.modules;
    if modules.find(&filesystem) == Known::BuiltIn {
        let is_other = !releases.is_empty() && !releases.contains(&release);
        let remedy = remake(listings, Lacks::Freshness);
        return if is_other { link.noted(two_releases(release, releases), remedy) } else { link };
    }
    let is_plain = matches!(root_kind(facts, path), RootKind::Plain | RootKind::Elsewhere);
    if !is_plain && (releases.is_empty() || releases.contains(&release)) {
        // By what a root is opened or put together was looked at before.
        return link;
    }
    if releases.contains(&release) {
        return module_inside(modules, release, &filesystem, listings, link);
    }
    if releases.is_empty() && has_modules_elsewhere(listings) {
        let found = format!("{}; it has modules in places of its own", link.found);
        return link.not_known(found);
    }
    let is_certain = !modules.is_empty() && !releases.is_empty();
    let certainty = if is_certain { Certainty::Certain } else { Certainty::Likely };
    let remedy = remake(listings, Lacks::Freshness);
    link.with(certainty).stopped(two_releases(release, releases), remedy)
}

/// The module without which the root is not reached: of what lies between, where it is opened or put together first.
fn needed_module(facts: &ChainFacts, path: &BootPath) -> Option<String> {
    match root_kind(facts, path) {
        RootKind::Encrypted(_) => Some("dm_crypt".into()),
        RootKind::Lvm => Some("dm_mod".into()),
        RootKind::Plain | RootKind::Elsewhere => root_filesystem(facts, &root_name(facts, path)?),
    }
}

/// An initial RAM filesystem that no distribution's tools made may load its modules from anywhere.
fn has_modules_elsewhere(listings: &[&Listing]) -> bool {
    let mut members = listings.iter().flat_map(|listing| &listing.members);
    members.any(|member| file_name(&member.path).contains(".ko"))
}

fn two_releases(kernel: &str, inside: &[&str]) -> String {
    if inside.is_empty() {
        return format!("the kernel is {kernel}, and the initramfs has no modules");
    }
    format!("the kernel is {kernel}, and the initramfs has modules of {}", inside.join(", "))
}

fn module_inside(
    modules: &Modules,
    release: &str,
    filesystem: &str,
    listings: &[&Listing],
    link: Link,
) -> Link {
    let is_inside = |name: &str| listings.iter().any(|one| one.module(release, name).is_some());
    match modules.find(filesystem) {
        Known::BuiltIn => link,
        Known::Files(files) => match files.iter().find(|file| !is_inside(file)) {
            None => link,
            Some(file) => link.stopped(
                format!("the root is {filesystem}, and its module {file} is not in the initramfs"),
                remake(listings, Lacks::Module(filesystem)),
            ),
        },
        Known::No if is_inside(filesystem) => link,
        Known::No if modules.is_empty() => link.with(Certainty::Likely),
        Known::No => link.stopped(
            format!("the kernel {release} has no {filesystem}, which is the root's filesystem"),
            "use a kernel that has it",
        ),
    }
}
