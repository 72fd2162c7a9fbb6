//! One job, and the one beside it: feeding the stopping rule, watching the clock and the wear
//! budget, and making results of what the lanes reported.
//!
//! Knows no engine and no clock by name, so that it runs the same in virtual time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rubus_core::doubt::Doubt;
use rubus_core::estimate::Estimate;
use rubus_core::result::{Access, JobResult, Outcome, Stall};
use rubus_core::spec::{Direction, Job};
use rubus_core::stats::{Decision, Histogram, Measured, StopRule};

use crate::blame::{self, Effort, SlowMoments};
use crate::event::{Event, Observer, Phase, Progress};
use crate::harvest::Harvest;
use crate::lane::SLICE_NS;
use crate::rig::{Rig, Running};
use crate::watch::Sample;
use crate::work::{Work, is_commit};

/// Time between two looks at the lanes.
const LOOK: Duration = Duration::from_millis(50);
/// Looks between two progress events.
const LOOKS_PER_PROGRESS: u32 = 4;
/// Slices per bin of the stopping rule: 100 ms.
const SLICES_PER_BIN: usize = 20;
/// A device that finishes nothing for so long is given up.
const GIVE_UP: Duration = Duration::from_secs(30);
/// After the user has stopped the session its last operations may take this long.
const LAST_WAIT: Duration = Duration::from_secs(3);
/// A flush may take this long.
const FLUSH: Duration = Duration::from_secs(60);
/// In less time than this a change of the rate is no drift, in seconds.
const LEAST_DRIFT_S: f64 = 1.0;
/// Operations below which even the median stands on little.
const FEW_OPERATIONS: u64 = 30;

/// Where a job stands in its suite, for the observer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Number of the job, from 0.
    pub(crate) index: usize,
    /// Number of jobs.
    pub(crate) of: usize,
    /// When the session began, on the rig's clock.
    pub(crate) session_start_ns: u64,
    /// Bytes that the session had written before this job.
    pub(crate) written_before: u64,
    /// About how long the jobs after this one will take.
    pub(crate) left_after_s: f64,
}

/// One job with the work that it means here.
#[derive(Clone, Debug)]
pub(crate) struct Task<'a> {
    /// As the suite says it.
    pub(crate) job: &'a Job,
    /// As the target needs it.
    pub(crate) work: Work,
    /// How the target is reached.
    pub(crate) access: Access,
    /// Doubts that are known before it begins.
    pub(crate) doubts: Vec<Doubt>,
}

/// What a job and the one beside it gave.
#[derive(Clone, Debug)]
pub(crate) struct Measurement {
    /// The results: that of the job, then that of the one beside it.
    pub(crate) results: Vec<JobResult>,
    /// Bytes that were written.
    pub(crate) bytes_written: u64,
    /// Bytes from the start of the region that a sequential writer has covered, if it was one.
    pub(crate) covered_bytes: u64,
    /// What ended the session, if the job did.
    pub(crate) failure: Option<Failure>,
}

/// Why a session cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The target failed; the error in words.
    Target(String),
    /// The user stopped it.
    Interrupted,
    /// The work could not be started; the error in words.
    Engine(String),
}

/// One of the jobs that run, with its own stopping rule.
struct Runner<'a> {
    task: &'a Task<'a>,
    running: Box<dyn Running>,
    rule: StopRule,
    bins_fed: usize,
    decision: Decision,
    seen_operations: u64,
    seen_at_ns: u64,
}

impl<'a> Runner<'a> {
    fn start(rig: &mut dyn Rig, task: &'a Task<'a>) -> Result<Self, String> {
        let running = rig.start(&task.work)?;
        let seen_at_ns = running.harvest().origin_ns;
        Ok(Runner {
            task,
            running,
            rule: StopRule::new(task.job.stop, bin_s(SLICES_PER_BIN)),
            bins_fed: 0,
            decision: Decision::Continue,
            seen_operations: 0,
            seen_at_ns,
        })
    }

    /// Lets it run for at most `most`, feeds the rule; true when it has ended.
    fn poll(&mut self, most: Duration, rig: &dyn Rig) -> bool {
        let ended = self.running.poll(most);
        let harvest = self.running.harvest();
        let block_bytes = self.task.job.block_bytes;
        for bin in harvest.bins(SLICES_PER_BIN, block_bytes, self.bins_fed) {
            self.decision = self.rule.push(bin);
            self.bins_fed += 1;
        }
        let operations = harvest.operations();
        if operations != self.seen_operations {
            self.seen_operations = operations;
            self.seen_at_ns = rig.now_ns();
        }
        ended
    }

