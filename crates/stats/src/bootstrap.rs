//! The moving-block bootstrap, for statistics that have no formula: percentiles and ratios.
//!
//! Blocks of neighbours are drawn with replacement until the resampled series is as long as the
//! original, so that the resemblance of neighbours survives (Künsch, Annals of Statistics 17,
//! 1989). On short series its intervals are somewhat too narrow; the stopping rule does not use
//! it.

use super::interval;
use super::rng::Rng;
use crate::estimate::Estimate;

/// A block length for a series: twice its correlation time, at least n^(1/3) and at most a quarter
/// of the series. (The rate n^(1/3) is from Hall, Horowitz and Jing, Biometrika 82, 1995.)
pub fn block_length(series: &[f64]) -> usize {
    let n = series.len();
    let wanted = (2.0 * interval::correlation_time(series)).max((n as f64).cbrt());
    (wanted.ceil() as usize).clamp(1, (n / 4).max(1))
}

/// One resampled series of the same length, into `out`.
pub fn resample(series: &[f64], block: usize, rng: &mut Rng, out: &mut Vec<f64>) {
    out.clear();
    let n = series.len();
    let block = block.clamp(1, n.max(1));
    while out.len() < n {
        let start = rng.below((n - block + 1) as u64) as usize;
        let length = block.min(n - out.len());
        out.extend_from_slice(&series[start..start + length]);
    }
}

/// The statistic of the series with the 95 % percentile interval of `rounds` resamplings (1000 is
/// usual); nothing for an empty series or one whose statistic is not a finite number.
pub fn interval_of(
    series: &[f64],
    rounds: usize,
    rng: &mut Rng,
    mut statistic: impl FnMut(&mut [f64]) -> f64,
) -> Option<Estimate> {
    if series.is_empty() {
        return None;
    }
    let block = block_length(series);
    let mut sample = series.to_vec();
    let value = statistic(&mut sample);
    let mut values: Vec<f64> = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        resample(series, block, rng, &mut sample);
        values.push(statistic(&mut sample));
    }
    bounds(value, values)
}

/// The 2.5 % and 97.5 % points of the resampled values, stretched to hold the value itself.
pub(super) fn bounds(value: f64, mut values: Vec<f64>) -> Option<Estimate> {
    values.retain(|v| !v.is_nan());
    if !value.is_finite() || values.is_empty() {
        return None;
    }
    let low = percentile(&mut values, 0.025);
    let high = percentile(&mut values, 0.975);
    Some(Estimate::new(value, low.min(value), high.max(value)))
}

/// The value of rank `ceil(q * n)` of unsorted values, which it reorders; NaN for none.
pub fn percentile(values: &mut [f64], q: f64) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
    *values.select_nth_unstable_by(rank - 1, f64::total_cmp).1
}

/// A percentile of a series (`q` from 0 to 1) with its 95 % interval.
pub fn percentile_interval(
    series: &[f64],
    q: f64,
    rounds: usize,
    rng: &mut Rng,
) -> Option<Estimate> {
    interval_of(series, rounds, rng, |sample| percentile(sample, q))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_is_the_value_of_its_rank() {
        let mut values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&mut values, 0.5), 50.0);
        assert_eq!(percentile(&mut values, 0.99), 99.0);
        assert_eq!(percentile(&mut values, 0.0), 1.0);
        assert_eq!(percentile(&mut values, 1.0), 100.0);
        assert!(percentile(&mut [], 0.5).is_nan());
    }

    #[test]
    fn resampling_keeps_length_and_blocks() {
        let series: Vec<f64> = (0..50).map(f64::from).collect();
        let mut sample = Vec::new();
        resample(&series, 10, &mut Rng::from_seed(1), &mut sample);
        assert_eq!(sample.len(), 50);
        for block in sample.chunks(10) {
            assert!(block.windows(2).all(|pair| pair[1] == pair[0] + 1.0));
        }
        resample(&[], 10, &mut Rng::from_seed(1), &mut sample);
        assert!(sample.is_empty());
        resample(&[7.0], 0, &mut Rng::from_seed(1), &mut sample);
        assert_eq!(sample, [7.0]);
    }

    #[test]
    fn blocks_grow_with_the_correlation() {
        let mut rng = Rng::from_seed(2);
        let independent: Vec<f64> = (0..1000).map(|_| rng.normal()).collect();
        let slow: Vec<f64> = (0..1000).map(|i| f64::from(i / 50 % 2)).collect();
        assert!(block_length(&slow) > 4 * block_length(&independent));
        assert_eq!((block_length(&[]), block_length(&[1.0])), (1, 1));
    }

    #[test]
    fn the_median_of_known_data_is_held() {
        let mut rng = Rng::from_seed(3);
        let mut held = 0;
        for _ in 0..200 {
            let series: Vec<f64> = (0..300).map(|_| rng.exponential()).collect();
            let got = percentile_interval(&series, 0.5, 300, &mut rng).unwrap();
            let truth = std::f64::consts::LN_2;
            held += u32::from(got.low <= truth && truth <= got.high);
            assert!(got.high - got.low < 0.5);
        }
        assert!(held >= 176, "{held} of 200");
        assert_eq!(percentile_interval(&[], 0.5, 10, &mut rng), None);
    }
}
