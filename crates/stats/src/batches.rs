//! The latencies of a job in batches of equal time, and what they say about its quantiles.
//!
//! Operations of a disk are not independent: when it is slow, it is slow for a while. How sure a quantile is depends on how the
//! *share of operations below it* varies over time, which no rate and no mean shows. A [`Batches`] therefore keeps the
//! histogram of each stretch of the job, in bounded memory.

use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::histogram::{BUCKETS, Histogram, P99_OPERATIONS, range_of};
use crate::interval::{correlation_time, mean_interval, variance};
use crate::quantile::{poisson_bounds, student_t_95};
use crate::series::coarsen;

/// Maximum number of batches before they are joined two by two; even.
const MAX_BATCHES: usize = 128;
/// Fewer batches say nothing about how a share varies.
const MIN_BATCHES: usize = 10;
/// Batches are joined to this many groups at least, to see what remembers for long.
const MIN_GROUPS: usize = 5;
/// The error of a percentile in the histogram: half a bucket.
const RESOLUTION: f64 = 0.01;

/// The 95 % intervals of two quantiles of a latency, in nanoseconds; absent where too little was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyIntervals {
    /// Interval of the median, in nanoseconds, from how it varied over the run.
    pub p50_ns: Option<Estimate>,
    /// Interval of the 99th percentile, in nanoseconds, from how it varied over the run.
    pub p99_ns: Option<Estimate>,
    /// The latency that surely less than 1 % of the operations exceed; see [`Batches::at_most`]. Absent in older runs, and where
    /// no latency is long enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_at_most_ns: Option<f64>,
}

/// Histograms of stretches of equal length, the last one possibly cut short.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batches {
    /// Buckets that hold something, with their counts, for each batch.
    batches: Vec<Vec<(u16, u64)>>,
    /// Cuts per batch.
    factor: usize,
    /// Cuts in the last batch.
    open: usize,
    /// The counts at the last cut; empty before the first.
    before: Vec<u64>,
}

impl Batches {
    /// No batches yet.
    pub fn new() -> Self {
        Batches { factor: 1, ..Batches::default() }
    }

    /// Ends a stretch: what `so_far` holds beyond the last cut belongs to it. Costs one pass over the table.
    pub fn cut(&mut self, so_far: &Histogram) {
        let counts = so_far.counts();
        if self.before.is_empty() {
            self.before = vec![0; BUCKETS];
        }
        let mut fresh = Vec::new();
        for (bucket, (count, before)) in counts.iter().zip(&mut self.before).enumerate() {
            let more = count.wrapping_sub(*before);
            if more > 0 {
                fresh.push((bucket as u16, more));
                *before = *count;
            }
        }
        self.push(fresh);
    }

    /// Forgets everything, for a warm-up that is over.
    pub fn clear(&mut self) {
        *self = Batches::new();
    }

    fn push(&mut self, fresh: Vec<(u16, u64)>) {
        match self.batches.last_mut() {
            Some(last) if self.open < self.factor => {
                *last = joined(last, &fresh);
                self.open += 1;
            }
            _ => {
                self.batches.push(fresh);
                self.open = 1;
            }
        }
        if self.batches.len() == MAX_BATCHES && self.open == self.factor {
            self.halve();
        }
    }

    fn halve(&mut self) {
        let pairs = self.batches.chunks(2);
        self.batches = pairs
            .map(|pair| match pair {
                [a, b] => joined(a, b),
                rest => rest.concat(),
            })
            .collect();
        self.factor *= 2;
        self.open = self.factor;
    }

    /// Adds the batches of another lane that began with this one.
    pub fn merge(&mut self, other: &Batches) {
        if other.batches.is_empty() {
            return;
        }
        if self.batches.is_empty() {
            *self = other.clone();
            return;
        }
        let mut other = other.clone();
        while self.factor < other.factor {
            self.halve();
        }
        while other.factor < self.factor {
            other.halve();
        }
        for (place, batch) in other.batches.iter().enumerate() {
            match self.batches.get_mut(place) {
                Some(own) => *own = joined(own, batch),
                None => self.batches.push(batch.clone()),
            }
        }
    }

    /// The intervals of the median and, from 300 operations on, of the 99th percentile; nothing when neither has one.
    pub fn intervals(&self) -> Option<LatencyIntervals> {
        let operations: u64 = self.batches.iter().map(|batch| count(batch)).sum();
        let is_enough = operations >= P99_OPERATIONS;
        let found = LatencyIntervals {
            p50_ns: self.quantile(0.5),
            p99_ns: is_enough.then(|| self.quantile(0.99)).flatten(),
            p99_at_most_ns: is_enough.then(|| self.at_most(0.99)).flatten(),
        };
        (found != LatencyIntervals::default()).then_some(found)
    }

