//! The cliff of a sustained write: the moment from which on the rate is lower and stays so.
//!
//! One step is looked for in the series of bytes, by the least sum of absolute deviations from the
//! medians on both sides: medians, so that stalls and regular dips (garbage collection) move
//! neither the step nor the levels. A step is a cliff only when the rate falls by a fifth or more
//! beyond the noise of both sides, at once and not little by little, and when what follows has
//! lasted longer than any dip before.

use crate::estimate::Estimate;
use crate::interval;
use crate::series::Series;

/// Least duration of a joined bin, in seconds, and maximum number of joined bins.
const COARSE_S: f64 = 0.5;
const MAX_COARSE: usize = 240;
/// Minimum number of joined bins in a level.
const MIN_BINS: usize = 3;
/// What comes after a cliff is at most this share of what was before.
const FALLEN: f64 = 0.8;
/// What comes after has lasted at least this long, in seconds, and this share of what was before.
const MIN_AFTER_S: f64 = 4.0;
const MIN_AFTER_SHARE: f64 = 0.1;
/// After a cliff this long is enough, in seconds, if the rate is known to this share by then ...
const SETTLED_S: f64 = 15.0;
const SETTLED_TO: f64 = 0.10;
/// ... and this long is enough whatever the rate does.
const SETTLED_ANYWAY_S: f64 = 60.0;

/// A fall in a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fall {
    /// Bytes before it.
    pub burst_bytes: Estimate,
    /// Bytes per second before it.
    pub before: Estimate,
    /// Bytes per second after it.
    pub after: Estimate,
    /// Seconds after it.
    pub after_s: f64,
}

impl Fall {
    /// Whether what follows is known well enough to stop looking.
    pub fn is_settled(&self) -> bool {
        let is_precise = self.after.relative_half_width() <= SETTLED_TO;
        self.after_s >= SETTLED_ANYWAY_S || (self.after_s >= SETTLED_S && is_precise)
    }
}

/// The cliff of a series, if there is one; `block_bytes` is the size of an operation.
pub fn fall(series: &Series, block_bytes: f64) -> Option<Fall> {
    let fine: Vec<f64> = series.bytes.iter().map(|&bytes| bytes as f64).collect();
    let joined =
        ((COARSE_S / series.bin_s).ceil() as usize).max(fine.len().div_ceil(MAX_COARSE)).max(1);
    let coarse: Vec<f64> =
        fine.chunks_exact(joined).map(|bins| bins.iter().sum::<f64>() / joined as f64).collect();
    let step = best_step(&coarse)?;
    if !is_steep(&coarse, &step) || !stays(&coarse, &step, joined as f64 * series.bin_s) {
        return None;
    }
    let (at, span) = refine(&fine, step, joined);
    let (left, right) = fine.split_at(at);
    let before = interval::rate(left, series.bin_s, block_bytes);
    let after = interval::rate(right, series.bin_s, block_bytes);
    if after.value > FALLEN * before.value || after.high >= before.low {
        return None;
    }
    let upto = |bins: usize| fine[..bins].iter().sum::<f64>();
    let burst = upto(at);
    Some(Fall {
        burst_bytes: Estimate::new(
            burst,
            upto(span.0).min(burst - block_bytes).max(0.0),
            upto(span.1).max(burst + block_bytes),
        ),
        before,
        after,
        after_s: right.len() as f64 * series.bin_s,
    })
}

/// A step: where, and the levels on both sides, in bytes per bin.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    at: usize,
    before: f64,
    after: f64,
}

impl Step {
    /// The level that tells the two apart: their geometric mean, or a tenth of the upper one where
    /// nothing is left.
    fn middle(&self) -> f64 {
        (self.before * self.after.max(self.before * 0.01)).sqrt()
    }
}

/// The step downwards with the least absolute deviations from the medians.
fn best_step(series: &[f64]) -> Option<Step> {
    let mut best: Option<(f64, Step)> = None;
    for at in MIN_BINS..=series.len().checked_sub(MIN_BINS)? {
        let (left, right) = series.split_at(at);
        let (before, after) = (median(left), median(right));
        let cost = deviations(left, before) + deviations(right, after);
        let is_better = best.as_ref().is_none_or(|(least, _)| cost < *least);
        if after < before && is_better {
            best = Some((cost, Step { at, before, after }));
        }
    }
    best.map(|(_, step)| step)
}

/// Whether at least half of the fall happens at the step and not little by little around it.
fn is_steep(series: &[f64], step: &Step) -> bool {
    let near = (series.len() / 10).max(5);
    let left = &series[step.at.saturating_sub(near)..step.at];
    let right = &series[step.at..series.len().min(step.at + near)];
    median(left) - median(right) >= 0.5 * (step.before - step.after)
}

/// Whether what follows lasts: long enough, hardly ever back above the middle, and longer than any
/// dip before the step.
fn stays(series: &[f64], step: &Step, bin_s: f64) -> bool {
    let (left, right) = series.split_at(step.at);
    let middle = step.middle();
    let (left_s, right_s) = (left.len() as f64 * bin_s, right.len() as f64 * bin_s);
    let back = right.iter().filter(|&&bytes| bytes > middle).count();
    let longest_dip = left.split(|&bytes| bytes > middle).map(<[f64]>::len).max().unwrap_or(0);
    right_s >= MIN_AFTER_S.max(MIN_AFTER_SHARE * left_s)
        && back * 4 <= right.len()
        && longest_dip * 2 < right.len()
}

