//! The interval of a rate that includes its final flush holds the truth, which is the rate with a flush
//! of mean length: one flush is one sample. Scaling value and bounds alike, as if this flush were
//! the usual one, does not hold it.

use rubus_stats::estimate::Estimate;
use rubus_stats::rng::Rng;
use rubus_stats::series::Bin;
use rubus_stats::stop::{Decision, StopRule, StopSpec};

const TRIALS: u64 = 1000;
const BIN_S: f64 = 0.1;
const QUICK: StopSpec = StopSpec {
    relative_half_width: 0.10,
    min_seconds: 3.0,
    max_seconds: 8.0,
    min_bytes: 0,
    max_bytes: u64::MAX,
};

/// The shares of intervals that hold the truth: as reported, and with value and bounds scaled alike.
/// `shape` is that of the gamma distribution of the flush's length, whose mean is `mean_s`.
fn coverage(mean_s: f64, shape: u32) -> (f64, f64) {
    let (mut reported, mut scaled) = (0, 0);
    for seed in 0..TRIALS {
        let mut rng = Rng::from_seed(seed);
        let mut rule = StopRule::new(QUICK, BIN_S);
        loop {
            let ops = (1000.0 * (1.0 + 0.04 * rng.normal())).round() as u64;
            let bin = Bin { ops, bytes: ops * 4096, longest_gap_ns: 100_000_000 / ops.max(1) };
            if rule.push(bin) != Decision::Continue {
                break;
            }
        }
        let sum: f64 = (0..shape).map(|_| rng.exponential()).sum();
        let flush_s = mean_s * sum / f64::from(shape);
        let elapsed_s = rule.elapsed_s();
        let truth = 10_000.0 * elapsed_s / (elapsed_s + mean_s);
        let mut measured = rule.finish();
        let plain = measured.iops;
        measured.include_flush(flush_s);
        let holds = |estimate: Estimate| estimate.low <= truth && truth <= estimate.high;
        reported += u64::from(holds(measured.iops));
        scaled += u64::from(holds(plain.scaled(elapsed_s / (elapsed_s + flush_s))));
    }
    let share = |count: u64| count as f64 / TRIALS as f64;
    (share(reported), share(scaled))
}

#[test]
fn an_interval_with_a_flush_holds_the_rate_with_the_usual_flush() {
    // Flushes of a hundredth, a tenth and half of the time, which vary by half and a quarter.
    for mean_s in [0.04, 0.4, 2.0] {
        for shape in [4, 16] {
            let (reported, _) = coverage(mean_s, shape);
            assert!(reported >= 0.93, "{mean_s} s, shape {shape}: {reported}");
        }
    }
}

#[test]
fn scaling_value_and_bounds_alike_does_not_hold_it() {
    let (_, scaled) = coverage(2.0, 4);
    assert!(scaled < 0.6, "{scaled}");
}

#[test]
fn flushes_that_vary_more_than_assumed_are_a_limit() {
    // As `docs/explanation/statistics.md` says.
    let (reported, _) = coverage(2.0, 1);
    assert!((0.65..0.73).contains(&reported), "{reported}");
}
