//! The engines on real files: each must move the same bytes, and fail in words.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rubus_fixtures::skipped;
use rubus_vocabulary::spec::{Content, Direction, Durability, Pattern};

use crate::probe::{Verdict, try_polled, try_ring};
use crate::work::{Engine, Work};
use crate::workers::Workers;

const REGION: u64 = 1 << 20;
const RING: Engine = Engine::Ring { lanes: 1, polled: false };
const LANES: Engine = Engine::Ring { lanes: 3, polled: false };
const ENGINES: [Engine; 4] = [Engine::Positional, RING, LANES, Engine::Threads];

fn work(file: &File, engine: Engine) -> Work {
    let file: OwnedFd = file.try_clone().expect("a descriptor more").into();
    Work {
        remote: None,
        file: Arc::new(file),
        engine,
        direction: Direction::Write,
        pattern: Pattern::Sequential,
        block_bytes: 4096,
        queue_depth: if engine == Engine::Positional { 1 } else { 8 },
        durability: Durability::AtEnd,
        region_bytes: REGION,
        append_from: None,
        settles: false,
        content: Content::Incompressible,
        seed: 3,
        max_operations: REGION / 4096,
        warm_up_ns: u64::MAX,
        warm_up_operations: u64::MAX,
        is_buffered: true,
        one_at_a_time: false,
        is_mapped: false,
        trial_from: Some(0),
        delay_ns: 0,
        general: None,
    }
}

fn run(work: &Work) -> Workers {
    let mut workers = Workers::start(work).expect("the lanes start");
    assert!(workers.poll(Duration::from_secs(60)), "{:?} does not end", work.engine);
    workers
}

/// Whether this machine lets us use io_uring; where it does not, its tests have nothing to test.
fn has_ring() -> bool {
    let null = File::options().read(true).write(true).open("/dev/null").expect("/dev/null");
    let mut work = work(&null, RING);
    work.direction = Direction::Write;
    !matches!(try_ring(&work, 32, false).verdict, Verdict::Bad(reason) if reason.contains("none") || reason.contains("forbidden"))
}

fn engines() -> Vec<Engine> {
    let has_ring = has_ring();
    if !has_ring {
        skipped("the ring", "the kernel offers no io_uring");
    }
    let usable = |engine: &Engine| has_ring || !matches!(engine, Engine::Ring { .. });
    ENGINES.into_iter().filter(usable).collect()
}

fn pages(file: &mut File) -> Vec<Vec<u8>> {
    use std::io::Seek;
    let mut bytes = Vec::new();
    file.rewind().expect("the start");
    file.read_to_end(&mut bytes).expect("what was written");
    bytes.chunks(4096).map(<[u8]>::to_vec).collect()
}

#[test]
fn every_engine_writes_the_whole_region_once_in_distinct_blocks() {
    for engine in engines() {
        let mut file = tempfile::tempfile().expect("a file");
        let workers = run(&work(&file, engine));
        let completions = &workers.completions()[0];
        assert_eq!(completions.failure(), None, "{engine:?}");
        assert_eq!(completions.operations(), REGION / 4096, "{engine:?}");
        assert_eq!(completions.latencies().count(), REGION / 4096, "{engine:?}");
        let pages = pages(&mut file);
        assert_eq!(pages.len() as u64, REGION / 4096, "{engine:?}");
        let distinct: HashSet<&Vec<u8>> = pages.iter().collect();
        assert_eq!(distinct.len(), pages.len(), "{engine:?}");
    }
}

#[test]
fn every_engine_keeps_to_its_budget_and_region() {
    for engine in engines() {
        let file = tempfile::tempfile().expect("a file");
        let mut work = work(&file, engine);
        work.pattern = Pattern::Random;
        work.max_operations = 1003;
        let workers = run(&work);
        assert_eq!(workers.completions()[0].operations(), 1003, "{engine:?}");
        assert!(file.metadata().expect("its size").len() <= REGION, "{engine:?}");
    }
}

#[test]
fn lanes_share_depth_and_budget_and_their_accounts_are_joined() {
    if !has_ring() {
        return skipped("the ring", "the kernel offers no io_uring");
    }
    // Of 8 in flight and 1003 operations, three lanes have 3, 3 and 2, and 335, 334 and 334.
    let file = tempfile::tempfile().expect("a file");
    let mut work = work(&file, LANES);
    work.pattern = Pattern::Random;
    work.max_operations = 1003;
    let depths: Vec<u32> = (0..work.workers()).map(|lane| work.depth_of(lane)).collect();
    assert_eq!(depths, [3, 3, 2]);
    let workers = run(&work);
    let completions = &workers.completions()[0];
    let of_lanes: Vec<u64> = completions.reports().map(|report| report.operations).collect();
    assert_eq!(of_lanes, [335, 334, 334]);
    assert_eq!(completions.operations(), 1003);
    assert_eq!(completions.bytes(), 1003 * 4096);
    assert_eq!(completions.latencies().count(), 1003);
    let used_ns: Vec<u64> = completions.reports().map(|report| report.cpu_ns).collect();
    assert!(used_ns.iter().all(|&ns| ns > 0), "{used_ns:?}");
}

#[test]
fn there_are_no_more_lanes_than_operations_in_flight() {
    let file = File::open("/dev/null").expect("/dev/null");
    let mut work = work(&file, Engine::Ring { lanes: 64, polled: false });
    assert_eq!((work.lanes(), work.workers()), (8, 8));
    work.max_operations = 5;
    assert_eq!(work.lanes(), 5);
    work.engine = Engine::Threads;
    assert_eq!(work.lanes(), 1, "threads are no lanes");
}

