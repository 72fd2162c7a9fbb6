//! A session: a suite on one target of this machine, from opening it to the last result.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use rubus_core::doubt::Doubt;
use rubus_core::finding::Finding;
use rubus_core::result::{Calibration, JobResult, TargetFacts, TargetKind};
use rubus_core::spec::{Content, Direction, Durability, FileNeed, Operation, Suite};

use crate::calibrate;
use crate::clock::now_ns;
use crate::conductor::{Conductor, grounds_of, group};
use crate::error::BenchError;
use crate::event::{Event, Observer};
use crate::filesystem::Filesystem;
use crate::ground::Ground;
use crate::live::{LiveRig, RemoteRig};
use crate::loop_device;
use crate::rig::Rig;
use crate::suites::only_reads;
use crate::target::{Opened, Target};
use crate::watch::{WatchPaths, Watcher};

/// What to measure, on what, and how it can be stopped.
#[derive(Debug)]
pub struct Session<'a> {
    /// On what.
    pub target: Target,
    /// Further files, for suites whose jobs work on several: the target is number 0 of
    /// [`Shape::file`](rubus_core::spec::Shape::file), these are 1, 2 and so on. Each nameless file
    /// of our own is a [`Target::Directory`] of its own.
    pub more_files: Vec<Target>,
    /// What has to be there before the first job, by the numbers of the files; empty: the suite's
    /// region in the target.
    pub needs: Vec<FileNeed>,
    /// What.
    pub suite: &'a Suite,
    /// Where to see what disturbs.
    pub watch: WatchPaths,
    /// Set it to end the session: within an operation or a tenth of a second.
    pub cancel: &'a AtomicBool,
    /// Whether io_uring may be used for deep queues; if not, threads are.
    pub may_use_ring: bool,
}

/// What a session gave.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionOutcome {
    /// What was measured on, as it turned out to be.
    pub target: TargetFacts,
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

/// Runs the session on this machine.
///
/// # Errors
/// [`BenchError`] when nothing could be measured at all: the target cannot be opened, is too
/// small, or the suite has no job for it. What goes wrong later is in the outcome.
pub fn run(
    session: Session<'_>,
    observer: &mut dyn Observer,
) -> Result<SessionOutcome, BenchError> {
    if session
        .suite
        .jobs
        .iter()
        .any(|job| job.operation.is_of_file())
    {
        return crate::tree::session::run(session, observer);
    }
    if session
        .suite
        .jobs
        .iter()
        .any(|job| job.operation == Operation::Stamp)
    {
        return crate::capacity::session::run(session, observer);
    }
    let start_ns = now_ns();
    let targets = std::iter::once(&session.target).chain(&session.more_files);
    let may_write: Vec<bool> = targets.map(Target::may_write).collect();
    let suite = match harms(session.suite, &may_write) {
        false => session.suite.clone(),
        true => only_reads(session.suite),
    };
    let opened = Opened::new(session.target)?;
    check_room(&opened, &suite, session.needs.first())?;
    let mut more = Vec::new();
    for (number, target) in session.more_files.into_iter().enumerate() {
        let opened = Opened::new(target)?;
        check_room(&opened, &suite, session.needs.get(number + 1))?;
        more.push(opened);
    }
    let watch = watch_of(session.watch, &opened);
    let facts = target_facts(&opened, &suite, watch.device.clone());
    let through_cache = watch
        .device
        .as_deref()
        .and_then(|device| loop_device::through_cache(Path::new("/sys"), device));
    let far_end = watch.far_end.clone();
    let watcher = Watcher::start(watch);
    observer.event(&Event::Preparing {
        what: "measuring the instrument",
    });
    let calibration = calibrate::calibrate().ok();
    let mut doubts = watcher.blind_spots(opened.kind);
    doubts.extend(through_cache.map(|device| Doubt::LoopThroughCache { device }));
    let mut rig = rig_for(&opened, watcher, session.may_use_ring);
    let opened = std::iter::once(opened).chain(more);
    let grounds = opened
        .enumerate()
        .map(|(number, opened)| match session.needs.get(number) {
            Some(need) => Ground::of_several(opened, need),
            None => Ground::single(opened, suite.region_bytes),
        });
    let mut conductor = Conductor::new(
        &mut *rig,
        &suite,
        grounds.collect(),
        session.cancel,
        start_ns,
    );
    let ended_by = conductor.run_all(observer);
    if matches!(ended_by, Some(BenchError::Interrupted { .. })) {
        doubts.push(Doubt::Interrupted);
    }
    doubts.extend(far_end.and_then(|far_end| far_end.trouble()).map(|why| {
        let what = format!("processor time of the server ({why})");
        Doubt::NotWatched { what }
    }));
    let region_bytes = conductor.region_bytes();
    let (mut results, bytes_written) = conductor.into_results();
    if facts.kind == TargetKind::Ram {
        // That the processor is the limit is what this measures.
        let is_news = |doubt: &Doubt| !matches!(doubt, Doubt::CpuBound { .. });
        results
            .iter_mut()
            .for_each(|result| result.doubts.retain(is_news));
    }
    Ok(SessionOutcome {
        target: TargetFacts {
            region_bytes,
            ..facts
        },
        calibration,
        results,
        findings: Vec::new(),
        doubts,
        bytes_written,
        elapsed_s: (now_ns() - start_ns) as f64 / 1e9,
        ended_by,
    })
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
pub(crate) fn rig_for(opened: &Opened, watcher: Watcher, may_use_ring: bool) -> Box<dyn Rig> {
    let live = LiveRig::new(watcher, opened.kind, may_use_ring);
    match opened.remote.clone() {
        Some(remote) => Box::new(RemoteRig::new(live, remote)),
        None => Box::new(live),
    }
}

/// Whether a job writes to a file whose contents must stay.
fn harms(suite: &Suite, may_write: &[bool]) -> bool {
    let mut members = suite.jobs.iter().flat_map(group);
    members.any(|job| {
        let mixes = job.shape.as_ref().and_then(|shape| shape.read_percent);
        let writes = job.direction == Direction::Write || mixes.is_some();
        let mut files = grounds_of(job).into_iter();
        writes && files.any(|number| may_write.get(number) == Some(&false))
    })
}

pub(crate) fn target_facts(opened: &Opened, suite: &Suite, device: Option<String>) -> TargetFacts {
    let absolute = std::path::absolute(&opened.path).ok();
    let path = absolute
        .filter(|_| !matches!(opened.kind, TargetKind::Ram | TargetKind::Network))
        .unwrap_or_else(|| opened.path.clone());
    TargetFacts {
        named: opened.path.display().to_string(),
        kind: opened.kind,
        path: path.display().to_string(),
        filesystem: opened
            .filesystem
            .as_ref()
            .map(|filesystem| filesystem.name.clone()),
        device,
        region_bytes: suite.region_bytes,
        access: opened.access,
        content: content_name(suite.content),
        network: opened.remote.as_ref().map(|remote| remote.facts().clone()),
        link: None,
    }
}

/// What is written, in words for a result.
pub(crate) fn content_name(content: Content) -> String {
    match content {
        Content::Incompressible => "incompressible".into(),
        Content::Compressible(percent) => format!("compressible to about {percent} %"),
        Content::Zeros => "zeros".into(),
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
    let appended = suite
        .jobs
        .iter()
        .filter(|job| job.durability == Durability::EachAppend);
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
