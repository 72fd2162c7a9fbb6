//! A measured number is an estimate: a value and the interval that holds the truth.

use serde::{Deserialize, Serialize};

/// A value with its 95 % confidence interval, all in the unit that the field's name says.
///
/// `low <= value <= high` holds. An interval as wide as `[0, infinity)` is legal and means that
/// nothing is known; in JSON an infinite bound is `null`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// The best single number.
    pub value: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    #[serde(deserialize_with = "null_is_infinite")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub high: f64,
}

/// Reads what JSON makes of an infinite number: `null` is infinite.
///
/// # Errors
/// If it is neither a number nor `null`.
pub fn null_is_infinite<'de, D: serde::Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(d)?.unwrap_or(f64::INFINITY))
}

impl Estimate {
    /// An estimate from its three numbers.
    ///
    /// # Panics
    /// If the value lies outside the interval or one of them is not a number: that is a programming error.
    pub fn new(value: f64, low: f64, high: f64) -> Self {
        assert!(low <= value && value <= high, "estimate {value} outside [{low}, {high}]");
        Estimate { value, low, high }
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
        Estimate::new(self.value * factor, self.low * factor, self.high * factor)
    }
}
