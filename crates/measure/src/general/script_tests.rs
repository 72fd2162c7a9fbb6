//! What a script promises: shares, places, times, and that nothing but the plan decides.

use std::collections::HashSet;

use proptest::prelude::*;
use rubus_vocabulary::spec::{
    Direction, Distribution, Durability, FileOrder, FlushEvery, Job, Limit, Pattern, Shape, Sizes,
    Think,
};

use super::plan::{Plan, READS, WRITES};
use super::script::{Operation, Script, Step};

const KIB: u32 = 1 << 10;
const MIB: u64 = 1 << 20;
const SECOND_NS: u64 = 1_000_000_000;

fn job(pattern: Pattern, shape: Shape) -> Job {
    let mut job = Job::new("shaped", Direction::Write, pattern, 4 * KIB, 1);
    job.shape = Some(Box::new(shape));
    job
}

fn script_of(job: &Job, files: u32, region_bytes: u64) -> Script {
    Script::new(Plan::new(job, 0, files, region_bytes, 7).expect("the plan fits"))
}

/// The first `most` operations on a target that is done with each at once.
fn operations(mut script: Script, most: usize) -> Vec<Operation> {
    let mut operations = Vec::new();
    while operations.len() < most {
        match script.next(0, 0) {
            Step::Do(operation) => operations.push(operation),
            Step::Drain => panic!("nothing is in flight"),
            Step::Over => break,
        }
    }
    operations
}

fn endless(shape: Shape) -> Shape {
    Shape { time_based: true, ..shape }
}

/// Six deviations of a number of successes: of four, some of a hundred runs would exceed one in their hundreds of cases.
fn tolerance(tries: usize, chance: f64) -> f64 {
    6.0 * (tries as f64 * chance * (1.0 - chance)).sqrt() + 1.0
}

