//! The latency histogram of the hot loop.
//!
//! A log-linear table: exact below 128 ns, then 64 equal buckets per power of two, over the whole
//! range of `u64` nanoseconds (584 years), so nothing is ever out of range and no count is lost. A
//! bucket is at most 1/64 of its lower end wide; a percentile is given as the middle of its bucket,
//! so it is wrong by at most 1/128 (0.8 %). The layout is that of Gil Tene's HdrHistogram with two
//! significant digits, without its runtime parameters: with a constant layout the index
//! cannot leave the table, and recording is a dozen instructions without a check that can fail.

use serde::{Deserialize, Serialize};

/// Percentiles of the latency, in nanoseconds. A percentile for which there were too few
/// operations is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latency {
    /// Median.
    pub p50: Option<u64>,
    /// 90th percentile; from 10 operations on.
    pub p90: Option<u64>,
    /// 99th percentile; from 300 operations on.
    pub p99: Option<u64>,
    /// 99.9th percentile; from 3000 operations on.
    pub p99_9: Option<u64>,
    /// The longest.
    pub max: Option<u64>,
    /// The shortest.
    #[serde(default)]
    pub min: Option<u64>,
    /// Arithmetic mean.
    #[serde(default)]
    pub mean: Option<f64>,
    /// Standard deviation.
    #[serde(default)]
    pub stddev: Option<f64>,
}

/// How the latencies are distributed: the counts of a logarithmic histogram, empty bins left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyBins {
    /// Upper end of each bin, in nanoseconds, ascending. The lower end is that of the bin before or, where bins were left
    /// out, about 10 % below.
    pub up_to_ns: Vec<u64>,
    /// Operations in each bin.
    pub operations: Vec<u64>,
}

/// Bins as a text from outside has them, before they are checked.
#[derive(Deserialize)]
struct ToldBins {
    up_to_ns: Vec<u64>,
    operations: Vec<u64>,
}

impl<'de> Deserialize<'de> for LatencyBins {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<LatencyBins, D::Error> {
        let ToldBins { up_to_ns, operations } = ToldBins::deserialize(deserializer)?;
        let (ends, counts) = (up_to_ns.len(), operations.len());
        let all = operations.iter().try_fold(0_u64, |sum, count| sum.checked_add(*count));
        let wrong = if ends != counts {
            format!("{ends} ends of bins and {counts} counts")
        } else if !up_to_ns.is_sorted() {
            "the ends of the bins do not ascend".into()
        } else if all.is_none() {
            "more operations than can be counted".into()
        } else {
            return Ok(LatencyBins { up_to_ns, operations });
        };
        Err(serde::de::Error::custom(wrong))
    }
}

/// log2 of the buckets per power of two.
const SUB_BITS: u32 = 6;
/// Buckets in the table. 3776 are reachable; a power of two lets the index be masked instead of
/// checked.
pub(crate) const BUCKETS: usize = 4096;

/// Operations from which a 90th percentile is shown.
pub const P90_OPERATIONS: u64 = 10;
/// Operations from which a 99th percentile is shown.
pub const P99_OPERATIONS: u64 = 300;
/// Operations from which a 99.9th percentile is shown.
pub const P99_9_OPERATIONS: u64 = 3000;

/// Counts of latencies in nanoseconds; 32 KiB, allocated once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    min_ns: u64,
    max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram::new()
    }
}

/// The bucket of a value.
#[inline(always)]
fn bucket_of(nanoseconds: u64) -> usize {
    let top_bit = 63 - (nanoseconds | 1 << SUB_BITS).leading_zeros();
    let shift = top_bit - SUB_BITS;
    (((shift as usize) << SUB_BITS) + (nanoseconds >> shift) as usize) & (BUCKETS - 1)
}

