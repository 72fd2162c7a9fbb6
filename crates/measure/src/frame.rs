//! The frame of a session: what is around its jobs, and the order in which they run, whatever they do.
//!
//! A kind of session (blocks on targets, small files, stamped blocks, two targets in turns) brings what its jobs
//! need as [`Jobs`] and runs within one [`Frame`]: the watcher, the calibration, the doubts, Ctrl-C, and the outcome.

use std::sync::atomic::{AtomicBool, Ordering};

use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::finding::Finding;
use rubus_vocabulary::result::{Access, Calibration, JobResult, NetworkFacts, TargetKind};
use rubus_vocabulary::spec::{Durability, FileNeed, Job, Suite};
use rubus_vocabulary::title::spec_title;

use crate::calibrate;
use crate::error::BenchError;
use crate::event::{Event, Observer};
use crate::filesystem::Filesystem;
use crate::lanes::Queueing;
use crate::live::{LiveRig, RemoteRig};
use crate::measurement::Measurement;
use crate::outcome::content_name;
use crate::rig::Rig;
use crate::target::{Opened, Target};
use crate::watch::{WatchPaths, Watcher};
use rubus_host::ticks::now_ns;

/// What to measure, on what, and how it can be stopped.
#[derive(Debug)]
pub struct Session<'a> {
    /// What to measure.
    pub target: Target,
    /// Further files, for suites whose jobs work on several: the target is number 0 of
    /// [`Shape::file`](rubus_vocabulary::spec::Shape::file), these are 1, 2 and so on. Each nameless file
    /// of our own is a [`Target::Directory`] of its own.
    pub more_files: Vec<Target>,
    /// What has to be there before the first job, by the numbers of the files; empty: the suite's
    /// region in the target.
    pub needs: Vec<FileNeed>,
    /// The jobs to run.
    pub suite: &'a Suite,
    /// Where to see what disturbs.
    pub watch: WatchPaths,
    /// Set it to end the session: within an operation or a tenth of a second.
    pub cancel: &'a AtomicBool,
    /// How deep queues are kept full.
    pub queueing: Queueing,
}

/// What a session measured on, as far as it sees it: who opened the target knows how the user named it, which device it
/// is on, and over which link.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredTarget {
    /// `directory`, `file`, `device` and so on.
    pub kind: TargetKind,
    /// Absolute path of the directory, file or device node; the address of a network disk.
    pub path: String,
    /// Type of the filesystem, by its magic number; nothing for a device.
    pub filesystem: Option<String>,
    /// Bytes of the region that was measured.
    pub region_bytes: u64,
    /// How the target was opened.
    pub access: Access,
    /// What was written ("incompressible", …).
    pub content: String,
    /// How a network disk was reached and what its server offers.
    pub network: Option<NetworkFacts>,
}

/// What a session gave.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionOutcome {
    /// What was measured on, as it turned out to be.
    pub target: MeasuredTarget,
    /// What the measuring itself costs here.
    pub calibration: Option<Calibration>,
    /// The results, in the order in which the jobs ran.
    pub results: Vec<JobResult>,
    /// What was found out that is in no single result; most findings are computed from the results
    /// later.
    pub findings: Vec<Finding>,
    /// Doubts about the session as a whole.
    pub doubts: Vec<Doubt>,
    /// Bytes that were written to the target, preparation included.
    pub bytes_written: u64,
    /// How long everything took, in seconds.
    pub elapsed_s: f64,
    /// What ended the session before its last job, if anything did.
    pub ended_by: Option<BenchError>,
}

/// What a session begins with, until its outcome.
pub(crate) struct Frame {
    start_ns: u64,
    target: MeasuredTarget,
    calibration: Option<Calibration>,
    doubts: Vec<Doubt>,
}

/// What the jobs of a session came to.
pub(crate) struct Done {
    pub(crate) results: Vec<JobResult>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) bytes_written: u64,
    pub(crate) region_bytes: u64,
    pub(crate) ended_by: Option<BenchError>,
}

