//! Several targets alone and all together: which jobs that takes, and what comes out of it.
//!
//! A target may slow down with time as well as through its neighbours, so alone and together alternate in
//! rounds. Every round gives one observation of the share: what all give together over what they give
//! alone.

#![deny(clippy::disallowed_methods)]

use rubus_stats::estimate::Estimate;
use rubus_vocabulary::finding::SharedPipe;
use rubus_vocabulary::merge::merge;
use rubus_vocabulary::paired::{PairedJob, Round};
use rubus_vocabulary::result::JobResult;
use rubus_vocabulary::spec::{Direction, Ends, Job, Pattern, Shape, StopSpec};

/// Rounds of each kind of job.
pub const ROUNDS: u32 = 4;
/// How long each turn is measured, in seconds.
const TURN_S: f64 = 2.0;
/// Large enough for a disk's full speed, and so small that on a slow disk, too, many come to their end in a turn: what is
/// under way at its end is not counted.
const SEQUENTIAL_BYTES: u32 = 256 << 10;
/// What a turn takes besides, in seconds: warm-up, set-up and flush.
const AROUND_TURN_S: f64 = 0.9;
/// Targets that give less than this share of what they give alone share a pipe: what a processor or a
/// driver costs for several at once stays above it.
const INDEPENDENT: f64 = 0.95;

const ALONE: &str = "alone";
/// The suite's name in results.
pub const SUITE: &str = "together";
const TOGETHER: &str = SUITE;

/// The kinds of jobs that are run: reads, and writes where all targets may be written to. `written_bytes` is
/// what all turns together may write to each target.
pub fn kinds(may_write: bool, written_bytes: u64) -> Vec<Job> {
    let mut kinds = vec![
        Job::new("sequential-read", Direction::Read, Pattern::Sequential, SEQUENTIAL_BYTES, 4),
        Job::new("random-read-deep", Direction::Read, Pattern::Random, 4 << 10, 32),
    ];
    if may_write {
        let mut write = Job::new(
            "sequential-write",
            Direction::Write,
            Pattern::Sequential,
            SEQUENTIAL_BYTES,
            4,
        );
        let turns = u64::from(ROUNDS) * 2;
        write.stop.max_bytes = (written_bytes / turns).max(u64::from(write.block_bytes));
        kinds.push(write);
    }
    kinds
}

/// All turns, in the order in which they are run: each kind on each of `targets` targets (at least two) alone and
/// on all of them together, in rounds. Every second round goes the other way round.
pub fn jobs(kinds: &[Job], targets: u32) -> Vec<Job> {
    let mut jobs = Vec::new();
    for kind in kinds {
        for round in 0..ROUNDS {
            let alone = (0..targets).map(|target| turn(kind, ALONE, round, target));
            let mut turns: Vec<Job> = alone.collect();
            let mut all = turn(kind, TOGETHER, round, 0);
            all.beside = (1..targets).map(|target| turn(kind, TOGETHER, round, target)).collect();
            all.ends = Ends::WithTheFirst;
            turns.push(all);
            if round % 2 == 1 {
                turns.reverse();
            }
            jobs.extend(turns);
        }
    }
    jobs
}

/// How long all turns take, in seconds.
pub fn seconds(jobs: &[Job]) -> f64 {
    jobs.len() as f64 * (TURN_S + AROUND_TURN_S)
}

fn turn(kind: &Job, way: &str, round: u32, target: u32) -> Job {
    Job {
        name: format!("{}/{way}/{round}/{target}", kind.name),
        stop: StopSpec {
            // All turns are equally long, so that they can be compared.
            relative_half_width: 0.001,
            min_seconds: TURN_S,
            max_seconds: TURN_S,
            min_bytes: 0,
            max_bytes: kind.stop.max_bytes,
        },
        shape: Some(Box::new(Shape { file: Some(target), time_based: true, ..Shape::default() })),
        ..kind.clone()
    }
}

/// The turns as one result for each kind, target and way, and what they say of each kind. What is left of an
/// interrupted run is used as far as it goes; a kind without two whole rounds says nothing.
pub fn fold(kinds: &[Job], targets: &[String], results: &[JobResult]) -> Folded {
    let mut folded = Folded::default();
    for kind in kinds {
        let of = |way: &str, target: usize| -> Vec<JobResult> {
            let turns = (0..ROUNDS).map_while(|round| {
                let name = format!("{}/{way}/{round}/{target}", kind.name);
                results.iter().find(|result| result.job == name)
            });
            turns.cloned().collect()
        };
        let alone: Vec<Vec<JobResult>> = (0..targets.len()).map(|i| of(ALONE, i)).collect();
        let together: Vec<Vec<JobResult>> = (0..targets.len()).map(|i| of(TOGETHER, i)).collect();
        for (way, turns) in [(ALONE, &alone), (TOGETHER, &together)] {
            for (target, turns) in targets.iter().zip(turns) {
                if let Some(mut merged) = merge(turns, kind.stop.relative_half_width) {
                    merged.job = format!("{}-{way}", kind.name);
                    merged.on = Some(target.clone());
                    folded.results.push(merged);
                }
            }
        }
        folded.findings.extend(shared_pipe(kind, targets, &alone, &together));
    }
    folded
}

/// What all turns together gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Folded {
    /// One for each kind, target and way.
    pub results: Vec<JobResult>,
    /// One for each kind.
    pub findings: Vec<SharedPipe>,
}

