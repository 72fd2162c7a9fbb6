//! Who is to blame, on made-up samples.

use rubus_machine::parse::stat::CpuTimes;
use rubus_stats::Histogram;
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::result::{Stall, StallCause};
use rubus_vocabulary::spec::Direction;

use crate::attribution::{
    Effort, SlowMoments, cpu_doubts, cpu_shares, power_doubts, stalls, stopped_doubt,
    traffic_doubt, used_share,
};
use crate::mailbox::SlowSpan;
use crate::sample::{Sample, Traffic};

const MS: u64 = 1_000_000;

fn at(ms: u64) -> Sample {
    Sample { at_ns: ms * MS, ..Sample::default() }
}

fn reading(read_bytes: u64) -> Effort {
    Effort {
        direction: Direction::Read,
        is_commit: false,
        is_buffered: false,
        read_bytes,
        written_bytes: 0,
        bytes_per_second: 1e6,
    }
}

fn writing(written_bytes: u64) -> Effort {
    Effort { direction: Direction::Write, read_bytes: 0, written_bytes, ..reading(0) }
}

fn moved(ms: u64, read_bytes: u64, written_bytes: u64) -> Sample {
    Sample { traffic: Some(Traffic { read_bytes, written_bytes }), ..at(ms) }
}

/// A span in milliseconds.
fn span(start: u64, end: u64, waited: Option<u64>) -> SlowSpan {
    SlowSpan {
        start_ns: start * MS,
        end_ns: end * MS,
        is_gap: true,
        run_delay_ns: waited.map(|ms| ms * MS),
    }
}

fn latencies_of(ms: u64) -> Histogram {
    let mut latencies = Histogram::new();
    latencies.record_n(ms * MS, 1000);
    latencies
}

fn judge(gaps: &[SlowSpan], operations: &[SlowSpan], samples: &[Sample]) -> Vec<Stall> {
    let slow = SlowMoments {
        gaps,
        forgotten_gaps: None,
        operations,
        latencies: &latencies_of(1),
        usual_gap_ns: MS,
        is_single: operations.is_empty(),
        origin_ns: 0,
        from_ns: 0,
        window_ns: 10_000 * MS,
    };
    stalls(&slow, samples, &reading(0))
}

fn cause_of(gap: SlowSpan, samples: &[Sample]) -> StallCause {
    let found = judge(&[gap], &[], samples);
    assert_eq!(found.len(), 1);
    found[0].cause
}

#[test]
fn shares_are_of_all_cores_and_of_each() {
    let core = |user, idle| CpuTimes { user, idle, ..CpuTimes::default() };
    let first = Sample { cpus: vec![core(100, 100), core(50, 50), core(50, 50)], ..at(0) };
    let last = Sample { cpus: vec![core(150, 250), core(100, 100), core(50, 150)], ..at(1000) };
    let shares = cpu_shares(&first, &last);
    assert_eq!(shares.user, 0.25);
    assert_eq!(shares.per_core_busy, [0.5, 0.0]);
    assert_eq!(cpu_shares(&at(0), &at(1)).user, 0.0);
}

#[test]
fn waiting_theft_and_a_full_core_are_doubts_when_there_is_enough_of_them() {
    let mut shares = cpu_shares(&at(0), &at(1));
    assert_eq!(cpu_doubts(&shares, Some(0.04), 0.5), []);
    assert_eq!(cpu_doubts(&shares, None, 0.5), []);
    shares.steal = 0.2;
    let doubts = cpu_doubts(&shares, Some(0.3), 1.01);
    let expected = [
        Doubt::CpuStarved { share: 0.3 },
        Doubt::CpuStolen { share: 0.2 },
        Doubt::CpuBound { share: 1.0 },
    ];
    assert_eq!(doubts, expected);
}