impl Frame {
    /// Begins: starts to watch, and measures what the measuring itself costs.
    pub(crate) fn begin(
        start_ns: u64,
        target: MeasuredTarget,
        watch: WatchPaths,
        observer: &mut dyn Observer,
    ) -> (Self, Watcher) {
        let watcher = Watcher::start(watch);
        let calibration = calibration(observer);
        (Frame::watched(start_ns, target, &watcher, calibration), watcher)
    }

    /// With a watcher that is at work, and a calibration that several sessions share.
    pub(crate) fn watched(
        start_ns: u64,
        target: MeasuredTarget,
        watcher: &Watcher,
        calibration: Option<Calibration>,
    ) -> Self {
        Frame { start_ns, calibration, doubts: watcher.blind_spots(target.kind), target }
    }

    /// Adds a doubt about the session as a whole.
    pub(crate) fn doubt(&mut self, doubts: impl IntoIterator<Item = Doubt>) {
        self.doubts.extend(doubts);
    }

    /// The outcome, with `doubts` that only the end has shown.
    pub(crate) fn end(
        mut self,
        mut done: Done,
        doubts: impl IntoIterator<Item = Doubt>,
    ) -> SessionOutcome {
        if matches!(done.ended_by, Some(BenchError::Interrupted { .. })) {
            self.doubts.push(Doubt::Interrupted);
        }
        self.doubts.extend(doubts);
        if self.target.kind == TargetKind::Ram {
            // That the processor is the limit is what this measures.
            let is_news = |doubt: &Doubt| !matches!(doubt, Doubt::CpuBound { .. });
            for result in &mut done.results {
                result.doubts.retain(is_news);
            }
        }
        SessionOutcome {
            target: MeasuredTarget { region_bytes: done.region_bytes, ..self.target },
            calibration: self.calibration,
            results: done.results,
            findings: done.findings,
            doubts: self.doubts,
            bytes_written: done.bytes_written,
            elapsed_s: (now_ns() - self.start_ns) as f64 / 1e9,
            ended_by: done.ended_by,
        }
    }
}

/// What the measuring itself costs, where it can be measured.
pub(crate) fn calibration(observer: &mut dyn Observer) -> Option<Calibration> {
    observer.event(&Event::Preparing { what: "measuring the instrument" });
    calibrate::calibrate().ok()
}

/// What a job gave, or why it cannot be run here.
pub(crate) type Measured = Result<Measurement, String>;

/// The jobs of a kind of session: how one is run, and where its results go.
pub(crate) trait Jobs {
    /// Runs a job of the suite, whose start it tells of.
    ///
    /// # Errors
    /// When the target fails or the session is stopped.
    fn run(&mut self, index: usize, observer: &mut dyn Observer) -> Result<Measured, BenchError>;

    /// The results so far.
    fn results(&mut self) -> &mut Vec<JobResult>;
}

/// Runs the jobs of a suite one after the other, until one ends the session or the user does.
///
/// # Errors
/// The error that ended the session early.
pub(crate) fn run_jobs(
    suite: &Suite,
    cancel: &AtomicBool,
    jobs: &mut dyn Jobs,
    observer: &mut dyn Observer,
) -> Result<(), BenchError> {
    for (index, job) in suite.jobs.iter().enumerate() {
        must_go_on(cancel, job)?;
        let place = (index, suite.jobs.len());
        match jobs.run(index, observer)? {
            Ok(measurement) => book(job, place, measurement, jobs.results(), observer)?,
            Err(reason) => observer.event(&Event::JobSkipped { index, of: place.1, job, reason }),
        }
    }
    Ok(())
}

/// Ends the session before a job when the user has stopped it.
///
/// # Errors
/// [`BenchError::Interrupted`] if the user has stopped the session.
pub(crate) fn must_go_on(cancel: &AtomicBool, job: &Job) -> Result<(), BenchError> {
    if cancel.load(Ordering::Relaxed) {
        Err(BenchError::Interrupted { job: spec_title(job) })
    } else {
        Ok(())
    }
}

