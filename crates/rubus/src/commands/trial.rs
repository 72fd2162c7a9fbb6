//! The start on trial in the middle of a change: where it is, in words, and how it is kept.

use std::path::Path;

use rubus_apply::change::{BOOT_ID, Change, Ending};
use rubus_core::boot::tryboot;
use rubus_core::plan::promise::{Look, Promise};
use rubus_core::plan::verify::{Answer, Standing};
use rubus_host::{Files, Live};

/// Where a change is that has a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The machine was not started since.
    NotStarted,
    /// The machine runs the new way.
    Running,
    /// The machine was started since, and runs the old way.
    OldAgain,
}

/// Where a change on trial is; nothing for any other. `answers` are those to `promises`.
pub(super) fn stage(
    change: &Change,
    promises: &[Promise],
    answers: &[Answer],
    live: &Live,
) -> Option<Stage> {
    if !change.state.is_on_trial() {
        return None;
    }
    let boot = live.text(Path::new(BOOT_ID)).ok();
    if !change.started_since(boot.as_deref()) {
        return Some(Stage::NotStarted);
    }
    let is_root = |promise: &Promise| matches!(&promise.look, Look::Mounted { at, .. } if at == Path::new("/"));
    let holds = |answer: &Answer| answer.standing == Standing::Holds;
    let root = promises
        .iter()
        .zip(answers)
        .find(|(promise, _)| is_root(promise));
    let is_new = match root {
        Some((_, answer)) => holds(answer),
        None => answers.iter().all(holds),
    };
    Some(if is_new {
        Stage::Running
    } else {
        Stage::OldAgain
    })
}

/// What has to be known of a change on trial. `holds`: whether every promise was looked at and holds.
pub(super) fn words(change: &Change, stage: Stage, holds: Option<bool>) -> String {
    let start = start_of(change);
    match (stage, holds) {
        (Stage::NotStarted, _) => waiting(start),
        (Stage::Running, Some(false)) => {
            "The machine runs the new way, but not everything holds, so it was not kept: the next usual start is the old system. \
             Mend it and say `rubus verify` again, or take everything back with `rubus undo`."
                .into()
        }
        (Stage::Running, _) => {
            "The machine runs the new way, on trial: `rubus verify` keeps it when everything holds. Until then the next usual \
             start is the old system."
                .into()
        }
        (Stage::OldAgain, _) => format!(
            "The machine was started since and runs the old way: the trial was not started, or it failed and the firmware went \
             back. Nothing is lost. `{start}` tries it again, `rubus undo` takes everything back."
        ),
    }
}

/// What is to be done next where a change waits for its trial.
pub(super) fn next(change: &Change) -> String {
    format!(
        "{} waits for its trial.\n  {}   starts the new system once\n  rubus verify   there, keeps it if everything holds\n\
         If it does not come up, switch the power off and on: the old system starts.\n`rubus undo` takes everything back.\n",
        change.name,
        start_of(change)
    )
}

/// What became of keeping it.
pub(super) fn kept(ending: &Ending) -> String {
    match ending {
        Ending::RolledBack { why } => {
            format!("It could not be kept ({why}), and everything was put back: the next start is the old system.")
        }
        _ => "The trial is passed: from now on every start is the new system. `rubus undo` goes back.".into(),
    }
}

/// What the firmware says about this start, where it does.
pub(super) fn told_by_firmware(live: &Live) -> Option<(String, String)> {
    let path = Path::new(tryboot::BOOTLOADER_NODE).join("tryboot");
    let bytes = live.read_prefix(&path, 4).ok()?;
    let words = match tryboot::is_trial(&bytes)? {
        true => "on trial, the firmware says",
        false => "a usual one, the firmware says",
    };
    Some(("this start".into(), words.into()))
}

fn waiting(start: &str) -> String {
    format!(
        "It waits for its trial: `{start}` starts the new system once, and `rubus verify` there keeps it. Every other start is \
         the old system. If the new one does not come up, switch the power off and on."
    )
}

fn start_of(change: &Change) -> &str {
    let trial = change.plan.trial.as_ref();
    trial.map_or("sudo reboot", |trial| &trial.start)
}
