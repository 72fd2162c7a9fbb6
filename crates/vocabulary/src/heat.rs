//! Temperatures, clocks and supply of a processor at one moment.

use serde::{Deserialize, Serialize};

/// Heat, clock, supply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Heat {
    /// Temperatures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<Zone>,
    /// Clocks of the processor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<Clock>,
    /// The Raspberry Pi firmware's throttling bits (see [`crate::machine::Throttling`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled: Option<u32>,
    /// Whether the supply voltage was too low since the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undervoltage: Option<bool>,
}

/// A temperature.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Zone {
    /// "cpu-thermal".
    pub name: String,
    /// In thousandths of a degree Celsius.
    pub millicelsius: i64,
}

/// A clock of cores that share one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Clock {
    /// "0-3".
    pub cores: String,
    /// Now.
    pub hz: u64,
    /// The most that it can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_hz: Option<u64>,
}
