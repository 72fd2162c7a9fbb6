//! The order of a session: job after job, within the time and the wear that the suite allows.
//!
//! Knows neither clock nor kernel, only a [`Rig`].

use std::sync::atomic::AtomicBool;

use rubus_stats::cliff;
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::result::JobResult;
use rubus_vocabulary::spec::{Direction, Ends, Job, Suite};
use rubus_vocabulary::title::spec_title;

use crate::course;
use crate::error::BenchError;
use crate::event::{Event, Observer};
use crate::frame::{Jobs, Measured, book, must_go_on, run_jobs};
use crate::measurement::{Measurement, expected_s};
use crate::region::Region;
use crate::rig::Rig;
use crate::suites::fills;
use crate::work::Work;

mod filling;
mod group;
mod passes;
mod tasks;

/// A job that would get less time than this is left out, in seconds.
const MIN_JOB_S: f64 = 1.0;
/// What any job costs besides its own time, in seconds: set-up and flush.
const AROUND_JOB_S: f64 = 0.4;
/// Size of the writes that fill the file.
pub(crate) const FILL_BLOCK: u32 = 1 << 20;
/// Share of what was read that may be holes without a doubt.
const MIN_HOLES: f64 = 0.01;
/// Share of the region found in the page cache from which direct I/O was none.
const CACHED: f64 = 0.05;

/// Runs the jobs of one suite on one open target, or on several files.
pub(crate) struct Scheduler<'a> {
    pub(crate) rig: &'a mut dyn Rig,
    pub(crate) suite: &'a Suite,
    /// The target, then further files; at least one.
    pub(crate) regions: Vec<Region>,
    cancel: &'a AtomicBool,
    start_ns: u64,
    pub(crate) bytes_written: u64,
    /// Bytes that trials have written and that the next budget pays for.
    pub(crate) debt_bytes: u64,
    pub(crate) results: Vec<JobResult>,
    /// How many turns jobs have had, where they are run in turns with those of another target.
    turns: u64,
    /// Length of what is sealed and checked as one, where jobs do that.
    pub(crate) check_unit: Option<u32>,
}

impl<'a> Scheduler<'a> {
    /// A session that began at `start_ns` on the rig's clock, on at least one region.
    pub(crate) fn new(
        rig: &'a mut dyn Rig,
        suite: &'a Suite,
        regions: Vec<Region>,
        cancel: &'a AtomicBool,
        start_ns: u64,
    ) -> Self {
        let probed = regions.iter().map(|region| region.opened.probe_bytes).sum();
        Scheduler {
            rig,
            suite,
            cancel,
            start_ns,
            bytes_written: probed,
            debt_bytes: probed,
            regions,
            results: Vec::new(),
            turns: 0,
            check_unit: None,
        }
    }

    /// The region that was measured.
    pub(crate) fn region_bytes(&self) -> u64 {
        self.regions[0].region_bytes()
    }

    /// The results so far and the bytes that were written.
    pub(crate) fn into_results(self) -> (Vec<JobResult>, u64) {
        (self.results, self.bytes_written)
    }

    /// Runs all jobs; gives what ended the session early, if anything did.
    pub(crate) fn run_all(&mut self, observer: &mut dyn Observer) -> Option<BenchError> {
        let suite = self.suite;
        self.check_unit = self.session_unit();
        if let Err(error) = self.lay_out(observer) {
            return Some(error);
        }
        run_jobs(suite, self.cancel, self, observer).err()
    }

    /// Fills a file of our own before jobs that are run in turns.
    ///
    /// # Errors
    /// When the target fails or the session is stopped.
    pub(crate) fn prepare(&mut self, observer: &mut dyn Observer) -> Result<(), BenchError> {
        let suite = self.suite;
        let needy = suite.jobs.iter().find(|job| !(job.fresh && only_writes(job)));
        needy.map_or(Ok(()), |job| self.fill_for(job, observer))
    }

