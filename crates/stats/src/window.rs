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
        self.bins.iter().fold(0, |n, bin| n.saturating_add(bin.bytes))
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
    /// time between completions, and no mere pace (`stalls::find` leaves it out); those less than a bin
    /// apart are one. A gap that began before the
    /// window is cut at its start, one that is still open counts so far.
    ///
    /// The stalls themselves are in that mean; even a device that stalls half of the time only
    /// doubles it.
    pub fn stalls(&self) -> Vec<Episode> {
        let mean_s = self.seconds() / (self.operations() as f64).max(1.0);
        let threshold_ns = stalls::MIN_NS.max((10e9 * mean_s) as u64);
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
        let window_ns = self.edge_ns(self.bins.len());
        stalls::join(&stalls::without_pace(gaps, window_ns), self.edge_ns(1))
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

    /// Those of the bins' counts that no stall touches.
    pub fn outside(&self, counts: &[f64], stalls: &[Episode]) -> Vec<f64> {
        let touched = self.touched(stalls);
        let outside = counts.iter().zip(&touched);
        let outside = outside.filter(|(_, stalled)| !**stalled);
        outside.map(|(count, _)| *count).collect()
    }

    /// Operations per second with the 95 % interval.
    pub fn iops(&self, stalls: &[Episode]) -> Estimate {
        self.rate(&self.operation_counts(), 1.0, stalls)
    }

    /// Bytes per second with the 95 % interval.
    pub fn bytes_per_second(&self, stalls: &[Episode]) -> Estimate {
        self.rate(&self.byte_counts(), self.block_bytes(), stalls)
    }

    fn byte_counts(&self) -> Vec<f64> {
        self.bins.iter().map(|bin| bin.bytes as f64).collect()
    }

    /// Bytes per operation on average.
    fn block_bytes(&self) -> f64 {
        (self.bytes() as f64 / (self.operations() as f64).max(1.0)).max(1.0)
    }

    /// Operations per second with the 95 % interval, when there are too many stalls to list: the series then shows all
    /// that is known of them.
    pub fn iops_of_the_series(&self) -> Estimate {
        interval::rate(&self.operation_counts(), self.bin_s, 1.0)
    }

    /// The same for bytes per second.
    pub fn bytes_per_second_of_the_series(&self) -> Estimate {
        interval::rate(&self.byte_counts(), self.bin_s, self.block_bytes())
    }

    /// A rate with the interval of the series, widened by what stalls may do to it.
    ///
    /// - No stall seen: the low end also bounds the stalls that were missed
    ///   ([`stalls::unseen_share`]), joined with the noise like independent errors.
    /// - Up to seven: the series is too short to show how they vary. The rate between the stalls
    ///   and the time lost to them ([`stalls::lost_time`]) each have an interval, joined like
    ///   independent errors.
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
        Estimate::new(value, with_stalls.low.min(plain.low), with_stalls.high.max(plain.high))
    }

    /// How far the interval of the operations per second reaches by their noise alone, as a share of the rate: what neither
    /// allows for stalls, seen or not, nor for changes that are too slow to be seen. None where nothing can be said.
    pub fn noise(&self, stalls: &[Episode]) -> Option<f64> {
        let reach = if stalls.is_empty() {
            self.iops_of_the_series().largest_deviation()
        } else {
            let counts = self.outside(&self.operation_counts(), stalls);
            let noise = interval::mean_interval(&counts);
            noise.below.max(noise.above) / noise.mean
        };
        reach.is_finite().then_some(reach)
    }

    /// How far the interval reaches down (at most 1) and up as shares of the value, from the noise
    /// outside the stalls and the uncertainty of the time lost to them.
    fn spread_with(&self, counts: &[f64], stalls: &[Episode]) -> (f64, f64) {
        let lengths_s: Vec<f64> = stalls.iter().map(|s| s.length_ns as f64 / 1e9).collect();
        let running_share = |lost_s: f64| (1.0 - lost_s / self.seconds()).clamp(0.0, 1.0);
        let running = running_share(lengths_s.iter().sum());
        let noise = interval::mean_interval(&self.outside(counts, stalls));
        if running <= 0.0 || noise.mean <= 0.0 {
            return (1.0, f64::INFINITY);
        }
        let (min_s, max_s) = stalls::lost_time(&lengths_s);
        let down = 1.0 - running_share(max_s) / running;
        let up = running_share(min_s) / running - 1.0;
        (down.hypot(noise.below / noise.mean).min(1.0), up.hypot(noise.above / noise.mean))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BIN_S: f64 = 0.1;
    const MS: u64 = 1_000_000;

    fn busy(ops: u64) -> Bin {
        Bin { ops, bytes: ops * 4096, longest_gap_ns: 100 * MS / ops.max(1) }
    }

    /// A bin in which a gap of `gap_ms` milliseconds ended.
    fn after_gap(ops: u64, gap_ms: u64) -> Bin {
        Bin { longest_gap_ns: gap_ms * MS, ..busy(ops) }
    }

    fn window(bins: &[Bin]) -> Window<'_> {
        Window { bins, bin_s: BIN_S }
    }

    fn stalls_ms(bins: &[Bin]) -> Vec<(u64, u64)> {
        let stalls = window(bins).stalls();
        let in_ms = stalls.iter().map(|s| (s.start_ns / MS, s.length_ns / MS));
        in_ms.collect()
    }

    #[test]
    fn noise_knows_nothing_of_stalls() {
        let steady: Vec<Bin> = (0..90).map(|at| busy(1000 + at % 3)).collect();
        let window = Window { bins: &steady, bin_s: BIN_S };
        let noise = window.noise(&[]).unwrap();
        assert!(noise < 0.002, "{noise}");
        // The interval allows for stalls that nine seconds do not show.
        assert!(window.iops(&[]).largest_deviation() > 0.09);
        let mut stalled = steady.clone();
        for bin in &mut stalled[40..45] {
            *bin = busy(0);
        }
        stalled[45].longest_gap_ns = 500 * MS;
        let window = Window { bins: &stalled, bin_s: BIN_S };
        let stalls = window.stalls();
        assert_eq!(stalls.len(), 1);
        let noise = window.noise(&stalls).unwrap();
        assert!(noise < 0.002, "{noise}");
        let nothing = [busy(0); 20];
        let window = Window { bins: &nothing, bin_s: BIN_S };
        assert_eq!(window.noise(&[]), None);
    }

    #[test]
    fn a_gap_over_several_bins_is_one_stall() {
        let mut bins = vec![busy(1000); 20];
        bins[6] = Bin::default();
        bins[7] = Bin::default();
        bins[8] = after_gap(300, 270);
        assert_eq!(stalls_ms(&bins), [(630, 270)]);
        let touched = window(&bins).touched(&window(&bins).stalls());
        let places: Vec<usize> = (0..20).filter(|&i| touched[i]).collect();
        assert_eq!(places, [6, 7, 8]);
    }

    #[test]
    fn an_open_gap_counts_and_one_from_before_is_cut() {
        let mut bins = vec![busy(1000); 20];
        bins[0] = after_gap(1000, 900);
        bins[18] = Bin::default();
        bins[19] = Bin::default();
        assert_eq!(stalls_ms(&bins), [(0, 100), (1800, 200)]);
    }

    #[test]
    fn neighbouring_gaps_are_one_stall_and_distant_ones_two() {
        let mut bins = vec![busy(1000); 40];
        bins[10] = after_gap(10, 300);
        bins[12] = after_gap(10, 150);
        bins[30] = after_gap(10, 60);
        assert_eq!(stalls_ms(&bins), [(800, 500), (3040, 60)]);
    }

    #[test]
    fn the_pace_of_a_slow_device_is_not_a_stall() {
        // Two operations per second.
        let bins: Vec<Bin> =
            (0..100).map(|i| if i % 5 == 4 { after_gap(1, 500) } else { Bin::default() }).collect();
        assert_eq!(stalls_ms(&bins), []);
    }

    #[test]
    fn a_limited_rate_is_measured_like_a_steady_one() {
        // Fifty operations at once, then nothing for 98 ms.
        let bins = vec![after_gap(50, 98); 40];
        assert_eq!(stalls_ms(&bins), []);
        let window = window(&bins);
        let got = window.iops(&window.stalls());
        assert!((got.value - 500.0).abs() < 1e-6);
        assert!(got.low > 400.0 && got.high < 520.0, "{got:?}");
    }

    #[test]
    fn a_quiet_window_admits_the_stalls_that_it_missed() {
        let bins = vec![busy(1000); 100];
        let got = window(&bins).iops(&[]);
        assert!((got.value - 10_000.0).abs() < 1e-6);
        // 0.3 / sqrt(10) below, one operation above.
        assert!((got.low / got.value - (1.0 - 0.094_868)).abs() < 1e-4);
        assert!(got.high / got.value < 1.0002);
    }

    #[test]
    fn one_stall_may_have_been_none_or_many() {
        let mut bins = vec![busy(1000); 80];
        for bin in &mut bins[40..43] {
            *bin = Bin::default();
        }
        bins[43] = after_gap(700, 330);
        let window = window(&bins);
        let got = window.iops(&window.stalls());
        // With hardly any stall 10 000 per second; with 5.57 of them 23 % less.
        assert!(got.high > 9_950.0 && got.high < 10_100.0, "{got:?}");
        assert!(got.low < 7_900.0 && got.low > 6_500.0, "{got:?}");
        let bytes = window.bytes_per_second(&window.stalls());
        assert!((bytes.low / got.low / 4096.0 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_but_stall_is_no_rate() {
        let bins = vec![Bin::default(); 50];
        let window = window(&bins);
        let got = window.iops(&window.stalls());
        assert_eq!((got.value, got.low), (0.0, 0.0));
        assert!((got.high - 0.6).abs() < 1e-9);
    }
}
