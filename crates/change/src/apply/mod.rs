//! From a plan to a changed machine: journal, steps, resume, undo.
//!
//! [`Change`] is one plan with its journal, in a directory of its own; [`go`] takes it to the end of its way.
//! Whatever moment the program or the machine stops at, opening the change again and calling
//! [`go`] finishes the way. The journal is written before and after every step and is durable each
//! time; what a step does is in [`crate::steps`].

mod engine;
mod made;
mod places;
#[cfg(any(test, feature = "fixture"))]
pub mod rehearsal;
mod stack;
mod state;
#[cfg(test)]
mod step_runner_tests;
mod store;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod trial_tests;
mod unrecorded;

use std::path::{Path, PathBuf};

use crate::plan::journal::{self, JournalError, Next, Record, State, Way};
use crate::plan::{Action, Plan};
use crate::steps::temporary_name;
use places::Places;
use rubus_host::{Hands, WriteError};

pub use crate::steps::{GivenAway, NoStepRunner, Progress, Site, StepError, StepRunner};
pub use made::find_made;
pub use stack::{lying_on, obstacles};
pub use state::{differences, initramfs_answers, not_done};
pub use store::{ChangeStore, ChangeStoreError};
pub use unrecorded::{Left, Unrecorded, left, unrecorded};

/// A plan whose application has begun, with how far it has come.
#[derive(Clone, Debug)]
pub struct Change {
    /// Its name in the store: number and recipe, "0003-zswap".
    pub name: String,
    pub plan: Plan,
    /// What has happened, in order.
    pub records: Vec<Record>,
    /// Where it is.
    pub state: State,
    directory: PathBuf,
    journal: PathBuf,
    journal_bytes: u64,
    /// Where the directories of its files were when it began.
    places: Places,
    /// Whether this program has begun it, so that its journal is whole.
    is_fresh: bool,
}

/// How going on ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Everything is as planned.
    Applied,
    /// Everything is ready for the start on trial; the rest of the plan waits for it ([`commit`]).
    OnTrial,
    /// Everything is as it was.
    Undone,
    /// A step failed, and everything before it was undone.
    RolledBack {
        /// The failure, in words.
        why: String,
    },
}

/// Why a change stopped in the middle. It can be resumed once the reason is gone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// A step cannot be undone.
    #[error("cannot undo step {} of {of} ({title}): {reason}", .step + 1)]
    UndoFailed {
        /// Its number, from 0.
        step: usize,
        /// Number of steps.
        of: usize,
        /// What undoing it does.
        title: String,
        /// Why it cannot be undone.
        reason: StepError,
    },
    /// The journal cannot be written, so nothing more is done.
    #[error("{0}; without its journal the change does not go on")]
    Journal(#[from] WriteError),
    /// The journal is not this plan's.
    #[error(transparent)]
    Damaged(#[from] JournalError),
}

/// What is told while a change goes on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event<'a> {
    /// A step is done or undone now.
    Step {
        /// Its number, from 0.
        step: usize,
        /// Number of steps.
        of: usize,
        /// What is done, in words.
        title: &'a str,
        /// Forwards or back.
        way: Way,
    },
    /// A long step has come so far.
    Progress {
        /// Its number, from 0.
        step: usize,
        /// Progress of the step.
        progress: &'a Progress,
    },
    /// Something that the user should know, and that does not stop the change.
    Remark {
        /// As a sentence without a full stop.
        words: &'a str,
    },
    /// A step failed, and everything before it is undone now.
    TurningBack {
        /// The failure, in words.
        why: &'a str,
    },
}

/// What [`go`] needs besides the machine: the time, a listener and a step runner.
pub struct ApplyContext<'a> {
    /// Now, RFC 3339, UTC.
    pub now: &'a dyn Fn() -> String,
    /// Told of every step before it begins.
    pub tell: &'a mut dyn FnMut(Event<'_>),
    /// Who does what is more than a file or a knob.
    pub step_runner: &'a mut dyn StepRunner,
}

