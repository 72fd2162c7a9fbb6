//! Shaped jobs on real files: what arrives on the target is what was asked for.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use rubus_measure::{Event, Queueing, Session, SessionOutcome, Target, WatchPaths, run};
use rubus_vocabulary::result::{Access, JobResult};
use rubus_vocabulary::spec::{
    Content, Direction, Durability, Ends, FileNeed, FileStart, FlushEvery, Job, Limit, Pattern,
    Shape, Sizes, Suite, Verify,
};

const MIB: u64 = 1 << 20;

fn suite(jobs: Vec<Job>) -> Suite {
    Suite {
        name: "shapes".into(),
        region_bytes: 8 * MIB,
        content: Content::Incompressible,
        seed: 11,
        max_seconds: None,
        jobs,
    }
}

fn shaped(name: &str, direction: Direction, pattern: Pattern, depth: u32, shape: Shape) -> Job {
    let mut job = Job::new(name, direction, pattern, 4096, depth);
    job.stop.min_seconds = 20.0;
    job.stop.max_seconds = 20.0;
    job.shape = Some(Box::new(Shape { ramp_s: Some(0.0), ..shape }));
    job
}

fn need(name: &str, start: FileStart) -> FileNeed {
    FileNeed { name: name.into(), region_bytes: 8 * MIB, start }
}

struct On<'a> {
    targets: Vec<Target>,
    needs: Vec<FileNeed>,
    suite: &'a Suite,
    may_use_ring: bool,
    /// What happens between two jobs, by the name of the one that ended.
    after: Box<dyn Fn(&str) + 'a>,
}

impl On<'_> {
    fn run(self) -> SessionOutcome {
        let cancel = AtomicBool::new(false);
        let mut targets = self.targets.into_iter();
        let session = Session {
            target: targets.next().expect("at least one target"),
            more_files: targets.collect(),
            needs: self.needs,
            suite: self.suite,
            watch: WatchPaths::default(),
            cancel: &cancel,
            queueing: Queueing { may_use_ring: self.may_use_ring, ..Queueing::USUAL },
        };
        let after = self.after;
        run(session, &mut |event: &Event<'_>| match event {
            Event::JobFinished { result, .. } => after(&result.job),
            Event::JobSkipped { job, reason, .. } => panic!("{} was left out: {reason}", job.name),
            _ => {}
        })
        .expect("the session begins")
    }
}

fn in_directory(path: &Path, suite: &Suite, may_use_ring: bool) -> SessionOutcome {
    On {
        targets: vec![Target::Directory { path: path.into() }],
        needs: vec![need("file", FileStart::Filled)],
        suite,
        may_use_ring,
        after: Box::new(|_| {}),
    }
    .run()
}

fn on_file(path: &Path, suite: &Suite, after: impl Fn(&str)) -> SessionOutcome {
    On {
        targets: vec![Target::File { path: path.into(), may_overwrite: true }],
        needs: Vec::new(),
        suite,
        may_use_ring: true,
        after: Box::new(after),
    }
    .run()
}

/// A file of 8 MiB on the disk.
fn filled_file() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), vec![0x5a; 8 << 20]).expect("its contents");
    file.as_file().sync_all().expect("them on the disk");
    file
}

fn of(outcome: &SessionOutcome, direction: Direction) -> &JobResult {
    let mut results = outcome.results.iter();
    results
        .find(|result| result.direction == direction)
        .unwrap_or_else(|| panic!("no {direction:?}: {:?}", outcome.ended_by))
}

#[test]
fn a_mix_moves_what_it_says_with_every_engine() {
    let here = tempfile::tempdir().expect("a directory");
    for (depth, may_use_ring) in [(1, true), (8, true), (8, false)] {
        let shape = Shape {
            read_percent: Some(60),
            sizes: [
                Some(Sizes::Split(vec![(4096, 50), (16_384, 50)])),
                Some(Sizes::Range(4096, 32_768)),
            ],
            max_operations: Some(3000),
            time_based: true,
            ..Shape::default()
        };
        let suite = suite(vec![shaped("mix", Direction::Read, Pattern::Random, depth, shape)]);
        let outcome = in_directory(here.path(), &suite, may_use_ring);
        assert_eq!(outcome.ended_by, None);
        let (reads, writes) = (of(&outcome, Direction::Read), of(&outcome, Direction::Write));
        let all = reads.operations + writes.operations;
        assert!((2700..=3000).contains(&all), "{all}");
        let share = reads.operations as f64 / all as f64;
        assert!((share - 0.6).abs() < 4.0 * (0.24 / all as f64).sqrt(), "{share}");
        let mean = reads.moved_bytes() as f64 / reads.operations as f64;
        assert!((9700.0..10_800.0).contains(&mean), "{mean}");
        assert_eq!(reads.title.as_deref(), Some("mix: reads"));
        assert!(reads.latency_ns.p50.is_some() && writes.latency_ns.p50.is_some());
        // The filling came on top.
        assert!(outcome.bytes_written >= 8 * MIB + writes.moved_bytes());
    }
}

