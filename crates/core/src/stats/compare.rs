//! Before and after: the ratio of two results with its interval.

use crate::estimate::Estimate;

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
    if !usable(a.value) || !usable(b.value) {
        return None;
    }
    let below = |e: Estimate| (e.value / e.low.max(0.0)).ln();
    let above = |e: Estimate| (e.high / e.value).ln();
    let value = a.value / b.value;
    let low = value * (-below(a).hypot(above(b))).exp();
    let high = value * above(a).hypot(below(b)).exp();
    Some(Estimate::new(value, low.min(value), high.max(value)))
}
