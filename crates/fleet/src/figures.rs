//! The figures of a fleet: one row per run, the figures that all are compared by, and which of them
//! stand apart.

use std::collections::BTreeMap;

use rubus_draw::words;
use rubus_runs::gallery::{Quantity, Shown};
use rubus_runs::history::{doubt_count, key_results};
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::figure::Unit;
use rubus_vocabulary::result::{JobResult, Outcome, Run};
use serde::Serialize;

use crate::outliers::{self, Sample};

/// Columns of a suite that has none of the usual figures.
const MAX_COLUMNS: usize = 5;
/// Up to this size, operations per second say more than bytes per second.
const SMALL_BLOCK_BYTES: u32 = 16 << 10;
const SHORT: [&str; 5] = ["read", "write", "4k rd", "4k wr", "commit"];

/// A figure that runs have.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Column {
    /// Short, for a table.
    pub heading: String,
    /// In words.
    pub title: String,
    /// What it counts.
    pub unit: Unit,
}

/// A run of a board.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Number of the board.
    pub board: usize,
    /// What was measured there, as the user named it; absent where it goes without saying.
    pub target: Option<String>,
    /// Number in the history.
    pub number: Option<i64>,
    pub doubts: u32,
    /// Boards of another kind are not compared with it.
    #[serde(skip)]
    kind: String,
    /// One per column.
    pub cells: Vec<Option<Shown>>,
}

/// The figures of all boards.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Table {
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
}

/// A run and whose it is.
pub struct OfBoard<'a> {
    pub board: usize,
    /// Number in the history.
    pub number: Option<i64>,
    pub run: &'a Run,
}

/// Which figures runs are compared by.
pub(crate) enum Choice {
    /// Those that most suites have.
    Usual,
    /// Where no run has any of those: the first jobs, by name.
    Jobs(Vec<(String, Column)>),
}

impl Choice {
    pub(crate) fn of<'a>(runs: impl Iterator<Item = &'a Run> + Clone) -> Choice {
        let mut all = runs.clone();
        if all.any(|run| key_results(run).iter().any(Option::is_some)) {
            Choice::Usual
        } else {
            Choice::Jobs(first_jobs(runs))
        }
    }

    pub(crate) fn columns(&self) -> Vec<Column> {
        match self {
            Choice::Usual => usual_columns(),
            Choice::Jobs(jobs) => jobs.iter().map(|(_, column)| column.clone()).collect(),
        }
    }

    /// The results of a run, one per column.
    pub(crate) fn results<'a>(&self, run: &'a Run) -> Vec<Option<&'a JobResult>> {
        match self {
            Choice::Usual => key_results(run).to_vec(),
            Choice::Jobs(jobs) => jobs.iter().map(|(job, _)| run.job(job)).collect(),
        }
    }
}

/// The table of these runs, in the order given.
pub fn table(runs: &[OfBoard<'_>]) -> Table {
    let choice = Choice::of(runs.iter().map(|of| of.run));
    let columns = choice.columns();
    let rows = runs.iter().map(|of| {
        let results = choice.results(of.run);
        let cells = results.iter().zip(&columns).map(|(result, column)| {
            result.map(|result| Shown {
                rate: rate(result, column.unit),
                is_settled: result.outcome != Outcome::Inconclusive,
            })
        });
        Row {
            board: of.board,
            target: target(of.run),
            number: of.number,
            doubts: doubt_count(of.run),
            kind: kind(of.run),
            cells: cells.collect(),
        }
    });
    Table { rows: rows.collect(), columns }
}

/// What was measured, as the user named it; nothing where it goes without saying.
pub(crate) fn target(run: &Run) -> Option<String> {
    Some(run.target.named.clone()).filter(|named| named != ".")
}

fn usual_columns() -> Vec<Column> {
    let column = |(quantity, heading): (Quantity, &str)| Column {
        heading: heading.into(),
        title: quantity.title().into(),
        unit: if quantity.is_in_bytes() { Unit::BytesPerSecond } else { Unit::OperationsPerSecond },
    };
    Quantity::ALL.into_iter().zip(SHORT).map(column).collect()
}

/// Jobs by name, in the order in which they first appear.
fn first_jobs<'a>(runs: impl Iterator<Item = &'a Run>) -> Vec<(String, Column)> {
    let mut jobs: Vec<(String, Column)> = Vec::new();
    for result in runs.flat_map(|run| &run.results) {
        if jobs.len() == MAX_COLUMNS {
            break;
        }
        if jobs.iter().all(|(job, _)| *job != result.job) {
            let column = Column {
                heading: format!("job {}", jobs.len() + 1),
                title: words::job_title(result),
                unit: if result.block_bytes <= SMALL_BLOCK_BYTES {
                    Unit::OperationsPerSecond
                } else {
                    Unit::BytesPerSecond
                },
            };
            jobs.push((result.job.clone(), column));
        }
    }
    jobs
}

pub(crate) fn rate(result: &JobResult, unit: Unit) -> Estimate {
    match unit {
        Unit::BytesPerSecond => result.bytes_per_second,
        _ => result.iops,
    }
}

/// The board without its revision, and what was measured with: only runs of one kind are compared.
pub(crate) fn kind(run: &Run) -> String {
    let model = run.machine.board.model.text().unwrap_or_default();
    let model = model.split(" Rev ").next().unwrap_or_default();
    format!("{model}\n{}\n{}", run.suite, run.target.named)
}

