//! What a running cluster gave, beside what is expected of its design and what one board alone gave.

use rubus_stats::estimate::Estimate;
use rubus_vocabulary::job_names;
use rubus_vocabulary::result::{JobResult, Outcome, Run, TargetKind};
use rubus_vocabulary::spec::{Direction, Pattern};
use serde::Serialize;

use crate::ceilings::{Ceiling, Work};
use crate::measured::{LARGE, Measured, source};
use crate::rados::OBJECT_BYTES;

/// What was measured of a cluster, held against its design.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Beside {
    /// Which run: "12, measured 2026-11-20 on rbd:rbd/disk".
    pub source: String,
    /// OSDs of the cluster that was measured.
    pub osds: u32,
    /// How its pool keeps the data: "3 copies".
    pub layout: String,
    /// Its jobs that the design says something of.
    pub jobs: Vec<Job>,
    /// Changes of the cluster during the run, such as an OSD that went down: then it was not the cluster of the design.
    pub changes: usize,
}

/// A job of the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Job {
    /// Its name in the suite.
    pub job: String,
    /// What of the design it is held against.
    pub work: Work,
    /// Bytes of an operation.
    pub block_bytes: u32,
    /// Operations in flight.
    pub in_flight: u32,
    /// Bytes of users per second that are expected at this number of operations in flight.
    pub expected_bytes_per_second: Estimate,
    /// Bytes per second that it gave.
    pub measured_bytes_per_second: Estimate,
    /// False where the measurement did not settle.
    pub is_settled: bool,
    /// What a disk in one board gives of such work, bytes per second; absent where it was not measured (`--node-from`).
    pub one_board_bytes_per_second: Option<Estimate>,
}

impl Job {
    /// Whether the intervals of both have nothing in common.
    pub fn is_apart(&self) -> bool {
        let (expected, measured) =
            (&self.expected_bytes_per_second, &self.measured_bytes_per_second);
        expected.high < measured.low || measured.high < expected.low
    }
}

/// Holds a run of a cluster against the ceilings of its design, and against what was measured of one board.
///
/// # Errors
/// When the run is not one of a cluster, or has no job that the design says something of.
pub fn beside(
    ceilings: &[Ceiling],
    alone: Option<&Measured>,
    run: &Run,
    name: &str,
) -> Result<Beside, String> {
    let Some(cluster) = &run.target.cluster else {
        return Err(format!(
            "{name} was measured on {}, which is no cluster\nMeasure one: rubus bench rbd:POOL/IMAGE, or rubus bench rados:POOL",
            run.target.named
        ));
    };
    let job = |result: &JobResult| {
        let work = work(result)?;
        let ceiling = ceilings.iter().find(|ceiling| ceiling.work == work)?;
        let in_flight = result.queue_depth.max(1) * result.copies.unwrap_or(1).max(1);
        Some(Job {
            job: result.job.clone(),
            work,
            block_bytes: result.block_bytes,
            in_flight,
            expected_bytes_per_second: expected(ceiling, run.target.kind, result, in_flight),
            measured_bytes_per_second: result.bytes_per_second,
            is_settled: result.outcome == Outcome::Converged,
            one_board_bytes_per_second: alone.and_then(|alone| one_board(alone, work)),
        })
    };
    let jobs: Vec<Job> = run.results.iter().filter_map(job).collect();
    if jobs.is_empty() {
        return Err(format!(
            "{name} has no job with blocks of 4 KiB at random or of 512 KiB and more\nUse the suite that rubus bench has for the cluster"
        ));
    }
    Ok(Beside {
        source: source(run, name),
        osds: cluster.osds,
        layout: cluster.layout.clone(),
        jobs,
        changes: cluster.changes.len(),
    })
}

/// What of the design a job is held against.
fn work(result: &JobResult) -> Option<Work> {
    // What ran beside another job had a part of the cluster.
    let is_beside = [job_names::BYSTANDER_READ, job_names::BYSTANDER_WRITE].contains(&&*result.job);
    let moves = result.operation.is_block() && !result.commit && !is_beside;
    if !moves || result.outcome == Outcome::Inconclusive {
        return None;
    }
    let is_large = result.block_bytes >= LARGE;
    let is_small = result.block_bytes == 4096 && result.pattern == Pattern::Random;
    match (result.direction, is_large, is_small) {
        (Direction::Write, true, _) => Some(Work::LargeWrite),
        (Direction::Read, true, _) => Some(Work::LargeRead),
        (Direction::Write, _, true) => Some(Work::SmallWrite),
        (Direction::Read, _, true) => Some(Work::SmallRead),
        _ => None,
    }
}