    fn moved_bytes(&self, direction: Direction) -> u64 {
        let job = self.task.job;
        if job.direction == direction {
            self.seen_operations * u64::from(job.block_bytes)
        } else {
            0
        }
    }
}

fn bin_s(slices: usize) -> f64 {
    slices as f64 * SLICE_NS as f64 / 1e9
}

/// Runs a job, and the one beside it if there is one, to its end.
pub(crate) fn measure(
    rig: &mut dyn Rig,
    task: &Task<'_>,
    beside: Option<&Task<'_>>,
    place: Place,
    cancel: &AtomicBool,
    observer: &mut dyn Observer,
) -> Measurement {
    let first = rig.sample();
    let mut runners = Vec::new();
    for task in std::iter::once(task).chain(beside) {
        match Runner::start(rig, task) {
            Ok(runner) => runners.push(runner),
            Err(error) => {
                runners.iter_mut().for_each(|runner| runner.running.stop());
                return Measurement {
                    results: Vec::new(),
                    bytes_written: 0,
                    covered_bytes: 0,
                    failure: Some(Failure::Engine(error)),
                };
            }
        }
    }
    let mut failure = run_to_end(rig, &mut runners, place, cancel, observer);
    let mut flush_ns = 0;
    if needs_flush(task) && failure.is_none() {
        observer.event(&Event::Progress(progress(
            rig,
            &runners,
            place,
            Phase::Finishing,
        )));
        match rig.flush(&task.work, FLUSH, cancel) {
            Ok(Some(elapsed_ns)) => flush_ns = elapsed_ns,
            Ok(None) => failure = Some(Failure::Interrupted),
            Err(error) => failure = Some(Failure::Target(error)),
        }
    }
    let last = rig.sample();
    let results = results(
        rig,
        &runners,
        place,
        (&first, &last),
        flush_ns,
        failure.as_ref(),
    );
    let written: u64 = runners
        .iter()
        .map(|r| r.moved_bytes(Direction::Write))
        .sum();
    Measurement {
        results,
        bytes_written: written,
        covered_bytes: runners[0].moved_bytes(Direction::Write),
        failure,
    }
}

fn needs_flush(task: &Task<'_>) -> bool {
    task.job.direction == Direction::Write && !is_commit(task.job)
}