    /// Uses no more of the target than this.
    pub(crate) fn limit_region(&mut self, bytes: u64) {
        let region = &mut self.regions[0];
        region.filled_bytes = region.filled_bytes.min(bytes);
    }

    /// Runs a job of the suite, as it is given here, once more and to random places of its own; gives its
    /// result and then those of the jobs beside it, or why it cannot be run here.
    ///
    /// # Errors
    /// When the target fails or the session is stopped.
    pub(crate) fn turn(
        &mut self,
        index: usize,
        job: &Job,
        observer: &mut dyn Observer,
    ) -> Result<Result<Vec<JobResult>, String>, BenchError> {
        must_go_on(self.cancel, job)?;
        if let Some(reason) = self.why_not(job, false) {
            return Ok(Err(reason));
        }
        self.turns += 1;
        let before = self.results.len();
        match self.run_job(job, index, false, observer)? {
            Ok(mut measurement) => {
                self.account(job, false, &mut measurement);
                let place = (index, self.suite.jobs.len());
                book(job, place, measurement, &mut self.results, observer)?;
            }
            Err(reason) => return Ok(Err(reason)),
        }
        Ok(Ok(self.results[before..].to_vec()))
    }

    /// Whether the last long write fell off a cliff.
    fn has_fallen(&self) -> bool {
        let last = self.results.last();
        last.is_some_and(|result| {
            let series = result.series.as_ref();
            let block_bytes = f64::from(result.block_bytes);
            series.is_some_and(|series| cliff::fall(series, block_bytes).is_some())
        })
    }

    /// Why the job cannot be run here; nothing when it can.
    fn why_not(&self, job: &Job, fills_region: bool) -> Option<String> {
        let opened = &self.regions[0].opened;
        if let Some(reason) = opened.remote.as_ref().and_then(|r| r.why_not(job)) {
            return Some(reason);
        }
        let mut plain = group(job).filter(|job| job.shape.is_none());
        plain.find_map(|job| {
            let region_bytes = self.region_for(job, 0, fills_region);
            let align = u64::from(opened.align_bytes);
            if region_bytes < u64::from(job.block_bytes) {
                return Some(format!("only {region_bytes} bytes could be filled before"));
            }
            (!job.through_cache && u64::from(job.block_bytes) % align != 0)
                .then(|| direct_only_in(align))
        })
    }

    /// The bytes of a region that a job may work on.
    pub(crate) fn region_for(&self, job: &Job, region: usize, fills_region: bool) -> u64 {
        let region = &self.regions[region];
        // What is written needs nothing to be there, unless the file was made smaller because the
        // target is slow.
        let allocates = job.fresh && only_writes(job);
        if fills_region || allocates { region.wanted_bytes } else { region.region_bytes() }
    }

    /// Leaves the target alone for as long as the job wants before it begins.
    fn rest(&mut self, job: &Job, observer: &mut dyn Observer) -> Result<(), BenchError> {
        // In a group each job rests by itself.
        let is_group = !job.beside.is_empty() && job.ends != Ends::WithTheFirst;
        if job.rest_before_s <= 0.0 || is_group {
            return Ok(());
        }
        observer.event(&Event::Preparing { what: "leaving the target alone" });
        if self.rig.rest(job.rest_before_s, self.cancel) {
            return Ok(());
        }
        Err(BenchError::Interrupted { job: spec_title(job) })
    }

    /// Empties a file of our own before a job that wants to allocate.
    fn freshen(&mut self, job: &Job) -> Result<(), BenchError> {
        if !job.fresh {
            return Ok(());
        }
        for number in regions_of(job) {
            let Some(region) = self.regions.get_mut(number) else {
                continue;
            };
            if !region.opened.is_own_file() {
                continue;
            }
            region.filled_bytes = 0;
            region.is_emptied = true;
            let emptied = self.rig.empty(&region.opened.file);
            emptied.map_err(|error| target_failed(job, error))?;
        }
        Ok(())
    }

