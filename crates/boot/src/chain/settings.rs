//! The settings that the firmware reads, and the command line that it hands to the kernel.

use super::encoding::Encoding;
use super::kernel::has_initramfs;
use super::link::{Doubt, Link, Stage, Subject};
use super::running::has_this_line;
use super::width::is_32_bit;
use super::{ChainFacts, config_name, resume, setting};
use crate::cmdline_txt::CmdlineTxt;
use crate::config_txt::{BootPath, ConfigTxt, FORMS, Form, MAX_LINE_CHARACTERS};
use crate::medium::Certainty;
use crate::model::Kernels;
use crate::volume::Name;

/// A larger file has stopped a Raspberry Pi 5. Source: raspberrypi/firmware, issue 1848.
const MAX_PI5_BYTES: u64 = 16 << 10;
/// Where Ubuntu has the boot files that are used, since 25.10.
const CURRENT_SET: &str = "current/";
/// Whether those of the last update were tried.
pub const UNTRIED_SET_STATE: &str = "new/state";
/// A boot partition in a file.
const BOOT_IMAGE: &str = "boot.img";

pub(super) fn settings(facts: &ChainFacts, paths: &[BootPath]) -> Link {
    let source = config_name(facts);
    let link = Link::new(Stage::Settings, words(paths), source);
    let Some(text) = facts.partition.text(source) else {
        return without(facts, source, link);
    };
    let link = match facts.encodings.get(source) {
        Some(encoding) => encoded(link, source, *encoding),
        None => link,
    };
    if link.stop.is_some() {
        return link;
    }
    if is_boot_ramdisk(facts, text) {
        let found = format!("boot_ramdisk=1: the firmware reads what is inside {BOOT_IMAGE}");
        return link
            .not_known(found)
            .in_doubt_of(
                Doubt::WhatIsRead,
                "take boot_ramdisk=1 out of config.txt, and put the files there",
            )
            .last();
    }
    if let Some(line) = ConfigTxt::parse(text).long_lines().first() {
        let found = format!(
            "line {line} is longer than {MAX_LINE_CHARACTERS} characters; older firmware does not read it whole"
        );
        return link.not_known(found);
    }
    let bytes = facts.partition.size_bytes(source).unwrap_or_default();
    if facts.model.kernels == Kernels::Bcm2712 && bytes > MAX_PI5_BYTES {
        return link
            .not_known(format!("{source} has {bytes} bytes; so large a one has stopped boards"));
    }
    let link = noted_forms(paths, link);
    if paths.is_empty() {
        return link.stopped(
            format!("{source} names no kernel for this board"),
            format!("put kernel= with the name of the kernel's file into {source}"),
        );
    }
    with_untried_set(facts, paths, link)
}

/// Ubuntu writes an update of the kernel into a set of its own, which piboot-try starts once before it takes the place of the
/// current one. Source: Canonical, "A/B boot on Ubuntu for Raspberry Pi".
fn with_untried_set(facts: &ChainFacts, paths: &[BootPath], link: Link) -> Link {
    let is_current = paths.iter().any(|path| path.cmdline.starts_with(CURRENT_SET));
    let state = facts.partition.text(UNTRIED_SET_STATE).map(str::trim).filter(|_| is_current);
    match state {
        Some("unknown" | "trying") => link.noted(
            "the next start tries the files in new/, which then take the place of those in current/",
            "have that done before you change the command line: sudo piboot-try --reboot",
        ),
        Some("bad") => link.noted_of(
            Subject::FilesDidNotStart,
            "the files in new/, the last update of the kernel, did not start; those before it are used",
            "look for the reason, then try them again: sudo piboot-try --reset-new",
        ),
        _ => link,
    }
}

fn without(facts: &ChainFacts, source: &str, link: Link) -> Link {
    if !facts.is_whole {
        let link = link.not_known(format!("{source} was not read"));
        return Link { doubt: Doubt::WhatIsRead, ..link }.last();
    }
    let found = format!("there is no {source}; {}", link.found);
    Link { found, ..link }
}

fn encoded(link: Link, source: &str, encoding: Encoding) -> Link {
    let remedy = format!("save {source} as UTF-8");
    match encoding {
        Encoding::Utf16 => link.stopped(format!("{source} {}", encoding.words()), remedy),
        Encoding::Utf8WithMark | Encoding::NotUtf8 { .. } | Encoding::TooLarge => link.noted(
            format!("{source} {}; the firmware reads it byte by byte", encoding.words()),
            remedy,
        ),
    }
}

