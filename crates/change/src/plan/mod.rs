//! A change as a plan: what will be done, why, and how it is undone, before anything is done.
//!
//! A plan is a plain value made by a pure function from facts and options (a recipe of `rubus_recipes`).
//! It can be printed, saved and read back; applying does only what it says. Everything that undoing needs
//! (the former contents, the former values) is in the plan itself, so that a plan on stable storage is enough to
//! go back. How far an application has come is the [`journal`]'s.

pub mod journal;
pub mod promise;
pub mod verify;

use std::collections::BTreeMap;

use rubus_vocabulary::check::Check;
use serde::{Deserialize, Serialize};

use promise::Promise;

use crate::steps::make_an_image;
pub use crate::steps::{Action, Pass, Step, TextFile, When, commands, diff, knob_says};
pub use crate::volume;
use volume::DiskIdentity;

/// The version of the format that this program writes and reads.
pub const FORMAT: u32 = 1;

/// A change of a machine, ready to be shown and applied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// Version of the format: 1.
    pub format: u32,
    /// Name of the recipe.
    pub recipe: String,
    /// What the user chose, by name of the option.
    pub options: BTreeMap<String, String>,
    /// What the whole does, as a sentence.
    pub title: String,
    /// When it was made, RFC 3339, UTC.
    pub made: String,
    /// What was looked at before; all are met in a plan that may be applied.
    pub checks: Vec<Check>,
    /// In the order in which they are done; undone in the opposite order.
    pub steps: Vec<Step>,
    /// What the user should know: what it costs, what happens at the next boot.
    pub notes: Vec<String>,
    /// What can go wrong, in plain words, worst first ("two disks: twice the chance of losing all").
    #[serde(default)]
    pub risks: Vec<String>,
    /// What it is expected to give.
    #[serde(default)]
    pub gains: Vec<Gain>,
    /// Why it is not said what it gives, with the measurement that would tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gains_unknown: Option<String>,
    /// What applying it takes.
    #[serde(default)]
    pub effort: Effort,
    /// What holds afterwards.
    #[serde(default)]
    pub promises: Vec<Promise>,
    /// True when the change is in force only after the machine was started again.
    #[serde(default)]
    pub needs_boot: bool,
    /// The trial start between its steps, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<Trial>,
}

/// A start on trial in the middle of a plan: the steps before it prepare it, and those after it are done by
/// `rubus verify` when the machine has come up and everything holds. Until then every usual start is the old one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trial {
    /// Number, from 0, of the first step that waits for it.
    pub before_step: usize,
    /// What starts the machine on trial, once, as it is typed into a shell.
    pub start: String,
}

/// What a plan is expected to give, as before and after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gain {
    /// What gets better ("4 KiB random writes").
    pub what: String,
    /// How it is now, with its unit ("0.9 MB/s").
    pub now: String,
    /// How it will be.
    pub then: String,
    /// How much better: above 1.
    pub ratio: f64,
    /// Where both come from ("measured here yesterday", "measured speeds of both disks, added").
    pub source: String,
}

/// How a note begins that says what to do when the machine does not start any more.
pub const RESCUE: &str = "If the board does not come up:";

/// What applying a plan takes. Zero is "next to nothing".
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Effort {
    /// Bytes that are written.
    pub written_bytes: u64,
    /// Least time in seconds.
    pub least_s: f64,
    /// Most time in seconds.
    pub most_s: f64,
    /// Where the time comes from; empty where nothing was measured for it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
}

impl Plan {
    /// The checks that do not hold.
    pub fn obstacles(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| !check.is_met)
    }

    /// The disks on which everything is lost, each once. An image that is made new loses nothing.
    pub fn disks_lost(&self) -> Vec<&DiskIdentity> {
        let mut lost: Vec<&DiskIdentity> = Vec::new();
        if self.is_of_an_image() {
            return lost;
        }
        for disk in self.steps.iter().flat_map(|step| step.action.disks_lost()) {
            if !lost.iter().any(|known| known.path == disk.path) {
                lost.push(disk);
            }
        }
        lost
    }

    /// Whether it makes an image and changes no machine: there is nothing to undo then.
    pub fn is_of_an_image(&self) -> bool {
        make_an_image(&self.steps)
    }

    /// How large the image becomes that it makes, bytes.
    pub fn image_bytes(&self) -> Option<u64> {
        let mut actions = self.steps.iter().map(|step| &step.action);
        let found = actions.find_map(|action| match action {
            Action::Partition(step) => Some(step.disk.size_bytes),
            _ => None,
        });
        found.filter(|_| self.is_of_an_image())
    }

    /// Whether it changes nothing, since everything is already as it should be.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_survives_being_saved() {
        let plan = crate::fixture::plans::small_plan();
        let json = serde_json::to_string(&plan).expect("a plan serialises");
        assert_eq!(serde_json::from_str::<Plan>(&json).expect("and back"), plan);
    }
}
