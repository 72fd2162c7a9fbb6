//! The trial start of a Raspberry Pi: `reboot '0 tryboot'` reads `tryboot.txt` in place of `config.txt`, once.
//! The mark is gone before the kernel runs, so that whatever goes wrong, the next start is the old one.
//!
//! Source: Raspberry Pi documentation, "tryboot" and "config.txt, conditional filters".

use super::config_txt::ConfigTxt;
use super::model::{Kernels, Model};

/// The file that the firmware reads for a trial.
pub const FILE: &str = "tryboot.txt";
/// What `reboot` is given.
pub const REBOOT_ARGUMENT: &str = "0 tryboot";
/// Where the firmware says how it started the board, below the device tree: `tryboot` (32 bits, big-endian), `partition`
/// and `boot-mode`.
pub const BOOTLOADER_NODE: &str = "/proc/device-tree/chosen/bootloader";

/// Whether a board can start on trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ability {
    Yes,
    /// Perhaps not; why, in words.
    Unsure(String),
    /// No; why, in words.
    No(String),
}

/// The text of `tryboot.txt`: `config.txt` with another command line and, where one is given, another initial RAM
/// filesystem. Nothing is loaded with a prefix.
pub fn text(config_txt: &str, cmdline: &str, initramfs: Option<&str>) -> String {
    let mut config = ConfigTxt::parse(config_txt);
    config.set("cmdline", cmdline);
    if let Some(name) = initramfs {
        config.set("initramfs", &format!("{name} followkernel"));
        // One or the other: with both, versions of the firmware differ in what they load.
        config.set("auto_initramfs", "0");
    }
    config.text().to_string()
}

/// Whether a board can start on trial. `bootloader` lists the files in [`BOOTLOADER_NODE`]; `config_txt` is the
/// current text.
pub fn ability(model: &Model, bootloader: &[String], config_txt: &str) -> Ability {
    if model.kernels == Kernels::Named {
        return Ability::No("this is not a Raspberry Pi that is known".into());
    }
    if bootloader.iter().any(|name| name == "tryboot") {
        // What is included is read on trial as well, but with which filters has not been looked at.
        let includes_others = !ConfigTxt::parse(config_txt).includes().is_empty();
        return if includes_others {
            Ability::Unsure("config.txt includes other files".into())
        } else {
            Ability::Yes
        };
    }
    match model.kernels {
        Kernels::Armv8Or7l | Kernels::Bcm2712 => Ability::Unsure(format!(
            "the bootloader says nothing about trials in {BOOTLOADER_NODE}: it may be from before 2021 (rpi-eeprom-update \
             shows it)"
        )),
        _ => Ability::Unsure(format!(
            "the firmware says nothing about trials in {BOOTLOADER_NODE}; start.elf may be too old"
        )),
    }
}

/// Whether the running start is a trial: the four bytes of `tryboot` in [`BOOTLOADER_NODE`]. None when they are not a
/// number.
pub fn is_trial(bytes: &[u8]) -> Option<bool> {
    let bytes = <[u8; 4]>::try_from(bytes).ok()?;
    Some(u32::from_be_bytes(bytes) != 0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::config_txt::Reader;
    use super::*;
    use crate::revision;

    fn model(code: u32) -> Model {
        Model::of_revision(&revision::decode(code))
    }

    #[test]
    fn a_trial_changes_the_command_line_and_the_initramfs_and_nothing_else() {
        let config = "dtparam=audio=on\nauto_initramfs=1\n[pi4]\narm_boost=1\n";
        let trial = text(config, "cmdline-new.txt", Some("initramfs8-new"));
        assert_eq!(
            trial,
            "dtparam=audio=on\nauto_initramfs=0\n[pi4]\narm_boost=1\n[all]\ncmdline=cmdline-new.txt\n\
             initramfs initramfs8-new followkernel\n"
        );
        let includes = BTreeMap::new();
        let model = model(0xc03114);
        let reader = Reader { tryboot: true, ..Reader::usual(&model, &includes) };
        let paths = ConfigTxt::parse(trial).boot_paths(&reader, &|name| name == "kernel8.img");
        assert_eq!(paths.len(), 1);
        assert_eq!(paths[0].cmdline, "cmdline-new.txt");
        assert_eq!(paths[0].initramfs, ["initramfs8-new"]);
    }

    #[test]
    fn the_bootloader_says_whether_it_can() {
        let says = ["boot-mode".to_string(), "tryboot".to_string()];
        assert_eq!(ability(&model(0xc03114), &says, ""), Ability::Yes);
        assert!(matches!(ability(&model(0xc03114), &[], ""), Ability::Unsure(_)));
        assert!(matches!(ability(&model(0xa02082), &says, "include x"), Ability::Unsure(_)));
        assert!(matches!(ability(&Model::other(), &says, ""), Ability::No(_)));
    }

    #[test]
    fn the_mark_is_four_bytes() {
        assert_eq!(is_trial(&[0, 0, 0, 1]), Some(true));
        assert_eq!(is_trial(&[0; 4]), Some(false));
        assert_eq!(is_trial(&[]), None);
    }
}
