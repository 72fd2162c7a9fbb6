//! The start on trial: whether it is made, and the steps around it.
//!
//! The firmware reads `tryboot.txt` in place of `config.txt` once. That file names a command line of its own, so that
//! nothing that a usual start reads is changed before the new system has come up.

use std::path::{Path, PathBuf};

use super::super::moving::checks::INITRAMFS_BYTES;
use super::super::moving::steps::{push, write};
use super::super::moving::trial::{
    TWO_SYSTEMS, ability, file_in_the_way, start_once, starts_elsewhere,
};
use super::super::{PlanBuilder, PlanInput};
use super::current::{self, Start};
use super::kernels::Kernel;
use super::options::{Choice, TrialWish};
use super::scene::Scene;
use rubus_boot::cmdline_txt::CmdlineTxt;
use rubus_boot::tryboot::{self, Ability};
use rubus_change::plan::{Action, TextFile};
use rubus_change::steps::RemoveFile;
use rubus_vocabulary::machine::Machine;

/// The command line of the trial.
const CMDLINE: &str = "cmdline-rubus.txt";
/// The initial RAM filesystem of the trial.
const INITRAMFS: &str = "initramfs-rubus";
/// Seconds after which a trial that failed is ended.
const PANIC_S: &str = "30";

/// The files that only the trial reads.
pub(super) const NAMES: [&str; 3] = [tryboot::FILE, CMDLINE, INITRAMFS];

/// What to look at, below the boot partition's mount point and elsewhere.
pub(super) fn paths(point: &Path) -> Vec<PathBuf> {
    let mut paths = files(point).to_vec();
    paths.push(point.join(TWO_SYSTEMS));
    paths.push(tryboot::BOOTLOADER_NODE.into());
    paths
}

/// The same in the boot partition that is mounted there.
pub(super) fn files(point: &Path) -> [PathBuf; 3] {
    NAMES.map(|name| point.join(name))
}

/// The name of the trial's own initial RAM filesystem, so that every usual start reads the current one. With several kernels
/// that may be started, or too little room, there is none: what the firmware reads anyway starts both roots then.
pub(super) fn initramfs(machine: &Machine, kernels: &[Kernel]) -> Option<&'static str> {
    let available = current::boot(machine).and_then(|boot| boot.available_bytes.get());
    // The one on trial, the one that is kept, and the one that takes its place.
    let has_room = available.is_none_or(|bytes| bytes >= 3 * INITRAMFS_BYTES);
    (kernels.len() == 1 && has_room).then_some(INITRAMFS)
}

/// Whether the new system is first started on trial, as wished and as the board can. What speaks against it is a check
/// that fails where it was asked for, and a note where it was not.
pub(super) fn is_made(
    situation: &PlanInput<'_>,
    choice: &Choice,
    start: &Start<'_>,
    draft: &mut PlanBuilder,
) -> bool {
    if choice.trial == TrialWish::No {
        return false;
    }
    let ability = ability(situation, start);
    let obstacle = obstacle(start).or_else(|| starts_elsewhere(situation, start));
    if choice.trial == TrialWish::Auto {
        let why_not = match (ability, obstacle) {
            (Ability::Yes, None) => {
                checked(true, "the firmware says so", draft);
                return true;
            }
            // Users without a Raspberry Pi need not hear of it.
            (Ability::No(_), _) => return false,
            (_, Some(why)) | (Ability::Unsure(why), None) => why,
        };
        draft.notes.push(format!(
            "The new system is not started on trial first: {why_not}. With trial=yes it is tried all the same."
        ));
        return false;
    }
    if let Some(why) = obstacle {
        checked(false, &why, draft);
        return false;
    }
    match ability {
        Ability::Yes => checked(true, "the firmware says so", draft),
        Ability::No(why) | Ability::Unsure(why) => {
            checked(true, &format!("you asked for it; {why}"), draft);
            draft.risks.push(
                "It is unknown whether this board can start on trial. If it cannot, the old system comes up instead, \
                 and nothing \
                 is lost: `rubus undo`, and apply with trial=no."
                    .into(),
            );
        }
    }
    true
}

fn checked(is_met: bool, found: &str, draft: &mut PlanBuilder) {
    draft.check(
        "the new system can first be started on trial",
        is_met,
        found,
        "put that right, or do without (trial=no)",
    );
}

/// What in the boot partition is in the way, as a sentence without its full stop.
fn obstacle(start: &Start<'_>) -> Option<String> {
    let names = [tryboot::FILE, TWO_SYSTEMS, CMDLINE, INITRAMFS];
    if let Some(found) = file_in_the_way(start, &names) {
        return Some(found);
    }
    if start.has_prefix {
        return Some("config.txt loads files with a prefix (os_prefix)".into());
    }
    match start.cmdlines.len() {
        1 => None,
        count => Some(format!("config.txt leads to {count} different command lines")),
    }
}

/// The command line of the trial, beside the current one.
pub(super) fn command_line(situation: &PlanInput<'_>, scene: &Scene<'_>, draft: &mut PlanBuilder) {
    let Some(becomes) = line(scene) else { return };
    write(
        situation,
        draft,
        "trial-cmdline",
        "The command line for the new root, under a name that only the trial reads.",
        &scene.start.point.join(CMDLINE),
        becomes,
    );
}

/// What makes the trial possible, and the trial.
pub(super) fn begin(
    situation: &PlanInput<'_>,
    scene: &Scene<'_>,
    config: &str,
    draft: &mut PlanBuilder,
) {
    start_once(situation, &scene.start, settings(scene, config), draft);
    if scene.trial_initramfs.is_none() {
        let kernels = scene.kernels.iter();
        let each: Vec<&str> = kernels.map(|kernel| kernel.initramfs.as_str()).collect();
        draft.notes.push(format!(
            "{}, so that the trial and every usual start share the initial RAM filesystem ({}). It starts both roots, which is \
             proven before.",
            match each.len() {
                1 => "The boot partition has no room for a second one",
                _ => "This board may start several kernels",
            },
            each.join(", ")
        ));
    }
}

/// The trial's files go when it is passed.
pub(super) fn end(scene: &Scene<'_>, config: &str, draft: &mut PlanBuilder) {
    let remove = |draft: &mut PlanBuilder, id: &str, name: &str, was: TextFile| {
        push(
            draft,
            id,
            "It was for the trial only.",
            Action::RemoveFile(RemoveFile { path: scene.start.point.join(name), was }),
        );
    };
    remove(draft, "trial-config-goes", tryboot::FILE, settings(scene, config));
    if let Some(was) = line(scene) {
        remove(draft, "trial-cmdline-goes", CMDLINE, was);
    }
}

/// The only command line, with the new root. A trial that does not find it ends by itself: the initial RAM filesystem, and
/// the kernel, start the machine again some seconds after they gave up, the old way.
fn line(scene: &Scene<'_>) -> Option<TextFile> {
    let (_, file, text) = scene.cmdlines.first()?;
    Some(TextFile { text: with_panic(text), mode: file.mode })
}

fn with_panic(text: &str) -> String {
    let mut line = CmdlineTxt::parse(text);
    if line.get("panic").is_some() || line.set("panic", PANIC_S).is_err() {
        return text.into();
    }
    // Which processor reads it is not known here.
    match line.fits(true) {
        Ok(()) => line.text().into(),
        Err(_) => text.into(),
    }
}

fn settings(scene: &Scene<'_>, config: &str) -> TextFile {
    TextFile {
        text: tryboot::text(config, CMDLINE, scene.trial_initramfs),
        mode: scene.start.config.mode,
    }
}
