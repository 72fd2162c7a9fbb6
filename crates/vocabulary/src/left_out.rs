//! What a bench could not measure.

use serde::{Deserialize, Serialize};

/// Something that was not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut<Part> {
    /// What it belongs to.
    pub part: Part,
    /// What was not measured and why, as a sentence without a full stop.
    pub what: String,
}
