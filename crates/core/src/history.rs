//! What the history tells about a run without opening it: the words that the store and the tables
//! share. The database itself is the store's.

use serde::{Deserialize, Serialize};

use crate::result::{Outcome, Run};
use crate::verdict::job;

/// Number of a run in the history, from 1 upwards; a number is never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunId(pub i64);

impl std::fmt::Display for RunId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// One line of the history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
}

/// The figures by which runs are told apart at a glance; absent where the run has no such job
/// or it was inconclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeyFigures {
    /// Sequential read, bytes per second.
    pub sequential_read_bytes_per_second: Option<f64>,
    /// Sequential write, bytes per second.
    pub sequential_write_bytes_per_second: Option<f64>,
    /// Random 4 KiB reads per second at queue depth 1.
    pub random_read_iops: Option<f64>,
    /// Random 4 KiB writes per second at queue depth 1.
    pub random_write_iops: Option<f64>,
    /// Commits per second.
    pub commits_per_second: Option<f64>,
}

impl KeyFigures {
    /// The key figures of a run of the suite `quick`, found by the names of its jobs.
    pub fn of(run: &Run) -> Self {
        let settled = |name| run.job(name).filter(|r| r.outcome != Outcome::Inconclusive);
        let rate = |name| settled(name).map(|r| r.bytes_per_second.value);
        let operations = |name| settled(name).map(|r| r.iops.value);
        KeyFigures {
            sequential_read_bytes_per_second: rate(job::SEQUENTIAL_READ),
            sequential_write_bytes_per_second: rate(job::SEQUENTIAL_WRITE),
            random_read_iops: operations(job::RANDOM_READ),
            random_write_iops: operations(job::RANDOM_WRITE),
            commits_per_second: operations(job::COMMIT),
        }
    }
}

impl RunSummary {
    /// The line of a run that was given the number `id`.
    pub fn of(id: RunId, run: &Run, headline: &str) -> Self {
        let device = run.target.device.as_deref();
        let disk = device.and_then(|name| run.machine.disks_below(name).first().copied());
        RunSummary {
            id,
            started: run.started.clone(),
            rubus_version: run.rubus_version.clone(),
            suite: run.suite.clone(),
            target: run.target.path.clone(),
            device: device.map(str::to_string),
            device_model: disk.and_then(|disk| disk.model.text()).map(str::to_string),
            board: run.machine.board.model.text().map(str::to_string),
            elapsed_s: run.elapsed_s,
            bytes_written: run.bytes_written,
            headline: headline.to_string(),
            figures: KeyFigures::of(run),
            doubts: (run.doubts.len() + run.results.iter().map(|r| r.doubts.len()).sum::<usize>())
                as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

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
    fn a_run_without_results_has_no_figures() {
        let line = RunSummary::of(RunId(1), &fixture::failed_run(), "failed");
        assert_eq!(line.figures, KeyFigures::default());
        assert_eq!(line.doubts, 1);
        assert_eq!(line.board, None);
    }
}
