//! Which boards stand apart from their fleet, and how sure that is.
//!
//! Every figure of every board is compared with the median of its series, on the logarithms. How
//! far boards that are alike differ is estimated from the series itself, robustly (the median
//! absolute deviation, so that slow boards do not hide behind one another), and is never taken for
//! less than what two runs of one device may differ by. Each board's own interval is joined with
//! that. A board is named only if the interval of its ratio, widened for the number of comparisons
//! (Bonferroni), excludes 1: among boards that are alike, at most one fleet in twenty names one.

use rubus_stats::estimate::Estimate;

use crate::spread::{Z_95, allowance, around_median, median, quantile};

/// How often a fleet of boards that are alike may have one named.
pub const WRONG_FLEETS: f64 = 0.05;
/// With fewer boards no median says what is usual.
pub const MIN_BOARDS: usize = 3;

/// One figure of one board.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Which board; a number that only the caller understands.
    pub subject: usize,
    /// The figure, with its interval.
    pub value: Estimate,
}

/// A board that stands apart in one series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Apart {
    /// Number of the series.
    pub series: usize,
    /// As in the sample.
    pub subject: usize,
    /// The board's figure, with its interval.
    pub value: Estimate,
    /// The median of the series.
    pub median: f64,
    /// The figure over the median, with the interval that allows for all comparisons.
    pub ratio: Estimate,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// How many figures were compared with a median.
    pub comparisons: usize,
    /// The boards that stand apart: by series, then in the order of the samples.
    pub apart: Vec<Apart>,
}

impl Found {
    /// The level of each interval, such as 0.9995.
    pub fn level(&self) -> f64 {
        1.0 - WRONG_FLEETS / self.comparisons.max(1) as f64
    }
}

/// Compares each figure with the median of its series. A series is one figure of boards of one
/// kind; those of fewer than [`MIN_BOARDS`] boards are passed over.
pub fn find(all: &[Vec<Sample>]) -> Found {
    let usable = |sample: &&Sample| sample.value.value > 0.0 && sample.value.value.is_finite();
    let series: Vec<(usize, Vec<&Sample>)> = all
        .iter()
        .map(|samples| samples.iter().filter(usable).collect::<Vec<_>>())
        .enumerate()
        .filter(|(_, samples)| samples.len() >= MIN_BOARDS)
        .collect();
    let mut found = Found {
        comparisons: series.iter().map(|(_, samples)| samples.len()).sum(),
        apart: Vec::new(),
    };
    let level = found.level();
    for (number, samples) in series {
        found.apart.extend(apart(number, &samples, level));
    }
    found
}

fn apart(series: usize, samples: &[&Sample], level: f64) -> Vec<Apart> {
    let logs: Vec<f64> = samples.iter().map(|one| one.value.value.ln()).collect();
    let middle = median(logs.clone());
    let spread = around_median(&logs).max(allowance());
    let quantile = quantile(level, samples.len());
    let reach = |half_width: f64| quantile * spread.hypot(half_width / Z_95);
    let ratios = samples.iter().zip(&logs).map(|(sample, log)| {
        let Estimate { value, low, high } = sample.value;
        let distance = log - middle;
        let below = reach((value / low.max(0.0)).ln());
        let above = reach((high / value).ln());
        let ratio = distance.exp();
        Apart {
            series,
            subject: sample.subject,
            value: sample.value,
            median: middle.exp(),
            ratio: Estimate::new(
                ratio,
                (distance - below).exp().min(ratio),
                (distance + above).exp().max(ratio),
            ),
        }
    });
    ratios.filter(|one| one.ratio.low > 1.0 || one.ratio.high < 1.0).collect()
}

#[cfg(test)]
mod tests;
