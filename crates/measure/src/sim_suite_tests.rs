//! The suites beyond the checkup in virtual time, on devices whose truth is known.

use std::sync::atomic::AtomicBool;

use rubus_stats::cliff;
use rubus_vocabulary::finding::Finding;
use rubus_vocabulary::result::{JobResult, Outcome};
use rubus_vocabulary::spec::Suite;
use rubus_vocabulary::suite_jobs as name;

use crate::event::Event;
use crate::region::Region;
use crate::rig::Rig;
use crate::scheduler::Scheduler;
use crate::sim::{Device, SimRig, WriteCache};
use crate::suites::{self, LISTED, Room, plan_writes};
use crate::target::Opened;

const MIB: f64 = 1_048_576.0;

struct Simulated {
    results: Vec<JobResult>,
    bytes_written: u64,
    elapsed_s: f64,
    events: Vec<String>,
}

impl Simulated {
    fn job(&self, name: &str) -> &JobResult {
        let result = self.results.iter().find(|result| result.job == name);
        result.unwrap_or_else(|| panic!("no {name} in {:?}", self.events))
    }
}

/// Runs a suite with a budget on a file of our own.
fn simulate(device: Device, suite: &str, budget_bytes: Option<u64>) -> (Suite, Simulated) {
    let room = Room { budget_bytes, ..Room::new("sim", 1 << 40, true) };
    let suite = suites::by_name(suite, &room).expect("it is a suite");
    let suite = suite.expect("there is room");
    let mut rig = SimRig::new(device);
    let cancel = AtomicBool::new(false);
    let mut events = Vec::new();
    let regions = vec![Region::single(Opened::pretended(None), suite.region_bytes)];
    let mut scheduler = Scheduler::new(&mut rig, &suite, regions, &cancel, 0);
    let ended_by = scheduler.run_all(&mut |event: &Event<'_>| match event {
        Event::JobSkipped { job, reason, .. } => {
            events.push(format!("skip {}: {reason}", job.name));
        }
        Event::Preparing { what } => events.push((*what).to_string()),
        _ => {}
    });
    assert!(ended_by.is_none(), "{ended_by:?}");
    let (results, bytes_written) = scheduler.into_results();
    let simulated =
        Simulated { results, bytes_written, elapsed_s: rig.now_ns() as f64 / 1e9, events };
    (suite, simulated)
}

/// A card that reads at 80 and writes at 40 MB/s, 2500 reads and 700 writes per second.
fn card() -> Device {
    let mut device = Device::of_iops(2500.0, 700.0).with_rates(80e6, 40e6);
    device.commit_ns = 4e6;
    device
}

#[test]
fn every_suite_keeps_its_time_and_its_budget_on_a_card() {
    // Small files and stamps have sessions of their own.
    for listed in LISTED.iter().filter(|l| !["ram", "small-files", "capacity"].contains(&l.name)) {
        let (suite, simulated) = simulate(card(), listed.name, None);
        assert!(
            simulated.events.iter().all(|e| !e.starts_with("skip") || listed.name == "sustained"),
            "{}: {:?}",
            listed.name,
            simulated.events
        );
        let planned = plan_writes(&suite, true);
        assert!(simulated.bytes_written <= planned, "{}", listed.name);
        let most_s = listed.summary().expect("there is room").most_s;
        assert!(
            simulated.elapsed_s <= most_s * 1.05 + 5.0,
            "{}: {:.0} of {most_s:.0} s",
            listed.name,
            simulated.elapsed_s
        );
    }
}

#[test]
fn the_sweeps_are_quick_on_a_card() {
    let (_, depths) = simulate(card(), "queue-depth", None);
    assert!(depths.elapsed_s < 125.0, "{}", depths.elapsed_s);
    let (_, sizes) = simulate(card(), "block-size", None);
    assert!(sizes.elapsed_s < 170.0, "{}", sizes.elapsed_s);
    for result in depths.results.iter().chain(&sizes.results) {
        assert!(
            result.outcome == Outcome::Converged || result.block_bytes >= 1 << 20,
            "{}: {:?}",
            result.job,
            result.iops
        );
    }
}

#[test]
fn a_flush_at_the_end_counts_in_every_pass() {
    let mut device = card();
    device.jitter = 0.02;
    device.flush_ns = 800_000_000;
    let (suite, simulated) = simulate(device, "stream", None);
    let bytes = suite.region_bytes as f64;
    let each_s = bytes / MIB * (1.0 / 700.0) + bytes / 40e6 + 0.8;
    for job in [name::STREAM_WRITE, name::STREAM_ZEROS] {
        let result = simulated.job(job);
        let rate = result.bytes_per_second;
        assert!((rate.value * each_s / bytes - 1.0).abs() < 0.01, "{result:?}");
        assert!(rate.relative_half_width() < 0.05 && result.passes == Some(3));
        assert_eq!(result.outcome, Outcome::Converged);
        assert_eq!(result.doubts, []);
        assert!((result.elapsed_s - 3.0 * each_s).abs() < 0.1);
    }
    let read = simulated.job(name::STREAM_READ).bytes_per_second;
    let each_s = bytes / MIB / 2500.0 + bytes / 80e6;
    assert!((read.value * each_s / bytes - 1.0).abs() < 0.01);
}

