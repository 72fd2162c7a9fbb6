//! Change of the rate during a run: drift between its ends, and the points where its level jumps.

use super::compare;
use super::interval::{self, MeanInterval};
use crate::estimate::Estimate;

/// A point where the level of a series changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Index of the first value of the new level.
    pub at: usize,
    /// Mean before.
    pub before: f64,
    /// Mean after.
    pub after: f64,
}

/// Changes smaller than this share are of no interest to anybody.
const LEAST_CHANGE: f64 = 0.05;

/// The mean of the last third over that of the first third, with its 95 % interval, if they differ
/// by more than 5 % and by more than their noise; otherwise nothing.
///
/// Fewer than 15 values say nothing about drift.
pub fn drift(series: &[f64]) -> Option<Estimate> {
    let third = series.len() / 3;
    if third < 5 {
        return None;
    }
    let estimate = |part: &[f64]| {
        let MeanInterval { mean, half_width } = interval::mean_interval(part);
        Estimate::new(
            mean,
            (mean - half_width).max(0.0).min(mean),
            mean + half_width,
        )
    };
    let first = estimate(&series[..third]);
    let last = estimate(&series[series.len() - third..]);
    let ratio = compare::ratio(last, first)?;
    let beyond_noise = ratio.low > 1.0 || ratio.high < 1.0;
    (beyond_noise && (ratio.value - 1.0).abs() >= LEAST_CHANGE).then_some(ratio)
}

/// The most likely point where the level of the series changes, if there is one beyond its noise.
///
/// The largest deviation of the cumulative sum from a straight line, divided by the long-run
/// standard deviation of what remains when the two levels are taken out, is compared with the 99 %
/// point of the largest value of a Brownian bridge, 1.628 (Ploberger and Krämer, Econometrica 60,
/// 1992; the distribution is Kolmogorov's). Changes of less than 5 % are ignored.
pub fn change_point(series: &[f64]) -> Option<Change> {
    const BROWNIAN_BRIDGE_99: f64 = 1.628;
    let n = series.len();
    if n < 10 {
        return None;
    }
    let mean = interval::mean(series);
    let mut sum = 0.0;
    let (mut at, mut largest) = (0, 0.0);
    for (i, x) in series.iter().enumerate().take(n - 1) {
        sum += x - mean;
        // Weighing by the distance to the ends finds early and late changes at their place.
        let share = (i + 1) as f64 / n as f64;
        let weighted = f64::abs(sum) / (share * (1.0 - share)).sqrt();
        if weighted > largest {
            (at, largest) = (i + 1, weighted);
        }
    }
    if at == 0 {
        return None;
    }
    let (before, after) = (interval::mean(&series[..at]), interval::mean(&series[at..]));
    let rest: Vec<f64> = series
        .iter()
        .enumerate()
        .map(|(i, x)| x - if i < at { before } else { after })
        .collect();
    let long_run = interval::variance(&rest) * interval::correlation_time(&rest);
    let bridge = (at as f64 * (before - mean)).abs() / (long_run * n as f64).sqrt();
    let relevant = (after - before).abs() >= LEAST_CHANGE * before.abs().max(after.abs());
    (relevant && bridge > BROWNIAN_BRIDGE_99).then_some(Change { at, before, after })
}
