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
/// 97.5 % quantile of Student's t with nine degrees of freedom.
const T_OF_BATCHES: f64 = 2.262_157_162_798_21;

/// What a series says about its mean; lengths in the unit of the series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanInterval {
    /// Mean of the series.
    pub mean: f64,
    /// How far the 95 % interval reaches below the mean; infinite for fewer than two values.
    pub below: f64,
    /// How far it reaches above.
    pub above: f64,
}

/// The mean of a series and its 95 % interval.
///
/// The half width is the larger of [`batch_half_width`] and the one from the effective sample
/// size. On the side of the longer tail it is increased for skewness. An empty series has the mean
/// 0, a series of fewer than two values an infinite interval, and one without any variance a width
/// of 0 (see [`rate`] for the floor below that). Series of more than 600 values are coarsened
/// first, which keeps the cost linear and does not change what they say.
pub fn mean_interval(series: &[f64]) -> MeanInterval {
    const ENOUGH: usize = 300;
    let factor = (series.len() / ENOUGH).max(1);
    let coarse = coarsen(series, factor);
    let effective = effective(&coarse);
    let half = batch_half_width(&coarse).max(effective.half_width) / factor as f64;
    let shift = effective.skew_shift / factor as f64;
    MeanInterval { mean: mean(series), below: half - shift.min(0.0), above: half + shift.max(0.0) }
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
    T_OF_BATCHES * (variance(&batches) / BATCHES as f64).sqrt()
}

/// Half width of the 95 % interval of independent values.
fn t_half_width(series: &[f64]) -> f64 {
    let n = series.len() as f64;
    if n < 2.0 {
        return f64::INFINITY;
    }
    student_t_95(n - 1.0) * (variance(series) / n).sqrt()
}

/// What the effective sample size gives.
struct Effective {
    half_width: f64,
    /// Where skewness moves the interval to; positive for a long upper tail.
    skew_shift: f64,
}

/// The 95 % interval by the effective sample size.
///
/// With the correlation time tau (see [`correlation_time`]) the series is worth m = n / tau
/// independent values. Two corrections keep short series honest: the variance about the sample's
/// own mean is too small by the factor 1 - tau / n (Anderson, *The Statistical Analysis of Time
/// Series*, 1971, section 8.2), and Student's t has m - 1 degrees of freedom instead of n - 1.
/// Below m = 4 nothing is known about m itself; 3 degrees of freedom are the floor.
///
/// The shift is Johnson's for skewed data (Journal of the American Statistical Association 73,
/// 1978): skewness / (6 m) * (2 t^2 + 1) standard errors.
fn effective(series: &[f64]) -> Effective {
    let n = series.len() as f64;
    if n < 2.0 {
        return Effective { half_width: f64::INFINITY, skew_shift: 0.0 };
    }
    let variance = variance(series);
    if variance <= 0.0 {
        return Effective { half_width: 0.0, skew_shift: 0.0 };
    }
    let tau = correlation_time(series).min(n / 3.0).max(1.0);
    let values = n / tau;
    let corrected = variance * (1.0 - 1.0 / n) / (1.0 - 1.0 / values);
    let error = (corrected / values).sqrt();
    let t = student_t_95((values - 1.0).max(3.0));
    let skewness = skewness(series, variance);
    Effective {
        half_width: t * error,
        skew_shift: skewness / (6.0 * values) * (2.0 * t * t + 1.0) * error,
    }
}

