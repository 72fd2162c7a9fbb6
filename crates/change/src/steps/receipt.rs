//! What steps leave behind: what was planned and found, and what a replaced file was.

use serde::{Deserialize, Serialize};

/// What a step was to give and what it gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Receipt {
    /// As the plan has it.
    pub planned: String,
    /// As read back.
    pub live: String,
}

/// What a step replaced, and by what: beside the journal, for files that are too large for the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replaced {
    /// SHA-256 of the original; absent where there was no file.
    pub was: Option<String>,
    /// SHA-256 of each file that the step made: an interrupted step makes another one.
    pub made: Vec<String>,
}

/// What was planned, and what was found afterwards.
pub(super) fn receipt(planned: impl Into<String>, live: impl Into<String>) -> Receipt {
    Receipt { planned: planned.into(), live: live.into() }
}

/// The receipt of what stays as it is.
pub(super) fn left() -> Receipt {
    receipt("left as it is", "left as it is")
}
