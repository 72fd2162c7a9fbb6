//! Two measurements of a fleet, before and after: which settings changed, which boards surely
//! became faster or slower, and what cannot be compared.
//!
//! Each pair of runs is compared as any two runs are (`rubus_runs::compare`); how the intervals are
//! widened for many boards is in `sure`.

mod pairs;
mod sure;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;

use rubus_runs::compare::{Comparison, Difference, Subject, Word, compare as compare_runs};
use rubus_runs::history::doubt_count;
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::figure::Unit;
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::result::{JobResult, Outcome, Run};
use serde::{Deserialize, Serialize};

use crate::changes::{self, Change};
use crate::figures::{self, Choice, Column};
use pairs::Pair;
pub use pairs::{Missing, Obstacle};

/// What a fleet gave, as its JSON document has it; other fields do not matter here.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Document {
    /// "bench" or "checkup"; "survey" and "advise" have no runs.
    pub command: String,
    /// The boards, in the order of the list.
    pub boards: Vec<BoardRuns>,
}

/// A board of the document.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct BoardRuns {
    /// As its owner calls it.
    pub name: String,
    /// Why it has no result, or not all of them.
    #[serde(default)]
    pub failure: Option<String>,
    #[serde(default)]
    pub runs: Vec<Run>,
    /// Number of each run in the history of the machine that asked for it.
    #[serde(default)]
    pub history: Vec<Option<i64>>,
}

/// A document and its name.
#[derive(Clone, Copy, Debug)]
pub struct Fleet<'a> {
    /// "before.json".
    pub name: &'a str,
    pub document: &'a Document,
}

/// Two measurements of a fleet side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FleetComparison {
    /// What to do next.
    pub next: NextStep,
    /// Before and after.
    pub fleets: Vec<FleetLine>,
    /// Settings and parts that changed on boards that were measured twice.
    pub changes: Vec<Change>,
    /// The figures that boards are compared by.
    pub columns: Vec<Column>,
    /// The runs that have a counterpart, in the order of the boards before.
    pub rows: Vec<Row>,
    /// How many ratios were judged.
    pub comparisons: usize,
    /// Confidence of each interval in `rows`, by Bonferroni. With that of `overall`: if nothing
    /// changed, 95 % of comparisons say so.
    pub confidence: f64,
    /// How the fleet as a whole changed, by target and figure; of those with three boards or more.
    pub overall: Vec<Overall>,
    /// Confidence of each interval in `overall`.
    pub overall_confidence: f64,
    /// What is not compared, and why.
    pub missing: Vec<Missing>,
}

/// One of the two.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FleetLine {
    /// How it is called.
    pub name: String,
    /// `bench` or `checkup`.
    pub command: String,
    /// How many boards it has.
    pub boards: usize,
    /// When the first run began, RFC 3339 in UTC.
    pub when: Option<String>,
}

/// A run of a board and its counterpart.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Row {
    /// By name.
    pub board: String,
    /// What was measured there, as the user named it; null: the home directory.
    pub target: Option<String>,
    /// Name of the suite.
    pub suite: String,
    /// Numbers of both runs in the history; null: not there.
    pub history: [Option<i64>; 2],
    /// How many doubts both runs have.
    pub doubts: [u32; 2],
    /// In the order of `columns`; null where it was not measured in both.
    pub figures: Vec<Option<FigureChange>>,
}

/// A figure before and after.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FigureChange {
    /// The figure of the first run.
    pub before: Estimate,
    /// The figure of the second run.
    pub after: Estimate,
    /// After over before. The interval has the comparison's `confidence`, which allows for all
    /// comparisons.
    pub ratio: Estimate,
    /// What that says.
    pub word: Word,
    /// Whether both settled: their intervals became as narrow as was asked for.
    pub is_settled: bool,
}

/// How the boards together changed in a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Overall {
    /// What was measured, as the user named it; null: the home directory.
    pub target: Option<String>,
    /// Name of the suite.
    pub suite: String,
    /// Which figure, in words.
    pub figure: String,
    /// How many boards have it in both.
    pub boards: usize,
    /// The median of their ratios. The interval has the comparison's `overall_confidence`.
    pub ratio: Estimate,
    /// What that says.
    pub word: Word,
}

