//! The way to the disk of the root: a board without it, or a `config.txt` that switches it off, does not reach the root.
//!
//! Source: Raspberry Pi's README of overlays: `disable-emmc2` is for the BCM2711, the parameter `sd` for it and the BCM2712
//! (raspberrypi/linux, issues 5181, 5285 and 6744), `pcie` for the BCM2711 and also for the USB ports of a Raspberry Pi 4,
//! `pciex1` and `nvme` for the BCM2712. `mmc`, `sdhost` and `sdio` give the slot another driver or other pins.

use super::bus::Bus;
use super::link::{Doubt, Link};
use super::{ChainFacts, config, reader};
use crate::cmdline_txt::CmdlineTxt;
use crate::config_txt::{BootPath, ConfigTxt, Counts, Reader};
use crate::medium::{Certainty, Mode};
use crate::model::{Kernels, Model};
use crate::volume::NamedVolume;

const OVERLAY: &str = "disable-emmc2";

/// A setting that switches a way off.
struct Off {
    /// As it is written.
    setting: String,
    /// Whether it is known to count.
    is_sure: bool,
    /// For a sentence: "cards and eMMC".
    what: &'static str,
    takes: &'static [Bus],
    /// Where the root has to be for the setting not to matter.
    spares: &'static str,
}

/// A root on an NVMe drive, of a board without a place for one: on USB, such drives have another name. Of a machine it is seen which
/// disks there are.
pub(super) fn without_way(facts: &ChainFacts, path: &BootPath, link: Link) -> Link {
    let Model { kernels, filters, .. } = &facts.model;
    let has_place = *kernels == Kernels::Bcm2712 || filters.contains(&"cm4");
    let is_judged = link.stop.is_some() || facts.are_all_volumes || *kernels == Kernels::Named;
    if is_judged || has_place || written_node(facts, path) != Some(Bus::Nvme) {
        return link;
    }
    let source = link.source.clone();
    link.with(Certainty::Likely).stopped(
        format!("{source} names an NVMe drive, and this board has no PCIe connector"),
        format!("name the root by its PARTUUID in {source}, on a card or USB disk"),
    )
}

pub(super) fn check(facts: &ChainFacts, path: &BootPath, volume: &NamedVolume, link: Link) -> Link {
    let bus = bus(facts, path, volume);
    let (config, includes) = config(facts);
    let all = all_off(facts, &config, &reader(facts, &includes));
    all.into_iter().fold(link, |link, off| by_setting(bus, &off, link))
}

fn by_setting(bus: Option<Bus>, off: &Off, link: Link) -> Link {
    let is_judged = link.stop.is_some() || link.certainty == Certainty::NotKnown;
    if is_judged || bus.is_some_and(|bus| !off.takes.contains(&bus)) {
        return link;
    }
    let Off { setting, what, spares, .. } = off;
    let what = format!("{setting} in config.txt switches {what} off");
    if bus.is_none() || !off.is_sure {
        let found = format!("{what}, and the root is not reached where it is on one of them");
        let remedy = format!("take {setting} out, unless the root is on {spares}");
        return link.not_known(found).in_doubt_of(Doubt::Other, remedy);
    }
    link.with(Certainty::Likely)
        .stopped(format!("{what}, and the root is there"), format!("take {setting} out"))
}

/// The settings that switch ways to disks off on this board.
fn all_off(facts: &ChainFacts, config: &ConfigTxt, reader: &Reader<'_>) -> Vec<Off> {
    let Model { filters, kernels, .. } = &facts.model;
    let off = |names: &[&str], what: &'static str, takes: &'static [Bus], spares: &'static str| {
        let switch = config.switch(names, reader).filter(|switch| !switch.is_on)?;
        Some(Off { setting: switch.written, is_sure: switch.is_certain, what, takes, spares })
    };
    let cards = "cards and eMMC";
    let others = "a USB disk or NVMe drive";
    let mut all = Vec::new();
    if kernels.has_eeprom() {
        all.extend(off(&["sd"], cards, &[Bus::Card], others));
    }
    match kernels {
        Kernels::Armv8Or7l => {
            all.extend(overlay(config, reader, cards, others));
            if filters.contains(&"cm4") {
                let spares = "a card, eMMC or USB disk";
                all.extend(off(&["pcie"], "NVMe drives", &[Bus::Nvme], spares));
            } else if !filters.contains(&"cm4s") {
                let what = "the ports of USB disks";
                all.extend(off(&["pcie"], what, &[Bus::Usb, Bus::Nvme], "a card"));
            }
        }
        Kernels::Bcm2712 => {
            let spares = "a card or USB disk";
            let pcie = off(&["pciex1", "nvme"], "NVMe drives", &[Bus::Nvme], spares);
            // The bootloader switches it on where it starts from such a drive (rpi-eeprom, release notes of 2023-11-20).
            let is_other = facts.mode.is_some_and(|mode| mode != Mode::Nvme);
            all.extend(pcie.map(|off| Off { is_sure: off.is_sure && is_other, ..off }));
        }
        Kernels::Armv6 | Kernels::Armv7 | Kernels::Armv7Or8 | Kernels::Named => {}
    }
    all
}

fn overlay(
    config: &ConfigTxt,
    reader: &Reader<'_>,
    what: &'static str,
    spares: &'static str,
) -> Option<Off> {
    // An overlay has its parameters behind a comma, older lines behind a colon.
    let is_overlay = |value: &str| value.split([',', ':']).next().map(str::trim) == Some(OVERLAY);
    let settings = config.settings(reader).into_iter();
    let lines = settings.filter(|one| {
        one.name == "dtoverlay" && one.counts != Counts::No && is_overlay(&one.value)
    });
    let sure: Vec<bool> = lines.map(|one| one.counts == Counts::Yes).collect();
    if sure.is_empty() {
        return None;
    }
    let setting = format!("dtoverlay={OVERLAY}");
    let is_sure = sure.contains(&true);
    Some(Off { setting, is_sure, what, takes: &[Bus::Card], spares })
}

/// What the root hangs on, where its node, the command line, or the disk that was looked at says so.
fn bus(facts: &ChainFacts, path: &BootPath, volume: &NamedVolume) -> Option<Bus> {
    let own = volume.path.as_str();
    if own.starts_with("/dev/") {
        return Some(Bus::of(own));
    }
    written_node(facts, path).or_else(|| {
        // In a reader, any disk is one of USB.
        let [disk] = facts.medium.disks.as_slice() else { return None };
        Some(Bus::of(disk)).filter(|bus| matches!(bus, Bus::Card | Bus::Nvme))
    })
}

/// What the node hangs on that the command line names.
fn written_node(facts: &ChainFacts, path: &BootPath) -> Option<Bus> {
    let line = CmdlineTxt::parse(facts.partition.text(&path.cmdline)?);
    let node = line.get("root")?;
    let is_node = node.starts_with("/dev/") && !node.starts_with("/dev/disk/");
    is_node.then(|| Bus::of(node))
}
