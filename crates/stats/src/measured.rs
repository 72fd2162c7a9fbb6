//! What a job measured, as far as the series of its completions tells: its rates, how precise they
//! became, and what came after the last bin. When to stop is decided in `stop`.

use serde::{Deserialize, Serialize};

use super::drift;
use super::quantile;
use super::series::Series;
use super::stalls::Episode;
use crate::estimate::Estimate;

/// Relative half width up to which an interval that is wider than wanted still says something.
const USABLE_HALF_WIDTH: f64 = 0.25;
/// Shape of the gamma distribution that bounds how long flushes take on average, given one of them:
/// a standard deviation of half the mean. It is an assumption: one flush says nothing about it.
const FLUSH_SHAPE: f64 = 4.0;
/// A job stops as soon as its interval is narrow enough, so any flush makes it wider than wanted. An interval up to
/// this many times as wide still passes.
const FLUSH_TOLERANCE: f64 = 1.1;

/// How precise a job became, whatever ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The wanted precision was reached.
    Converged,
    /// The interval is wider than wanted and still says something (at most ±25 %).
    Capped,
    /// The interval is too wide to build on, or the job was cut short.
    Inconclusive,
}

impl Outcome {
    /// What an interval with a half width of `reached` (a share of the value) is called where
    /// `wanted` was asked for.
    pub fn of_width(reached: f64, wanted: f64) -> Self {
        match reached {
            width if width <= wanted => Outcome::Converged,
            width if width <= USABLE_HALF_WIDTH => Outcome::Capped,
            _ => Outcome::Inconclusive,
        }
    }
}

/// Why the rule ended a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// Its interval was narrow enough, long enough.
    Precise,
    /// Its seconds were over.
    Time,
    /// Its bytes were moved.
    Bytes,
}

/// What the series itself says against its figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Caveat {
    /// The interval is wider than wanted.
    NotPrecise {
        /// Reached half-width as a share of the value; infinite when there was too little to make an
        /// interval of.
        reached: f64,
        /// Wanted half-width as a share of the value.
        wanted: f64,
    },
    /// The rate changed during the job by more than its own noise.
    Drift {
        /// Rate in the last third over rate in the first third; infinite when nothing moved in the first.
        ratio: f64,
    },
}

/// The result of a job as far as the series of its completions tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Seconds that count: warm-up excluded.
    pub measured_s: f64,
    /// Seconds at the start that were left out.
    pub warm_up_s: f64,
    /// Operations in the measured time.
    pub operations: u64,
    /// Bytes in the measured time.
    pub bytes: u64,
    /// Bytes per second.
    pub bytes_per_second: Estimate,
    /// Operations per second.
    pub iops: Estimate,
    /// How far the interval of `iops` reaches by the noise alone, as a share of it ([`crate::window::Window::noise`]).
    pub noise: Option<f64>,
    /// Wanted half-width as a share of the value.
    pub wanted: f64,
    /// Operations in the time that was left out.
    pub warm_up_operations: u64,
    /// Why the rule ended the job; nothing where something else did.
    pub ended: Option<Ended>,
    /// How precise it became.
    pub outcome: Outcome,
    /// What the series itself says against them.
    pub caveats: Vec<Caveat>,
    /// Times without any completion far beyond the usual, in the measured time; their start is
    /// counted from the start of the job, within one bin.
    pub stalls: Vec<Episode>,
    /// The bytes of each bin, warm-up excluded.
    pub series: Series,
}

impl Measured {
    /// Counts what came after the last whole bin: `operations` that moved `bytes` in `seconds`. The
    /// rates become those of everything that was measured, with intervals as wide as before; without
    /// an upper bound where all of it came there.
    pub fn include_tail(&mut self, operations: u64, bytes: u64, seconds: f64) {
        self.measured_s += seconds.max(0.0);
        self.operations += operations;
        self.bytes += bytes;
        let moved = |estimate: Estimate, amount: u64| {
            let rate = amount as f64 / self.measured_s;
            if amount == 0 || !rate.is_finite() {
                estimate
            } else if estimate.value > 0.0 {
                estimate.scaled(rate / estimate.value)
            } else {
                Estimate::new(rate, 0.0, f64::INFINITY)
            }
        };
        self.iops = moved(self.iops, self.operations);
        self.bytes_per_second = moved(self.bytes_per_second, self.bytes);
    }

