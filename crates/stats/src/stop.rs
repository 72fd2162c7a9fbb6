//! When to stop: the rule that is fed bin by bin and decides that enough has been measured.
//!
//! Stopping as soon as the interval looks narrow is the classical way to be wrong: runs that
//! happen to miss the stalls look precise first. So precision must hold in three checks in a row,
//! after a minimum time and number of bytes, and once a stall was seen not before eight of them
//! were. What the rule then reports also bounds the stalls that it may have missed. How often the
//! intervals hold the truth is simulated in `tests/simulated_coverage.rs`; `docs/explanation/statistics.md` has the
//! table.

use serde::{Deserialize, Serialize};

use super::drift;
use super::interval;
pub use super::measured::{Caveat, Ended, Measured, Outcome};
use super::record::{Record, View};
use super::series::{Bin, Series};
use super::stalls::Episode;
use super::window::{ENOUGH_STALLS, Window};
use crate::estimate::Estimate;

/// Checks in a row that must find the wanted precision.
const CHECKS_IN_A_ROW: u32 = 3;
/// At the start of a job this long is always warm-up, in seconds.
const WARM_UP_S: f64 = 0.5;
/// The first change of level is looked for once, when this much has been seen, in seconds ...
const WARM_UP_JUDGED_S: f64 = 3.0;
/// ... and ends the warm-up if it comes within this time; a later one is no warm-up.
const MAX_WARM_UP_S: f64 = 2.0;

/// When a job has been measured long enough.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StopSpec {
    /// Wanted half-width of the 95 % interval as a share of the value: 0.10 is ±10 %.
    pub relative_half_width: f64,
    /// Never stop on precision before this many seconds of measuring.
    pub min_seconds: f64,
    /// Stop here whatever the precision ("capped" or "inconclusive").
    pub max_seconds: f64,
    /// Never stop on precision before this many bytes have moved.
    pub min_bytes: u64,
    /// Stop when this many bytes have moved; for writes this is the wear budget.
    pub max_bytes: u64,
}

/// What to do after a bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Continue: the precision is not reached yet.
    Continue,
    /// Stop: the wanted precision is reached.
    Converged,
    /// Stop: the cap in seconds or bytes came first.
    Capped,
}

/// The stopping rule of one job.
///
/// A bin costs next to nothing. A check costs one or a few passes over the bins (well below a
/// millisecond for 1200 of them) and happens at most once per bin, later once per 2 % more bins:
/// checks on nearly the same data are hardly three checks.
#[derive(Clone, Debug)]
pub struct StopRule {
    spec: StopSpec,
    bin_s: f64,
    record: Record,
    operations: u64,
    bytes: u64,
    warm_up_known: bool,
    /// Precision does not end it.
    whole_time: bool,
    /// The job rests of its own will, so that bins without operations say nothing.
    is_paced: bool,
    checks_passed: u32,
    next_check: usize,
    decision: Decision,
}

impl StopRule {
    /// A rule for a job whose bins are `bin_s` seconds long.
    ///
    /// # Panics
    /// If `bin_s` is not a positive number.
    pub fn new(spec: StopSpec, bin_s: f64) -> Self {
        assert!(bin_s > 0.0, "a bin of {bin_s} s");
        StopRule {
            spec,
            bin_s,
            record: Record::new(bin_s, (WARM_UP_S / bin_s).round() as usize),
            operations: 0,
            bytes: 0,
            warm_up_known: false,
            whole_time: false,
            is_paced: false,
            checks_passed: 0,
            next_check: 0,
            decision: Decision::Continue,
        }
    }

    /// The rule with another length of the warm-up than half a second, for jobs whose write
    /// budget lasts not much longer than that.
    pub fn with_warm_up_s(mut self, warm_up_s: f64) -> Self {
        let bins = (warm_up_s.max(0.0) / self.bin_s).round() as usize;
        self.record.set_warm_up_bins(bins);
        self
    }

    /// The rule with a warm-up of exactly this length, whatever the series looks like.
    pub fn with_ramp_s(mut self, ramp_s: f64) -> Self {
        self.warm_up_known = true;
        self.with_warm_up_s(ramp_s)
    }

    /// The rule for a job that runs for its whole time: precision does not end it, but it is still
    /// judged by the precision that it reached.
    pub fn for_its_whole_time(mut self) -> Self {
        self.whole_time = true;
        self
    }

