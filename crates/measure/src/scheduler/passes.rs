//! Jobs of which only whole passes say anything: a rate whose flush comes at the end is the bytes of
//! the pass over all of its time, and its interval is that of several passes.

use rubus_vocabulary::spec::Job;

use super::{MIN_JOB_S, Scheduler};
use crate::error::BenchError;
use crate::event::Observer;
use crate::measurement::Measurement;
use crate::passes::{Kind, Pass, join};

/// Minimum number of passes for an interval that may end the job.
const MIN_PASSES: usize = 3;
/// A pass that covers less than this share of the region counts only where there is no other.
const MIN_COVERED: f64 = 0.5;
/// A pass is begun only when this share of the usual time of one is left.
const MIN_LEFT: f64 = 0.8;

impl Scheduler<'_> {
    /// Runs the job pass after pass, until they agree, the time is over or there were as many as
    /// wanted; gives one measurement of them all, or the reason why the job cannot be run here.
    pub(super) fn run_passes(
        &mut self,
        job: &Job,
        index: usize,
        fills_region: bool,
        observer: &mut dyn Observer,
    ) -> Result<Result<Measurement, String>, BenchError> {
        let region_bytes = self.region_for(job, 0, fills_region);
        let start_ns = self.rig.now_ns();
        let mut passes: Vec<Pass> = Vec::new();
        loop {
            let started_s = self.since_s(start_ns);
            let mut one = job.clone();
            one.stop.max_seconds = (job.stop.max_seconds - started_s).max(MIN_JOB_S);
            one.stop.min_seconds = one.stop.min_seconds.min(one.stop.max_seconds);
            let measurement = match self.run_job(&one, index, fills_region, observer)? {
                Ok(measurement) => measurement,
                Err(reason) => return Ok(Err(reason)),
            };
            let pass =
                Pass { started_s, lasted_s: measurement.lasted_ns as f64 / 1e9, measurement };
            let covered_bytes = pass.measurement.covered_bytes;
            let is_failed = pass.measurement.failure.is_some();
            let is_whole = pass.bytes(job) as f64 >= MIN_COVERED * region_bytes as f64;
            if passes.is_empty() || is_whole || is_failed {
                passes.push(pass);
            } else {
                self.bytes_written += pass.measurement.bytes_written;
            }
            if is_failed || self.is_enough(job, &passes, self.since_s(start_ns)) {
                return Ok(Ok(together(job, passes, covered_bytes)));
            }
            self.freshen(job)?;
        }
    }

    fn since_s(&self, start_ns: u64) -> f64 {
        self.rig.now_ns().saturating_sub(start_ns) as f64 / 1e9
    }

    fn is_enough(&self, job: &Job, passes: &[Pass], spent_s: f64) -> bool {
        let each_s = spent_s / passes.len().max(1) as f64;
        let is_precise = || {
            let rate = Pass::rate(passes);
            passes.len() >= MIN_PASSES
                && rate
                    .is_some_and(|rate| rate.relative_half_width() <= job.stop.relative_half_width)
        };
        passes.len() >= job.passes.max(1) as usize
            || spent_s + MIN_LEFT * each_s > job.stop.max_seconds
            || (spent_s >= job.stop.min_seconds && is_precise())
    }
}

/// The passes as one measurement. A single one past the page cache is judged by its own course, as
/// any other job.
fn together(job: &Job, mut passes: Vec<Pass>, covered_bytes: u64) -> Measurement {
    if passes.len() == 1 && !job.through_cache {
        if let Some(only) = passes.pop() {
            return only.measurement;
        }
    }
    let count = u32::try_from(passes.len()).ok();
    let mut joined = join(job, Kind::Repetitions, passes);
    joined.covered_bytes = covered_bytes;
    for result in &mut joined.results {
        result.passes = count;
    }
    joined
}