fn is_boot_ramdisk(facts: &ChainFacts, text: &str) -> bool {
    let says = text.lines().any(|line| line.trim() == "boot_ramdisk=1");
    says && facts.partition.size_bytes(BOOT_IMAGE).is_some()
}

/// The forms of settings of which it is not known whether the firmware reads them, and that lead to another start.
fn noted_forms(paths: &[BootPath], link: Link) -> Link {
    let is_there = |form: &&Form| paths.iter().any(|path| path.only_if.contains(form.doubt));
    let mut forms = FORMS.iter().filter(is_there).peekable();
    let remedy = forms.peek().map(|form| form.remedy);
    let link = forms.fold(link, |link, form| link.noted(form.doubt, form.remedy));
    Link { remedy: remedy.map(str::to_string), ..link }
}

fn words(paths: &[BootPath]) -> String {
    let Some(first) = paths.first() else { return "no kernel".into() };
    let usual = format!("{} with {}", first.kernel, first.cmdline);
    if let Some(form) =
        FORMS.iter().find(|form| paths.iter().any(|path| path.only_if.contains(form.doubt)))
    {
        return format!("{usual}, or another way if the firmware reads {}", form.doubt);
    }
    match paths.len() {
        1 => usual,
        2 => format!("{usual}, or one other way that only the board knows"),
        several => format!("{usual}, or {} other ways that only the board knows", several - 1),
    }
}

pub(super) fn command_line(facts: &ChainFacts, path: &BootPath) -> Link {
    let source = path.cmdline.as_str();
    let link = Link::new(Stage::CommandLine, "no root=", source);
    let Some(text) = facts.partition.text(source) else {
        return no_command_line(facts, source, link);
    };
    let line = CmdlineTxt::parse(text);
    let root = line.get("root");
    let found = root.map_or(link.found.clone(), |root| format!("root={}", Name::shown(root)));
    let link = Link { found, ..link };
    let link = match facts.encodings.get(source) {
        Some(encoding) => line_encoded(link, source, *encoding),
        None => link,
    };
    let link = match line.ignored_lines().next() {
        Some(lost) => {
            // Its values may be passwords.
            let names = lost.split_whitespace().map(|word| word.split('=').next().unwrap_or(word));
            let lost: String = names.collect::<Vec<_>>().join(" ").chars().take(40).collect();
            let what =
                format!("what is behind the first line of {source} is not passed on: {lost}");
            link.noted(what, "put all words into the first line")
        }
        None => link,
    };
    if link.stop.is_some() {
        return link;
    }
    let link = too_long(facts, path, &line, link);
    if link.stop.is_some() {
        return link;
    }
    if root.is_some() {
        return resume::check(facts, path, &line, link);
    }
    if has_root_of_its_own(&line) || is_found_by_initramfs(facts, path) {
        if let Some((word, volume)) = lost_volume(facts, &line) {
            let found = format!(
                "no root=; {word}={volume}, which the initramfs looks for, is not on the disks that are here"
            );
            let remedy =
                format!("correct {word}= in {source}, or put the disk in that has {volume}");
            return link.not_known(found).in_doubt_of(Doubt::Other, remedy).last();
        }
        let found = "no root=; the initramfs of this system finds its root by words of its own";
        return link.not_known(found).last();
    }
    link.stopped("the first line, which alone is passed on, has no root=", name_the_root(source))
        .unless_it_runs(has_this_line(facts, path))
}

fn name_the_root(source: &str) -> String {
    format!("put root= with the PARTUUID of the root into the first line of {source}")
}

/// Words by which systems name their root to an initramfs of their own: LibreELEC (`disk=`), Alpine (`modules=`,
/// `alpine_dev=`), Home Assistant OS (`systemd.machine_id=`), Volumio (`imgpart=`), Batocera and Recalbox (`label=`),
/// postmarketOS, Ubuntu Core, piCore (`tce=`), RAUC, live systems of Debian and Ubuntu (`boot=`).
fn has_root_of_its_own(line: &CmdlineTxt) -> bool {
    const WORDS: [&str; 15] = [
        "alpine_dev",
        "boot",
        "datapart",
        "disk",
        "imgpart",
        "label",
        "modules",
        "nfsroot",
        "pmos_boot_uuid",
        "pmos_root",
        "pmos_root_uuid",
        "rauc.slot",
        "snapd_recovery_mode",
        "systemd.machine_id",
        "tce",
    ];
    WORDS.iter().any(|name| line.has(name))
}

