//! A session: a suite on one target of this machine, from opening it to the last result.

use std::sync::atomic::AtomicBool;

use rubus_core::doubt::Doubt;
use rubus_core::result::{Calibration, JobResult, TargetFacts};
use rubus_core::spec::{Content, Durability, Suite};

use crate::calibrate;
use crate::clock::now_ns;
use crate::conductor::Conductor;
use crate::error::BenchError;
use crate::event::{Event, Observer};
use crate::filesystem::Filesystem;
use crate::live::LiveRig;
use crate::suites::only_reads;
use crate::target::{Opened, Target};
use crate::watch::{WatchPaths, Watcher};

/// What to measure, on what, and how it can be stopped.
#[derive(Debug)]
pub struct Session<'a> {
    /// On what.
    pub target: Target,
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
    let start_ns = now_ns();
    let suite = if session.target.may_write() {
        session.suite.clone()
    } else {
        only_reads(session.suite)
    };
    let opened = Opened::new(session.target)?;
    check_room(&opened, &suite)?;
    let mut watch = session.watch;
    if opened
        .filesystem
        .as_ref()
        .is_some_and(Filesystem::has_no_device)
    {
        // What another device does meanwhile is none of our business.
        watch.device = None;
    }
    let facts = target_facts(&opened, &suite, watch.device.clone());
    let watcher = Watcher::start(watch);
    observer.event(&Event::Preparing {
        what: "measuring the instrument",
    });
    let calibration = calibrate::calibrate().ok();
    let mut doubts = watcher.blind_spots();
    let mut rig = LiveRig::new(watcher, opened.kind, session.may_use_ring);
    let mut conductor = Conductor::new(&mut rig, &suite, opened, session.cancel, start_ns);
    let ended_by = conductor.run_all(observer);
    if matches!(ended_by, Some(BenchError::Interrupted { .. })) {
        doubts.push(Doubt::Interrupted);
    }
    let region_bytes = conductor.region_bytes();
    let (results, bytes_written) = conductor.into_results();
    Ok(SessionOutcome {
        target: TargetFacts {
            region_bytes,
            ..facts
        },
        calibration,
        results,
        doubts,
        bytes_written,
        elapsed_s: (now_ns() - start_ns) as f64 / 1e9,
        ended_by,
    })
}

fn target_facts(opened: &Opened, suite: &Suite, device: Option<String>) -> TargetFacts {
    let absolute = std::path::absolute(&opened.path);
    let path = absolute.as_ref().unwrap_or(&opened.path);
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
    }
}

fn content_name(content: Content) -> String {
    match content {
        Content::Incompressible => "incompressible".into(),
        Content::Compressible(percent) => format!("compressible to about {percent} %"),
        Content::Zeros => "zeros".into(),
    }
}

/// Whether there is something to do, and room for it.
fn check_room(opened: &Opened, suite: &Suite) -> Result<(), BenchError> {
    let path = opened.path.display().to_string();
    if suite.jobs.is_empty() {
        return Err(BenchError::NothingToDo {
            path,
            reason: "every job of the suite writes, and the contents of this target must stay"
                .into(),
        });
    }
    if !opened.is_own_file() {
        let least_bytes = suite
            .jobs
            .iter()
            .map(|job| u64::from(job.block_bytes))
            .max();
        let needed_bytes = least_bytes.unwrap_or(0);
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
    let needed_bytes = suite.region_bytes.saturating_add(appended_bytes);
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
