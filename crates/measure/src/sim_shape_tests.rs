//! Shaped jobs in virtual time: rates, mixes, ends and groups on devices whose truth is known.

use std::sync::atomic::AtomicBool;

use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::result::{JobResult, Outcome};
use rubus_vocabulary::spec::{
    Content, Direction, Durability, Ends, FlushEvery, Job, Limit, Pattern, Shape, Suite, Think,
};

use crate::error::BenchError;
use crate::event::Event;
use crate::region::Region;
use crate::rig::Rig;
use crate::scheduler::Scheduler;
use crate::sim::{Device, SimRig};
use crate::target::Opened;

const MIB: u64 = 1 << 20;

struct Simulated {
    results: Vec<JobResult>,
    skipped: Vec<String>,
    elapsed_s: f64,
    bytes_written: u64,
    ended_by: Option<BenchError>,
}

impl Simulated {
    fn only(&self) -> &JobResult {
        assert_eq!(self.results.len(), 1, "{:?} {:?}", self.skipped, self.ended_by);
        &self.results[0]
    }
}

/// Runs the jobs on a device of 64 MiB.
fn simulate(device: Device, jobs: Vec<Job>) -> Simulated {
    let suite = Suite {
        name: "shapes".into(),
        region_bytes: 64 * MIB,
        content: Content::Incompressible,
        seed: 5,
        max_seconds: None,
        jobs,
    };
    let mut rig = SimRig::new(device);
    let cancel = AtomicBool::new(false);
    let regions = vec![Region::single(Opened::pretended(Some(64 * MIB)), suite.region_bytes)];
    let mut skipped = Vec::new();
    let mut scheduler = Scheduler::new(&mut rig, &suite, regions, &cancel, 0);
    let ended_by = scheduler.run_all(&mut |event: &Event<'_>| {
        if let Event::JobSkipped { reason, .. } = event {
            skipped.push(reason.clone());
        }
    });
    let (results, bytes_written) = scheduler.into_results();
    Simulated { results, skipped, elapsed_s: rig.now_ns() as f64 / 1e9, bytes_written, ended_by }
}

/// A job of 4 KiB at depth 1 for `seconds`.
fn timed(direction: Direction, pattern: Pattern, seconds: f64, shape: Shape) -> Job {
    let mut job = Job::new("shaped", direction, pattern, 4096, 1);
    job.stop.min_seconds = seconds;
    job.stop.max_seconds = seconds;
    job.shape = Some(Box::new(Shape { time_based: true, ..shape }));
    job
}

fn limited(iops: f64) -> [Limit; 2] {
    [Limit { iops: Some(iops), bytes_per_second: None }; 2]
}

fn near(value: f64, truth: f64, share: f64) -> bool {
    (value / truth - 1.0).abs() <= share
}

#[test]
fn sim_a_limited_rate_is_kept_and_waiting_is_no_latency() {
    for depth in [1, 8] {
        let shape = Shape { limits: limited(200.0), ..Shape::default() };
        let mut job = timed(Direction::Read, Pattern::Random, 20.0, shape);
        job.queue_depth = depth;
        let simulated = simulate(Device::of_iops(2500.0, 700.0), vec![job]);
        let result = simulated.only();
        assert!(near(result.iops.value, 200.0, 0.002), "{:?}", result.iops);
        assert!(near(result.iops.low, 200.0, 0.1), "{:?}", result.iops);
        // 0.4 ms of service, not the 5 ms between two operations.
        let p50_ns = result.latency_ns.p50.expect("there were many");
        assert!(near(p50_ns as f64, 400e3, 0.1), "{p50_ns}");
        assert_eq!(result.stalls, []);
        assert_eq!(result.outcome, Outcome::Converged, "{:?}", result.doubts);
    }
}

