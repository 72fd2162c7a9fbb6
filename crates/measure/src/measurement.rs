//! What a job and those beside it gave, where the job stands in its suite, and why a session cannot go on.

use rubus_stats::Histogram;
use rubus_vocabulary::result::JobResult;

use crate::error::BenchError;

/// Where a job stands in its suite, for the observer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Number of the job, from 0.
    pub(crate) index: usize,
    /// Number of jobs.
    pub(crate) of: usize,
    /// When the session began, on the rig's clock.
    pub(crate) session_start_ns: u64,
    /// Bytes that the session had written before this job.
    pub(crate) written_before: u64,
    /// About how long the jobs after this one will take.
    pub(crate) left_after_s: f64,
}

/// What a job and those beside it gave.
#[derive(Clone, Debug)]
pub(crate) struct Measurement {
    /// The results: that of the job, then those of the ones beside it.
    pub(crate) results: Vec<JobResult>,
    /// The latencies behind the results, in their order.
    pub(crate) whole: Vec<Histogram>,
    /// Bytes that were written.
    pub(crate) bytes_written: u64,
    /// From the start of the job to the end of its flush, warm-up included, in nanoseconds.
    pub(crate) lasted_ns: u64,
    /// How many operations the scripts of shaped jobs have handed out, for each job and copy.
    pub(crate) handed_out: Vec<Vec<u64>>,
    /// Bytes from the start of the region that a sequential writer has covered, if it was one.
    pub(crate) covered_bytes: u64,
    /// What ended the session, if the job did.
    pub(crate) failure: Option<Failure>,
}

/// Why a session cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The target failed; the error in words.
    Target(String),
    /// The user stopped it.
    Interrupted,
    /// The work could not be started; the error in words.
    Engine(String),
}

impl Failure {
    /// Why the session ends with this job.
    pub(crate) fn of(self, job: &str) -> BenchError {
        let job = job.to_string();
        match self {
            Failure::Interrupted => BenchError::Interrupted { job },
            Failure::Target(error) => BenchError::TargetFailed { job, error },
            Failure::Engine(error) => BenchError::Engine { job, error },
        }
    }
}

/// About how long a job takes that must run for `least_s` and may for `most_s`.
pub(crate) fn expected_s(least_s: f64, most_s: f64) -> f64 {
    (least_s + 0.4 * (most_s - least_s)).clamp(0.0, most_s.max(0.0))
}