/// Takes the results of a job, whose number is the first of `place` and the number of jobs the second, and tells of
/// each.
///
/// # Errors
/// What ended the session, if the job did.
pub(crate) fn book(
    job: &Job,
    (index, of): (usize, usize),
    measurement: Measurement,
    results: &mut Vec<JobResult>,
    observer: &mut dyn Observer,
) -> Result<(), BenchError> {
    for result in measurement.results {
        let told = &result;
        observer.event(&Event::JobFinished { index, of, result: told });
        results.push(result);
    }
    match measurement.failure {
        None => Ok(()),
        Some(failure) => Err(failure.of(&spec_title(job))),
    }
}

/// What to watch while this target is measured.
pub(crate) fn watch_of(mut watch: WatchPaths, opened: &Opened) -> WatchPaths {
    let filesystem = opened.filesystem.as_ref();
    if filesystem.is_some_and(Filesystem::has_no_device) {
        // What another device does meanwhile is none of our business.
        watch.device = None;
    }
    watch
}

/// What moves the bytes of this target.
pub(crate) fn rig_for(opened: &Opened, watcher: Watcher, queueing: Queueing) -> Box<dyn Rig> {
    let live = LiveRig::new(watcher, opened.kind, queueing);
    match opened.remote.clone() {
        Some(remote) => Box::new(RemoteRig::new(live, remote)),
        None => Box::new(live),
    }
}

pub(crate) fn measured_target(opened: &Opened, suite: &Suite) -> MeasuredTarget {
    let absolute = std::path::absolute(&opened.path).ok();
    let path = absolute
        .filter(|_| !matches!(opened.kind, TargetKind::Ram | TargetKind::Network))
        .unwrap_or_else(|| opened.path.clone());
    MeasuredTarget {
        kind: opened.kind,
        path: path.display().to_string(),
        filesystem: opened.filesystem.as_ref().map(|filesystem| filesystem.name.clone()),
        region_bytes: suite.region_bytes,
        access: opened.access,
        content: content_name(suite.content),
        network: opened.remote.as_ref().map(|remote| remote.facts().clone()),
    }
}

/// Why a network disk can do no job of the suite; nothing when it can do one.
fn beyond_the_network(opened: &Opened, suite: &Suite) -> Option<String> {
    let remote = opened.remote.as_ref()?;
    let reasons = suite.jobs.iter().map(|job| remote.why_not(job));
    let reasons: Option<Vec<String>> = reasons.collect();
    reasons?.into_iter().next()
}

/// Whether there is something to do, and room for it.
pub(crate) fn check_room(
    opened: &Opened,
    suite: &Suite,
    need: Option<&FileNeed>,
) -> Result<(), BenchError> {
    let path = opened.path.display().to_string();
    if suite.jobs.is_empty() {
        return Err(BenchError::NothingToDo {
            path,
            reason: "every job of the suite writes, and the contents of this target must stay"
                .into(),
        });
    }
    if let Some(reason) = beyond_the_network(opened, suite) {
        return Err(BenchError::NothingToDo {
            path,
            reason: format!(
                "{reason}; choose another suite (`rubus suites` lists them), or attach the disk and name a directory on it"
            ),
        });
    }
    if !opened.is_own_file() {
        let blocks = suite.jobs.iter().map(|job| u64::from(job.block_bytes));
        let needed_bytes = match need {
            Some(need) => need.region_bytes,
            None => blocks.max().unwrap_or(0),
        };
        if opened.size_bytes < needed_bytes {
            return Err(BenchError::NoSpace {
                path,
                what: "of data",
                available_bytes: opened.size_bytes,
                needed_bytes,
                remedy: "name a larger target, without holes",
            });
        }
        return Ok(());
    }
    let appended = suite.jobs.iter().filter(|job| job.durability == Durability::EachAppend);
    let appended_bytes = appended.map(|job| job.stop.max_bytes).max().unwrap_or(0);
    let region_bytes = need.map_or(suite.region_bytes, |need| need.region_bytes);
    let needed_bytes = region_bytes.saturating_add(appended_bytes);
    match opened.free_bytes() {
        Some(available_bytes) if available_bytes < needed_bytes => Err(BenchError::NoSpace {
            path,
            what: "of free space",
            available_bytes,
            needed_bytes,
            remedy: "free some space or name another directory",
        }),
        _ => Ok(()),
    }
}