proptest! {
    #[test]
    fn a_mix_has_its_shares(read_percent in 0_u8..=100, random in 0_u8..=100, seed in any::<u64>()) {
        let shape = endless(Shape {
            read_percent: Some(read_percent),
            random_percent: [Some(random); 2],
            ..Shape::default()
        });
        let plan = Plan::new(&job(Pattern::Random, shape), 0, 1, 64 * MIB, seed).expect("it fits");
        let operations = operations(Script::new(plan), 4000);
        let reads = operations.iter().filter(|o| !o.is_write).count() as f64;
        let chance = f64::from(read_percent) / 100.0;
        prop_assert!((reads - 4000.0 * chance).abs() <= tolerance(4000, chance));
        // Of each direction, those that do not follow the one before went to a random place.
        let mut jumps = 0;
        for is_write in [false, true] {
            let of_side: Vec<&Operation> = operations.iter().filter(|o| o.is_write == is_write).collect();
            let follows = |pair: &&[&Operation]| pair[1].offset == pair[0].offset + 4096;
            jumps += of_side.windows(2).filter(|pair| !follows(pair)).count();
        }
        let chance = f64::from(random) / 100.0;
        // Two first operations follow none, and of 4000 random places one in 16,384 is the next by chance: more than six of
        // those come once in ten million.
        prop_assert!((jumps as f64 - 4000.0 * chance).abs() <= tolerance(4000, chance) + 2.0 + 6.0);
    }

    #[test]
    fn everything_stays_in_its_region(
        offset in 0_u64..100,
        span in 16_u64..200,
        parts in 1_u32..4,
        least in 1_u32..8,
        more in 0_u32..8,
        unaligned in any::<bool>(),
        pattern in prop_oneof![Just(Pattern::Random), Just(Pattern::Sequential)],
        stride in -64_i64..64,
        run_length in 0_u32..5,
        copy in 0_u32..3,
    ) {
        let shape = endless(Shape {
            sizes: [None, Some(Sizes::Range(512 * least, 512 * (least + more)))],
            unaligned,
            offset_bytes: 512 * offset,
            span_bytes: Some(8192 * span),
            files: parts,
            stride_bytes: 512 * stride,
            run_length,
            copies: 3,
            copy_offset_bytes: 8192,
            ..Shape::default()
        });
        let start = 512 * offset + 8192 * u64::from(copy);
        let end = start + 8192 * span;
        let Ok(plan) = Plan::new(&job(pattern, shape), copy, 2, end, 3) else {
            return Ok(());
        };
        let part_bytes = plan.part_bytes;
        for operation in operations(Script::new(plan), 500) {
            let (first, after) = (operation.offset, operation.offset + u64::from(operation.bytes));
            prop_assert!(first >= start && after <= end, "{operation:?} not in {start}..{end}");
            // No operation crosses from one part to the next.
            prop_assert_eq!((first - start) / part_bytes, (after - 1 - start) / part_bytes);
            prop_assert!((512 * least..=512 * (least + more)).contains(&operation.bytes));
            prop_assert!(unaligned || operation.bytes % (512 * least) == 0);
        }
    }

    #[test]
    fn every_block_is_visited_once_in_each_round(blocks in 1_u64..400, seed in any::<u64>()) {
        let shape = endless(Shape {
            visits_once: true,
            read_percent: Some(50),
            ..Shape::default()
        });
        let plan = Plan::new(&job(Pattern::Random, shape), 0, 1, 4096 * blocks, seed).expect("it fits");
        let operations = operations(Script::new(plan), 2 * blocks as usize);
        for round in operations.chunks(blocks as usize) {
            let places: HashSet<u64> = round.iter().map(|o| o.offset / 4096).collect();
            prop_assert_eq!(places.len() as u64, blocks);
        }
    }

    #[test]
    fn nothing_but_the_plan_decides(seed in any::<u64>(), slow in any::<u64>()) {
        let shape = Shape {
            read_percent: Some(30),
            random_percent: [Some(20), Some(70)],
            sizes: [Some(Sizes::Split(vec![(4096, 60), (65_536, 40)])), Some(Sizes::Range(4096, 32_768))],
            distribution: Distribution::Zipf(1.2),
            limits: [Limit { iops: Some(100.0), bytes_per_second: None }; 2],
            think: Some(Think { microseconds: 10, every: 3, spin_microseconds: 1 }),
            flush_every: Some(FlushEvery { writes: 5, metadata_too: false }),
            ..Shape::default()
        };
        let plan = Plan::new(&job(Pattern::Random, shape), 0, 1, 4 * MIB, seed).expect("it fits");
        let at_once = operations(Script::new(plan.clone()), usize::MAX);
        // The same on a target that takes its time and has others in flight.
        let mut script = Script::new(plan);
        let mut later = Vec::new();
        let mut now_ns = 0;
        loop {
            now_ns += slow % 1_000_000;
            let step = match script.next(now_ns, 7) {
                Step::Drain => script.next(now_ns, 0),
                step => step,
            };
            match step {
                Step::Do(operation) => later.push(operation),
                step => {
                    prop_assert_eq!(step, Step::Over);
                    break;
                }
            }
        }
        prop_assert_eq!(at_once.len(), later.len());
        for (a, b) in at_once.iter().zip(&later) {
            prop_assert_eq!((a.is_write, a.offset, a.bytes, a.flush), (b.is_write, b.offset, b.bytes, b.flush));
        }
    }
}

#[test]
fn a_region_is_covered_once_and_budgets_are_kept() {
    for pattern in [Pattern::Sequential, Pattern::Random] {
        let script = script_of(&job(pattern, Shape::default()), 1, MIB + 100);
        assert_eq!(operations(script, usize::MAX).len(), 256, "{pattern:?}");
    }
    let mixed = Shape { read_percent: Some(50), ..Shape::default() };
    let script = script_of(&job(Pattern::Sequential, mixed), 1, MIB + 100);
    assert_eq!(operations(script, usize::MAX).len(), 257);
    let mut capped = job(Pattern::Sequential, Shape::default());
    capped.stop.max_bytes = 10 * 4096 + 1;
    assert_eq!(operations(script_of(&capped, 1, MIB), usize::MAX).len(), 10);
    let counted = Shape { max_operations: Some(17), ..Shape::default() };
    let script = script_of(&job(Pattern::Random, counted), 1, MIB);
    assert_eq!(operations(script, usize::MAX).len(), 17);
}

