//! Advice about other machines: from their survey, and from what this machine's history has of
//! them.

use std::collections::BTreeMap;

use rubus_advise::advice::Advice;
use rubus_fleet::inventory::Board;
use rubus_runs::history::RunId;
use rubus_runs::store::History;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::result::Run;

use crate::args::Advise;
use crate::commands::advise::{advice, advice_for_others};
use rubus_command::places;

/// Runs that are looked through, the newest first.
const MAX_RUNS: u32 = 5000;
/// Runs of a machine that count, the newest first.
const MAX_OF_MACHINE: usize = 10;

/// The advice for each machine that was surveyed.
///
/// # Errors
/// When a wish cannot be fulfilled.
pub fn of_all(
    boards: &[Board],
    machines: &[Option<Machine>],
    arguments: &Advise,
) -> anyhow::Result<Vec<Option<Advice>>> {
    let mut measured = measured(boards);
    let all = boards.iter().zip(machines).map(|(board, machine)| {
        let Some(machine) = machine else {
            return Ok(None);
        };
        let runs = measured.remove(board.name.as_str()).unwrap_or_default();
        advice(machine, &runs, Vec::new(), arguments).map(Some)
    });
    all.collect()
}

/// The advice for the only machine, as a page may have it.
///
/// # Errors
/// As for [`of_all`].
pub fn for_others(
    boards: &[Board],
    machines: &[Option<Machine>],
    arguments: &Advise,
) -> anyhow::Result<Option<Advice>> {
    let (Some(board), Some(Some(machine))) = (boards.first(), machines.first()) else {
        return Ok(None);
    };
    let runs = measured(boards).remove(board.name.as_str()).unwrap_or_default();
    advice_for_others(machine, &runs, Vec::new(), arguments).map(Some)
}

/// The newest runs of each machine, as if they had been measured on it.
fn measured(boards: &[Board]) -> BTreeMap<&str, Vec<(RunId, Run)>> {
    let mut of_machines: BTreeMap<&str, Vec<(RunId, Run)>> =
        boards.iter().map(|board| (board.name.as_str(), Vec::new())).collect();
    let history = places::present_history().and_then(|path| History::open(&path).ok());
    let Some(history) = history else {
        return of_machines;
    };
    for line in history.list(MAX_RUNS, 0).unwrap_or_default() {
        let Ok(stored) = history.get(line.id) else {
            continue;
        };
        let mut run = stored.run;
        let name = run.on.take().map(|on| on.destination);
        let list = name.and_then(|name| of_machines.get_mut(name.as_str()));
        if let Some(list) = list.filter(|list| list.len() < MAX_OF_MACHINE) {
            list.push((line.id, run));
        }
    }
    of_machines
}
