//! A condition that was looked at: whether it holds, and what to do where it does not.

use serde::{Deserialize, Serialize};

/// Something that must hold before a plan may be applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Check {
    /// What must hold ("the kernel has zswap").
    pub what: String,
    /// What was found, with where.
    pub found: String,
    /// Whether it holds, or whether nothing speaks against it where that is not known.
    pub is_met: bool,
    /// True where what it asks could not be found out. Where it is not met either, a plan cannot do without the answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unknown: bool,
    /// What to do where it does not.
    pub remedy: Option<String>,
}
