//! Named numbers and facts as a comparison takes them from any source.

use serde::{Deserialize, Serialize};

use rubus_stats::estimate::Estimate;

/// A fact by its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Named {
    /// "board", "kernel", "vm.dirty_ratio".
    pub name: String,
    /// Its value in words; absent where it is not known or does not exist.
    pub value: Option<String>,
}

/// What a throughput counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Bytes, of jobs that read or write blocks.
    BytesPerSecond,
    /// Operations, of jobs with whole small files.
    OperationsPerSecond,
    /// How often its own size a memory carries.
    TimesMemory,
}

/// A number as its source gives it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figure {
    /// The number.
    pub value: f64,
    /// Its 95 % interval, where there is one.
    pub interval: Option<Interval>,
}

/// A 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end; infinite (in JSON `null`) where it is not bounded.
    #[serde(deserialize_with = "rubus_stats::estimate::null_is_infinite")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub high: f64,
    /// Made of another tool's deviation between samples, which takes neighbouring samples for
    /// independent.
    pub rough: bool,
}

/// A figure as a text from outside has it, before it is checked.
#[derive(Deserialize)]
struct ToldFigure {
    value: f64,
    interval: Option<Interval>,
}

impl<'de> Deserialize<'de> for Figure {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Figure, D::Error> {
        let ToldFigure { value, interval } = ToldFigure::deserialize(deserializer)?;
        if let Some(interval) = interval {
            Estimate::checked(value, interval.low, interval.high)
                .map_err(serde::de::Error::custom)?;
        }
        Ok(Figure { value, interval })
    }
}

impl Figure {
    /// A number without an interval.
    pub fn bare(value: f64) -> Self {
        Figure { value, interval: None }
    }

    /// A number with the interval of our own statistics.
    pub fn of(estimate: Estimate) -> Self {
        Figure {
            value: estimate.value,
            interval: Some(Interval { low: estimate.low, high: estimate.high, rough: false }),
        }
    }

    /// The number with its interval, if it has one.
    pub fn estimate(&self) -> Option<Estimate> {
        let interval = self.interval?;
        let is_sound = interval.low <= self.value && self.value <= interval.high;
        is_sound.then(|| Estimate::new(self.value, interval.low, interval.high))
    }
}
