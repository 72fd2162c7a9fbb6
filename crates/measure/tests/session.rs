//! Whole sessions on this machine's own files, small enough to take a few seconds.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use rubus_fixtures::skipped;
use rubus_measure::suites::{self, plan_writes};
use rubus_measure::{
    BenchError, Event, Queueing, Session, SessionOutcome, Target, WatchPaths, run,
};
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::result::{Access, Outcome, TargetKind};
use rubus_vocabulary::spec::{Direction, Job, Suite};

const MIB: u64 = 1 << 20;

/// The jobs of `quick` on a region of 8 MiB, each for a fraction of a second.
fn small_suite() -> Suite {
    let mut suite = suites::quick("here", 1 << 40, true).expect("there is room");
    suite.region_bytes = 8 * MIB;
    for job in &mut suite.jobs {
        shorten(job);
        job.beside.iter_mut().for_each(shorten);
    }
    suite
}

fn shorten(job: &mut Job) {
    job.stop.min_seconds = 0.1;
    job.stop.max_seconds = 0.4;
    job.stop.min_bytes = 0;
    if job.direction == Direction::Write {
        job.stop.max_bytes = 8 * MIB;
    }
}

fn measure(
    target: Target,
    suite: &Suite,
    queueing: Queueing,
) -> (Result<SessionOutcome, BenchError>, Vec<String>) {
    let cancel = AtomicBool::new(false);
    let mut events = Vec::new();
    let session = Session {
        target,
        suite,
        watch: WatchPaths { device: Some("a-disk".into()), ..WatchPaths::default() },
        cancel: &cancel,
        queueing,
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

fn directory(path: &Path) -> Target {
    Target::Directory { path: path.to_path_buf() }
}

fn is_empty(path: &Path) -> bool {
    fs::read_dir(path).expect("the directory").next().is_none()
}

#[test]
fn a_directory_is_measured_and_left_as_it_was() {
    let here = tempfile::tempdir().expect("a directory");
    let suite = small_suite();
    for may_use_ring in [true, false] {
        let (outcome, events) =
            measure(directory(here.path()), &suite, Queueing { may_use_ring, ..Queueing::USUAL });
        let outcome = outcome.expect("it can be measured");
        assert_eq!(outcome.ended_by, None);
        assert_eq!(outcome.results.len(), 10, "{events:?}");
        assert!(is_empty(here.path()));
        assert!(outcome.bytes_written <= plan_writes(&suite, true));
        assert!(outcome.bytes_written >= 8 * MIB);
        assert_eq!(outcome.target.kind, TargetKind::Directory);
        assert_eq!(outcome.target.region_bytes, 8 * MIB);
        for result in &outcome.results {
            assert!(result.operations > 0, "{}", result.job);
            assert!(result.iops.value > 0.0, "{}", result.job);
            let bytes = result.iops.value * f64::from(result.block_bytes);
            assert!((bytes / result.bytes_per_second.value - 1.0).abs() < 0.01);
            assert!(result.latency_ns.p50.is_some() && result.latency_ns.max.is_some());
            assert!(result.cpu_ns_per_io > 0.0);
            let engine = result.engine.as_str();
            match result.queue_depth {
                1 => assert_eq!(engine, "positional"),
                _ if may_use_ring => assert!(engine == "ring" || engine == "threads"),
                _ => assert_eq!(engine, "threads"),
            }
            let no_ring = |doubt: &Doubt| matches!(doubt, Doubt::NoRing { .. });
            assert_eq!(result.doubts.iter().any(no_ring), engine == "threads");
        }
        let calibration = outcome.calibration.expect("there is /dev/null");
        assert!(calibration.clock_ns > 0.0 && calibration.cpu_ns_per_io_depth_1 > 0.0);
    }
}

#[test]
fn deep_queues_are_shared_by_the_lanes_that_are_asked_for() {
    let here = tempfile::tempdir().expect("a directory");
    let lanes = Queueing { lanes: 3, ..Queueing::USUAL };
    let (outcome, events) = measure(directory(here.path()), &small_suite(), lanes);
    let outcome = outcome.expect("it can be measured");
    assert_eq!(outcome.ended_by, None);
    assert_eq!(outcome.results.len(), 10, "{events:?}");
    for result in &outcome.results {
        let expected = (result.engine == "ring").then_some(3);
        assert_eq!(result.lanes, expected, "{}", result.job);
        assert!(result.operations > 0, "{}", result.job);
    }
}

#[test]
fn one_at_a_time_goes_through_a_ring_where_that_is_asked_for() {
    let here = tempfile::tempdir().expect("a directory");
    let ring = Queueing { ring_for_one: true, ..Queueing::USUAL };
    let (outcome, events) = measure(directory(here.path()), &small_suite(), ring);
    let outcome = outcome.expect("it can be measured");
    assert_eq!(outcome.ended_by, None);
    assert_eq!(outcome.results.len(), 10, "{events:?}");
    for result in &outcome.results {
        assert!(result.operations > 0, "{}", result.job);
        assert!(result.queue_depth > 1 || result.engine != "threads");
    }
    // Where a ring can be used at all, lone reads use it.
    let rings = |depth: fn(u32) -> bool| {
        let mut some = outcome.results.iter().filter(|r| depth(r.queue_depth));
        some.any(|result| result.engine == "ring")
    };
    assert_eq!(rings(|depth| depth == 1), rings(|depth| depth > 1));
}

/// What this machine's disk can do is not known; on either way the user must be told the truth.
#[test]
fn a_target_is_polled_or_refused_in_words() {
    let here = tempfile::tempdir().expect("a directory");
    let polled = Queueing { polled: true, ..Queueing::USUAL };
    let (outcome, events) = measure(directory(here.path()), &small_suite(), polled);
    match outcome {
        Err(error) => {
            let error = error.to_string();
            assert!(error.contains("--hipri"), "{error}");
            assert!(error.contains(&here.path().display().to_string()), "{error}");
            assert!(events.is_empty(), "{events:?}");
        }
        Ok(outcome) => {
            for result in &outcome.results {
                assert_eq!(result.polled, result.engine == "ring", "{}", result.job);
            }
            assert!(outcome.results.iter().any(|result| result.polled));
        }
    }
    assert!(is_empty(here.path()));
}

#[test]
fn a_file_is_only_read_unless_it_may_be_lost() {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    let contents: Vec<u8> = (0..4 * MIB).map(|i| (i % 251) as u8).collect();
    file.write_all(&contents).expect("its contents");
    file.as_file().sync_all().expect("them on the disk");
    let target = |may_overwrite| Target::File { path: file.path().to_path_buf(), may_overwrite };
    let (outcome, _) = measure(target(false), &small_suite(), Queueing::USUAL);
    let outcome = outcome.expect("it can be read");
    assert_eq!(outcome.bytes_written, 0);
    assert_eq!(outcome.results.len(), 3);
    assert_eq!(outcome.target.region_bytes, 4 * MIB);
    assert!(fs::read(file.path()).expect("the file") == contents, "the file was changed");

    let (outcome, _) = measure(target(true), &small_suite(), Queueing::USUAL);
    let outcome = outcome.expect("it can be overwritten");
    assert_eq!(outcome.results.len(), 10);
    let after = fs::read(file.path()).expect("the file");
    assert_eq!(after.len(), contents.len(), "a file of the user's never grows");
    assert!(after != contents);
}

#[test]
fn a_file_that_is_one_hole_is_refused() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    file.as_file().set_len(16 * MIB).expect("a size");
    let target = Target::File { path: file.path().to_path_buf(), may_overwrite: false };
    let (outcome, _) = measure(target, &small_suite(), Queueing::USUAL);
    let error = outcome.expect_err("there is nothing to read").to_string();
    assert!(error.contains("without holes"), "{error}");
}

#[test]
fn a_filesystem_in_memory_is_labelled_as_one() {
    let Ok(here) = tempfile::tempdir_in("/dev/shm") else {
        return skipped("a filesystem in memory", "there is no tmpfs at /dev/shm");
    };
    let (outcome, _) = measure(directory(here.path()), &small_suite(), Queueing::USUAL);
    let outcome = outcome.expect("it can be measured");
    assert_eq!(outcome.target.filesystem.as_deref(), Some("tmpfs"));
    for result in &outcome.results {
        let cached = |doubt: &Doubt| {
            matches!(doubt, Doubt::DirectIsBuffered { .. } | Doubt::ThroughPageCache { .. })
        };
        assert!(result.doubts.iter().any(cached), "{}", result.job);
        assert_ne!(result.engine, "ring", "{}: tmpfs hands all to workers", result.job);
    }
    assert!(is_empty(here.path()));
}

#[test]
fn errors_name_the_path_and_the_way_out() {
    let suite = small_suite();
    let missing = PathBuf::from("/nonexistent/place");
    let (outcome, _) = measure(directory(&missing), &suite, Queueing::USUAL);
    let error = outcome.expect_err("it does not exist").to_string();
    assert!(error.contains("/nonexistent/place") && error.contains("spelling"), "{error}");

    let (outcome, _) = measure(directory(Path::new("/proc/self")), &suite, Queueing::USUAL);
    let error = outcome.expect_err("nothing can be made there").to_string();
    assert!(error.contains("cannot make a file in it"), "{error}");

    let target = Target::File { path: "/dev/null".into(), may_overwrite: true };
    let (outcome, _) = measure(target, &suite, Queueing::USUAL);
    let error = outcome.expect_err("it is a device").to_string();
    assert!(error.contains("neither a directory nor a regular file"), "{error}");
}

#[test]
fn too_little_room_is_said_before_anything_is_written() {
    let here = tempfile::tempdir().expect("a directory");
    let mut suite = small_suite();
    suite.region_bytes = 1 << 60;
    let (outcome, events) = measure(directory(here.path()), &suite, Queueing::USUAL);
    let error = outcome.expect_err("no disk is that large").to_string();
    assert!(error.contains("of free space"), "{error}");
    assert!(events.is_empty());
}

#[test]
fn a_session_that_is_stopped_at_once_measures_nothing_and_says_so() {
    let here = tempfile::tempdir().expect("a directory");
    let suite = small_suite();
    let cancel = AtomicBool::new(true);
    let session = Session {
        target: directory(here.path()),
        suite: &suite,
        watch: WatchPaths::default(),
        cancel: &cancel,
        queueing: Queueing::USUAL,
        more_files: Vec::new(),
        needs: Vec::new(),
    };
    let outcome = run(session, &mut |_: &Event<'_>| {}).expect("it can begin");
    assert!(outcome.results.is_empty());
    assert!(matches!(outcome.ended_by, Some(BenchError::Interrupted { .. })));
    assert!(outcome.doubts.contains(&Doubt::Interrupted));
    assert!(is_empty(here.path()));
}

#[test]
fn what_a_killed_session_left_is_removed_by_the_next() {
    let here = tempfile::tempdir().expect("a directory");
    let stale = here.path().join(".rubus-commit-1-1");
    let of_the_user = here.path().join("rubus-commit-1-1");
    File::create(&stale).expect("what was left");
    File::create(&of_the_user).expect("another file");
    let (outcome, _) = measure(directory(here.path()), &small_suite(), Queueing::USUAL);
    outcome.expect("it can be measured");
    assert!(!stale.exists());
    assert!(of_the_user.exists());
}

#[test]
fn outcome_and_access_are_stated() {
    let here = tempfile::tempdir().expect("a directory");
    let mut suite = small_suite();
    suite.jobs.truncate(2);
    let (outcome, _) = measure(directory(here.path()), &suite, Queueing::USUAL);
    let outcome = outcome.expect("it can be measured");
    let through_cache = |doubt: &Doubt| matches!(doubt, Doubt::ThroughPageCache { .. });
    let doubted = outcome.results.iter().all(|r| r.doubts.iter().any(through_cache));
    assert_eq!(outcome.target.access == Access::Buffered, doubted);
    for result in &outcome.results {
        let too_short = result.elapsed_s < 0.1 && result.outcome == Outcome::Converged;
        assert!(!too_short, "{result:?}");
    }
}