/// Takes a change to the end of its way. A step that fails forwards turns the change round.
///
/// # Errors
/// [`ChangeError`] when the change has to stand in the middle.
pub fn go(
    change: &mut Change,
    hands: &mut dyn Hands,
    context: &mut ApplyContext<'_>,
) -> Result<Ending, ChangeError> {
    loop {
        match change.state.next() {
            Next::Do(step) => do_step(change, step, hands, context)?,
            Next::Undo(step) => undo_step(change, step, hands, context)?,
            Next::BeginTrial => {
                let on_trial = Record::OnTrial { at: (context.now)(), boot: boot_id(hands) };
                change.write(hands, on_trial)?;
                tell_others(change, hands, context);
            }
            Next::Finish => {
                if let Err(lost) = settle_knobs(change, hands, context) {
                    let why = format!("not everything holds in the end: {lost}");
                    (context.tell)(Event::TurningBack { why: &why });
                    turn_round(change, Way::Undo, &why, hands, context)?;
                    continue;
                }
                let finished = Record::Finished {
                    way: change.state.way,
                    at: (context.now)(),
                    boot: boot_id(hands),
                };
                change.write(hands, finished)?;
                tell_others(change, hands, context);
            }
            Next::Nothing => {
                // What could not be unmounted stays mounted until the machine stops; nothing is lost by that.
                let _ = context.step_runner.unmount_all(&change.name);
                return Ok(change.ending());
            }
        }
    }
}

fn boot_id(hands: &dyn Hands) -> Option<String> {
    hands.files().text(Path::new(BOOT_ID)).ok()
}

fn tell_others(change: &Change, hands: &mut dyn Hands, context: &mut ApplyContext<'_>) {
    if let Err(error) = engine::tell_others(change, hands, context) {
        let words = format!("{error}; there the change looks unfinished until `rubus resume`");
        (context.tell)(Event::Remark { words: &words });
    }
}

/// Tells the other roots before anything is done. One that is not there cannot start either; what else fails is said when they
/// are told of the end.
fn tell_before(change: &Change, hands: &mut dyn Hands, context: &mut ApplyContext<'_>) {
    let _ = engine::tell_others(change, hands, context);
    // The steps mount what they need.
    let _ = context.step_runner.unmount_all(&change.name);
}

/// Writes down that the trial was passed: [`go`] then does the steps that have waited for it. Nothing for a change that
/// is not on trial. Its other roots are told before anything is done: the old one may have to start without the disk of the one
/// that runs now.
///
/// # Errors
/// [`ChangeError::Journal`] when that cannot be written down.
pub fn commit(
    change: &mut Change,
    hands: &mut dyn Hands,
    context: &mut ApplyContext<'_>,
) -> Result<(), ChangeError> {
    if !change.state.is_on_trial() {
        return Ok(());
    }
    let at = (context.now)();
    change.write(hands, Record::Committed { at })?;
    tell_before(change, hands, context);
    Ok(())
}

/// Writes down that the user gave a disk away once more, since the first confirmation does not cover what is on it now.
///
/// # Errors
/// [`ChangeError::Journal`] when that cannot be written down.
pub fn give_away(
    change: &mut Change,
    given: GivenAway,
    hands: &mut dyn Hands,
) -> Result<(), ChangeError> {
    change.write(hands, store::record_of(given))
}

/// Turns a change towards a way that is asked for, if it is not on it already. Its other roots are told before anything is
/// done: the one that starts when the power is cut may not see the one that runs now, as a card's system does not see the
/// network disk once its command line is back.
///
/// # Errors
/// [`ChangeError::Journal`] when that cannot be written down.
pub fn turn(
    change: &mut Change,
    way: Way,
    why: &str,
    hands: &mut dyn Hands,
    context: &mut ApplyContext<'_>,
) -> Result<(), ChangeError> {
    if change.state.way == way {
        return Ok(());
    }
    turn_round(change, way, why, hands, context)?;
    tell_before(change, hands, context);
    Ok(())
}

