//! How far the application or the undoing of a plan has come: records, and what they mean.
//!
//! The journal is a text of one JSON record a line. A record is on stable storage before the step that
//! it announces touches anything, and after a step before the next one is announced. A machine may lose its power at
//! any moment, so the last line may be torn; everything before it is whole.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Plan;
pub use crate::steps::Receipt;

/// Which way a plan is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// Towards the new state.
    Apply,
    /// Back to the old state.
    Undo,
}

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// From here on the plan is gone this way.
    Turned {
        /// Whether the plan is applied or undone.
        way: Way,
        /// Why, for people ("asked for", "step 3 failed: …").
        why: String,
        /// When, RFC 3339, UTC.
        at: String,
    },
    /// The user gave everything on a disk away.
    Confirmed {
        /// The disk's path in the plan.
        disk: PathBuf,
        /// What the user typed.
        words: String,
        /// A sum of the ends of the disk and of its partitions at that moment: whether its contents are still those that
        /// were given away.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ends: Option<String>,
        /// The boot in which that was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boot: Option<String>,
    },
    /// A step is about to be done, or undone.
    Begun {
        /// Its number, from 0.
        step: usize,
    },
    /// A step is done, or undone, and was looked at afterwards.
    Done {
        /// Its number, from 0.
        step: usize,
        /// What was found afterwards.
        receipt: Receipt,
    },
    /// A step was announced and then not begun, since it found something that it must not touch.
    Refused {
        /// Its number, from 0.
        step: usize,
    },
    /// Everything before the trial is done; the rest waits until the machine has come up on trial.
    OnTrial {
        /// When, RFC 3339, UTC.
        at: String,
        /// The boot in which that was: another one since then may be the trial.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boot: Option<String>,
    },
    /// The trial was passed: the rest follows.
    Committed {
        /// When, RFC 3339, UTC.
        at: String,
    },
    /// Everything is done, or undone.
    Finished {
        /// Which way was gone.
        way: Way,
        /// When, RFC 3339, UTC.
        at: String,
        /// The boot (`/proc/sys/kernel/random/boot_id`) in which that was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boot: Option<String>,
    },
}

/// Where one step is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// Not done, or undone again.
    #[default]
    NotDone,
    /// Announced; it may be done, half done or not begun.
    InDoubt,
    Done,
}

/// Where a plan is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Which way it is gone.
    pub way: Way,
    /// The state of each step of the plan, in order.
    pub steps: Vec<StepState>,
    /// True when the end of the way is reached.
    pub is_finished: bool,
    /// Number of the first step that waits for the trial, where the plan has one.
    trial: Option<usize>,
    /// How far the trial is.
    trial_state: TrialState,
}

/// How far a trial is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TrialState {
    /// Not prepared yet.
    #[default]
    Before,
    /// Prepared: the machine may be started on trial.
    Waiting,
    Passed,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Do this step.
    Do(usize),
    /// Undo this step.
    Undo(usize),
    /// All steps before the trial are done: say so in the journal.
    BeginTrial,
    /// All steps are where they should be: say so in the journal.
    Finish,
    /// Nothing: it is finished, or waits for its trial.
    Nothing,
}

/// A journal that does not belong to its plan or is damaged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// A line other than the last cannot be read.
    #[error("line {line} of the journal cannot be read: {reason}")]
    Damaged {
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong with the line.
        reason: String,
    },
    /// A record speaks of a step that the plan does not have.
    #[error("the journal speaks of step {step}, but the plan has {of}")]
    NoSuchStep {
        /// The step, from 0.
        step: usize,
        /// Number of steps in the plan.
        of: usize,
    },
}

/// Reads a journal. A last line without its end, or that cannot be read, was being written when the
/// machine stopped and says nothing.
///
/// # Errors
/// [`JournalError::Damaged`] when another line cannot be read.
pub fn parse(text: &str) -> Result<Vec<Record>, JournalError> {
    let mut records = Vec::new();
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    let lines: Vec<&str> = whole.lines().collect();
    for (i, line) in lines.iter().enumerate() {
        match serde_json::from_str(line) {
            Ok(record) => records.push(record),
            // Blocks that the filesystem had allotted but not yet written.
            Err(_) if i + 1 == lines.len() => break,
            Err(error) => {
                return Err(JournalError::Damaged { line: i + 1, reason: error.to_string() });
            }
        }
    }
    Ok(records)
}

/// How many bytes of the text are whole lines that can be read: what a journal is cut to before it
/// goes on.
pub fn whole_bytes(text: &str) -> usize {
    let mut bytes = 0;
    for line in text.split_inclusive('\n') {
        let readable = line.ends_with('\n') && serde_json::from_str::<Record>(line).is_ok();
        if !readable {
            break;
        }
        bytes += line.len();
    }
    bytes
}

impl State {
    /// Before anything was done.
    pub fn new(plan: &Plan) -> Self {
        State {
            way: Way::Apply,
            steps: vec![StepState::NotDone; plan.steps.len()],
            is_finished: false,
            trial: plan.trial.as_ref().map(|trial| trial.before_step),
            trial_state: TrialState::Before,
        }
    }