#[test]
fn a_part_with_left_out_bytes_begins_again_until_the_amount_is_moved() {
    let shape = Shape { stride_bytes: 65_536, files: 2, ..Shape::default() };
    let mut strided = job(Pattern::Sequential, shape);
    strided.stop.max_bytes = 25 * 4096;
    let moved = operations(script_of(&strided, 1, 25 * 4096), usize::MAX);
    assert_eq!(moved.len(), 25);
    assert!(moved.iter().all(|operation| operation.offset % 49_152 == 0));
}

#[test]
fn split_sizes_have_their_shares() {
    let shape = endless(Shape {
        sizes: [None, Some(Sizes::Split(vec![(4096, 70), (65_536, 20), (1024, 10)]))],
        ..Shape::default()
    });
    let operations = operations(script_of(&job(Pattern::Random, shape), 1, 64 * MIB), 10_000);
    for (bytes, chance) in [(4096, 0.7), (65_536, 0.2), (1024, 0.1)] {
        let seen = operations.iter().filter(|o| o.bytes == bytes).count() as f64;
        let expected = 10_000.0 * chance;
        assert!((seen - expected).abs() < tolerance(10_000, chance), "{bytes}: {seen}");
    }
}

#[test]
fn a_limit_spaces_operations_evenly_and_a_stricter_one_wins() {
    let limited = |iops, bytes_per_second| {
        let shape = endless(Shape {
            limits: [Limit::default(), Limit { iops, bytes_per_second }],
            ..Shape::default()
        });
        let operations = operations(script_of(&job(Pattern::Random, shape), 1, MIB), 1001);
        operations.iter().map(|o| o.due_ns).collect::<Vec<_>>()
    };
    let due = limited(Some(200.0), None);
    assert_eq!(due[0], 0);
    assert!((1..=1000).all(|i| due[i].abs_diff(i as u64 * SECOND_NS / 200) <= 1));
    // 4096 bytes per operation: 409 600 bytes per second are 100 operations.
    let due = limited(Some(200.0), Some(409_600.0));
    assert_eq!(due[1000], 10 * SECOND_NS);
}

#[test]
fn each_direction_of_a_mix_keeps_its_own_rate() {
    let limit = |iops| Limit { iops: Some(iops), bytes_per_second: None };
    for poisson in [false, true] {
        let shape = endless(Shape {
            read_percent: Some(80),
            limits: [limit(100.0), limit(400.0)],
            poisson,
            ..Shape::default()
        });
        let operations = operations(script_of(&job(Pattern::Random, shape), 1, MIB), 5000);
        let reads = operations.iter().filter(|operation| !operation.is_write).count() as f64;
        assert!((reads - 1000.0).abs() < 150.0, "{reads} of 5000 read");
        let last_s = operations[4999].due_ns as f64 / 1e9;
        assert!((last_s - 10.0).abs() < 1.0, "{last_s} s for 5000 at 500 a second");
    }
}

/// A target that does an operation in `service_ns`, one at a time.
fn reads_and_writes(shape: Shape, service_ns: u64, seconds: u64) -> [usize; 2] {
    let mut script = script_of(&job(Pattern::Random, endless(shape)), 1, MIB);
    let mut counts = [0; 2];
    let mut now_ns = 0;
    while now_ns < seconds * SECOND_NS {
        let Step::Do(operation) = script.next(now_ns, 0) else { panic!("it has no end") };
        counts[usize::from(operation.is_write)] += 1;
        now_ns = now_ns.max(operation.due_ns) + service_ns;
    }
    counts
}