    /// Counts the final flush of `flush_s` seconds, in which nothing completed, as measured time. The
    /// bins stay as they are.
    ///
    /// - The flush writes what the warm-up left in caches, too. Operations that the warm-up did
    ///   beyond the measured rate went into a cache; the time to write them is theirs. The rest of
    ///   the flush is shared by warm-up and measured time according to their lengths.
    /// - One flush is one sample of how long flushes take. Its bounds are those of a gamma
    ///   distribution whose standard deviation is half its mean, joined with those of the rate like
    ///   independent errors. The job is judged by the wider interval.
    pub fn include_flush(&mut self, flush_s: f64) {
        if self.measured_s <= 0.0 || flush_s <= 0.0 || self.operations == 0 {
            return;
        }
        let rate = self.operations as f64 / self.measured_s;
        let cached = (self.warm_up_operations as f64 - rate * self.warm_up_s).max(0.0);
        let of_both_s = (flush_s - cached / rate).max(0.0);
        let counted_s = of_both_s * self.measured_s / (self.measured_s + self.warm_up_s);
        let whole_s = self.measured_s + counted_s;
        let rate_if_it_took = |factor: f64| whole_s / (self.measured_s + counted_s * factor);
        // 2 k x / chi-square(2 k) bounds the mean of a gamma distribution of shape k.
        let bound = |p: f64| FLUSH_SHAPE / quantile::gamma(p, FLUSH_SHAPE);
        let down = 1.0 - rate_if_it_took(bound(0.025));
        let up = rate_if_it_took(bound(0.975)) - 1.0;
        let with_flush = |rate: Estimate| widened(rate.scaled(self.measured_s / whole_s), down, up);
        self.bytes_per_second = with_flush(self.bytes_per_second);
        self.iops = with_flush(self.iops);
        self.measured_s = whole_s;
        self.judge_width();
    }

    /// Widens the intervals by what a level that changes too slowly to be seen may have done ([`drift::unseen_share`]), joined like
    /// independent errors. It comes last, and neither ends a job nor judges it: no length of a job that anybody would wait for makes
    /// this small, and it says nothing against the measurement.
    pub fn allow_for_slow_changes(&mut self) {
        let slow = drift::unseen_share(self.measured_s);
        self.iops = widened(self.iops, slow, slow);
        self.bytes_per_second = widened(self.bytes_per_second, slow, slow);
    }

    /// Judges the job by the interval that it has with its flush.
    fn judge_width(&mut self) {
        let (reached, wanted) = (self.iops.relative_half_width(), self.wanted);
        let passes = wanted * FLUSH_TOLERANCE;
        self.outcome = Outcome::of_width(reached, passes);
        self.caveats.retain(|caveat| !matches!(caveat, Caveat::NotPrecise { .. }));
        if reached > passes {
            self.caveats.insert(0, Caveat::NotPrecise { reached, wanted });
        }
    }
}

/// A rate whose interval reaches further by these shares of it, joined with its own reach like independent errors.
fn widened(rate: Estimate, down: f64, up: f64) -> Estimate {
    if rate.value <= 0.0 {
        return rate;
    }
    let below = (1.0 - rate.low / rate.value).hypot(down).min(1.0);
    let above = (rate.high / rate.value - 1.0).hypot(up);
    Estimate::new(rate.value, rate.value * (1.0 - below), rate.value * (1.0 + above))
}

#[cfg(test)]
mod tests {
    use super::super::series::Bin;
    use super::super::stop::{Decision, StopRule, StopSpec};
    use super::*;

    fn after(first: u64, then: u64) -> Measured {
        let spec = StopSpec {
            relative_half_width: 0.10,
            min_seconds: 3.0,
            max_seconds: 8.0,
            min_bytes: 0,
            max_bytes: u64::MAX,
        };
        let mut rule = StopRule::new(spec, 0.1);
        for i in 0.. {
            let ops = if i < 5 { first } else { then };
            let bin = Bin { ops, bytes: ops * 4096, longest_gap_ns: 100_000_000 / ops.max(1) };
            if rule.push(bin) != Decision::Continue {
                break;
            }
        }
        rule.finish()
    }

