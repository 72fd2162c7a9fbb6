//! Change of the rate during a run: drift between its ends, and the points where its level jumps.

use super::compare;
use super::interval;
use super::quantile::{student_t, student_t_95};
use crate::estimate::Estimate;

/// A point where the level of a series changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Index of the first value of the new level.
    pub at: usize,
    /// Mean of the level before `at`.
    pub before: f64,
    /// Mean of the level from `at` on.
    pub after: f64,
}

/// Changes smaller than this share are of no interest to anybody.
const MIN_CHANGE: f64 = 0.05;

/// How far the mean of `window_s` seconds may be from the level in the long run, as a share of it, because the level changes too
/// slowly for the window to show: 0.055 / sqrt(window_s), at most 1.
///
/// This is 1.96 standard errors of the mean of a level that varies by 2 % with a correlation time of a second. Both figures are an
/// assumption, not a measurement: a window of three such times cannot tell how slowly a level changes (see [`drift`] for what it
/// can tell). That it shrinks with the window says that the longer one looks, the more of such a change one has seen.
pub fn unseen_share(window_s: f64) -> f64 {
    (0.055 / window_s.max(0.0).sqrt()).min(1.0)
}

/// The mean of the last third over that of the first third, with its 95 % interval, if they differ
/// by more than 5 % and, with 99 % confidence, by more than their noise; otherwise nothing.
///
/// The noise is what remains of the whole series when the better fitting of a straight line and a
/// step has been taken out; its variance and correlation time give the interval of each third, with
/// as many degrees of freedom as there are independent values less two. Fewer than 15 values say
/// nothing about drift.
pub fn drift(series: &[f64]) -> Option<Estimate> {
    let third = series.len() / 3;
    if third < 5 {
        return None;
    }
    let (line, step) = (without_line(series), without_step(series, split(series)));
    let rest = if interval::variance(&line) <= interval::variance(&step) { line } else { step };
    let tau = interval::correlation_time(&rest).min(third as f64);
    let freedom = (series.len() as f64 / tau - 2.0).max(1.0);
    // What was taken out has also taken some of the slow noise with it: two independent values.
    let kept = (1.0 - 2.0 * tau / series.len() as f64).max(0.3);
    let error = (interval::variance(&rest) / kept * tau / third as f64).sqrt();
    let half = student_t_95(freedom) * error;
    let estimate = |part: &[f64]| {
        let mean = interval::mean(part);
        Estimate::new(mean, (mean - half).clamp(0.0, mean), mean + half)
    };
    let first = estimate(&series[..third]);
    let last = estimate(&series[series.len() - third..]);
    let certain = student_t(0.995, freedom) * error * std::f64::consts::SQRT_2;
    let ratio = compare::ratio(last, first)?;
    let real = (last.value - first.value).abs() > certain;
    (real && (ratio.value - 1.0).abs() >= MIN_CHANGE).then_some(ratio)
}

/// What remains of a series without its least-squares line.
fn without_line(series: &[f64]) -> Vec<f64> {
    let middle = (series.len() as f64 - 1.0) / 2.0;
    let mean = interval::mean(series);
    let (mut products, mut squares) = (0.0, 0.0);
    for (i, x) in series.iter().enumerate() {
        let place = i as f64 - middle;
        products += place * (x - mean);
        squares += place * place;
    }
    let slope = products / squares;
    let line = |i: usize| mean + slope * (i as f64 - middle);
    series.iter().enumerate().map(|(i, x)| x - line(i)).collect()
}

/// What remains of a series without the means before and after a point.
fn without_step(series: &[f64], at: usize) -> Vec<f64> {
    let (before, after) = series.split_at(at);
    let (low, high) = (interval::mean(before), interval::mean(after));
    let before = before.iter().map(|x| x - low);
    before.chain(after.iter().map(|x| x - high)).collect()
}

/// The best place to cut a series in two levels: where the squares of what remains are smallest. 1
/// or more; at least two values are needed.
fn split(series: &[f64]) -> usize {
    let n = series.len() as f64;
    let mean = interval::mean(series);
    let (mut at, mut largest, mut sum) = (1, 0.0, 0.0);
    for (i, x) in series.iter().enumerate().take(series.len() - 1) {
        sum += x - mean;
        // The squares explained by a cut after this value are sum^2 / (n share (1 - share)).
        let share = (i + 1) as f64 / n;
        let explained = sum * sum / (share * (1.0 - share));
        if explained > largest {
            (at, largest) = (i + 1, explained);
        }
    }
    at
}