/// The step among the bins as they were measured, and the places between which it lies with 95 %
/// confidence: where the sum of absolute deviations is larger by less than what their likelihood
/// (Laplace) allows, for bins that resemble their neighbours.
fn refine(fine: &[f64], step: Step, joined: usize) -> (usize, (usize, usize)) {
    /// Half of the 95 % point of chi-square with one degree of freedom.
    const HALF_CHI_SQUARE: f64 = 1.92;
    let reach = 4 * joined;
    let centre = step.at * joined;
    let from = centre.saturating_sub(reach).max(1);
    let upto = (centre + reach).min(fine.len() - 1);
    let excess = |bytes: f64| (bytes - step.before).abs() - (bytes - step.after).abs();
    // The cost of a step before bin `i`, against that of one before bin `from`.
    let mut cost = 0.0;
    let mut costs = vec![(from, 0.0)];
    for (i, &bytes) in fine.iter().enumerate().take(upto).skip(from) {
        cost += excess(bytes);
        costs.push((i + 1, cost));
    }
    let least = costs.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((centre, 0.0));
    let residuals: Vec<f64> = fine
        .iter()
        .enumerate()
        .map(|(i, &bytes)| bytes - if i < least.0 { step.before } else { step.after })
        .collect();
    let scale = residuals.iter().map(|r| r.abs()).sum::<f64>() / residuals.len() as f64;
    let slack = HALF_CHI_SQUARE * scale * interval::correlation_time(&residuals).max(1.0);
    let near = costs.iter().filter(|(_, cost)| *cost <= least.1 + slack);
    let (mut first, mut last) = (least.0, least.0);
    for &(place, _) in near {
        first = first.min(place);
        last = last.max(place);
    }
    // A dip or a stall at the step may have come before or after it.
    let in_dip = |bytes: f64| bytes < 0.8 * step.after;
    while first > 0 && in_dip(fine[first - 1]) {
        first -= 1;
    }
    while last < fine.len() && in_dip(fine[last]) {
        last += 1;
    }
    // The step lies somewhere within a bin.
    (least.0, (first.saturating_sub(1), (last + 1).min(fine.len())))
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

fn deviations(values: &[f64], level: f64) -> f64 {
    values.iter().map(|value| (value - level).abs()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: f64 = 1e6;

    /// A series of seconds at rates (bytes per second), in bins of 0.1 s.
    fn series(parts: &[(f64, f64)]) -> Series {
        let mut bytes = Vec::new();
        for &(seconds, rate) in parts {
            bytes.extend(std::iter::repeat_n((rate * 0.1) as u64, (seconds * 10.0) as usize));
        }
        Series { bin_s: 0.1, bytes }
    }

    fn found(parts: &[(f64, f64)]) -> Option<Fall> {
        fall(&series(parts), MB)
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        let fall = found(&[(33.0, 58.0 * MB), (40.0, 9.0 * MB)]).unwrap();
        assert!((fall.burst_bytes.value / (33.0 * 58.0 * MB) - 1.0).abs() < 1e-3, "{fall:?}");
        assert!((fall.before.value / (58.0 * MB) - 1.0).abs() < 1e-3);
        assert!((fall.after.value / (9.0 * MB) - 1.0).abs() < 1e-3);
        assert!(fall.is_settled() && (fall.after_s - 40.0).abs() < 0.2);
        assert!(fall.burst_bytes.relative_half_width() < 0.02);
    }

    #[test]
    fn nothing_left_is_a_cliff_too() {
        let fall = found(&[(10.0, 58.0 * MB), (10.0, 0.0)]).unwrap();
        assert_eq!(fall.after.value, 0.0);
    }

    #[test]
    fn dips_stalls_and_slopes_are_no_cliffs() {
        assert_eq!(found(&[(60.0, 50.0 * MB)]), None);
        // Garbage is collected every five seconds, at the end as well.
        let dips: Vec<(f64, f64)> =
            (0..12).flat_map(|_| [(4.0, 50.0 * MB), (2.0, 5.0 * MB)]).collect();
        assert_eq!(found(&dips), None);
        assert_eq!(found(&[(30.0, 50.0 * MB), (2.0, 0.0)]), None);
        assert_eq!(found(&[(30.0, 50.0 * MB), (8.0, 0.0), (30.0, 50.0 * MB)]), None);
        let slope: Vec<(f64, f64)> =
            (0..100).map(|i| (0.5, (100.0 - 0.5 * f64::from(i)) * MB)).collect();
        assert_eq!(found(&slope), None);
        assert_eq!(found(&[(30.0, 9.0 * MB), (30.0, 50.0 * MB)]), None);
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[(1.0, 9.0 * MB)]), None);
    }

    #[test]
    fn a_cliff_among_dips_is_found() {
        let mut parts: Vec<(f64, f64)> =
            (0..6).flat_map(|_| [(4.0, 50.0 * MB), (0.7, 2.0 * MB)]).collect();
        parts.extend((0..6).flat_map(|_| [(4.0, 10.0 * MB), (0.7, 1.0 * MB)]));
        let fall = found(&parts).unwrap();
        let truth = 6.0 * (4.0 * 50.0 + 0.7 * 2.0) * MB;
        assert!((fall.burst_bytes.value / truth - 1.0).abs() < 0.02, "{fall:?}");
        assert!(fall.burst_bytes.low <= truth && truth <= fall.burst_bytes.high);
    }

    #[test]
    fn a_fall_that_has_just_begun_is_not_settled() {
        let fall = found(&[(20.0, 50.0 * MB), (6.0, 10.0 * MB)]).unwrap();
        assert!(!fall.is_settled());
    }
}
