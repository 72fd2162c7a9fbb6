//! Device trees: without that of its board a kernel does not get far.
//!
//! The firmware gives a kernel the tree of the very board, and of few others in its place (raspberrypi/firmware, issue 432). A
//! Raspberry Pi 5 looks for it before it loads a kernel (Raspberry Pi documentation, `os_check`).

use super::link::Link;
use super::running::is_this_kernel;
use super::width::{file_name, is_32_bit};
use super::{ChainFacts, setting};
use crate::config_txt::BootPath;
use crate::medium::Certainty;
use crate::model::Kernels;

const NEWER_IMAGE: &str =
    "write a newer image, or copy the device trees there (package raspi-firmware)";
const RIGHT_IMAGE: &str =
    "copy it there from an image of the same system, or write an image for this board";

/// The device trees of one board.
struct Trees {
    /// The filter of `config.txt` that means the board.
    filter: &'static str,
    /// Its own, the usual one first, with those of upstream's kernel. Stars stand for any letters.
    own: &'static [&'static str],
    /// What the firmware takes where they are not there, as far as that is known.
    instead: &'static [&'static str],
    /// Whether other boards with the same kernels came before it, so that older systems lack its tree.
    is_younger: bool,
}

impl Trees {
    const fn new(filter: &'static str, own: &'static [&'static str]) -> Trees {
        Trees { filter, own, instead: &[], is_younger: false }
    }

    const fn younger(self) -> Trees {
        Trees { is_younger: true, ..self }
    }

    const fn or(self, instead: &'static [&'static str]) -> Trees {
        Trees { instead, ..self }
    }
}

/// A narrower filter stands before a wider one. A Raspberry Pi 4 does not take the tree of a Compute Module 4
/// (cdsteinkuehler/br2rauc, issue 8), nor a Zero 2 W that of a 3B (raspberrypi/Raspberry-Pi-OS-64bit, issue 189). A 3B+ takes
/// that of a 3B (raspberrypi/firmware, issue 943), a Compute Module 4 that of a 4 (issue 1660), and early firmware gave a Zero that of a
/// B+ (issue 758).
static TREES: [Trees; 16] = [
    Trees::new("cm5", &["bcm2712-rpi-cm5*.dtb"]).younger(),
    Trees::new("pi500", &["bcm2712-rpi-500.dtb", "bcm2712-rpi-500-*.dtb"]).younger(),
    Trees::new("pi5", &["bcm2712-rpi-5-b.dtb", "bcm2712*-rpi-5-b*.dtb"]),
    Trees::new("cm4s", &["bcm2711-rpi-cm4s.dtb", "bcm2711-rpi-cm4s-*.dtb"]).younger(),
    Trees::new("cm4", &["bcm2711-rpi-cm4.dtb", "bcm2711-rpi-cm4-*.dtb"])
        .or(&["bcm2711-rpi-4-b.dtb"])
        .younger(),
    Trees::new("pi400", &["bcm2711-rpi-400.dtb"]).or(&["bcm2711-rpi-4-b.dtb"]).younger(),
    Trees::new("pi4", &["bcm2711-rpi-4-b.dtb"]),
    Trees::new("cm0", &["bcm2710-rpi-cm0.dtb"]).or(&["bcm2710-rpi-zero-2*.dtb"]).younger(),
    Trees::new("pi02", &["bcm2710-rpi-zero-2-w.dtb", "*-rpi-zero-2*.dtb"]).younger(),
    Trees::new("cm3", &["bcm2710-rpi-cm3.dtb", "bcm2837-rpi-cm3*.dtb"]).younger(),
    Trees::new("pi3+", &["bcm2710-rpi-3-b-plus.dtb", "bcm2837-rpi-3-*-plus.dtb"])
        .or(&["bcm2710-rpi-3-b.dtb", "bcm2837-rpi-3-b.dtb"])
        .younger(),
    Trees::new("pi3", &["bcm2710-rpi-3-b.dtb", "bcm2837-rpi-3-b.dtb"]),
    Trees::new("pi2", &["bcm2709-rpi-2-b.dtb", "*-rpi-2-b*.dtb"]),
    Trees::new("pi0w", &["bcm2708-rpi-zero-w.dtb", "bcm2708-rpi-0-w.dtb", "*-rpi-zero-w.dtb"])
        .or(&["bcm2708-rpi-b-plus.dtb"])
        .younger(),
    Trees::new("pi0", &["bcm2708-rpi-zero.dtb", "bcm2835-rpi-zero.dtb"])
        .or(&["*-rpi-b-plus.dtb"])
        .younger(),
    Trees::new("cm1", &["bcm2708-rpi-cm.dtb", "bcm2835-rpi-cm*.dtb"]).younger(),
];
/// What boards with stepping D0 of the BCM2712 need beside the tree, or a tree of their own. Source: procount/pinn, issue 918.
const D0: [&str; 3] = ["overlays/bcm2712d0.dtbo", "bcm2712d0-rpi-5-b.dtb", "bcm2712-d-rpi-5-b.dtb"];

