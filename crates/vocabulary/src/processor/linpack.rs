//! Solving a dense system of linear equations: how fast, and whether the result is right.

pub mod hpl;

use serde::{Deserialize, Serialize};

use crate::doubt::Doubt;
use rubus_stats::estimate::Estimate;

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Linpack {
    /// What multiplies matrices, and with which instructions.
    pub by: String,
    /// Each block size at one size of the system.
    pub sweep: Vec<Swept>,
    /// The block size with which the rest was measured.
    pub block: u32,
    /// On one core, of the fastest kind where there are several; absent where there is one core, or where this was not
    /// asked for.
    pub one: Option<Rated>,
    /// On one core of each other kind, the fastest first, where a processor has several (big.LITTLE).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_kinds: Vec<Rated>,
    /// On all cores.
    pub all: Rated,
    /// The repetition of the same, where it was asked for.
    pub stability: Option<Stability>,
    /// What `xhpl` gave on the same machine, where it is installed.
    pub hpl: Option<hpl::Outcome>,
}

impl Linpack {
    /// What was measured on one core: of each kind, the fastest first.
    pub fn on_one_core(&self) -> impl Iterator<Item = &Rated> {
        self.one.iter().chain(&self.other_kinds)
    }
}

/// One block size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Swept {
    /// Columns that are eliminated at once.
    pub block: u32,
    /// Unknowns.
    pub n: u32,
    /// Operations per second.
    pub flops_per_second: Estimate,
}

/// Several times the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rated {
    /// Unknowns.
    pub n: u32,
    /// Columns that are eliminated at once.
    pub block: u32,
    /// Threads.
    pub threads: u32,
    /// The kind of the core, such as "Cortex-A76"; absent where all cores are alike, and on several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<String>,
    /// Times that it was solved.
    pub times: u32,
    /// Operations per second.
    pub flops_per_second: Estimate,
    /// The worst scaled residual; infinite (in JSON `null`) where a result is not made of numbers.
    #[serde(deserialize_with = "rubus_stats::estimate::null_is_infinite")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub residual: f64,
    /// Times that the residual was too large.
    pub failed: u32,
    /// Times that the bits of the solution were other than those of most.
    pub different: u32,
    /// What disturbed it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<Doubt>,
}

impl Rated {
    /// Every result was right, and each time the same.
    pub fn is_right(&self) -> bool {
        self.failed == 0 && self.different == 0
    }
}

/// The same system again and again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stability {
    /// How long it was to go on.
    pub wanted_s: f64,
    /// How long it did.
    pub elapsed_s: f64,
    /// All of them together.
    pub all: Rated,
    /// Rate of the last quarter over that of the first: below 1 the machine became slower.
    pub last_over_first: Option<f64>,
    /// When a result was wrong for the first time, in seconds from the start.
    pub first_wrong_s: Option<f64>,
    /// Hottest that was seen, in thousandths of a degree Celsius.
    pub hottest_millicelsius: Option<i64>,
    /// Lowest and highest clock that was seen, in Hz, of the first cores.
    pub clock_hz: Option<(u64, u64)>,
    /// The supply was too low for a moment.
    pub undervoltage: Option<bool>,
    /// The clock was held down (heat or supply).
    pub throttled: Option<bool>,
    /// It was stopped before its time.
    pub is_interrupted: bool,
}

/// What a stability test says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Everything was right, for as long as it was to be.
    Stable,
    /// Everything was right, but not for as long as it was to be.
    RightSoFar,
    /// Results were wrong.
    Unstable,
}

impl Stability {
    /// What it says.
    pub fn verdict(&self) -> Verdict {
        if !self.all.is_right() {
            Verdict::Unstable
        } else if self.is_interrupted {
            Verdict::RightSoFar
        } else {
            Verdict::Stable
        }
    }
}