    /// The latency in nanoseconds that a share `share` (0 to 1) of the operations does not exceed, with its 95 % interval;
    /// nothing when there are too few batches. An end that lies beyond
    /// all that was seen is 0 or infinite.
    ///
    /// The share of operations below the quantile is a ratio of two sums over time. Its interval is that of the mean of
    /// `below - share * operations` in each batch (see `half_widths`), and never narrower
    /// than for as many independent operations. The quantiles at both ends of that interval of the share enclose the true one
    /// (Woodruff, Journal of the American Statistical Association 47, 1952). Beside it stands the interval of the mean of the
    /// batches' own quantiles; on each side the wider of the two counts.
    pub fn quantile(&self, share: f64) -> Option<Estimate> {
        let whole = self.whole();
        let operations: Vec<f64> = whole.iter().map(|batch| count(batch) as f64).collect();
        let total: f64 = operations.iter().sum();
        if whole.len() < MIN_BATCHES || total < 1.0 {
            return None;
        }
        let all = whole.iter().fold(Vec::new(), |sum, batch| joined(&sum, batch));
        let value = value_at(&all, share)?;
        let (below, above) = self.share_bounds(whole, &operations, share, value);
        // Beyond the shortest and the longest nothing is known.
        let low = match share - below {
            rank if rank <= 1.0 / total => 0.0,
            rank => value_at(&all, rank)?,
        };
        let high = match share + above {
            rank if rank >= 1.0 - 1.0 / total => f64::INFINITY,
            rank => value_at(&all, rank)?,
        };
        let spread = level_half_width(whole, &operations, share);
        let low = low.min(value * (-spread).exp()).min(value * (1.0 - RESOLUTION));
        let high = high.max(value * spread.exp()).max(value * (1.0 + RESOLUTION));
        Some(Estimate::new(value, low, high))
    }

    /// The shortest latency in nanoseconds of which the interval of the share of operations below it lies above `share`: what the
    /// quantile surely does not exceed (97.5 %). Nothing when there are too few batches, or no latency is long enough.
    ///
    /// The interval of [`Batches::quantile`] asks how the share below the quantile itself varies, which says little where hardly
    /// anything is slower; this asks at each latency.
    pub fn at_most(&self, share: f64) -> Option<f64> {
        let whole = self.whole();
        let operations: Vec<f64> = whole.iter().map(|batch| count(batch) as f64).collect();
        let total: f64 = operations.iter().sum();
        if whole.len() < MIN_BATCHES || total < 1.0 {
            return None;
        }
        let all = whole.iter().fold(Vec::new(), |sum, batch| joined(&sum, batch));
        let mut before = 0.0;
        for &(bucket, count) in &all {
            before += count as f64;
            let (low, width) = range_of(usize::from(bucket));
            let (found, value) = (before / total, (low + width) as f64);
            // Without the cost of its interval where the share alone is too small.
            if found < share {
                continue;
            }
            let (reach, _) = self.share_bounds(whole, &operations, found, value);
            if found - reach.max(cluster_bound(whole, value) / total) >= share {
                return Some(value);
            }
        }
        None
    }

    /// The batches without one that was cut short.
    fn whole(&self) -> &[Vec<(u16, u64)>] {
        if self.open < self.factor {
            &self.batches[..self.batches.len().saturating_sub(1)]
        } else {
            &self.batches[..]
        }
    }

    /// How far the interval of the share below `value` reaches down and up.
    fn share_bounds(
        &self,
        whole: &[Vec<(u16, u64)>],
        operations: &[f64],
        share: f64,
        value: f64,
    ) -> (f64, f64) {
        let total: f64 = operations.iter().sum();
        let residuals: Vec<f64> = whole
            .iter()
            .zip(operations)
            .map(|(batch, operations)| below(batch, value) - share * operations)
            .collect();
        let (reach_below, reach_above) = half_widths(&residuals);
        let per_share = residuals.len() as f64 / total;
        let independent = 1.96 * (share * (1.0 - share) / total).sqrt();
        // Few operations in the tail are no normal distribution.
        let beyond = ((1.0 - share) * total).round() as u64;
        let (fewest, most) = poisson_bounds(beyond);
        let tail = |bound: f64| (bound - beyond as f64).abs() / total;
        let least =
            |poisson: f64| if beyond < 100 { independent.max(poisson) } else { independent };
        (
            (reach_below * per_share).max(least(tail(most))),
            (reach_above * per_share).max(least(tail(fewest))),
        )
    }
}

