//! Prices that were given, and years.

use serde::Serialize;

/// Prices that were given, and years.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prices {
    /// Of a board; absent: the kind's list price.
    pub node: Option<f64>,
    /// Of a disk; absent: by its size.
    pub disk: Option<f64>,
    /// Of the power supply for the whole cluster; absent: one per board.
    pub power: Option<f64>,
    /// Years that it runs.
    pub years: f64,
    /// Of a kWh.
    pub energy: f64,
    /// Whether the price of a kWh was given.
    pub is_energy_given: bool,
}

impl Default for Prices {
    fn default() -> Prices {
        Prices {
            node: None,
            disk: None,
            power: None,
            years: 3.0,
            energy: 0.30,
            is_energy_given: false,
        }
    }
}
