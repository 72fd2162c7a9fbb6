//! What a fleet costs grows with its boards and not with their square: memory and work are
//! counted by an allocator, so that nothing else on the machine matters.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use rubus_draw::Style;
use rubus_fixtures as fixture;
use rubus_fleet::compare::{BoardRuns, Document, Fleet, compare};
use rubus_fleet::figures::{self, OfBoard};
use rubus_fleet::{compare_text, inventory, settings, text};
use rubus_runs::compare::facts;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::result::Run;

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static TOTAL: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        TOTAL.fetch_add(layout.size(), Ordering::Relaxed);
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Debug)]
struct Cost {
    peak: usize,
    total: usize,
    text: usize,
}

/// Reads an inventory, takes a run of each board, and says what there is to say.
fn cost(count: usize) -> Cost {
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    TOTAL.store(0, Ordering::Relaxed);
    let list = format!("[shelf]\npi[1000:{}] ansible_user=pi\n", 999 + count);
    let boards = inventory::read("hosts", &list).expect("an inventory").boards;
    assert_eq!(boards.len(), count);
    let names: Vec<&str> = boards.iter().map(|board| board.name.as_str()).collect();
    let runs: Vec<Run> = (0..count).map(run).collect();
    let all = runs.iter().enumerate().map(|(board, run)| OfBoard { board, number: None, run });
    let table = figures::table(&all.collect::<Vec<_>>());
    let outliers = figures::outliers(&table, &names);
    let facts: Vec<_> =
        runs.iter().zip(&names).map(|(run, name)| (*name, facts::of_run(run))).collect();
    let differences = settings::differences(&facts);
    assert_eq!(differences.len(), 2, "{differences:?}");
    let shown: Vec<_> = names.iter().map(|name| text::Board { name, failure: None }).collect();
    let words = text::heading("Bench", &shown, Style::PLAIN)
        + &text::differences(&differences, Style::PLAIN)
        + &text::figures(&table, &outliers, &shown, Style::PLAIN)
        + &text::outliers(&outliers, Style::PLAIN);
    Cost {
        peak: PEAK.load(Ordering::Relaxed) - before,
        total: TOTAL.load(Ordering::Relaxed),
        text: words.len(),
    }
}

/// Each board has a kernel of its own and one of ten filesystems.
fn run(number: usize) -> Run {
    let mut run = fixture::remote_run();
    run.seed = number as u64;
    run.machine.system.kernel_release = Fact::known(format!("6.12.{number}"), "a test");
    run.target.filesystem = Some(format!("fs{}", number % 10));
    run
}

/// Compares two documents of this many boards, and says what there is to say.
fn cost_of_comparing(count: usize) -> Cost {
    let document = |kernels: usize| Document {
        command: "bench".into(),
        boards: (0..count)
            .map(|number| BoardRuns {
                name: format!("pi{number:04}"),
                failure: None,
                runs: vec![run(kernels + number)],
                history: vec![None],
            })
            .collect(),
    };
    let (before, after) = (document(0), document(10_000));
    let held = NOW.load(Ordering::Relaxed);
    PEAK.store(held, Ordering::Relaxed);
    TOTAL.store(0, Ordering::Relaxed);
    let [before, after] = [&before, &after].map(|document| Fleet { name: "a", document });
    let comparison = compare(before, after);
    assert_eq!((comparison.rows.len(), comparison.changes.len()), (count, count));
    let words = compare_text::render(&comparison, Style::PLAIN);
    Cost {
        peak: PEAK.load(Ordering::Relaxed) - held,
        total: TOTAL.load(Ordering::Relaxed),
        text: words.len(),
    }
}

#[test]
fn twice_the_boards_cost_twice_the_memory_and_work() {
    grows_with_the_boards(cost);
    // The allocator counts for the whole process, so one after the other.
    grows_with_the_boards(cost_of_comparing);
}

fn grows_with_the_boards(cost: fn(usize) -> Cost) {
    let mut before = cost(25);
    for count in [50, 100, 200, 400] {
        let now = cost(count);
        for (what, less, more) in [
            ("peak", before.peak, now.peak),
            ("total", before.total, now.total),
            ("text", before.text, now.text),
        ] {
            let times = more as f64 / less as f64;
            assert!(times < 2.15, "{count} boards: {what} grew {times:.2} times");
        }
        if count == 200 {
            assert!(now.peak < 200 * 256 * 1024, "{now:?}");
        }
        before = now;
    }
}
