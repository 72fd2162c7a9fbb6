//! Whole sessions in virtual time on devices whose truth is known.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::job_names;
use rubus_vocabulary::result::{JobResult, Outcome, StallCause};
use rubus_vocabulary::spec::Suite;

use crate::error::BenchError;
use crate::event::Event;
use crate::region::Region;
use crate::rig::Rig;
use crate::scheduler::Scheduler;
use crate::sim::{Device, SimRig};
use crate::suites::{self, plan_writes};
use crate::target::Opened;

const SECOND_NS: u64 = 1_000_000_000;

/// What a simulated session gave.
struct Simulated {
    results: Vec<JobResult>,
    bytes_written: u64,
    region_bytes: u64,
    elapsed_s: f64,
    ended_by: Option<BenchError>,
    events: Vec<String>,
}

impl Simulated {
    fn job(&self, name: &str) -> &JobResult {
        let mut results = self.results.iter();
        results.find(|result| result.job == name).expect("the job ran")
    }
}

fn simulate(rig: SimRig, suite: &Suite, cancel: &AtomicBool) -> Simulated {
    simulate_on(rig, suite, cancel, Opened::pretended(None))
}

fn simulate_on(mut rig: SimRig, suite: &Suite, cancel: &AtomicBool, on: Opened) -> Simulated {
    let mut events = Vec::new();
    let regions = vec![Region::single(on, suite.region_bytes)];
    let mut scheduler = Scheduler::new(&mut rig, suite, regions, cancel, 0);
    let ended_by = scheduler.run_all(&mut |event: &Event<'_>| match event {
        Event::JobStarted { job, .. } => events.push(format!("start {}", job.name)),
        Event::JobFinished { result, .. } => events.push(format!("end {}", result.job)),
        Event::JobSkipped { job, reason, .. } => {
            events.push(format!("skip {}: {reason}", job.name));
        }
        Event::Preparing { what } => events.push((*what).to_string()),
        Event::Progress(progress) => {
            assert!(progress.left_s >= 0.0 && progress.elapsed_s >= 0.0);
        }
    });
    let region_bytes = scheduler.region_bytes();
    let (results, bytes_written) = scheduler.into_results();
    Simulated {
        results,
        bytes_written,
        region_bytes,
        elapsed_s: rig.now_ns() as f64 / 1e9,
        ended_by,
        events,
    }
}

fn quick() -> Suite {
    suites::quick("sim", 1 << 40, true).expect("there is room")
}

fn table(simulated: &Simulated) -> String {
    let mut text = String::new();
    for result in &simulated.results {
        let rate = &result.iops;
        let _ = write!(
            text,
            "{:17} {:10} {:8.1} [{:.1}, {:.1}] /s  p50 {} us  {:.2} s  {:?}",
            result.job,
            result.engine,
            rate.value,
            rate.low,
            rate.high,
            result.latency_ns.p50.unwrap_or(0) / 1000,
            result.elapsed_s,
            result.outcome,
        );
        for doubt in &result.doubts {
            let _ = write!(text, "  ({})", doubt.what());
        }
        text.push('\n');
    }
    let _ = write!(
        text,
        "{} bytes written, region {}, {:.1} s, ended by {:?}",
        simulated.bytes_written, simulated.region_bytes, simulated.elapsed_s, simulated.ended_by
    );
    text
}

/// An SD card of the better kind: 80 and 40 MB/s, 2500 reads and 700 writes per second, one command at a time.
fn card() -> Device {
    let mut device = Device::of_iops(2500.0, 700.0).with_rates(80e6, 40e6);
    device.commit_ns = 4e6;
    device
}

