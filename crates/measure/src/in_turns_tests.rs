//! Two devices of known speed in turns, in virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rubus_vocabulary::job_names;
use rubus_vocabulary::paired::PairedJob;
use rubus_vocabulary::spec::Suite;

use crate::error::BenchError;
use crate::event::Event;
use crate::in_turns::{Turned, for_turns, take_turns};
use crate::region::Region;
use crate::scheduler::Scheduler;
use crate::sim::{Device, SimRig};
use crate::suites;
use crate::target::Opened;

fn device(rate: f64) -> Device {
    Device::of_iops(4000.0, 2000.0).with_rates(rate, rate)
}

/// Both in turns; with what happened, and the bytes that each was written.
fn simulate(
    devices: [Device; 2],
    suite: &Suite,
    cancel: &Arc<AtomicBool>,
) -> (Turned, Vec<String>, Vec<u64>) {
    let [first, second] = devices;
    let stop = Arc::clone(cancel);
    let baseline = SimRig::new(first);
    let other = baseline.beside(second);
    let baseline = if cancel.load(Ordering::Relaxed) {
        // Set from the start: stopped in the middle.
        cancel.store(false, Ordering::Relaxed);
        baseline.at(30_000_000_000, move || stop.store(true, Ordering::Relaxed))
    } else {
        baseline
    };
    let mut rigs = [baseline, other];
    let mut events = Vec::new();
    let mut schedulers: Vec<Scheduler<'_>> = rigs
        .iter_mut()
        .map(|rig| {
            let region = Region::single(Opened::pretended(None), suite.region_bytes);
            Scheduler::new(rig, suite, vec![region], cancel, 0)
        })
        .collect();
    let turned = take_turns(suite, &mut schedulers, &mut |event: &Event<'_>| match event {
        Event::JobStarted { job, .. } => events.push(format!("start {}", job.name)),
        Event::JobFinished { result, .. } => events.push(format!("end {}", result.job)),
        Event::JobSkipped { job, .. } => events.push(format!("skip {}", job.name)),
        Event::Preparing { what } => events.push((*what).to_string()),
        Event::Progress(progress) => assert!(progress.left_s >= 0.0),
    });
    let written = schedulers.into_iter().map(|scheduler| scheduler.into_results().1);
    let written = written.collect();
    (turned, events, written)
}

fn quick_itself() -> Suite {
    suites::quick("sim", 1 << 40, true).expect("there is room")
}

fn quick() -> Suite {
    for_turns(&quick_itself())
}

fn job<'a>(turned: &'a Turned, name: &str) -> &'a PairedJob {
    let mut jobs = turned.jobs.iter();
    jobs.find(|job| job.job == name).expect("it ran")
}

#[test]
fn a_tenth_more_is_found_and_equals_are_not_told_apart() {
    let suite = quick();
    let running = Arc::new(AtomicBool::new(false));
    let (turned, events, written) = simulate([device(20e6), device(22e6)], &suite, &running);
    assert!(turned.ended_by.is_none());
    let ratio = job(&turned, job_names::SEQUENTIAL_READ).throughput().expect("rounds").ratio;
    // 1 MiB takes 0.25 ms and 52.4 or 47.7 ms.
    assert!((ratio.value / 1.0995 - 1.0).abs() < 0.01, "{ratio:?}");
    assert!(ratio.low > 1.05 && ratio.high < 1.15, "{ratio:?}");
    let small = job(&turned, job_names::RANDOM_READ).throughput().expect("rounds");
    // 4 KiB takes 0.25 ms and 0.205 or 0.186 ms: 4 % apart.
    assert!((small.ratio.value / 1.043 - 1.0).abs() < 0.01, "{small:?}");
    let fills = events.iter().filter(|event| event.starts_with("filling"));
    assert_eq!(fills.count(), 2, "each file is filled once");
    let most = suites::plan_writes(&suite, true);
    assert!(most <= suites::plan_writes(&quick_itself(), true));
    assert!(written.iter().all(|bytes| *bytes <= most), "{written:?} of {most}");
    for (baseline, other) in turned.results[0].iter().zip(&turned.results[1]) {
        assert_eq!(baseline.job, other.job);
        assert!(other.bytes_per_second.low <= other.bytes_per_second.value);
    }

    let (equal, _, _) = simulate([device(20e6), device(20e6)], &suite, &running);
    let sure = equal.jobs.iter().filter(|job| {
        let paired = job.throughput().expect("rounds");
        paired.chance < 0.05 / equal.jobs.len() as f64
    });
    assert_eq!(sure.count(), 0);
}

#[test]
fn rounds_alternate_and_come_in_even_numbers() {
    let mut suite = quick();
    suite.jobs.retain(|job| job.name == job_names::RANDOM_READ);
    let running = Arc::new(AtomicBool::new(false));
    let (turned, events, _) = simulate([device(20e6), device(30e6)], &suite, &running);
    let rounds = job(&turned, job_names::RANDOM_READ).rounds.len();
    assert!((4..=8).contains(&rounds) && rounds % 2 == 0, "{rounds}");
    let starts = events.iter().filter(|event| event.starts_with("start"));
    assert_eq!(starts.count(), 2 * rounds);
    // Over two rounds each has gone first once.
    let result = &turned.results;
    assert!(result[0][0].started_s < result[1][0].started_s);
}

#[test]
fn every_job_has_a_round_before_any_has_the_next() {
    let suite = quick();
    let running = Arc::new(AtomicBool::new(false));
    let (_, events, _) = simulate([device(20e6), device(22e6)], &suite, &running);
    let starts: Vec<&String> = events.iter().filter(|event| event.starts_with("start")).collect();
    for (turn, start) in starts.iter().take(4 * 2 * suite.jobs.len()).enumerate() {
        let job = &suite.jobs[turn / 2 % suite.jobs.len()];
        assert_eq!(**start, format!("start {}", job.name), "turn {turn}");
    }
}

#[test]
fn what_was_measured_before_a_stop_is_kept() {
    let suite = quick();
    let stopped = Arc::new(AtomicBool::new(true));
    let (turned, _, _) = simulate([device(20e6), device(22e6)], &suite, &stopped);
    assert!(matches!(turned.ended_by, Some(BenchError::Interrupted { .. })));
    for side in &turned.results {
        assert!(side.len() < suite.jobs.len());
    }
}

#[test]
fn a_job_that_needs_an_empty_file_is_left_out() {
    let mut suite = quick();
    suite.jobs.truncate(2);
    suite.jobs[0].fresh = true;
    let running = Arc::new(AtomicBool::new(false));
    let (turned, events, _) = simulate([device(20e6), device(22e6)], &suite, &running);
    assert!(events.contains(&format!("skip {}", job_names::SEQUENTIAL_WRITE)), "{events:?}");
    assert_eq!(turned.jobs.len(), 1);
}