    /// The rule for a job that rests of its own will, because of a limit or in pauses: that nothing
    /// has completed for a while is no stall then until something late completes.
    pub fn with_own_pace(mut self) -> Self {
        self.is_paced = true;
        self
    }

    /// Takes the next bin and decides. After the decision to stop, more bins are taken but do not
    /// change it.
    pub fn push(&mut self, bin: Bin) -> Decision {
        self.record.push(bin);
        self.operations = self.operations.saturating_add(bin.ops);
        self.bytes = self.bytes.saturating_add(bin.bytes);
        if self.decision != Decision::Continue {
            return self.decision;
        }
        if !self.warm_up_known && self.elapsed_s() >= WARM_UP_JUDGED_S {
            self.warm_up_known = true;
            self.judge_warm_up();
        }
        let may_end = !self.whole_time;
        if may_end && self.record.len() >= self.next_check && self.exposure_suffices() {
            let step = (self.record.len() - self.record.warm_up_bins()) / 50;
            self.next_check = self.record.len() + step.max(1);
            self.checks_passed = if self.is_precise() { self.checks_passed + 1 } else { 0 };
        }
        if self.checks_passed >= CHECKS_IN_A_ROW {
            self.decision = Decision::Converged;
        } else if self.elapsed_s() >= self.spec.max_seconds - self.bin_s / 2.0
            || self.bytes >= self.spec.max_bytes
        {
            self.decision = Decision::Capped;
        }
        self.decision
    }

    /// Seconds since the start of the job, warm-up included.
    pub fn elapsed_s(&self) -> f64 {
        self.record.len() as f64 * self.bin_s
    }

    /// Seconds that count so far.
    pub fn measured_s(&self) -> f64 {
        self.record.measured_s()
    }

    /// How many bins at the start do not count.
    pub fn warm_up_bins(&self) -> usize {
        self.record.warm_up_bins()
    }

    /// Bytes moved so far, warm-up included.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Operations so far, warm-up included.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Operations per second so far.
    pub fn iops(&self) -> Estimate {
        iops(&self.view())
    }

    /// Bytes per second so far.
    pub fn bytes_per_second(&self) -> Estimate {
        bytes_per_second(&self.view())
    }

    /// How many more seconds this job will probably take, for a progress line: until the interval,
    /// which shrinks with the square root of time, is narrow enough, and never beyond the caps.
    pub fn expected_left_s(&self) -> f64 {
        if self.decision != Decision::Continue {
            return 0.0;
        }
        let measured_s = self.measured_s();
        let excess = self.iops().relative_half_width() / self.spec.relative_half_width;
        let until_precise_s = measured_s * (excess * excess - 1.0);
        let until_exposed_s = self.spec.min_seconds - measured_s;
        let until_capped_s = self.spec.max_seconds - self.elapsed_s();
        let rate = self.bytes as f64 / self.elapsed_s();
        let until_full_s = self.spec.max_bytes.saturating_sub(self.bytes) as f64 / rate;
        // `min` and `max` drop a NaN, which a job without any bin gives.
        until_precise_s.max(until_exposed_s).min(until_full_s).min(until_capped_s).max(0.0)
    }

    /// What was measured. May be asked at any time: a job that was not stopped by the rule (the
    /// bystander of another job) is judged by the precision that it reached.
    pub fn finish(&self) -> Measured {
        let view = self.view();
        let window = view.window();
        let iops = iops(&view);
        let warm_up_s = self.warm_up_bins() as f64 * self.bin_s;
        let warm_up_ns = (warm_up_s * 1e9) as u64;
        Measured {
            measured_s: window.seconds(),
            warm_up_s,
            operations: window.operations(),
            bytes: window.bytes(),
            bytes_per_second: bytes_per_second(&view),
            iops,
            noise: window.noise(&view.stalls),
            wanted: self.spec.relative_half_width,
            warm_up_operations: self.operations.saturating_sub(window.operations()),
            ended: self.ended(),
            outcome: Outcome::of_width(iops.relative_half_width(), self.spec.relative_half_width),
            caveats: self.caveats(iops, &view),
            stalls: view
                .stalls
                .iter()
                .map(|stall| Episode {
                    start_ns: stall.start_ns.saturating_add(warm_up_ns),
                    ..*stall
                })
                .collect(),
            series: Series {
                bin_s: view.bin_s,
                bytes: view.bins.iter().map(|bin| bin.bytes).collect(),
            },
        }
    }

