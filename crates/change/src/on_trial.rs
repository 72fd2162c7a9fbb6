//! The start on trial in the middle of a change: where it is, in words, and how it is kept.

use std::path::Path;

use crate::apply::{BOOT_ID, Change, Ending};
use crate::plan::promise::{Look, Promise};
use crate::plan::verify::{Answer, PromiseState};
use rubus_boot::tryboot;
use rubus_host::{Files, Live};

/// Where a change is that has a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The machine was not started since.
    NotStarted,
    /// The machine runs the new way.
    Running,
    /// The machine was started since, and runs the old way.
    OldAgain,
}

/// Where a change on trial is; nothing for any other. `answers` are those to `promises`.
pub fn stage(
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
    let holds = |answer: &Answer| answer.standing == PromiseState::Holds;
    let root = promises.iter().zip(answers).find(|(promise, _)| is_root(promise));
    let is_new = match root {
        Some((_, answer)) => holds(answer),
        None => answers.iter().all(holds),
    };
    Some(if is_new { Stage::Running } else { Stage::OldAgain })
}

/// Whether a trial that runs is passed: root and swap are as promised, and no initial RAM filesystem is known to lack what the
/// root needs. `answers` are those to `promises`, and behind them those about the initial RAM filesystems.
pub fn may_be_kept(promises: &[Promise], answers: &[Answer]) -> bool {
    let pairs = promises.iter().zip(answers);
    let mut deciding = pairs.filter(|(promise, _)| promise.look.decides_trial());
    let mut images = answers.iter().skip(promises.len());
    deciding.all(|(_, answer)| answer.standing == PromiseState::Holds)
        && images.all(|answer| answer.standing != PromiseState::Broken)
}

/// What a trial starts, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tried {
    /// What runs on trial: "the new system".
    pub new: &'static str,
    /// What every other start is: "the old system".
    pub old: &'static str,
    /// When it is kept: "root and swap are as promised".
    pub holds: &'static str,
}

impl Tried {
    /// What these promises are about.
    pub fn of(promises: &[Promise]) -> Tried {
        let is_link = |promise: &Promise| matches!(promise.look, Look::PcieLink { .. });
        if promises.iter().any(is_link) {
            Tried {
                new: "the board with the new link",
                old: "the one with the old link",
                holds: "the link is as promised",
            }
        } else {
            Tried {
                new: "the new system",
                old: "the old system",
                holds: "root and swap are as promised",
            }
        }
    }
}

/// What has to be known of a change on trial. `holds`: whether it may be kept ([`may_be_kept`]).
pub fn words(change: &Change, stage: Stage, holds: Option<bool>) -> String {
    let start = start_of(change);
    let Tried { new, old, holds: kept_when } = Tried::of(&change.plan.promises);
    match (stage, holds) {
        (Stage::NotStarted, _) => waiting(change),
        (Stage::Running, Some(false)) => format!(
            "Now runs {new}, but something that decides is not as promised (look above), so it was not kept: the next normal start is \
             {old}. Fix it and run `rubus verify` again, or take everything back with `rubus undo`."
        ),
        (Stage::Running, _) => format!(
            "Now runs {new}, on trial: `rubus verify` keeps it when {kept_when}. Until then the next normal start is {old}."
        ),
        (Stage::OldAgain, _) => format!(
            "The machine was restarted and runs {old}: the trial was not started, or it failed and the firmware went \
             back. Nothing is lost. `{start}` tries again, `rubus undo` takes everything back."
        ),
    }
}

/// What is to be done next where a change waits for its trial.
pub fn next(change: &Change) -> String {
    let Tried { new, old, holds } = Tried::of(&change.plan.promises);
    format!(
        "{} waits for its trial.\n  {}   starts {new} once\n  rubus verify   there, keeps it if {holds}\n\
         If it does not come up, turn the power off and on: then starts {old}.\n`rubus undo` takes everything back.\n",
        change.name,
        start_of(change)
    )
}

/// What became of keeping it.
pub fn kept(ending: &Ending, promises: &[Promise]) -> String {
    let Tried { new, old, .. } = Tried::of(promises);
    match ending {
        Ending::RolledBack { why } => {
            format!(
                "It could not be kept ({why}), and everything was put back: the next start is {old}."
            )
        }
        _ => {
            format!("The trial succeeded: every start is now {new}. `rubus undo` goes back.")
        }
    }
}

/// What the firmware says about this start, where it does.
pub fn told_by_firmware(live: &Live) -> Option<(String, String)> {
    let path = Path::new(tryboot::BOOTLOADER_NODE).join("tryboot");
    let bytes = live.read_prefix(&path, 4).ok()?;
    let words = if tryboot::is_trial(&bytes)? {
        "on trial, the firmware says"
    } else {
        "a usual one, the firmware says"
    };
    Some(("this start".into(), words.into()))
}

fn waiting(change: &Change) -> String {
    let (start, Tried { new, old, .. }) = (start_of(change), Tried::of(&change.plan.promises));
    format!(
        "It waits for its trial: `{start}` starts {new} once, and `rubus verify` there keeps it. Every other start is \
         {old}. If the new one does not come up, turn the power off and on."
    )
}

fn start_of(change: &Change) -> &str {
    let trial = change.plan.trial.as_ref();
    trial.map_or("sudo reboot", |trial| &trial.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel setting or a busy card is no reason to go back to the old system at every start.
    #[test]
    fn root_swap_and_boot_files_decide_and_the_rest_is_told() {
        let promises = crate::fixture::long_plan::big_plan().promises;
        let answers = |is_broken: &dyn Fn(&Promise) -> bool| -> Vec<Answer> {
            let each = promises.iter().map(|promise| Answer {
                what: promise.what.clone(),
                standing: if is_broken(promise) {
                    PromiseState::Broken
                } else {
                    PromiseState::Holds
                },
                found: String::new(),
            });
            each.collect()
        };
        let is_root = |promise: &Promise| matches!(promise.look, Look::Mounted { .. });
        let is_swap = |promise: &Promise| matches!(promise.look, Look::SwapOn { .. });
        assert!(promises.iter().any(is_root) && promises.iter().any(is_swap));
        assert!(!may_be_kept(&promises, &answers(&is_root)));
        assert!(!may_be_kept(&promises, &answers(&is_swap)));
        let told = answers(&|promise| !is_root(promise) && !is_swap(promise));
        assert!(may_be_kept(&promises, &told));
        let mut with_image = told;
        with_image.push(Answer {
            what: "initramfs8 starts the root".into(),
            standing: PromiseState::Broken,
            found: String::new(),
        });
        assert!(!may_be_kept(&promises, &with_image));
    }
}