#[test]
fn a_rate_beyond_the_target_leaves_a_mix_its_shares() {
    let limit = |iops| Limit { iops: Some(iops), bytes_per_second: None };
    let mix = |limits| Shape { read_percent: Some(90), limits, ..Shape::default() };
    // 1000 a second are done, and 100,000 of each are allowed.
    let [reads, writes] = reads_and_writes(mix([limit(1e5); 2]), 1_000_000, 10);
    assert!((reads as f64 - 9000.0).abs() < tolerance(10_000, 0.9), "{reads}, {writes}");
    // A direction without a rate of its own takes all that the other leaves.
    let [reads, writes] = reads_and_writes(mix([limit(100.0), Limit::default()]), 1_000_000, 10);
    assert!((990..=1010).contains(&reads) && writes > 8900, "{reads}, {writes}");
}

#[test]
fn random_arrivals_keep_the_mean_rate() {
    let shape = endless(Shape {
        limits: [Limit::default(), Limit { iops: Some(100.0), bytes_per_second: None }],
        poisson: true,
        ..Shape::default()
    });
    let operations = operations(script_of(&job(Pattern::Random, shape), 1, MIB), 10_001);
    let last_s = operations[10_000].due_ns as f64 / 1e9;
    assert!((last_s - 100.0).abs() < 4.0, "{last_s}");
    // Distances of a Poisson process vary as much as they are long.
    let gaps: Vec<f64> =
        operations.windows(2).map(|o| (o[1].due_ns - o[0].due_ns) as f64 / 1e7).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    assert!((variance.sqrt() / mean - 1.0).abs() < 0.06, "{mean} {variance}");
}

#[test]
fn a_pause_waits_for_what_is_under_way() {
    let shape = endless(Shape {
        think: Some(Think { microseconds: 1000, every: 2, spin_microseconds: 300 }),
        ..Shape::default()
    });
    let mut script = script_of(&job(Pattern::Sequential, shape), 1, MIB);
    assert!(matches!(script.next(0, 0), Step::Do(_)));
    assert!(matches!(script.next(0, 1), Step::Do(_)));
    assert_eq!(script.next(5000, 1), Step::Drain);
    let Step::Do(after) = script.next(9000, 0) else {
        panic!("the pause comes with the next operation");
    };
    assert_eq!((after.due_ns, after.spin_ns), (1_009_000, 300_000));
}

#[test]
fn a_flush_waits_for_what_is_under_way_and_holds_up_the_rest() {
    let shape = endless(Shape {
        flush_every: Some(FlushEvery { writes: 3, metadata_too: true }),
        ..Shape::default()
    });
    let mut script = script_of(&job(Pattern::Sequential, shape), 1, MIB);
    let mut flushes = Vec::new();
    for number in 0..7 {
        let Step::Do(operation) = script.next(0, 0) else {
            panic!("operation {number}");
        };
        flushes.push(operation.flush.is_some());
        if operation.flush.is_some() {
            assert_eq!(script.next(0, 1), Step::Drain);
        }
    }
    assert_eq!(flushes, [false, false, true, false, false, true, false]);
}

#[test]
fn parts_and_files_are_visited_in_turn() {
    let visit = |order, turn| {
        let shape =
            Shape { files: 2, file_order: order, operations_per_file: turn, ..Shape::default() };
        let script = script_of(&job(Pattern::Sequential, shape), 2, 4 * 4096);
        let operations = operations(script, usize::MAX);
        operations.iter().map(|o| (o.file, o.offset / 4096)).collect::<Vec<_>>()
    };
    let round_robin = [(0, 0), (0, 2), (1, 0), (1, 2), (0, 1), (0, 3), (1, 1), (1, 3)];
    assert_eq!(visit(FileOrder::RoundRobin, 1), round_robin);
    let in_order = [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (1, 3)];
    assert_eq!(visit(FileOrder::Sequential, 1), in_order);
    assert_eq!(visit(FileOrder::RoundRobin, 2), in_order);
    let mut random = visit(FileOrder::Random, 1);
    assert_eq!(random.len(), 8);
    random.sort_unstable();
    random.dedup();
    assert!(random.len() < 8, "by chance alone not every block is visited once");
}