    fn ended(&self) -> Option<Ended> {
        match self.decision {
            Decision::Continue => None,
            Decision::Converged => Some(Ended::Precise),
            Decision::Capped if self.bytes >= self.spec.max_bytes => Some(Ended::Bytes),
            Decision::Capped => Some(Ended::Time),
        }
    }

    fn caveats(&self, iops: Estimate, view: &View<'_>) -> Vec<Caveat> {
        let window = view.window();
        let (reached, wanted) = (iops.relative_half_width(), self.spec.relative_half_width);
        let mut caveats = Vec::new();
        if reached > wanted {
            caveats.push(Caveat::NotPrecise { reached, wanted });
        }
        // A stall in the last third is a stall, not a drift.
        let running = window.outside(&window.operation_counts(), &view.stalls);
        if let Some(ratio) = drift::drift(&running) {
            caveats.push(Caveat::Drift { ratio: ratio.value });
        }
        caveats
    }

    /// The part of the record that counts.
    fn view(&self) -> View<'_> {
        let mut view = self.record.view();
        if self.is_paced {
            let end_ns = (view.window().seconds() * 1e9) as u64;
            // A gap that is still open may be the job's own rest.
            let is_open = |stall: &Episode| stall.end_ns() + 1000 >= end_ns;
            if view.stalls.last().is_some_and(is_open)
                && view.bins.last().is_some_and(|b| b.ops == 0)
            {
                view.stalls.pop();
            }
        }
        view
    }

    /// Moves the end of the warm-up to the first change of level, if it comes early. Bins with a
    /// stall have no say in it: a stall at the start is a stall.
    fn judge_warm_up(&mut self) {
        let bins = self.record.all();
        let all = Window { bins, bin_s: self.bin_s };
        let touched = all.touched(&all.stalls());
        let bins = bins.iter().zip(touched).enumerate();
        let (places, counts): (Vec<usize>, Vec<f64>) = bins
            .filter(|(_, (_, stalled))| !stalled)
            .map(|(place, (bin, _))| (place, bin.ops as f64))
            .unzip();
        if let Some(change) = drift::change_point(&counts) {
            let place = places[change.at];
            if place as f64 * self.bin_s <= MAX_WARM_UP_S {
                let bins = self.record.warm_up_bins().max(place);
                self.record.set_warm_up_bins(bins);
            }
        }
    }

    fn exposure_suffices(&self) -> bool {
        self.measured_s() >= self.spec.min_seconds - self.bin_s / 2.0
            && self.bytes >= self.spec.min_bytes
    }

    fn is_precise(&self) -> bool {
        let view = self.view();
        let wanted = self.spec.relative_half_width;
        if interval::surely_wider(&view.window().operation_counts(), 1.0, wanted) {
            return false;
        }
        let stalls = view.stalls.len();
        (stalls == 0 || stalls >= ENOUGH_STALLS) && iops(&view).relative_half_width() <= wanted
    }
}

fn iops(view: &View<'_>) -> Estimate {
    if view.has_many_stalls {
        view.window().iops_of_the_series()
    } else {
        view.window().iops(&view.stalls)
    }
}

fn bytes_per_second(view: &View<'_>) -> Estimate {
    if view.has_many_stalls {
        view.window().bytes_per_second_of_the_series()
    } else {
        view.window().bytes_per_second(&view.stalls)
    }
}

#[cfg(test)]
mod tests {
    use super::super::rng::Rng;
    use super::*;

    const SPEC: StopSpec = StopSpec {
        relative_half_width: 0.10,
        min_seconds: 3.0,
        max_seconds: 8.0,
        min_bytes: 0,
        max_bytes: u64::MAX,
    };

    fn bin(ops: u64) -> Bin {
        Bin { ops, bytes: ops * 4096, longest_gap_ns: 100_000_000 / ops.max(1) }
    }

    /// Feeds the bins of a device until the rule decides; how many it took and the rule.
    fn run(spec: StopSpec, mut next: impl FnMut(usize) -> Bin) -> (usize, StopRule) {
        let mut rule = StopRule::new(spec, 0.1);
        for i in 0..100_000 {
            if rule.push(next(i)) != Decision::Continue {
                return (i + 1, rule);
            }
        }
        panic!("the rule never decides");
    }

