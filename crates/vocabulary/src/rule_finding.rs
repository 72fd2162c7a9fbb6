//! What a rule finds on a machine or in a run.

use serde::{Deserialize, Serialize};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// Data, or that the machine starts, is at risk.
    Danger,
    /// It makes the machine slower.
    Cost,
    /// Good to know.
    Hint,
}

impl Weight {
    /// As in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Weight::Danger => "danger",
            Weight::Cost => "cost",
            Weight::Hint => "hint",
        }
    }
}

/// What a rule found on a machine or in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RuleFinding {
    /// The rule's name.
    pub rule: String,
    /// How much it matters.
    pub weight: Weight,
    /// The device, filesystem, link or setting that it is about.
    pub about: String,
    /// What was seen.
    pub evidence: String,
    /// Where that was read.
    pub read_from: String,
    /// What follows from it, in numbers where there are any.
    pub consequence: String,
    /// What to do.
    pub fix: String,
    /// The command that does it, where this program has one.
    pub command: Option<String>,
    /// Where the rule's claims come from.
    pub source: String,
}
