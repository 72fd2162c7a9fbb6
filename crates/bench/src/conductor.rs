//! The order of a session: job after job, within the time and the wear that the suite allows.
//!
//! Knows neither clock nor kernel, only a [`Rig`].

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rubus_core::doubt::Doubt;
use rubus_core::result::{Access, JobResult};
use rubus_core::spec::{Direction, Durability, Job, Pattern, Suite};
use rubus_core::stats::Rng;

use crate::error::BenchError;
use crate::event::{Event, Observer};
use crate::measure::{Failure, Measurement, Place, Task, expected_s, measure};
use crate::rig::Rig;
use crate::suites::fills;
use crate::target::{CommitFile, Opened};
use crate::work::{Engine, Work, is_commit};

/// The warm-up of every job, unless its write budget is short: half a second.
const WARM_UP_NS: u64 = 500_000_000;
/// A job that writes warms up with at most this part of its budget.
const WARM_UP_PART: u64 = 10;
/// A job that would get less time than this is left out, in seconds.
const LEAST_JOB_S: f64 = 1.0;
/// What any job costs besides its own time, in seconds: set-up and flush.
const AROUND_JOB_S: f64 = 0.4;
/// Filling the file takes no longer than this, in seconds.
const FILL_S: f64 = 20.0;
/// Size of the writes that fill the file.
const FILL_BLOCK: u32 = 1 << 20;
/// Share of the region found in the page cache from which direct I/O was none.
const CACHED: f64 = 0.05;

/// Runs the jobs of one suite on one open target.
pub(crate) struct Conductor<'a> {
    rig: &'a mut dyn Rig,
    suite: &'a Suite,
    ground: Opened,
    cancel: &'a AtomicBool,
    start_ns: u64,
    /// Bytes from the start of the target that hold data.
    filled_bytes: u64,
    bytes_written: u64,
    /// Bytes that trials have written and that the next budget pays for.
    debt_bytes: u64,
    results: Vec<JobResult>,
}

impl<'a> Conductor<'a> {
    /// A session that began at `start_ns` on the rig's clock.
    pub(crate) fn new(
        rig: &'a mut dyn Rig,
        suite: &'a Suite,
        ground: Opened,
        cancel: &'a AtomicBool,
        start_ns: u64,
    ) -> Self {
        let filled_bytes = if ground.is_own_file() {
            0
        } else {
            ground.size_bytes.min(suite.region_bytes)
        };
        Conductor {
            rig,
            suite,
            cancel,
            start_ns,
            filled_bytes,
            bytes_written: ground.probe_bytes,
            debt_bytes: ground.probe_bytes,
            ground,
            results: Vec::new(),
        }
    }

    /// The region that was measured.
    pub(crate) fn region_bytes(&self) -> u64 {
        self.filled_bytes.min(self.suite.region_bytes)
    }

    /// The results so far and the bytes that were written.
    pub(crate) fn into_results(self) -> (Vec<JobResult>, u64) {
        (self.results, self.bytes_written)
    }

    /// Runs all jobs; gives what ended the session early, if anything did.
    pub(crate) fn run_all(&mut self, observer: &mut dyn Observer) -> Option<BenchError> {
        let suite = self.suite;
        for index in 0..suite.jobs.len() {
            if let Err(error) = self.run_one(index, observer) {
                return Some(error);
            }
        }
        None
    }

    fn run_one(&mut self, index: usize, observer: &mut dyn Observer) -> Result<(), BenchError> {
        let suite = self.suite;
        let job = &suite.jobs[index];
        let of = suite.jobs.len();
        if self.cancel.load(Ordering::Relaxed) {
            return Err(BenchError::Interrupted {
                job: job.name.clone(),
            });
        }
        let is_fill = self.filled_bytes == 0 && fills(suite, job);
        if !is_fill && self.filled_bytes < self.suite.region_bytes && self.results.is_empty() {
            self.fill(job, observer)?;
        }
        let region_bytes = if is_fill {
            suite.region_bytes
        } else {
            self.region_bytes()
        };
        let skip = |reason: String, observer: &mut dyn Observer| {
            observer.event(&Event::JobSkipped {
                index,
                of,
                job,
                reason,
            });
            Ok(())
        };
        let Some(job) = self.fit_time(index) else {
            return skip("the time for the suite is over".into(), observer);
        };
        let least = biggest_block(&job);
        if region_bytes < least {
            let reason = format!("only {region_bytes} bytes could be filled before");
            return skip(reason, observer);
        }
        let align = u64::from(self.ground.align_bytes);
        if u64::from(job.block_bytes) % align != 0 {
            let reason = format!("this target takes direct I/O only in units of {align} bytes");
            return skip(reason, observer);
        }
        let measurement = self.run_job(&job, index, region_bytes, observer)?;
        self.book(&job, is_fill, measurement, index, observer)
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
        let least_s = LEAST_JOB_S.min(self.suite.jobs[index].stop.max_seconds);
        (job.stop.max_seconds >= least_s).then_some(job)
    }