/// Writes down that a change that was on the other way is on this one now. Another root may have done any of the steps that waited
/// for a trial, and may be gone before it told of them, and a journal may have lost its end, so going back has to look at each.
fn turn_round(
    change: &mut Change,
    way: Way,
    why: &str,
    hands: &mut dyn Hands,
    context: &mut ApplyContext<'_>,
) -> Result<(), ChangeError> {
    if way == Way::Undo {
        let after_trial = change.state.not_done_after_trial().into_iter();
        let mut steps: Vec<usize> = after_trial.filter(|step| !change.was_refused(*step)).collect();
        let unrecorded = unrecorded(change, hands.files());
        let words = unrecorded_words(change, &unrecorded.steps);
        if let Some(words) = words.filter(|_| unrecorded.is_in_sight) {
            (context.tell)(Event::Remark { words: &words });
        }
        steps.extend(unrecorded.steps);
        steps.sort_unstable();
        steps.dedup();
        for step in steps {
            change.write(hands, Record::Begun { step })?;
        }
    }
    let turned = Record::Turned { way, why: why.into(), at: (context.now)() };
    change.write(hands, turned)
}

/// What is said of steps that are undone although the journal does not know them.
fn unrecorded_words(change: &Change, steps: &[usize]) -> Option<String> {
    let numbers: Vec<String> = steps.iter().map(|step| (step + 1).to_string()).collect();
    let (first, last) = (steps.first()?, steps.last()?);
    let of = change.plan.steps.len();
    let which = match (steps.len(), last - first + 1) {
        (1, _) => format!("step {} of {of} is", first + 1),
        (count, span) if count == span => {
            format!("steps {} to {} of {of} are", first + 1, last + 1)
        }
        _ => format!("steps {} of {of} are", numbers.join(", ")),
    };
    Some(format!(
        "the journal of {} ends early: {which} or may be in place although it does not say so; going back looks there too",
        change.name
    ))
}

fn do_step(
    change: &mut Change,
    step: usize,
    hands: &mut dyn Hands,
    context: &mut ApplyContext<'_>,
) -> Result<(), ChangeError> {
    let action = change.plan.steps[step].action.clone();
    let title = action.title();
    change.announce(step, &title, context);
    change.write(hands, Record::Begun { step })?;
    match engine::apply(change, step, &action, hands, context) {
        Ok(receipt) => change.write(hands, Record::Done { step, receipt }),
        Err(error) => {
            if matches!(error, StepError::Changed { .. }) {
                // It touched nothing, so there is nothing to undo either.
                change.write(hands, Record::Refused { step })?;
            }
            let of = change.plan.steps.len();
            let why = format!("step {} of {of} ({title}) failed: {error}", step + 1);
            (context.tell)(Event::TurningBack { why: &why });
            turn_round(change, Way::Undo, &why, hands, context)
        }
    }
}

fn undo_step(
    change: &mut Change,
    step: usize,
    hands: &mut dyn Hands,
    context: &mut ApplyContext<'_>,
) -> Result<(), ChangeError> {
    let action = change.plan.steps[step].action.clone();
    let title = action.undo_title();
    change.announce(step, &title, context);
    change.write(hands, Record::Begun { step })?;
    let receipt = engine::undo(change, step, &action, hands, context).map_err(|reason| {
        ChangeError::UndoFailed { step, of: change.plan.steps.len(), title, reason }
    })?;
    change.write(hands, Record::Done { step, receipt })
}

/// All settings of the running kernel once more, now that all the rest is in place: a boot in the middle
/// has taken them away, and a kernel may take a value and look at it only when another one is set (a
/// compressor that does not exist, while zswap is off). Forwards, what does not hold is an error in words.
fn settle_knobs(
    change: &Change,
    hands: &mut dyn Hands,
    context: &mut ApplyContext<'_>,
) -> Result<(), String> {
    let knobs = change.plan.steps.iter().enumerate();
    let knobs = knobs.filter(|(number, step)| {
        matches!(step.action, Action::SetKnob(_)) && change.was_begun(*number)
    });
    let knobs: Vec<(usize, &Action)> = knobs.map(|(i, step)| (i, &step.action)).collect();
    if change.state.way == Way::Undo {
        for (number, action) in knobs {
            // Each was undone and read back before; what a boot has brought since is as good.
            let _ = engine::undo(change, number, action, hands, context);
        }
        return Ok(());
    }
    for (number, action) in &knobs {
        let set = engine::apply(change, *number, action, hands, context);
        set.map_err(|error| error.to_string())?;
    }
    let files = hands.files();
    let lost = knobs.iter().find_map(|(_, action)| action.behaviour().difference(files));
    lost.map_or(Ok(()), Err)
}

