//! What others may see of a record.

use anyhow::anyhow;
use rubus_verdict::verdict::{Verdict, verdict};
use rubus_vocabulary::result::Run;

use crate::share::{Shareable, shared};

/// The record as it is shown to others: without what identifies the machine and its owner, unless that is asked for.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn shown<T: Shareable + Clone>(record: &T, with_serials: bool) -> anyhow::Result<T> {
    if with_serials {
        return Ok(record.clone());
    }
    shared(record).map_err(|why| anyhow!("cannot leave out serial numbers and names: {why}"))
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