    /// What the records say.
    ///
    /// # Errors
    /// [`JournalError::NoSuchStep`] when they are another plan's.
    pub fn replay(plan: &Plan, records: &[Record]) -> Result<Self, JournalError> {
        let mut state = State::new(plan);
        for record in records {
            state.take(record)?;
        }
        Ok(state)
    }

    /// Goes on by one record.
    ///
    /// # Errors
    /// [`JournalError::NoSuchStep`] when it is another plan's.
    pub fn take(&mut self, record: &Record) -> Result<(), JournalError> {
        match record {
            Record::Turned { way, .. } => {
                self.way = *way;
                self.is_finished = false;
                self.trial_state = TrialState::Before;
            }
            Record::OnTrial { .. } => self.trial_state = TrialState::Waiting,
            Record::Committed { .. } => self.trial_state = TrialState::Passed,
            Record::Begun { step } => *self.step(*step)? = StepState::InDoubt,
            Record::Refused { step } => *self.step(*step)? = StepState::NotDone,
            Record::Done { step, .. } => {
                let reached = match self.way {
                    Way::Apply => StepState::Done,
                    Way::Undo => StepState::NotDone,
                };
                *self.step(*step)? = reached;
            }
            Record::Confirmed { .. } => {}
            Record::Finished { .. } => self.is_finished = true,
        }
        Ok(())
    }

    fn step(&mut self, step: usize) -> Result<&mut StepState, JournalError> {
        let of = self.steps.len();
        self.steps.get_mut(step).ok_or(JournalError::NoSuchStep { step, of })
    }

    /// What is to be done next: forwards the first step that is not done, backwards the last one that
    /// is not undone.
    pub fn next(&self) -> Next {
        if self.is_finished {
            return Next::Nothing;
        }
        let next = match self.way {
            Way::Apply => {
                let first = self.steps.iter().position(|step| *step != StepState::Done);
                match (first, self.trial_state) {
                    (Some(step), state) if self.waits_for_trial(step) => match state {
                        TrialState::Waiting => Some(Next::Nothing),
                        _ => Some(Next::BeginTrial),
                    },
                    _ => first.map(Next::Do),
                }
            }
            Way::Undo => {
                let last = self.steps.iter().rposition(|step| *step != StepState::NotDone);
                last.map(Next::Undo)
            }
        };
        next.unwrap_or(Next::Finish)
    }

    /// Whether a step is not to be done before the trial was passed.
    pub fn waits_for_trial(&self, step: usize) -> bool {
        let is_behind = self.trial.is_some_and(|first| step >= first);
        is_behind && self.trial_state != TrialState::Passed
    }

    /// The steps that waited for a trial that was passed, and of which this journal does not know that anything was done.
    pub fn not_done_after_trial(&self) -> Vec<usize> {
        let is_passed = self.trial_state == TrialState::Passed && !self.is_finished;
        let first = self.trial.filter(|_| is_passed);
        let steps = first.map_or(0..0, |first| first..self.steps.len());
        steps.filter(|step| self.steps[*step] == StepState::NotDone).collect()
    }

    /// Whether everything is ready for the start on trial, and the rest waits for it.
    pub fn is_on_trial(&self) -> bool {
        self.way == Way::Apply && self.trial_state == TrialState::Waiting && !self.is_finished
    }