/// Whether the kernel is given a device tree.
pub(super) fn check(facts: &ChainFacts, path: &BootPath, link: Link) -> Link {
    let is_empty = setting(facts, "device_tree").is_some_and(|tree| tree.is_empty());
    if is_empty && is_needed(facts, path) {
        return link.with(Certainty::Likely).stopped(
            "device_tree= is empty: the kernel is given no device tree, and does not start without",
            "take device_tree= out of config.txt",
        );
    }
    if !facts.is_whole || is_empty {
        return link;
    }
    if let Some(tree) = &path.device_tree {
        if facts.partition.size_bytes(tree).is_some() {
            return link;
        }
        return link.stopped(
            format!("the device tree {tree} is not in the boot partition"),
            "put it there, or take device_tree= out of config.txt",
        );
    }
    if let Some(Missing { why, remedy }) = missing(facts, path) {
        // What the firmware took in place of the board's own tree, where it took one.
        let does_run = has_tree_of_board(facts) && is_this_kernel(facts, &path.kernel);
        return link
            .for_others()
            .with(Certainty::Likely)
            .stopped(why, remedy)
            .unless_it_runs(does_run);
    }
    let has_own =
        facts.running.is_some() || trees(facts).is_none_or(|trees| has_any(facts, trees.own));
    let link = if has_own { link } else { link.with(Certainty::Likely) };
    by_stepping(facts, by_module(facts, link))
}

/// What to say where no device tree is one of the board. It is never certain what else the firmware takes.
pub(super) struct Missing {
    pub why: String,
    pub remedy: &'static str,
}

/// Why the system is none for this board, where no device tree is one of it.
pub(super) fn missing(facts: &ChainFacts, path: &BootPath) -> Option<Missing> {
    let kernels = facts.model.kernels;
    let own = prefixes(kernels).first()?;
    let is_old = matches!(kernels, Kernels::Armv6 | Kernels::Armv7 | Kernels::Armv7Or8);
    let is_judged = path.device_tree.is_none() && facts.is_whole;
    if !is_judged || is_old && !is_needed(facts, path) {
        return None;
    }
    let none = |tree: &str| format!("there is no device tree for this board ({tree})");
    if !has_tree_of_board(facts) {
        let tree = none(&format!("{own}-*.dtb"));
        let is_for_younger = kernels == Kernels::Armv8Or7l && has_tree(facts, &["bcm2712"]);
        return Some(if is_old || is_for_younger {
            let why = format!("{tree}: the system is for other boards, or damaged");
            Missing { why, remedy: RIGHT_IMAGE }
        } else {
            let why = format!("{tree}: the system is older than the board, or damaged");
            Missing { why, remedy: NEWER_IMAGE }
        });
    }
    let trees = trees(facts).filter(|_| !has_own_tree(facts))?;
    let usual: &str = trees.own.first()?;
    let tree = none(usual);
    Some(if trees.is_younger {
        let why = format!("{tree}: the system is older than the board, or for others");
        Missing { why, remedy: NEWER_IMAGE }
    } else {
        let why = format!("{tree}: the system is for other boards, or damaged");
        Missing { why, remedy: RIGHT_IMAGE }
    })
}

/// Whether the boot partition has the device tree of this very board, or one that its firmware takes in its place.
pub fn has_own_tree(facts: &ChainFacts) -> bool {
    let has = |trees: &Trees| has_any(facts, trees.own) || has_any(facts, trees.instead);
    has_tree_of_board(facts) && trees(facts).is_none_or(has)
}

