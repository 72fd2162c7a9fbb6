//! Where changes are kept: a directory each, with the plan and the journal.
//!
//! A change exists from the moment its journal has a durable name. A directory without one is what a
//! power cut left of a change that never began.

use std::path::{Path, PathBuf};

use crate::plan::journal::{JournalError, Record, State, Way, parse, whole_bytes};
use crate::plan::{FORMAT, Plan};
use rubus_host::live::hands::make_directories;
use rubus_host::{Files, Hands, ReadError, WriteError};

use super::places::{PLACES, Places};
use super::{ASKED_FOR, Change, GivenAway};

const PLAN: &str = "plan.json";
const JOURNAL: &str = "journal";

/// The directory of all changes.
#[derive(Clone, Debug)]
pub struct ChangeStore {
    directory: PathBuf,
}

/// Why a change cannot be put into the store or taken from it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeStoreError {
    /// It cannot be read.
    #[error("cannot read {path}: {reason}")]
    Unreadable {
        /// Path of the file in the store.
        path: String,
        /// Why it cannot be read.
        reason: String,
    },
    /// It cannot be written.
    #[error(transparent)]
    Unwritable(#[from] WriteError),
    /// Its journal is damaged.
    #[error(
        "cannot read the journal of the change {name}: {reason}; nothing was touched\nPut a whole copy of {directory}/journal \
         back. Without one, undo by hand what {directory}/plan.json lists, then move {directory} away"
    )]
    DamagedJournal {
        /// Name of the change.
        name: String,
        /// What is wrong with the journal.
        reason: JournalError,
        /// Where the change is kept.
        directory: String,
    },
    /// Its plan is damaged.
    #[error(
        "cannot read the plan of the change {name}: {reason}; nothing was touched\nPut a whole copy of {directory}/plan.json \
         back. Without one, undo by hand what {directory}/journal says was done, then move {directory} away"
    )]
    DamagedPlan {
        /// Name of the change.
        name: String,
        /// What is wrong with the plan.
        reason: String,
        /// Where the change is kept.
        directory: String,
    },
    /// Made by a newer version of this program.
    #[error(
        "cannot read the change {name}: it has format {format}, and this program knows {FORMAT}\nUse the version of rubus that \
         made it"
    )]
    Newer {
        /// Name of the change.
        name: String,
        format: u32,
    },
}

