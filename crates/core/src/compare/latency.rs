//! Intervals of the median and the 99th percentile of a job's latency.
//!
//! The interval of a quantile needs no assumption about the distribution: of n independent values the
//! number below the q-quantile is binomial, so the values with the ranks q·n ± 1.96·√(n·q·(1 − q)) enclose it (David
//! and Nagaraja, *Order Statistics*, 2003, section 7.1). Operations of a disk are not independent; n
//! is therefore replaced by the number of independent operations that would give a mean as uncertain
//! as the series of the run shows it to be. A job without series, deviation or distribution has no interval.

use crate::figure::{Figure, Interval};
use crate::result::{JobResult, LatencyBins};
use crate::stats::interval::{mean, mean_interval};

/// The normal quantile of a two-sided 95 % interval.
const Z: f64 = 1.96;
/// What the recorded percentiles are worth by themselves: the histogram is wrong by up to 0.8 %.
const LEAST: f64 = 0.01;

/// The median with its interval.
pub fn p50(result: &JobResult) -> Option<Figure> {
    quantile(result, 0.5, result.latency_ns.p50?)
}

/// The 99th percentile with its interval.
pub fn p99(result: &JobResult) -> Option<Figure> {
    quantile(result, 0.99, result.latency_ns.p99?)
}

fn quantile(result: &JobResult, share: f64, recorded_ns: u64) -> Option<Figure> {
    if recorded_ns == 0 {
        return None;
    }
    let value = recorded_ns as f64;
    let bounds = independent(result)
        .zip(result.latency_bins.as_ref())
        .and_then(|(n, bins)| bounds(bins, share, n));
    Some(Figure {
        value,
        interval: bounds.map(|(below, above)| Interval {
            low: value * below.min(1.0 - LEAST),
            high: value * above.max(1.0 + LEAST),
            rough: false,
        }),
    })
}

/// How many independent operations the run was worth: at most all of them.
fn independent(result: &JobResult) -> Option<f64> {
    let (average, deviation) = (result.latency_ns.mean?, result.latency_ns.stddev?);
    let bytes: Vec<f64> = result
        .series
        .as_ref()?
        .bytes
        .iter()
        .map(|bytes| *bytes as f64)
        .collect();
    let rate = mean(&bytes);
    let noise = mean_interval(&bytes);
    let half_width = noise.below.max(noise.above) / rate;
    if bytes.len() < 10 || !half_width.is_finite() || average <= 0.0 {
        return None;
    }
    let all = result.operations as f64;
    let variation = deviation / average;
    let error = half_width / Z;
    // A perfectly even series says nothing against any of the operations.
    let worth = match error > 0.0 && variation > 0.0 {
        true => (variation / error).powi(2),
        false => all,
    };
    Some(worth.min(all))
}

/// The ends of the interval as factors of the quantile itself.
fn bounds(bins: &LatencyBins, share: f64, n: f64) -> Option<(f64, f64)> {
    let reach = Z * (share * (1.0 - share) / n).sqrt();
    let at = value_at(bins, share)?;
    let low = match share - reach {
        rank if rank <= 0.0 => 0.0,
        rank => value_at(bins, rank)?,
    };
    // Above the longest but one nothing is known.
    let high = match share + reach {
        rank if rank >= 1.0 - 1.0 / n.max(1.0) => f64::INFINITY,
        rank => value_at(bins, rank)?,
    };
    Some((low / at, high / at))
}

/// The latency below which this share of the operations lies, evenly spread on the logarithms within
/// a bin.
fn value_at(bins: &LatencyBins, share: f64) -> Option<f64> {
    let total: u64 = bins.operations.iter().sum();
    let wanted = share * total as f64;
    let mut before = 0.0;
    let mut lower: Option<f64> = None;
    for (&up_to_ns, &operations) in bins.up_to_ns.iter().zip(&bins.operations) {
        let upper = (up_to_ns as f64).max(1.0);
        let from = lower.unwrap_or(upper / 1.1).max(upper / 1.1);
        let operations = operations as f64;
        if operations > 0.0 && before + operations >= wanted {
            let within = ((wanted - before) / operations).clamp(0.0, 1.0);
            return Some(from * (upper / from).powf(within));
        }
        before += operations;
        lower = Some(upper);
    }
    lower
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::verdict::job;

    /// Bins of 10 % from 1 µs with the same number of operations in each.
    fn even_bins() -> LatencyBins {
        let ends: Vec<u64> = (1..=100)
            .map(|i| (1000.0 * 1.1_f64.powi(i)) as u64)
            .collect();
        LatencyBins {
            operations: vec![100; ends.len()],
            up_to_ns: ends,
        }
    }

    #[test]
    fn more_independent_operations_make_the_interval_narrower() {
        let (low, high) = bounds(&even_bins(), 0.5, 10_000.0).unwrap();
        let (wide_low, wide_high) = bounds(&even_bins(), 0.5, 100.0).unwrap();
        assert!(wide_low < low && low < 1.0 && 1.0 < high && high < wide_high);
        // Ranks 49.02 and 50.98 of a hundred bins: almost one bin of 10 % to each side.
        assert!((low - 1.1_f64.powf(-0.98)).abs() < 0.01, "{low}");
        assert!((high - 1.1_f64.powf(0.98)).abs() < 0.01, "{high}");
    }

    #[test]
    fn a_tail_of_too_few_operations_has_no_upper_end() {
        let (low, high) = bounds(&even_bins(), 0.99, 200.0).unwrap();
        assert!(low > 0.0 && high == f64::INFINITY);
        assert!(bounds(&even_bins(), 0.99, 20_000.0).unwrap().1.is_finite());
    }

    #[test]
    fn without_a_series_there_is_no_interval() {
        let run = fixture::slow_sd_card_run();
        let mut result = run.job(job::RANDOM_READ).unwrap().clone();
        let with = p50(&result).unwrap().interval.unwrap();
        assert!(with.low < 590_000.0 && 590_000.0 < with.high);
        result.series = None;
        assert_eq!(p50(&result), Some(Figure::bare(590_000.0)));
        result.latency_ns.p99 = None;
        assert_eq!(p99(&result), None);
    }
}