/// 100 reads are due per second, each takes 1 ms, and once in ten seconds the device does nothing for one. A hundred and ten of
/// a thousand wait for that, the k-th one 1000 - 9 k ms: so says arithmetic. The latencies know of one of them.
#[test]
fn sim_a_stall_counts_with_all_that_was_due_in_it() {
    for depth in [1, 8] {
        let shape = Shape { limits: limited(100.0), ..Shape::default() };
        let mut job = timed(Direction::Read, Pattern::Random, 60.0, shape);
        job.queue_depth = depth;
        let mut device = Device::of_iops(1000.0, 700.0);
        device.jitter = 0.0;
        device.pauses =
            (0..6).map(|n| (5_000_000_000 + n * 10_000_000_000, 1_000_000_000)).collect();
        let simulated = simulate(device, vec![job]);
        let result = simulated.only();
        let ms = |ns: Option<u64>| ns.expect("there were many") as f64 / 1e6;
        let response = result.response_ns.expect("it has a limit");
        assert!(near(ms(response.p50), 1.0, 0.02), "{response:?}");
        // Of 1000 the worst 100 and the worst 10.
        assert!(near(ms(response.p90), 1000.0 - 9.0 * 100.0, 0.15), "{response:?}");
        assert!(near(ms(response.p99), 1000.0 - 9.0 * 10.0, 0.03), "{response:?}");
        assert!(near(ms(response.max), 1001.0, 0.01), "{response:?}");
        // Those that were in flight at once are all that the latencies show.
        if depth == 1 {
            assert!(near(ms(result.latency_ns.p99), 1.0, 0.02), "{result:?}");
        }
        assert!(ms(result.latency_ns.p90) < 10.0, "{:?}", result.latency_ns);
    }
}

/// Without a limit nothing is due at a time of its own; of a mix only the kind that has one.
#[test]
fn sim_responses_are_of_what_has_a_limit() {
    let device = || Device::of_iops(2500.0, 2500.0);
    let free = timed(Direction::Read, Pattern::Random, 5.0, Shape::default());
    assert_eq!(simulate(device(), vec![free]).only().response_ns, None);
    let shape = Shape {
        read_percent: Some(50),
        limits: [limited(100.0)[0], Limit::default()],
        ..Shape::default()
    };
    let mix = timed(Direction::Read, Pattern::Random, 20.0, shape);
    let simulated = simulate(device(), vec![mix]);
    let of = |direction| {
        let mut results = simulated.results.iter();
        let result = results.find(|result| result.direction == direction);
        result.expect("both kinds").response_ns
    };
    assert_eq!(of(Direction::Write), None);
    let reads = of(Direction::Read).expect("it has a limit");
    // Writes of the mix are before it now and then, and the device keeps up with both.
    assert!(reads.p99.is_some_and(|p99| p99 < 10_000_000), "{reads:?}");
}

#[test]
fn sim_a_limit_beyond_the_device_is_the_device() {
    let shape = Shape { limits: limited(5000.0), ..Shape::default() };
    let job = timed(Direction::Read, Pattern::Random, 10.0, shape);
    let simulated = simulate(Device::of_iops(2500.0, 700.0), vec![job]);
    assert!(near(simulated.only().iops.value, 2500.0, 0.02));
}

#[test]
fn sim_one_entry_per_second_is_no_row_of_stalls() {
    let shape = Shape { limits: limited(1.0), ..Shape::default() };
    let mut job = timed(Direction::Write, Pattern::Sequential, 60.0, shape);
    job.durability = Durability::EachInPlace;
    let mut device = Device::of_iops(2500.0, 700.0);
    device.commit_ns = 4e6;
    let simulated = simulate(device, vec![job]);
    let result = simulated.only();
    assert!(near(result.iops.value, 1.0, 0.03), "{:?}", result.iops);
    assert_eq!(result.stalls, []);
    assert!(result.commit);
    let p50_ns = result.latency_ns.p50.expect("there were sixty");
    assert!(near(p50_ns as f64, 4e6 + 1e9 / 700.0, 0.1), "{p50_ns}");
}

