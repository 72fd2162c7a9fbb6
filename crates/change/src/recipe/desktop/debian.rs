//! Debian's own images: the package `raspi-firmware` writes `cmdline.txt` anew with each kernel and each initial RAM filesystem.
//!
//! Its hooks `z50-raspi-firmware` take the root from `ROOTPART` in `/etc/default/raspi-firmware`, else from what is mounted.
//! Without the new root there, the next update of either root would put the old one back. The package of Raspberry Pi OS has
//! hooks of the same name that leave the command line alone.

use std::path::{Path, PathBuf};

use super::super::Situation;
use super::super::edits::with_assignment;
use super::scene::Scene;
use crate::boot::cmdline_txt::CmdlineTxt;

/// Settings of the hooks, which are a shell's.
pub(super) const SETTINGS: &str = "/etc/default/raspi-firmware";
const HOOK: &str = "/etc/kernel/postinst.d/z50-raspi-firmware";

pub(super) fn paths() -> Vec<PathBuf> {
    vec![SETTINGS.into(), HOOK.into()]
}

/// The settings with the new root; nothing where the command line is not written anew.
pub(super) fn settings(situation: &Situation<'_>, scene: &Scene<'_>) -> Option<String> {
    let hook = situation.text(Path::new(HOOK));
    if !hook.contains(">/boot/firmware/cmdline.txt") {
        return None;
    }
    let (_, _, line) = scene.cmdlines.first()?;
    let line = CmdlineTxt::parse(line.as_str());
    let root = line.get("root")?;
    let further = ["rootfstype", "rootflags"].into_iter();
    let further = further.filter_map(|name| Some(format!(" {name}={}", line.get(name)?)));
    let value = format!("\"{root}{}\"", further.collect::<String>());
    let old = situation.text(Path::new(SETTINGS));
    Some(with_assignment(old, "ROOTPART", "=", &value))
}
