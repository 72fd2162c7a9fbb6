//! What is in the way of undoing a change, found before anything is touched: files that something else has changed since,
//! and later changes that lie on it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::plan::journal::{StepState, Way};
use crate::steps::{Action, Step};
use rubus_host::Files;

use super::engine::not_followed;
use super::{Change, unrecorded};

/// What cannot be undone of a change as things are, and what to do, in the order in which it would be met. Only looks.
/// `earlier` are the changes before it.
pub fn obstacles(change: &Change, earlier: &[Change], files: &dyn Files) -> Vec<String> {
    let steps = change.plan.steps.iter().zip(&change.state.steps);
    let unrecorded = unrecorded(change, files).steps;
    let mut seen: BTreeSet<&PathBuf> = BTreeSet::new();
    let mut found = Vec::new();
    for (number, (step, state)) in steps.enumerate().rev() {
        if *state == StepState::NotDone && !unrecorded.contains(&number) {
            continue;
        }
        // What a later step has changed again is judged there.
        if !step.action.path().is_none_or(|path| seen.insert(path)) {
            continue;
        }
        if let Some(how) = change.places.moved(&step.action, files) {
            found.push(not_followed(&step.action, how).to_string());
            continue;
        }
        found.extend(kept_by_another(change, &step.action, earlier));
        found.extend(step.action.behaviour().obstacle(change.directory(), number, files));
    }
    found
}

/// Versions without notes kept every original under the same name, so the file there belongs to the first change.
fn kept_by_another(change: &Change, action: &Action, earlier: &[Change]) -> Option<String> {
    let kept = kept_of(action)?;
    let has_it = |earlier: &&Change| {
        let mut steps = earlier.plan.steps.iter();
        !earlier.is_undone() && steps.any(|step| kept_of(&step.action) == Some(kept))
    };
    let owner = earlier.iter().find(has_it)?;
    let (kept, name, owner) = (kept.display(), &change.name, &owner.name);
    Some(format!(
        "{kept} is what {owner} has kept, and nothing holds what {name} replaced. Move it away (`sudo mv {kept} \
         {kept}-{owner}`), undo {name}, and make a new one with `sudo update-initramfs -u` before the machine is started \
         again; move it back before {owner} is undone"
    ))
}

fn kept_of(action: &Action) -> Option<&PathBuf> {
    action.behaviour().touches().kept
}

/// The later changes that lie on a change and are not undone, newest first: the order in which they have to be undone
/// before it. `later` are all that came after it, oldest first.
pub fn lying_on<'a>(change: &Change, later: &'a [Change]) -> Vec<&'a Change> {
    let mut lying: Vec<&Change> = Vec::new();
    for candidate in later.iter().filter(|later| !later.is_undone()) {
        let below = std::iter::once(change).chain(lying.iter().copied());
        if below.into_iter().any(|below| candidate.lies_on(below)) {
            lying.push(candidate);
        }
    }
    lying.reverse();
    lying
}

impl Change {
    /// Whether it was taken back to the end.
    pub fn is_undone(&self) -> bool {
        self.state.is_finished && self.state.way == Way::Undo
    }

    /// Whether it changes what an earlier change has changed or made, so that it has to be undone first.
    pub fn lies_on(&self, earlier: &Change) -> bool {
        let moves_root = |step: &Step| step.action.behaviour().touches().moves_root;
        // What was changed on a new root is not seen from the old one any more.
        if earlier.plan.steps.iter().any(moves_root) {
            return true;
        }
        let below = places(earlier);
        let own = places(self);
        own.iter().any(|own| below.iter().any(|below| own.starts_with(below)))
    }
}

/// What a change changes or makes: files, mount points, devices, units, and filesystems by their UUIDs, all as paths.
fn places(change: &Change) -> Vec<PathBuf> {
    let actions = change.plan.steps.iter().map(|step| &step.action);
    actions.flat_map(of_action).collect()
}

fn of_action(action: &Action) -> Vec<PathBuf> {
    let touched = action.behaviour().touches();
    let mut places: Vec<PathBuf> = touched.path.into_iter().cloned().collect();
    places.extend(touched.disks_lost.into_iter().map(|disk| disk.path.clone()));
    places.extend(touched.others);
    places
}

#[cfg(test)]
#[path = "stack_tests.rs"]
mod tests;