#[test]
fn every_entry_of_a_journal_is_synced_and_its_index_is_not() {
    let (_, simulated) = simulate(card(), "journal", None);
    let truth =
        |block_bytes: f64, commit_s: f64| 1.0 / (1.0 / 700.0 + block_bytes / 40e6 + commit_s);
    for (job, truth) in [
        ("commit", truth(4096.0, 0.004)),
        ("commit-16k", truth(16_384.0, 0.004)),
        ("commit-64k", truth(65_536.0, 0.004)),
        ("random-write", truth(4096.0, 0.0)),
    ] {
        let result = simulated.job(job);
        assert!((result.iops.value / truth - 1.0).abs() < 0.03, "{result:?}");
        assert_eq!(result.commit, job != "random-write");
        assert_eq!(result.outcome, Outcome::Converged);
    }
}

#[test]
fn records_begin_with_a_fresh_file_that_is_whole_afterwards() {
    let (suite, simulated) = simulate(card(), "record", None);
    assert_eq!(simulated.results.len(), 18);
    // 4 KiB at 700 per second do not cover the file in the time that there is, and perhaps not the
    // last pass of another size: the rest is filled.
    let fills = simulated.events.iter().filter(|e| e.contains("filling"));
    assert!((1..=2).contains(&fills.count()), "{:?}", simulated.events);
    let small = simulated.job("write-4k");
    assert_eq!(small.passes, None);
    let truth = 1.0 / (1.0 / 700.0 + 4096.0 / 40e6);
    assert!((small.iops.value / truth - 1.0).abs() < 0.03, "{small:?}");
    let large = simulated.job("write-512k");
    assert!(large.passes.is_some_and(|passes| passes >= 3), "{large:?}");
    let truth = 1.0 / (1.0 / 700.0 + 524_288.0 / 40e6);
    assert!((large.iops.value / truth - 1.0).abs() < 0.03, "{large:?}");
    // Nothing was measured on a part of the file only.
    for result in &simulated.results {
        assert_eq!(result.doubts.iter().filter(|d| d.what().contains("test file is")).count(), 0);
    }
    assert!(simulated.bytes_written > 3 * suite.region_bytes);
}

/// A stick with a write cache of 600 MB: 50 MB/s, then 8.
fn stick() -> Device {
    let mut device = Device::of_iops(1e6, 1e6).with_rates(80e6, 50e6);
    device.cache = Some(WriteCache { bytes: 600e6, byte_ns: 1e9 / 8e6, empties: 10e6 });
    device
}

#[test]
fn a_long_write_ends_below_its_cliff_and_a_rest_gives_some_of_it_back() {
    let (suite, simulated) = simulate(stick(), "sustained", None);
    let first = simulated.job(name::SUSTAINED).clone();
    let series = first.series.as_ref().expect("a long write has a series");
    let fall = cliff::fall(series, MIB / 2.0).expect("it falls");
    assert!((fall.burst_bytes.value / 600e6 - 1.0).abs() < 0.02, "{fall:?}");
    assert!((fall.before.value / 50e6 - 1.0).abs() < 0.06, "{fall:?}");
    assert!((fall.after.value / 8e6 - 1.0).abs() < 0.03, "{fall:?}");
    // 600 MB at 50 MB/s, then not much longer than it takes to know the rate below.
    assert!((25.0..40.0).contains(&first.elapsed_s), "{}", first.elapsed_s);
    assert!(simulated.bytes_written < plan_writes(&suite, true) / 10);
    let mut run = rubus_fixtures::failed_run();
    run.results = simulated.results;
    let findings = rubus_verdict::findings::of(&run);
    let [Finding::Cliff(cliff)] = &findings[..] else {
        panic!("{findings:?}");
    };
    // 30 s at 10 MB/s is half of the cache.
    let recovery = cliff.recovery.expect("there was a second write");
    assert!((recovery.rest_s - 30.0).abs() < 1.0, "{recovery:?}");
    assert!((recovery.share - 0.5).abs() < 0.03, "{recovery:?}");
    assert_eq!(first.doubts, []);
}

#[test]
fn what_has_not_fallen_is_not_written_again() {
    let (_, simulated) = simulate(card(), "sustained", Some(2 << 30));
    assert_eq!(simulated.results.len(), 1);
    assert!(simulated.events.iter().any(|event| event.contains("nothing to recover from")));
    let mut run = rubus_fixtures::failed_run();
    run.results = simulated.results;
    let findings = rubus_verdict::findings::of(&run);
    let [Finding::Cliff(cliff)] = &findings[..] else {
        panic!("{findings:?}");
    };
    assert_eq!(cliff.burst_bytes, None);
    assert!(cliff.written_bytes > 1_000_000_000);
}
