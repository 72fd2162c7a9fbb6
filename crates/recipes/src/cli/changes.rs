//! The changes of this machine: those that its journals tell of, and those of which only another root knows.

use anyhow::Context;
use rubus_command::{General, message, places, signals};
use rubus_host::Live;
use rubus_host::live::hands::{LiveHands, Lock, lock, make_directories};

use super::lost::{self, Lost, Taken};
use rubus_change::apply::{Change, ChangeStore, differences};
use rubus_change::other_roots::lost_journal;
use rubus_change::steps::LiveStepRunner;

/// A change is made to this machine and not to a recorded one; a plan can be made for both.
pub(super) fn must_be_live(general: &General, verb: &str) -> anyhow::Result<()> {
    match &general.machine {
        None => Ok(()),
        Some(path) => anyhow::bail!(
            "{verb} needs the running machine, and {} is a captured one: leave out --machine; of changes, \
             `rubus plan` alone works on a capture",
            path.display()
        ),
    }
}

/// Whether no root of this machine tells of a change, as far as this one knows: then there is nothing to lock.
pub(super) fn has_none() -> bool {
    !places::changes().exists() && lost_journal(&[], &Live::new()).is_none()
}

/// The store, for this program alone.
pub(super) fn open_store() -> anyhow::Result<(ChangeStore, Lock)> {
    // The reader of a pipe may end; a change that has begun goes on.
    signals::survive_closed_pipes();
    let directory = places::changes();
    let hands = &mut LiveHands::new();
    make_directories(hands, &directory)?;
    let held = lock(&directory.join("lock"))?;
    let held = held.context("another rubus is changing this machine; wait for it to end")?;
    Ok((ChangeStore::at(directory), held))
}

/// All changes, with what was written down about them on other roots that they have, and with those whose journal is lost
/// here and was found on another root. The text says what is known of a lost journal that was not found.
pub(super) fn all_of(store: &ChangeStore) -> anyhow::Result<(Vec<Change>, Option<String>)> {
    let mut changes = store.all(&Live::new())?;
    let lost = lost::seek(&changes, Taken::Yes)?;
    let mut not_found = None;
    let mut is_new = false;
    match lost {
        Some(lost) if lost.found.is_empty() => not_found = Some(lost.words),
        Some(lost) => {
            message!("{}", lost.words);
            changes = store.all(&Live::new())?;
        }
        None => {}
    }
    let mut step_runner = LiveStepRunner::default();
    for change in &changes {
        is_new |= step_runner.catch_up(change, &mut LiveHands::new())?;
    }
    if is_new {
        changes = store.all(&Live::new())?;
    }
    Ok((changes, not_found))
}

/// All changes as whichever root knows most of each; nothing is written. Another root is looked at only where this one
/// does not know the end, or something is not as it knows it, or where the journal is lost here: the text says so.
pub(super) fn all_known() -> anyhow::Result<(Vec<Change>, Option<Lost>)> {
    let live = Live::new();
    let mut changes = ChangeStore::at(places::changes()).all(&live)?;
    let mut step_runner = LiveStepRunner::default();
    for i in 0..changes.len() {
        let is_certain = changes[i].state.is_finished
            && differences(&changes[i], &changes[i + 1..], &live).is_empty();
        if is_certain {
            continue;
        }
        if let Some(known) = step_runner.as_told_elsewhere(&changes[i], &LiveHands::new()) {
            changes[i] = known;
        }
    }
    let lost = lost::seek(&changes, Taken::No)?;
    changes.extend(lost.iter().flat_map(|lost| lost.found.clone()));
    changes.sort_by(|one, other| one.name.cmp(&other.name));
    Ok((changes, lost))
}
