//! Five boards at two times, each behind an ssh server of its own: the one that became slower is named.

use crate::common::shelf::{Fault, Shelf};
use crate::fleet::{GOOD, JOB, Lab};

/// Reads a second of a board that became so slow that a busy machine does not hide it.
const VERY_SLOW: u64 = GOOD / 4;

#[test]
fn a_fleet_at_two_times_names_the_board_that_became_slower_and_has_a_page() {
    let Some(mut lab) = Lab::start("a fleet at two times") else {
        return;
    };
    let path = |name: &str| lab.home.path().join(name).display().to_string();
    let [job, before, after, page] =
        ["reads.fio", "before.json", "after.json", "fleet.html"].map(path);
    std::fs::write(&job, JOB).expect("a file");
    // Two at once, so that the program's way to one board disturbs no other for long.
    let bench = ["bench", "disk", "--fio-job", &job, "--at-once", "2"];
    for name in ["pi01", "pi02", "pi03", "pi04", "pi05"] {
        lab.shelf.add(name, GOOD);
    }
    let answer = lab.run(&[&bench[..], &["--no-html", "--json", &before]].concat());
    assert_eq!(answer.status, Some(0), "{answer}");
    // The same boards another day.
    lab.shelf = Shelf::new();
    for (name, reads) in [("pi01", GOOD), ("pi02", GOOD), ("pi03", VERY_SLOW), ("pi06", GOOD)] {
        lab.shelf.add(name, reads);
    }
    lab.shelf.add_broken("pi04", Fault::Refuses);
    let answer = lab.run(&[&bench[..], &["--html", &page, "--json", &after]].concat());
    assert_eq!(answer.status, Some(2), "{answer}");

    let answer = lab.home.run(&["compare", &before, &after, "--json"]);
    assert_eq!(answer.status, Some(0), "{answer}");
    let compared = answer.json();
    let rows = compared["rows"].as_array().expect("a list");
    let words: Vec<_> = rows
        .iter()
        .map(|row| {
            let figures = row["figures"].as_array().expect("a list");
            let known = figures.iter().find(|figure| !figure.is_null());
            (row["board"].clone(), known.expect("a figure").clone())
        })
        .collect();
    assert_eq!(words.len(), 3, "{answer}");
    for (board, figure) in &words {
        let (word, truth) = if board == "pi03" { ("slower", 0.25) } else { ("no_evidence", 1.0) };
        assert_eq!(figure["word"], word, "{board}: {figure}");
        // An unbounded interval is null.
        let bound = |end: &str| figure["ratio"][end].as_f64().unwrap_or(f64::INFINITY);
        assert!(bound("low") < truth && bound("high") > truth, "{board}: {figure}");
    }
    let missing = compared["missing"].as_array().expect("a list");
    let missing: Vec<String> = missing
        .iter()
        .map(|one| format!("{} {}", one["board"], one["obstacle"]).replace('"', ""))
        .collect();
    assert_eq!(missing, ["pi04 failed_after", "pi05 only_before", "pi06 only_after"]);

    let answer = lab.home.run(&["compare", &before, &after, "--fail-on-regression"]);
    assert_eq!(answer.status, Some(1), "{answer}");
    assert!(answer.stderr.contains("regression: pi03"), "{answer}");
    assert!(answer.says("pi04: failed in"), "{answer}");

    let page = std::fs::read_to_string(&page).expect("the page");
    for words in ["pi03:disk <span class=\"badge\">slow", "1 board failed.", "Permission denied"] {
        assert!(page.contains(words), "{words}");
    }
}
