//! A plan that is being drawn up.

use std::path::Path;

use rubus_change::plan::promise::Promise;
use rubus_change::plan::{Action, Effort, Gain, Step, Trial};
use rubus_change::steps::SetKnob;
use rubus_vocabulary::check::Check;

use super::edits::Edits;
use super::{Answer, Found, PlanInput};

/// A plan that is being drawn up. Steps that would change nothing are left out.
#[derive(Debug, Default)]
pub(crate) struct PlanBuilder {
    /// What the whole does, where that is not what the recipe usually does.
    pub(crate) title: Option<String>,
    pub(crate) checks: Vec<Check>,
    pub(crate) steps: Vec<Step>,
    pub(crate) notes: Vec<String>,
    pub(crate) risks: Vec<String>,
    pub(crate) gains: Vec<Gain>,
    pub(crate) gains_unknown: Option<String>,
    pub(crate) effort: Effort,
    pub(crate) promises: Vec<Promise>,
    pub(crate) needs_boot: bool,
    pub(crate) trial: Option<Trial>,
}

impl PlanBuilder {
    pub(crate) fn check(
        &mut self,
        what: &str,
        answer: impl Into<Answer>,
        found: impl Into<Found>,
        remedy: &str,
    ) {
        let (answer, found) = (answer.into(), found.into());
        let is_met = answer != Answer::Fails;
        let remedy = match (found.is_denied, found.is_not_captured) {
            (true, _) => "run it with sudo: as this user it cannot be seen",
            (false, true) => "make the plan on the machine itself: the capture does not hold this",
            (false, false) => remedy,
        };
        self.checks.push(Check {
            what: what.into(),
            is_unknown: answer == Answer::Unknown || (!is_met && found.is_not_captured),
            found: found.words,
            is_met,
            remedy: (!is_met).then(|| remedy.into()),
        });
    }

    /// A file with this text, whatever was there; with its directory where that is missing.
    pub(crate) fn write(
        &mut self,
        id: &str,
        why: &str,
        path: &Path,
        text: String,
        situation: &PlanInput<'_>,
    ) {
        let steps = std::mem::take(&mut self.steps);
        let mut edits = Edits::after(&situation.facts.seen, steps);
        edits.write(id, why, path, text);
        self.steps = edits.into_steps();
    }

    /// The same for a program that can be run.
    pub(crate) fn write_program(
        &mut self,
        id: &str,
        why: &str,
        path: &Path,
        text: String,
        situation: &PlanInput<'_>,
    ) {
        let steps = std::mem::take(&mut self.steps);
        let mut edits = Edits::after(&situation.facts.seen, steps);
        edits.write_program(id, why, path, text);
        self.steps = edits.into_steps();
    }

    /// A directory with those above it, where they are missing.
    pub(crate) fn directory(
        &mut self,
        id: &str,
        why: &str,
        path: &Path,
        situation: &PlanInput<'_>,
    ) {
        let steps = std::mem::take(&mut self.steps);
        let mut edits = Edits::after(&situation.facts.seen, steps);
        edits.directory(id, why, path);
        self.steps = edits.into_steps();
    }

    pub(crate) fn set_knob(&mut self, id: &str, why: &str, path: &str, was: &str, becomes: &str) {
        if rubus_change::plan::knob_says(was, becomes) {
            return;
        }
        self.steps.push(Step {
            id: id.into(),
            why: why.into(),
            action: Action::SetKnob(SetKnob {
                path: path.into(),
                was: was.into(),
                becomes: becomes.into(),
            }),
        });
    }
}