#[test]
fn sim_quick_finds_the_truth_of_a_card() {
    let simulated = simulate(SimRig::new(card()), &quick(), &AtomicBool::new(false));
    insta::assert_snapshot!(table(&simulated), @r"
    sequential-write  positional     36.2 [31.9, 37.3] /s  p50 27656 us  6.80 s  Converged
    sequential-read   positional     73.6 [61.2, 76.5] /s  p50 13565 us  3.30 s  Converged
    random-read       positional   2216.9 [1838.9, 2285.1] /s  p50 452 us  3.20 s  Converged
    random-read-deep  ring         2215.9 [1838.1, 2284.2] /s  p50 14483 us  3.20 s  Converged
    random-write      positional    653.4 [542.0, 673.7] /s  p50 1531 us  3.20 s  Converged
    random-write-deep ring          652.8 [541.5, 673.0] /s  p50 49020 us  3.20 s  Converged
    random-write-16k  positional    543.4 [450.8, 560.2] /s  p50 1843 us  3.20 s  Converged
    commit            positional    181.2 [150.3, 187.1] /s  p50 5472 us  3.20 s  Converged
    bystander-write   ring           36.2 [31.8, 37.3] /s  p50 110624 us  6.50 s  Converged
    bystander-read    positional      9.1 [7.8, 9.8] /s  p50 109576 us  6.50 s  Capped  (reached ±10 % instead of ±10 %)
    604209152 bytes written, region 268435456, 40.8 s, ended by None
    ");
    for result in &simulated.results {
        // A card does one thing at a time, so its truth is the sum of its service times.
        let (base, byte) = match result.direction {
            rubus_vocabulary::spec::Direction::Read => (1.0 / 2500.0, 1.0 / 80e6),
            rubus_vocabulary::spec::Direction::Write => (1.0 / 700.0, 1.0 / 40e6),
        };
        let commit = if result.commit { 4e-3 } else { 0.0 };
        let truth = 1.0 / (base + byte * f64::from(result.block_bytes) + commit);
        if !result.job.starts_with("bystander") {
            let share = result.iops.value / truth;
            assert!((0.97..1.03).contains(&share), "{}: {share}", result.job);
        }
    }
}

#[test]
fn sim_quick_keeps_its_promises_on_any_device() {
    let mut broken_flush = card();
    broken_flush.flush_ns = 2 * SECOND_NS;
    let devices = [
        card(),
        Device::of_iops(1e6, 1e6).with_rates(5e9, 5e9),
        Device::of_iops(10.0, 2.0).with_rates(500e3, 200e3),
        Device::of_iops(0.3, 0.3),
        broken_flush,
    ];
    for device in devices {
        let what = format!("{device:?}");
        let suite = quick();
        let slow = device.base_ns[1] > SECOND_NS as f64;
        let simulated = simulate(SimRig::new(device), &suite, &AtomicBool::new(false));
        assert!(simulated.bytes_written <= plan_writes(&suite, true), "{what}");
        assert!(simulated.bytes_written <= suites::MAX_WRITTEN, "{what}");
        assert_eq!(simulated.ended_by, None, "{what}");
        // One operation may be on its way at the end of each job.
        let limit_s = if slow { 120.0 } else { 90.0 };
        assert!(simulated.elapsed_s <= limit_s, "{} s on {what}", simulated.elapsed_s);
    }
}

#[test]
fn sim_a_slow_device_gets_a_small_region_and_says_so() {
    let device = Device::of_iops(100.0, 50.0).with_rates(5e6, 2e6);
    let simulated = simulate(SimRig::new(device), &quick(), &AtomicBool::new(false));
    assert!(simulated.region_bytes < 45 << 20, "{}", simulated.region_bytes);
    for result in &simulated.results {
        let small = |doubt: &Doubt| matches!(doubt, Doubt::SmallRegion { .. });
        assert_eq!(result.doubts.iter().filter(|doubt| small(doubt)).count(), 1);
    }
}

#[test]
fn sim_a_fast_device_is_judged_by_short_bins() {
    // The write budget of 80 MiB lasts 0.2 s here, far less than thirty bins of a tenth.
    let mut device = Device::of_iops(100e3, 100e3);
    device.jitter = 0.02;
    let simulated = simulate(SimRig::new(device), &quick(), &AtomicBool::new(false));
    let result = simulated.job(job_names::RANDOM_WRITE);
    assert!((0.15..0.25).contains(&result.elapsed_s), "{}", result.elapsed_s);
    assert!((98e3..102e3).contains(&result.iops.value), "{:?}", result.iops);
    let bin_s = result.series.as_ref().map(|series| series.bin_s);
    assert_eq!(bin_s, Some(0.005));
}

#[test]
fn sim_a_job_that_is_over_at_once_still_has_a_rate() {
    let mut suite = quick();
    suite.jobs.truncate(1);
    suite.region_bytes = 4 << 20;
    suite.jobs[0].stop.max_bytes = 4 << 20;
    // Four operations of 0.2 ms each.
    let device = Device::of_iops(5000.0, 5000.0);
    let simulated = simulate(SimRig::new(device), &suite, &AtomicBool::new(false));
    let result = simulated.job(job_names::SEQUENTIAL_WRITE);
    assert_eq!(result.operations, 4);
    assert!((4500.0..5500.0).contains(&result.iops.value), "{:?}", result.iops);
    assert_eq!(result.iops.high, f64::INFINITY);
    assert_eq!(result.outcome, Outcome::Inconclusive);
}

#[test]
fn sim_a_pause_is_found_timed_and_blamed_on_the_device() {
    let mut device = card();
    // During the sequential read, after the fill of some 7 s.
    device.pauses = vec![(12 * SECOND_NS, 640_000_000)];
    let simulated = simulate(SimRig::new(device), &quick(), &AtomicBool::new(false));
    let stalled: Vec<&JobResult> =
        simulated.results.iter().filter(|r| !r.stalls.is_empty()).collect();
    assert_eq!(stalled.len(), 1, "{}", table(&simulated));
    let (result, stall) = (stalled[0], stalled[0].stalls[0]);
    assert_eq!(stall.cause, StallCause::Device);
    // One operation was on its way when the pause began.
    assert!((640.0..660.0).contains(&stall.length_ms), "{stall:?}");
    let at_s = result.started_s + stall.start_s;
    assert!((11.98..12.01).contains(&at_s), "{at_s}");
}

#[test]
fn sim_a_failure_ends_the_session_and_keeps_what_there_is() {
    let mut device = card();
    device.fails_after = Some(3000);
    let simulated = simulate(SimRig::new(device), &quick(), &AtomicBool::new(false));
    let error = simulated.ended_by.clone().expect("it failed").to_string();
    assert!(error.contains("input/output error"), "{error}");
    assert_eq!(simulated.results.len(), 3, "{}", table(&simulated));
    let last = simulated.job(job_names::RANDOM_READ);
    assert_eq!(last.outcome, Outcome::Inconclusive);
    assert!(last.doubts.iter().any(|doubt| matches!(doubt, Doubt::TargetFailed { .. })));
    let first = simulated.job(job_names::SEQUENTIAL_WRITE);
    assert!(!first.doubts.iter().any(|doubt| matches!(doubt, Doubt::TargetFailed { .. })));
}

#[test]
fn sim_a_device_that_never_answers_is_given_up() {
    let mut device = card();
    device.hangs_after = Some(3000);
    let simulated = simulate(SimRig::new(device), &quick(), &AtomicBool::new(false));
    let error = simulated.ended_by.clone().expect("it hung").to_string();
    assert!(error.contains("no operation ended within 30 s"), "{error}");
    assert!(simulated.elapsed_s < 60.0, "{}", simulated.elapsed_s);
}

#[test]
fn sim_stopping_keeps_what_there_is_and_takes_a_tenth_of_a_second() {
    let cancel = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&cancel);
    let rig = SimRig::new(card()).at(15 * SECOND_NS, move || flag.store(true, Ordering::Relaxed));
    let simulated = simulate(rig, &quick(), &cancel);
    assert!(matches!(simulated.ended_by, Some(BenchError::Interrupted { .. })));
    assert!(simulated.elapsed_s < 15.2, "{}", simulated.elapsed_s);
    let last = simulated.results.last().expect("a job was running");
    assert!(last.doubts.contains(&Doubt::Interrupted));
    assert_eq!(last.outcome, Outcome::Inconclusive);
    assert!(simulated.results.len() >= 2);
}

