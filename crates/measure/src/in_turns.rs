//! Two targets measured in turns, so that whatever drifts on the machine hits both alike.
//!
//! Both stay open. Each job is run in rounds of one short turn on each; the order alternates (first,
//! second, second, first), so that a steady drift cancels over two rounds. All jobs have a round before any has the next one: a
//! level that wanders for seconds would make neighbouring rounds alike, and their spread too small. The rest of the time goes to the
//! jobs whose rounds do not yet suffice to show a tenth. What the rounds say together is decided in `rubus_runs::compare`.

use rubus_vocabulary::merge::merge;
use rubus_vocabulary::paired::{Paired, PairedJob, Round, limit_of_rate};
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

/// Length of one turn in seconds, its warm-up included; longer where that gives few operations.
const TURN_S: f64 = 1.5;
const LONGEST_TURN_S: f64 = 6.0;
/// Where a turn has fewer operations, one more or less matters.
const ENOUGH_OPERATIONS: f64 = 60.0;
/// What a turn takes besides, in seconds: set-up and flush.
const AROUND_TURN_S: f64 = 0.4;
/// Minimum number of rounds per job; even, as all the others are, so that drifts cancel.
const MIN_ROUNDS: usize = 4;
/// With fewer rounds their spread is too much by chance to settle anything.
const SETTLED_FROM: usize = 6;
/// Maximum number of rounds of a job that only reads.
const MAX_ROUNDS: usize = 24;
/// Maximum number of rounds of a job with a write budget, which is divided by it.
const MAX_WRITE_ROUNDS: usize = 8;
/// How long all jobs may take together, in seconds, unless the minimum of rounds takes longer.
const ALL_S: f64 = 300.0;
/// The same for each job, where there are many.
const JOB_S: f64 = 33.0;
/// A true difference of this share is to be found.
const WANTED: f64 = 0.1;
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
    let least_s = (suite.jobs.len() * SETTLED_FROM * 2) as f64 * (TURN_S + AROUND_TURN_S);
    (least_s, all_s(suite).max(least_s))
}

/// How long all jobs of a suite may take, in seconds.
fn all_s(suite: &Suite) -> f64 {
    ALL_S.max(JOB_S * suite.jobs.len() as f64)
}

