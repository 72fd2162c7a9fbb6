//! The verbs that change a machine, each in its file with its arguments, exit statuses, examples and JSON document. What they
//! need of rooms above goes through [`Outside`].

mod apply;
mod changes;
mod consent;
mod facts;
#[cfg(test)]
mod fixture;
mod image;
mod lost;
mod plan;
mod planning;
mod recipes;
mod resume;
mod status;
mod teller;
mod undo;
mod verify;
mod way;

use std::path::Path;

use clap::Subcommand;
use rubus_command::{Exit, General};
#[cfg(feature = "schema")]
use rubus_vocabulary::verb::Document;
use rubus_vocabulary::verb::{GUARDED, MISTAKE, Page, Statuses};

use rubus_change::apply::Change;
#[cfg(feature = "schema")]
use rubus_change::plan::{Plan, journal::Record};

pub use facts::facts;

/// What the verbs need of rooms above this one.
pub trait Outside {
    /// Measures a directory before a recipe is applied, and keeps the run under a name by which it is found afterwards.
    ///
    /// # Errors
    /// When it cannot be measured, or the measurement was cut short.
    fn measure_before(&self, directory: &Path, recipe: &str) -> anyhow::Result<()>;
    /// Measures again as before a change, and shows both side by side.
    ///
    /// # Errors
    /// When there is no run from before it, or it cannot be measured.
    fn measure_after(&self, change: &Change) -> anyhow::Result<Exit>;
}

/// The verbs. Each is described where its arguments are.
#[derive(Debug, Subcommand)]
pub enum Verb {
    Recipes(recipes::Recipes),
    Plan(plan::PlanArgs),
    Apply(apply::Apply),
    Undo(undo::Undo),
    Resume(resume::Resume),
    Status(status::Status),
    Verify(verify::Verify),
}

/// Does what was asked.
///
/// # Errors
/// Wrong arguments, what the guard refuses, and what this machine does not allow.
pub fn run(general: &General, verb: &Verb, outside: &dyn Outside) -> anyhow::Result<Exit> {
    match verb {
        Verb::Recipes(recipes) => recipes::run(general, recipes),
        Verb::Plan(plan) => plan::run(general, plan),
        Verb::Apply(apply) => apply::run(general, apply, outside),
        Verb::Undo(undo) => undo::run(general, undo),
        Verb::Resume(resume) => resume::run(general, resume),
        Verb::Status(status) => status::run(general, status),
        Verb::Verify(verify) => verify::run(general, verify, outside),
    }
}

/// Exit statuses and examples, in the order of the commands.
pub const PAGES: &[Page] =
    &[recipes::PAGE, plan::PAGE, apply::PAGE, undo::PAGE, resume::PAGE, status::PAGE, verify::PAGE];

/// The statuses of what changes the machine.
const CHANGED: Statuses = &[
    (0, "done, or nothing to do"),
    (1, "nothing was changed: a check failed, or you did not agree"),
    MISTAKE,
    GUARDED,
    (4, "a step failed, and everything was undone"),
    (5, "a step failed, and undoing failed too: see `rubus status`"),
];

/// The JSON documents that they print.
#[cfg(feature = "schema")]
pub fn documents() -> Vec<Document> {
    vec![
        Document::of::<Plan>("plan", "rubus plan RECIPE --json"),
        Document::of::<Vec<status::ChangeStatus<'_>>>("status", "rubus status --json"),
        Document::of::<verify::VerifyDocument<'_>>("verify", "rubus verify --json"),
        Document::of::<Record>("journal", "a line of a change's journal"),
        Document::of::<Vec<recipes::RecipeDocument>>("recipes", "rubus recipes --json"),
    ]
}

#[cfg(test)]
mod tests;