/// By how many more operations than were seen the expected number of those slower than `value` may be larger.
///
/// Slow operations come in clusters, of about as many as the variance of their number in a batch is larger than its mean; the
/// number of clusters is a Poisson one.
fn cluster_bound(whole: &[Vec<(u16, u64)>], value: f64) -> f64 {
    let slower = |batch: &Vec<(u16, u64)>| count(batch) as f64 - below(batch, value);
    let slower: Vec<f64> = whole.iter().map(slower).collect();
    let seen: f64 = slower.iter().sum();
    let mean = seen / slower.len() as f64;
    let cluster = if mean > 0.0 { (variance(&slower) / mean).max(1.0) } else { 1.0 };
    let clusters = seen / cluster;
    cluster * (poisson_bounds(clusters.round() as u64).1 - clusters)
}

/// Half width, as a logarithm, of the mean of the quantiles of groups of batches.
fn level_half_width(whole: &[Vec<(u16, u64)>], operations: &[f64], share: f64) -> f64 {
    // Each group needs a few operations beyond the quantile for one of its own.
    let total: f64 = operations.iter().sum();
    let beyond = share.min(1.0 - share) * total;
    let groups = ((beyond / 5.0) as usize).min(whole.len());
    if groups < MIN_BATCHES {
        return 0.0;
    }
    let length = whole.len() / groups;
    let logs: Vec<f64> = whole
        .chunks_exact(length)
        .filter_map(|group| {
            let sum = group.iter().fold(Vec::new(), |sum, batch| joined(&sum, batch));
            Some(value_at(&sum, share)?.ln())
        })
        .collect();
    let (below, above) = half_widths(&logs);
    below.max(above)
}

/// How far the 95 % interval of the mean of a series reaches down and up, wider than [`mean_interval`] where the series may remember
/// for as long as it lasts.
///
/// Noise within a batch hides how alike neighbours are, so coarser and coarser batches are tried as well, and the widest interval
/// counts. A correlation time of more than a third of the series leaves fewer than three independent values, and the variance about
/// their mean is too small by 1 - 1 / values; 1.4 values are the floor.
fn half_widths(series: &[f64]) -> (f64, f64) {
    let (mut below, mut above) = (0.0_f64, 0.0_f64);
    let mut factor = 1;
    while series.len() / factor >= MIN_GROUPS {
        let coarse = coarsen(series, factor);
        let interval = mean_interval(&coarse);
        let n = coarse.len() as f64;
        let values = (n / correlation_time(&coarse)).max(1.4);
        let error = (variance(&coarse) / (values - 1.0)).sqrt();
        let long = if values < 6.0 { student_t_95(3.0) * error } else { 0.0 };
        below = below.max(interval.below.max(long) / factor as f64);
        above = above.max(interval.above.max(long) / factor as f64);
        factor *= 2;
    }
    (below, above)
}

fn count(batch: &[(u16, u64)]) -> u64 {
    batch.iter().map(|(_, count)| count).sum()
}

/// The sum of two batches; both ascending.
fn joined(a: &[(u16, u64)], b: &[(u16, u64)]) -> Vec<(u16, u64)> {
    let mut sum = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    loop {
        let next = match (a.peek(), b.peek()) {
            (Some(x), Some(y)) if x.0 == y.0 => {
                let both = (x.0, x.1 + y.1);
                a.next();
                b.next();
                both
            }
            (Some(x), y) if y.is_none_or(|y| x.0 < y.0) => {
                let one = **x;
                a.next();
                one
            }
            (_, Some(y)) => {
                let one = **y;
                b.next();
                one
            }
            _ => return sum,
        };
        sum.push(next);
    }
}

/// Operations that took at most `value` nanoseconds; those in its own bucket in proportion.
fn below(batch: &[(u16, u64)], value: f64) -> f64 {
    let mut sum = 0.0;
    for &(bucket, count) in batch {
        let (low, width) = range_of(usize::from(bucket));
        let within = ((value - low as f64) / width as f64).clamp(0.0, 1.0);
        sum += within * count as f64;
    }
    sum
}

