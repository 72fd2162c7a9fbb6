//! The part of a job that counts: its bins, the stalls in them, and what they say about the rate.
//!
//! Here the interval of the noise (`interval`) and the bounds of the time lost to stalls (`stalls`)
//! become one interval. When to stop is decided in `stop`.

use super::interval;
use super::series::Bin;
use super::stalls::{self, Episode};
use crate::estimate::Estimate;

/// Stalls from which on the series itself shows how they vary.
pub const ENOUGH_STALLS: usize = 8;

/// A stretch of bins. Times are counted from its start.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// The bins, in order.
    pub bins: &'a [Bin],
    /// Length of a bin in seconds, above 0.
    pub bin_s: f64,
}

impl Window<'_> {
    /// How long it is, in seconds.
    pub fn seconds(&self) -> f64 {
        self.bins.len() as f64 * self.bin_s
    }

    /// Operations in it.
    pub fn operations(&self) -> u64 {
        self.bins.iter().fold(0, |n, bin| n.saturating_add(bin.ops))
    }

    /// Bytes in it.
    pub fn bytes(&self) -> u64 {
        self.bins
            .iter()
            .fold(0, |n, bin| n.saturating_add(bin.bytes))
    }

    /// Operations of each bin.
    pub fn operation_counts(&self) -> Vec<f64> {
        self.bins.iter().map(|bin| bin.ops as f64).collect()
    }

    /// The start of a bin in nanoseconds.
    fn edge_ns(&self, bin: usize) -> u64 {
        (bin as f64 * self.bin_s * 1e9) as u64
    }

    /// The times without any completion that are at least 50 ms and ten times as long as the mean
    /// time between completions; those less than a bin apart are one. A gap that began before the
    /// window is cut at its start, one that is still open counts so far.
    ///
    /// The stalls themselves are in that mean; even a device that stalls half of the time only doubles it.
    pub fn stalls(&self) -> Vec<Episode> {
        let mean_s = self.seconds() / (self.operations() as f64).max(1.0);
        let threshold_ns = stalls::LEAST_NS.max((10e9 * mean_s) as u64);
        let gap_to = |end_ns: u64, length_ns: u64| Episode {
            start_ns: end_ns.saturating_sub(length_ns),
            length_ns: length_ns.min(end_ns),
        };
        let open = self.bins.iter().rev().take_while(|b| b.ops == 0).count();
        let closed = self.bins.iter().enumerate();
        let mut gaps: Vec<Episode> = closed
            .filter(|(_, bin)| bin.longest_gap_ns >= threshold_ns)
            .map(|(i, bin)| gap_to(self.edge_ns(i + 1), bin.longest_gap_ns))
            .collect();
        gaps.push(gap_to(self.edge_ns(self.bins.len()), self.edge_ns(open)));
        gaps.retain(|gap| gap.length_ns >= threshold_ns);
        gaps.sort_unstable_by_key(|gap| gap.start_ns);
        stalls::join(&gaps, self.edge_ns(1))
    }

    /// For each bin, whether one of the stalls (in order, without overlap) touches it.
    pub fn touched(&self, stalls: &[Episode]) -> Vec<bool> {
        let mut next = stalls.iter().peekable();
        (0..self.bins.len())
            .map(|bin| {
                let (start_ns, end_ns) = (self.edge_ns(bin), self.edge_ns(bin + 1));
                while next.next_if(|s| s.end_ns() <= start_ns).is_some() {}
                next.peek().is_some_and(|s| s.start_ns < end_ns)
            })
            .collect()
    }

    /// Operations per second with the 95 % interval.
    pub fn iops(&self, stalls: &[Episode]) -> Estimate {
        self.rate(&self.operation_counts(), 1.0, stalls)
    }

    /// Bytes per second with the 95 % interval.
    pub fn bytes_per_second(&self, stalls: &[Episode]) -> Estimate {
        let counts: Vec<f64> = self.bins.iter().map(|bin| bin.bytes as f64).collect();
        let block_bytes = self.bytes() as f64 / (self.operations() as f64).max(1.0);
        self.rate(&counts, block_bytes.max(1.0), stalls)
    }

    /// A rate with the interval of the series, widened by what stalls may do to it.
    ///
    /// - No stall seen: the low end also bounds the stalls that were missed ([`stalls::unseen_share`]),
    ///   joined with the noise like independent errors.
    /// - Up to seven: the series is too short to show how they vary. The rate between the stalls and
    ///   the time lost to them ([`stalls::lost_time`]) each have an interval, joined like independent errors.
    /// - Eight and more: the wider of that and the plain interval of the series, on each side.
    fn rate(&self, counts: &[f64], quantum: f64, stalls: &[Episode]) -> Estimate {
        let plain = interval::rate(counts, self.bin_s, quantum);
        let value = plain.value;
        if value <= 0.0 {
            return plain;
        }
        if stalls.is_empty() {
            let noise = 1.0 - plain.low / value;
            let down = noise.hypot(stalls::unseen_share(self.seconds())).min(1.0);
            return Estimate::new(value, value * (1.0 - down), plain.high);
        }
        let (down, up) = self.spread_with(counts, stalls);
        let with_stalls = Estimate::new(value, value * (1.0 - down), value * (1.0 + up));
        if stalls.len() < ENOUGH_STALLS {
            return with_stalls;
        }
        Estimate::new(
            value,
            with_stalls.low.min(plain.low),
            with_stalls.high.max(plain.high),
        )
    }

    /// How far the interval reaches down (at most 1) and up as shares of the value, from the noise
    /// outside the stalls and the uncertainty of the time lost to them.
    fn spread_with(&self, counts: &[f64], stalls: &[Episode]) -> (f64, f64) {
        let lengths_s: Vec<f64> = stalls.iter().map(|s| s.length_ns as f64 / 1e9).collect();
        let running_share = |lost_s: f64| (1.0 - lost_s / self.seconds()).clamp(0.0, 1.0);
        let running = running_share(lengths_s.iter().sum());
        let touched = self.touched(stalls);
        let outside = counts
            .iter()
            .zip(&touched)
            .filter(|(_, stalled)| !**stalled);
        let noise = interval::mean_interval(&outside.map(|(count, _)| *count).collect::<Vec<_>>());
        if running <= 0.0 || noise.mean <= 0.0 {
            return (1.0, f64::INFINITY);
        }
        let (least_s, most_s) = stalls::lost_time(&lengths_s);
        let down = 1.0 - running_share(most_s) / running;
        let up = running_share(least_s) / running - 1.0;
        (
            down.hypot(noise.below / noise.mean).min(1.0),
            up.hypot(noise.above / noise.mean),
        )
    }
}