/// A board whose figure stands apart from those of its kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outlier {
    /// By name.
    pub board: String,
    /// What was measured there, as the user named it; null: the home directory.
    pub target: Option<String>,
    /// Which figure, in words.
    pub figure: String,
    /// What it counts.
    pub unit: Unit,
    /// The board's figure.
    pub value: Estimate,
    /// The median of the boards of its kind.
    pub median: f64,
    /// How many boards of its kind were compared.
    pub boards: usize,
    /// The figure over the median. The interval has the report's `confidence`, which allows for all
    /// comparisons.
    pub ratio: Estimate,
    /// Row in the table.
    #[serde(skip)]
    pub row: usize,
    /// Column in the table.
    #[serde(skip)]
    pub column: usize,
}

/// Which boards stand apart, and how many figures were looked at for it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outliers {
    /// Figures that were compared with a median.
    pub comparisons: usize,
    /// Confidence of each interval, by Bonferroni: with boards that are alike, 95 % of fleets have
    /// no outlier.
    pub confidence: f64,
    /// The figures that stand apart.
    pub outliers: Vec<Outlier>,
    /// Boards of a kind with too few boards to compare, by name.
    pub alone: Vec<String>,
}

/// Compares every figure with the median of its kind.
pub fn outliers(table: &Table, names: &[&str]) -> Outliers {
    let mut kinds: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (number, row) in table.rows.iter().enumerate() {
        kinds.entry(&row.kind).or_default().push(number);
    }
    let few = kinds.values().filter(|rows| rows.len() < outliers::MIN_BOARDS);
    let mut alone: Vec<usize> = few.flatten().map(|row| table.rows[*row].board).collect();
    alone.sort_unstable();
    alone.dedup();
    let mut series = Vec::new();
    let mut columns = Vec::new();
    for rows in kinds.values() {
        for column in 0..table.columns.len() {
            let samples = rows.iter().filter_map(|row| {
                let value = table.rows[*row].cells[column]?.rate;
                Some(Sample { subject: *row, value })
            });
            series.push(samples.collect::<Vec<_>>());
            columns.push(column);
        }
    }
    let found = outliers::find(&series);
    let mut all: Vec<Outlier> = found
        .apart
        .iter()
        .map(|apart| {
            let row = &table.rows[apart.subject];
            let column = columns[apart.series];
            Outlier {
                board: names[row.board].into(),
                target: row.target.clone(),
                figure: table.columns[column].title.clone(),
                unit: table.columns[column].unit,
                value: apart.value,
                median: apart.median,
                boards: series[apart.series].len(),
                ratio: apart.ratio,
                row: apart.subject,
                column,
            }
        })
        .collect();
    all.sort_by_key(|one| (one.row, one.column));
    Outliers {
        comparisons: found.comparisons,
        confidence: found.level(),
        outliers: all,
        alone: alone.into_iter().map(|board| names[board].to_string()).collect(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rubus_fixtures as fixture;
    use rubus_vocabulary::fact::Fact;

    /// A run like the fixture's, slower by a factor.
    pub fn run(slower: f64) -> Run {
        let mut run = fixture::remote_run();
        for result in &mut run.results {
            result.iops = result.iops.scaled(1.0 / slower);
            result.bytes_per_second = result.bytes_per_second.scaled(1.0 / slower);
        }
        run
    }

    pub fn of_boards(runs: &[Run]) -> Vec<OfBoard<'_>> {
        let one = |(board, run)| OfBoard { board, number: Some(board as i64 + 1), run };
        runs.iter().enumerate().map(one).collect()
    }

    #[test]
    fn the_slow_board_is_named_in_all_its_figures_and_no_other_is() {
        let mut runs: Vec<Run> = (0..20).map(|at| run(1.0 + f64::from(at % 5) * 0.01)).collect();
        runs[7] = run(2.0);
        let names: Vec<String> = (0..20).map(|at| format!("pi{at:02}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let table = table(&of_boards(&runs));
        assert_eq!(table.columns.len(), 5);
        let found = outliers(&table, &names);
        assert_eq!(found.comparisons, 100);
        assert!(found.outliers.iter().all(|one| one.board == "pi07"), "{found:?}");
        assert!(found.outliers.len() >= 3, "{found:?}");
        assert!(found.alone.is_empty());
    }

    #[test]
    fn boards_of_another_kind_are_not_compared() {
        let mut runs: Vec<Run> = (0..4).map(|_| run(1.0)).collect();
        runs[3] = run(3.0);
        runs[3].machine.board.model = Fact::known("Raspberry Pi 1".into(), "a test");
        let names = ["a", "b", "c", "old"];
        let found = outliers(&table(&of_boards(&runs)), &names);
        assert_eq!(found.outliers, []);
        assert_eq!(found.alone, ["old"]);
        // Another revision is the same board.
        runs[3].machine.board.model = runs[0].machine.board.model.clone();
        let model = runs[0].machine.board.model.text().unwrap().to_string();
        assert!(model.contains(" Rev "), "{model}");
        runs[2].machine.board.model = Fact::known(model + ".9", "a test");
        let found = outliers(&table(&of_boards(&runs)), &names);
        assert!(found.outliers.iter().all(|one| one.board == "old"));
        assert!(!found.outliers.is_empty());
    }

    #[test]
    fn a_suite_of_its_own_has_its_first_jobs_as_columns() {
        let mut one = run(1.0);
        for result in &mut one.results {
            result.job = format!("{}-x", result.job);
            result.queue_depth = 7;
        }
        let runs = [one.clone(), one];
        let table = table(&of_boards(&runs));
        assert_eq!(table.columns.len(), MAX_COLUMNS);
        assert_eq!(table.columns[0].heading, "job 1");
        assert!(table.rows.iter().all(|row| row.cells.iter().all(Option::is_some)));
    }
}
