//! Debian's own images: the package `raspi-firmware` rewrites `cmdline.txt` with each kernel and each initramfs.
//!
//! Its hooks `z50-raspi-firmware` take the root from `ROOTPART` in `/etc/default/raspi-firmware`, else from what is mounted.
//! Without a root there, the next update names the root that runs: before the restart the old one, and after undoing the
//! new one. So both roots name the old one until the switch, and again once that is undone. The package of
//! Raspberry Pi OS has hooks of the same name that leave the command line alone.

use std::path::{Path, PathBuf};

use super::super::edits::with_assignment;
use super::super::moving::raspi_firmware;
use super::super::{PathState, PlanInput};
use super::scene::Scene;
use rubus_boot::cmdline_txt::CmdlineTxt;
use rubus_change::plan::{Action, TextFile};
use rubus_change::steps::{On, WriteFile};

/// Settings of the hooks, which are a shell's.
pub(super) const SETTINGS: &str = "/etc/default/raspi-firmware";

pub(super) fn paths() -> Vec<PathBuf> {
    vec![SETTINGS.into(), raspi_firmware::HOOK.into()]
}

/// Which root the command line is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    Old,
    New,
}

/// The settings with a root; nothing where the command line is not rewritten.
pub(super) fn settings(
    situation: &PlanInput<'_>,
    scene: &Scene<'_>,
    named: Named,
) -> Option<String> {
    if !raspi_firmware::rewrites_command_line(situation) {
        return None;
    }
    let (_, old, new) = scene.cmdlines.first()?;
    let line = CmdlineTxt::parse(match named {
        Named::Old => &old.text,
        Named::New => new,
    });
    let root = line.get("root")?;
    let further = ["rootfstype", "rootflags"].into_iter();
    let further = further.filter_map(|name| Some(format!(" {name}={}", line.get(name)?)));
    let value = format!("\"{root}{}\"", further.collect::<String>());
    let old = situation.text(Path::new(SETTINGS));
    Some(with_assignment(old, "ROOTPART", "=", &value))
}

/// On the new root, from the old root to the new one.
pub(super) fn switch(situation: &PlanInput<'_>, scene: &Scene<'_>) -> Option<Action> {
    let mode = match situation.facts.seen.get(Path::new(SETTINGS)) {
        Some(PathState::Text(file)) => file.mode,
        _ => TextFile::public("").mode,
    };
    let file = |named| {
        let text = settings(situation, scene, named)?;
        Some(TextFile { text, mode })
    };
    Some(Action::On(On {
        volume: scene.new.root_volume.clone(),
        action: Box::new(Action::WriteFile(WriteFile {
            path: SETTINGS.into(),
            was: Some(file(Named::Old)?),
            becomes: file(Named::New)?,
        })),
        is_undone: true,
    }))
}
