//! Ranges carried through a calculation of positive numbers, in logarithms.
//!
//! What is assumed here spans factors, not percents: a consumer SSD flushes 150 to 3000 times a second. The linear law of
//! `rubus_stats::propagation` would carry such a range below zero. So each input is set to its ends one at a time, and the changes of the
//! outcome's logarithm are added in squares (JCGM 100:2008, section 5.1.2, applied to the logarithm).

use rubus_stats::estimate::Estimate;
use rubus_stats::propagation::swings;

/// The outcome of `calculate` with its range; 0 where the outcome is 0. `calculate` asks for each estimate that it uses, always in the
/// same order. Estimates that are the same number move together.
pub fn carry(calculate: impl Fn(&mut dyn FnMut(&Estimate) -> f64) -> f64) -> Estimate {
    let (value, swings) = swings(calculate);
    if value <= 0.0 || !value.is_finite() {
        return Estimate::exact(value.max(0.0));
    }
    let (mut below, mut above) = (0.0, 0.0);
    for (low, high) in swings {
        below += (value / low.max(f64::MIN_POSITIVE)).ln().powi(2);
        above += (high / value).ln().powi(2);
    }
    // Rounding must not put the value outside.
    let low = (value * (-f64::sqrt(below)).exp()).min(value);
    let high = (value * f64::sqrt(above).exp()).max(value);
    Estimate::new(value, low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wide_input_keeps_its_ends_and_two_grow_in_squares() {
        let wide = Estimate::new(100.0, 10.0, 1000.0);
        let one = carry(|pick| 2.0 * pick(&wide));
        assert!((one.low - 20.0).abs() < 1e-9 && (one.high - 2000.0).abs() < 1e-6);
        let other = Estimate::new(50.0, 5.0, 500.0);
        let two = carry(|pick| pick(&wide) * pick(&other));
        let factor = (10f64.ln() * 2f64.sqrt()).exp();
        assert!((two.high / two.value - factor).abs() < 1e-6);
        assert!(two.low > 0.0);
        assert_eq!(carry(|_| 3.0), Estimate::exact(3.0));
        assert_eq!(carry(|pick| 0.0 * pick(&wide)), Estimate::exact(0.0));
    }
}
