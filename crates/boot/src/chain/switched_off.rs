//! The controller of cards and eMMC where `config.txt` switches it off: a root behind it is not reached.
//!
//! Source: Raspberry Pi's README of overlays: `disable-emmc2` is for the BCM2711, the parameter `sd` for it and the BCM2712
//! (raspberrypi/linux, issues 5181, 5285 and 6744). `mmc`, `sdhost` and `sdio` give the slot another driver or other pins.

use super::link::{Doubt, Link};
use super::{ChainFacts, config, reader};
use crate::cmdline_txt::CmdlineTxt;
use crate::config_txt::{BootPath, Counts};
use crate::medium::Certainty;
use crate::model::Kernels;
use crate::volume::NamedVolume;

const OVERLAY: &str = "disable-emmc2";
const PARAMETER: &str = "sd";
const NODE: &str = "/dev/mmcblk";

pub(super) fn check(facts: &ChainFacts, path: &BootPath, volume: &NamedVolume, link: Link) -> Link {
    if link.stop.is_some() || link.certainty == Certainty::NotKnown {
        return link;
    }
    let Some((setting, is_sure)) = setting_that_does(facts) else { return link };
    let is_card = is_card(facts, path, volume);
    if is_card == Some(false) {
        return link;
    }
    let what = format!("{setting} in config.txt switches cards and eMMC off");
    if is_card.is_none() || !is_sure {
        let found = format!("{what}, and the root is not reached where it is on one of them");
        let remedy = format!("take {setting} out, unless the root is on a USB disk or NVMe drive");
        return link.not_known(found).in_doubt_of(Doubt::Other, remedy);
    }
    link.with(Certainty::Likely)
        .stopped(format!("{what}, and the root is there"), format!("take {setting} out"))
}

/// The setting that switches the controller off, and whether it is known to count.
fn setting_that_does(facts: &ChainFacts) -> Option<(String, bool)> {
    let (config, includes) = config(facts);
    let reader = reader(facts, &includes);
    let kernels = facts.model.kernels;
    let is_off = |value: &String| ["off", "no", "false", "0"].contains(&value.as_str());
    let (value, is_sure) = config.parameter_or_doubt(PARAMETER, &reader);
    if let Some(value) = value.filter(is_off)
        && kernels.has_eeprom()
    {
        return Some((format!("dtparam={PARAMETER}={value}"), is_sure));
    }
    // An overlay has its parameters behind a comma, older lines behind a colon.
    let is_overlay = |value: &str| value.split([',', ':']).next().map(str::trim) == Some(OVERLAY);
    let settings = config.settings(&reader).into_iter();
    let lines = settings.filter(|one| {
        one.name == "dtoverlay" && one.counts != Counts::No && is_overlay(&one.value)
    });
    let sure: Vec<bool> = lines.map(|one| one.counts == Counts::Yes).collect();
    let counts = kernels == Kernels::Armv8Or7l && !sure.is_empty();
    counts.then(|| (format!("dtoverlay={OVERLAY}"), sure.contains(&true)))
}

/// Whether the root is on a card or eMMC, where its node or the command line says so.
fn is_card(facts: &ChainFacts, path: &BootPath, volume: &NamedVolume) -> Option<bool> {
    let line = CmdlineTxt::parse(facts.partition.text(&path.cmdline).unwrap_or_default());
    let mut nodes = [volume.path.as_str(), line.get("root").unwrap_or_default()].into_iter();
    let node = nodes.find(|node| node.starts_with("/dev/") && !node.starts_with("/dev/disk/"));
    node.map(|node| node.starts_with(NODE))
}
