//! What a session tells while it runs.

use rubus_stats::estimate::Estimate;
use rubus_vocabulary::result::JobResult;
use rubus_vocabulary::spec::Job;

/// Listens to a session. Called on the caller's own thread, not on the one that measures.
pub trait Observer {
    /// Called for each event of the session.
    fn event(&mut self, event: &Event<'_>);
}

impl<F: FnMut(&Event<'_>)> Observer for F {
    fn event(&mut self, event: &Event<'_>) {
        self(event);
    }
}

/// Something that happened in a session.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// The session prepares something that may take a moment ("filling the test file").
    Preparing {
        /// What, as a participle.
        what: &'static str,
    },
    /// A job begins.
    JobStarted {
        /// Number of the job in the suite, from 0.
        index: usize,
        /// Number of jobs in the suite.
        of: usize,
        job: &'a Job,
        /// Which engine runs it.
        engine: &'static str,
    },
    /// A job goes on; about five times a second.
    Progress(Progress<'a>),
    /// A job ended. A job with another beside it ends twice, itself first.
    JobFinished {
        /// Number of the job in the suite, from 0.
        index: usize,
        /// Number of jobs in the suite.
        of: usize,
        /// What it gave.
        result: &'a JobResult,
    },
    /// A job is left out.
    JobSkipped {
        /// Number of the job in the suite, from 0.
        index: usize,
        /// Number of jobs in the suite.
        of: usize,
        job: &'a Job,
        /// Why, as a sentence without a full stop.
        reason: String,
    },
}

/// Where a running job is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress<'a> {
    /// The job that runs; of two beside one another the one that the suite names.
    pub job: &'a str,
    /// Number of the job in the suite, from 0.
    pub index: usize,
    /// Number of jobs in the suite.
    pub of: usize,
    /// What it does just now.
    pub phase: Phase,
    /// Seconds since the job began.
    pub elapsed_s: f64,
    /// Bytes per second over the last second; of the bystander where there is one.
    pub bytes_per_second_now: f64,
    /// Operations per second over the last second; of the bystander where there is one.
    pub iops_now: f64,
    /// Bytes per second since the warm-up, with the interval so far.
    pub bytes_per_second: Option<Estimate>,
    /// Operations per second since the warm-up, with the interval so far.
    pub iops: Option<Estimate>,
    /// Seconds since anything completed.
    pub idle_s: f64,
    /// Bytes that the session has written to the target so far.
    pub bytes_written: u64,
    /// About how many seconds the rest of the suite will take.
    pub left_s: f64,
}

/// What a job does just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The first moments, which do not count.
    WarmUp,
    Measuring,
    /// Waiting for the last operations and the final flush.
    Finishing,
}