/// The most likely point where the level of the series changes, if there is one beyond its noise.
///
/// The cumulative deviation from the mean at the best cut, divided by the long-run standard
/// deviation of what remains when the two levels are taken out, is compared with the 99 % point of
/// the largest value of a Brownian bridge, 1.628 (Ploberger and Krämer, Econometrica 60, 1992; the
/// distribution is Kolmogorov's). Changes of less than 5 % are ignored, and so are series of
/// fewer than 10 values.
pub fn change_point(series: &[f64]) -> Option<Change> {
    const BROWNIAN_BRIDGE_99: f64 = 1.628;
    let n = series.len() as f64;
    if n < 10.0 {
        return None;
    }
    let at = split(series);
    let (before, after) = (interval::mean(&series[..at]), interval::mean(&series[at..]));
    let rest = without_step(series, at);
    let long_run = interval::variance(&rest) * interval::correlation_time(&rest);
    let bridge = at as f64 * (before - interval::mean(series)).abs() / (long_run * n).sqrt();
    let relevant = (after - before).abs() >= MIN_CHANGE * before.abs().max(after.abs());
    (relevant && bridge > BROWNIAN_BRIDGE_99).then_some(Change { at, before, after })
}

#[cfg(test)]
mod tests {
    use super::super::rng::Rng;
    use super::*;

    fn noisy(n: usize, seed: u64, level: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut rng = Rng::from_seed(seed);
        (0..n).map(|i| level(i) * (1.0 + 0.05 * rng.normal())).collect()
    }

    /// Share of 500 noisy series for which the test is true.
    fn share(level: impl Fn(usize) -> f64, test: impl Fn(&[f64]) -> bool) -> f64 {
        let hits = (0..500).filter(|&seed| test(&noisy(100, seed, &level)));
        hits.count() as f64 / 500.0
    }

    #[test]
    fn a_steady_rate_does_not_drift() {
        assert!(share(|_| 100.0, |x| drift(x).is_some()) <= 0.01);
        assert!(share(|_| 100.0, |x| change_point(x).is_some()) <= 0.02);
    }

    #[test]
    fn a_falling_rate_does() {
        let falling = |i: usize| 100.0 - 0.3 * i as f64;
        assert!(share(falling, |x| drift(x).is_some()) >= 0.99);
        let ratio = drift(&noisy(100, 1, falling)).unwrap();
        // The middles of the thirds are 66 values apart: 75.4 / 95.2.
        assert!(ratio.low < 0.79 && 0.79 < ratio.high, "{ratio:?}");
    }

    #[test]
    fn a_cliff_is_found_at_its_place() {
        let cliff = |i: usize| if i < 63 { 200.0 } else { 80.0 };
        for seed in 0..100 {
            let change = change_point(&noisy(100, seed, cliff)).unwrap();
            assert_eq!(change.at, 63);
            assert!((change.before - 200.0).abs() < 6.0 && (change.after - 80.0).abs() < 3.0);
        }
        assert!(drift(&noisy(100, 0, cliff)).is_some());
    }

    #[test]
    fn an_early_change_is_found() {
        let start = |i: usize| if i < 8 { 200.0 } else { 100.0 };
        for seed in 0..100 {
            assert_eq!(change_point(&noisy(60, seed, start)).unwrap().at, 8);
        }
    }

    #[test]
    fn small_changes_and_short_series_are_ignored() {
        assert_eq!(change_point(&[1.0; 100]), None);
        assert_eq!(change_point(&[]), None);
        assert_eq!(change_point(&[1.0, 9.0, 9.0]), None);
        assert_eq!(drift(&[]), None);
        let tiny: Vec<f64> = (0..100).map(|i| if i < 50 { 100.0 } else { 103.0 }).collect();
        assert_eq!((change_point(&tiny), drift(&tiny)), (None, None));
        let step: Vec<f64> = (0..100).map(|i| if i < 50 { 100.0 } else { 110.0 }).collect();
        assert!(change_point(&step).is_some_and(|c| c.at == 50));
        assert!(drift(&step).is_some());
        // From or to nothing: a change, but no ratio.
        let dead: Vec<f64> = (0..100).map(|i| if i < 50 { 100.0 } else { 0.0 }).collect();
        assert!(change_point(&dead).is_some());
        assert_eq!(drift(&dead), None);
    }
}