    #[test]
    fn a_change_too_slow_to_be_seen_widens_both_ends_and_judges_nothing() {
        let mut measured = after(1000, 1000);
        let before = measured.clone();
        measured.allow_for_slow_changes();
        assert_eq!(measured.outcome, before.outcome);
        assert_eq!(measured.iops.value, before.iops.value);
        let up = |rate: Estimate| rate.high / rate.value - 1.0;
        let slow = 0.055 / before.measured_s.sqrt();
        assert!((up(measured.iops) - up(before.iops).hypot(slow)).abs() < 1e-12);
        assert!(measured.bytes_per_second.low < before.bytes_per_second.low);
        let mut nothing = after(0, 0);
        let before = nothing.iops;
        nothing.allow_for_slow_changes();
        assert_eq!(nothing.iops, before);
    }

    #[test]
    fn what_came_only_after_the_last_whole_bin_has_a_rate_without_a_bound() {
        let mut measured = after(0, 0);
        let before_s = measured.measured_s;
        measured.include_tail(2, 8192, 0.05);
        let expected = 2.0 / (before_s + 0.05);
        assert!((measured.iops.value - expected).abs() < 1e-9, "{:?}", measured.iops);
        assert_eq!((measured.iops.low, measured.iops.high), (0.0, f64::INFINITY));
        assert!((measured.bytes_per_second.value - 4096.0 * expected).abs() < 1e-6);
        assert_eq!(measured.outcome, Outcome::Inconclusive);
        let mut nothing = after(0, 0);
        nothing.include_tail(0, 0, 0.05);
        assert_eq!(nothing.iops.value, 0.0);
    }

    #[test]
    fn a_flush_is_measured_time() {
        let mut measured = after(1000, 1000);
        // A flush of 0.37 s after 0.5 s of warm-up and 3.2 s of measuring.
        measured.include_flush(0.37);
        assert!((measured.measured_s - 3.52).abs() < 1e-9);
        let rate = measured.operations as f64 / measured.measured_s;
        assert!((measured.iops.value - rate).abs() < 1e-6);
        let bytes = measured.bytes_per_second;
        assert!((bytes.value / measured.iops.value - 4096.0).abs() < 1e-6);
        let before = measured.clone();
        measured.include_flush(0.0);
        assert_eq!(measured, before);
    }

    #[test]
    fn what_the_warm_up_left_in_a_cache_is_its_own_time() {
        // 20 000 operations into a cache in the warm-up, which take 1.5 s at the later rate.
        let mut measured = after(4000, 1000);
        measured.include_flush(1.5);
        assert!((measured.iops.value - 10_000.0).abs() < 1e-6, "{measured:?}");
        // A short flush cannot have written more than its time allows.
        let mut measured = after(4000, 1000);
        measured.include_flush(0.001);
        assert!((measured.iops.value - 10_000.0).abs() < 1e-6);
    }

    #[test]
    fn a_long_flush_makes_a_settled_job_imprecise() {
        // A short one is let pass, though the rule stopped just when the interval was narrow enough.
        let mut short = after(1000, 1000);
        short.iops = Estimate::new(10_000.0, 9_000.0, 11_000.0);
        short.include_flush(0.01);
        assert!(short.iops.relative_half_width() > 0.1);
        assert_eq!((short.outcome, short.caveats), (Outcome::Converged, vec![]));
        let mut measured = after(1000, 1000);
        assert_eq!((measured.outcome, &measured.caveats[..]), (Outcome::Converged, &[][..]));
        measured.include_flush(0.37);
        assert_eq!(measured.outcome, Outcome::Capped);
        assert!(
            matches!(measured.caveats[..], [Caveat::NotPrecise { reached, .. }] if reached > 0.1)
        );
        measured.include_flush(3.0);
        assert_eq!(measured.outcome, Outcome::Inconclusive);
        assert_eq!(measured.caveats.len(), 1);
    }
}
