//! When to stop: the rule that is fed bin by bin and decides that enough has been measured.
//!
//! Stopping as soon as the interval looks narrow is the classical way to be wrong: runs that
//! happen to miss the stalls look precise first. So precision must hold in three checks in a row,
//! after a minimum time and number of bytes, and once a stall was seen not before eight of them
//! were. What the rule then reports also bounds the stalls that it may have missed. How often the
//! intervals hold the truth is simulated in `tests/coverage.rs`; `docs/statistics.md` has the table.

use super::drift::{self, Change};
use super::interval;
use super::series::Bin;
use super::stalls::{self, Episode};
use crate::doubt::Doubt;
use crate::estimate::Estimate;
use crate::result::{Outcome, Series};
use crate::spec::StopSpec;

/// Checks in a row that must find the wanted precision.
const CHECKS_IN_A_ROW: u32 = 3;
/// Stalls that must have been seen before precision counts, once one was seen.
const ENOUGH_STALLS: usize = 8;
/// At the start of a job this long is always warm-up, in seconds.
const WARM_UP_S: f64 = 0.5;
/// Relative half width up to which a capped job is still called measured.
const USABLE_HALF_WIDTH: f64 = 0.25;

/// What to do after a bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Measure on.
    Continue,
    /// Stop: the wanted precision is reached.
    Converged,
    /// Stop: the cap in seconds or bytes came first.
    Capped,
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
    /// How the job ended.
    pub outcome: Outcome,
    /// Doubts that the series itself raises: `NotPrecise`, `Drift`.
    pub doubts: Vec<Doubt>,
    /// Times without any completion far beyond the usual, in the measured time; counted from the
    /// start of the job.
    pub stalls: Vec<Episode>,
    /// The bytes of each bin, warm-up excluded.
    pub series: Series,
}

impl Measured {
    /// Counts `flush_s` seconds of a final flush, in which nothing completed, as measured time.
    pub fn include_flush(&mut self, flush_s: f64) {
        if self.measured_s > 0.0 && flush_s > 0.0 {
            let share = self.measured_s / (self.measured_s + flush_s);
            self.bytes_per_second = self.bytes_per_second.scaled(share);
            self.iops = self.iops.scaled(share);
            self.measured_s += flush_s;
        }
    }
}

