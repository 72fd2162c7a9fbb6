//! The last runs of this user, and of the one who called this program through sudo: what was measured counts when root plans.

use rubus_command::places;
use rubus_vocabulary::result::Run;

use crate::history::{RunId, RunSummary};
use crate::store::History;
use crate::together;

/// How many runs are looked at.
const MAX_RUNS: u32 = 50;

/// The last runs of disks in the history, newest first; none where no history can be read.
pub fn runs_of_disks() -> Vec<(RunId, Run)> {
    last(|line| line.device.is_some() || line.suite == together::SUITE)
}

/// The last runs of anything in the history, newest first; none where no history can be read.
pub fn runs() -> Vec<(RunId, Run)> {
    last(|_| true)
}

fn last(is_wanted: impl Fn(&RunSummary) -> bool) -> Vec<(RunId, Run)> {
    let own = places::present_history().and_then(|path| History::open(&path).ok());
    let of_caller = places::history_of_caller().and_then(|path| History::open_to_read(&path).ok());
    let mut runs = Vec::new();
    for history in own.iter().chain(&of_caller) {
        let lines = history.list(MAX_RUNS, 0).unwrap_or_default().into_iter();
        let wanted = lines.filter(&is_wanted);
        runs.extend(wanted.filter_map(|line| Some((line.id, history.get(line.id).ok()?.run))));
    }
    // Moments are in UTC and written in one way, so that they can be compared as texts.
    runs.sort_by(|(_, a), (_, b)| b.started.cmp(&a.started));
    runs.truncate(MAX_RUNS as usize);
    runs
}
