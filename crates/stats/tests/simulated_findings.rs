//! The intervals of findings hold the truth on simulated queues, sweeps and sustained writes, and
//! cliffs that are not there are not found. The tables in `docs/data` show the same numbers with more trials.

mod simulate_findings;

use simulate_findings::{COURSES, LINES, QUEUES, bends, cliffs, knees};

const TRIALS: usize = 200;

const KNEES: &str = include_str!("../../../docs/data/knee.tsv");
const BENDS: &str = include_str!("../../../docs/data/bend.tsv");
const CLIFFS: &str = include_str!("../../../docs/data/cliff.tsv");

/// The number in a column (from 0) of a row of a table, as a share.
fn documented(table: &str, name: &str, column: usize) -> f64 {
    let row = table.lines().find(|line| line.starts_with(&format!("{name}\t")));
    let row = row.unwrap_or_else(|| panic!("{name} has no row"));
    let cell = row.split('\t').nth(column).expect("the column is there");
    let number = cell.trim_end_matches(" %");
    number.parse::<f64>().expect("a number in the table") / 100.0
}

fn agrees(table: &str, name: &str, column: usize, found: f64) {
    let told = documented(table, name, column);
    assert!((told - found).abs() < 0.04, "{name}: {told} told, {found} found");
}

#[test]
fn the_knee_is_where_the_queue_has_it() {
    // Together they take a minute on one core.
    let found = std::thread::scope(|scope| {
        let simulations = QUEUES.map(|(name, queue, deviation)| {
            let simulation = scope.spawn(move || knees(queue, deviation, TRIALS));
            (name, queue, deviation, simulation)
        });
        simulations.map(|(name, queue, deviation, simulation)| {
            let got = simulation.join().expect("a simulation ends");
            (name, queue, deviation, got)
        })
    });
    for (name, queue, deviation, got) in found {
        assert!(got.knee.coverage >= 0.90, "{name}: {got:?}");
        assert!(got.ceiling.coverage >= 0.90, "{name}: {got:?}");
        // Wide intervals would be an easy way to hold the truth.
        assert!(got.knee.median_half_width <= 3.0 * deviation, "{name}: {got:?}");
        assert!((got.knee.bias - 1.0).abs() < 0.025, "{name}: {got:?}");
        assert!(got.reached >= 0.97, "{name}: {got:?}");
        let is_one = queue.knee() == 1.0;
        assert_eq!(got.one_at_a_time >= 0.97, is_one, "{name}: {got:?}");
        assert_eq!(got.one_at_a_time <= 0.01, !is_one, "{name}: {got:?}");
        agrees(KNEES, name, 3, got.knee.coverage);
    }
}

#[test]
fn the_bend_is_where_the_line_has_it() {
    for (name, setup_s, rate, deviation) in LINES {
        let (size, rate) = bends(setup_s, rate, deviation, TRIALS);
        assert!(size.coverage >= 0.90 && rate.coverage >= 0.90, "{name}: {size:?} {rate:?}");
        assert!(size.median_half_width <= 3.0 * deviation, "{name}: {size:?}");
        assert!((size.bias - 1.0).abs() < 0.025, "{name}: {size:?}");
        agrees(BENDS, name, 2, size.coverage);
    }
}

#[test]
fn a_cliff_is_found_where_it_is_and_nowhere_else() {
    for (name, course) in &COURSES {
        let got = cliffs(course, TRIALS);
        if course.levels[0] > course.levels[1] {
            assert!(got.found >= 0.98, "{name}: {got:?}");
            assert!(got.coverage >= 0.90, "{name}: {got:?}");
            assert!(got.worst <= 0.05, "{name}: {got:?}");
        } else {
            assert!(got.found <= 0.02, "{name}: {got:?}");
        }
        agrees(CLIFFS, name, 1, got.found);
    }
}
