//! The cliff of a run that wrote on and on.

pub use rubus_stats::cliff::{Fall, fall};

use rubus_vocabulary::finding::{Cliff, Finding, Recovery};
use rubus_vocabulary::result::{JobResult, Run};
use rubus_vocabulary::suite_jobs as job;

/// The cliff of a run that wrote on and on, and what a rest gave back.
pub(super) fn of(run: &Run) -> Option<Finding> {
    let first = run.job(job::SUSTAINED)?;
    let series = first.series.as_ref()?;
    let block = f64::from(first.block_bytes);
    let written_bytes = series.bytes.iter().sum();
    let fall = fall(series, block);
    let recovery = fall.and_then(|fall| recovery(first, run.job(job::SUSTAINED_AGAIN)?, &fall));
    Some(Finding::Cliff(Cliff {
        job: first.job.clone(),
        burst_bytes_per_second: fall.map_or(first.bytes_per_second, |fall| fall.before),
        burst_bytes: fall.map(|fall| fall.burst_bytes),
        sustained_bytes_per_second: fall.map(|fall| fall.after),
        written_bytes,
        recovery,
    }))
}

/// What a rest gave back: the bytes that went at the first rate before the second fall.
fn recovery(first: &JobResult, again: &JobResult, fall: &Fall) -> Option<Recovery> {
    let series = again.series.as_ref()?;
    let total: u64 = series.bytes.iter().sum();
    let middle = (fall.before.value * fall.after.value.max(1.0)).sqrt();
    let second = self::fall(series, f64::from(again.block_bytes));
    let burst_bytes = match second {
        Some(second) if second.before.value > middle => second.burst_bytes.value as u64,
        None if again.bytes_per_second.value > middle => total,
        Some(_) | None => 0,
    };
    Some(Recovery {
        rest_s: (again.started_s - first.started_s - first.elapsed_s).max(0.0),
        burst_bytes,
        share: (burst_bytes as f64 / fall.burst_bytes.value).min(1.0),
    })
}