#[test]
fn every_block_of_the_region_is_written_once_and_nothing_else() {
    for depth in [1, 16] {
        let file = filled_file();
        let shape = Shape {
            visits_once: true,
            offset_bytes: MIB,
            span_bytes: Some(2 * MIB),
            copies: 2,
            copy_offset_bytes: 2 * MIB,
            ..Shape::default()
        };
        let suite = suite(vec![shaped("once", Direction::Write, Pattern::Random, depth, shape)]);
        let outcome = on_file(file.path(), &suite, |_| {});
        assert_eq!(outcome.ended_by, None);
        let contents = fs::read(file.path()).expect("the file");
        assert_eq!(contents.len(), 8 << 20);
        for (number, page) in contents.chunks(4096).enumerate() {
            let is_ours = (256..1280).contains(&number);
            assert_eq!(page.iter().any(|&byte| byte != 0x5a), is_ours, "page {number}");
        }
        assert_eq!(outcome.results[0].copies, Some(2));
    }
}

#[test]
fn a_limited_rate_is_kept_on_a_real_file() {
    let here = tempfile::tempdir().expect("a directory");
    for depth in [1, 4] {
        let shape = Shape {
            limits: [Limit { iops: Some(100.0), bytes_per_second: None }; 2],
            time_based: true,
            ..Shape::default()
        };
        let mut job = shaped("slow", Direction::Read, Pattern::Random, depth, shape);
        job.stop.min_seconds = 3.0;
        job.stop.max_seconds = 3.0;
        let outcome = in_directory(here.path(), &suite(vec![job]), true);
        let rate = of(&outcome, Direction::Read).iops;
        // Never faster. Slower only when the disk below stood still for a while, as others can make it; the interval says so then.
        assert!(rate.value <= 105.0 && rate.high >= 95.0, "{rate:?}");
    }
}

#[test]
fn a_group_works_on_files_of_its_own_past_the_cache_and_through_it() {
    let here = tempfile::tempdir().expect("a directory");
    let existing = filled_file();
    let on = |file: u32| Shape {
        file: Some(file),
        max_operations: Some(500),
        time_based: true,
        ..Shape::default()
    };
    let mut first = shaped("direct", Direction::Read, Pattern::Random, 4, on(0));
    let mut cached = shaped("cached", Direction::Read, Pattern::Sequential, 1, on(0));
    cached.through_cache = true;
    let mut second = shaped("second", Direction::Write, Pattern::Sequential, 1, on(1));
    second.through_cache = true;
    second.durability = Durability::Never;
    let third = shaped("third", Direction::Read, Pattern::Random, 2, on(2));
    first.ends = Ends::EachByItself;
    first.beside = vec![cached, second, third];
    let directory = || Target::Directory { path: here.path().into() };
    let suite = suite(vec![first]);
    let outcome = On {
        targets: vec![
            directory(),
            directory(),
            Target::File { path: existing.path().into(), may_overwrite: true },
        ],
        needs: vec![
            need("one", FileStart::Filled),
            need("two", FileStart::Hollow),
            need("three", FileStart::Filled),
        ],
        suite: &suite,
        may_use_ring: true,
        after: Box::new(|_| {}),
    }
    .run();
    assert_eq!(outcome.ended_by, None);
    let on: Vec<Option<&str>> = outcome.results.iter().map(|r| r.on.as_deref()).collect();
    assert_eq!(on, [Some("one"), Some("one"), Some("two"), Some("three")]);
    let accesses: Vec<Option<Access>> = outcome.results.iter().map(|r| r.access).collect();
    if outcome.target.access == Access::Direct {
        let cached = Some(Access::Buffered);
        assert_eq!(accesses[..3], [None, cached, cached]);
    }
    let contents = fs::read(existing.path()).expect("the file");
    assert!(contents.iter().all(|&byte| byte == 0x5a), "what is only read stays");
}

