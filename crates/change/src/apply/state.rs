//! Whether what was applied still holds. Only looks.

use crate::plan::journal::{Receipt, Record, StepState, Way};
use crate::plan::verify::{Answer, PromiseState};
use crate::steps::{Action, ImageState, image_state};
use rubus_host::Files;

use super::Change;

/// What is not as a change left it that is applied or on trial, in words; nothing for any other change. What one of the
/// `later` changes has changed again is that one's business.
pub fn differences(change: &Change, later: &[Change], files: &dyn Files) -> Vec<String> {
    let is_at_rest = change.state.is_finished || change.state.is_on_trial();
    if !is_at_rest || change.state.way != Way::Apply {
        return Vec::new();
    }
    let steps = change.steps_in_force(later).into_iter();
    steps.filter_map(|(_, action)| action.behaviour().difference(files)).collect()
}

/// What is not as planned among the steps that the journal does not know as done, in words; nothing for a change
/// that is not on its way forwards. Empty for an unfinished change means that all of it is done, only not
/// written down: a copy of a journal on another root was made before the last steps.
pub fn not_done(change: &Change, files: &dyn Files) -> Vec<String> {
    if change.state.is_finished || change.state.is_on_trial() || change.state.way != Way::Apply {
        return Vec::new();
    }
    let steps = change.plan.steps.iter().zip(&change.state.steps);
    steps
        .enumerate()
        .filter(|(number, _)| !change.state.waits_for_trial(*number))
        .map(|(_, step)| step)
        .filter(|(_, state)| **state != StepState::Done)
        .filter_map(|(step, _)| {
            let behaviour = step.action.behaviour();
            // Nothing that can be looked at afterwards says that some are whole.
            if behaviour.shows_completion() {
                behaviour.difference(files)
            } else {
                Some(step.action.title())
            }
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
        let takes = |action: &Action| action.behaviour().touches().takes == path;
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

/// What became of the initial RAM filesystems that a change has put in place, where nothing later has taken theirs.
pub fn initramfs_answers(change: &Change, later: &[Change], files: &dyn Files) -> Vec<Answer> {
    let steps = change.steps_in_force(later).into_iter();
    let all = steps.filter_map(|(number, action)| {
        let (path, state) = image_state(action, change.receipt_of(number), files)?;
        let (standing, found) = match state {
            ImageState::Starts(found) => (PromiseState::Holds, found),
            ImageState::Broken(found) => (PromiseState::Broken, found),
            ImageState::Unknown(found) => (PromiseState::Unknown, found),
        };
        Some(Answer { what: format!("{} starts the root", path.display()), standing, found })
    });
    all.collect()
}