/// Polls until all have ended or the device is given up.
fn run_to_end(
    rig: &mut dyn Rig,
    runners: &mut [Runner<'_>],
    place: Place,
    cancel: &AtomicBool,
    observer: &mut dyn Observer,
) -> Option<Failure> {
    let mut stopped_at_ns = None;
    let mut failure = None;
    for look in 1_u32.. {
        // The time passes while the first that still runs is waited for.
        let mut most = LOOK;
        let mut ended = true;
        for runner in runners.iter_mut() {
            if !runner.poll(most, rig) {
                ended = false;
                most = Duration::ZERO;
            }
        }
        if failure.is_none() {
            failure = find_failure(rig, runners, cancel);
        }
        if stopped_at_ns.is_none() && (failure.is_some() || is_over(rig, runners)) {
            stopped_at_ns = Some(rig.now_ns());
            runners.iter_mut().for_each(|runner| runner.running.stop());
        }
        if ended || is_left_behind(rig, runners, stopped_at_ns, failure.as_ref()) {
            return failure;
        }
        if look % LOOKS_PER_PROGRESS == 0 {
            let phase = match &runners[0] {
                _ if stopped_at_ns.is_some() => Phase::Finishing,
                runner if runner.rule.measured_s() > 0.0 => Phase::Measuring,
                _ => Phase::WarmUp,
            };
            observer.event(&Event::Progress(progress(rig, runners, place, phase)));
        }
    }
    failure
}

/// Whether what still runs is waited for no longer: the session has failed or was stopped by the
/// user, and the device does not even finish what it has begun.
fn is_left_behind(
    rig: &dyn Rig,
    runners: &[Runner<'_>],
    stopped_at_ns: Option<u64>,
    failure: Option<&Failure>,
) -> bool {
    match (failure, stopped_at_ns) {
        (Some(Failure::Interrupted), Some(at_ns)) => {
            rig.now_ns().saturating_sub(at_ns) > LAST_WAIT.as_nanos() as u64
        }
        (Some(_), _) => is_hung(rig, runners),
        (None, _) => false,
    }
}

fn find_failure(rig: &dyn Rig, runners: &[Runner<'_>], cancel: &AtomicBool) -> Option<Failure> {
    let failed = runners
        .iter()
        .find_map(|runner| runner.running.harvest().failure());
    if let Some(error) = failed {
        return Some(Failure::Target(error.into()));
    }
    if is_hung(rig, runners) {
        let seconds = GIVE_UP.as_secs();
        return Some(Failure::Target(format!(
            "no operation ended within {seconds} s"
        )));
    }
    cancel
        .load(Ordering::Relaxed)
        .then_some(Failure::Interrupted)
}

fn is_hung(rig: &dyn Rig, runners: &[Runner<'_>]) -> bool {
    let now_ns = rig.now_ns();
    runners.iter().any(|runner| {
        !runner.running.harvest().all_ended()
            && now_ns.saturating_sub(runner.seen_at_ns) > GIVE_UP.as_nanos() as u64
    })
}

/// Whether the first job, and with it the session's interest in the other, is over.
fn is_over(rig: &dyn Rig, runners: &[Runner<'_>]) -> bool {
    let main = &runners[0];
    let elapsed_s = seconds(
        rig.now_ns()
            .saturating_sub(main.running.harvest().origin_ns),
    );
    // The rule counts whole bins only; while the device does nothing it sees none.
    main.decision == Decision::Capped
        || elapsed_s >= main.task.job.stop.max_seconds
        || runners
            .iter()
            .all(|runner| runner.decision == Decision::Converged)
        || runners
            .iter()
            .any(|runner| runner.running.harvest().all_ended())
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

fn progress<'a>(rig: &dyn Rig, runners: &[Runner<'a>], place: Place, phase: Phase) -> Progress<'a> {
    // Of a job with a bystander the bystander is of interest.
    let shown = &runners[runners.len() - 1];
    let harvest = shown.running.harvest();
    let now_ns = rig.now_ns();
    let elapsed_s = seconds(now_ns.saturating_sub(harvest.origin_ns));
    let iops_now = recent_iops(harvest);
    let measured = shown.rule.measured_s() > 0.0;
    let written: u64 = runners
        .iter()
        .map(|r| r.moved_bytes(Direction::Write))
        .sum();
    let stop = &runners[0].task.job.stop;
    let rest_s = if phase == Phase::Finishing {
        0.0
    } else {
        (expected_s(stop.min_seconds, stop.max_seconds) - elapsed_s).max(0.5)
    };
    Progress {
        job: &runners[0].task.job.name,
        index: place.index,
        of: place.of,
        phase,
        elapsed_s,
        bytes_per_second_now: iops_now * f64::from(shown.task.job.block_bytes),
        iops_now,
        bytes_per_second: measured.then(|| shown.rule.bytes_per_second()),
        iops: measured.then(|| shown.rule.iops()),
        idle_s: seconds(now_ns.saturating_sub(shown.seen_at_ns)),
        bytes_written: place.written_before + written,
        left_s: rest_s + place.left_after_s,
    }
}

/// About how long a job takes that must run for `least_s` and may for `most_s`.
pub(crate) fn expected_s(least_s: f64, most_s: f64) -> f64 {
    (least_s + 0.4 * (most_s - least_s)).clamp(0.0, most_s.max(0.0))
}

fn recent_iops(harvest: &Harvest) -> f64 {
    const SECOND: usize = (1_000_000_000 / SLICE_NS) as usize;
    let slices = harvest.slices();
    let recent = &slices[slices.len().saturating_sub(SECOND)..];
    if recent.is_empty() {
        return 0.0;
    }
    let operations: u64 = recent.iter().map(|slice| u64::from(slice.operations)).sum();
    operations as f64 / bin_s(recent.len())
}

/// Makes the results of the runners that have reported.
fn results(
    rig: &mut dyn Rig,
    runners: &[Runner<'_>],
    place: Place,
    (first, last): (&Sample, &Sample),
    flush_ns: u64,
    failure: Option<&Failure>,
) -> Vec<JobResult> {
    let samples: Vec<Sample> = rig
        .samples()
        .into_iter()
        .filter(|sample| (first.at_ns..=last.at_ns).contains(&sample.at_ns))
        .collect();
    let machine = MachineView {
        first,
        last,
        samples: &samples,
        read_bytes: runners.iter().map(|r| r.moved_bytes(Direction::Read)).sum(),
        written_bytes: runners
            .iter()
            .map(|r| r.moved_bytes(Direction::Write))
            .sum(),
        operations: runners.iter().map(|r| r.seen_operations).sum(),
    };
    let mut results = Vec::new();
    for (i, runner) in runners.iter().enumerate() {
        let flush_ns = if i == 0 { flush_ns } else { 0 };
        let mut result = result(runner, &machine, flush_ns);
        let origin_ns = runner.running.harvest().origin_ns;
        result.started_s = seconds(origin_ns.saturating_sub(place.session_start_ns));
        match failure {
            Some(Failure::Target(error)) => result.doubts.push(Doubt::TargetFailed {
                error: error.clone(),
            }),
            Some(Failure::Interrupted) => result.doubts.push(Doubt::Interrupted),
            Some(Failure::Engine(_)) | None => {}
        }
        if failure.is_some() {
            result.outcome = Outcome::Inconclusive;
        }
        results.push(result);
    }
    results
}

/// What the machine did during the job.
struct MachineView<'a> {
    first: &'a Sample,
    last: &'a Sample,
    samples: &'a [Sample],
    read_bytes: u64,
    written_bytes: u64,
    operations: u64,
}

fn result(runner: &Runner<'_>, machine: &MachineView<'_>, flush_ns: u64) -> JobResult {
    let (task, job) = (runner.task, runner.task.job);
    let harvest = runner.running.harvest();
    let (mut measured, warm_up_ns) = judge(runner);
    let flush_s = seconds(flush_ns);
    let long_flush = flush_s > 0.5 && flush_s > 0.1 * measured.measured_s;
    measured.include_flush(flush_s);
    if measured.measured_s < LEAST_DRIFT_S {
        measured
            .doubts
            .retain(|doubt| !matches!(doubt, Doubt::Drift { .. }));
    }
    let latencies = harvest.latencies();
    let effort = Effort {
        direction: job.direction,
        is_commit: is_commit(job),
        is_buffered: task.access == Access::Buffered,
        read_bytes: machine.read_bytes,
        written_bytes: machine.written_bytes,
        bytes_per_second: measured.bytes_per_second.value,
    };
    let cpu = blame::cpu_shares(machine.first, machine.last);
    let elapsed_ns = machine
        .last
        .at_ns
        .saturating_sub(machine.first.at_ns)
        .max(1);
    let mut doubts = task.doubts.clone();
    doubts.append(&mut measured.doubts);
    doubts.extend(blame::cpu_doubts(
        &cpu,
        waited_share(harvest),
        used_share(harvest, elapsed_ns, cpu.per_core_busy.len()),
    ));
    doubts.extend(blame::power_doubts(machine.samples));
    doubts.extend(blame::traffic_doubt(machine.first, machine.last, &effort));
    if long_flush {
        doubts.push(Doubt::LongFlush { seconds: flush_s });
    }
    if measured.operations < FEW_OPERATIONS {
        doubts.push(Doubt::FewOperations {
            operations: measured.operations,
        });
    }
    let used_ns = machine
        .last
        .process_ns
        .saturating_sub(machine.first.process_ns);
    JobResult {
        job: job.name.clone(),
        direction: job.direction,
        pattern: job.pattern,
        block_bytes: job.block_bytes,
        queue_depth: job.queue_depth,
        commit: is_commit(job),
        engine: task.work.engine.name().into(),
        started_s: 0.0,
        elapsed_s: measured.measured_s,
        operations: measured.operations,
        bytes_per_second: measured.bytes_per_second,
        iops: measured.iops,
        latency_ns: latencies.latency(),
        cpu,
        cpu_ns_per_io: used_ns as f64 / machine.operations.max(1) as f64,
        stalls: stalls(runner, &latencies, warm_up_ns, machine.samples, &effort),
        outcome: measured.outcome,
        doubts,
        series: Some(measured.series),
    }
}

fn stalls(
    runner: &Runner<'_>,
    latencies: &Histogram,
    warm_up_ns: u64,
    samples: &[Sample],
    effort: &Effort,
) -> Vec<Stall> {
    let harvest = runner.running.harvest();
    let lasted_ns = harvest
        .last_ns()
        .unwrap_or(0)
        .saturating_sub(harvest.origin_ns);
    let slow = SlowMoments {
        gaps: &harvest.gaps(),
        operations: &harvest.slow_operations(),
        latencies,
        usual_gap_ns: lasted_ns / harvest.operations().max(1),
        is_single: runner.task.job.queue_depth == 1,
        origin_ns: harvest.origin_ns,
        from_ns: harvest.origin_ns + warm_up_ns,
        window_ns: lasted_ns.saturating_sub(warm_up_ns),
    };
    blame::stalls(&slow, samples, effort)
}

/// What the series says, and how long the warm-up was. A job whose budget was spent before there
/// were enough bins of a tenth of a second is judged by shorter ones.
fn judge(runner: &Runner<'_>) -> (Measured, u64) {
    const ENOUGH_BINS: usize = 30;
    let harvest = runner.running.harvest();
    let slices = harvest.slices().len();
    let rule_warm_ns = (runner.rule.warm_up_bins() * SLICES_PER_BIN) as u64 * SLICE_NS;
    if runner.bins_fed >= ENOUGH_BINS || runner.decision == Decision::Converged {
        return (runner.rule.finish(), rule_warm_ns);
    }
    let usable = slices.saturating_sub(harvest.warm_slices());
    if usable < 2 {
        return (whole(runner), 0);
    }
    let sizes = [SLICES_PER_BIN, 10, 4, 2];
    let size = sizes
        .into_iter()
        .find(|size| usable / size >= ENOUGH_BINS)
        .unwrap_or(1);
    let warm_bins = harvest.warm_slices().div_ceil(size);
    let mut rule = StopRule::new(runner.task.job.stop, bin_s(size))
        .with_warm_up_s(warm_bins as f64 * bin_s(size));
    for bin in harvest.bins(size, runner.task.job.block_bytes, 0) {
        rule.push(bin);
    }
    (rule.finish(), (warm_bins * size) as u64 * SLICE_NS)
}

/// A job that was over before there was a series: its plain rate, of which nothing is certain.
fn whole(runner: &Runner<'_>) -> Measured {
    let harvest = runner.running.harvest();
    let operations = harvest.operations();
    let lasted_ns = harvest
        .last_ns()
        .unwrap_or(0)
        .saturating_sub(harvest.origin_ns);
    let measured_s = seconds(lasted_ns);
    let iops = if lasted_ns == 0 {
        0.0
    } else {
        operations as f64 / measured_s
    };
    let block_bytes = f64::from(runner.task.job.block_bytes);
    let unknown = |value: f64| Estimate::new(value, 0.0, f64::INFINITY);
    Measured {
        measured_s,
        operations,
        bytes: operations * u64::from(runner.task.job.block_bytes),
        iops: unknown(iops),
        bytes_per_second: unknown(iops * block_bytes),
        outcome: Outcome::Inconclusive,
        doubts: vec![Doubt::NotPrecise {
            reached: f64::INFINITY,
            wanted: runner.task.job.stop.relative_half_width,
        }],
        ..runner.rule.finish()
    }
}

/// The share of the time that the measuring threads waited for a processor, on average.
fn waited_share(harvest: &Harvest) -> Option<f64> {
    let mut waited_ns = 0.0;
    let mut lasted_ns = 0.0;
    for report in harvest.reports() {
        waited_ns += report.run_delay_ns? as f64;
        lasted_ns += report.last_ns.saturating_sub(harvest.origin_ns) as f64;
    }
    (lasted_ns > 0.0).then(|| waited_ns / lasted_ns)
}

/// How near the measuring threads came to using up the processors: the busiest of them its core,
/// or all of them together all `cores`.
fn used_share(harvest: &Harvest, elapsed_ns: u64, cores: usize) -> f64 {
    let shares = harvest.reports().map(|report| {
        let lasted_ns = report.last_ns.saturating_sub(harvest.origin_ns).max(1);
        report.cpu_ns as f64 / lasted_ns.min(elapsed_ns) as f64
    });
    let (mut busiest, mut together) = (0.0_f64, 0.0);
    for share in shares {
        busiest = busiest.max(share);
        together += share;
    }
    busiest.max(together / cores.max(1) as f64)
}
