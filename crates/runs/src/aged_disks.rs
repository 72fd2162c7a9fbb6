//! What the history says of a disk's runs over time.

use crate::ageing::{Numbered, of_runs, series_of};
use crate::history::{RunId, RunSummary};
use crate::store::{Filter, History, StoredRun};

/// Maximum number of runs of a disk to look at: a year of weekly ones, and some.
const MAX_RUNS: u32 = 60;

/// What changed on each disk that these runs are of, a line each with the disk before it.
///
/// # Errors
/// When the history cannot be read.
pub fn of_each_disk(store: &History, listed: &[RunSummary]) -> anyhow::Result<Vec<String>> {
    let mut lines = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    for summary in listed {
        let Ok(newest) = store.get(summary.id) else {
            continue;
        };
        let Some(series) = series_of(&newest.run).filter(|series| !seen.contains(series)) else {
            continue;
        };
        let device = summary.device_model.as_deref().unwrap_or(&summary.target);
        for words in of_series(store, &newest, &series)? {
            lines.push(format!("{device} ({}): {words}", summary.suite));
        }
        seen.push(series);
    }
    Ok(lines)
}

/// What changed on the disk of the newest run.
///
/// # Errors
/// When the history cannot be read.
pub fn of_newest(store: &History) -> anyhow::Result<Vec<String>> {
    let Some(summary) = store.list(1, 0)?.pop() else {
        return Ok(Vec::new());
    };
    let newest = store.get(summary.id)?;
    match series_of(&newest.run) {
        Some(series) => of_series(store, &newest, &series),
        None => Ok(Vec::new()),
    }
}

fn of_series(store: &History, newest: &StoredRun, series: &str) -> anyhow::Result<Vec<String>> {
    let filter = Filter { suite: Some(newest.run.suite.clone()), ..Filter::default() };
    let mut runs = Vec::new();
    for summary in store.list_of(&filter, MAX_RUNS, 0)? {
        // A record that cannot be read is told where it is asked for, and is no reason to fail here.
        let Ok(stored) = store.get(summary.id) else {
            continue;
        };
        if series_of(&stored.run).as_deref() == Some(series) {
            runs.push((summary.id, stored.run));
        }
    }
    runs.sort_by(|(_, a), (_, b)| a.started.cmp(&b.started));
    let numbered: Vec<Numbered<'_>> = runs.iter().map(|(id, run)| (*id, run)).collect();
    let day_of = |id: RunId| {
        let run = runs.iter().find(|(other, _)| *other == id);
        run.and_then(|(_, run)| run.started.get(..10)).unwrap_or_default().to_string()
    };
    Ok(of_runs(&numbered).iter().map(|aged| aged.words(day_of)).collect())
}
