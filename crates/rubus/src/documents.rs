//! What the verbs print as JSON where it is more than one value of another room. `docs/reference/json.md` names the schema of each.

use rubus_advise::advice::Advice;
use rubus_fleet::figures::Outliers;
use rubus_fleet::settings::Difference;
use rubus_runs::run_document::RunDocument;
use rubus_vocabulary::finding::Finding;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::rule_finding::{RuleFinding, Weight};
use rubus_watch::health::DiskHealth;
use serde::Serialize;

/// The facts of a machine, with what the rules find on it beside them.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SurveyDocument<'a> {
    #[serde(flatten)]
    pub machine: &'a Machine,
    /// What the rules find.
    pub findings: Vec<Finding>,
    /// What to do next.
    pub next: NextStep,
    /// The health of each disk, the worst first.
    pub health: Vec<DiskHealth>,
}

/// What a command gave on several machines, or on those of a fleet file.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetDocument<'a> {
    /// `checkup`, `bench`, `survey` or `advise`.
    pub command: &'static str,
    /// What to do next.
    pub next: NextStep,
    /// The boards, in the order of the list.
    pub boards: Vec<FleetBoard<'a>>,
    /// Facts that are not the same on all boards that gave a result.
    pub differences: &'a [Difference],
    /// Boards whose figures stand apart; absent where nothing was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outliers: Option<&'a Outliers>,
}

/// A board of a fleet.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetBoard<'a> {
    /// As its owner calls it.
    pub name: &'a str,
    /// Where ssh finds it; null: by its name.
    pub address: Option<String>,
    /// Its groups.
    pub groups: &'a [String],
    /// Exit status of the command there; 2 where it did not run to its end.
    pub status: u8,
    /// Why it has no result, or not all of them; null: it has.
    pub failure: Option<&'a str>,
    /// Its runs; empty for a survey and for advice.
    pub runs: Vec<RunDocument<'a>>,
    /// Number of each run in this machine's history; null: it is not there.
    pub history: Vec<Option<i64>>,
    /// Its facts and findings, for a survey.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub survey: Option<SurveyDocument<'a>>,
    /// What it is advised, for advice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<&'a Advice>,
}

/// A rule of the survey.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RuleDocument {
    /// Its name: lower case with hyphens.
    pub rule: &'static str,
    /// How much it matters.
    pub weight: Weight,
    /// When it speaks, in words.
    pub when: &'static str,
    /// Whether it needs measured figures; else a survey is enough.
    pub needs_figures: bool,
    /// Where its claims come from.
    pub source: &'static str,
}

/// A kind of finding, explained.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExplainDocument {
    /// What stands in brackets behind each such finding.
    pub code: &'static str,
    /// How much it matters.
    pub weight: Weight,
    /// When it speaks, in words.
    pub when: &'static str,
    /// Whether it needs measured figures; else a survey is enough.
    pub needs_figures: bool,
    /// Where its claims come from.
    pub source: &'static str,
    /// What would come out otherwise if it were wrong.
    pub disproof: &'static str,
    /// What of it is found on this machine.
    pub here: Vec<RuleFinding>,
}