/// Something that became slower.
#[derive(Clone, Debug, PartialEq)]
pub struct Regression<'a> {
    /// The board; absent for the fleet as a whole.
    pub board: Option<&'a str>,
    pub target: Option<&'a str>,
    /// The figure, in words.
    pub figure: &'a str,
    /// After over before.
    pub ratio: f64,
}

/// Compares two measurements of a fleet. Boards are paired by name, their runs by suite and target.
pub fn compare(before: Fleet<'_>, after: Fleet<'_>) -> FleetComparison {
    let paired = pairs::pair(before, after);
    let all = paired.pairs.iter().flat_map(|pair| pair.runs);
    let choice = Choice::of(all);
    let columns = choice.columns();
    let mut changed: Vec<(&str, Vec<Difference>)> = Vec::new();
    let mut rows = Vec::new();
    for pair in &paired.pairs {
        let comparison = compare_runs(&[
            Subject::of_run(before.name, pair.runs[0]),
            Subject::of_run(after.name, pair.runs[1]),
        ]);
        rows.push(row(pair, &comparison, &choice, &columns));
        changed.push((pair.board, comparison.differences));
    }
    // Of the intervals of single comparisons, so first.
    let overall = overall(&rows, &columns);
    let comparisons = widen(&mut rows, &paired.pairs);
    let changed: Vec<(&str, &[Difference])> =
        changed.iter().map(|(board, differences)| (*board, differences.as_slice())).collect();
    let mut comparison = FleetComparison {
        next: NextStep::default(),
        fleets: vec![FleetLine::of(before), FleetLine::of(after)],
        changes: changes::grouped(&changed),
        comparisons,
        confidence: sure::level(comparisons),
        overall_confidence: sure::level(overall.len()),
        columns,
        rows,
        overall,
        missing: paired.missing,
    };
    comparison.next = next(&comparison);
    comparison
}

/// About the first board that surely became slower, else about the first that is missing.
fn next(comparison: &FleetComparison) -> NextStep {
    let is_slower = |row: &&Row| {
        let mut figures = row.figures.iter().flatten();
        figures.any(|figure| figure.word == Word::Slower)
    };
    let changed = |board: &str| {
        let mut changes = comparison.changes.iter();
        changes.find(|change| change.boards.iter().any(|one| one == board))
    };
    if let Some(row) = comparison.rows.iter().find(is_slower) {
        let board = &row.board;
        return match changed(board) {
            Some(change) => NextStep::by_hand(&format!(
                "look first at what changed on {board}: {} ({} before, {} after)",
                change.what,
                change.before.as_deref().unwrap_or("not known"),
                change.after.as_deref().unwrap_or("not known")
            )),
            None => {
                let words = "it became slower, and no setting is known to have changed";
                NextStep::command(&["rubus", "survey", "--on", board], words)
            }
        };
    }
    match comparison.missing.first() {
        Some(missing) => NextStep::by_hand(&format!(
            "measure {} again, which is not compared: {}",
            missing.board, missing.reason
        )),
        None => NextStep::by_hand("nothing: no board surely became slower"),
    }
}

impl FleetLine {
    fn of(fleet: Fleet<'_>) -> FleetLine {
        let runs = fleet.document.boards.iter().flat_map(|board| &board.runs);
        FleetLine {
            name: fleet.name.into(),
            command: fleet.document.command.clone(),
            boards: fleet.document.boards.len(),
            when: runs.map(|run| run.started.clone()).min(),
        }
    }
}

/// The row of a pair, with the intervals of a comparison of two runs.
fn row(pair: &Pair<'_>, comparison: &Comparison, choice: &Choice, columns: &[Column]) -> Row {
    let [before, after] = pair.runs.map(|run| choice.results(run));
    let results = before.into_iter().zip(after).zip(columns);
    let figures =
        results.map(|((before, after), column)| figure(comparison, before?, after?, column.unit));
    Row {
        board: pair.board.into(),
        target: figures::target(pair.runs[0]),
        suite: pair.runs[0].suite.clone(),
        history: pair.history,
        doubts: pair.runs.map(doubt_count),
        figures: figures.collect(),
    }
}

