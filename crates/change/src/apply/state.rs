//! Whether what was applied still holds. Only looks.

use std::path::Path;

use crate::plan::journal::{Receipt, Record, StepState, Way};
use crate::plan::{Action, TextFile, knob_says};
use rubus_boot::cmdline_txt::{is_command_line, taken_back};
use rubus_host::{Files, ReadError};

use super::{Change, StepRunner};

/// What is not as a change left it that is applied or on trial, in words; nothing for any other change. What one of the
/// `later` changes has changed again is that one's business.
pub fn differences(
    change: &Change,
    later: &[Change],
    files: &dyn Files,
    step_runner: &dyn StepRunner,
) -> Vec<String> {
    let is_at_rest = change.state.is_finished || change.state.is_on_trial();
    if !is_at_rest || change.state.way != Way::Apply {
        return Vec::new();
    }
    let steps = change.steps_in_force(later).into_iter();
    steps.filter_map(|(_, action)| difference(action, files, step_runner)).collect()
}

/// What is not as planned among the steps that the journal does not know as done, in words; nothing for a change
/// that is not on its way forwards. Empty for an unfinished change means that all of it is done, only not
/// written down: a copy of a journal on another root was made before the last steps.
pub fn not_done(change: &Change, files: &dyn Files, step_runner: &dyn StepRunner) -> Vec<String> {
    if change.state.is_finished || change.state.is_on_trial() || change.state.way != Way::Apply {
        return Vec::new();
    }
    let steps = change.plan.steps.iter().zip(&change.state.steps);
    steps
        .enumerate()
        .filter(|(number, _)| !change.state.waits_for_trial(*number))
        .map(|(_, step)| step)
        .filter(|(_, state)| **state != StepState::Done)
        .filter_map(|(step, _)| match step.action {
            // Nothing that can be looked at afterwards says that these are whole.
            Action::Partition { .. }
            | Action::Format { .. }
            | Action::MakeArray { .. }
            | Action::CopyTree { .. }
            | Action::On { .. } => Some(step.action.title()),
            _ => difference(&step.action, files, step_runner),
        })
        .collect()
}

impl Change {
    /// The steps that are done and of which nothing later, of this change or of `later` ones, has taken the place: their
    /// numbers, from 0, and actions.
    pub(crate) fn steps_in_force(&self, later: &[Change]) -> Vec<(usize, &Action)> {
        let steps = self.plan.steps.iter().zip(&self.state.steps).enumerate();
        steps
            .filter(|(number, _)| !self.has_done_again(*number))
            .filter(|(_, (_, state))| **state == StepState::Done)
            .map(|(number, (step, _))| (number, &step.action))
            .filter(|(_, action)| !later.iter().any(|later| later.holds(action)))
            .collect()
    }

    /// The receipt of a step, the last one that was given.
    pub fn receipt_of(&self, number: usize) -> Option<&Receipt> {
        self.records.iter().rev().find_map(|record| match record {
            Record::Done { step, receipt } if *step == number => Some(receipt),
            _ => None,
        })
    }

    /// Whether a later step of the same change has changed what this one changed.
    fn has_done_again(&self, number: usize) -> bool {
        let path = self.plan.steps[number].action.path();
        let later = self.plan.steps.iter().zip(&self.state.steps).skip(number + 1);
        let mut done = later.filter(|(_, state)| **state == StepState::Done);
        let takes = |action: &Action| match action {
            Action::InstallInitramfs { from, .. } => Some(from) == path,
            _ => false,
        };
        path.is_some() && done.any(|(step, _)| step.action.path() == path || takes(&step.action))
    }

    /// Whether the change is in force and has something to say about what an action changes.
    fn holds(&self, action: &Action) -> bool {
        let in_force = self.state.way == Way::Apply;
        in_force
            && self
                .plan
                .steps
                .iter()
                .any(|step| action.path().is_some() && step.action.path() == action.path())
    }
}

/// What is not as an action left it, in words.
pub(super) fn difference(
    action: &Action,
    files: &dyn Files,
    step_runner: &dyn StepRunner,
) -> Option<String> {
    match action {
        Action::MakeDirectory { path } => {
            (!files.exists(path)).then(|| format!("{} is gone", path.display()))
        }
        Action::RemoveFile { path, .. } => {
            files.exists(path).then(|| format!("{} is there again", path.display()))
        }
        Action::WriteFile { path, was: Some(was), becomes } if is_command_line(path) => {
            command_line_difference(path, was, becomes, files)
        }
        Action::WriteFile { path, becomes, .. } => file_difference(path, becomes, files),
        Action::SetKnob { path, becomes, .. } => {
            let shown = path.display();
            match files.text(path) {
                Ok(live) if knob_says(&live, becomes) => None,
                Ok(live) => Some(format!("{shown} is {live} instead of {becomes}")),
                Err(error) => Some(missing(path, &error)),
            }
        }
        Action::SetLink { path, becomes, .. } => {
            let live = files.link(path).ok();
            (live != *becomes).then(|| format!("the link {} was changed", path.display()))
        }
        // What is on another filesystem is that one's business once it is in use.
        Action::On { .. } | Action::KeepJournal { .. } | Action::FillBoot { .. } => None,
        _ => step_runner.difference(action, files),
    }
}

/// Whoever writes a command line anew or adds words to it, as Debian's raspi-firmware does with each update, has changed
/// nothing of a change whose words are all there.
fn command_line_difference(
    path: &Path,
    was: &TextFile,
    becomes: &TextFile,
    files: &dyn Files,
) -> Option<String> {
    let difference = file_difference(path, becomes, files)?;
    let live = read(files, path).ok()?;
    // Making the change on what is there changes nothing.
    let made = taken_back(&becomes.text, &was.text, &live.text);
    (made.as_ref() != Ok(&live.text)).then_some(difference)
}

fn file_difference(path: &Path, becomes: &TextFile, files: &dyn Files) -> Option<String> {
    let shown = path.display();
    match read(files, path) {
        Ok(live) if live == *becomes => None,
        Ok(live) if live.text == becomes.text && !files.keeps_modes(path) => None,
        Ok(live) if live.text == becomes.text => {
            Some(format!("{shown} has mode {:o} instead of {:o}", live.mode, becomes.mode))
        }
        Ok(_) => Some(format!("{shown} was changed")),
        Err(error) => Some(missing(path, &error)),
    }
}

fn missing(path: &Path, error: &ReadError) -> String {
    match error {
        ReadError::Absent => format!("{} is gone", path.display()),
        error => format!("{} cannot be read: {error}", path.display()),
    }
}

fn read(files: &dyn Files, path: &Path) -> Result<TextFile, ReadError> {
    const MAX_BYTES: usize = 1 << 20;
    let bytes = files.read_prefix(path, MAX_BYTES)?;
    Ok(TextFile { text: String::from_utf8_lossy(&bytes).into_owned(), mode: files.mode(path)? })
}