#[test]
fn each_lane_has_places_of_its_own() {
    if !has_ring() {
        return skipped("the ring", "the kernel offers no io_uring");
    }
    // Lanes that drew the same numbers would write the same blocks three times over.
    let mut file = tempfile::tempfile().expect("a file");
    let mut work = work(&file, LANES);
    work.pattern = Pattern::Random;
    work.region_bytes = 64 * REGION;
    work.max_operations = 99;
    run(&work);
    file.set_len(64 * REGION).expect("a size");
    let written = pages(&mut file).iter().filter(|page| page.iter().any(|&byte| byte != 0)).count();
    assert!(written > 66, "{written} blocks of 99");
}

#[test]
fn what_cannot_be_polled_is_a_failure_in_words() {
    if !has_ring() {
        return skipped("the ring", "the kernel offers no io_uring");
    }
    // Through the page cache nothing can be.
    let file = tempfile::tempfile().expect("a file");
    file.set_len(REGION).expect("a size");
    let work = work(&file, Engine::Ring { lanes: 1, polled: true });
    match try_polled(&work.file) {
        Verdict::Bad(reason) => assert!(reason.contains("not supported"), "{reason}"),
        other => panic!("{other:?}"),
    }
    let workers = run(&work);
    let failure = workers.completions()[0].failure().expect("it fails");
    assert!(failure.contains("not supported"), "{failure}");
}

#[test]
fn a_short_read_is_a_failure_in_words() {
    for engine in engines() {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(100).expect("a short file");
        let mut work = work(&file, engine);
        work.direction = Direction::Read;
        let workers = run(&work);
        let failure = workers.completions()[0].failure().expect("there is too little to read");
        assert!(failure.contains("read of 4096 bytes"), "{engine:?}: {failure}");
        assert!(failure.contains("moved only"), "{engine:?}: {failure}");
    }
}

#[test]
fn a_refused_write_is_a_failure_in_words() {
    for engine in engines() {
        let named = tempfile::NamedTempFile::new().expect("a file");
        let file = File::open(named.path()).expect("it again, to read");
        let workers = run(&work(&file, engine));
        let failure = workers.completions()[0].failure().expect("the file is not open for writing");
        assert!(failure.contains("write of 4096 bytes at byte"), "{engine:?}: {failure}");
        assert!(failure.contains("Bad file descriptor"), "{engine:?}: {failure}");
    }
}

#[test]
fn lanes_stop_when_they_are_told() {
    for engine in engines() {
        let file = File::open("/dev/zero").expect("/dev/zero");
        let mut work = work(&file, engine);
        work.direction = Direction::Read;
        work.max_operations = u64::MAX;
        let mut workers = Workers::start(&work).expect("the lanes start");
        assert!(!workers.poll(Duration::from_millis(30)), "{engine:?}");
        workers.stop();
        assert!(workers.poll(Duration::from_secs(60)), "{engine:?}");
        assert_eq!(workers.completions()[0].failure(), None, "{engine:?}");
        assert!(workers.completions()[0].operations() > 0, "{engine:?}");
    }
}

#[test]
fn appended_commits_grow_the_file() {
    let file = tempfile::tempfile().expect("a file");
    let mut work = work(&file, Engine::Positional);
    work.durability = Durability::EachAppend;
    work.append_from = Some(0);
    work.region_bytes = 4096;
    work.max_operations = 5;
    let workers = run(&work);
    assert_eq!(workers.completions()[0].failure(), None);
    assert_eq!(file.metadata().expect("its size").len(), 5 * 4096);
}

#[test]
fn writes_through_the_cache_are_waited_for() {
    let mut file = tempfile::tempfile().expect("a file");
    let mut work = work(&file, Engine::Threads);
    work.settles = true;
    let workers = run(&work);
    assert_eq!(workers.completions()[0].failure(), None);
    assert_eq!(pages(&mut file).len() as u64, REGION / 4096);
}

#[test]
fn a_good_ring_passes_the_trial_and_leaves_no_more_than_it_says() {
    if !has_ring() {
        return skipped("the ring", "the kernel offers no io_uring");
    }
    let mut file = tempfile::tempfile().expect("a file");
    file.set_len(REGION).expect("a size");
    let mut work = work(&file, RING);
    work.max_operations = 1 << 20;
    let found = try_ring(&work, 32, false);
    assert!(matches!(found.verdict, Verdict::Good | Verdict::Punts), "{found:?}");
    let written = pages(&mut file).iter().filter(|page| page.iter().any(|&b| b != 0)).count();
    // A second round goes over the same blocks.
    let rounds = if found.bytes_written > 8 * 4096 { 2 } else { 1 };
    assert_eq!(written as u64 * 4096 * rounds, found.bytes_written);
}

#[test]
fn reads_in_the_trial_write_nothing() {
    if !has_ring() {
        return skipped("the ring", "the kernel offers no io_uring");
    }
    let mut file = tempfile::tempfile().expect("a file");
    file.set_len(REGION).expect("a size");
    let mut work = work(&file, RING);
    work.direction = Direction::Read;
    let found = try_ring(&work, 32, false);
    assert_eq!(found.bytes_written, 0);
    assert!(matches!(found.verdict, Verdict::Good | Verdict::Punts), "{found:?}");
    assert!(pages(&mut file).iter().flatten().all(|&byte| byte == 0));
}