/// Five seconds per read: the one that is done ends after the last whole bin of a job of one read, and
/// after the end of a job of two seconds.
#[test]
fn sim_an_operation_that_was_done_has_a_rate() {
    let slow = || Device::of_iops(0.2, 0.2);
    let mut of_one = timed(Direction::Read, Pattern::Random, 60.0, Shape::default());
    let shape = Shape { max_operations: Some(1), ..Shape::default() };
    of_one.shape = Some(Box::new(shape));
    let of_two_seconds = timed(Direction::Read, Pattern::Random, 2.0, Shape::default());
    for job in [of_one, of_two_seconds] {
        let simulated = simulate(slow(), vec![job]);
        let result = simulated.only();
        assert_eq!(result.operations, 1);
        assert!(near(result.iops.value, 0.2, 0.1), "{:?}", result.iops);
        let bytes_per_operation = result.bytes_per_second.value / result.iops.value;
        assert!(near(bytes_per_operation, 4096.0, 1e-9));
        assert_eq!((result.iops.low, result.iops.high), (0.0, f64::INFINITY));
        assert_eq!(result.outcome, Outcome::Inconclusive);
    }
}

#[test]
fn sim_a_pause_of_a_minute_is_not_a_device_that_hangs() {
    let shape = Shape {
        think: Some(Think { microseconds: 60_000_000, every: 1000, spin_microseconds: 0 }),
        ..Shape::default()
    };
    let job = timed(Direction::Read, Pattern::Random, 200.0, shape);
    let simulated = simulate(Device::of_iops(1000.0, 1000.0), vec![job]);
    assert_eq!(simulated.ended_by, None);
    let result = simulated.only();
    assert_eq!(result.stalls, []);
    assert!((3000..=4000).contains(&result.operations), "{}", result.operations);
}

#[test]
fn sim_a_device_that_hangs_in_a_limited_job_is_still_given_up() {
    let shape = Shape { limits: limited(100.0), ..Shape::default() };
    let job = timed(Direction::Read, Pattern::Random, 200.0, shape);
    let mut device = Device::of_iops(1000.0, 1000.0);
    device.hangs_after = Some(500);
    let simulated = simulate(device, vec![job]);
    let error = simulated.ended_by.expect("it hangs").to_string();
    assert!(error.contains("no operation ended within 30 s"), "{error}");
    assert!(simulated.elapsed_s < 100.0, "{}", simulated.elapsed_s);
}

#[test]
fn sim_a_stall_in_a_limited_job_is_found() {
    let shape = Shape { limits: limited(200.0), ..Shape::default() };
    let job = timed(Direction::Read, Pattern::Random, 20.0, shape);
    let mut device = Device::of_iops(2500.0, 700.0);
    device.pauses = vec![(10_000_000_000, 700_000_000)];
    let simulated = simulate(device, vec![job]);
    let result = simulated.only();
    assert_eq!(result.stalls.len(), 1, "{:?}", result.stalls);
    assert!((690.0..710.0).contains(&result.stalls[0].length_ms));
    // What was due meanwhile is made up for.
    assert!(near(result.iops.value, 200.0, 0.01), "{:?}", result.iops);
}

#[test]
fn sim_a_mix_gives_two_results_with_their_own_figures() {
    for depth in [1, 16] {
        let shape = Shape { read_percent: Some(70), ..Shape::default() };
        let mut job = timed(Direction::Read, Pattern::Random, 20.0, shape);
        job.queue_depth = depth;
        let simulated = simulate(Device::of_iops(2500.0, 700.0), vec![job]);
        assert_eq!(simulated.results.len(), 2);
        let (reads, writes) = (&simulated.results[0], &simulated.results[1]);
        assert_eq!((reads.direction, writes.direction), (Direction::Read, Direction::Write));
        assert_eq!(reads.job, writes.job);
        let all = (reads.operations + writes.operations) as f64;
        let deviation = (all * 0.7 * 0.3).sqrt();
        assert!((reads.operations as f64 - 0.7 * all).abs() < 4.0 * deviation);
        // 0.7 reads of 0.4 ms and 0.3 writes of 1.43 ms per operation.
        let truth = 1.0 / (0.7 / 2500.0 + 0.3 / 700.0);
        let both = reads.iops.value + writes.iops.value;
        assert!(near(both, truth, 0.03), "{both} instead of {truth}");
        if depth == 1 {
            let p50 = |result: &JobResult| result.latency_ns.p50.expect("there were many") as f64;
            assert!(near(p50(reads), 1e9 / 2500.0, 0.05));
            assert!(near(p50(writes), 1e9 / 700.0, 0.05));
        }
        assert_eq!(reads.bytes_per_second.value, 4096.0 * reads.iops.value);
        assert!(simulated.bytes_written > writes.operations * 4096);
        assert!(reads.outcome == Outcome::Converged && writes.outcome == Outcome::Converged);
    }
}

