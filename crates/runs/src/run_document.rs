//! A run as JSON, as every verb that gives runs prints it.

use anyhow::Context;
use rubus_verdict::verdict::Verdict;
use rubus_vocabulary::result::{Figures, Run};
use serde::Serialize;

/// A run, with the verdict beside its fields.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunDocument<'a> {
    #[serde(flatten)]
    pub run: &'a Run,
    /// The narrowest stage, judged from the results; absent for a benchmark of the processor or of memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<&'a Verdict>,
}

/// The run as one JSON object, with the verdict beside its fields.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn run_json(run: &Run, verdict: &Verdict) -> anyhow::Result<String> {
    let document = RunDocument {
        run,
        // A verdict is about a disk.
        verdict: (run.figures == Figures::Disk).then_some(verdict),
    };
    serde_json::to_string_pretty(&document).context("cannot write the run as JSON")
}
