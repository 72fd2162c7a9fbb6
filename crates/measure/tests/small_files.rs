//! Sessions on small files: every phase is measured and nothing is left behind.

use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use rubus_measure::suites::{self, Room, plan_writes};
use rubus_measure::{
    BenchError, Event, Queueing, Session, SessionOutcome, Target, WatchPaths, run,
};
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::spec::{Operation, Suite};

const MIB: u64 = 1 << 20;

/// 1536 files of 4 KiB in passes of 256, each phase for a moment.
fn suite() -> Suite {
    let room = Room { region_bytes: Some(6 * MIB), ..Room::new("here", 1 << 40, true) };
    let suite = suites::by_name("small-files", &room).expect("it is listed");
    let mut suite = suite.expect("there is room");
    for job in &mut suite.jobs {
        job.stop.min_seconds = 0.1;
        job.stop.max_seconds = job.stop.max_seconds.min(5.0);
    }
    suite
}

fn measure(
    path: &Path,
    suite: &Suite,
    cancel: &AtomicBool,
) -> (Result<SessionOutcome, BenchError>, Vec<String>) {
    let mut events = Vec::new();
    let session = Session {
        target: Target::Directory { path: path.to_path_buf() },
        suite,
        watch: WatchPaths::default(),
        cancel,
        queueing: Queueing::USUAL,
        more_files: Vec::new(),
        needs: Vec::new(),
    };
    let outcome = run(session, &mut |event: &Event<'_>| match event {
        Event::JobFinished { result, .. } => events.push(result.job.clone()),
        Event::JobSkipped { job, reason, .. } => events.push(format!("{}: {reason}", job.name)),
        _ => {}
    });
    (outcome, events)
}

#[test]
fn every_phase_is_measured_and_no_file_stays() {
    let here = tempfile::tempdir().expect("a directory");
    File::create(here.path().join("letter")).expect("a file of somebody's");
    let suite = suite();
    let (outcome, events) = measure(here.path(), &suite, &AtomicBool::new(false));
    let outcome = outcome.expect("it can be measured");
    assert_eq!(outcome.ended_by, None);
    let names: Vec<&str> = suite.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(events, names);
    for (job, result) in suite.jobs.iter().zip(&outcome.results) {
        assert_eq!(result.operation, job.operation);
        assert!(result.operations > 0, "{}", result.job);
        assert!(result.iops.value > 0.0, "{}", result.job);
        assert!(result.latency_ns.p50.is_some(), "{}", result.job);
        let moves = job.block_bytes > 0;
        assert_eq!(result.bytes_per_second.value > 0.0, moves, "{}", result.job);
        assert_eq!(result.commit, job.operation == Operation::CreateFileDurably);
        let engine = ["positional", "threads"][usize::from(job.queue_depth > 1)];
        assert_eq!(result.engine, engine);
    }
    // Names and attributes were in memory, and that is said.
    let warm = |doubt: &Doubt| matches!(doubt, Doubt::StillInMemory { .. });
    assert!(outcome.results[1].doubts.iter().any(warm));
    assert!(outcome.bytes_written <= plan_writes(&suite, true) + MIB);
    assert_eq!(fs::read_dir(here.path()).expect("it").count(), 1);
}

#[test]
fn a_session_that_is_stopped_leaves_nothing() {
    let here = tempfile::tempdir().expect("a directory");
    let suite = suite();
    let (outcome, _) = measure(here.path(), &suite, &AtomicBool::new(true));
    let outcome = outcome.expect("it began");
    assert!(matches!(outcome.ended_by, Some(BenchError::Interrupted { .. })));
    assert_eq!(fs::read_dir(here.path()).expect("it").count(), 0);
}

#[test]
fn a_file_is_no_place_for_a_tree() {
    let suite = suite();
    let cancel = AtomicBool::new(false);
    let session = Session {
        target: Target::Ram { size_bytes: MIB },
        suite: &suite,
        watch: WatchPaths::default(),
        cancel: &cancel,
        queueing: Queueing::USUAL,
        more_files: Vec::new(),
        needs: Vec::new(),
    };
    let error = run(session, &mut |_: &Event<'_>| {}).expect_err("no directory");
    assert!(error.to_string().contains("name one on the disk"), "{error}");
}