/// The stopping rule of one job.
#[derive(Clone, Debug)]
pub struct StopRule {
    spec: StopSpec,
    bin_s: f64,
    bins: Vec<Bin>,
    bytes: u64,
    candidates: Vec<Episode>,
    warm_up_bins: usize,
    warm_up_known: bool,
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
            bins: Vec::new(),
            bytes: 0,
            candidates: Vec::new(),
            warm_up_bins: (WARM_UP_S / bin_s).round() as usize,
            warm_up_known: false,
            checks_passed: 0,
            next_check: 0,
            decision: Decision::Continue,
        }
    }

    /// Takes the next bin and decides. After the decision to stop, more bins are taken but do not change it.
    pub fn push(&mut self, bin: Bin) -> Decision {
        self.bins.push(bin);
        self.bytes = self.bytes.saturating_add(bin.bytes);
        self.note_gap(bin);
        if self.decision != Decision::Continue {
            return self.decision;
        }
        self.settle_warm_up();
        if self.bins.len() >= self.next_check && self.exposure_suffices() {
            let kept = self.kept().len();
            self.next_check = self.bins.len() + (kept / 50).max(1);
            if self.is_precise() {
                self.checks_passed += 1;
            } else {
                self.checks_passed = 0;
            }
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
        self.bins.len() as f64 * self.bin_s
    }

    /// Seconds that count so far.
    pub fn measured_s(&self) -> f64 {
        self.kept().len() as f64 * self.bin_s
    }

    /// How many bins at the start do not count.
    pub fn warm_up_bins(&self) -> usize {
        self.warm_up_bins.min(self.bins.len())
    }

    /// Bytes moved so far, warm-up included.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Operations per second so far.
    pub fn iops(&self) -> Estimate {
        self.estimate(|bin| bin.ops, 1.0)
    }

    /// Bytes per second so far.
    pub fn bytes_per_second(&self) -> Estimate {
        let kept = self.kept();
        let (ops, bytes) = kept.iter().fold((0u64, 0u64), |(ops, bytes), bin| {
            (ops + bin.ops, bytes + bin.bytes)
        });
        let quantum = if ops == 0 {
            1.0
        } else {
            bytes as f64 / ops as f64
        };
        self.estimate(|bin| bin.bytes, quantum.max(1.0))
    }

    /// What was measured. May be asked at any time: a job that was not stopped by the rule (the bystander of
    /// another job) is judged by the precision that it reached.
    pub fn finish(&self) -> Measured {
        let kept = self.kept();
        let iops = self.iops();
        let reached = iops.relative_half_width();
        let wanted = self.spec.relative_half_width;
        let precise = match self.decision {
            Decision::Converged => true,
            Decision::Capped => false,
            Decision::Continue => self.exposure_suffices() && self.is_precise(),
        };
        let outcome = if precise {
            Outcome::Converged
        } else if reached <= USABLE_HALF_WIDTH {
            Outcome::Capped
        } else {
            Outcome::Inconclusive
        };
        let mut doubts = Vec::new();
        if reached > wanted {
            doubts.push(Doubt::NotPrecise { reached, wanted });
        }
        let rates: Vec<f64> = kept.iter().map(|bin| bin.ops as f64).collect();
        if let Some(drift) = drift::drift(&rates) {
            doubts.push(Doubt::Drift { ratio: drift.value });
        }
        Measured {
            measured_s: self.measured_s(),
            warm_up_s: self.warm_up_bins() as f64 * self.bin_s,
            operations: kept.iter().map(|bin| bin.ops).sum(),
            bytes: kept.iter().map(|bin| bin.bytes).sum(),
            bytes_per_second: self.bytes_per_second(),
            iops,
            outcome,
            doubts,
            stalls: self.stalls(),
            series: Series {
                bin_s: self.bin_s,
                bytes: kept.iter().map(|bin| bin.bytes).collect(),
            },
        }
    }

    /// The bins that count.
    fn kept(&self) -> &[Bin] {
        &self.bins[self.warm_up_bins()..]
    }

    fn bin_ns(&self) -> f64 {
        self.bin_s * 1e9
    }

    /// Remembers a gap that may turn out to be a stall.
    fn note_gap(&mut self, bin: Bin) {
        if bin.longest_gap_ns >= stalls::LEAST_NS {
            let end_ns = (self.bins.len() as f64 * self.bin_ns()) as u64;
            self.candidates.push(Episode {
                start_ns: end_ns.saturating_sub(bin.longest_gap_ns),
                length_ns: bin.longest_gap_ns,
            });
        }
    }

    /// Once enough bins are there, moves the end of the warm-up to the first change of level.
    fn settle_warm_up(&mut self) {
        const LATEST_S: f64 = 2.0;
        if self.warm_up_known || self.elapsed_s() < 3.0 * WARM_UP_S.max(1.0) {
            return;
        }
        self.warm_up_known = true;
        let rates: Vec<f64> = self.bins.iter().map(|bin| bin.ops as f64).collect();
        if let Some(Change { at, .. }) = drift::change_point(&rates) {
            if at as f64 * self.bin_s <= LATEST_S {
                self.warm_up_bins = self.warm_up_bins.max(at);
            }
        }
    }

    fn exposure_suffices(&self) -> bool {
        self.measured_s() >= self.spec.min_seconds - self.bin_s / 2.0
            && self.bytes >= self.spec.min_bytes
    }

    fn is_precise(&self) -> bool {
        let stalls = self.stalls().len();
        (stalls == 0 || stalls >= ENOUGH_STALLS)
            && self.iops().relative_half_width() <= self.spec.relative_half_width
    }

    /// The stalls in the measured time, a gap that is still open included.
    fn stalls(&self) -> Vec<Episode> {
        let from_ns = (self.warm_up_bins() as f64 * self.bin_ns()) as u64;
        let end_ns = (self.bins.len() as f64 * self.bin_ns()) as u64;
        let open = self.bins.iter().rev().take_while(|b| b.ops == 0).count();
        let open_ns = (open as f64 * self.bin_ns()) as u64;
        let mut gaps: Vec<Episode> = self.candidates.clone();
        gaps.push(Episode {
            start_ns: end_ns - open_ns.min(end_ns),
            length_ns: open_ns,
        });
        gaps.retain(|gap| gap.end_ns() > from_ns);
        for gap in &mut gaps {
            let cut_ns = from_ns.saturating_sub(gap.start_ns);
            gap.start_ns += cut_ns;
            gap.length_ns -= cut_ns;
        }
        let threshold_ns = self.stall_threshold_ns(&gaps);
        gaps.retain(|gap| gap.length_ns >= threshold_ns);
        stalls::join(&gaps, self.bin_ns() as u64)
    }

    /// Ten times the usual time between completions, at least 50 ms; the usual time is taken outside the gaps.
    fn stall_threshold_ns(&self, gaps: &[Episode]) -> u64 {
        let operations: u64 = self.kept().iter().map(|bin| bin.ops).sum();
        let in_gaps_s: f64 = gaps.iter().map(|gap| gap.length_ns as f64 / 1e9).sum();
        let outside_s = (self.measured_s() - in_gaps_s).max(0.0);
        let usual_s = outside_s / (operations.saturating_sub(gaps.len() as u64) as f64).max(1.0);
        stalls::LEAST_NS.max((10e9 * usual_s) as u64)
    }

    /// A rate with the interval of the series, widened by what stalls may do to it.
    fn estimate(&self, count: impl Fn(&Bin) -> u64, quantum: f64) -> Estimate {
        let counts: Vec<f64> = self.kept().iter().map(|bin| count(bin) as f64).collect();
        let plain = interval::rate(&counts, self.bin_s, quantum);
        if plain.value == 0.0 {
            return plain;
        }
        let stalls = self.stalls();
        let window_s = self.measured_s();
        let lengths_s: Vec<f64> = stalls.iter().map(|s| s.length_ns as f64 / 1e9).collect();
        let lost_s: f64 = lengths_s.iter().sum();
        let (least_s, most_s) = stalls::lost_time(&lengths_s);
        if stalls.is_empty() {
            let low = plain.low * (1.0 - (most_s / window_s).min(1.0));
            return Estimate::new(plain.value, low, plain.high);
        }
        let running = self.outside(&counts, &stalls);
        let base = interval::mean_interval(&running);
        let noise = if base.mean > 0.0 {
            base.half_width / base.mean
        } else {
            f64::INFINITY
        };
        let share = |seconds: f64| (1.0 - seconds / window_s).clamp(0.0, 1.0);
        let now = share(lost_s);
        let down = ((now - share(most_s)) / now).hypot(noise).min(1.0);
        let up = ((share(least_s) - now) / now).hypot(noise);
        Estimate::new(
            plain.value,
            plain.low.min(plain.value * (1.0 - down)),
            plain.high.max(plain.value * (1.0 + up)),
        )
    }

    /// The counts of the bins that no stall touches.
    fn outside(&self, counts: &[f64], stalls: &[Episode]) -> Vec<f64> {
        let bin_ns = self.bin_ns();
        let first = self.warm_up_bins();
        let mut next = stalls.iter().peekable();
        let mut outside = Vec::with_capacity(counts.len());
        for (i, &count) in counts.iter().enumerate() {
            let start_ns = ((first + i) as f64 * bin_ns) as u64;
            let end_ns = ((first + i + 1) as f64 * bin_ns) as u64;
            while next.peek().is_some_and(|stall| stall.end_ns() <= start_ns) {
                next.next();
            }
            if next.peek().is_none_or(|stall| stall.start_ns >= end_ns) {
                outside.push(count);
            }
        }
        outside
    }
}
