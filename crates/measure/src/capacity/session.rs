//! A session that finds out how big a target is: writing, reading back, judging.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::marked_blocks::{Sample, nonce};
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::finding::Finding;
use rubus_vocabulary::result::{Access, JobResult, TargetKind};
use rubus_vocabulary::spec::{Direction, Job, Pattern, Suite};

use crate::capacity::files::Files;
use crate::capacity::rig::StampRig;
use crate::capacity::worker::Task as WorkerTask;
use crate::capacity::{Ledger, Places};
use crate::error::BenchError;
use crate::event::{Event, Observer};
use crate::frame::{
    Done, Frame, Jobs, Measured, Session, SessionOutcome, measured_target, run_jobs, watch_of,
};
use crate::lanes::Queueing;
use crate::live::LiveRig;
use crate::measure::measure;
use crate::measurement::{Measurement, Place};
use crate::passes::{Kind, Pass, join};
use crate::runner::Task;
use crate::suites::{margin, only_reads};
use crate::target::Opened;
use crate::work::{Engine, Work};
use rubus_host::ticks::now_ns;

/// A long job is measured in pieces of this length, in seconds, so that what is remembered of its
/// course does not grow without bound.
const PASS_S: f64 = 600.0;
/// Share of the first file in the page cache from which reading back proves little.
const CACHED: f64 = 0.05;

/// Runs a suite of stamped blocks.
///
/// # Errors
/// As for [`crate::run`].
pub(crate) fn run(
    session: Session<'_>,
    observer: &mut dyn Observer,
) -> Result<SessionOutcome, BenchError> {
    let start_ns = now_ns();
    let suite =
        if session.target.may_write() { session.suite.clone() } else { only_reads(session.suite) };
    let path = session.target.path().display().to_string();
    let opened = Opened::new(session.target)?;
    if matches!(opened.kind, TargetKind::Ram | TargetKind::Network) {
        return Err(BenchError::Target {
            path,
            reason:
                "its size is tested on the disk itself; name a directory, a file or a block device"
                    .into(),
        });
    }
    let announced_bytes = match opened.free_bytes() {
        Some(free) if opened.is_own_file() => free,
        _ => opened.size_bytes,
    };
    let watch = watch_of(session.watch, &opened);
    let target = measured_target(&opened, &suite);
    let kind = opened.kind;
    let (frame, watcher) = Frame::begin(start_ns, target, watch, observer);
    let live = LiveRig::new(watcher, kind, Queueing::THREADS);
    let reserve_bytes = if opened.is_own_file() {
        // Half of the margin may go to others before it is enough.
        margin(announced_bytes) / 2
    } else {
        0
    };
    let files = Arc::new(Files::new(opened));
    let mut capacity_session = CapacitySession {
        rig: StampRig::new(live, Arc::clone(&files)),
        files,
        ledger: Arc::default(),
        suite: &suite,
        cancel: session.cancel,
        start_ns,
        reserve_bytes,
        results: Vec::new(),
    };
    let ended_by = run_jobs(&suite, session.cancel, &mut capacity_session, observer).err();
    let checked = capacity_session.ledger.checked();
    let scatters = |job: &Job| job.pattern == Pattern::Random;
    let is_sample = suite.jobs.iter().any(scatters);
    let findings = if checked.is_empty() {
        Vec::new()
    } else {
        vec![Finding::Capacity(checked.finding(announced_bytes, is_sample))]
    };
    let done = Done {
        bytes_written: capacity_session.written_bytes(),
        results: capacity_session.results,
        findings,
        region_bytes: suite.region_bytes,
        ended_by,
    };
    Ok(frame.end(done, None))
}

struct CapacitySession<'a> {
    rig: StampRig,
    files: Arc<Files>,
    ledger: Arc<Ledger>,
    suite: &'a Suite,
    cancel: &'a AtomicBool,
    start_ns: u64,
    reserve_bytes: u64,
    results: Vec<JobResult>,
}

impl Jobs for CapacitySession<'_> {
    fn run(&mut self, index: usize, observer: &mut dyn Observer) -> Result<Measured, BenchError> {
        let job = &self.suite.jobs[index];
        let mut doubts = self.files.opened().doubts.clone();
        if job.direction == Direction::Read {
            doubts.extend(self.forget());
            doubts.extend(self.shortfall());
        }
        observer.event(&Event::JobStarted {
            index,
            of: self.suite.jobs.len(),
            job,
            engine: Engine::Positional.name(),
        });
        Ok(Ok(self.in_passes(job, index, doubts, observer)))
    }

    fn results(&mut self) -> &mut Vec<JobResult> {
        &mut self.results
    }
}

