//! The firmware's own programs on the boot partition: which of them the settings ask for, and whether it is there.
//!
//! Source: Raspberry Pi documentation, "The boot folder" and "config.txt", `start_file`, `start_x`, `gpu_mem`. The programs that
//! look for them pass over `include` lines (raspberrypi/firmware, issue 1641).

use std::collections::BTreeMap;

use super::link::Link;
use super::{ChainFacts, config_name, reader};
use crate::config_txt::ConfigTxt;
use crate::medium::Certainty;
use crate::model::Kernels;

pub(super) const COPY_FIRMWARE: &str = "copy the firmware's files into that partition from a card that starts; on a system that runs, install its package raspi-firmware again";
const FIXUP: [&str; 4] = ["fixup.dat", "fixup_x.dat", "fixup_cd.dat", "fixup_db.dat"];
const FIXUP_4: [&str; 4] = ["fixup4.dat", "fixup4x.dat", "fixup4cd.dat", "fixup4db.dat"];

/// A program that the settings ask for in place of the usual one.
struct Wanted {
    file: String,
    /// The setting that says so.
    setting: String,
    /// What belongs to it.
    fixup: Option<String>,
}

/// A file that has to be in the partition before the board takes it. A Raspberry Pi 5 has its firmware in its EEPROM.
pub(super) fn missing(facts: &ChainFacts) -> Option<&'static str> {
    let without = |name: &'static str| if is_filled(facts, name) { None } else { Some(name) };
    match facts.model.kernels {
        Kernels::Armv6 | Kernels::Armv7 | Kernels::Armv7Or8 => {
            // Another program that is there can be meant.
            let is_named = wanted(facts).is_some_and(|wanted| is_filled(facts, &wanted.file));
            without("bootcode.bin").or_else(|| without("start.elf").filter(|_| !is_named))
        }
        // It has to be there even where another one is meant. Source: raspberrypi/firmware, issue 1809.
        Kernels::Armv8Or7l => without("start4.elf"),
        Kernels::Bcm2712 => {
            let has_settings = facts.partition.size_bytes("config.txt").is_some();
            if has_settings { None } else { Some("config.txt") }
        }
        Kernels::Named => None,
    }
}

/// Whether the program is there that the boot ROM of boards without an EEPROM loads.
pub(super) fn has_bootcode(facts: &ChainFacts) -> bool {
    is_filled(facts, "bootcode.bin")
}

/// Whether the programs are there that NOOBS and PINN bring along in place of the usual ones: the firmware before the Raspberry Pi 4
/// takes recovery.elf before start.elf, and that of the Raspberry Pi 4 recover4.elf. Source: raspberrypi/noobs, issue 643.
pub(super) fn has_menu(facts: &ChainFacts) -> bool {
    match facts.model.kernels {
        Kernels::Armv6 | Kernels::Armv7 | Kernels::Armv7Or8 => is_filled(facts, "recovery.elf"),
        Kernels::Armv8Or7l => is_filled(facts, "recover4.elf"),
        Kernels::Bcm2712 | Kernels::Named => false,
    }
}

/// Whether the program that the settings ask for is there, and what belongs to it.
pub(super) fn check(facts: &ChainFacts, link: Link) -> Link {
    let wanted = wanted(facts);
    if let Some(Wanted { file, setting, fixup }) = &wanted
        && !is_filled(facts, file)
    {
        let both = fixup.as_ref().map_or(file.clone(), |fixup| format!("{file} and {fixup}"));
        return link.with(Certainty::Likely).stopped(
            format!("{setting} asks for {file}, which is not there"),
            format!("take {setting} out of config.txt, or copy {both} there"),
        );
    }
    match fixup_missing(facts) {
        None => link,
        Some(file) => link.with(Certainty::Likely).noted(
            format!("there is no {file}, and the firmware does not know all memory"),
            COPY_FIRMWARE,
        ),
    }
}

fn wanted(facts: &ChainFacts) -> Option<Wanted> {
    let is_pi4 = match facts.model.kernels {
        Kernels::Armv6 | Kernels::Armv7 | Kernels::Armv7Or8 => false,
        Kernels::Armv8Or7l => true,
        Kernels::Bcm2712 | Kernels::Named => return None,
    };
    let text = facts.partition.text(config_name(facts))?;
    let (config, no_includes) = (ConfigTxt::parse(text), BTreeMap::new());
    let reader = reader(facts, &no_includes);
    let get = |name: &str| config.get(name, &reader).filter(|value| !value.is_empty());
    if let Some(file) = get("start_file") {
        let setting = format!("start_file={file}");
        return Some(Wanted { file, setting, fixup: get("fixup_file") });
    }
    const VARIANTS: [(&str, &str, &str); 3] =
        [("start_debug", "1", "db"), ("start_x", "1", "x"), ("gpu_mem", "16", "cd")];
    let is_set = |(name, value, _): &&(&str, &str, &str)| get(name).as_deref() == Some(*value);
    let (name, value, variant) = VARIANTS.iter().find(is_set)?;
    let mark = if is_pi4 { "4" } else { "_" };
    Some(Wanted {
        file: format!("start{mark}{variant}.elf"),
        setting: format!("{name}={value}"),
        fixup: Some(format!("fixup{mark}{variant}.dat")),
    })
}

fn is_filled(facts: &ChainFacts, name: &str) -> bool {
    facts.partition.size_bytes(name).is_some_and(|bytes| bytes > 0)
}

fn fixup_missing(facts: &ChainFacts) -> Option<&'static str> {
    let files = match facts.model.kernels {
        Kernels::Armv6 | Kernels::Armv7 | Kernels::Armv7Or8 => FIXUP,
        Kernels::Armv8Or7l => FIXUP_4,
        Kernels::Bcm2712 | Kernels::Named => return None,
    };
    let has_any = files.iter().any(|name| is_filled(facts, name));
    (!has_any).then_some(files[0])
}
