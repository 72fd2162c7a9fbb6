//! The one place that changes a live setting: recorded first, written, read back; and the one that restores.
//!
//! A setting is written only while it has a value that is its own from before the trial or one of ours. Any other value
//! is of another program or person: it stays, and is told.

use std::path::{Path, PathBuf};

use rubus_host::{Files, Hands, ReadError, WriteError};

use crate::disk_seen::DiskSeen;
use crate::record::{Companion, Entry, Record, RecordError, boot, remove};

/// A setting of the running kernel, with what else the kernel resets when it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knob {
    /// Its file.
    pub path: PathBuf,
    /// Kernel name of the disk that it belongs to.
    pub disk: Option<String>,
    /// Settings that the kernel resets with it: files, or directories of files.
    pub resets: Vec<PathBuf>,
}

/// Why a setting was not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// The record could not be kept, so nothing was changed.
    #[error("{0}")]
    Record(#[from] RecordError),
    /// Its value is neither ours nor the one before.
    #[error("{path} was changed to {found} by another program")]
    Foreign {
        /// Path of the setting.
        path: String,
        /// Its value.
        found: String,
    },
    /// The disk is gone, or another one has its name.
    #[error("{disk} is gone")]
    Gone {
        /// Kernel name.
        disk: String,
    },
    /// It cannot be read.
    #[error("cannot read {path}: {reason}")]
    Unreadable {
        /// Path of the setting.
        path: String,
        /// The system's reason.
        reason: ReadError,
    },
    /// The kernel refused the value.
    #[error("{0}")]
    Refused(#[from] WriteError),
    /// The kernel took the value and has another one.
    #[error("the kernel made {live} of {wanted} in {path}")]
    Ignored {
        /// Path of the setting.
        path: String,
        /// What was written.
        wanted: String,
        /// What was read back.
        live: String,
    },
}

/// Settings under trial.
pub struct LiveSettings<'h> {
    hands: &'h mut dyn Hands,
    directory: PathBuf,
    record: Record,
}

/// What became of a setting that was to be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It has its value from before the trial.
    Restored,
    /// Another program has changed it meanwhile: it stays at this value.
    Foreign(String),
    /// Its disk is gone, and its settings with it.
    Gone,
    /// The machine has been restarted since, which forgot the trial.
    OtherBoot,
    /// It could not be restored, for this reason; it stays in the record.
    Failed(String),
}

/// A setting and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Path of the setting.
    pub path: PathBuf,
    /// Value before the trial.
    pub was: String,
    /// What became of it.
    pub fate: Fate,
}