fn shared_pipe(
    kind: &Job,
    targets: &[String],
    alone: &[Vec<JobResult>],
    together: &[Vec<JobResult>],
) -> Option<SharedPipe> {
    let whole = alone.iter().chain(together).map(Vec::len).min()?;
    let sum = |turns: &[Vec<JobResult>], round: usize| {
        let results = turns.iter().map(|of_target| &of_target[round]);
        results.fold((0.0, 0), |(rate, operations), result| {
            (rate + result.bytes_per_second.value, operations + result.operations)
        })
    };
    let rounds = (0..whole).map(|round| {
        let both = [sum(alone, round), sum(together, round)];
        Round {
            throughput: both.map(|(rate, _)| rate),
            operations: both.map(|(_, operations)| operations),
            p50_ns: [None; 2],
            p99_ns: [None; 2],
        }
    });
    let paired = PairedJob { job: kind.name.clone(), rounds: rounds.collect() };
    let share = paired.throughput()?.ratio;
    let rates = |turns: &[Vec<JobResult>]| -> Option<Vec<Estimate>> {
        let merged = turns.iter().map(|turns| merge(turns, kind.stop.relative_half_width));
        merged.map(|result| Some(result?.bytes_per_second)).collect()
    };
    Some(SharedPipe {
        targets: targets.to_vec(),
        job: kind.name.clone(),
        alone: rates(alone)?,
        together: rates(together)?,
        share,
        is_shared: match share {
            share if share.high < INDEPENDENT => Some(true),
            share if share.low >= INDEPENDENT => Some(false),
            _ => None,
        },
        suspect: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;

    fn targets() -> Vec<String> {
        vec!["/a".into(), "/b".into()]
    }

    /// Results of all turns, at these rates: alone, and each when both run.
    fn results(kinds: &[Job], rates: [f64; 2], together: [f64; 2]) -> Vec<JobResult> {
        let example = fixture::slow_sd_card_run().results[0].clone();
        let mut results = Vec::new();
        let jobs = jobs(kinds, 2);
        for (i, job) in
            jobs.iter().flat_map(|job| std::iter::once(job).chain(&job.beside)).enumerate()
        {
            let target = usize::from(job.name.ends_with("/1"));
            let rate = if job.name.contains("/alone/") { rates[target] } else { together[target] };
            // A little apart from one another, as measurements are.
            let rate = rate * (1.0 + 0.002 * (i % 3) as f64);
            let mut result = example.clone();
            result.job.clone_from(&job.name);
            result.bytes_per_second = Estimate::new(rate, rate * 0.9, rate * 1.1);
            result.iops = result.bytes_per_second.scaled(1.0 / f64::from(job.block_bytes));
            result.operations = 500;
            results.push(result);
        }
        results
    }

    #[test]
    fn every_turn_is_there_once_and_every_second_round_goes_back() {
        let kinds = kinds(true, 1 << 30);
        let jobs = jobs(&kinds, 3);
        assert_eq!(jobs.len(), 3 * ROUNDS as usize * 4);
        let mut names: Vec<&str> = Vec::new();
        for job in &jobs {
            names.push(&job.name);
            names.extend(job.beside.iter().map(|job| job.name.as_str()));
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert_eq!(jobs[0].name, "sequential-read/alone/0/0");
        assert_eq!(jobs[3].name, "sequential-read/together/0/0");
        assert_eq!(jobs[4].name, "sequential-read/together/1/0");
    }

    #[test]
    fn no_more_is_written_than_allowed() {
        let allowed = 1 << 30;
        let jobs = jobs(&kinds(true, allowed), 2);
        let written_to = |target: &str| -> u64 {
            let all = jobs.iter().flat_map(|job| std::iter::once(job).chain(&job.beside));
            all.filter(|job| job.direction == Direction::Write && job.name.ends_with(target))
                .map(|job| job.stop.max_bytes)
                .sum()
        };
        assert!(written_to("/0") <= allowed && written_to("/1") <= allowed);
        assert!(kinds(false, allowed).iter().all(|job| job.direction == Direction::Read));
    }

    #[test]
    fn half_of_it_together_is_a_shared_pipe() {
        let kinds = kinds(false, 0);
        let folded = fold(&kinds, &targets(), &results(&kinds, [30e6, 30e6], [17e6, 15e6]));
        assert_eq!(folded.results.len(), 2 * 4);
        let found = &folded.findings[0];
        assert_eq!(found.is_shared, Some(true), "{found:?}");
        assert!((found.share.value - 32.0 / 60.0).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn all_of_it_together_is_none_and_little_less_is_open_or_none() {
        let kinds = kinds(false, 0);
        let folded = fold(&kinds, &targets(), &results(&kinds, [30e6, 20e6], [30e6, 20e6]));
        assert_eq!(folded.findings[0].is_shared, Some(false));
        let folded = fold(&kinds, &targets(), &results(&kinds, [30e6, 20e6], [28.5e6, 19e6]));
        assert_ne!(folded.findings[0].is_shared, Some(true));
    }

    #[test]
    fn one_round_says_nothing() {
        let kinds = kinds(false, 0);
        let mut results = results(&kinds, [30e6, 30e6], [15e6, 15e6]);
        results.retain(|result| result.job.contains("/0/"));
        let folded = fold(&kinds, &targets(), &results);
        assert_eq!(folded.findings, []);
        assert_eq!(folded.results.len(), 2 * 4);
        assert_eq!(fold(&kinds, &targets(), &[]), Folded::default());
    }
}
