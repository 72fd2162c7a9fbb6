//! A measured number is an estimate: a value and the interval that holds the truth.

use serde::{Deserialize, Serialize};

/// A value with its 95 % confidence interval, all in the unit that the field's name says.
///
/// `low <= value <= high` holds. An interval as wide as `[0, infinity)` is legal and means that
/// nothing is known; in JSON an infinite bound is `null`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// The best single number.
    pub value: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub high: f64,
}

/// No quantity that is measured is larger, in whatever unit; products of several such numbers are still numbers.
const MAX_MAGNITUDE: f64 = 1e30;

/// An estimate as a text from outside has it, before it is checked.
#[derive(Deserialize)]
struct Told {
    value: f64,
    low: f64,
    #[serde(deserialize_with = "null_is_infinite")]
    high: f64,
}

impl<'de> Deserialize<'de> for Estimate {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Estimate, D::Error> {
        let told = Told::deserialize(deserializer)?;
        Estimate::checked(told.value, told.low, told.high).map_err(serde::de::Error::custom)
    }
}

/// Reads what JSON makes of an infinite number: `null` is infinite.
///
/// # Errors
/// If it is neither a number nor `null`.
pub fn null_is_infinite<'de, D: serde::Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(d)?.unwrap_or(f64::INFINITY))
}

/// An interval that spans more than this factor says nothing of the value.
const MAX_SPAN: f64 = 10.0;

impl Estimate {
    /// Whether the interval says anything: it spans no more than a factor of ten.
    pub fn is_known(&self) -> bool {
        self.low > 0.0 && self.high.is_finite() && self.high <= MAX_SPAN * self.low
    }

    /// An estimate from its three numbers.
    ///
    /// # Panics
    /// If the value lies outside the interval or one of them is not a number: that is a programming error.
    pub fn new(value: f64, low: f64, high: f64) -> Self {
        assert!(low <= value && value <= high, "estimate {value} outside [{low}, {high}]");
        Estimate { value, low, high }
    }

    /// An estimate from three numbers that come from outside.
    ///
    /// # Errors
    /// In words, if the value lies outside the interval, or one of them is no number or larger than any quantity.
    pub fn checked(value: f64, low: f64, high: f64) -> Result<Self, String> {
        if !(low <= value && value <= high) {
            return Err(format!("the value {value} is outside of its interval, {low} to {high}"));
        }
        let is_in_range = |number: f64| number.abs() <= MAX_MAGNITUDE;
        if !(is_in_range(value) && is_in_range(low) && (is_in_range(high) || high.is_infinite())) {
            return Err(format!("no quantity is as large as {value}, {low} to {high}"));
        }
        Ok(Estimate { value, low, high })
    }

    /// A number that is known exactly.
    pub fn exact(value: f64) -> Self {
        Estimate::new(value, value, value)
    }

    /// Half the width of the interval as a share of the value (0.05 is ±5 %); infinite when the
    /// value is zero.
    pub fn relative_half_width(&self) -> f64 {
        if self.value == 0.0 {
            return f64::INFINITY;
        }
        (self.high - self.low) / 2.0 / self.value.abs()
    }

    /// The larger of the two distances from the value to the ends of the interval, as a share of the
    /// value: what "±" may honestly say of a lopsided interval. Infinite when the value is zero.
    pub fn largest_deviation(&self) -> f64 {
        if self.value == 0.0 {
            return f64::INFINITY;
        }
        (self.high - self.value).max(self.value - self.low) / self.value.abs()
    }

    /// The estimate in another unit: every number times `factor`, which must not be negative.
    pub fn scaled(&self, factor: f64) -> Self {
        assert!(factor >= 0.0, "a negative factor would turn the interval round");
        // Without a bound it stays without one: infinity times zero is no number.
        let high = if self.high.is_infinite() { self.high } else { self.high * factor };
        Estimate::new(self.value * factor, self.low * factor, high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_from_outside_are_checked() {
        let told = |value, low, high| Estimate::checked(value, low, high);
        assert!(told(1.0, 0.5, 2.0).is_ok());
        assert!(told(1.0, 0.5, f64::INFINITY).is_ok());
        for (value, low, high) in [
            (1.0, 2.0, 3.0),
            (4.0, 2.0, 3.0),
            (f64::NAN, 2.0, 3.0),
            (1e200, 0.0, f64::INFINITY),
            (0.0, f64::NEG_INFINITY, 0.0),
        ] {
            assert!(told(value, low, high).is_err(), "{value} {low} {high}");
        }
    }

    #[test]
    fn an_unbounded_estimate_stays_unbounded_in_any_unit() {
        let scaled = Estimate::new(1.0, 0.0, f64::INFINITY).scaled(0.0);
        assert_eq!((scaled.value, scaled.high), (0.0, f64::INFINITY));
    }
}