#[test]
fn sim_sizes_that_differ_are_counted_in_bytes() {
    let shape = Shape {
        sizes: [Some(rubus_vocabulary::spec::Sizes::Split(vec![(4096, 50), (65_536, 50)])), None],
        ..Shape::default()
    };
    let job = timed(Direction::Read, Pattern::Random, 20.0, shape);
    let device = Device::of_iops(1e5, 1e5).with_rates(100e6, 100e6);
    let simulated = simulate(device, vec![job]);
    let result = simulated.only();
    let mean = (4096.0 + 65_536.0) / 2.0;
    assert!(near(f64::from(result.block_bytes), mean, 0.02), "{}", result.block_bytes);
    let truth = mean / (1e-5 + mean / 100e6);
    assert!(near(result.bytes_per_second.value, truth, 0.02), "{:?}", result.bytes_per_second);
    assert_eq!(result.moved_bytes(), result.bytes.expect("sizes differ"));
}

#[test]
fn sim_a_job_without_a_time_ends_when_its_region_is_covered() {
    let shape =
        Shape { span_bytes: Some(MIB), visits_once: true, ramp_s: Some(0.0), ..Shape::default() };
    let mut job = timed(Direction::Read, Pattern::Random, 1e6, shape);
    if let Some(shape) = &mut job.shape {
        shape.time_based = false;
    }
    let simulated = simulate(Device::of_iops(100.0, 100.0), vec![job]);
    let result = simulated.only();
    assert!((2.3..2.8).contains(&simulated.elapsed_s), "{}", simulated.elapsed_s);
    assert!((250..=256).contains(&result.operations), "{}", result.operations);
    assert_eq!(result.latency_ns.p50.map(|ns| ns / 1_000_000), Some(10));
}

#[test]
fn sim_a_ramp_does_not_count_and_comes_on_top() {
    let shape = Shape { ramp_s: Some(5.0), ..Shape::default() };
    let job = timed(Direction::Read, Pattern::Random, 10.0, shape);
    let simulated = simulate(Device::of_iops(1000.0, 1000.0), vec![job]);
    assert!(near(simulated.elapsed_s, 15.0, 0.02), "{}", simulated.elapsed_s);
    let result = simulated.only();
    assert!(near(result.elapsed_s, 10.0, 0.02), "{}", result.elapsed_s);
    assert!(near(result.operations as f64, 10_000.0, 0.02), "{}", result.operations);
}

#[test]
fn sim_jobs_of_a_group_end_by_themselves_or_with_any() {
    let member = |name: &str, seconds| {
        let mut job = timed(Direction::Read, Pattern::Random, seconds, Shape::default());
        job.name = name.into();
        job
    };
    let group = |ends| {
        let mut first = member("first", 4.0);
        first.ends = ends;
        first.beside = vec![member("second", 9.0), member("third", 6.0)];
        first.beside[1].rest_before_s = 2.0;
        simulate(Device::of_iops(1000.0, 1000.0), vec![first])
    };
    let alone = group(Ends::EachByItself);
    let lasted: Vec<f64> = alone.results.iter().map(|r| r.elapsed_s.round()).collect();
    assert_eq!(lasted, [4.0, 9.0, 6.0].map(|s| s - 0.5_f64).map(f64::round));
    assert!(near(alone.results[2].started_s, 2.0, 0.01));
    assert!(near(alone.elapsed_s, 9.0, 0.02), "{}", alone.elapsed_s);
    let any = group(Ends::WithAny);
    assert!(near(any.elapsed_s, 4.0, 0.03), "{}", any.elapsed_s);
}