/// Bytes per second of a job. Of an image, blocks in order lie in one object after the other, so that only few boards work at a time; how
/// much the blocks in one object overlap is not known, so the upper end is what they would give in different ones.
fn expected(ceiling: &Ceiling, kind: TargetKind, result: &JobResult, in_flight: u32) -> Estimate {
    let apart = ceiling.expected(in_flight).scaled(ceiling.work.bytes());
    if kind == TargetKind::Pool || result.pattern == Pattern::Random {
        return apart;
    }
    let bytes = u64::from(in_flight) * u64::from(result.block_bytes);
    let objects = (bytes / u64::from(OBJECT_BYTES)).clamp(1, u64::from(in_flight)) as u32;
    let in_order = ceiling.expected(objects).scaled(ceiling.work.bytes());
    Estimate::new(in_order.value, in_order.low, apart.high.max(in_order.high))
}

/// What was measured of a board's disk.
fn one_board(alone: &Measured, work: Work) -> Option<Estimate> {
    let small = |iops: Option<Estimate>| iops.map(|iops| iops.scaled(work.bytes()));
    match work {
        Work::LargeWrite => alone.write_bytes_per_second,
        Work::LargeRead => alone.read_bytes_per_second,
        Work::SmallWrite => small(alone.write_iops),
        Work::SmallRead => small(alone.read_iops),
        Work::LargeMixed | Work::SmallMixed => None,
    }
}

#[cfg(test)]
mod tests {
    use rubus_fixtures as fixture;

    use super::*;
    use crate::ceilings::ceilings;
    use crate::wishes::Wishes;

    fn of_three() -> Vec<Ceiling> {
        let wishes = Wishes {
            nodes: Some(3),
            disk: Some("1TB".into()),
            link: Some("100Mbit".into()),
            ..Wishes::default()
        };
        ceilings(&wishes.design(None).unwrap())
    }

    fn run() -> Run {
        let mut run = fixture::slow_sd_card_run();
        run.target.cluster = Some(fixture::troubled_cluster());
        run.target.named = "rbd:rbd/disk".into();
        run
    }

    #[test]
    fn jobs_are_held_against_the_work_that_they_do() {
        let alone = Measured::of(&fixture::slow_sd_card_run(), "1").unwrap();
        let found = beside(&of_three(), Some(&alone), &run(), "2").unwrap();
        let works: Vec<Work> = found.jobs.iter().map(|job| job.work).collect();
        for work in [Work::LargeRead, Work::LargeWrite, Work::SmallRead, Work::SmallWrite] {
            assert!(works.contains(&work), "{works:?}");
        }
        let large = |job: &&Job| job.work == Work::LargeRead;
        let read = found.jobs.iter().find(large).unwrap();
        assert_eq!(read.one_board_bytes_per_second, alone.read_bytes_per_second);
        // A card of 22 MB/s is no cluster at 100 Mbit/s, of which one object's board gives at most 12.
        assert!(read.is_apart(), "{read:?}");
        let commits = |job: &Job| job.job.contains("commit");
        assert!(!found.jobs.iter().any(commits));
    }

    #[test]
    fn blocks_in_order_keep_few_boards_busy() {
        let ceilings = of_three();
        let read = |c: &&Ceiling| c.work == Work::LargeRead;
        let ceiling = ceilings.iter().find(read).unwrap();
        let run = run();
        let in_order = |r: &&JobResult| r.pattern == Pattern::Sequential;
        let mut job = run.results.iter().find(in_order).unwrap().clone();
        job.block_bytes = 1 << 20;
        let of = |kind, in_flight| expected(ceiling, kind, &job, in_flight);
        let [few, many] = [TargetKind::Network, TargetKind::Pool].map(|kind| of(kind, 8));
        assert_eq!(few.value, ceiling.expected(2).value * ceiling.work.bytes());
        assert_eq!(few.high, many.high);
        assert_eq!(of(TargetKind::Network, 1), of(TargetKind::Pool, 1));
    }

    #[test]
    fn a_run_of_something_else_is_refused() {
        let run = fixture::slow_sd_card_run();
        let error = beside(&of_three(), None, &run, "1").unwrap_err();
        assert!(error.contains("which is no cluster"), "{error}");
    }
}
