//! One job, and those beside it: feeding the stopping rule, watching the clock and the wear
//! budget, and making results of what the workers reported.
//!
//! Knows no engine and no clock by name, so that it runs the same in virtual time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rubus_stats::Decision;
use rubus_vocabulary::spec::{Direction, Durability, Ends};

use crate::completions::Completions;
use crate::course::is_commit;
use crate::event::{Event, Observer, Phase, Progress};
use crate::measurement::{Failure, Measurement, Place, expected_s};
use crate::outcome::results;
use crate::rig::Rig;
use crate::runner::{Runner, Task, seconds};

/// Time between two looks at the workers.
const LOOK: Duration = Duration::from_millis(50);
/// Looks between two progress events.
const LOOKS_PER_PROGRESS: u32 = 4;
/// A device that completes nothing for this long is given up.
const GIVE_UP: Duration = Duration::from_secs(30);
/// After the user has stopped the session its last operations may take this long.
const LAST_WAIT: Duration = Duration::from_secs(3);
/// A flush may take this long ...
const FLUSH: Duration = Duration::from_secs(60);
/// ... and so much longer as it takes to write back all that was written at this rate: slower than
/// small random writes on the slowest of cards.
const MIN_FLUSH_RATE: u64 = 250_000;

/// Runs a job, and those beside it, to the end; all start together.
pub(crate) fn measure(
    rig: &mut dyn Rig,
    task: &Task<'_>,
    beside: &[Task<'_>],
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
                runners.iter_mut().for_each(|runner: &mut Runner<'_>| runner.running.stop());
                return Measurement {
                    results: Vec::new(),
                    whole: Vec::new(),
                    bytes_written: 0,
                    lasted_ns: 0,
                    handed_out: Vec::new(),
                    covered_bytes: 0,
                    failure: Some(Failure::Engine(error)),
                };
            }
        }
    }
    let mut failure = run_to_end(rig, &mut runners, place, cancel, observer);
    let mut flush_ns = vec![0; runners.len()];
    for i in 0..runners.len() {
        if failure.is_some() || !needs_flush(runners[i].task) {
            continue;
        }
        let mut tick = |now_ns: u64| {
            let progress = progress(now_ns, &runners, place, Phase::Finishing);
            observer.event(&Event::Progress(progress));
        };
        tick(rig.now_ns());
        let written = runners[i].moved_bytes(Direction::Write);
        let most = flush_limit(written);
        match rig.flush(&runners[i].task.work, most, cancel, &mut tick) {
            Ok(Some(elapsed_ns)) => flush_ns[i] = elapsed_ns,
            Ok(None) => failure = Some(Failure::Interrupted),
            Err(error) => failure = Some(Failure::Target(error)),
        }
    }
    let last = rig.sample();
    let results = results(rig, &runners, place, (&first, &last), &flush_ns, failure.as_ref());
    let written: u64 = runners.iter().map(|r| r.moved_bytes(Direction::Write)).sum();
    let completions = runners.iter().flat_map(|r| r.running.completions());
    let whole = completions.map(Completions::latencies).collect();
    Measurement {
        results,
        whole,
        bytes_written: written,
        lasted_ns: lasted_ns(&runners[0]) + flush_ns[0],
        handed_out: runners.iter().map(|r| r.running.handed_out()).collect(),
        covered_bytes: runners[0].moved_bytes(Direction::Write),
        failure,
    }
}

/// From the start of a job to the last operation that completed.
fn lasted_ns(runner: &Runner<'_>) -> u64 {
    let completions = runner.running.completions().iter();
    let last_ns = completions.filter_map(Completions::last_ns).max();
    last_ns.map_or(0, |last_ns| last_ns.saturating_sub(runner.running.origin_ns()))
}

/// Timeout of a flush after `written_bytes` bytes were written.
pub(crate) fn flush_limit(written_bytes: u64) -> Duration {
    FLUSH + Duration::from_secs(written_bytes / MIN_FLUSH_RATE)
}

