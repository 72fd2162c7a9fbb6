//! Files of our own before the jobs: their length, and what they hold.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rubus_vocabulary::spec::{FileStart, Job};
use rubus_vocabulary::title::spec_title;

use super::{FILL_BLOCK, Scheduler, only_writes, regions_of, target_failed};
use crate::error::BenchError;
use crate::event::{Event, Observer};
use crate::measure::flush_limit;
use crate::rig::Running;

/// A target that accepts nothing for this long while it is filled is given up.
const GIVE_UP_NS: u64 = 30_000_000_000;
/// Filling the file takes no longer than this, in seconds.
const FILL_S: f64 = 20.0;

impl Scheduler<'_> {
    /// Gives files of our own their length, and their contents where they have to have some.
    pub(super) fn lay_out(&mut self, observer: &mut dyn Observer) -> Result<(), BenchError> {
        let first = &self.suite.jobs[0];
        for number in 0..self.regions.len() {
            let region = &mut self.regions[number];
            let Some(start) = region.start.filter(|_| region.opened.is_own_file()) else {
                continue;
            };
            let extended = region.extend(&mut *self.rig, start);
            extended.map_err(|error| target_failed(first, error))?;
            if start == FileStart::Filled {
                self.fill(number, first, observer)?;
            }
        }
        Ok(())
    }

    /// Fills the file for a job that needs something to be there, if nothing is.
    pub(super) fn fill_for(
        &mut self,
        job: &Job,
        observer: &mut dyn Observer,
    ) -> Result<(), BenchError> {
        if job.fresh && only_writes(job) {
            return Ok(());
        }
        for number in regions_of(job) {
            let Some(region) = self.regions.get(number) else {
                continue;
            };
            // What the target was too slow for once is not tried again.
            let is_new = self.results.is_empty() || region.filled_bytes == 0;
            let is_due = is_new || region.is_emptied;
            if is_due && region.opened.is_own_file() && region.filled_bytes < region.wanted_bytes {
                self.fill(number, job, observer)?;
            }
        }
        Ok(())
    }

    /// Fills a file of our own. A suite with a time limit continues with a smaller file when that
    /// takes too long.
    fn fill(
        &mut self,
        number: usize,
        job: &Job,
        observer: &mut dyn Observer,
    ) -> Result<(), BenchError> {
        observer.event(&Event::Preparing { what: "filling the test file" });
        let engine_error = |error: String| BenchError::Engine { job: spec_title(job), error };
        self.regions[number].is_emptied = false;
        let wanted_bytes = self.regions[number].wanted_bytes;
        let start_ns = self.rig.now_ns();
        let works = self.filling(number);
        self.regions[number].filled_bytes -=
            self.regions[number].filled_bytes % u64::from(FILL_BLOCK);
        for (work, end_bytes) in works {
            let mut running = self.rig.start(&work).map_err(engine_error)?;
            let ended = self.watch_filling(running.as_mut(), start_ns, job);
            let completions = &running.completions()[0];
            let region = &mut self.regions[number];
            region.filled_bytes = (region.filled_bytes + completions.bytes()).min(wanted_bytes);
            self.bytes_written += completions.bytes();
            let failure = completions.failure().map(String::from);
            ended?;
            if let Some(error) = failure {
                return Err(target_failed(job, error));
            }
            if self.regions[number].filled_bytes < end_bytes.min(wanted_bytes) {
                break;
            }
        }
        let work = self.plain_work(number, wanted_bytes);
        let most = flush_limit(wanted_bytes);
        let flushed = self.rig.flush(&work, most, self.cancel, &mut |_| {});
        flushed.map_err(|error| target_failed(job, error))?;
        Ok(())
    }

    /// Lets the filling run to its end, within the time that it may take.
    fn watch_filling(
        &mut self,
        running: &mut dyn Running,
        start_ns: u64,
        job: &Job,
    ) -> Result<(), BenchError> {
        let limit_ns = match self.suite.max_seconds {
            Some(_) => (FILL_S * 1e9) as u64,
            None => u64::MAX,
        };
        let (mut seen, mut seen_at_ns) = (0, self.rig.now_ns());
        let mut interrupted = false;
        while !running.poll(Duration::from_millis(50)) {
            interrupted |= self.cancel.load(Ordering::Relaxed);
            let now_ns = self.rig.now_ns();
            if interrupted || now_ns.saturating_sub(start_ns) >= limit_ns {
                running.stop();
            }
            let operations = running.completions()[0].operations();
            if operations != seen {
                (seen, seen_at_ns) = (operations, now_ns);
            }
            if now_ns.saturating_sub(seen_at_ns) >= GIVE_UP_NS {
                let error = "filling the test file does not go on".into();
                return Err(target_failed(job, error));
            }
        }
        if interrupted { Err(BenchError::Interrupted { job: spec_title(job) }) } else { Ok(()) }
    }
}