/// The latency below which a share of the operations lies, evenly spread within a bucket.
fn value_at(batch: &[(u16, u64)], share: f64) -> Option<f64> {
    let wanted = share.clamp(0.0, 1.0) * count(batch) as f64;
    let mut before = 0.0;
    for &(bucket, count) in batch {
        let count = count as f64;
        if before + count >= wanted {
            let (low, width) = range_of(usize::from(bucket));
            return Some(low as f64 + width as f64 * ((wanted - before) / count).clamp(0.0, 1.0));
        }
        before += count;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    /// Cuts after each of `stretches` of 100 operations of about `level(stretch)` nanoseconds.
    fn batches(stretches: usize, level: impl Fn(usize) -> f64) -> Batches {
        let mut rng = Rng::from_seed(7);
        let (mut histogram, mut batches) = (Histogram::new(), Batches::new());
        for stretch in 0..stretches {
            for _ in 0..100 {
                histogram.record((level(stretch) * (0.1 * rng.normal()).exp()) as u64);
            }
            batches.cut(&histogram);
        }
        batches
    }

    #[test]
    fn a_level_that_wanders_widens_the_interval_of_the_median() {
        let steady = batches(100, |_| 1e6).quantile(0.5).unwrap();
        let wandering = batches(100, |i| 1e6 * (0.2 * (i as f64 / 12.0).sin()).exp());
        let wandering = wandering.quantile(0.5).unwrap();
        assert!(steady.low < 1e6 && 1e6 < steady.high, "{steady:?}");
        assert!(steady.relative_half_width() < 0.02, "{steady:?}");
        assert!(wandering.relative_half_width() > 0.05, "{wandering:?}");
    }

    #[test]
    fn little_says_nothing() {
        assert_eq!(Batches::new().quantile(0.5), None);
        assert_eq!(batches(9, |_| 1e6).quantile(0.5), None);
        // Two operations beyond the quantile: its upper end is not known.
        let tail = batches(10, |_| 1e6).quantile(0.998).unwrap();
        assert!(tail.high.is_infinite() && tail.low > 1e6, "{tail:?}");
    }

    /// Of 200 series of a minute with 200 operations a second, how many are surely below 20 ms at the 99th percentile when
    /// such a share is slower, in clusters of that many.
    fn surely_fast(share: f64, cluster: u64) -> u32 {
        let mut rng = Rng::from_seed(11);
        let mut found = 0;
        for _ in 0..200 {
            let (mut histogram, mut batches) = (Histogram::new(), Batches::new());
            let mut slow = 0;
            for operation in 0..12_000 {
                if rng.unit() < share / cluster as f64 {
                    slow += cluster;
                }
                let is_slow = slow > 0;
                slow = slow.saturating_sub(1);
                histogram.record(if is_slow { 40_000_000 } else { 2_000_000 });
                if operation % 100 == 99 {
                    batches.cut(&histogram);
                }
            }
            found += u32::from(batches.at_most(0.99).is_some_and(|ns| ns < 2e7));
        }
        found
    }

    #[test]
    fn what_a_quantile_does_not_exceed_is_rarely_too_short() {
        // Exactly 1 %: each one is wrong, and 2.5 % of 200 may be; twice that with no more than six clusters in each.
        for cluster in [1, 5, 20] {
            let wrong = surely_fast(0.01, cluster);
            assert!(wrong <= 10, "clusters of {cluster}: {wrong}");
        }
        assert_eq!(surely_fast(0.02, 1), 0);
    }

    #[test]
    fn what_a_quantile_does_not_exceed_is_found_where_little_is_slow() {
        assert_eq!(surely_fast(0.0, 1), 200);
        assert!(surely_fast(0.004, 1) >= 180);
        assert!(surely_fast(0.002, 5) >= 175);
    }

    #[test]
    fn a_long_job_is_kept_in_few_batches_and_no_operation_is_lost() {
        let long = batches(5000, |_| 1e6);
        assert!((MAX_BATCHES / 2..=MAX_BATCHES).contains(&long.batches.len()));
        let kept: u64 = long.batches.iter().map(|batch| count(batch)).sum();
        assert_eq!(kept, 500_000);
    }

    #[test]
    fn lanes_are_joined_stretch_by_stretch() {
        let mut one = batches(40, |_| 1e6);
        one.merge(&batches(500, |_| 2e6));
        assert_eq!(one.factor, 4);
        assert_eq!(count(&one.batches[0]), 800);
        let kept: u64 = one.batches.iter().map(|batch| count(batch)).sum();
        assert_eq!(kept, 54_000);
        let mut none = Batches::new();
        none.merge(&batches(40, |_| 1e6));
        assert_eq!(none, batches(40, |_| 1e6));
    }
}
