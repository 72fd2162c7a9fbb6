//! Runs by the names that users give them: a number, a place in the order, a label.

use anyhow::bail;
use rubus_command::{message, places};

use crate::history::RunId;
use crate::store::{Filter, History};

/// Whether the name is a number or a place of a run, and so no file and no label.
pub fn is_place(name: &str) -> bool {
    name.parse::<i64>().is_ok() || nth_last(name).is_some()
}

/// The run that a number, a place ("last", "last~1") or a label means.
///
/// # Errors
/// When there is none.
pub fn run_id(history: &History, name: &str) -> anyhow::Result<RunId> {
    if let Ok(id) = name.parse::<i64>() {
        return Ok(RunId(id));
    }
    if let Some(nth) = nth_last(name) {
        return match history.list(1, nth)?.first() {
            Some(line) => Ok(line.id),
            None => match history.count()? {
                0 => bail!(
                    "the history has no runs; `rubus` measures the disk under the current directory"
                ),
                count => bail!("there is no {name}: the history has {count} runs"),
            },
        };
    }
    match labelled(history, name)? {
        Some(id) => Ok(id),
        None => bail!("no run in the history has the label '{name}'; `rubus history` lists them"),
    }
}

/// The run with that label; of several the one measured last, and that is said.
///
/// # Errors
/// When the history cannot be read.
pub fn labelled(history: &History, label: &str) -> anyhow::Result<Option<RunId>> {
    let filter = Filter { label: Some(label.to_string()), ..Filter::default() };
    let found = history.list_of(&filter, 2, 0)?;
    if let [newest, _] = found.as_slice() {
        message!("rubus: several runs have the label '{label}'; this is run {}", newest.id);
    }
    Ok(found.first().map(|line| line.id))
}

/// 0 for "last", n for "last~n".
fn nth_last(name: &str) -> Option<u32> {
    match name.strip_prefix("last")? {
        "" => Some(0),
        rest => rest.strip_prefix('~')?.parse().ok(),
    }
}

/// The history, which must be there.
///
/// # Errors
/// When there is none yet, or it cannot be opened.
pub fn open_history() -> anyhow::Result<History> {
    let path = places::history()?;
    if !path.exists() {
        bail!("there is no history yet; `rubus` measures the disk under the current directory");
    }
    Ok(History::open(&path)?)
}

/// The history, where there is one; looking must not make an empty one.
///
/// # Errors
/// When it cannot be opened.
pub fn open_existing() -> anyhow::Result<Option<History>> {
    let path = places::history()?;
    if !path.exists() {
        return Ok(None);
    }
    Ok(Some(History::open(&path)?))
}