    /// What a job costs besides its own time, in seconds: above all the operations that are still in
    /// flight at its end, which on a slow device may take longer than the job itself.
    fn around_s(&self, job: &Job) -> f64 {
        let in_flight_s = f64::from(job.queue_depth) * self.operation_s(job);
        let beside_s = job
            .beside
            .as_deref()
            .map_or(0.0, |beside| self.around_s(beside));
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
    fn trial_operations(&self, job: &Job) -> u32 {
        const TRIAL_S: f64 = 0.5;
        let operation_s = self.operation_s(job);
        let most = job.queue_depth.max(1);
        if operation_s * f64::from(most) <= TRIAL_S {
            return most;
        }
        ((TRIAL_S / operation_s) as u32).clamp(1, most)
    }

    /// Starts the job, and the one beside it, with the engines that suit the target.
    fn run_job(
        &mut self,
        job: &Job,
        index: usize,
        region_bytes: u64,
        observer: &mut dyn Observer,
    ) -> Result<Measurement, BenchError> {
        let engine_error = |error: String| BenchError::Engine {
            job: job.name.clone(),
            error,
        };
        let commit_file = if is_commit(job) {
            self.ground.commit_file().map_err(engine_error)?
        } else {
            None
        };
        let task = self.task(job, region_bytes, index as u64 * 2, commit_file.as_ref());
        let beside_job = job.beside.as_deref().map(|beside| {
            let mut beside = beside.clone();
            beside.stop.max_seconds = job.stop.max_seconds;
            beside
        });
        let beside = beside_job
            .as_ref()
            .map(|beside| self.task(beside, region_bytes, index as u64 * 2 + 1, None));
        observer.event(&Event::JobStarted {
            index,
            of: self.suite.jobs.len(),
            job: &self.suite.jobs[index],
            engine: task.work.engine.name(),
        });
        let place = Place {
            index,
            of: self.suite.jobs.len(),
            session_start_ns: self.start_ns,
            written_before: self.bytes_written,
            left_after_s: self.left_after_s(index),
        };
        self.rig.settle(&task.work);
        let (cancel, rig) = (self.cancel, &mut *self.rig);
        let mut measurement = measure(rig, &task, beside.as_ref(), place, cancel, observer);
        if commit_file.is_none() && self.ground.access == Access::Direct {
            self.check_cache(&task.work, &mut measurement);
        }
        Ok(measurement)
    }

    fn left_after_s(&self, index: usize) -> f64 {
        let rest = self.suite.jobs.iter().skip(index + 1).map(|job| &job.stop);
        rest.map(|stop| expected_s(stop.min_seconds, stop.max_seconds) + AROUND_JOB_S)
            .sum()
    }

    /// What the job means on this target.
    fn task<'j>(
        &mut self,
        job: &'j Job,
        region_bytes: u64,
        stream: u64,
        commit_file: Option<&CommitFile>,
    ) -> Task<'j> {
        let is_write = job.direction == Direction::Write;
        let file = match commit_file {
            Some(commit_file) => Arc::clone(&commit_file.file),
            None => Arc::clone(&self.ground.file),
        };
        let mut work = self.plain_work(file, region_bytes);
        work.direction = job.direction;
        work.pattern = job.pattern;
        work.block_bytes = job.block_bytes;
        work.queue_depth = job.queue_depth.max(1);
        work.durability = job.durability;
        work.append_from = commit_file.map(|_| 0);
        work.settles &= is_write;
        work.seed = Rng::stream(self.suite.seed, stream).next_u64();
        work.most_operations = operations(job, 0);
        let choice = self.rig.choose_engine(&work, self.trial_operations(job));
        work.engine = choice.engine;
        self.bytes_written += choice.bytes_written;
        self.debt_bytes += choice.bytes_written;
        if is_write {
            let paid_bytes = self.debt_bytes.min(self.spare_bytes(job));
            self.debt_bytes -= paid_bytes;
            work.most_operations = operations(job, paid_bytes);
            work.warm_up_operations = work.most_operations / WARM_UP_PART;
        }
        let mut doubts = self.ground.doubts.clone();
        doubts.extend(choice.doubt);
        if region_bytes < self.suite.region_bytes {
            doubts.push(Doubt::SmallRegion {
                bytes: region_bytes,
                wanted: self.suite.region_bytes,
            });
        }
        Task {
            job,
            work,
            access: self.ground.access,
            doubts,
        }
    }

    /// How much of a writing job's budget may go to something else.
    fn spare_bytes(&self, job: &Job) -> u64 {
        let needed = if self.filled_bytes == 0 && fills(self.suite, job) {
            self.suite.region_bytes
        } else {
            u64::from(job.block_bytes)
        };
        job.stop.max_bytes.saturating_sub(needed)
    }

    /// A sequential write of the region, to be changed into what is wanted.
    fn plain_work(&self, file: Arc<OwnedFd>, region_bytes: u64) -> Work {
        Work {
            file,
            engine: Engine::Positional,
            direction: Direction::Write,
            pattern: Pattern::Sequential,
            block_bytes: FILL_BLOCK,
            queue_depth: 1,
            durability: Durability::AtEnd,
            region_bytes,
            append_from: None,
            settles: self.ground.access == Access::Buffered,
            content: self.suite.content,
            seed: self.suite.seed,
            most_operations: u64::MAX,
            warm_up_ns: WARM_UP_NS,
            warm_up_operations: u64::MAX,
        }
    }

    /// After a job with direct I/O: whether the page cache holds what should have gone past it.
    fn check_cache(&mut self, work: &Work, measurement: &mut Measurement) {
        let Some(share) = self.rig.cached_share(work).filter(|&share| share > CACHED) else {
            return;
        };
        let name = match &self.ground.filesystem {
            Some(filesystem) => filesystem.name.as_str(),
            None => "this device",
        };
        let percent = share * 100.0;
        let filesystem = format!("{name} kept {percent:.0} % of the test file in the page cache");
        for result in &mut measurement.results {
            let known = |doubt: &Doubt| matches!(doubt, Doubt::DirectIsBuffered { .. });
            if !result.doubts.iter().any(known) {
                result.doubts.push(Doubt::DirectIsBuffered {
                    filesystem: filesystem.clone(),
                });
            }
        }
    }

    /// Takes a measurement into the books and tells of it.
    fn book(
        &mut self,
        job: &Job,
        is_fill: bool,
        measurement: Measurement,
        index: usize,
        observer: &mut dyn Observer,
    ) -> Result<(), BenchError> {
        self.bytes_written += measurement.bytes_written;
        if is_fill {
            self.filled_bytes = measurement.covered_bytes.min(self.suite.region_bytes);
        }
        for mut result in measurement.results {
            if is_fill && self.filled_bytes < self.suite.region_bytes {
                result.doubts.push(Doubt::SmallRegion {
                    bytes: self.filled_bytes,
                    wanted: self.suite.region_bytes,
                });
            }
            observer.event(&Event::JobFinished {
                index,
                of: self.suite.jobs.len(),
                result: &result,
            });
            self.results.push(result);
        }
        let job = job.name.clone();
        match measurement.failure {
            None => Ok(()),
            Some(Failure::Interrupted) => Err(BenchError::Interrupted { job }),
            Some(Failure::Target(error)) => Err(BenchError::TargetFailed { job, error }),
            Some(Failure::Engine(error)) => Err(BenchError::Engine { job, error }),
        }
    }

    /// Fills the file before a suite whose first job does not.
    fn fill(&mut self, job: &Job, observer: &mut dyn Observer) -> Result<(), BenchError> {
        if !self.ground.is_own_file() {
            return Ok(());
        }
        observer.event(&Event::Preparing {
            what: "filling the test file",
        });
        let engine_error = |error: String| BenchError::Engine {
            job: job.name.clone(),
            error,
        };
        let failed = |error: String| BenchError::TargetFailed {
            job: job.name.clone(),
            error,
        };
        let mut work = self.plain_work(Arc::clone(&self.ground.file), self.suite.region_bytes);
        work.most_operations = self.suite.region_bytes / u64::from(FILL_BLOCK);
        if work.most_operations == 0 {
            work.block_bytes = 4096;
            work.most_operations = self.suite.region_bytes / 4096;
        }
        let mut running = self.rig.start(&work).map_err(engine_error)?;
        let start_ns = self.rig.now_ns();
        let limit_ns = (FILL_S * 1e9) as u64;
        let mut interrupted = false;
        while !running.poll(Duration::from_millis(50)) {
            interrupted |= self.cancel.load(Ordering::Relaxed);
            let lasted_ns = self.rig.now_ns().saturating_sub(start_ns);
            if interrupted || lasted_ns >= limit_ns {
                running.stop();
            }
            if lasted_ns >= 3 * limit_ns {
                return Err(failed("filling the test file does not end".into()));
            }
        }
        let written = running.harvest().operations() * u64::from(work.block_bytes);
        self.bytes_written += written;
        self.filled_bytes = written;
        if let Some(error) = running.harvest().failure() {
            return Err(failed(error.into()));
        }
        if interrupted {
            return Err(BenchError::Interrupted {
                job: job.name.clone(),
            });
        }
        let most = Duration::from_secs(60);
        self.rig.flush(&work, most, self.cancel).map_err(failed)?;
        Ok(())
    }
}

/// How many operations the job's budget of bytes allows, at least one, after `debt_bytes` of it
/// have been spent otherwise.
fn operations(job: &Job, debt_bytes: u64) -> u64 {
    if job.stop.max_bytes == u64::MAX {
        return u64::MAX;
    }
    let bytes = job.stop.max_bytes.saturating_sub(debt_bytes);
    (bytes / u64::from(job.block_bytes)).max(1)
}

fn biggest_block(job: &Job) -> u64 {
    let beside = job.beside.as_deref().map_or(0, biggest_block);
    u64::from(job.block_bytes).max(beside)
}
