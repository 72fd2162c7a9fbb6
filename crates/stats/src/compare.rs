//! Before and after: the ratio of two results with its interval, and what it means.

use super::bootstrap;
use super::interval;
use super::rng::Rng;
use crate::estimate::Estimate;

/// What a ratio says about a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The whole interval lies above 1 + tolerance.
    Higher,
    /// The whole interval lies below 1 - tolerance.
    Lower,
    /// The whole interval lies within 1 ± tolerance: no difference that matters.
    Same,
    /// The interval reaches across a border: measure longer.
    Unclear,
}

/// Judges a ratio against a tolerance (0.05: differences of up to 5 % do not matter).
pub fn judge(ratio: Estimate, tolerance: f64) -> Judgement {
    let (least, most) = (1.0 - tolerance, 1.0 + tolerance);
    if ratio.low > most {
        Judgement::Higher
    } else if ratio.high < least {
        Judgement::Lower
    } else if ratio.low >= least && ratio.high <= most {
        Judgement::Same
    } else {
        Judgement::Unclear
    }
}

/// The ratio `a / b` of two independent estimates of rates with its 95 % interval; nothing when
/// one of the values is not positive and finite.
///
/// On the logarithms, by the method of variance estimates recovery: the distances of the bounds
/// are joined like standard deviations, each side on its own, so that lopsided intervals stay
/// lopsided (Zou and Donner, Statistics in Medicine 27, 2008; for ratios Donner and Zou,
/// Statistical Methods in Medical Research 21, 2012). A lower bound of 0 in `b` gives an
/// infinite upper bound.
pub fn ratio(a: Estimate, b: Estimate) -> Option<Estimate> {
    let usable = |x: f64| x > 0.0 && x.is_finite();
    let value = a.value / b.value;
    if !usable(a.value) || !usable(b.value) || !usable(value) {
        return None;
    }
    let below = |e: Estimate| (e.value / e.low.max(0.0)).ln();
    let above = |e: Estimate| (e.high / e.value).ln();
    let low = value * (-below(a).hypot(above(b))).exp();
    let high = value * above(a).hypot(below(b)).exp();
    Some(Estimate::new(value, low.min(value), high.max(value)))
}

/// How far two runs of the same device may differ beyond what either of them shows, at 95 %, as a share: state of the flash
/// translation layer, placement, heat. An assumption: one run cannot show it.
pub const BETWEEN_RUNS: f64 = 0.10;

/// The same for runs in a virtual machine, whose disks have caches and other guests behind them that change between runs. Chosen from
/// ten runs each of three devices of one (docs/explanation/statistics.md), so that in at least 95 of 100 comparisons of equals no figure is called
/// faster or slower.
pub const BETWEEN_RUNS_OF_GUESTS: f64 = 0.50;

/// A ratio of two runs at different times with the allowance for what differs between runs: on the logarithms, joined with
/// the interval like a standard deviation.
pub fn between_runs(ratio: Estimate, allowance: f64) -> Estimate {
    let more = allowance.ln_1p();
    let below = (ratio.value / ratio.low.max(0.0)).ln().hypot(more);
    let above = (ratio.high / ratio.value).ln().hypot(more);
    Estimate::new(
        ratio.value,
        (ratio.value * (-below).exp()).min(ratio.value),
        (ratio.value * above.exp()).max(ratio.value),
    )
}

/// The ratio of the means of two independent series with its 95 % interval from `rounds`
/// moving-block resamplings of both; nothing when a mean is not positive.
pub fn ratio_of_series(a: &[f64], b: &[f64], rounds: usize, rng: &mut Rng) -> Option<Estimate> {
    let (mean_a, mean_b) = (interval::mean(a), interval::mean(b));
    if mean_a <= 0.0 || mean_b <= 0.0 {
        return None;
    }
    let (block_a, block_b) = (bootstrap::block_length(a), bootstrap::block_length(b));
    let (mut sample_a, mut sample_b) = (Vec::new(), Vec::new());
    let ratios = (0..rounds)
        .map(|_| {
            bootstrap::resample(a, block_a, rng, &mut sample_a);
            bootstrap::resample(b, block_b, rng, &mut sample_b);
            interval::mean(&sample_a) / interval::mean(&sample_b)
        })
        .collect();
    bootstrap::bounds(mean_a / mean_b, ratios)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_of_exact_numbers_is_exact() {
        let got = ratio(Estimate::exact(30.0), Estimate::exact(20.0)).unwrap();
        assert_eq!((got.value, got.low, got.high), (1.5, 1.5, 1.5));
    }

    #[test]
    fn errors_join_like_standard_deviations() {
        let a = Estimate::new(100.0, 97.0, 103.0);
        let b = Estimate::new(100.0, 96.0, 104.0);
        let got = ratio(a, b).unwrap();
        assert!((got.high - 1.05).abs() < 0.003 && (got.low - 0.95).abs() < 0.003);
    }

    #[test]
    fn the_inverse_ratio_has_the_inverse_interval() {
        let a = Estimate::new(100.0, 70.0, 103.0);
        let b = Estimate::new(40.0, 36.0, 55.0);
        let (there, back) = (ratio(a, b).unwrap(), ratio(b, a).unwrap());
        assert!((there.low * back.high - 1.0).abs() < 1e-12);
        assert!((there.high * back.low - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_unknown_stays_unknown() {
        let vague = Estimate::new(10.0, 0.0, f64::INFINITY);
        let got = ratio(vague, Estimate::exact(5.0)).unwrap();
        assert_eq!((got.value, got.low, got.high), (2.0, 0.0, f64::INFINITY));
        assert_eq!(ratio(Estimate::exact(0.0), Estimate::exact(5.0)), None);
        assert_eq!(ratio(Estimate::exact(5.0), Estimate::exact(0.0)), None);
        assert_eq!(ratio(Estimate::exact(f64::INFINITY), Estimate::exact(1.0)), None);
    }

    #[test]
    fn judgements_follow_the_interval() {
        let judged = |low, high| judge(Estimate::new((low + high) / 2.0, low, high), 0.05);
        assert_eq!(judged(1.06, 1.2), Judgement::Higher);
        assert_eq!(judged(0.5, 0.94), Judgement::Lower);
        assert_eq!(judged(0.96, 1.04), Judgement::Same);
        assert_eq!(judged(0.98, 1.2), Judgement::Unclear);
        assert_eq!(judged(0.9, 1.1), Judgement::Unclear);
    }

    #[test]
    fn resampled_ratios_hold_the_truth_as_often_as_the_bootstrap_promises() {
        let mut rng = Rng::from_seed(12);
        let (mut held, trials) = (0, 300);
        for _ in 0..trials {
            let mut series = |level: f64| -> Vec<f64> {
                (0..120).map(|_| level * (1.0 + 0.1 * rng.normal())).collect()
            };
            let (a, b) = (series(150.0), series(100.0));
            let got = ratio_of_series(&a, &b, 200, &mut rng).unwrap();
            held += u32::from(got.low <= 1.5 && 1.5 <= got.high);
            assert!(got.relative_half_width() < 0.05);
        }
        assert!(held > trials * 88 / 100, "{held} of {trials}");
        assert_eq!(ratio_of_series(&[], &[1.0], 10, &mut rng), None);
    }
}
