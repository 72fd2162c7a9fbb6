//! A user's own recipe, from a TOML file: the same steps and checks as those of the built-in ones, with options that
//! stand in the texts as `{{name}}`. The format is described in `docs/how-to/recipes.md`.

mod choice;
mod entries;
mod parse;
mod plan;
mod table;
#[cfg(test)]
mod tests;

use super::{Facts, Queries, Wishes};
use choice::Choice;
use entries::{Entry, Need, Pledge, Work};
use rubus_change::plan::Plan;
use rubus_vocabulary::machine::Machine;

pub use table::Fault;

/// A recipe that a user wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct UserRecipe {
    /// `kebab-case`.
    pub name: String,
    /// What it does for its user, as a sentence.
    pub title: String,
    options: Vec<Choice>,
    checks: Vec<Entry<Need>>,
    steps: Vec<Entry<Work>>,
    promises: Vec<Entry<Pledge>>,
    notes: Vec<String>,
    risks: Vec<String>,
    needs_boot: bool,
}

impl UserRecipe {
    /// Reads a recipe. Every key, step and option is known, or there is a fault with its line and the nearest name.
    ///
    /// # Errors
    /// All faults that were found, in the order of their lines.
    pub fn parse(text: &str) -> Result<UserRecipe, Vec<Fault>> {
        parse::recipe(text)
    }

    /// What it wants to know besides the surveyed machine.
    ///
    /// # Errors
    /// A fault where a wish makes no sense, or a text makes none with it.
    pub fn look_at(&self, machine: &Machine, wishes: &Wishes) -> Result<Queries, Fault> {
        plan::look_at(self, machine, wishes)
    }

    /// The plan for a machine, as that of a built-in recipe.
    ///
    /// # Errors
    /// As for [`UserRecipe::look_at`].
    pub fn plan(
        &self,
        machine: &Machine,
        facts: &Facts,
        wishes: &Wishes,
        made: &str,
    ) -> Result<Plan, Fault> {
        plan::draw_up(self, machine, facts, wishes, made)
    }
}