/// The suite for turns. A file of our own is filled before the first turn, so a job that would fill it
/// pays for that out of its budget, and no more is written than was announced.
pub fn for_turns(suite: &Suite) -> Suite {
    let mut suite = suite.clone();
    let Some(job) = suite.jobs.first().filter(|job| fills(&suite, job)) else {
        return suite;
    };
    let least = MAX_WRITE_ROUNDS as u64 * u64::from(job.block_bytes);
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
    let end_ns = schedulers[0].rig.now_ns() + (all_s(suite) * 1e9) as u64;
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
    let mut courses: Vec<Course> = Vec::new();
    for (index, job) in suite.jobs.iter().enumerate() {
        let unable = why_no_turns(job);
        if let Some(reason) = unable.clone() {
            observer.event(&Event::JobSkipped { index, of: suite.jobs.len(), job, reason });
        }
        courses.push(Course::new(unable.is_some()));
    }
    turned.ended_by = rounds(suite, schedulers, &mut courses, end_ns, observer).err();
    for (index, (job, course)) in suite.jobs.iter().zip(courses).enumerate() {
        take(&mut turned, job, index, suite, course.turns, observer);
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

/// How far a job has come.
struct Course {
    turns: Turns,
    /// Length of its turns, in seconds.
    turn_s: f64,
    /// How long its last round took, in seconds.
    round_s: f64,
    /// One of the targets cannot do it.
    is_unable: bool,
}

impl Course {
    fn new(is_unable: bool) -> Self {
        Course { turns: [Vec::new(), Vec::new()], turn_s: TURN_S, round_s: 0.0, is_unable }
    }

    fn rounds(&self) -> usize {
        self.turns[0].len().min(self.turns[1].len())
    }

    /// Why more rounds are wanted; nothing where they are not.
    fn need(&self, job: &Job, limit: f64) -> Option<Need> {
        let max_rounds = if has_write_budget(job) { MAX_WRITE_ROUNDS } else { MAX_ROUNDS };
        if self.is_unable || self.rounds() >= max_rounds {
            return None;
        }
        let is_shown = |paired: Paired| paired.would_show(WANTED, limit);
        if self.rounds() < SETTLED_FROM || !all_ratios(&self.turns, is_shown) {
            return Some(Need::ToShow);
        }
        let is_known = |paired: Paired| paired.ratio.largest_deviation() <= ENOUGH;
        (!all_ratios(&self.turns, is_known)).then_some(Need::ToKnow)
    }
}

/// What more rounds are wanted for, the more important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    /// A difference that matters might not be found.
    ToShow,
    /// The ratio could be known better.
    ToKnow,
}

fn has_write_budget(job: &Job) -> bool {
    let mut all = std::iter::once(job).chain(&job.beside);
    all.any(|job| job.direction == Direction::Write && job.stop.max_bytes < u64::MAX)
}

/// Runs all jobs in rounds: the minimum of each, then in pairs of rounds those that need more and fit into the time that is left.
///
/// # Errors
/// What ended the session.
fn rounds(
    suite: &Suite,
    schedulers: &mut [Scheduler<'_>],
    courses: &mut [Course],
    end_ns: u64,
    observer: &mut dyn Observer,
) -> Result<(), BenchError> {
    let rates: usize = suite.jobs.iter().map(|job| 1 + job.beside.len()).sum();
    let limit = limit_of_rate(rates);
    let mut chosen: Vec<usize> = (0..suite.jobs.len()).collect();
    let mut passes = MIN_ROUNDS;
    while !chosen.is_empty() {
        for _ in 0..passes {
            for &index in &chosen {
                round(index, suite, schedulers, &mut courses[index], end_ns, observer)?;
            }
        }
        passes = 2;
        let left_s = end_ns.saturating_sub(schedulers[0].rig.now_ns()) as f64 / 1e9;
        chosen = next(suite, courses, limit, left_s);
    }
    Ok(())
}

/// The jobs that get two more rounds each, in the order of the suite: as many as fit into `left_s` seconds, the most important and
/// shortest first.
fn next(suite: &Suite, courses: &[Course], limit: f64, left_s: f64) -> Vec<usize> {
    let each = suite.jobs.iter().zip(courses).enumerate();
    let mut open: Vec<(Need, f64, usize)> = each
        .filter_map(|(index, (job, course))| {
            Some((course.need(job, limit)?, 2.0 * course.round_s, index))
        })
        .collect();
    open.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut left_s = left_s;
    let mut chosen = Vec::new();
    for (_, seconds, index) in open {
        if seconds <= left_s {
            left_s -= seconds;
            chosen.push(index);
        }
    }
    chosen.sort_unstable();
    chosen
}

/// Runs one round of a job.
///
/// # Errors
/// What ended the session.
fn round(
    index: usize,
    suite: &Suite,
    schedulers: &mut [Scheduler<'_>],
    course: &mut Course,
    end_ns: u64,
    observer: &mut dyn Observer,
) -> Result<(), BenchError> {
    if course.is_unable {
        return Ok(());
    }
    let job = &suite.jobs[index];
    let start_ns = schedulers[0].rig.now_ns();
    let number = course.rounds();
    let order = if number % 2 == 0 { [0, 1] } else { [1, 0] };
    for side in order {
        let now_ns = schedulers[side].rig.now_ns();
        let left_s = end_ns.saturating_sub(now_ns) as f64 / 1e9;
        let mut quiet = Quiet { observer: &mut *observer, left_s };
        match schedulers[side].turn(index, &short(job, course.turn_s), &mut quiet)? {
            Ok(results) => course.turns[side].push(results),
            Err(reason) => {
                course.is_unable = true;
                course.turns = [Vec::new(), Vec::new()];
                observer.event(&Event::JobSkipped { index, of: suite.jobs.len(), job, reason });
                return Ok(());
            }
        }
    }
    course.round_s = schedulers[0].rig.now_ns().saturating_sub(start_ns) as f64 / 1e9;
    if number == 0 {
        let longer_s = long_enough_s(&course.turns);
        course.round_s += 2.0 * (longer_s - course.turn_s);
        course.turn_s = longer_s;
    }
    Ok(())
}

/// How long the turns have to be after the first ones, in seconds.
fn long_enough_s(turns: &Turns) -> f64 {
    let own = turns.iter().filter_map(|side| side.first()?.first());
    let fewest = own.map(|result| result.operations).min().unwrap_or(0);
    (TURN_S * ENOUGH_OPERATIONS / fewest.max(1) as f64).clamp(TURN_S, LONGEST_TURN_S)
}

/// Whether the ratio of the job and those of the ones beside it are all as `is_so` says.
fn all_ratios(turns: &Turns, is_so: impl Fn(Paired) -> bool) -> bool {
    let count = turns[0].first().map_or(0, Vec::len);
    (0..count).all(|which| paired(turns, which).throughput().is_some_and(&is_so))
}

/// The job as it is in one turn: short, with its share of the budget.
fn short(job: &Job, turn_s: f64) -> Job {
    let mut short = job.clone();
    let share = |job: &Job| match job.stop.max_bytes {
        u64::MAX => u64::MAX,
        bytes => (bytes / MAX_WRITE_ROUNDS as u64).max(u64::from(job.block_bytes)),
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