    /// Whether the machine is in between: begun, and neither finished nor waiting for a trial.
    pub fn is_half_done(&self) -> bool {
        !self.is_finished
            && !self.is_on_trial()
            && self.steps.iter().any(|step| *step != StepState::NotDone)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fixture::plans::small_plan;

    fn receipt() -> Receipt {
        Receipt { planned: "x".into(), live: "x".into() }
    }

    fn turned(way: Way) -> Record {
        Record::Turned { way, why: "asked for".into(), at: "2026-11-21T00:00:00Z".into() }
    }

    /// The records of going on from a state until nothing is left, at most `most` of them.
    fn go_on(state: &mut State, most: usize) -> Vec<Record> {
        let mut records = Vec::new();
        while records.len() < most {
            if state.next() == Next::BeginTrial {
                let (at, boot) = (String::new(), None);
                let record = Record::OnTrial { at, boot };
                state.take(&record).unwrap();
                records.push(record);
                continue;
            }
            let (Next::Do(step) | Next::Undo(step)) = state.next() else {
                if state.next() == Next::Finish {
                    let record = Record::Finished { way: state.way, at: String::new(), boot: None };
                    state.take(&record).unwrap();
                    records.push(record);
                }
                break;
            };
            let done = Record::Done { step, receipt: receipt() };
            for record in [Record::Begun { step }, done] {
                state.take(&record).unwrap();
                records.push(record);
            }
        }
        records
    }

    #[test]
    fn forwards_in_order_and_back_in_the_opposite_order() {
        let plan = small_plan();
        let mut state = State::new(&plan);
        assert_eq!(state.next(), Next::Do(0));
        assert!(!state.is_half_done());
        go_on(&mut state, 2);
        assert_eq!(state.next(), Next::Do(1));
        assert!(state.is_half_done());
        go_on(&mut state, usize::MAX);
        assert_eq!(state.next(), Next::Nothing);
        assert!(!state.is_half_done());
        state.take(&turned(Way::Undo)).unwrap();
        assert_eq!(state.next(), Next::Undo(plan.steps.len() - 1));
        go_on(&mut state, usize::MAX);
        assert_eq!(state.steps, vec![StepState::NotDone; plan.steps.len()]);
        assert_eq!(state.next(), Next::Nothing);
    }

    fn plan_with_trial() -> Plan {
        let mut plan = small_plan();
        plan.trial =
            Some(super::super::Trial { before_step: 4, start: "sudo reboot '0 tryboot'".into() });
        plan
    }

    #[test]
    fn what_is_behind_the_trial_waits_until_it_was_passed() {
        let mut state = State::new(&plan_with_trial());
        go_on(&mut state, usize::MAX);
        assert!(state.is_on_trial() && !state.is_finished && !state.is_half_done());
        assert_eq!(state.next(), Next::Nothing);
        assert_eq!(state.steps[3..5], [StepState::Done, StepState::NotDone]);
        assert!(state.waits_for_trial(4) && !state.waits_for_trial(3));

        let mut undone = state.clone();
        undone.take(&turned(Way::Undo)).unwrap();
        assert!(!undone.is_on_trial());
        assert_eq!(undone.next(), Next::Undo(3));
        go_on(&mut undone, usize::MAX);
        assert_eq!(undone.next(), Next::Nothing);
        assert!(undone.is_finished);

        let at = String::new();
        state.take(&Record::Committed { at }).unwrap();
        assert!(!state.is_on_trial() && state.is_half_done());
        assert_eq!(state.next(), Next::Do(4));
        go_on(&mut state, usize::MAX);
        assert!(state.is_finished && !state.is_on_trial());
        state.take(&turned(Way::Undo)).unwrap();
        assert_eq!(state.next(), Next::Undo(5));
    }

    #[test]
    fn a_step_in_doubt_is_done_again_whichever_way() {
        let plan = small_plan();
        let mut state = State::new(&plan);
        state.take(&Record::Begun { step: 0 }).unwrap();
        assert_eq!(state.next(), Next::Do(0));
        state.take(&turned(Way::Undo)).unwrap();
        assert_eq!(state.next(), Next::Undo(0));
    }

    #[test]
    fn a_torn_last_line_says_nothing_and_another_is_an_error() {
        let line = serde_json::to_string(&Record::Begun { step: 0 }).unwrap() + "\n";
        for torn in ["{\"rec", "\0\0\0\0\n", "{\"record\":\"begun\"}\n", "garbage\n"] {
            let text = format!("{line}{torn}");
            assert_eq!(parse(&text).unwrap().len(), 1, "{torn}");
            assert_eq!(whole_bytes(&text), line.len());
        }
        let text = format!("garbage\n{line}");
        assert!(matches!(parse(&text), Err(JournalError::Damaged { line: 1, .. })));
        assert_eq!(parse("").unwrap(), []);
    }

    #[test]
    fn another_plans_journal_is_refused() {
        let records = [Record::Begun { step: 99 }];
        assert!(State::replay(&small_plan(), &records).is_err());
    }

    proptest! {
        /// Wherever a journal is cut, going on from what is left reaches the end of the way.
        #[test]
        fn any_prefix_of_a_journal_can_be_gone_on_from(cut in 0_usize..900, undo: bool, on_trial: bool) {
            let plan = if on_trial { plan_with_trial() } else { small_plan() };
            let mut state = State::new(&plan);
            let mut records = vec![turned(Way::Apply)];
            records.extend(go_on(&mut state, usize::MAX));
            if on_trial {
                let record = Record::Committed { at: String::new() };
                state.take(&record).unwrap();
                records.push(record);
                records.extend(go_on(&mut state, usize::MAX));
            }
            if undo {
                let record = turned(Way::Undo);
                state.take(&record).unwrap();
                records.push(record);
                records.extend(go_on(&mut state, usize::MAX));
            }
            let mut text = String::new();
            for record in &records {
                text += &serde_json::to_string(record).unwrap();
                text += "\n";
            }
            let cut = cut.min(text.len());
            let left = parse(&text[..cut]).unwrap();
            prop_assert_eq!(&left[..], &records[..left.len()]);
            let mut state = State::replay(&plan, &left).unwrap();
            go_on(&mut state, usize::MAX);
            prop_assert_eq!(state.next(), Next::Nothing);
            prop_assert!(state.is_finished || state.is_on_trial());
            for (number, step) in state.steps.iter().enumerate() {
                let is_done = state.way == Way::Apply && !state.waits_for_trial(number);
                let wanted = if is_done { StepState::Done } else { StepState::NotDone };
                prop_assert_eq!(*step, wanted);
            }
        }
    }
}