#[test]
fn sim_copies_are_reported_together() {
    let shape = Shape { copies: 4, ..Shape::default() };
    let job = timed(Direction::Read, Pattern::Random, 10.0, shape);
    let mut device = Device::of_iops(500.0, 500.0);
    device.servers = 2;
    let simulated = simulate(device, vec![job]);
    let result = simulated.only();
    assert_eq!(result.copies, Some(4));
    assert!(near(result.iops.value, 1000.0, 0.02), "{:?}", result.iops);
    let p50_ns = result.latency_ns.p50.expect("there were many") as f64;
    assert!(near(p50_ns, 4e6, 0.1), "{p50_ns}");
}

#[test]
fn sim_a_flush_is_part_of_the_write_before_it() {
    let shape = Shape {
        flush_every: Some(FlushEvery { writes: 10, metadata_too: false }),
        ..Shape::default()
    };
    for depth in [1, 8] {
        let mut job = timed(Direction::Write, Pattern::Random, 20.0, shape.clone());
        job.queue_depth = depth;
        let mut device = Device::of_iops(1000.0, 1000.0);
        device.flush_ns = 20_000_000;
        let simulated = simulate(device, vec![job]);
        let result = simulated.only();
        // Ten writes of 1 ms and a flush of 20 ms.
        assert!(near(result.iops.value, 10.0 / 0.030, 0.03), "{:?}", result.iops);
        assert!(!result.commit);
        let max_ns = result.latency_ns.max.expect("there were many") as f64;
        let queue_ns = f64::from(depth) * 1e6;
        assert!(max_ns > 20e6 && max_ns < 22e6 + queue_ns, "{max_ns}");
    }
}

#[test]
fn sim_what_cannot_be_run_is_left_out_with_the_reason() {
    let shape = Shape { offset_bytes: 64 * MIB, ..Shape::default() };
    let job = timed(Direction::Read, Pattern::Random, 5.0, shape);
    let nowhere = Shape { file: Some(3), ..Shape::default() };
    let lost = timed(Direction::Read, Pattern::Random, 5.0, nowhere);
    let simulated = simulate(Device::of_iops(1000.0, 1000.0), vec![job, lost]);
    insta::assert_snapshot!(simulated.skipped.join("\n"), @r"
    its 67108864 bytes hold no block of 4096 bytes from byte 67108864 on
    there is no file number 3 in the session
    ");
}

#[test]
fn sim_ten_hours_end_with_a_series_of_bounded_length() {
    let shape = Shape { limits: limited(20.0), ..Shape::default() };
    let job = timed(Direction::Read, Pattern::Random, 36_000.0, shape);
    let mut device = Device::of_iops(1000.0, 1000.0);
    device.pauses = vec![(3_000_000_000_000, 400_000_000), (30_000_000_000_000, 900_000_000)];
    let simulated = simulate(device, vec![job]);
    let result = simulated.only();
    assert!(near(result.iops.value, 20.0, 0.001), "{:?}", result.iops);
    assert!(near(result.elapsed_s, 36_000.0, 0.002), "{}", result.elapsed_s);
    let series = result.series.as_ref().expect("there is one");
    assert!((1000..4000).contains(&series.bytes.len()), "{}", series.bytes.len());
    let lengths: Vec<f64> = result.stalls.iter().map(|stall| stall.length_ms.round()).collect();
    assert_eq!(lengths.len(), 2, "{lengths:?}");
    let drift = |doubt: &Doubt| matches!(doubt, Doubt::Drift { .. });
    assert!(!result.doubts.iter().any(drift));
}