/// A volume that LibreELEC's initramfs is told to mount, and that is none of those here. Source: LibreELEC.tv,
/// `packages/sysutils/busybox/scripts/init`: `boot=` has the system, `disk=` the storage.
fn lost_volume(facts: &ChainFacts, line: &CmdlineTxt) -> Option<(&'static str, Name)> {
    let words = ["boot", "disk"].into_iter();
    let mut named = words.filter_map(|word| Some((word, Name::parse(line.get(word)?))));
    named.find(|(_, name)| {
        let is_seen = !matches!(name, Name::Path(_));
        is_seen && name.is_volume() && name.resolve(&facts.volumes).is_empty()
    })
}

/// Whether there is an initramfs that is not known to need `root=`: those of a known maker are.
fn is_found_by_initramfs(facts: &ChainFacts, path: &BootPath) -> bool {
    has_initramfs(facts, path) && !path.initramfs.iter().all(|name| needs_root(facts, name))
}

fn needs_root(facts: &ChainFacts, name: &str) -> bool {
    /// Names that packages of Raspberry Pi OS and Debian give to what initramfs-tools makes.
    const DEBIAN: [&str; 4] = ["initramfs7", "initramfs8", "initramfs_2712", "initrd.img"];
    let file = name.rsplit('/').next().unwrap_or(name);
    let listing = facts.images.initramfs.get(name);
    DEBIAN.iter().any(|own| file.starts_with(own))
        || listing.is_some_and(|listing| match listing {
            Ok(listing) => listing.maker().is_some(),
            Err(_) => true,
        })
}

/// A capture may lack what was not looked at; the usual file at the top always is. Some firmware fills in a line of its own, whose
/// root is the card's second partition (raspberrypi/linux, issue 119).
fn no_command_line(facts: &ChainFacts, source: &str, link: Link) -> Link {
    let is_known = facts.is_whole || !source.contains('/');
    if is_known {
        let why = format!("there is no {source}, and the kernel is told no root");
        link.with(Certainty::Likely).stopped(why, line_to_write(facts, source))
    } else {
        link.not_known(format!("{source} was not read"))
    }
}

/// What to do where the file is not there: a setting may name one that was renamed since (home-assistant/operating-system, issue
/// 3085), while the usual one has a root.
fn line_to_write(facts: &ChainFacts, source: &str) -> String {
    const USUAL: &str = "cmdline.txt";
    let (directory, _) = source.rsplit_once('/').unwrap_or_default();
    let usual: String =
        if directory.is_empty() { USUAL.into() } else { format!("{directory}/{USUAL}") };
    let text = facts.partition.text(&usual).filter(|_| usual != source);
    let has_root = text.is_some_and(|text| CmdlineTxt::parse(text).has("root"));
    match setting(facts, "cmdline").filter(|_| has_root) {
        Some(named) => format!("take cmdline={named} out of config.txt: {usual} has a root"),
        None => name_the_root(source),
    }
}

fn line_encoded(link: Link, source: &str, encoding: Encoding) -> Link {
    let remedy = format!("save {source} as UTF-8");
    let what = format!("{source} {}", encoding.words());
    match encoding {
        Encoding::Utf16 | Encoding::TooLarge => link.stopped(what, remedy),
        Encoding::Utf8WithMark => {
            link.noted(format!("{what}, which spoils its first word"), remedy)
        }
        Encoding::NotUtf8 { .. } => link.noted(what, remedy),
    }
}

/// The kernel cuts the line; whether the root is behind the cut decides.
fn too_long(facts: &ChainFacts, path: &BootPath, line: &CmdlineTxt, link: Link) -> Link {
    let is_narrow = is_32_bit(facts, path) == Some(true);
    let Err(error) = line.fits(is_narrow) else { return link };
    let kept: String = line.line().chars().take(CmdlineTxt::room(is_narrow)).collect();
    let has_root = CmdlineTxt::parse(kept).get("root").is_some();
    let link = link.with(Certainty::Likely);
    let remedy = "take out words that are not needed";
    if has_root {
        link.noted(error.to_string(), remedy)
    } else {
        link.stopped(format!("{error}, and root= is behind them"), remedy)
            .unless_it_runs(has_this_line(facts, path))
    }
}
