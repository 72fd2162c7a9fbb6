//! Two targets measured in turns, so that whatever drifts on the machine hits both alike.
//!
//! Both stay open. Each job is run in rounds of one short turn on each; the order alternates (first,
//! second, second, first), so that a steady drift cancels over two rounds. What the rounds say together
//! is decided in `rubus_runs::compare`.

use rubus_vocabulary::merge::merge;
use rubus_vocabulary::paired::{PairedJob, Round};
use rubus_vocabulary::result::JobResult;
use rubus_vocabulary::spec::{Direction, Job, StopSpec, Suite};

use crate::error::BenchError;
use crate::event::{Event, Observer};
use crate::frame::{
    Done, Frame, Session, SessionOutcome, calibration, check_room, measured_target, rig_for,
    watch_of,
};
use crate::polling;
use crate::region::Region;
use crate::rig::Rig;
use crate::scheduler::Scheduler;
use crate::suites::{fills, only_reads};
use crate::target::Opened;
use crate::watch::Watcher;
use rubus_host::ticks::now_ns;

/// Length of the measurement in one turn, in seconds, after its warm-up; longer where that gives
/// few operations.
const TURN_S: f64 = 2.0;
const LONGEST_TURN_S: f64 = 6.0;
/// Where a turn has fewer operations, one more or less matters.
const ENOUGH_OPERATIONS: f64 = 100.0;
/// What a turn takes besides, in seconds: warm-up, set-up and flush.
const AROUND_TURN_S: f64 = 0.9;
/// Minimum and maximum number of rounds per job; both even, so that drifts cancel.
const MIN_ROUNDS: usize = 4;
const MAX_ROUNDS: usize = 8;
/// A ratio that is known within this share either way is known well enough.
const ENOUGH: f64 = 0.015;

/// What two sessions in turns gave.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnsOutcome {
    /// Of the baseline, and of the other.
    pub outcomes: [SessionOutcome; 2],
    /// The rounds of each job that ran on both; index 0 of a round is the baseline.
    pub jobs: Vec<PairedJob>,
}

/// About how long a suite takes in turns at least and at most, in seconds.
pub fn turn_seconds(suite: &Suite) -> (f64, f64) {
    let turns = |rounds: usize, turn_s: f64| {
        (suite.jobs.len() * rounds * 2) as f64 * (turn_s + AROUND_TURN_S)
    };
    (turns(MIN_ROUNDS, TURN_S), turns(MAX_ROUNDS, LONGEST_TURN_S))
}

/// The suite for turns. A file of our own is filled before the first turn, so a job that would fill it
/// pays for that out of its budget, and no more is written than was announced.
pub fn for_turns(suite: &Suite) -> Suite {
    let mut suite = suite.clone();
    let Some(job) = suite.jobs.first().filter(|job| fills(&suite, job)) else {
        return suite;
    };
    let least = MAX_ROUNDS as u64 * u64::from(job.block_bytes);
    let left = job.stop.max_bytes.saturating_sub(suite.region_bytes);
    // The list is not empty: its first job was just looked at.
    suite.jobs[0].stop.max_bytes = left.max(least).min(suite.region_bytes - 1);
    suite.jobs[0].stop.min_bytes = 0;
    suite
}