#[test]
fn a_file_that_is_read_holds_what_its_reader_asks_for() {
    let here = tempfile::tempdir().expect("a directory");
    let shape =
        Shape { file: Some(0), max_operations: Some(100), time_based: true, ..Shape::default() };
    let mut reading = shaped("read", Direction::Read, Pattern::Sequential, 1, shape);
    reading.content = Some(Content::Zeros);
    let suite = suite(vec![reading]);
    let ours = here.path().to_path_buf();
    let outcome = On {
        targets: vec![Target::Directory { path: ours.clone() }],
        needs: vec![need("file", FileStart::Filled)],
        suite: &suite,
        may_use_ring: false,
        after: Box::new(move |_| {
            let open = fs::read_dir("/proc/self/fd").expect("what is open");
            let file = open
                .filter_map(|entry| Some(entry.ok()?.path()))
                .find(|fd| fs::read_link(fd).is_ok_and(|at| at.starts_with(&ours)) && !fd.is_dir())
                .expect("the nameless file");
            let held = fs::read(file).expect("what it holds");
            assert_eq!(held.len() as u64, 8 * MIB);
            let marks = held.chunks(4096).flat_map(|block| &block[16..]);
            assert!(marks.copied().all(|byte| byte == 0), "zeros were asked for");
        }),
    }
    .run();
    assert_eq!(outcome.ended_by, None);
}

#[test]
fn flushes_and_commits_in_place_leave_the_length_alone() {
    let file = filled_file();
    let flushing = Shape {
        flush_every: Some(FlushEvery { writes: 4, metadata_too: true }),
        max_operations: Some(200),
        time_based: true,
        ..Shape::default()
    };
    let mut commits = shaped(
        "commits",
        Direction::Write,
        Pattern::Random,
        2,
        Shape { max_operations: Some(100), ..Shape::default() },
    );
    commits.durability = Durability::EachInPlace;
    let suite =
        suite(vec![shaped("flushing", Direction::Write, Pattern::Random, 4, flushing), commits]);
    let outcome = on_file(file.path(), &suite, |_| {});
    assert_eq!(outcome.ended_by, None);
    assert!(!outcome.results[0].commit && outcome.results[1].commit);
    assert_eq!(outcome.results[1].engine, "threads");
    let length = file.as_file().metadata().expect("its size").len();
    assert_eq!(length, 8 * MIB);
}

fn verifying(name: &str, direction: Direction, depth: u32, shape: Shape) -> Job {
    let shape =
        Shape { verify: Some(if depth == 1 { Verify::Xxhash } else { Verify::Crc32c }), ..shape };
    shaped(name, direction, Pattern::Random, depth, shape)
}

#[test]
fn what_was_written_is_read_back_and_checked() {
    let here = tempfile::tempdir().expect("a directory");
    for (depth, may_use_ring) in [(1, true), (16, true), (4, false)] {
        let once = Shape { visits_once: true, ..Shape::default() };
        // Small, so that blocks are written again and again while others are under way.
        let again = Shape {
            read_percent: Some(40),
            span_bytes: Some(64 << 10),
            max_operations: Some(4000),
            time_based: true,
            copies: 2,
            ..Shape::default()
        };
        let suite = suite(vec![
            verifying("once", Direction::Write, depth, once),
            verifying("again", Direction::Read, depth, again),
            verifying("read", Direction::Read, depth, Shape::default()),
        ]);
        let outcome = in_directory(here.path(), &suite, may_use_ring);
        assert_eq!(outcome.ended_by, None, "depth {depth}");
        let told: Vec<(&str, Direction)> = outcome
            .results
            .iter()
            .map(|result| (result.title.as_deref().unwrap_or(""), result.direction))
            .collect();
        let expected = [
            ("once", Direction::Write),
            ("once: read back", Direction::Read),
            ("again: reads", Direction::Read),
            ("again: writes", Direction::Write),
            ("again: read back", Direction::Read),
            ("read", Direction::Read),
        ];
        assert_eq!(told, expected);
        assert_eq!(outcome.results[1].operations, 2048, "depth {depth}");
    }
}

fn mapped(name: &str, direction: Direction, shape: Shape) -> Job {
    let shape = Shape { is_mapped: true, visits_once: true, ..shape };
    let mut job = verifying(name, direction, 1, shape);
    job.through_cache = true;
    job.durability = Durability::Never;
    job
}