#[test]
fn lanes_are_bound_by_the_processor_when_each_of_them_is() {
    let is_bound = |shares: &[f64], lanes| {
        let used = used_share(shares, 8, lanes);
        !cpu_doubts(&cpu_shares(&at(0), &at(1)), None, used).is_empty()
    };
    assert!(is_bound(&[0.97], 1));
    assert!(!is_bound(&[0.6], 1));
    // Together more than two cores, but none of them is full.
    assert!(!is_bound(&[0.6, 0.6, 0.6, 0.6], 4));
    assert!(!is_bound(&[0.99, 0.99, 0.99, 0.5], 4));
    assert!(is_bound(&[0.99, 0.93, 0.95, 0.97], 4));
    // Threads of one operation each: the busiest speaks.
    assert!(is_bound(&[0.99, 0.2], 1));
    // Fewer cores than lanes: all are full together.
    assert!(cpu_doubts(&cpu_shares(&at(0), &at(1)), None, used_share(&[0.5; 4], 2, 4)).len() == 1);
    assert!(used_share(&[], 8, 4) == 0.0);
}

#[test]
fn only_what_happened_during_the_job_is_held_against_it() {
    let bits = |ms, throttled| Sample { throttled: Some(throttled), ..at(ms) };
    // Remembered from before: nothing.
    assert_eq!(power_doubts(&[bits(0, 0x50000), bits(1, 0x50000)]), []);
    // Seen in a sample in the middle.
    let middle = power_doubts(&[bits(0, 0), bits(1, 0x1), bits(2, 0x10000)]);
    assert_eq!(middle, [Doubt::Undervoltage]);
    // Between two samples, but remembered since.
    let between = power_doubts(&[bits(0, 0x10000), bits(1, 0x50000)]);
    let throttled = Doubt::Throttled { what: "throttled".into() };
    assert_eq!(between, [throttled]);
    // With the temperature where it is known.
    let hot = Sample { hottest_millidegrees: Some(84_700), ..bits(1, 0x4) };
    assert_eq!(
        power_doubts(&[bits(0, 0), hot])[0].what(),
        "the clock was held down: throttled, 84 °C"
    );
    // The x86 counters.
    let counted = |ms, events| Sample { throttle_events: Some(events), ..at(ms) };
    let events = power_doubts(&[counted(0, 7), counted(1, 9)]);
    assert!(events[0].what().contains("2 throttling events"), "{events:?}");
    assert_eq!(power_doubts(&[counted(0, 7), counted(1, 7)]), []);
    assert_eq!(power_doubts(&[]), []);
}

#[test]
fn traffic_beyond_ours_is_that_of_others() {
    const MIB: u64 = 1 << 20;
    let doubt = |last, effort: &Effort| traffic_doubt(&moved(0, 0, 0), &last, effort);
    assert_eq!(doubt(moved(1, 100 * MIB, 0), &reading(100 * MIB)), None);
    let other = doubt(moved(1, 150 * MIB, 0), &reading(100 * MIB));
    let expected = Doubt::OtherTraffic { bytes: 50 * MIB, share: 50.0 / 150.0 };
    assert_eq!(other, Some(expected));
    // A filesystem adds to what we write; a journal of commits adds any amount.
    assert_eq!(doubt(moved(1, 0, 110 * MIB), &writing(100 * MIB)), None);
    assert!(doubt(moved(1, 0, 190 * MIB), &writing(100 * MIB)).is_some());
    let commits = Effort { is_commit: true, ..writing(MIB) };
    assert_eq!(doubt(moved(1, 0, 50 * MIB), &commits), None);
    // The page cache reads ahead for us.
    let buffered = Effort { is_buffered: true, ..reading(MIB) };
    assert_eq!(doubt(moved(1, 50 * MIB, 0), &buffered), None);
    // Without counters.
    assert_eq!(traffic_doubt(&at(0), &at(1), &reading(0)), None);
}

#[test]
fn a_gap_is_a_stall_when_it_is_far_beyond_the_rest() {
    let found = judge(&[span(100, 140, None), span(500, 900, None)], &[], &[]);
    assert_eq!(found.len(), 1, "40 ms are not enough: {found:?}");
    assert_eq!((found[0].start_s, found[0].length_ms), (0.5, 400.0));
}