/// Where the kernel says which boot this is.
pub const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

impl Change {
    /// Whether the machine was started again since the change was finished, or was ready for its trial; or may have
    /// been: a journal that does not say it is one that was copied to the root that runs now.
    pub fn started_since(&self, boot: Option<&str>) -> bool {
        // What was committed on trial is in force since then.
        let ready = self.records.iter().rev().find_map(|record| match record {
            Record::OnTrial { boot, .. } => Some(boot.as_deref()),
            _ => None,
        });
        let finished = self.records.iter().rev().find_map(|record| match record {
            Record::Finished { boot, .. } => Some(boot.as_deref()),
            _ => None,
        });
        match ready.or(finished).flatten() {
            Some(then) => boot != Some(then),
            None => true,
        }
    }

    fn announce(&self, step: usize, title: &str, context: &mut ApplyContext<'_>) {
        (context.tell)(Event::Step { step, of: self.plan.steps.len(), title, way: self.state.way });
    }

    /// Writes a record durably, then believes it.
    fn write(&mut self, hands: &mut dyn Hands, record: Record) -> Result<(), ChangeError> {
        let line = store::line_of(&record);
        hands.append(&self.journal, self.journal_bytes, line.as_bytes())?;
        self.journal_bytes += line.len() as u64;
        self.state.take(&record)?;
        self.records.push(record);
        Ok(())
    }

    /// The same change as another journal tells it, for looking only; nothing where that is not this plan's.
    pub(crate) fn with_journal(&self, text: &str) -> Option<Change> {
        let records = journal::parse(text).ok()?;
        let state = State::replay(&self.plan, &records).ok()?;
        Some(Change { records, state, ..self.clone() })
    }

    /// Whether a step that is begun now was begun before.
    fn was_begun_before(&self, step: usize) -> bool {
        let begun =
            |record: &&Record| matches!(record, Record::Begun { step: begun } if *begun == step);
        self.records.iter().filter(begun).count() > 1
    }

    /// Whether a step was last found to be nothing that may be touched.
    fn was_refused(&self, step: usize) -> bool {
        let last = self.records.iter().rev().find(|record| match record {
            Record::Begun { step: of } | Record::Done { step: of, .. } => *of == step,
            Record::Refused { step: of } => *of == step,
            _ => false,
        });
        matches!(last, Some(Record::Refused { .. }))
    }

    /// The directory in which its plan and its journal are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The disks that the user gave away, in the order of the confirmations.
    pub fn consents(&self) -> Vec<GivenAway> {
        let confirmed = self.records.iter().filter_map(|record| match record {
            Record::Confirmed { disk, words, ends, boot } => Some(GivenAway {
                disk: disk.clone(),
                words: words.clone(),
                ends: ends.clone(),
                boot: boot.clone(),
            }),
            _ => None,
        });
        confirmed.collect()
    }

    /// The name under which a step prepares a file beside its place.
    fn temporary(&self, step: usize) -> String {
        temporary_name(&self.name, step)
    }

    /// Why it went back by itself; nothing where a user wanted it, or it went forwards.
    pub fn went_back_because(&self) -> Option<&str> {
        if self.state.way != Way::Undo {
            return None;
        }
        let turned = self.records.iter().rev().find_map(|record| match record {
            Record::Turned { way: Way::Undo, why, .. } => Some(why.as_str()),
            _ => None,
        });
        turned.filter(|why| *why != ASKED_FOR)
    }

    fn ending(&self) -> Ending {
        match (self.state.way, self.went_back_because()) {
            (Way::Apply, _) if self.state.is_on_trial() => Ending::OnTrial,
            (Way::Apply, _) => Ending::Applied,
            (Way::Undo, Some(why)) => Ending::RolledBack { why: why.into() },
            (Way::Undo, None) => Ending::Undone,
        }
    }
}

/// The reason in the journal for what a user wanted.
pub const ASKED_FOR: &str = "asked for";