/// The third standardised moment of a series with this variance, which must not be 0.
fn skewness(series: &[f64], variance: f64) -> f64 {
    let mean = mean(series);
    let cubes: f64 = series.iter().map(|x| (x - mean).powi(3)).sum();
    cubes / series.len() as f64 / variance.powf(1.5)
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
    let square_sum = dot(&centred, &centred);
    if square_sum <= 0.0 {
        return 1.0;
    }
    let correlation = |lag: usize| dot(&centred[lag..], &centred) / square_sum;
    let lag_1 = correlation(1);
    let mut tau = 2.0 * (1.0 + lag_1).max(0.0) - 1.0;
    let mut last_pair = 1.0 + lag_1;
    let mut lag = 2;
    // A correlation time beyond a third of the series needs no exact value.
    let enough = n as f64 / 3.0;
    while lag + 1 < n / 2 && tau < enough {
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

/// Sum of the products of two series, as far as the shorter goes. Four sums at a time: the
/// correlations are where a check spends its time.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let length = a.len().min(b.len());
    let (a, b) = (a[..length].chunks_exact(4), b[..length].chunks_exact(4));
    let rest: f64 = (a.remainder().iter().zip(b.remainder())).map(|(x, y)| x * y).sum();
    let mut sums = [0.0; 4];
    for (x, y) in a.zip(b) {
        for lane in 0..4 {
            sums[lane] += x[lane] * y[lane];
        }
    }
    sums.iter().sum::<f64>() + rest
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
/// The high end is the value times exp(distance / value) instead of the value plus the distance: a
/// rate cannot be negative but has no upper limit, so a wide interval is symmetric on the
/// logarithms (the delta method). For narrow ones the two are the same. The low end stays linear,
/// the wider of the two, and is never negative.
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
    let interval = mean_interval(&coarsen(counts, factor));
    let per_window = counts.len() as f64 / factor as f64;
    let (below, above) = (interval.below * per_window, interval.above * per_window);
    let mut low = total - below.max(quantum);
    let mut high = total + ((above / total).exp_m1() * total).max(quantum);
    if events < FEW {
        let (fewest, most) = poisson_bounds(events.round() as u64);
        low = low.min(fewest * quantum);
        high = high.max(most * quantum);
    }
    Estimate::new(total / window_s, low.clamp(0.0, total) / window_s, high.max(total) / window_s)
}

/// A quick look: true when [`rate`] would surely give a relative half width above `wanted` (below
/// 1), because batch means alone do. Costs one pass.
pub fn surely_wider(counts: &[f64], quantum: f64, wanted: f64) -> bool {
    let events = counts.iter().sum::<f64>() / quantum;
    if wanted >= 1.0 || events < 0.5 {
        return false;
    }
    let joined = coarsen(counts, coarsening(events.round() as u64, counts.len()));
    let coarse = coarsen(&joined, (joined.len() / 300).max(1));
    batch_half_width(&coarse) > wanted * mean(&coarse) * 1.01
}

#[cfg(test)]
mod tests {
    use super::super::rng::Rng;
    use super::*;

    fn autoregressive(correlation: f64, n: usize, seed: u64) -> Vec<f64> {
        let mut rng = Rng::from_seed(seed);
        let mut level = rng.normal();
        let fresh = (1.0 - correlation * correlation).sqrt();
        (0..n)
            .map(|_| {
                level = correlation * level + fresh * rng.normal();
                100.0 + level
            })
            .collect()
    }

    #[test]
    fn batch_means_agree_with_a_sum_by_hand() {
        // Twenty values, ten batches of two with the means 1 to 10: variance 55 / 6.
        let series: Vec<f64> = (1..=10).flat_map(|x| [f64::from(x); 2]).collect();
        let expected = student_t_95(9.0) * (55.0f64 / 6.0 / 10.0).sqrt();
        assert!((batch_half_width(&series) - expected).abs() < 1e-9);
    }

    #[test]
    fn correlation_time_of_an_autoregression_is_known() {
        // (1 + r) / (1 - r), with some room for the estimate and for its upward correction.
        for (correlation, expected) in [(0.0, 1.0), (0.5, 3.0), (0.9, 19.0)] {
            let got = correlation_time(&autoregressive(correlation, 20_000, 4));
            assert!(got > 0.9 * expected && got < 1.25 * expected, "{got}");
        }
    }

    #[test]
    fn an_alternating_series_gets_no_credit() {
        let series: Vec<f64> = (0..100).map(|i| f64::from(i % 2)).collect();
        assert_eq!(correlation_time(&series), 1.0);
    }

    #[test]
    fn the_interval_of_independent_values_is_near_the_textbook() {
        let series = autoregressive(0.0, 4000, 8);
        let textbook = 1.96 / 4000.0f64.sqrt();
        let got = mean_interval(&series);
        assert!(got.below > 0.8 * textbook && got.below < 1.9 * textbook);
    }

    #[test]
    fn correlation_widens_the_interval() {
        let quiet = mean_interval(&autoregressive(0.0, 400, 1));
        let slow = mean_interval(&autoregressive(0.9, 400, 1));
        assert!(slow.below > 2.5 * quiet.below);
    }

    #[test]
    fn a_long_tail_reaches_further_on_its_side() {
        let mut rng = Rng::from_seed(6);
        let series: Vec<f64> = (0..30).map(|_| (1.2 * rng.normal()).exp()).collect();
        let interval = mean_interval(&series);
        assert!(interval.above > 1.05 * interval.below);
        let mirrored: Vec<f64> = series.iter().map(|x| 1000.0 - x).collect();
        let mirrored = mean_interval(&mirrored);
        assert!((mirrored.below - interval.above).abs() < 1e-6 * interval.above);
    }

    #[test]
    fn little_data_gives_wide_intervals() {
        assert_eq!(mean_interval(&[]).below, f64::INFINITY);
        assert_eq!(mean_interval(&[5.0]).above, f64::INFINITY);
        let two = mean_interval(&[4.0, 6.0]);
        assert!(two.below > 3.0 && two.below.is_finite());
        let nothing = rate(&[], 0.1, 1.0);
        assert_eq!((nothing.value, nothing.low), (0.0, 0.0));
        assert_eq!(nothing.high, f64::INFINITY);
    }

    #[test]
    fn a_constant_rate_is_known_to_one_operation() {
        let got = rate(&[10.0; 50], 0.1, 1.0);
        assert_eq!((got.value, got.low, got.high), (100.0, 499.0 / 5.0, 501.0 / 5.0));
    }

    #[test]
    fn no_operation_is_the_rule_of_three() {
        let got = rate(&[0.0; 60], 0.1, 4096.0);
        assert_eq!((got.value, got.low), (0.0, 0.0));
        assert!((got.high - 3.0 * 4096.0 / 6.0).abs() < 1e-6);
    }

    #[test]
    fn few_operations_are_worth_no_more_than_poisson() {
        // One operation per second for nine seconds, as regular as can be: Garwood's 4.12 to 17.08.
        let counts: Vec<f64> = (0..90).map(|i| f64::from(u8::from(i % 10 == 5))).collect();
        let got = rate(&counts, 0.1, 1.0);
        assert!((got.value - 1.0).abs() < 1e-12);
        assert!(got.low <= 4.1154 / 9.0 && got.high >= 17.0848 / 9.0);
    }

    #[test]
    fn the_quick_look_is_never_wrong() {
        let mut rng = Rng::from_seed(11);
        let mut wider = 0;
        for seed in 0..200 {
            let mut counts = autoregressive(0.5, 20 + 2 * seed, seed as u64);
            let spread = 40.0 * rng.unit();
            let level = 60.0 * rng.unit() + 0.5;
            for x in &mut counts {
                *x = (level + (*x - 100.0) * spread).max(0.0).round();
            }
            if surely_wider(&counts, 1.0, 0.1) {
                wider += 1;
                assert!(rate(&counts, 0.1, 1.0).relative_half_width() > 0.1);
            }
        }
        assert!(wider > 20);
    }
}