/// Nothing where a comparison of two runs does not pair the jobs, or has no interval.
fn figure(
    comparison: &Comparison,
    before: &JobResult,
    after: &JobResult,
    unit: Unit,
) -> Option<FigureChange> {
    let is_of_both =
        |jobs: &[Option<String>]| jobs == [Some(before.job.clone()), Some(after.job.clone())];
    let row = comparison.rows.iter().find(|row| is_of_both(&row.jobs))?;
    let ratio = row.throughput.ratios.get(1)?.as_ref()?;
    Some(FigureChange {
        before: figures::rate(before, unit),
        after: figures::rate(after, unit),
        ratio: ratio.figure.estimate()?,
        word: Word::NotJudged,
        is_settled: [before, after].iter().all(|result| result.outcome != Outcome::Inconclusive),
    })
}

/// Widens the intervals of all ratios for their number, and gives them their words.
fn widen(rows: &mut [Row], pairs: &[Pair<'_>]) -> usize {
    // Boards of one kind drift alike.
    let mut series: BTreeMap<(String, usize), Vec<&mut FigureChange>> = BTreeMap::new();
    let mut comparisons = 0;
    for (row, pair) in rows.iter_mut().zip(pairs) {
        for (column, figure) in row.figures.iter_mut().enumerate() {
            let Some(figure) = figure else { continue };
            let key = (figures::kind(pair.runs[1]), column);
            series.entry(key).or_default().push(figure);
            comparisons += 1;
        }
    }
    for figures in series.values_mut() {
        let ratios: Vec<Estimate> = figures.iter().map(|figure| figure.ratio).collect();
        let widened = sure::widened(&ratios, comparisons);
        for (figure, ratio) in figures.iter_mut().zip(widened) {
            figure.word = word(ratio);
            figure.ratio = ratio;
        }
    }
    comparisons
}

/// More is faster in every figure.
fn word(ratio: Estimate) -> Word {
    match (ratio.low > 1.0, ratio.high < 1.0) {
        (true, _) => Word::Faster,
        (_, true) => Word::Slower,
        _ => Word::NoEvidence,
    }
}

/// By suite and target, in the order of the rows, then by column.
fn overall(rows: &[Row], columns: &[Column]) -> Vec<Overall> {
    let mut of_target: Vec<(&Row, Vec<&Row>)> = Vec::new();
    for row in rows {
        let is_same = |other: &Row| (&other.suite, &other.target) == (&row.suite, &row.target);
        match of_target.iter_mut().find(|(first, _)| is_same(first)) {
            Some((_, rows)) => rows.push(row),
            None => of_target.push((row, vec![row])),
        }
    }
    let mut series = Vec::new();
    for (first, rows) in of_target {
        for (number, column) in columns.iter().enumerate() {
            let figures = rows.iter().filter_map(|row| row.figures[number]);
            let ratios: Vec<Estimate> = figures.map(|figure| figure.ratio).collect();
            if ratios.len() >= crate::outliers::MIN_BOARDS {
                series.push((first, column, ratios));
            }
        }
    }
    let count = series.len();
    let all = series.into_iter().filter_map(|(first, column, ratios)| {
        let ratio = sure::overall(&ratios, count)?;
        Some(Overall {
            target: first.target.clone(),
            suite: first.suite.clone(),
            figure: column.title.clone(),
            boards: ratios.len(),
            ratio,
            word: word(ratio),
        })
    });
    all.collect()
}

impl FleetComparison {
    /// What surely became slower, by more than `tolerance` (0.05 is 5 %) over the whole interval:
    /// figures of boards, then those of the fleet as a whole.
    pub fn regressions(&self, tolerance: f64) -> Vec<Regression<'_>> {
        let is_beyond =
            |word: Word, ratio: Estimate| word == Word::Slower && ratio.high < 1.0 - tolerance;
        let of_boards = self.rows.iter().flat_map(|row| {
            let figures = row.figures.iter().zip(&self.columns);
            figures.filter_map(move |(figure, column)| {
                let figure = figure.filter(|one| is_beyond(one.word, one.ratio))?;
                Some(Regression {
                    board: Some(&row.board),
                    target: row.target.as_deref(),
                    figure: &column.title,
                    ratio: figure.ratio.value,
                })
            })
        });
        let of_fleet = self.overall.iter().filter(|one| is_beyond(one.word, one.ratio));
        let of_fleet = of_fleet.map(|one| Regression {
            board: None,
            target: one.target.as_deref(),
            figure: &one.figure,
            ratio: one.ratio.value,
        });
        of_boards.chain(of_fleet).collect()
    }
}
