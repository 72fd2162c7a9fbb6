//! What HPL's program `xhpl` gave.

use serde::{Deserialize, Serialize};

/// One system that HPL solved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outcome {
    /// Unknowns.
    pub n: u32,
    /// Columns that are eliminated at once.
    pub block: u32,
    /// Processes, rows times columns of them.
    pub processes: u32,
    /// Seconds that it took.
    pub seconds: f64,
    /// Operations per second.
    pub flops_per_second: f64,
    /// The scaled residual.
    pub residual: f64,
    /// Whether it says PASSED.
    pub is_passed: bool,
}
