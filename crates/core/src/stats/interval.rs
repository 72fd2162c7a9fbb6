//! The 95 % interval of the mean of a series whose neighbours resemble one another.
//!
//! Storage is not a coin toss: a slow bin is followed by a slow bin, and an interval that assumes
//! independence is two to three times too narrow. Here the half width is the larger of two that do
//! not assume it: batch means and the effective sample size.

use super::quantile::{poisson_bounds, student_t_95};
use super::series::{coarsen, coarsening};
use crate::estimate::Estimate;

/// Batches of the method of batch means.
const BATCHES: usize = 10;

/// What a series says about its mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanInterval {
    /// Mean of the series.
    pub mean: f64,
    /// Half width of the 95 % interval, in the unit of the series; infinite for fewer than two values.
    pub half_width: f64,
}

/// The mean of a series and its 95 % interval.
///
/// An empty series has the mean 0; a series of fewer than two values has an infinite half width,
/// and one without any variance has a half width of 0 (see [`rate`] for the floor below that).
pub fn mean_interval(series: &[f64]) -> MeanInterval {
    let mean = mean(series);
    MeanInterval {
        mean,
        half_width: batch_half_width(series).max(effective_half_width(series)),
    }
}

/// Arithmetic mean; 0 for an empty series.
pub fn mean(series: &[f64]) -> f64 {
    if series.is_empty() {
        return 0.0;
    }
    series.iter().sum::<f64>() / series.len() as f64
}

/// Unbiased variance; 0 for fewer than two values.
pub fn variance(series: &[f64]) -> f64 {
    if series.len() < 2 {
        return 0.0;
    }
    let mean = mean(series);
    let squares: f64 = series.iter().map(|x| (x - mean).powi(2)).sum();
    squares / (series.len() - 1) as f64
}

/// Half width of the 95 % interval by batch means: the series is cut into ten batches, whose means
/// are nearly independent when a batch is long against the correlation, and Student's t is applied
/// to those (Schmeiser, Operations Research 30, 1982, on why about ten).
///
/// Values at the start that do not fill a batch are left out. Fewer than twenty values give the
/// plain t interval; fewer than two an infinite one.
pub fn batch_half_width(series: &[f64]) -> f64 {
    let length = series.len() / BATCHES;
    if length < 2 {
        return t_half_width(series);
    }
    let used = &series[series.len() - length * BATCHES..];
    let batches: Vec<f64> = used.chunks_exact(length).map(mean).collect();
    t_half_width(&batches)
}

/// Half width of the 95 % interval of independent values.
fn t_half_width(series: &[f64]) -> f64 {
    let n = series.len() as f64;
    if n < 2.0 {
        return f64::INFINITY;
    }
    student_t_95(n - 1.0) * (variance(series) / n).sqrt()
}

/// Half width of the 95 % interval by the effective sample size.
///
/// With the correlation time tau (see [`correlation_time`]) the series is worth n / tau independent
/// values. Two corrections keep short series honest: the variance about the sample's own mean is
/// too small by the factor 1 - tau / n (Anderson, *The Statistical Analysis of Time Series*, 1971,
/// section 8.2), and Student's t has n / tau - 1 degrees of freedom instead of n - 1.
pub fn effective_half_width(series: &[f64]) -> f64 {
    let n = series.len() as f64;
    if n < 2.0 {
        return f64::INFINITY;
    }
    let variance = variance(series);
    if variance == 0.0 {
        return 0.0;
    }
    // At least two independent values, or there is no degree of freedom at all.
    let tau = correlation_time(series).min(n / 2.0);
    let effective = n / tau;
    let corrected = variance / (1.0 - 1.0 / effective) * (1.0 - 1.0 / n);
    student_t_95(effective - 1.0) * (corrected / effective).sqrt()
}

/// The integrated correlation time in values: how many neighbours are worth one independent value.
/// Never below 1, so that an alternating series gets no credit for it.
///
/// The larger of two estimates. Geyer's initial positive sequence (Statistical Science 7, 1992)
/// sums the autocorrelations in pairs until a pair is no longer positive, with each pair limited by
/// the one before (initial monotone sequence). An autoregression of first order, with the lag-1
/// correlation freed of its small-sample bias (Kendall, Biometrika 41, 1954: too small by
/// (1 + 4 r) / n), gives (1 + r) / (1 - r); it sees long memory that a short series hides.
pub fn correlation_time(series: &[f64]) -> f64 {
    let n = series.len();
    if n < 4 {
        return 1.0;
    }
    let mean = mean(series);
    let centred: Vec<f64> = series.iter().map(|x| x - mean).collect();
    let square_sum: f64 = centred.iter().map(|x| x * x).sum();
    if square_sum <= 0.0 {
        return 1.0;
    }
    let correlation = |lag: usize| -> f64 {
        let products = centred.iter().zip(&centred[lag..]);
        products.map(|(a, b)| a * b).sum::<f64>() / square_sum
    };
    let lag_1 = correlation(1);
    let mut tau = 2.0 * (1.0 + lag_1).max(0.0) - 1.0;
    let mut last_pair = 1.0 + lag_1;
    let mut lag = 2;
    while lag + 1 < n / 2 {
        let pair = (correlation(lag) + correlation(lag + 1)).min(last_pair);
        if pair <= 0.0 {
            break;
        }
        tau += 2.0 * pair;
        last_pair = pair;
        lag += 2;
    }
    let n = n as f64;
    let unbiased = (lag_1 + (1.0 + 4.0 * lag_1) / n).min(1.0 - 1.0 / n);
    let autoregressive = (1.0 + unbiased) / (1.0 - unbiased);
    tau.max(autoregressive).max(1.0)
}

/// The rate per second, with its 95 % interval, of events counted in equal bins of `bin_s` seconds.
///
/// `quantum` is the size of the smallest step of a count: 1 for operations, the block size for
/// bytes. On top of [`mean_interval`], after joining bins that hold too few operations
/// ([`coarsening`]), three floors keep it honest:
/// - a window of a regular device may hold one operation more or less, whatever its variance says:
///   at least one quantum per window;
/// - fewer than twenty operations cannot show that they come regularly: at least the exact Poisson
///   bounds (Garwood);
/// - no operation at all is a rate below 3 per window (the rule of three).
///
/// The low end is never negative.
pub fn rate(counts: &[f64], bin_s: f64, quantum: f64) -> Estimate {
    const FEW: f64 = 20.0;
    let total: f64 = counts.iter().sum();
    let window_s = counts.len() as f64 * bin_s;
    if counts.is_empty() {
        return Estimate::new(0.0, 0.0, f64::INFINITY);
    }
    let events = total / quantum;
    if events < 0.5 {
        return Estimate::new(0.0, 0.0, 3.0 * quantum / window_s);
    }
    let factor = coarsening(events.round() as u64, counts.len());
    let MeanInterval { half_width, .. } = mean_interval(&coarsen(counts, factor));
    let half = (half_width / factor as f64 * counts.len() as f64).max(quantum);
    let (mut low, mut high) = (total - half, total + half);
    if events < FEW {
        let (fewest, most) = poisson_bounds(events.round() as u64);
        low = low.min(fewest * quantum);
        high = high.max(most * quantum);
    }
    Estimate::new(
        total / window_s,
        low.clamp(0.0, total) / window_s,
        high.max(total) / window_s,
    )
}