/// The lowest value of a bucket and how many values it holds.
pub(crate) fn range_of(bucket: usize) -> (u64, u64) {
    let shift = (bucket >> SUB_BITS).saturating_sub(1) as u32;
    let low = (bucket as u64 - (u64::from(shift) << SUB_BITS)) << shift;
    (low, 1 << shift)
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        let counts: Box<[u64]> = vec![0; BUCKETS].into_boxed_slice();
        match counts.try_into() {
            Ok(counts) => Histogram { counts, min_ns: u64::MAX, max_ns: 0 },
            Err(_) => unreachable!("the slice was made with the length of the array"),
        }
    }

    /// Records one latency.
    #[inline(always)]
    pub fn record(&mut self, nanoseconds: u64) {
        self.record_n(nanoseconds, 1);
    }

    /// Records `n` operations of the same latency, for completions that were reaped together.
    #[inline(always)]
    pub fn record_n(&mut self, nanoseconds: u64, n: u64) {
        let count = &mut self.counts[bucket_of(nanoseconds)];
        // 2^64 operations cannot happen; wrapping spares the check in a debug build's hot loop.
        *count = count.wrapping_add(n);
        if nanoseconds > self.max_ns {
            self.max_ns = nanoseconds;
        }
        if nanoseconds < self.min_ns {
            self.min_ns = nanoseconds;
        }
    }

    /// Counts one latency and leaves the extremes alone, for a loop that learns the longest in a
    /// cheaper way; [`Histogram::close`] must follow before anything is read.
    #[inline(always)]
    pub fn record_inner(&mut self, nanoseconds: u64) {
        let count = &mut self.counts[bucket_of(nanoseconds)];
        *count = count.wrapping_add(1);
    }

    /// Ends a series of [`Histogram::record_inner`] of which `longest_ns` was the longest. The
    /// shortest is then known to its bucket only.
    pub fn close(&mut self, longest_ns: u64) {
        let lowest = self.counts.iter().position(|&n| n > 0);
        if let Some(bucket) = lowest {
            self.min_ns = self.min_ns.min(range_of(bucket).0);
            self.max_ns = self.max_ns.max(longest_ns);
        }
    }

    /// The counts of all buckets.
    pub(crate) fn counts(&self) -> &[u64; BUCKETS] {
        &self.counts
    }

    /// How many latencies were recorded.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// True when nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(|&count| count == 0)
    }

    /// The shortest, exact, in nanoseconds; absent when nothing was recorded.
    pub fn min_ns(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.min_ns)
    }

    /// The longest, exact, in nanoseconds; absent when nothing was recorded.
    pub fn max_ns(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.max_ns)
    }

    /// The mean in nanoseconds, from the middles of the buckets (within 0.8 %); absent when
    /// nothing was recorded.
    pub fn mean_ns(&self) -> Option<f64> {
        let (mut count, mut sum) = (0u64, 0.0);
        for (middle_ns, n) in self.buckets() {
            count += n;
            sum += middle_ns as f64 * n as f64;
        }
        (count > 0).then(|| sum / count as f64)
    }

    /// The latency that a share `q` (0 to 1) of the operations does not exceed, in nanoseconds;
    /// absent when nothing was recorded. 0 gives the exact minimum and 1 the exact maximum.
    ///
    /// This is the value of rank `ceil(q * count)` (definition 1 of Hyndman and Fan 1996), rounded
    /// to the middle of its bucket.
    pub fn percentile_ns(&self, q: f64) -> Option<u64> {
        self.percentile_of(q, self.count())
    }

    fn percentile_of(&self, q: f64, count: u64) -> Option<u64> {
        if count == 0 {
            return None;
        }
        if q >= 1.0 {
            return Some(self.max_ns);
        }
        let rank = ((q * count as f64).ceil() as u64).clamp(1, count);
        if rank == 1 {
            return Some(self.min_ns);
        }
        if rank == count {
            return Some(self.max_ns);
        }
        let mut seen = 0;
        self.buckets()
            .find(|&(_, n)| {
                seen += n;
                seen >= rank
            })
            .map(|(middle_ns, _)| middle_ns)
    }

    /// The percentiles that this many operations support; see [`Latency`].
    pub fn latency(&self) -> Latency {
        let count = self.count();
        let from = |least: u64, q: f64| {
            if count < least { None } else { self.percentile_of(q, count) }
        };
        Latency {
            p50: from(1, 0.5),
            p90: from(P90_OPERATIONS, 0.9),
            p99: from(P99_OPERATIONS, 0.99),
            p99_9: from(P99_9_OPERATIONS, 0.999),
            max: self.max_ns(),
            min: self.min_ns(),
            mean: self.mean_ns(),
            stddev: self.stddev_ns(),
        }
    }

    /// The standard deviation in nanoseconds, from the middles of the buckets; absent when nothing
    /// was recorded.
    pub fn stddev_ns(&self) -> Option<f64> {
        let mean = self.mean_ns()?;
        let (mut count, mut sum) = (0u64, 0.0);
        for (middle_ns, n) in self.buckets() {
            count += n;
            sum += (middle_ns as f64 - mean).powi(2) * n as f64;
        }
        Some((sum / count as f64).sqrt())
    }

    /// The distribution in coarser bins, for a drawing: eight to each doubling.
    pub fn coarse_bins(&self) -> LatencyBins {
        const COARSE_BITS: u32 = 3;
        let mut bins = LatencyBins::default();
        let occupied = self.counts.iter().enumerate().filter(|&(_, &n)| n > 0);
        for (bucket, &n) in occupied {
            let (low, width) = range_of(bucket);
            let top_bit = 63 - low.max(1 << COARSE_BITS).leading_zeros();
            let step = 1u64 << (top_bit - COARSE_BITS);
            let end = (low / step * step).saturating_add(step.max(width));
            if bins.up_to_ns.last() == Some(&end) {
                if let Some(last) = bins.operations.last_mut() {
                    *last += n;
                }
            } else {
                bins.up_to_ns.push(end);
                bins.operations.push(n);
            }
        }
        bins
    }

    /// Adds what another histogram holds.
    pub fn merge(&mut self, other: &Histogram) {
        for (count, more) in self.counts.iter_mut().zip(other.counts.iter()) {
            *count = count.wrapping_add(*more);
        }
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Forgets everything; keeps the memory.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        self.min_ns = u64::MAX;
        self.max_ns = 0;
    }

    /// The buckets that hold something, ascending: the middle of the bucket in nanoseconds (never
    /// outside the recorded range) and the count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let occupied = self.counts.iter().enumerate().filter(|&(_, &n)| n > 0);
        occupied.map(|(bucket, &n)| {
            let (low, width) = range_of(bucket);
            let middle = low + width / 2;
            (middle.clamp(self.min_ns, self.max_ns), n)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn coarse_bins_lose_no_operation_and_hold_their_values() {
        let mut histogram = Histogram::new();
        let mut random = Rng::from_seed(5);
        for _ in 0..10_000 {
            histogram.record(random.next_u64() >> (random.next_u64() % 60));
        }
        let bins = histogram.coarse_bins();
        assert_eq!(bins.operations.iter().sum::<u64>(), 10_000);
        assert!(bins.up_to_ns.is_sorted());
        assert!(bins.up_to_ns.len() < 8 * 64);
        let mut few = Histogram::new();
        few.record_n(1000, 3);
        few.record_n(1010, 2);
        few.record_n(2000, 1);
        let bins = few.coarse_bins();
        assert_eq!(bins.up_to_ns, [1024, 2048]);
        assert_eq!(bins.operations, [5, 1]);
    }

    #[test]
    fn the_deviation_is_that_of_the_values() {
        let mut histogram = Histogram::new();
        for value in [2, 4, 4, 4, 5, 5, 7, 9] {
            histogram.record(value);
        }
        assert_eq!(histogram.mean_ns(), Some(5.0));
        assert_eq!(histogram.stddev_ns(), Some(2.0));
        assert_eq!(Histogram::new().stddev_ns(), None);
    }

    #[test]
    fn buckets_follow_one_another_without_gap() {
        let mut expected_low = 0u64;
        for bucket in 0..3776 {
            let (low, width) = range_of(bucket);
            assert_eq!(low, expected_low, "bucket {bucket}");
            assert_eq!(bucket_of(low), bucket);
            assert_eq!(bucket_of(low + (width - 1)), bucket);
            expected_low = low.wrapping_add(width);
        }
        assert_eq!(expected_low, 0, "the last bucket ends at 2^64");
        assert_eq!(bucket_of(u64::MAX), 3775);
    }

    #[test]
    fn a_bucket_is_never_wider_than_a_64th() {
        for bucket in 64..3776 {
            let (low, width) = range_of(bucket);
            assert!(width as f64 <= low as f64 / 64.0);
        }
    }

    #[test]
    fn fits_in_64_kib() {
        assert!(BUCKETS * size_of::<u64>() + size_of::<Histogram>() <= 65_536);
    }

    #[test]
    fn empty_says_nothing() {
        let empty = Histogram::new();
        assert_eq!(empty.count(), 0);
        assert_eq!(empty.latency(), Latency::default());
        assert_eq!((empty.min_ns(), empty.max_ns(), empty.mean_ns()), (None, None, None));
    }

    #[test]
    fn percentiles_appear_only_when_supported() {
        let mut histogram = Histogram::new();
        let shown = |h: &Histogram| {
            let l = h.latency();
            [l.p50, l.p90, l.p99, l.p99_9, l.max].map(|p| p.is_some())
        };
        for (total, expected) in [
            (1, [true, false, false, false, true]),
            (9, [true, false, false, false, true]),
            (10, [true, true, false, false, true]),
            (299, [true, true, false, false, true]),
            (300, [true, true, true, false, true]),
            (2999, [true, true, true, false, true]),
            (3000, [true, true, true, true, true]),
        ] {
            histogram.record_n(1000, total - histogram.count());
            assert_eq!(shown(&histogram), expected, "{total}");
        }
    }

    #[test]
    fn agrees_with_hdrhistogram() {
        let mut rng = Rng::from_seed(5);
        let mut ours = Histogram::new();
        let mut oracle = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 1 << 42, 3).unwrap();
        for _ in 0..50_000 {
            let value = (80_000.0 * (1.5 * rng.normal()).exp()) as u64 + 1;
            ours.record(value);
            oracle.record(value).unwrap();
        }
        for q in [0.01, 0.5, 0.9, 0.99, 0.999, 0.9999] {
            let (got, expected) = (ours.percentile_ns(q).unwrap(), oracle.value_at_quantile(q));
            let error = got as f64 / expected as f64 - 1.0;
            // 1/128 of ours and 1/1000 of the oracle.
            assert!(error.abs() < 0.009, "{q}: {got} {expected}");
        }
        assert!((ours.mean_ns().unwrap() / oracle.mean() - 1.0).abs() < 0.005);
        assert_eq!(ours.count(), oracle.len());
    }

    #[test]
    fn the_extremes_are_kept() {
        let mut histogram = Histogram::new();
        for value in [0, 1, 3_600_000_000_000, u64::MAX] {
            histogram.record(value);
        }
        assert_eq!(histogram.count(), 4);
        assert_eq!(histogram.percentile_ns(0.0), Some(0));
        assert_eq!(histogram.percentile_ns(1.0), Some(u64::MAX));
        let hour = histogram.percentile_ns(0.75).unwrap() as f64;
        assert!((hour / 3.6e12 - 1.0).abs() < 0.008);
    }

    #[test]
    fn clearing_forgets_everything() {
        let mut histogram = Histogram::new();
        histogram.record_n(77, 5);
        histogram.clear();
        assert_eq!(histogram, Histogram::new());
    }
}