impl<'h> LiveSettings<'h> {
    /// Begins a trial that keeps its record in `directory`. An earlier record must have been restored.
    ///
    /// # Errors
    /// When an earlier record is there, or the kernel does not tell its boot.
    pub fn begin(
        directory: &Path,
        session: &str,
        hands: &'h mut dyn Hands,
    ) -> Result<LiveSettings<'h>, RecordError> {
        if Record::load(directory, hands.files())?.is_some() {
            return Err(RecordError::Damaged {
                path: crate::record::file(directory).display().to_string(),
                reason: "another trial is not restored yet".into(),
            });
        }
        let record = Record::new(boot(hands.files())?, session.into());
        Ok(LiveSettings { hands, directory: directory.into(), record })
    }

    /// The trial of a record, in its middle.
    #[cfg(test)]
    pub fn again(record: Record, directory: &Path, hands: &'h mut dyn Hands) -> LiveSettings<'h> {
        LiveSettings { hands, directory: directory.into(), record }
    }

    /// The read side of the machine.
    pub fn files(&self) -> &dyn Files {
        self.hands.files()
    }

    /// Sets a value and reads it back.
    ///
    /// # Errors
    /// Why it does not have this value now. Where it may have another one than before, it is in the record.
    pub fn set(&mut self, knob: &Knob, value: &str) -> Result<(), SetError> {
        let at = self.entry_of(knob)?;
        let live = self.checked(at)?;
        if same(&live, value) {
            return Ok(());
        }
        self.announce(at, value)?;
        self.hands.set_knob(&knob.path, value)?;
        let live = read(&knob.path, self.hands.files())?;
        if same(&live, value) {
            return if same(&self.record.entries[at].was, value) {
                self.set_companions(at)
            } else {
                Ok(())
            };
        }
        // What the kernel made of ours is ours.
        self.announce(at, &live)?;
        let path = knob.path.display().to_string();
        Err(SetError::Ignored { path, wanted: value.into(), live })
    }

    /// Whether this trial has begun with a setting.
    pub fn is_under_trial(&self, knob: &Knob) -> bool {
        self.record.entries.iter().any(|entry| entry.path == knob.path)
    }

    /// Whether a setting still has the value that it was given.
    ///
    /// # Errors
    /// When it has another one, or its disk is gone.
    pub fn check(&self, knob: &Knob, value: &str) -> Result<(), SetError> {
        if let Some(entry) = self.record.entries.iter().find(|entry| entry.path == knob.path) {
            must_be_there(entry, self.hands.files())?;
        }
        let live = read(&knob.path, self.hands.files())?;
        if same(&live, value) { Ok(()) } else { Err(foreign(&knob.path, live)) }
    }

    /// Restores one setting and drops it from the record; nothing if it was never changed.
    pub fn restore(&mut self, knob: &Knob) -> Option<Restored> {
        let at = self.record.entries.iter().position(|entry| entry.path == knob.path)?;
        let restored = restore_entry(&self.record.entries[at], self.hands);
        if !matches!(restored.fate, Fate::Failed(_)) {
            self.record.entries.remove(at);
        }
        // A record that names a restored setting does no harm: it has its old value already.
        let _ = self.record.store(&self.directory, self.hands);
        Some(restored)
    }

    /// Restores all settings, the last one first, and removes the record if that worked.
    ///
    /// # Errors
    /// When the record cannot be written. All settings were tried nevertheless.
    pub fn finish(mut self) -> (Vec<Restored>, Result<(), RecordError>) {
        restore_all(&mut self.record, &self.directory, self.hands)
    }

    /// Records durably that a setting may get this value.
    fn announce(&mut self, at: usize, value: &str) -> Result<(), SetError> {
        if is_ours(&self.record.entries[at], value) {
            return Ok(());
        }
        self.record.entries[at].wrote.push(value.into());
        if let Err(error) = self.record.store(&self.directory, self.hands) {
            self.record.entries[at].wrote.pop();
            return Err(error.into());
        }
        Ok(())
    }

    /// The place of the setting among those of the trial.
    fn entry_of(&mut self, knob: &Knob) -> Result<usize, SetError> {
        let known = self.record.entries.iter().position(|entry| entry.path == knob.path);
        if let Some(at) = known {
            return Ok(at);
        }
        let files = self.hands.files();
        let disk = match &knob.disk {
            None => None,
            Some(name) => Some(
                DiskSeen::of(name, files).ok_or_else(|| SetError::Gone { disk: name.clone() })?,
            ),
        };
        let was = read(&knob.path, files)?;
        let companions = companions(knob, files);
        let entry = Entry { path: knob.path.clone(), was, wrote: Vec::new(), disk, companions };
        self.record.entries.push(entry);
        Ok(self.record.entries.len() - 1)
    }

    /// The live value of a setting, which must be ours or the one before, on the same disk.
    fn checked(&self, at: usize) -> Result<String, SetError> {
        let entry = &self.record.entries[at];
        must_be_there(entry, self.hands.files())?;
        let live = read(&entry.path, self.hands.files())?;
        if is_ours(entry, &live) { Ok(live) } else { Err(foreign(&entry.path, live)) }
    }

    fn set_companions(&mut self, at: usize) -> Result<(), SetError> {
        match restore_companions(&self.record.entries[at], self.hands) {
            Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Restores what a trial has left, if it has left something; of another session than `session`, where that is given,
/// nothing is touched.
///
/// # Errors
/// When the record cannot be read or written. What could be restored is.
pub fn restore_left(
    directory: &Path,
    session: Option<&str>,
    hands: &mut dyn Hands,
) -> Result<Vec<Restored>, RecordError> {
    let Some(mut record) = Record::load(directory, hands.files())? else {
        return Ok(Vec::new());
    };
    if session.is_some_and(|session| session != record.session) {
        return Ok(Vec::new());
    }
    if record.boot != boot(hands.files())? {
        remove(directory, hands)?;
        return Ok(record.entries.into_iter().rev().map(other_boot).collect());
    }
    let (restored, stored) = restore_all(&mut record, directory, hands);
    if restored.iter().all(|one| !matches!(one.fate, Fate::Failed(_))) {
        stored?;
    }
    Ok(restored)
}

fn other_boot(entry: Entry) -> Restored {
    Restored { path: entry.path, was: entry.was, fate: Fate::OtherBoot }
}

fn restore_all(
    record: &mut Record,
    directory: &Path,
    hands: &mut dyn Hands,
) -> (Vec<Restored>, Result<(), RecordError>) {
    let mut restored = Vec::new();
    let mut left = Vec::new();
    for entry in std::mem::take(&mut record.entries).into_iter().rev() {
        let one = restore_entry(&entry, hands);
        if matches!(one.fate, Fate::Failed(_)) {
            left.push(entry);
        }
        restored.push(one);
    }
    left.reverse();
    record.entries = left;
    let stored = record.store(directory, hands);
    (restored, stored)
}

fn restore_entry(entry: &Entry, hands: &mut dyn Hands) -> Restored {
    let fate = match put_back(entry, hands) {
        Ok(()) => Fate::Restored,
        Err(SetError::Foreign { found, .. }) => Fate::Foreign(found),
        Err(SetError::Gone { .. }) => Fate::Gone,
        Err(error) => Fate::Failed(error.to_string()),
    };
    Restored { path: entry.path.clone(), was: entry.was.clone(), fate }
}

fn put_back(entry: &Entry, hands: &mut dyn Hands) -> Result<(), SetError> {
    must_be_there(entry, hands.files())?;
    let live = match read(&entry.path, hands.files()) {
        // The disk or the driver went away with its settings.
        Err(SetError::Unreadable { reason: ReadError::Absent, .. }) => {
            return Err(SetError::Gone { disk: entry.path.display().to_string() });
        }
        live => live?,
    };
    if !is_ours(entry, &live) {
        return Err(foreign(&entry.path, live));
    }
    if !same(&live, &entry.was) {
        hands.set_knob(&entry.path, &entry.was)?;
        let live = read(&entry.path, hands.files())?;
        if !same(&live, &entry.was) {
            let path = entry.path.display().to_string();
            return Err(SetError::Ignored { path, wanted: entry.was.clone(), live });
        }
    }
    Ok(restore_companions(entry, hands)?)
}

/// What the kernel has reset with the setting gets its value from before. Each is tried, whatever becomes of the others.
fn restore_companions(entry: &Entry, hands: &mut dyn Hands) -> Result<(), WriteError> {
    let mut first = Ok(());
    for companion in &entry.companions {
        match hands.files().text(&companion.path) {
            Ok(live) if !same(word(&live), &companion.was) => {
                let set = hands.set_knob(&companion.path, &companion.was);
                first = first.and(set);
            }
            _ => {}
        }
    }
    first
}

/// The settings that the kernel resets with this one, with their values now.
fn companions(knob: &Knob, files: &dyn Files) -> Vec<Companion> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for path in &knob.resets {
        match files.list(path) {
            Ok(names) => paths.extend(names.iter().map(|name| path.join(name))),
            Err(_) => paths.push(path.clone()),
        }
    }
    let settable = paths.into_iter().filter(|path| {
        const OWNER_WRITES: u32 = 0o200;
        files.mode(path).is_ok_and(|mode| mode & OWNER_WRITES != 0)
    });
    settable
        .filter_map(|path| {
            let text = files.text(&path).ok()?;
            let was = word(&text).to_string();
            (!was.is_empty()).then_some(Companion { path, was })
        })
        .collect()
}

fn must_be_there(entry: &Entry, files: &dyn Files) -> Result<(), SetError> {
    match &entry.disk {
        Some(disk) if !disk.is_there(files) => Err(SetError::Gone { disk: disk.name.clone() }),
        _ => Ok(()),
    }
}

fn is_ours(entry: &Entry, live: &str) -> bool {
    same(live, &entry.was) || entry.wrote.iter().any(|wrote| same(live, wrote))
}

fn foreign(path: &Path, found: String) -> SetError {
    SetError::Foreign { path: path.display().to_string(), found }
}

/// The value of a setting.
///
/// # Errors
/// When it cannot be read.
pub fn read(path: &Path, files: &dyn Files) -> Result<String, SetError> {
    match files.text(path) {
        Ok(text) => Ok(word(&text).to_string()),
        Err(reason) => Err(SetError::Unreadable { path: path.display().to_string(), reason }),
    }
}

/// The choice of a list (`none [mq-deadline]`), or the whole value.
pub fn word(text: &str) -> &str {
    let mut words = text.split_whitespace();
    let chosen = words.find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    chosen.unwrap_or(text.trim())
}

/// Numbers may come back in another spelling.
fn same(live: &str, value: &str) -> bool {
    let numbers = live.trim().parse::<i64>().ok().zip(value.trim().parse::<i64>().ok());
    live.trim() == value.trim() || numbers.is_some_and(|(live, value)| live == value)
}
