//! What others may see of a record.

use anyhow::Context;
use rubus_host::capture::salt;
use rubus_host::live::Live;
use rubus_measure::verdict::{Verdict, verdict};
use rubus_runs::redact::redacted;
use rubus_vocabulary::result::Run;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The record as it is shown to others: without what identifies the machine and its owner, unless that is asked for.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn shown<T>(record: &T, with_serials: bool) -> anyhow::Result<T>
where
    T: Clone + Serialize + DeserializeOwned,
{
    match with_serials {
        true => Ok(record.clone()),
        false => redacted(record, &salt(&Live)).context("cannot replace serial numbers and names"),
    }
}

/// The same of a run, with its verdict.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn shown_run(run: &Run, with_serials: bool) -> anyhow::Result<(Run, Verdict)> {
    let run = shown(run, with_serials)?;
    let verdict = verdict(&run);
    Ok((run, verdict))
}