impl CapacitySession<'_> {
    fn written_bytes(&self) -> u64 {
        self.ledger.written_bytes.load(Ordering::Relaxed) + self.files.opened().probe_bytes
    }

    /// What is in memory cannot tell what is on the disk.
    fn forget(&self) -> Option<Doubt> {
        let opened = self.files.opened();
        if opened.kind == TargetKind::Device {
            return None;
        }
        let share = self.files.forget().filter(|share| *share > CACHED)?;
        Some(Doubt::StillInMemory { what: format!("{:.0} % of what was written", share * 100.0) })
    }

    /// Less was written than planned.
    fn shortfall(&self) -> Option<Doubt> {
        let (end, _) = self.ledger.ended()?;
        Some(Doubt::SmallRegion { bytes: end, wanted: self.suite.region_bytes })
    }

    /// Runs a job piece by piece until it has been everywhere.
    fn in_passes(
        &mut self,
        job: &Job,
        index: usize,
        mut doubts: Vec<Doubt>,
        observer: &mut dyn Observer,
    ) -> Measurement {
        let begun_ns = now_ns();
        let places = self.places(job);
        self.ledger.rewind();
        let mut passes = Vec::new();
        loop {
            let pass_ns = now_ns();
            let started_s = (pass_ns - begun_ns) as f64 / 1e9;
            let mut piece = job.clone();
            // Precision is no reason to stop: every block is to be seen.
            piece.stop.min_bytes = u64::MAX;
            piece.stop.max_bytes = u64::MAX;
            piece.stop.max_seconds = PASS_S.min(job.stop.max_seconds - started_s);
            let task = WorkerTask {
                files: Arc::clone(&self.files),
                ledger: Arc::clone(&self.ledger),
                places,
                nonce: nonce(self.suite.seed),
                writes: job.direction == Direction::Write,
                reserve_bytes: self.reserve_bytes,
            };
            self.rig.set_task(task);
            let doubts = std::mem::take(&mut doubts);
            let measurement = self.one(&piece, index, doubts, places, observer);
            let failed = measurement.failure.is_some();
            passes.push(Pass {
                started_s,
                lasted_s: (now_ns() - pass_ns) as f64 / 1e9,
                measurement,
            });
            let elapsed_s = (now_ns() - begun_ns) as f64 / 1e9;
            let is_done = self.ledger.taken() >= places.count() || self.writing_ended(job);
            if failed || is_done || elapsed_s + 1.0 > job.stop.max_seconds {
                return join(job, Kind::Pieces, passes);
            }
        }
    }

    fn writing_ended(&self, job: &Job) -> bool {
        job.direction == Direction::Write && self.ledger.ended().is_some()
    }

    fn one(
        &mut self,
        job: &Job,
        index: usize,
        doubts: Vec<Doubt>,
        places: Places,
        observer: &mut dyn Observer,
    ) -> Measurement {
        let opened = self.files.opened();
        let work = Work {
            file: Arc::clone(&opened.file),
            remote: None,
            engine: Engine::Positional,
            direction: job.direction,
            pattern: job.pattern,
            block_bytes: job.block_bytes,
            queue_depth: 1,
            durability: job.durability,
            region_bytes: self.suite.region_bytes,
            append_from: None,
            settles: false,
            content: self.suite.content,
            seed: self.suite.seed,
            max_operations: places.count(),
            warm_up_ns: 0,
            warm_up_operations: 0,
            is_buffered: opened.access == Access::Buffered,
            one_at_a_time: false,
            is_mapped: false,
            trial_from: None,
            delay_ns: 0,
            general: None,
        };
        let task = Task {
            job,
            work,
            access: opened.access,
            title: None,
            unusual_access: None,
            is_switched: false,
            on: None,
            doubts,
        };
        let left = self.suite.jobs.iter().skip(index + 1);
        let place = Place {
            index,
            of: self.suite.jobs.len(),
            session_start_ns: self.start_ns,
            written_before: self.written_bytes(),
            left_after_s: left.map(|job| job.stop.min_seconds).sum(),
        };
        measure(&mut self.rig, &task, &[], place, self.cancel, observer)
    }

    /// Where a job's operations go. What was not written is not read.
    fn places(&self, job: &Job) -> Places {
        let (offset, span) = match &job.shape {
            Some(shape) => (shape.offset_bytes, shape.span_bytes),
            None => (0, None),
        };
        let mut end = offset + span.unwrap_or(self.suite.region_bytes - offset);
        let run_bytes = Some(offset / 2).filter(|run| *run > 0);
        if let (Pattern::Random, Some(sample)) = (job.pattern, Sample::new(end, run_bytes)) {
            return Places::Singles(sample, self.suite.seed);
        }
        if job.direction == Direction::Read {
            end = end.min(self.ledger.ended().map_or(u64::MAX, |(end, _)| end));
        }
        Places::Run(offset, end)
    }
}
