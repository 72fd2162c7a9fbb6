//! What the verbs print as JSON where it is more than one value of another room. `docs/reference/json.md` names the schema of each.

use std::collections::BTreeMap;

use rubus_advise::advice::Advice;
use rubus_change::plan::journal::{Receipt, StepState, Way};
use rubus_change::plan::verify::Answer;
use rubus_copy::receipt::{Comparison, CopyReceipt};
use rubus_fleet::figures::Outliers;
use rubus_fleet::settings::Difference;
use rubus_machine::parse::btrfs::{Compression, Share};
use rubus_memory::zswap::{Reading, Report};
use rubus_verdict::enough::Judgement;
use rubus_verdict::verdict::Verdict;
use rubus_vocabulary::finding::Finding;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::result::Run;
use rubus_vocabulary::rule_finding::{RuleFinding, Weight};
use rubus_watch::Look;
use rubus_watch::health::DiskHealth;
use serde::Serialize;

/// A run, with the verdict beside its fields.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunDocument<'a> {
    #[serde(flatten)]
    pub run: &'a Run,
    /// The narrowest stage, judged from the results; absent for a benchmark of the processor or of memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<&'a Verdict>,
}

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

/// Whether storage is fast enough for a program, and the run that says so.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EnoughDocument<'a> {
    #[serde(flatten)]
    pub judgement: Judgement,
    /// What was measured.
    pub run: &'a Run,
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

/// A recipe for a change.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RecipeDocument {
    /// Its name: lower case with hyphens.
    pub name: &'static str,
    /// What it does for its user, as a sentence.
    pub title: &'static str,
    /// What it changes on the machine, as a sentence.
    pub changes: &'static str,
    /// What it needs, as a sentence.
    pub needs: &'static str,
    /// A command that shows its plan.
    pub example: &'static str,
    /// Its options.
    pub options: Vec<OptionDocument>,
}

/// An option of a recipe.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OptionDocument {
    /// Its name: lower case with hyphens.
    pub name: &'static str,
    /// What it is, with its range.
    pub what: &'static str,
    /// Its default; null: the recipe decides.
    pub default: Option<&'static str>,
}

/// An applied change, and whether it still is as planned.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChangeStatus<'a> {
    /// Name of the change.
    pub name: &'a str,
    /// Recipe that drew up its plan.
    pub recipe: &'a str,
    /// What it does, as a sentence.
    pub title: &'a str,
    /// Whether it is being applied or undone.
    pub way: Way,
    /// All steps in that direction are done.
    pub is_finished: bool,
    /// Some steps are done and some are not.
    pub is_half_done: bool,
    /// It waits for a trial boot, or for `rubus verify` after it.
    pub is_on_trial: bool,
    /// Part of it takes effect only after a restart.
    pub waits_for_start: bool,
    /// Every step that the journal does not know of is as planned.
    pub is_ahead_of_journal: bool,
    /// Earlier changes that it builds on: it must be undone before them.
    pub lies_on: &'a [String],
    /// What is no longer as the change left it.
    pub differences: &'a [String],
    /// Broken promises.
    pub broken: &'a [Answer],
    /// What else there is to know.
    pub remarks: &'a [String],
    /// Its steps, in order.
    pub steps: Vec<StepStatus<'a>>,
}

/// Where a step of a change is.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StepStatus<'a> {
    /// Identifier of the step within the plan.
    pub id: &'a str,
    /// What it does.
    pub title: String,
    /// Where it is.
    pub state: StepState,
    /// What it should have given; null until it is done.
    pub planned: Option<&'a str>,
    /// What was read back; null until it is done.
    pub live: Option<&'a str>,
}

impl<'a> StepStatus<'a> {
    /// From its receipt, if it has one.
    pub fn new(id: &'a str, title: String, state: StepState, receipt: Option<&'a Receipt>) -> Self {
        StepStatus {
            id,
            title,
            state,
            planned: receipt.map(|receipt| &*receipt.planned),
            live: receipt.map(|receipt| &*receipt.live),
        }
    }
}

/// Whether changes hold what they promise.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VerifyDocument<'a> {
    /// Every promise holds, and no change is half undone.
    pub holds: bool,
    /// What to do next.
    pub next: NextStep,
    /// The changes.
    pub changes: Vec<VerifiedChange<'a>>,
    /// Changes in the middle of their way back, in words.
    pub half_undone: &'a [String],
}

/// Whether a change holds what it promises.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VerifiedChange<'a> {
    /// Name of the change.
    pub name: &'a str,
    /// What it does, as a sentence.
    pub title: &'a str,
    /// All its steps are done.
    pub is_finished: bool,
    /// It is on trial.
    pub is_on_trial: bool,
    /// Its trial was passed just now, and it was kept.
    pub is_kept_now: bool,
    /// The machine was restarted after the change.
    pub started_since: bool,
    /// Every promise holds.
    pub holds: bool,
    /// The promises.
    pub promises: &'a [Answer],
    /// How files are compressed, by mount point.
    pub compression: Vec<CompressionAt<'a>>,
    /// The kernel's counters of zswap.
    pub zswap: ZswapCounters<'a>,
    /// What else there is to know.
    pub remarks: &'a [String],
}

/// How files on a filesystem are compressed.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CompressionAt<'a> {
    /// Mount point.
    pub at: String,
    #[serde(flatten)]
    pub seen: CompressionSeen<'a>,
}

/// What a look at a filesystem's compression gave.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum CompressionSeen<'a> {
    /// It was seen.
    Known {
        /// Stored bytes as a share of the original ones.
        share: f64,
        /// What was counted.
        files: &'a Compression,
    },
    /// It could not be seen.
    Unknown {
        /// Why.
        unknown: &'a str,
    },
}

/// The kernel's counters of zswap.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ZswapCounters<'a> {
    /// Whether it is on; null: unknown.
    pub enabled: Option<bool>,
    /// The counters that could be read, by name.
    pub counters: BTreeMap<&'a str, u64>,
}

/// What zswap holds, and whether it helps.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ZswapDocument {
    /// The answer.
    pub report: Report,
    /// What was read.
    pub reading: Reading,
}

/// Who wrote to the disks.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WritersDocument<'a> {
    #[serde(flatten)]
    pub report: &'a rubus_watch::writers::Report,
    /// What to do next.
    pub next: NextStep,
}

/// How files on btrfs are compressed.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CompressionDocument {
    /// The paths that were looked through.
    pub paths: Vec<String>,
    /// All of it together.
    pub total: Share,
    /// By method.
    pub compression: Compression,
}

/// A copied tree.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CopyDocument<'a> {
    /// What was copied.
    pub copy: &'a CopyReceipt,
    /// How the copy compares with the original; null: not compared.
    pub comparison: Option<&'a Comparison>,
}

/// One look at a working machine.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WatchDocument<'a> {
    /// What to do next.
    pub next: NextStep,
    /// The rates between two moments.
    pub watch: &'a Look,
    /// The machine, for people: board and kernel.
    pub machine: &'a str,
    /// What disks are, for people, by kernel name.
    pub disks: &'a [(String, String)],
    /// The health of each disk, the worst first; empty in recordings of older programs.
    pub health: &'a [DiskHealth],
}