    #[test]
    fn a_quiet_device_converges_after_the_minimum() {
        let (bins, rule) = run(SPEC, |_| bin(1000));
        // Half a second of warm-up, three seconds, and two more checks.
        assert_eq!((bins, rule.warm_up_bins()), (37, 5));
        let measured = rule.finish();
        assert_eq!(measured.outcome, Outcome::Converged);
        assert_eq!(measured.operations, 32_000);
        assert_eq!(measured.bytes, 32_000 * 4096);
        assert_eq!(measured.series.bytes.len(), 32);
        assert!((measured.measured_s - 3.2).abs() < 1e-9);
        assert!((measured.warm_up_s - 0.5).abs() < 1e-9);
        assert_eq!((measured.caveats, measured.stalls), (vec![], vec![]));
        assert!((measured.bytes_per_second.value - 4.096e7).abs() < 1.0);
    }

    #[test]
    fn bytes_hold_it_back_and_cap_it() {
        let floor = StopSpec { min_bytes: 50_000 * 4096, ..SPEC };
        assert_eq!(run(floor, |_| bin(1000)).0, 52);
        let cap = StopSpec { max_bytes: 9_500 * 4096, ..SPEC };
        let (bins, rule) = run(cap, |_| bin(1000));
        assert_eq!((bins, rule.decision), (10, Decision::Capped));
        // Half a second of a perfectly steady rate says little about stalls.
        assert_eq!(rule.finish().outcome, Outcome::Capped);
    }

    #[test]
    fn a_restless_device_is_capped_and_says_so() {
        let mut rng = Rng::from_seed(1);
        let (bins, rule) = run(SPEC, |_| bin(rng.below(2000)));
        assert_eq!(bins, 80);
        let measured = rule.finish();
        assert_eq!(measured.outcome, Outcome::Capped);
        assert!(matches!(
            measured.caveats[..],
            [Caveat::NotPrecise { reached, wanted: 0.10 }] if reached > 0.10 && reached < 0.25
        ));
    }

    #[test]
    fn a_dead_device_is_inconclusive() {
        let (bins, rule) = run(SPEC, |_| Bin::default());
        assert_eq!(bins, 80);
        let measured = rule.finish();
        assert_eq!(measured.outcome, Outcome::Inconclusive);
        assert_eq!(measured.iops.value, 0.0);
        // Without a usual pace nothing is beyond it.
        assert_eq!(measured.stalls, []);
    }

    #[test]
    fn one_stall_forbids_convergence_and_eight_allow_it() {
        let spec = StopSpec { relative_half_width: 0.2, max_seconds: 60.0, ..SPEC };
        let stalling = |every: usize| {
            move |i: usize| match i % every {
                6 => Bin::default(),
                7 => Bin { longest_gap_ns: 150_000_000, ..bin(500) },
                _ => bin(1000),
            }
        };
        let (bins, rule) = run(spec, stalling(20));
        assert!((7 * 20 + 8..=7 * 20 + 20).contains(&bins), "{bins}");
        assert_eq!(rule.finish().stalls.len(), 8);
        let (bins, rule) = run(spec, stalling(590));
        assert_eq!((bins, rule.decision), (600, Decision::Capped));
    }

    #[test]
    fn warm_up_ends_at_the_first_change_of_level() {
        let (_, rule) = run(SPEC, |i| bin(if i < 12 { 2000 } else { 1000 }));
        assert_eq!(rule.warm_up_bins(), 12);
        assert!((rule.finish().iops.value - 10_000.0).abs() < 1e-6);
        // A change after two seconds is the device, not the warm-up.
        let (_, rule) = run(SPEC, |i| bin(if i < 25 { 2000 } else { 1000 }));
        assert_eq!(rule.warm_up_bins(), 5);
    }

    #[test]
    fn a_stall_at_the_start_is_no_warm_up() {
        let (_, rule) = run(SPEC, |i| match i {
            6..10 => Bin::default(),
            10 => Bin { longest_gap_ns: 400_000_000, ..bin(1000) },
            _ => bin(1000),
        });
        let measured = rule.finish();
        assert_eq!(rule.warm_up_bins(), 5);
        assert_eq!(measured.stalls.len(), 1);
        assert!((measured.stalls[0].start_s() - 0.7).abs() < 0.11);
    }

