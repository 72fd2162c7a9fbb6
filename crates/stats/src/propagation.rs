//! Intervals carried through a calculation.
//!
//! Each estimate that goes in is set to its low and to its high end, one at a time; the changes of the outcome are added in squares
//! (the law of propagation of uncertainty, JCGM 100:2008, section 5.1.2, with differences instead of derivatives and the two sides
//! apart). Estimates that are the same number were measured together, so they move together.

use crate::estimate::Estimate;

/// The outcome of `calculate` with its interval. `calculate` asks for each estimate that it uses, always in the same order.
pub fn carry(calculate: impl Fn(&mut dyn FnMut(&Estimate) -> f64) -> f64) -> Estimate {
    let (value, swings) = swings(calculate);
    let (mut below, mut above) = (0.0, 0.0);
    for (low, high) in swings {
        below += (value - low).powi(2);
        above += (high - value).powi(2);
    }
    Estimate::new(value, (value - below.sqrt()).max(0.0), value + above.sqrt())
}

/// The outcome of `calculate`, and for each estimate that goes in the lowest and the highest outcome while it alone moves
/// between its ends.
pub fn swings(
    calculate: impl Fn(&mut dyn FnMut(&Estimate) -> f64) -> f64,
) -> (f64, Vec<(f64, f64)>) {
    let mut inputs: Vec<Estimate> = Vec::new();
    let value = calculate(&mut |estimate| {
        if estimate.low < estimate.high && !inputs.contains(estimate) {
            inputs.push(*estimate);
        }
        estimate.value
    });
    let swing = |input: &Estimate| {
        let [one, other] = [input.low, input.high].map(|end| {
            calculate(&mut |estimate| {
                if estimate == input { end } else { estimate.value }
            })
        });
        (one.min(other).min(value), one.max(other).max(value))
    };
    (value, inputs.iter().map(swing).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn independent_deviations_add_in_squares() {
        let (a, b) = (Estimate::new(10.0, 7.0, 13.0), Estimate::new(20.0, 16.0, 24.0));
        let sum = carry(|pick| pick(&a) + pick(&b));
        assert_eq!(sum, Estimate::new(30.0, 25.0, 35.0));
    }

    #[test]
    fn the_same_measurement_used_twice_moves_together() {
        let a = Estimate::new(10.0, 7.0, 13.0);
        assert_eq!(carry(|pick| pick(&a) + pick(&a)), Estimate::new(20.0, 14.0, 26.0));
        assert_eq!(carry(|pick| pick(&a) / pick(&a)), Estimate::exact(1.0));
    }
}
