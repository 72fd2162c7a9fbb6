//! How a figure is known: measured here, published by others, or assumed.

use serde::{Deserialize, Serialize};

/// How a figure is known, the best kind of knowledge first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Measured on this machine.
    Measured,
    /// Published for its kind, with a source, or what a bus or link is known to carry.
    Published,
    /// Neither: `docs/explanation/advise.md` says from what it was assumed.
    Assumed,
}

impl Basis {
    /// What stands before a figure.
    pub fn mark(self) -> &'static str {
        match self {
            Basis::Assumed => "~",
            Basis::Measured | Basis::Published => "",
        }
    }
}

/// What the mark means.
pub const LEGEND: &str = "~ assumed, not measured or published (docs/explanation/advise.md)";