    /// The job with as much time as it may have, or nothing when there is not enough left.
    fn fit_time(&self, index: usize) -> Option<Job> {
        let mut job = self.suite.jobs[index].clone();
        let Some(most_s) = self.suite.max_seconds else {
            return Some(job);
        };
        let spent_s = self.rig.now_ns().saturating_sub(self.start_ns) as f64 / 1e9;
        let coming = &self.suite.jobs[index..];
        let wanted_s: f64 = coming.iter().map(|job| job.stop.max_seconds).sum();
        let around_s: f64 = coming.iter().map(|job| self.around_s(job)).sum();
        let left_s = most_s - spent_s - around_s;
        let share = (left_s / wanted_s).clamp(0.0, 1.0);
        job.stop.max_seconds *= share;
        job.stop.min_seconds = job.stop.min_seconds.min(job.stop.max_seconds);
        let least_s = MIN_JOB_S.min(self.suite.jobs[index].stop.max_seconds);
        (job.stop.max_seconds >= least_s).then_some(job)
    }

    /// What a job costs besides its own time, in seconds: above all the operations that are still in
    /// flight at its end, which on a slow device may take longer than the job itself.
    fn around_s(&self, job: &Job) -> f64 {
        let in_flight_s = f64::from(job.queue_depth) * self.operation_s(job);
        let beside_s =
            job.beside.iter().fold(0.0, |most: f64, beside| most.max(self.around_s(beside)));
        AROUND_JOB_S + in_flight_s.max(beside_s)
    }

    /// How long one operation after another of the job takes, in seconds, as far as the results so
    /// far tell; 0 where they do not.
    fn operation_s(&self, job: &Job) -> f64 {
        let alike = |result: &&JobResult| result.direction == job.direction && !result.commit;
        let guesses_s = self.results.iter().filter(alike).map(|result| {
            let blocks = f64::from(job.block_bytes) / f64::from(result.block_bytes);
            blocks.max(1.0) / result.iops.value
        });
        // A result with smaller blocks makes too much of it, one with larger blocks too, so the
        // least of the guesses is the best.
        let guess_s = guesses_s.fold(f64::INFINITY, f64::min);
        if guess_s.is_finite() { guess_s } else { 0.0 }
    }

    /// How many operations a trial may take so that it is over in half a second.
    pub(crate) fn trial_operations(&self, job: &Job) -> u32 {
        const TRIAL_S: f64 = 0.5;
        let operation_s = self.operation_s(job);
        let most = job.queue_depth.max(1);
        if operation_s * f64::from(most) <= TRIAL_S {
            return most;
        }
        ((TRIAL_S / operation_s) as u32).clamp(1, most)
    }

    fn left_after_s(&self, index: usize) -> f64 {
        /// A job that may take longer than this ends in another way, at an unknown time.
        const KNOWN_S: f64 = 7.0 * 86_400.0;
        let rest = self.suite.jobs.iter().skip(index + 1).map(|job| &job.stop);
        let known = rest.filter(|stop| stop.max_seconds < KNOWN_S);
        known.map(|stop| expected_s(stop.min_seconds, stop.max_seconds) + AROUND_JOB_S).sum()
    }

    fn hole_bytes(&self) -> u64 {
        let remote = self.regions[0].opened.remote.as_ref();
        remote.map_or(0, |remote| remote.hole_bytes())
    }

    /// After a job on a network disk: whether all of what was read came over the network.
    fn check_holes(&self, before: u64, measurement: &mut Measurement) {
        let bytes = self.hole_bytes() - before;
        let is_read = |result: &&mut JobResult| result.direction == Direction::Read;
        for result in measurement.results.iter_mut().filter(is_read) {
            let share = bytes as f64 / result.moved_bytes().max(1) as f64;
            if share > MIN_HOLES {
                // The warm-up had holes, too.
                let share = share.min(1.0);
                result.doubts.push(Doubt::Holes { share });
            }
        }
    }

