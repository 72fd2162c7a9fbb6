//! How far boards that are alike lie apart: robust estimates, on logarithms, and how wide an
//! interval has to be.

use rubus_stats::compare::BETWEEN_RUNS;
use rubus_stats::quantile::student_t;

/// Normal quantile of a two-sided 95 % interval.
pub(crate) const Z_95: f64 = 1.959_964;
/// From the median absolute deviation to a standard deviation, for normal values.
const MAD_TO_DEVIATION: f64 = 1.482_6;
/// What one value is worth to a robust spread, beside the plain standard deviation: the same for
/// the median absolute deviation and the shortest half.
const ROBUST_EFFICIENCY: f64 = 0.37;
/// Degrees of freedom with which the allowance between runs is known.
const ALLOWANCE_FREEDOM: f64 = 3.0;

/// By how much two runs of one device differ beyond what either shows, as a standard deviation:
/// [`BETWEEN_RUNS`] is the reach of 95 %.
pub(crate) fn allowance() -> f64 {
    BETWEEN_RUNS.ln_1p() / Z_95
}

/// How many standard deviations an interval of that level reaches to each side, where their size
/// comes from the allowance and a number of boards.
pub(crate) fn quantile(level: f64, boards: usize) -> f64 {
    let freedom = ALLOWANCE_FREEDOM + ROBUST_EFFICIENCY * (boards as f64 - 1.0);
    student_t((1.0 + level) / 2.0, freedom)
}

/// The standard deviation of most of the values, by the median absolute deviation: right as long as
/// fewer than half of them are of another kind, all of them far to one side.
pub(crate) fn around_median(values: &[f64]) -> f64 {
    let middle = median(values.to_vec());
    MAD_TO_DEVIATION * median(values.iter().map(|value| (value - middle).abs()).collect())
}

/// The standard deviation of the closest half of the values, wherever they lie: the shortest
/// interval that holds half of them. 0 of fewer than two.
///
/// The factor for small numbers is that of Rousseeuw and Leroy, Robust Regression and Outlier
/// Detection (1987), chapter 5.
pub(crate) fn of_closest_half(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    if sorted.len() < 2 {
        return 0.0;
    }
    let half = sorted.len() / 2;
    let widths = sorted.windows(half + 1).map(|some| some[half] - some[0]);
    let shortest = widths.fold(f64::INFINITY, f64::min);
    let for_few = 1.0 + 5.0 / (sorted.len() as f64 - 1.0);
    MAD_TO_DEVIATION * for_few * shortest / 2.0
}

/// The median of some values; 0 of none.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    let middle = values.len() / 2;
    if values.is_empty() {
        return 0.0;
    }
    let (below, at, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let at = *at;
    match below.iter().copied().max_by(f64::total_cmp) {
        Some(before) if values.len() % 2 == 0 => (before + at) / 2.0,
        _ => at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_stats::rng::Rng;

    #[test]
    fn both_spreads_estimate_the_standard_deviation() {
        let mut rng = Rng::from_seed(5);
        let values: Vec<f64> = (0..2001).map(|_| 7.0 + 0.2 * rng.normal()).collect();
        for found in [around_median(&values), of_closest_half(&values)] {
            assert!((found / 0.2 - 1.0).abs() < 0.1, "{found}");
        }
    }

    #[test]
    fn the_larger_of_two_groups_says_the_spread() {
        let mut rng = Rng::from_seed(6);
        let group = |at: usize| if at % 2 == 0 { 0.0 } else { 0.7 };
        let values: Vec<f64> = (0..41).map(|at| group(at) + 0.05 * rng.normal()).collect();
        assert!(of_closest_half(&values) < 0.15);
    }

    #[test]
    fn few_values() {
        assert_eq!(median(Vec::new()), 0.0);
        assert_eq!(median(vec![3.0, 1.0, 2.0, 4.0]), 2.5);
        assert_eq!(of_closest_half(&[]), 0.0);
        assert_eq!(of_closest_half(&[1.0]), 0.0);
        assert_eq!(around_median(&[1.0]), 0.0);
    }
}
