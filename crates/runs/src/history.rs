//! What the history tells about a run without opening it: the words that the store and the tables
//! share. The database itself is the store's.

#![deny(clippy::disallowed_methods)]

use serde::{Deserialize, Serialize};

use rubus_vocabulary::job_names;
use rubus_vocabulary::result::{JobResult, Outcome, Run};
use rubus_vocabulary::spec::{Direction, Pattern};
use rubus_vocabulary::suite_jobs::COMMIT_LOGGER;

/// Number of a run in the history, from 1 upwards; a number is never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunId(pub i64);

impl std::fmt::Display for RunId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// One line of the history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunSummary {
    /// Its number.
    pub id: RunId,
    /// When the run began, RFC 3339, UTC.
    pub started: String,
    /// Which version measured.
    pub rubus_version: String,
    /// Name of the suite.
    pub suite: String,
    /// Absolute path of what was measured.
    pub target: String,
    /// Kernel name of the device below, where there was one.
    pub device: Option<String>,
    /// Model of that device, where it said.
    pub device_model: Option<String>,
    /// Model of the board, where it was readable.
    pub board: Option<String>,
    /// Seconds that the run took.
    pub elapsed_s: f64,
    /// Bytes that it wrote.
    pub bytes_written: u64,
    /// The verdict's headline as it was shown.
    pub headline: String,
    /// The figures that a list shows.
    pub figures: KeyFigures,
    /// How many doubts the run has, those of its jobs included.
    pub doubts: u32,
    /// What its owner calls it.
    #[serde(default)]
    pub label: Option<String>,
}

/// The figures by which runs are told apart at a glance; absent where the run has no such job
/// or it was inconclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeyFigures {
    /// Reads in order, at the depth that the suite uses.
    pub sequential_read_bytes_per_second: Option<f64>,
    /// Writes in order, at the depth that the suite uses.
    pub sequential_write_bytes_per_second: Option<f64>,
    /// Random 4 KiB reads per second at queue depth 1.
    pub random_read_iops: Option<f64>,
    /// Random 4 KiB writes per second at queue depth 1.
    pub random_write_iops: Option<f64>,
    /// Small writes per second of which each is on stable storage before the next one begins.
    pub commits_per_second: Option<f64>,
}

impl KeyFigures {
    /// The key figures of a run.
    pub fn of(run: &Run) -> Self {
        Self::those(run, |outcome| outcome != Outcome::Inconclusive)
    }

    /// The ones that it lacks since they did not settle, as they were when the measurement ended.
    pub fn unsettled(run: &Run) -> Self {
        Self::those(run, |outcome| outcome == Outcome::Inconclusive)
    }

    fn those(run: &Run, is_meant: impl Fn(Outcome) -> bool) -> Self {
        let [read, write, random_read, random_write, commit] =
            key_results(run).map(|result| result.filter(|result| is_meant(result.outcome)));
        let rate = |result: &JobResult| result.bytes_per_second.value;
        let iops = |result: &JobResult| result.iops.value;
        KeyFigures {
            sequential_read_bytes_per_second: read.map(rate),
            sequential_write_bytes_per_second: write.map(rate),
            random_read_iops: random_read.map(iops),
            random_write_iops: random_write.map(iops),
            commits_per_second: commit.map(iops),
        }
    }
}

/// The results behind the key figures, in their order: of the jobs of the suite `quick` by their names, of other suites
/// the first job that does the same.
pub fn key_results(run: &Run) -> [Option<&JobResult>; 5] {
    use Direction::{Read, Write};
    use Pattern::{Random, Sequential};
    let find = |name: &str, like: &dyn Fn(&JobResult) -> bool| {
        let plain = |r: &&JobResult| {
            r.operation.is_block() && r.queue_depth == 1 && !is_bystander(r) && like(r)
        };
        run.job(name).or_else(|| run.results.iter().find(plain))
    };
    let in_order = |name: &str, direction: Direction| {
        find(name, &|r| {
            r.direction == direction
                && r.pattern == Sequential
                && r.block_bytes >= LARGE
                && !r.commit
        })
    };
    let small = |name: &str, direction: Direction| {
        find(name, &|r| {
            r.direction == direction && r.pattern == Random && r.block_bytes == 4096 && !r.commit
        })
    };
    [
        in_order(job_names::SEQUENTIAL_READ, Read),
        in_order(job_names::SEQUENTIAL_WRITE, Write),
        small(job_names::RANDOM_READ, Read),
        small(job_names::RANDOM_WRITE, Write),
        find(job_names::COMMIT, &|r| r.commit && r.block_bytes == 4096 && r.job != COMMIT_LOGGER),
    ]
}

