//! What the machine shows beyond the journal. A journal that knows no end may end before the machine does: its filesystem lost
//! the last lines, or it is a copy that another root made earlier. Going back then has to look at every step.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use rubus_host::Files;

use crate::plan::Action;
use crate::plan::journal::{Record, StepState, Way};
use crate::steps::{Trace, TraceSite};

use super::Change;

/// What of a change is not as it was before it, once it was undone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// What undoing does not bring back; the plan said so.
    pub announced: Vec<String>,
    /// What should have been taken back and was not, or belongs to something else.
    pub found: Vec<String>,
}

impl Left {
    /// Whether everything is as it was.
    pub fn is_nothing(&self) -> bool {
        self.announced.is_empty() && self.found.is_empty()
    }
}

/// The steps of an unfinished change that are or may be in place although its journal does not know them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unrecorded {
    /// Step numbers, from 0.
    pub steps: Vec<usize>,
    /// Whether the machine shows one of them: the journal ends early for certain.
    pub is_in_sight: bool,
}

/// Looks at every step that the journal does not know as done.
pub fn unrecorded(change: &Change, files: &dyn Files) -> Unrecorded {
    let state = &change.state;
    let traces = unrecorded_traces(change, files);
    // Steps are done in order, so one that is in place tells of all before it.
    let is_made = |(_, trace): &&(usize, Trace)| *trace == Trace::Made;
    let last_made = traces.iter().rfind(is_made).map(|(step, _)| *step);
    let is_untouched = |(_, trace): &&(usize, Trace)| *trace == Trace::Untouched;
    let first_untouched = traces.iter().find(is_untouched).map(|(step, _)| *step);
    let may_be_made = |step: usize| {
        !state.waits_for_trial(step)
            && first_untouched.is_none_or(|first| step < first)
            && !change.is_on_new_filesystem(step)
            // What cannot be brought back needs no look, and must not be called lost without a sign of it.
            && change.plan.steps[step].action.behaviour().touches().leaves.is_none()
    };
    let is_suspect = |(step, trace): &(usize, Trace)| match trace {
        Trace::Made => true,
        Trace::Untouched => false,
        Trace::Foreign(_) => last_made.is_some_and(|last| *step < last),
        Trace::Unseen => last_made.is_some_and(|last| *step < last) || may_be_made(*step),
    };
    Unrecorded {
        is_in_sight: last_made.is_some(),
        steps: traces.iter().filter(|trace| is_suspect(trace)).map(|(step, _)| *step).collect(),
    }
}

/// What the machine shows of the steps that the journal does not know as done; nothing where it knows its end.
fn unrecorded_traces(change: &Change, files: &dyn Files) -> Vec<(usize, Trace)> {
    let state = &change.state;
    let knows_its_end = state.is_finished || state.way == Way::Undo;
    if change.is_fresh || knows_its_end {
        return Vec::new();
    }
    let not_done = state
        .steps
        .iter()
        .enumerate()
        .filter(|(step, state)| **state == StepState::NotDone && !change.was_refused(*step));
    let traces = not_done.map(|(step, _)| (step, change.trace(step, files))).collect();
    without_ambiguous(change, traces)
}

/// A plan may make a file and remove it in the end: that nothing is there says both that neither is done and that both are.
fn without_ambiguous(change: &Change, traces: Vec<(usize, Trace)>) -> Vec<(usize, Trace)> {
    let place = |step: usize| place_of(&change.plan.steps[step].action);
    let mut first: BTreeMap<Place, &Trace> = BTreeMap::new();
    let mut ambiguous: BTreeSet<Place> = BTreeSet::new();
    for (step, trace) in &traces {
        let Some(place) = place(*step) else { continue };
        let is_untouched_first = first.get(&place).is_some_and(|first| **first == Trace::Untouched);
        if is_untouched_first && *trace == Trace::Made {
            ambiguous.insert(place.clone());
        }
        first.entry(place).or_insert(trace);
    }
    let settled = traces.iter().map(|(step, trace)| {
        let is_ambiguous = place(*step).is_some_and(|place| ambiguous.contains(&place));
        (*step, if is_ambiguous { Trace::Unseen } else { trace.clone() })
    });
    settled.collect()
}

/// What is not as it was before a change that was undone. Only looks.
pub fn left(change: &Change, files: &dyn Files) -> Left {
    let mut left = Left::default();
    let mut seen = BTreeSet::new();
    for (number, step) in change.plan.steps.iter().enumerate() {
        let is_concerned = change.was_begun(number) || !change.is_fresh;
        // What was there before the plan is what its first step at that place found.
        let is_first = place_of(&step.action).is_none_or(|place| seen.insert(place));
        if !is_concerned || change.was_refused(number) || !is_first {
            continue;
        }
        if let Some(words) = step.action.behaviour().touches().leaves {
            if change.was_begun(number) && !left.announced.contains(&words) {
                left.announced.push(words);
            }
            continue;
        }
        match (change.trace(number, files), &step.action) {
            (Trace::Untouched | Trace::Unseen, _) => {}
            (Trace::Made, Action::MakeDirectory(step)) => {
                let path = step.path.display();
                left.announced.push(format!("the directory {path} stays: something is in it"));
            }
            (Trace::Made, action) => left.found.push(format!("still in place: {}", action.title())),
            (Trace::Foreign(how), action) => {
                let words = format!(
                    "{} is neither as it was before nor as this change left it ({how}), and was not touched",
                    name_of(action)
                );
                // Undoing has looked at it, and has left what is not this change's.
                let kind =
                    if change.was_begun(number) { &mut left.announced } else { &mut left.found };
                kind.push(words);
            }
        }
    }
    left
}

/// What a step changes: a path of the running system, or something else by its name.
type Place = (bool, PathBuf);

fn place_of(action: &Action) -> Option<Place> {
    let touches = action.behaviour().touches();
    let path = touches.path.map(|path| (true, path.clone()));
    path.or_else(|| Some((false, touches.others.into_iter().next()?)))
}

fn name_of(action: &Action) -> String {
    action.path().map_or_else(|| action.title(), |path| path.display().to_string())
}

impl Change {
    /// What the machine shows of a step.
    fn trace(&self, step: usize, files: &dyn Files) -> Trace {
        let action = &self.plan.steps[step].action;
        if let Some(how) = self.places.moved(action, files) {
            return Trace::Foreign(how);
        }
        let site = TraceSite { change: &self.name, directory: self.directory(), step };
        action.behaviour().trace(&site, files)
    }

    /// Whether its journal says that a step was begun.
    pub(super) fn was_begun(&self, step: usize) -> bool {
        let is_it =
            |record: &Record| matches!(record, Record::Begun { step: begun } if *begun == step);
        self.records.iter().any(is_it)
    }

    /// Whether a step is on a filesystem that the plan itself makes: nothing uses that before a later step, which can be seen.
    fn is_on_new_filesystem(&self, step: usize) -> bool {
        let Action::On(on) = &self.plan.steps[step].action else {
            return false;
        };
        let is_its = |action: &Action| matches!(action, Action::Format(made) if made.filesystem.uuid == on.volume.uuid);
        self.plan.steps.iter().any(|step| is_its(&step.action))
    }
}

#[cfg(test)]
#[path = "unrecorded_tests.rs"]
mod tests;