#[test]
fn what_lies_in_the_warm_up_does_not_count() {
    let latencies = latencies_of(1);
    let slow = SlowMoments {
        gaps: &[span(100, 400, None), span(450, 700, None)],
        forgotten_gaps: None,
        operations: &[],
        latencies: &latencies,
        usual_gap_ns: MS,
        is_single: true,
        origin_ns: 0,
        from_ns: 500 * MS,
        window_ns: 10_000 * MS,
    };
    let found = stalls(&slow, &[], &reading(0));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].start_s, found[0].length_ms), (0.5, 200.0));
}

#[test]
fn operations_that_are_slow_in_turn_are_not_one_long_stall() {
    // Threads that starve one after the other while the queue as a whole goes on.
    let operations: Vec<SlowSpan> = (0..50).map(|i| span(i * 100, i * 100 + 180, None)).collect();
    let found = judge(&[], &operations, &[]);
    assert!(found.iter().all(|stall| stall.length_ms == 180.0), "{found:?}");
    assert!(found.len() <= 50);
}

#[test]
fn one_operation_that_all_others_overtake_is_told_once() {
    let operations = [span(1000, 3000, None), span(1010, 3000, None), span(5000, 5060, None)];
    let found = judge(&[], &operations, &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].length_ms, 2000.0);
}

#[test]
fn a_thread_that_waited_for_a_processor_is_to_blame_itself() {
    let samples = [at(0), at(2000)];
    assert_eq!(cause_of(span(500, 900, Some(390)), &samples), StallCause::CpuStarvation);
    assert_eq!(cause_of(span(500, 900, Some(40)), &samples), StallCause::Device);
    assert_eq!(cause_of(span(500, 900, None), &[]), StallCause::Device);
}

#[test]
fn a_stolen_processor_is_to_blame() {
    let stolen = |ms, steal| Sample {
        cpus: vec![
            CpuTimes::default(),
            CpuTimes { steal, idle: 100 - steal, ..CpuTimes::default() },
        ],
        ..at(ms)
    };
    let samples = [stolen(400, 0), stolen(1000, 80)];
    let mut first = samples[0].clone();
    first.cpus[1].idle = 0;
    assert_eq!(
        cause_of(span(500, 900, Some(0)), &[first, samples[1].clone()]),
        StallCause::CpuStarvation
    );
}

#[test]
fn throttling_at_that_moment_is_to_blame() {
    let bits = |ms, throttled| Sample { throttled: Some(throttled), ..at(ms) };
    let samples = [bits(0, 0), bits(250, 0), bits(700, 4), bits(1000, 0x40000)];
    assert_eq!(cause_of(span(500, 900, Some(0)), &samples), StallCause::Throttling);
    // At another moment it is not.
    let samples = [bits(0, 4), bits(250, 0x40000), bits(1000, 0x40000)];
    assert_eq!(cause_of(span(500, 900, Some(0)), &samples), StallCause::Device);
}

#[test]
fn others_that_kept_the_device_busy_are_to_blame() {
    const MIB: u64 = 1 << 20;
    let busy = [moved(450, 0, 0), moved(950, 0, 40 * MIB)];
    assert_eq!(cause_of(span(500, 900, Some(0)), &busy), StallCause::OtherWriters);
    let quiet = [moved(450, 0, 0), moved(950, 100_000, 0)];
    assert_eq!(cause_of(span(500, 900, Some(0)), &quiet), StallCause::Device);
}

/// Ctrl-Z, and `fg` after a while: neither the device nor another program did that.
#[test]
fn who_was_stopped_does_not_blame_the_device() {
    let stopped = |ms: u64, stopped_ms: u64, written: u64| Sample {
        stopped_ns: stopped_ms * MS,
        ..moved(ms, 0, written)
    };
    let samples = [stopped(400, 0, 0), stopped(5600, 5000, 100 << 20)];
    let gap = span(500, 5500, None);
    assert_eq!(cause_of(gap, &samples), StallCause::Stopped);
    assert_eq!(stopped_doubt(&samples[0], &samples[1]), Some(Doubt::Stopped { seconds: 5.0 }));
    let running = [stopped(400, 0, 0), stopped(5600, 0, 0)];
    assert_eq!(cause_of(gap, &running), StallCause::Device);
    assert_eq!(stopped_doubt(&running[0], &running[1]), None);
}