#[test]
fn a_mapped_file_is_read_and_written_as_memory() {
    let file = filled_file();
    let flushed = FlushEvery { writes: 64, metadata_too: true };
    let mut commit = mapped("commit", Direction::Write, Shape::default());
    commit.durability = Durability::EachInPlace;
    let suite = suite(vec![
        mapped("write", Direction::Write, Shape { flush_every: Some(flushed), ..Shape::default() }),
        mapped("read", Direction::Read, Shape::default()),
        commit,
    ]);
    let outcome = on_file(file.path(), &suite, |_| {});
    assert_eq!(outcome.ended_by, None);
    for result in &outcome.results {
        assert_eq!((result.engine.as_str(), result.operations), ("mmap", 2048), "{}", result.job);
        let access = result.access.unwrap_or(outcome.target.access);
        assert_eq!(access, Access::Buffered, "{}", result.job);
    }
    assert_eq!(outcome.results.len(), 5, "two are read back");
    let contents = fs::read(file.path()).expect("the file");
    assert!(contents.chunks(4096).all(|block| block != [0x5a; 4096]), "every block is written");
}

/// As a disk that fails: the kernel cannot provide the page, which ends a program that is not prepared.
#[test]
fn a_page_that_cannot_be_read_is_a_failed_operation() {
    let file = filled_file();
    let unchecked = |name: &str| {
        let mut job = mapped(name, Direction::Read, Shape::default());
        if let Some(shape) = &mut job.shape {
            shape.verify = None;
        }
        job
    };
    let suite = suite(vec![unchecked("first"), unchecked("second")]);
    let outcome = on_file(file.path(), &suite, |ended| {
        if ended == "first" {
            file.as_file().set_len(MIB).expect("a shorter file");
        }
    });
    let error = outcome.ended_by.expect("the pages are gone").to_string();
    assert!(error.contains("read") && error.contains("Input/output error"), "{error}");
}

#[test]
fn a_block_that_was_changed_is_found_with_its_place() {
    for (depth, engine) in [(1, "positional"), (16, "ring")] {
        let file = filled_file();
        let write = Shape { skips_read_back: true, visits_once: true, ..Shape::default() };
        let suite = suite(vec![
            verifying("write", Direction::Write, depth, write),
            verifying(
                "read",
                Direction::Read,
                depth,
                Shape { visits_once: true, ..Shape::default() },
            ),
        ]);
        let outcome = on_file(file.path(), &suite, |ended| {
            if ended == "write" {
                let other = File::options().write(true).open(file.path()).expect("it again");
                other.write_all_at(b"x", 3 * MIB + 1000).expect("one byte");
                other.sync_all().expect("it on the disk");
            }
        });
        let error = outcome.ended_by.expect("a byte is wrong").to_string();
        let place = format!("at byte {}", 3 * MIB);
        assert!(error.contains(&place), "{engine}: {error}");
        assert!(error.contains("expected the sum"), "{engine}: {error}");
    }
}

#[test]
fn a_write_that_got_lost_is_found_when_it_is_read_back() {
    // A file on which the writes of the second job do not arrive would need a device of our own;
    // putting back an older block in between has the same effect.
    let file = filled_file();
    let write = |name: &str, shape: Shape| {
        let shape = Shape { visits_once: true, ..shape };
        verifying(name, Direction::Write, 1, shape)
    };
    let kept = std::cell::RefCell::new(Vec::new());
    let first = write("first", Shape::default());
    let second = write("second", Shape { skips_read_back: true, ..Shape::default() });
    // Reads what the second has written, as the second would.
    let mut third = verifying("third", Direction::Read, 1, Shape::default());
    third.pattern = Pattern::Sequential;
    let suite = suite(vec![first, second, third]);
    let outcome = on_file(file.path(), &suite, |ended| {
        let other = File::options().read(true).write(true).open(file.path()).expect("it again");
        if ended == "first" && kept.borrow().is_empty() {
            let mut page = vec![0; 4096];
            other.read_exact_at(&mut page, 5 * MIB).expect("a page");
            *kept.borrow_mut() = page;
        }
        if ended == "second" {
            // In the wrong place, it is no block of this place.
            other.write_all_at(&kept.borrow(), 6 * MIB).expect("the old page");
            other.sync_all().expect("it on the disk");
        }
    });
    let error = outcome.ended_by.expect("a page is misplaced").to_string();
    let expected = format!("found the block of byte {} of file 0 instead", 5 * MIB);
    assert!(error.contains(&expected), "{error}");
}