/// From this block size on a sequential job counts as one in large blocks.
const LARGE: u32 = 512 << 10;

fn is_bystander(result: &JobResult) -> bool {
    [job_names::BYSTANDER_READ, job_names::BYSTANDER_WRITE].contains(&result.job.as_str())
}

/// How many doubts a run has, those of its jobs included.
pub fn doubt_count(run: &Run) -> u32 {
    let of_jobs: usize = run.results.iter().map(|result| result.doubts.len()).sum();
    (run.doubts.len() + of_jobs) as u32
}

impl RunSummary {
    /// The line of a run that was given the number `id`.
    pub fn of(id: RunId, run: &Run, headline: &str) -> Self {
        let device = run.target.device.as_deref();
        let disk = device.and_then(|name| run.machine.measured_device(name));
        RunSummary {
            id,
            started: run.started.clone(),
            rubus_version: run.rubus_version.clone(),
            suite: run.suite.clone(),
            target: run.place(),
            device: device.map(str::to_string),
            device_model: disk.and_then(|disk| disk.model.text()).map(str::to_string),
            board: run.machine.board.model.text().map(str::to_string),
            elapsed_s: run.elapsed_s,
            bytes_written: run.bytes_written,
            headline: headline.to_string(),
            figures: KeyFigures::of(run),
            doubts: doubt_count(run),
            label: None,
        }
    }
}

/// What all records of one measurement have in common, wherever they were kept and whichever version wrote them, and no two
/// measurements: the same moment, seed, program and numbers. One of the records may be [for others](crate::share), without its
/// target's name.
pub fn measurement_key(run: &Run) -> String {
    let figure = |r: &JobResult| (r.job.clone(), r.operations, r.iops.value.to_bits());
    let figures: Vec<(String, u64, u64)> = run.results.iter().map(figure).collect();
    let Run { started, rubus_version, suite, seed, elapsed_s, bytes_written, .. } = run;
    let model = &run.machine.board.model;
    let own = (started, rubus_version, suite, seed, elapsed_s.to_bits(), bytes_written, model);
    format!("{own:?} {figures:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;

    #[test]
    fn the_summary_has_the_figures_of_the_quick_suite_at_depth_1() {
        let run = fixture::slow_sd_card_run();
        let line = RunSummary::of(RunId(3), &run, "slow");
        let figures = line.figures;
        assert_eq!(figures.sequential_read_bytes_per_second, Some(22.6e6));
        assert_eq!(figures.sequential_write_bytes_per_second, Some(11.4e6));
        assert_eq!(figures.random_read_iops, Some(6.59e6 / 4096.0));
        assert_eq!(figures.random_write_iops, Some(341e3 / 4096.0));
        assert_eq!(figures.commits_per_second, Some(94.2e3 / 4096.0));
        assert_eq!(line.device_model.as_deref(), Some("SC64G"));
    }

    #[test]
    fn other_suites_have_figures_too_but_a_logger_is_no_commit_rate() {
        let mut run = fixture::slow_sd_card_run();
        for result in &mut run.results {
            result.job = format!("{}-of-another-suite", result.job);
        }
        run.results.retain(|result| !result.job.starts_with("bystander"));
        let figures = KeyFigures::of(&run);
        assert_eq!(figures.sequential_read_bytes_per_second, Some(22.6e6));
        assert_eq!(figures.random_read_iops, Some(6.59e6 / 4096.0));
        assert_eq!(figures.commits_per_second, Some(94.2e3 / 4096.0));
        run.results.retain(|result| result.commit);
        run.results[0].job = rubus_vocabulary::suite_jobs::COMMIT_LOGGER.into();
        assert_eq!(KeyFigures::of(&run).commits_per_second, None);
    }

    #[test]
    fn a_record_is_known_again_by_its_numbers() {
        let run = fixture::slow_sd_card_run();
        let text = serde_json::to_string(&run).unwrap();
        assert_eq!(measurement_key(&run), measurement_key(&serde_json::from_str(&text).unwrap()));
        let mut other = run.clone();
        other.results[2].operations += 1;
        assert_ne!(measurement_key(&run), measurement_key(&other));
    }

    #[test]
    fn a_run_without_results_has_no_figures() {
        let line = RunSummary::of(RunId(1), &fixture::failed_run(), "failed");
        assert_eq!(line.figures, KeyFigures::default());
        assert_eq!(line.doubts, 1);
        assert_eq!(line.board, None);
    }
}