#[test]
fn what_is_cached_of_a_part_is_dropped_each_time_it_begins_again() {
    let drops = |pattern, shape: Shape, files: u32| -> Vec<(u64, u64, u64)> {
        let script = script_of(&job(pattern, endless(shape)), files, 16 * 4096);
        let operations = operations(script, 40 * files as usize);
        let dropped = operations.iter().filter_map(|o| Some((o.number, o.drops?)));
        dropped.map(|(number, stretch)| (number, stretch.offset, stretch.bytes)).collect()
    };
    let shape = || Shape { drops_cache: true, visits_once: true, ..Shape::default() };
    let all = 16 * 4096;
    for pattern in [Pattern::Sequential, Pattern::Random] {
        assert_eq!(drops(pattern, shape(), 1), [(16, 0, all), (32, 0, all)], "{pattern:?}");
        assert_eq!(drops(pattern, Shape { drops_cache: false, ..shape() }, 1), []);
    }
    // Each file of two by itself, from where the region begins in it.
    let half = Shape { offset_bytes: 8 * 4096, ..shape() };
    let (begin, bytes) = (8 * 4096, 8 * 4096);
    let of_two = drops(Pattern::Sequential, half, 2);
    assert_eq!(of_two[..3], [(16, begin, bytes), (17, begin, bytes), (32, begin, bytes)]);
    // The first write of a mix begins nothing again.
    let mix = Shape { read_percent: Some(50), ..shape() };
    let of_mix = drops(Pattern::Sequential, mix, 1);
    assert!(of_mix.iter().all(|(number, ..)| *number >= 16), "{of_mix:?}");
}

#[test]
fn strides_leave_out_and_go_back() {
    let places = |stride_bytes| {
        let shape = endless(Shape { stride_bytes, ..Shape::default() });
        let script = script_of(&job(Pattern::Sequential, shape), 1, 6 * 4096);
        let operations = operations(script, 7);
        operations.iter().map(|o| o.offset / 4096).collect::<Vec<_>>()
    };
    assert_eq!(places(4096), [0, 2, 4, 0, 2, 4, 0]);
    // As fio does: the first at the start, then from the end back.
    assert_eq!(places(-8192), [0, 4, 3, 2, 1, 0, 4]);
}

#[test]
fn random_places_come_in_runs() {
    let shape = endless(Shape { run_length: 4, ..Shape::default() });
    let operations = operations(script_of(&job(Pattern::Random, shape), 1, 1 << 40), 400);
    for run in operations.chunks(4) {
        assert!(run.windows(2).all(|pair| pair[1].offset == pair[0].offset + 4096));
    }
}

#[test]
fn appended_writes_grow_without_end_and_commit() {
    let mut job = job(Pattern::Sequential, Shape::default());
    job.durability = Durability::EachAppend;
    let operations = operations(script_of(&job, 1, 8192), 100);
    assert_eq!(operations.len(), 100);
    assert_eq!(operations[99].offset, 99 * 4096);
    assert!(operations.iter().all(|o| o.flush.is_some_and(|flush| !flush.alone)));
}

#[test]
fn copies_draw_other_numbers() {
    let shape = endless(Shape { copies: 2, ..Shape::default() });
    let job = job(Pattern::Random, shape);
    let of_copy = |copy| {
        let plan = Plan::new(&job, copy, 1, 1 << 40, 7).expect("it fits");
        operations(Script::new(plan), 3)
    };
    assert_ne!(of_copy(0), of_copy(1));
    assert_eq!(of_copy(1), of_copy(1));
}

#[test]
fn sides_of_a_sequential_mix_have_their_own_places() {
    let shape = Shape { read_percent: Some(50), ..Shape::default() };
    let operations = operations(script_of(&job(Pattern::Sequential, shape), 1, MIB), 100);
    for (side, is_write) in [(READS, false), (WRITES, true)] {
        let offsets: Vec<u64> =
            operations.iter().filter(|o| o.is_write == is_write).map(|o| o.offset / 4096).collect();
        let expected: Vec<u64> = (0..offsets.len() as u64).collect();
        assert_eq!(offsets, expected, "side {side}");
    }
}