/// The trees of this very board.
fn trees(facts: &ChainFacts) -> Option<&'static Trees> {
    TREES.iter().find(|trees| facts.model.filters.contains(&trees.filter))
}

/// Whether a device tree of one of these names is in the boot partition.
fn has_any(facts: &ChainFacts, patterns: &[&str]) -> bool {
    facts.partition.names().any(|name| {
        let file = file_name(name);
        file.starts_with("bcm2") && patterns.iter().any(|pattern| is_like(file, pattern))
    })
}

/// Whether a name is like a pattern, in which stars stand for any letters.
fn is_like(name: &str, pattern: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return name == pattern };
    let Some(name) = name.strip_prefix(start) else { return false };
    let mut ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
    ends.any(|at| is_like(&name[at..], rest))
}

/// How the names of device trees begin; those of Raspberry Pi's own kernels first.
fn prefixes(kernels: Kernels) -> &'static [&'static str] {
    match kernels {
        Kernels::Armv6 => &["bcm2708", "bcm2835"],
        Kernels::Armv7 => &["bcm2709", "bcm2836"],
        Kernels::Armv7Or8 => &["bcm2710", "bcm2837", "bcm2709"],
        Kernels::Armv8Or7l => &["bcm2711"],
        Kernels::Bcm2712 => &["bcm2712"],
        Kernels::Named => &[],
    }
}

/// Whether the boot partition has a device tree of boards like this one.
pub fn has_tree_of_board(facts: &ChainFacts) -> bool {
    has_tree(facts, prefixes(facts.model.kernels))
}

fn has_tree(facts: &ChainFacts, prefixes: &[&str]) -> bool {
    let is_tree = |name: &str| {
        let file = file_name(name);
        file.ends_with(".dtb") && prefixes.iter().any(|prefix| file.starts_with(prefix))
    };
    facts.partition.names().any(is_tree)
}

/// Kernels of before 2016 start old boards without one. Source: Linux of Raspberry Pi, arch/arm/mach-bcm2709, until 4.8.
fn is_needed(facts: &ChainFacts, path: &BootPath) -> bool {
    const FIRST: (u32, u32) = (4, 9);
    let release = facts.images.kernels.get(&path.kernel).and_then(|one| one.release.as_deref());
    let numbers = release.map(|release| {
        let mut numbers =
            release.split(['.', '-', '+', '_']).map(|part| part.parse::<u32>().unwrap_or(0));
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    });
    let is_young_board = matches!(facts.model.kernels, Kernels::Armv8Or7l | Kernels::Bcm2712);
    is_young_board
        || is_32_bit(facts, path) == Some(false)
        || numbers.is_some_and(|numbers| numbers >= FIRST)
}

/// Before 2025-03-27 the bootloader of a Compute Module 5 looked for the tree of the Raspberry Pi 5. Source:
/// raspberrypi/rpi-eeprom, issue 682.
fn by_module(facts: &ChainFacts, link: Link) -> Link {
    const PI5: &str = "bcm2712-rpi-5-b.dtb";
    let is_module = facts.model.filters.contains(&"cm5");
    let has_pi5 = has_tree(facts, &["bcm2712-rpi-5-b", "bcm2712d0-rpi-5-b"]);
    if !is_module || has_pi5 || facts.running.is_some() {
        return link;
    }
    link.with(Certainty::Likely).noted(
        format!("bootloaders of before 2025-03-27 look for {PI5}, which is not there"),
        "update the bootloader, write os_check=0 into config.txt, or copy that tree there",
    )
}

/// Later boards of the Raspberry Pi 5 have another stepping, which revision 1.1 names.
fn by_stepping(facts: &ChainFacts, link: Link) -> Link {
    let is_pi5 = facts.model.kernels == Kernels::Bcm2712;
    let has_it = facts.partition.names().any(|name| D0.iter().any(|d0| name.ends_with(d0)));
    if !is_pi5 || has_it || facts.running.is_some() {
        return link;
    }
    link.with(Certainty::Likely).noted(
        "a Raspberry Pi 5 of revision 1.1 (stepping D0) does not start without overlays/bcm2712d0.dtbo, which is not there",
        NEWER_IMAGE,
    )
}