    /// After a job with direct I/O: whether the page cache holds what should have gone past it.
    fn check_cache(&mut self, work: &Work, measurement: &mut Measurement) {
        let Some(share) = self.rig.cached_share(work).filter(|&share| share > CACHED) else {
            return;
        };
        let name = match &self.regions[0].opened.filesystem {
            Some(filesystem) => filesystem.name.as_str(),
            None => "this device",
        };
        let percent = share * 100.0;
        let filesystem = format!("{name} kept {percent:.0} % of the test file in the page cache");
        for result in &mut measurement.results {
            let known = |doubt: &Doubt| matches!(doubt, Doubt::DirectIsBuffered { .. });
            if !result.doubts.iter().any(known) {
                result.doubts.push(Doubt::DirectIsBuffered { filesystem: filesystem.clone() });
            }
        }
    }

    /// Takes what a job has written into account, and what that means for its results.
    fn account(&mut self, job: &Job, is_fill: bool, measurement: &mut Measurement) {
        self.bytes_written += measurement.bytes_written;
        let region = &mut self.regions[0];
        if is_fill {
            region.filled_bytes = measurement.covered_bytes.min(region.wanted_bytes);
        }
        let small = Doubt::SmallRegion { bytes: region.filled_bytes, wanted: region.wanted_bytes };
        // Of a file that was emptied the rest is filled before the next job.
        let is_small = is_fill && !region.is_emptied && region.filled_bytes < region.wanted_bytes;
        for result in &mut measurement.results {
            if is_small {
                result.doubts.push(small.clone());
            }
            if job.until_cliff {
                course::expects_a_fall(result);
            }
        }
    }
}

impl Jobs for Scheduler<'_> {
    fn run(&mut self, index: usize, observer: &mut dyn Observer) -> Result<Measured, BenchError> {
        let suite = self.suite;
        let job = &suite.jobs[index];
        if job.until_cliff && job.rest_before_s > 0.0 && !self.has_fallen() {
            return Ok(Err("the rate has not fallen, so there is nothing to recover from".into()));
        }
        self.rest(job, observer)?;
        for job in group(job) {
            self.freshen(job)?;
        }
        let fills_region = self.regions[0].filled_bytes == 0 && fills(suite, job);
        for job in group(job).skip(usize::from(fills_region)) {
            self.fill_for(job, observer)?;
        }
        let Some(job) = self.fit_time(index) else {
            return Ok(Err("the time for the suite is over".into()));
        };
        if let Some(reason) = self.why_not(&job, fills_region) {
            return Ok(Err(reason));
        }
        let mut measured = if course::is_in_passes(&job) {
            self.run_passes(&job, index, fills_region, observer)?
        } else {
            self.run_job(&job, index, fills_region, observer)?
        };
        if let Ok(measurement) = &mut measured {
            self.account(&job, fills_region, measurement);
        }
        Ok(measured)
    }

    fn results(&mut self) -> &mut Vec<JobResult> {
        &mut self.results
    }
}

fn target_failed(job: &Job, error: String) -> BenchError {
    BenchError::TargetFailed { job: spec_title(job), error }
}

/// A job and those beside it.
pub(crate) fn group(job: &Job) -> impl Iterator<Item = &Job> {
    std::iter::once(job).chain(&job.beside)
}

/// The numbers of the files that a job works on.
pub(crate) fn regions_of(job: &Job) -> Vec<usize> {
    let Some(shape) = job.shape.as_deref() else {
        return vec![0];
    };
    let mut numbers = Vec::new();
    for copy in 0..shape.copies.max(1) {
        for file in std::iter::once(&shape.file.unwrap_or(0)).chain(&shape.more_files) {
            let number = file.saturating_add(copy.saturating_mul(shape.file_step)) as usize;
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
    }
    numbers
}

pub(crate) fn only_writes(job: &Job) -> bool {
    let percent = job.shape.as_ref().and_then(|shape| shape.read_percent);
    match percent {
        Some(percent) => percent == 0,
        None => job.direction == Direction::Write,
    }
}

pub(crate) fn direct_only_in(align: u64) -> String {
    format!("this target takes direct I/O only in units of {align} bytes")
}
