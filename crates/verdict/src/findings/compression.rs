//! Zeros against data that does not compress: whether a filesystem on the way compresses.

use rubus_stats::compare::ratio;
use rubus_vocabulary::finding::{Compression, Finding};
use rubus_vocabulary::result::Run;
use rubus_vocabulary::suite_jobs as job;

/// The ratio of the two, of a run that wrote both.
pub(super) fn of(run: &Run) -> Option<Finding> {
    let zeros = run.job(job::STREAM_ZEROS)?.bytes_per_second;
    let incompressible = run.job(job::STREAM_WRITE)?.bytes_per_second;
    Some(Finding::Compression(Compression {
        incompressible_bytes_per_second: incompressible,
        zeros_bytes_per_second: zeros,
        ratio: ratio(zeros, incompressible)?,
    }))
}
