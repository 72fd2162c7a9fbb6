//! Device trees: without that of its board a kernel does not get far.
//!
//! The firmware gives a kernel the tree of the very board, and of no other in its place (raspberrypi/firmware, issue 432). A
//! Raspberry Pi 5 looks for it before it loads a kernel (Raspberry Pi documentation, `os_check`).

use super::link::Link;
use super::width::{file_name, is_32_bit};
use super::{ChainFacts, setting};
use crate::config_txt::BootPath;
use crate::medium::Certainty;
use crate::model::Kernels;

const NEWER_IMAGE: &str =
    "write a newer image, or copy the device trees there (package raspi-firmware)";
/// Boards of the Raspberry Pi 5 that came later, by the beginning of the names of their trees.
const YOUNGER_THAN_PI5: [(&str, &str); 2] =
    [("cm5", "bcm2712-rpi-cm5"), ("pi500", "bcm2712-rpi-500")];
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
    if let Some((why, certainty)) = missing(facts, path) {
        return link.for_others().with(certainty).stopped(why, NEWER_IMAGE);
    }
    by_stepping(facts, by_module(facts, link))
}

/// Why the system is none for this board, where no device tree is one of it.
pub(super) fn missing(facts: &ChainFacts, path: &BootPath) -> Option<(String, Certainty)> {
    if path.device_tree.is_some() || !facts.is_whole {
        return None;
    }
    let prefixes = prefixes(facts.model.kernels);
    let own = prefixes.first()?;
    if !has_tree(facts, prefixes) {
        let is_old =
            matches!(facts.model.kernels, Kernels::Armv6 | Kernels::Armv7 | Kernels::Armv7Or8);
        if is_old && !is_needed(facts, path) {
            return None;
        }
        let reason = if is_old {
            "the system is for other boards"
        } else {
            "the system is older than the board"
        };
        let why =
            format!("there is no device tree for this board ({own}-*.dtb): {reason}, or damaged");
        return Some((why, Certainty::Likely));
    }
    let young = YOUNGER_THAN_PI5.iter().find(|(filter, _)| facts.model.filters.contains(filter));
    let (_, tree) = young.filter(|(_, tree)| !has_tree(facts, &[*tree]))?;
    let why = format!(
        "there is no device tree for this board ({tree}*.dtb): the system is older than the board"
    );
    Some((why, Certainty::Likely))
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
