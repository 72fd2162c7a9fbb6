//! One step of a change, done or undone: on files by itself, on all else by who runs the steps.

use std::path::{Path, PathBuf};

use crate::steps::{Action, FileSite, Reach, Receipt};
use rubus_host::Hands;

use super::{ApplyContext, Change, Event, Progress, Site, StepError, StepRunner};

/// Does a step of a change.
///
/// # Errors
/// [`StepError`]; the step is then undone by [`undo`] like any other.
pub(super) fn apply(
    change: &Change,
    step: usize,
    action: &Action,
    hands: &mut dyn Hands,
    context: &mut ApplyContext<'_>,
) -> Result<Receipt, StepError> {
    if change.places.moved(action, hands.files()).is_some() {
        let path = action.path().map(|path| path.display().to_string());
        return Err(StepError::Changed { path: path.unwrap_or_default() });
    }
    match action.reach() {
        Reach::Files(file) => file.apply(&here(&change.temporary(step)), hands),
        Reach::Machine(_) => {
            with_site(change, step, context, |runner, site| runner.apply(action, site, hands))
        }
        Reach::Elsewhere(on) => {
            with_site(change, step, context, |runner, site| on.apply(runner, site, hands))
        }
    }
}

/// Undoes a step that was done, half done, or only announced.
///
/// # Errors
/// [`StepError`]; nothing is lost then.
pub(super) fn undo(
    change: &Change,
    step: usize,
    action: &Action,
    hands: &mut dyn Hands,
    context: &mut ApplyContext<'_>,
) -> Result<Receipt, StepError> {
    if let Some(how) = change.places.moved(action, hands.files()) {
        return Err(not_followed(action, how));
    }
    match action.reach() {
        Reach::Files(file) => file.undo(&here(&change.temporary(step)), hands),
        Reach::Machine(_) => {
            with_site(change, step, context, |runner, site| runner.undo(action, site, hands))
        }
        Reach::Elsewhere(on) => {
            let undone =
                with_site(change, step, context, |runner, site| on.undo(runner, site, hands));
            let (receipt, remark) = undone?;
            if let Some(words) = remark {
                (context.tell)(Event::Remark { words: &words });
            }
            Ok(receipt)
        }
    }
}

/// A directory that was replaced by a link since: what it leads to is not this change's.
pub(super) fn not_followed(action: &Action, how: String) -> StepError {
    let path = action.path().map(|path| path.display().to_string());
    StepError::NotOurs { path: path.unwrap_or_default(), how }
}

/// Tells every other root that has a copy of the journal how far the change has come.
///
/// # Errors
/// [`StepError`] when one cannot be told.
pub(super) fn tell_others(
    change: &Change,
    hands: &mut dyn Hands,
    context: &mut ApplyContext<'_>,
) -> Result<(), StepError> {
    let last = change.plan.steps.len().saturating_sub(1);
    with_site(change, last, context, |runner, site| runner.tell_others(site, hands))
}

/// The running system itself.
fn here(temporary: &str) -> FileSite<'_> {
    FileSite { top: Path::new("/"), temporary }
}

fn with_site<T>(
    change: &Change,
    step: usize,
    context: &mut ApplyContext<'_>,
    act: impl FnOnce(&mut dyn StepRunner, &mut Site<'_>) -> T,
) -> T {
    let consents = change.consents();
    let tell = &mut *context.tell;
    let mut tell = |progress: Progress| {
        tell(Event::Progress { step, progress: &progress });
    };
    let mut site = Site {
        change: &change.name,
        directory: change.directory(),
        steps: &change.plan.steps,
        before_trial: change.plan.trial.as_ref().map(|trial| trial.before_step),
        step,
        is_begun_again: change.was_begun_before(step),
        consents: &consents,
        top: PathBuf::from("/"),
        tell: &mut tell,
    };
    act(&mut *context.step_runner, &mut site)
}