impl ChangeStore {
    /// The store in a directory that need not exist yet.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        ChangeStore { directory: directory.into() }
    }

    /// All changes, oldest first.
    ///
    /// # Errors
    /// [`ChangeStoreError`] when one cannot be read: a change that is not understood must not be overlooked.
    pub fn all(&self, files: &dyn Files) -> Result<Vec<Change>, ChangeStoreError> {
        let names = match files.list(&self.directory) {
            Ok(names) => names,
            Err(ReadError::Absent) => return Ok(Vec::new()),
            Err(reason) => return Err(unreadable(&self.directory, &reason)),
        };
        let mut changes = Vec::new();
        for name in names {
            if number_of(&name).is_some() {
                changes.extend(self.open(&name, files)?);
            }
        }
        Ok(changes)
    }

    /// The recipes of the changes that are applied, oldest first; none where not all can be read.
    pub fn in_force(&self, files: &dyn Files) -> Option<Vec<String>> {
        let changes = self.all(files).ok()?;
        let is_applied =
            |change: &&Change| change.state.way == Way::Apply && change.state.is_finished;
        Some(changes.iter().filter(is_applied).map(|change| change.plan.recipe.clone()).collect())
    }

    /// Begins a change: its plan and its journal become durable, with the disks that the user gave away: a change that
    /// is there can go on without asking again. Nothing of the plan is done yet.
    ///
    /// # Errors
    /// [`ChangeStoreError`] when something cannot be written; the change then does not exist.
    pub fn begin(
        &self,
        plan: Plan,
        consents: Vec<GivenAway>,
        now: &str,
        hands: &mut dyn Hands,
    ) -> Result<Change, ChangeStoreError> {
        make_directories(hands, &self.directory)?;
        let name = self.next_name(&plan.recipe, hands.files())?;
        let directory = self.directory.join(&name);
        hands.make_directory(&directory)?;
        hands.sync_directory(&self.directory)?;
        let text = json_of(&plan);
        hands.write_new(&directory.join(PLAN), text.as_bytes(), 0o644, None)?;
        let places = Places::of(&plan, hands.files());
        hands.write_new(&directory.join(PLACES), places.text().as_bytes(), 0o644, None)?;
        let first = Record::Turned { way: Way::Apply, why: ASKED_FOR.into(), at: now.into() };
        let confirmed = consents.into_iter().map(record_of);
        let records: Vec<Record> = std::iter::once(first).chain(confirmed).collect();
        let lines: String = records.iter().map(line_of).collect();
        // Under another name first, so that a journal that is there is whole.
        let (fresh, journal) = (directory.join("journal.new"), directory.join(JOURNAL));
        hands.write_new(&fresh, lines.as_bytes(), 0o644, None)?;
        hands.sync_directory(&directory)?;
        hands.rename(&fresh, &journal)?;
        hands.sync_directory(&directory)?;
        Ok(Change {
            name,
            state: State::new(&plan),
            plan,
            records,
            directory,
            journal,
            journal_bytes: lines.len() as u64,
            places,
            is_fresh: true,
        })
    }

    /// A change by its name; nothing where it never began.
    fn open(&self, name: &str, files: &dyn Files) -> Result<Option<Change>, ChangeStoreError> {
        let directory = self.directory.join(name);
        let journal = directory.join(JOURNAL);
        if !files.exists(&journal) {
            return Ok(None);
        }
        let plan = read(&directory.join(PLAN), files)?;
        let plan: Plan =
            serde_json::from_str(&plan).map_err(|error| ChangeStoreError::DamagedPlan {
                name: name.into(),
                reason: error.to_string(),
                directory: directory.display().to_string(),
            })?;
        if plan.format > FORMAT {
            return Err(ChangeStoreError::Newer { name: name.into(), format: plan.format });
        }
        let damaged = |reason| ChangeStoreError::DamagedJournal {
            name: name.into(),
            reason,
            directory: directory.display().to_string(),
        };
        let text = read(&journal, files)?;
        let records = parse(&text).map_err(damaged)?;
        let state = State::replay(&plan, &records).map_err(damaged)?;
        Ok(Some(Change {
            name: name.into(),
            plan,
            records,
            state,
            journal,
            journal_bytes: whole_bytes(&text) as u64,
            places: places_in(&directory, files),
            directory,
            is_fresh: false,
        }))
    }

    fn next_name(&self, recipe: &str, files: &dyn Files) -> Result<String, ChangeStoreError> {
        let names =
            files.list(&self.directory).map_err(|reason| unreadable(&self.directory, &reason))?;
        let last = names.iter().filter_map(|name| number_of(name)).max();
        Ok(format!("{:04}-{recipe}", last.unwrap_or(0) + 1))
    }
}

/// The number that the name of a change begins with.
fn number_of(name: &str) -> Option<u32> {
    name.split_once('-')?.0.parse().ok()
}

fn unreadable(path: &Path, reason: &ReadError) -> ChangeStoreError {
    ChangeStoreError::Unreadable { path: path.display().to_string(), reason: reason.to_string() }
}

fn read(path: &Path, files: &dyn Files) -> Result<String, ChangeStoreError> {
    const MAX_BYTES: usize = 64 << 20;
    let bytes = files.read_prefix(path, MAX_BYTES).map_err(|reason| unreadable(path, &reason))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Where its directories were; unknown for a change of an earlier version, or of another root.
fn places_in(directory: &Path, files: &dyn Files) -> Places {
    files
        .text(&directory.join(PLACES))
        .map_or_else(|_| Places::default(), |text| Places::parse(&text))
}

fn json_of(plan: &Plan) -> String {
    // Strings, numbers and lists only: there is nothing in a plan that JSON cannot say.
    serde_json::to_string_pretty(plan).unwrap_or_default() + "\n"
}

pub(super) fn record_of(given: GivenAway) -> Record {
    Record::Confirmed { disk: given.disk, words: given.words, ends: given.ends, boot: given.boot }
}

/// A record as a line of the journal.
pub(super) fn line_of(record: &Record) -> String {
    serde_json::to_string(record).unwrap_or_default() + "\n"
}
