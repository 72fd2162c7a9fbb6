//! Which boards surely became faster or slower, and how the fleet as a whole changed.
//!
//! A ratio of two runs comes with the 95 % interval that a comparison of two runs gives it: of both
//! runs' own intervals, and of the allowance for what differs between runs (`BETWEEN_RUNS`: 95 % of
//! the ratios of two runs of one device lie within ±10 %, so the standard deviation is 4.9 %). How
//! far boards really drift is estimated from the fleet, too: from the closest half of a figure's
//! ratios, so that boards that changed do not count, and never for less than the allowance. What
//! lies beyond twice the allowance is change and not drift, or else three groups of boards would
//! hide one another.
//!
//! Both families of intervals are widened for their number (Bonferroni), each at half of
//! [`WRONG_FLEETS`]: if nothing changed, at most one comparison in twenty says that something did.

use rubus_stats::estimate::Estimate;
use rubus_stats::quantile::{student_t, student_t_95};

use crate::outliers::{MIN_BOARDS, WRONG_FLEETS};
use crate::spread::{Z_95, allowance, around_median, median, of_closest_half, quantile};

/// Degrees of freedom of a ratio's interval, as the words of two runs take them.
const FREEDOM: f64 = 9.0;
/// Drift between runs is never taken for more than this many times the allowance.
const MAX_DRIFT: f64 = 2.0;
/// Standard error of a median over that of a mean, for normal values.
const MEDIAN_OVER_MEAN: f64 = 1.253_3;

/// The level of each of some intervals, such as 0.99975; half of the wrong words are theirs.
pub fn level(comparisons: usize) -> f64 {
    1.0 - WRONG_FLEETS / 2.0 / comparisons.max(1) as f64
}

/// The ratios with the intervals that allow for all comparisons. A series is one figure of boards of
/// one kind; `comparisons` is the number of ratios in all series.
pub fn widened(series: &[Estimate], comparisons: usize) -> Vec<Estimate> {
    let logs: Vec<f64> = series.iter().map(|ratio| ratio.value.ln()).collect();
    let drift = of_closest_half(&logs).clamp(allowance(), MAX_DRIFT * allowance());
    // The ratios' intervals have the allowance already.
    let more = Z_95 * (drift * drift - allowance() * allowance()).max(0.0).sqrt();
    let level = level(comparisons);
    let times = student_t((1.0 + level) / 2.0, FREEDOM) / student_t_95(FREEDOM);
    let one = |ratio: &Estimate| {
        let below = (ratio.value / ratio.low.max(0.0)).ln();
        let above = (ratio.high / ratio.value).ln();
        around(ratio.value, times * below.hypot(more), times * above.hypot(more))
    };
    series.iter().map(one).collect()
}

/// The median of the ratios of a fleet's boards with its interval, which allows for all
/// `comparisons` of this kind; nothing of fewer than [`MIN_BOARDS`]. Boards are taken to drift
/// independently of one another.
pub fn overall(series: &[Estimate], comparisons: usize) -> Option<Estimate> {
    if series.len() < MIN_BOARDS {
        return None;
    }
    let logs: Vec<f64> = series.iter().map(|ratio| ratio.value.ln()).collect();
    let of_each = |ratio: &Estimate| (ratio.high / ratio.low.max(0.0)).ln() / 2.0 / Z_95;
    let typical = median(series.iter().map(of_each).collect());
    let spread = around_median(&logs).max(typical);
    let error = MEDIAN_OVER_MEAN * spread / (series.len() as f64).sqrt();
    let reach = quantile(level(comparisons), series.len()) * error;
    Some(around(median(logs).exp(), reach, reach))
}

fn around(value: f64, below: f64, above: f64) -> Estimate {
    Estimate::new(value, (value * (-below).exp()).min(value), (value * above.exp()).max(value))
}

#[cfg(test)]
#[path = "sure_tests.rs"]
mod tests;
