//! Turns of a job become one result.

use rubus_fixtures as fixture;
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::job_names;
use rubus_vocabulary::merge::merge;
use rubus_vocabulary::result::{JobResult, Outcome, Stall};

/// Turns of the random reads with these rates.
fn turns(rates: &[f64]) -> Vec<JobResult> {
    let run = fixture::slow_sd_card_run();
    let like = run.job(job_names::RANDOM_READ).expect("it is there");
    let turn = |(i, rate): (usize, &f64)| JobResult {
        iops: Estimate::exact(*rate),
        bytes_per_second: Estimate::exact(rate * 4096.0),
        operations: *rate as u64,
        started_s: 10.0 * i as f64,
        elapsed_s: 1.0,
        ..like.clone()
    };
    rates.iter().enumerate().map(turn).collect()
}

#[test]
fn turns_become_their_mean_with_an_interval_from_their_spread() {
    let merged = merge(&turns(&[1000.0, 1100.0, 900.0, 1000.0]), 0.1).unwrap();
    assert!((merged.iops.value - 1000.0).abs() < 1e-9);
    // 3.182 · 81.65 / 2 = 129.9, a little more for the operations' own size.
    assert!((merged.iops.low - 870.1).abs() < 0.5, "{:?}", merged.iops);
    assert_eq!((merged.operations, merged.elapsed_s), (4000, 4.0));
    assert_eq!(merged.outcome, Outcome::Capped);
    assert!(matches!(merged.doubts[..], [Doubt::NotPrecise { .. }]));
    let bins = merged.latency_bins.unwrap();
    let one = turns(&[1000.0]).remove(0).latency_bins.unwrap();
    assert_eq!(bins.up_to_ns, one.up_to_ns);
    assert_eq!(bins.operations[0], 4 * one.operations[0]);
}

#[test]
fn one_turn_says_nothing_about_its_spread() {
    let merged = merge(&turns(&[1000.0]), 0.1).unwrap();
    assert_eq!((merged.iops.low, merged.iops.high), (0.0, f64::INFINITY));
    assert_eq!(merged.outcome, Outcome::Inconclusive);
    assert_eq!(merge(&[], 0.1), None);
}

#[test]
fn stalls_keep_their_moment_and_percentiles_their_middle() {
    let mut all = turns(&[1000.0, 1000.0, 1000.0]);
    all[2].stalls.push(Stall {
        start_s: 0.5,
        length_ms: 200.0,
        cause: rubus_vocabulary::result::StallCause::Device,
    });
    for (turn, p50) in all.iter_mut().zip([500, 900, 600]) {
        turn.latency_ns.p50 = Some(p50);
    }
    let merged = merge(&all, 0.1).unwrap();
    assert!((merged.stalls[0].start_s - 20.5).abs() < 1e-9);
    assert_eq!(merged.latency_ns.p50, Some(600));
    all[1].latency_ns.p99 = None;
    assert_eq!(merge(&all, 0.1).unwrap().latency_ns.p99, None);
}