/// Runs two sessions with the same suite in turns, the baseline first. The write budget of each job is
/// divided over its rounds, so that no more is written than the suite allows for one session.
///
/// # Errors
/// [`BenchError`] when nothing could be measured at all. What goes wrong later is in the outcomes.
pub fn run_in_turns(
    sessions: [Session<'_>; 2],
    observer: &mut dyn Observer,
) -> Result<TurnsOutcome, BenchError> {
    let start_ns = now_ns();
    let cancel = sessions[0].cancel;
    let reads_only = sessions.iter().any(|session| !session.target.may_write());
    let suite = if reads_only { only_reads(sessions[0].suite) } else { sessions[0].suite.clone() };
    let calibration = calibration(observer);
    let mut frames = Vec::new();
    let mut rigs: Vec<Box<dyn Rig>> = Vec::new();
    let mut regions: Vec<Region> = Vec::new();
    for session in sessions {
        let opened = Opened::new(session.target)?;
        check_room(&opened, &suite, None)?;
        let watch = watch_of(session.watch, &opened);
        polling::check(&opened, session.queueing, watch.device.as_deref())?;
        let target = measured_target(&opened, &suite);
        let watcher = Watcher::start(watch);
        frames.push(Frame::watched(start_ns, target, &watcher, calibration));
        rigs.push(rig_for(&opened, watcher, session.queueing));
        regions.push(Region::single(opened, suite.region_bytes));
    }
    let mut schedulers: Vec<Scheduler<'_>> = rigs
        .iter_mut()
        .zip(regions)
        .map(|(rig, region)| Scheduler::new(&mut **rig, &suite, vec![region], cancel, start_ns))
        .collect();
    let turned = take_turns(&suite, &mut schedulers, observer);
    let regions: Vec<u64> = schedulers.iter().map(Scheduler::region_bytes).collect();
    let written: Vec<u64> =
        schedulers.into_iter().map(|scheduler| scheduler.into_results().1).collect();
    let sides = frames.into_iter().zip(turned.results);
    let mut outcomes = sides.zip(regions.into_iter().zip(written)).map(
        |((frame, results), (region_bytes, bytes_written))| {
            let done = Done {
                results,
                findings: Vec::new(),
                bytes_written,
                region_bytes,
                ended_by: turned.ended_by.clone(),
            };
            frame.end(done, None)
        },
    );
    let both = [outcomes.next(), outcomes.next()];
    let [Some(baseline), Some(other)] = both else {
        unreachable!("there are two sessions, each with its frame");
    };
    Ok(TurnsOutcome { outcomes: [baseline, other], jobs: turned.jobs })
}

/// What the turns of all jobs gave.
pub(crate) struct Turned {
    /// The merged results of the baseline and of the other.
    pub(crate) results: [Vec<JobResult>; 2],
    /// The jobs with their rounds.
    pub(crate) jobs: Vec<PairedJob>,
    /// What ended the session early.
    pub(crate) ended_by: Option<BenchError>,
}

/// Runs all jobs in turns on two open targets.
pub(crate) fn take_turns(
    suite: &Suite,
    schedulers: &mut [Scheduler<'_>],
    observer: &mut dyn Observer,
) -> Turned {
    let mut turned = Turned { results: [Vec::new(), Vec::new()], jobs: Vec::new(), ended_by: None };
    for scheduler in schedulers.iter_mut() {
        if let Err(error) = scheduler.prepare(observer) {
            turned.ended_by = Some(error);
            return turned;
        }
    }
    // A slow target may have been filled in part: the same part is then used of both.
    let regions = schedulers.iter().map(Scheduler::region_bytes);
    let region_bytes = regions.min().unwrap_or(0);
    for scheduler in schedulers.iter_mut() {
        scheduler.limit_region(region_bytes);
    }
    for (index, job) in suite.jobs.iter().enumerate() {
        let mut turns: Turns = [Vec::new(), Vec::new()];
        let end = match why_no_turns(job) {
            Some(reason) => End::Unable(reason),
            None => rounds(index, job, suite, schedulers, &mut turns, observer),
        };
        if let End::Unable(reason) = end {
            observer.event(&Event::JobSkipped { index, of: suite.jobs.len(), job, reason });
            continue;
        }
        take(&mut turned, job, index, suite, turns, observer);
        if let End::Early(error) = end {
            turned.ended_by = Some(error);
            break;
        }
    }
    turned
}

/// Why a job makes no sense in short turns, if it makes none.
fn why_no_turns(job: &Job) -> Option<String> {
    if !job.operation.is_block() {
        return Some("only reading and writing blocks is measured in turns".into());
    }
    if job.fresh || job.rest_before_s > 0.0 {
        return Some("a job that needs an empty file or a rest is not measured in turns".into());
    }
    None
}

/// The turns of one job: for each target, for each round, the results of the job and of those
/// beside it.
type Turns = [Vec<Vec<JobResult>>; 2];

/// How the rounds of a job ended.
enum End {
    /// As they should.
    Done,
    /// One of the targets cannot do it, for this reason.
    Unable(String),
    /// With the whole session.
    Early(BenchError),
}

/// Runs one job in rounds until the ratio is known well enough, or the rounds are used up.
fn rounds(
    index: usize,
    job: &Job,
    suite: &Suite,
    schedulers: &mut [Scheduler<'_>],
    turns: &mut Turns,
    observer: &mut dyn Observer,
) -> End {
    let mut turn_s = TURN_S;
    for round in 0..MAX_ROUNDS {
        let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
        for side in order {
            let left = suite.jobs.len() - index - 1;
            let turns_left = left * (MIN_ROUNDS + MAX_ROUNDS) + 2 * (MAX_ROUNDS - round);
            let mut quiet = Quiet {
                observer: &mut *observer,
                left_s: turns_left as f64 * (turn_s + AROUND_TURN_S),
            };
            match schedulers[side].turn(index, &short(job, turn_s), &mut quiet) {
                Ok(Ok(results)) => turns[side].push(results),
                Ok(Err(reason)) => return End::Unable(reason),
                Err(error) => return End::Early(error),
            }
        }
        if round == 0 {
            turn_s = long_enough_s(turns);
        }
        let is_even = round % 2 == 1;
        if is_even && round + 1 >= MIN_ROUNDS && is_known(turns) {
            break;
        }
    }
    End::Done
}

/// How long the turns have to be after the first ones, in seconds.
fn long_enough_s(turns: &Turns) -> f64 {
    let own = turns.iter().filter_map(|side| side.first()?.first());
    let fewest = own.map(|result| result.operations).min().unwrap_or(0);
    (TURN_S * ENOUGH_OPERATIONS / fewest.max(1) as f64).clamp(TURN_S, LONGEST_TURN_S)
}

/// Whether the ratios of the job and of those beside it are known well enough.
fn is_known(turns: &Turns) -> bool {
    let count = turns[0].first().map_or(0, Vec::len);
    (0..count).all(|which| {
        let ratio = paired(turns, which).throughput().map(|paired| paired.ratio);
        ratio.is_some_and(|ratio| ratio.largest_deviation() <= ENOUGH)
    })
}

/// The job as it is in one turn: short, with its share of the budget.
fn short(job: &Job, turn_s: f64) -> Job {
    let mut short = job.clone();
    let share = |job: &Job| match job.stop.max_bytes {
        u64::MAX => u64::MAX,
        bytes => (bytes / MAX_ROUNDS as u64).max(u64::from(job.block_bytes)),
    };
    let stop = |job: &Job| StopSpec {
        // Rounds are compared with one another, so all are equally long.
        relative_half_width: 0.001,
        min_seconds: turn_s,
        max_seconds: turn_s,
        min_bytes: 0,
        max_bytes: match job.direction {
            Direction::Read => job.stop.max_bytes,
            Direction::Write => share(job),
        },
    };
    short.stop = stop(job);
    for beside in &mut short.beside {
        beside.stop = stop(beside);
    }
    short
}

/// The rounds of one of the results of a turn, as far as both have them.
fn paired(turns: &Turns, which: usize) -> PairedJob {
    let of = |side: usize, round: usize| turns[side].get(round)?.get(which);
    let complete = turns[0].len().min(turns[1].len());
    let rounds = (0..complete).filter_map(|round| {
        let both = [of(0, round)?, of(1, round)?];
        Some(Round {
            throughput: both.map(|result| result.bytes_per_second.value),
            operations: both.map(|result| result.operations),
            p50_ns: both.map(|result| result.latency_ns.p50),
            p99_ns: both.map(|result| result.latency_ns.p99),
        })
    });
    PairedJob {
        job: of(0, 0).map_or(String::new(), |result| result.job.clone()),
        rounds: rounds.collect(),
    }
}

/// Merges the turns of a job and takes them into the books.
fn take(
    turned: &mut Turned,
    job: &Job,
    index: usize,
    suite: &Suite,
    turns: Turns,
    observer: &mut dyn Observer,
) {
    let count = turns.iter().map(|side| side.first().map_or(0, Vec::len));
    for which in 0..count.max().unwrap_or(0) {
        let rounds = paired(&turns, which);
        if !rounds.rounds.is_empty() {
            turned.jobs.push(rounds);
        }
        for (side, of_side) in turns.iter().enumerate() {
            let own: Vec<JobResult> =
                of_side.iter().filter_map(|results| results.get(which).cloned()).collect();
            let Some(merged) = merge(&own, job.stop.relative_half_width) else {
                continue;
            };
            observer.event(&Event::JobFinished { index, of: suite.jobs.len(), result: &merged });
            turned.results[side].push(merged);
        }
    }
}

/// Passes on what happens within a turn, but not that each ends, and with the time that is left of
/// all of them.
struct Quiet<'a> {
    observer: &'a mut dyn Observer,
    left_s: f64,
}

impl Observer for Quiet<'_> {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::JobFinished { .. } => {}
            Event::Progress(progress) => {
                let mut progress = *progress;
                progress.left_s = (self.left_s - progress.elapsed_s).max(0.0);
                self.observer.event(&Event::Progress(progress));
            }
            other => self.observer.event(other),
        }
    }
}
