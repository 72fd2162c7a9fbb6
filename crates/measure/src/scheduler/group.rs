//! A job with those beside it: what each means here, all of them at once, and what was written read
//! back.

use std::sync::Arc;

use rubus_vocabulary::result::Access;
use rubus_vocabulary::spec::{Durability, Ends, Job};
use rubus_vocabulary::title::spec_title;

use super::{Scheduler, group};
use crate::course::is_commit;
use crate::error::BenchError;
use crate::event::{Event, Observer};
use crate::measure::measure;
use crate::measurement::{Measurement, Place};
use crate::runner::Task;
use crate::target::CommitFile;

impl Scheduler<'_> {
    /// Runs the job, and those beside it, with the engines that suit the target. Gives the reason,
    /// where it turns out that the job cannot be run here.
    pub(super) fn run_job(
        &mut self,
        job: &Job,
        index: usize,
        fills_region: bool,
        observer: &mut dyn Observer,
    ) -> Result<Result<Measurement, String>, BenchError> {
        let engine_error = |error: String| BenchError::Engine { job: spec_title(job), error };
        let jobs = members(job);
        let mut commit_files = Vec::new();
        for member in &jobs {
            commit_files.push(self.commit_file(member).map_err(engine_error)?);
        }
        let tasks = match self.tasks(job, &jobs, &commit_files, index, fills_region) {
            Ok(tasks) => tasks,
            Err(reason) => return Ok(Err(reason)),
        };
        observer.event(&Event::JobStarted {
            index,
            of: self.suite.jobs.len(),
            job: &self.suite.jobs[index],
            engine: tasks[0].work.engine.name(),
        });
        let place = Place {
            index,
            of: self.suite.jobs.len(),
            session_start_ns: self.start_ns,
            written_before: self.bytes_written,
            left_after_s: self.left_after_s(index),
        };
        self.switch(&tasks, false).map_err(engine_error)?;
        let holes_before = self.hole_bytes();
        for task in &tasks {
            self.rig.settle(&task.work);
        }
        let (cancel, rig) = (self.cancel, &mut *self.rig);
        let (first, beside) = (&tasks[0], &tasks[1..]);
        let mut measurement = measure(rig, first, beside, place, cancel, observer);
        self.check_holes(holes_before, &mut measurement);
        self.read_all_back(&tasks, &mut measurement, place, observer);
        self.switch(&tasks, true).map_err(engine_error)?;
        // What a job through the page cache leaves there is no disturbance from outside.
        let all_direct = tasks.iter().all(|task| task.access == Access::Direct);
        if all_direct && commit_files[0].is_none() {
            self.check_cache(&tasks[0].work, &mut measurement);
        }
        Ok(Ok(measurement))
    }

    /// What each of the jobs of a group means here; the error is why they cannot be run.
    fn tasks<'j>(
        &mut self,
        job: &Job,
        jobs: &'j [Job],
        commit_files: &[Option<CommitFile>],
        index: usize,
        fills_region: bool,
    ) -> Result<Vec<Task<'j>>, String> {
        let delays = !job.beside.is_empty() && job.ends != Ends::WithTheFirst;
        let mut tasks = Vec::new();
        for (place, member) in jobs.iter().enumerate() {
            // The second stream of a job is the bystander's, further ones lie beyond all jobs.
            let stream = match place {
                0 | 1 => (index * 2 + place) as u64,
                _ => (place as u64 - 1) << 32 | index as u64,
            };
            // Every turn has streams of its own, lest a cache in the device knows its places.
            let stream = self.turns << 48 | stream;
            let commit_file = commit_files[place].as_ref();
            let mut task = self.task(member, fills_region, stream, commit_file)?;
            if delays || place > 0 {
                task.work.delay_ns = (member.rest_before_s.max(0.0) * 1e9) as u64;
            }
            tasks.push(task);
        }
        match contradiction(&tasks) {
            Some(reason) => Err(reason),
            None => Ok(tasks),
        }
    }

    /// Reads back what jobs that want it have written, one job after the other.
    fn read_all_back(
        &mut self,
        tasks: &[Task<'_>],
        measurement: &mut Measurement,
        place: Place,
        observer: &mut dyn Observer,
    ) {
        for (number, task) in tasks.iter().enumerate() {
            let shape = task.job.shape.as_deref();
            let is_wanted = shape.is_some_and(|s| s.verify.is_some() && !s.skips_read_back);
            if !is_wanted || !task.work.is_write() || measurement.failure.is_some() {
                continue;
            }
            let general = task.work.general.as_deref();
            let (Some(general), Some(handed_out)) =
                (general, measurement.handed_out.get(number).cloned())
            else {
                continue;
            };
            let job = for_all_its_time(task.job, general.written_bytes(&handed_out));
            let Some(task) = self.read_back(task, &job, &handed_out) else {
                continue;
            };
            observer.event(&Event::Preparing { what: "reading back what was written" });
            self.rig.settle(&task.work);
            let (cancel, rig) = (self.cancel, &mut *self.rig);
            let read = measure(rig, &task, &[], place, cancel, observer);
            measurement.results.extend(read.results);
            measurement.whole.extend(read.whole);
            measurement.failure = read.failure;
        }
    }

    /// The file that the commits of a job are appended to, where it needs one of its own.
    fn commit_file(&self, job: &Job) -> Result<Option<CommitFile>, String> {
        if is_commit(job) && job.durability == Durability::EachAppend {
            self.regions[0].opened.commit_file()
        } else {
            Ok(None)
        }
    }

    /// Turns direct I/O off, or on again, for the jobs that need it.
    fn switch(&mut self, tasks: &[Task<'_>], on: bool) -> Result<(), String> {
        let mut switched = tasks.iter().filter(|task| task.is_switched);
        switched.try_for_each(|task| self.rig.set_direct(&task.work, on))
    }
}

/// The jobs of a group with the times that they may take.
fn members(job: &Job) -> Vec<Job> {
    let mut jobs: Vec<Job> = group(job).cloned().collect();
    for (place, member) in jobs.iter_mut().enumerate() {
        if place > 0 && job.ends == Ends::WithTheFirst {
            member.stop.max_seconds = job.stop.max_seconds;
        }
        if let Some(ramp_s) = member.shape.as_ref().and_then(|shape| shape.ramp_s) {
            // What does not count comes on top.
            member.stop.max_seconds += ramp_s;
        }
    }
    jobs
}

/// The job without an end but that of its work, which is to move `bytes` bytes.
fn for_all_its_time(job: &Job, bytes: u64) -> Job {
    let mut job = job.clone();
    job.beside = Vec::new();
    job.stop.max_seconds = f64::MAX;
    job.stop.min_seconds = f64::MAX;
    job.stop.max_bytes = bytes;
    job
}

/// Why the jobs cannot run at the same time: one descriptor cannot go past the page cache and
/// through it.
fn contradiction(tasks: &[Task<'_>]) -> Option<String> {
    let switched = tasks.iter().filter(|task| task.is_switched);
    let mut files = switched.flat_map(|task| task.work.files());
    let clashes = files.any(|file| {
        let mut others = tasks.iter().filter(|task| !task.is_switched);
        others.any(|task| task.work.files().iter().any(|other| Arc::ptr_eq(other, &file)))
    });
    clashes.then(|| {
        "some of its jobs go past the page cache and others through it, on a device that is open only once"
            .into()
    })
}
