//! Which run is whose counterpart, and what has none.

use std::collections::{HashMap, HashSet};

use rubus_draw::words;
use rubus_vocabulary::result::Run;
use serde::Serialize;

use super::{BoardRuns, Fleet};
use crate::figures;

/// A run of a board before and after.
pub(super) struct Pair<'a> {
    pub board: &'a str,
    pub runs: [&'a Run; 2],
    /// Their numbers in the history.
    pub history: [Option<i64>; 2],
}

/// Something of a board that is not compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Missing {
    /// By name.
    pub board: String,
    /// What is in the way.
    pub obstacle: Obstacle,
    /// Why, in words.
    pub reason: String,
}

/// What is in the way of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Obstacle {
    /// The board is only in the first document.
    OnlyBefore,
    /// The board is only in the second document.
    OnlyAfter,
    /// The board gave no result, or not all, in the first.
    FailedBefore,
    /// The board gave no result, or not all, in the second.
    FailedAfter,
    /// A run has no counterpart: another suite, another target, or a target of another kind.
    NoCounterpart,
}

/// What is compared, and what is not.
pub(super) struct Paired<'a> {
    pub pairs: Vec<Pair<'a>>,
    pub missing: Vec<Missing>,
}

/// A run that waits for its counterpart.
struct Waiting<'a> {
    run: &'a Run,
    history: Option<i64>,
    is_taken: bool,
}

/// Pairs boards by name, and their runs by suite and target.
pub(super) fn pair<'a>(before: Fleet<'a>, after: Fleet<'a>) -> Paired<'a> {
    let mut paired = Paired { pairs: Vec::new(), missing: Vec::new() };
    let names = [before.name, after.name];
    let boards = &after.document.boards;
    let places: HashMap<&str, &BoardRuns> =
        boards.iter().map(|board| (board.name.as_str(), board)).collect();
    for board in &before.document.boards {
        match places.get(board.name.as_str()) {
            Some(other) => paired.add(names, [board, other]),
            None => {
                paired.miss(&board.name, Obstacle::OnlyBefore, format!("only in {}", before.name))
            }
        }
    }
    let before = before.document.boards.iter();
    let known: HashSet<&str> = before.map(|board| board.name.as_str()).collect();
    for board in boards.iter().filter(|board| !known.contains(&*board.name)) {
        let reason = format!("only in {}", after.name);
        paired.miss(&board.name, Obstacle::OnlyAfter, reason);
    }
    paired
}

impl<'a> Paired<'a> {
    fn miss(&mut self, board: &str, obstacle: Obstacle, reason: String) {
        self.missing.push(Missing { board: board.into(), obstacle, reason });
    }

    /// A board that is in both.
    fn add(&mut self, names: [&str; 2], boards: [&'a BoardRuns; 2]) {
        let obstacles = [Obstacle::FailedBefore, Obstacle::FailedAfter];
        for ((board, name), obstacle) in boards.iter().zip(names).zip(obstacles) {
            if let Some(failure) = &board.failure {
                let reason = format!("failed in {name}: {failure}");
                self.miss(&board.name, obstacle, reason);
            }
        }
        let mut before = waiting(boards[0]);
        let mut after = waiting(boards[1]);
        for one in &mut before {
            let is_other = |other: &&mut Waiting<'_>| {
                !other.is_taken && obstacle(one.run, other.run).is_none()
            };
            if let Some(other) = after.iter_mut().find(is_other) {
                (one.is_taken, other.is_taken) = (true, true);
                self.pairs.push(Pair {
                    board: &boards[0].name,
                    runs: [one.run, other.run],
                    history: [one.history, other.history],
                });
            }
        }
        // A board without any run has said why.
        let left = |all: &[Waiting<'a>]| -> Vec<&'a Run> {
            let left = all.iter().filter(|one| !one.is_taken);
            left.map(|one| one.run).collect()
        };
        let (left, mut other_left) = (left(&before), left(&after));
        let has_both = !before.is_empty() && !after.is_empty();
        for run in left {
            let alike = other_left.iter().position(|other| is_nearly(run, other));
            let reason = match alike.map(|place| other_left.remove(place)) {
                Some(other) => obstacle(run, other).map(|[was, is]| {
                    format!("{}: {was} in {}, {is} in {}", place(run), names[0], names[1])
                }),
                None => Some(alone(run, names[0])).filter(|_| has_both),
            };
            self.no_counterpart(boards[0], reason);
        }
        for run in other_left {
            self.no_counterpart(boards[0], Some(alone(run, names[1])).filter(|_| has_both));
        }
        let is_empty = |board: &BoardRuns| board.runs.is_empty() && board.failure.is_none();
        for (board, name) in boards.iter().zip(names) {
            if is_empty(board) {
                self.no_counterpart(board, Some(format!("no run in {name}")));
            }
        }
    }

    fn no_counterpart(&mut self, board: &BoardRuns, reason: Option<String>) {
        if let Some(reason) = reason {
            self.miss(&board.name, Obstacle::NoCounterpart, reason);
        }
    }
}

fn waiting(board: &BoardRuns) -> Vec<Waiting<'_>> {
    board
        .runs
        .iter()
        .enumerate()
        .map(|(number, run)| Waiting {
            run,
            history: board.history.get(number).copied().flatten(),
            is_taken: false,
        })
        .collect()
}

/// Whether only one thing keeps them from being compared.
fn is_nearly(a: &Run, b: &Run) -> bool {
    a.target.named == b.target.named
}

/// In what two runs differ so that they are not compared: what the first has, and the second.
fn obstacle(a: &Run, b: &Run) -> Option<[String; 2]> {
    if a.target.named != b.target.named {
        return Some([place(a), place(b)]);
    }
    if a.suite != b.suite {
        return Some([a, b].map(|run| format!("suite {}", run.suite)));
    }
    if a.target.kind != b.target.kind {
        return Some([a, b].map(|run| words::target_kind(run.target.kind).to_string()));
    }
    None
}

fn place(run: &Run) -> String {
    figures::target(run).unwrap_or_else(|| "the home directory".into())
}

fn alone(run: &Run, name: &str) -> String {
    format!("{} (suite {}) only in {name}", place(run), run.suite)
}