#[test]
fn sim_stopping_does_not_wait_for_a_device_that_never_answers() {
    let mut device = card();
    device.hangs_after = Some(3000);
    let cancel = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&cancel);
    // The 3000th operation is reached in the third job, after some 12 s.
    let rig = SimRig::new(device).at(20 * SECOND_NS, move || flag.store(true, Ordering::Relaxed));
    let simulated = simulate(rig, &quick(), &cancel);
    assert!(matches!(simulated.ended_by, Some(BenchError::Interrupted { .. })));
    assert!(simulated.elapsed_s < 24.0, "{}", simulated.elapsed_s);
}

#[test]
fn sim_a_long_flush_counts_and_is_told() {
    let mut device = card();
    device.flush_ns = 3 * SECOND_NS;
    let simulated = simulate(SimRig::new(device), &quick(), &AtomicBool::new(false));
    let result = simulated.job(job_names::RANDOM_WRITE);
    let flushed = Doubt::LongFlush { seconds: 3.0 };
    assert!(result.doubts.contains(&flushed), "{:?}", result.doubts);
    let truth = 1e9 / (1e9 / 700.0 + 4096.0 / 40e6 * 1e9);
    // Three seconds of measuring are stretched to about six.
    assert!(result.iops.value < 0.7 * truth, "{:?}", result.iops);
    assert!(!simulated.job(job_names::COMMIT).doubts.contains(&flushed));
}

#[test]
fn sim_a_suite_of_reads_fills_the_file_before_it_begins() {
    let suite = suites::only_reads(&quick());
    let simulated = simulate(SimRig::new(card()), &suite, &AtomicBool::new(false));
    assert_eq!(simulated.events[0], "filling the test file");
    assert_eq!(simulated.bytes_written, suite.region_bytes);
    assert_eq!(simulated.results.len(), 3);
}

#[test]
fn sim_a_device_is_not_filled_before_it_is_read() {
    let suite = suites::only_reads(&quick());
    let device = Opened::pretended(Some(64 << 20));
    let cancel = AtomicBool::new(false);
    let simulated = simulate_on(SimRig::new(card()), &suite, &cancel, device);
    assert_eq!(simulated.bytes_written, 0);
    assert_eq!(simulated.region_bytes, 64 << 20);
}

#[test]
fn sim_the_same_session_twice_is_the_same() {
    let run = || {
        let simulated = simulate(SimRig::new(card()), &quick(), &AtomicBool::new(false));
        (simulated.results, simulated.events)
    };
    assert_eq!(run(), run());
}

#[test]
fn sim_late_jobs_are_left_out_when_the_time_is_over() {
    let mut suite = quick();
    suite.max_seconds = Some(12.0);
    let device = Device::of_iops(100.0, 50.0).with_rates(5e6, 2e6);
    let simulated = simulate(SimRig::new(device), &suite, &AtomicBool::new(false));
    assert!(simulated.elapsed_s < 12.5, "{}", simulated.elapsed_s);
    let skipped = |event: &&String| event.starts_with("skip ");
    assert!(simulated.events.iter().filter(skipped).count() > 0, "{:?}", simulated.events);
}