fn needs_flush(task: &Task<'_>) -> bool {
    let is_left = match task.job.durability {
        Durability::Never => false,
        Durability::AtEnd | Durability::EachAppend | Durability::EachInPlace => true,
    };
    task.work.is_write() && is_left && !is_commit(task.job)
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
            let had_ended = runner.has_ended();
            let has_ended = runner.poll(most, rig);
            ended &= has_ended;
            // Where one has just ended, others may have to stop now: a reader beside a writer is not to go on alone.
            if !has_ended || !had_ended {
                most = Duration::ZERO;
            }
        }
        if runners[0].task.job.ends == Ends::EachByItself {
            let done = runners.iter_mut().filter(|runner| runner.is_done(rig));
            done.for_each(|runner| runner.running.stop());
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
                runner if runner.is_measuring() => Phase::Measuring,
                _ => Phase::WarmUp,
            };
            let progress = progress(rig.now_ns(), runners, place, phase);
            observer.event(&Event::Progress(progress));
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
    if let Some(error) = runners.iter().find_map(Runner::failure) {
        return Some(Failure::Target(error.into()));
    }
    if is_hung(rig, runners) {
        let seconds = GIVE_UP.as_secs();
        return Some(Failure::Target(format!(
            "no operation ended within {seconds} s; look at the kernel's log (dmesg), and over a network at the \
             server and at the cable"
        )));
    }
    cancel.load(Ordering::Relaxed).then_some(Failure::Interrupted)
}

fn is_hung(rig: &dyn Rig, runners: &[Runner<'_>]) -> bool {
    let now_ns = rig.now_ns();
    runners
        .iter()
        .any(|runner| !runner.has_ended() && runner.idle_ns(now_ns) > GIVE_UP.as_nanos() as u64)
}

/// Whether what the group of jobs is run for is over, so that those that still run are told to stop.
fn is_over(rig: &dyn Rig, runners: &[Runner<'_>]) -> bool {
    let main = &runners[0];
    match main.task.job.ends {
        Ends::EachByItself => return runners.iter().all(|runner| runner.is_done(rig)),
        Ends::WithAny => return runners.iter().any(|runner| runner.is_done(rig)),
        Ends::WithTheFirst => {}
    }
    main.decision() == Decision::Capped
        || main.is_overdue(rig)
        || runners.iter().all(|runner| runner.decision() == Decision::Converged)
        || runners.iter().any(Runner::has_ended)
}

fn progress<'a>(now_ns: u64, runners: &[Runner<'a>], place: Place, phase: Phase) -> Progress<'a> {
    // Of a job with a bystander the bystander is of interest.
    let shown = &runners[runners.len() - 1];
    let elapsed_s = seconds(now_ns.saturating_sub(shown.running.origin_ns()));
    let (iops_now, bytes_per_second_now) = shown.recent();
    let so_far = shown.is_measuring().then(|| shown.so_far());
    let written: u64 = runners.iter().map(|r| r.moved_bytes(Direction::Write)).sum();
    let rest_s = match phase {
        Phase::Finishing => 0.0,
        Phase::WarmUp | Phase::Measuring => {
            let rests_s = runners.iter().map(|runner| left_s(runner, now_ns));
            rests_s.fold(0.5, f64::max)
        }
    };
    Progress {
        job: &runners[0].task.job.name,
        index: place.index,
        of: place.of,
        phase,
        elapsed_s,
        bytes_per_second_now,
        iops_now,
        bytes_per_second: so_far.map(|(_, bytes_per_second)| bytes_per_second),
        iops: so_far.map(|(iops, _)| iops),
        idle_s: seconds(shown.idle_ns(now_ns)),
        bytes_written: place.written_before + written,
        left_s: rest_s + place.left_after_s,
    }
}

/// About how long a job will still take: until its time is over, or its bytes have been moved at
/// the rate so far.
fn left_s(runner: &Runner<'_>, now_ns: u64) -> f64 {
    let stop = &runner.task.job.stop;
    let elapsed_s = seconds(now_ns.saturating_sub(runner.running.origin_ns()));
    let by_time_s = expected_s(stop.min_seconds, stop.max_seconds) - elapsed_s;
    let moved = runner.moved_bytes(Direction::Read) + runner.moved_bytes(Direction::Write);
    let by_bytes_s = match (runner.has_ended(), stop.max_bytes, moved) {
        (true, _, _) => 0.0,
        (false, u64::MAX, _) | (false, _, 0) => f64::INFINITY,
        (false, most, moved) => most.saturating_sub(moved) as f64 / moved as f64 * elapsed_s,
    };
    by_time_s.min(by_bytes_s).max(0.0)
}