    #[test]
    fn the_warm_up_can_be_set() {
        let mut rule = StopRule::new(SPEC, 0.1).with_warm_up_s(0.2);
        for _ in 0..10 {
            rule.push(bin(1000));
        }
        assert_eq!(rule.warm_up_bins(), 2);
        assert!((rule.measured_s() - 0.8).abs() < 1e-9);
        assert_eq!(rule.with_warm_up_s(-1.0).warm_up_bins(), 0);
    }

    #[test]
    fn a_trend_raises_a_doubt() {
        let spec = StopSpec { min_seconds: 7.0, ..SPEC };
        let mut rng = Rng::from_seed(4);
        let (_, rule) = run(spec, |i| bin(1000 + 4 * i as u64 + rng.below(20)));
        let caveats = rule.finish().caveats;
        let drift = caveats.iter().find_map(|caveat| match caveat {
            Caveat::Drift { ratio } => Some(*ratio),
            _ => None,
        });
        assert!(drift.is_some_and(|ratio| ratio > 1.1 && ratio < 1.3), "{caveats:?}");
    }

    #[test]
    fn a_job_without_decision_is_judged_by_what_it_reached() {
        let mut rule = StopRule::new(SPEC, 0.1);
        assert_eq!(rule.finish().outcome, Outcome::Inconclusive);
        for _ in 0..20 {
            rule.push(bin(1000));
        }
        assert_eq!(rule.finish().outcome, Outcome::Capped);
        let mut late = rule.clone();
        for _ in 0..15 {
            late.push(bin(1000));
        }
        assert_eq!(late.decision, Decision::Continue);
        assert_eq!(late.finish().outcome, Outcome::Converged);
    }

    #[test]
    fn a_cap_is_no_imprecision() {
        // Narrow enough after three seconds, but not in three checks in a row.
        let time = StopSpec { max_seconds: 3.6, ..SPEC };
        let (_, rule) = run(time, |_| bin(1000));
        assert_eq!(rule.decision, Decision::Capped);
        let measured = rule.finish();
        assert_eq!(measured.ended, Some(Ended::Time));
        assert_eq!((measured.outcome, measured.caveats), (Outcome::Converged, vec![]));
        // One stall forbids stopping, not a narrow interval.
        let stalling = |i: usize| match i {
            300 => Bin { longest_gap_ns: 60_000_000, ..bin(500) },
            _ => bin(1000),
        };
        let long = StopSpec { min_seconds: 40.0, max_seconds: 60.0, ..SPEC };
        let (bins, rule) = run(long, stalling);
        assert_eq!((bins, rule.finish().stalls.len()), (600, 1));
        assert_eq!(rule.finish().outcome, Outcome::Converged);
        // Why a job ended is told all the same.
        let bytes = StopSpec { max_bytes: 33_000 * 4096, ..SPEC };
        assert_eq!(run(bytes, |_| bin(1000)).1.finish().ended, Some(Ended::Bytes));
        let (_, rule) = run(SPEC, |_| bin(1000));
        assert_eq!(rule.finish().ended, Some(Ended::Precise));
        assert_eq!(StopRule::new(SPEC, 0.1).finish().ended, None);
    }

    #[test]
    fn operations_of_a_long_job_are_all_counted() {
        let mut rule = StopRule::new(SPEC, 0.1).for_its_whole_time();
        (0..20_000).for_each(|_| _ = rule.push(bin(7)));
        assert_eq!(rule.operations(), 140_000);
        assert_eq!(rule.bytes(), 140_000 * 4096);
    }

    #[test]
    fn the_time_left_runs_out() {
        let mut rule = StopRule::new(SPEC, 0.1);
        let mut rng = Rng::from_seed(2);
        assert!(rule.expected_left_s() <= 8.0);
        loop {
            let decision = rule.push(bin(rng.below(2000)));
            let left_s = rule.expected_left_s();
            assert!(left_s >= 0.0 && left_s <= 8.0 - rule.elapsed_s() + 1e-9);
            if decision != Decision::Continue {
                assert_eq!(left_s, 0.0);
                break;
            }
        }
    }
}
