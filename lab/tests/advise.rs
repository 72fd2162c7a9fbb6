//! Advice that measures: `advise --measure` runs what it says is not known, and then goes by what was measured.

use crate::common::program::{Answer, Home};
use crate::common::{can_run, report, take_turns};
use serde_json::Value;

/// Where the system is now.
fn now(advice: &Value) -> Option<&Value> {
    let candidates = advice["candidates"].as_array()?;
    candidates.iter().find(|candidate| candidate["is_now"] == true)
}

fn advise(home: &Home, arguments: &[&str]) -> Answer {
    let answer = home.run(&[&["advise", "--for", "logger", "--json"], arguments].concat());
    assert_eq!(answer.status, Some(0), "{answer}");
    answer
}

#[test]
fn what_is_measured_for_advice_is_what_it_says_then() {
    let _turn = take_turns();
    if !can_run("advice that measures", &[]) {
        return;
    }
    let home = Home::new();
    let before = advise(&home, &[]).json();
    let Some(place) = now(&before) else {
        report("the root of this machine is on no disk that is seen: nothing to measure");
        return;
    };
    assert_ne!(place["basis"]["commits"], "measured", "{place}");
    assert_eq!(before["curve"]["basis"], "assumed");
    assert_eq!(home.runs(), 0);

    let measuring = advise(&home, &["--measure"]);
    let after = measuring.json();
    let place = now(&after).expect("it is where it was");
    assert_eq!(after["curve"]["basis"], "measured");
    let source = place["source"].as_str().expect("a text");
    assert!(source.contains("measured on"), "{source}");
    let name = place["name"].as_str().expect("a name");
    let said_before = measuring.stderr.contains(&format!("{name}, "));
    assert!(said_before, "{measuring}");

    // The figures are those of the run that is in the history. What did not settle there is said not to have; without a lower
    // end it only bounds what is usual.
    let run = home.run(&["history", "show", "1", "--json"]).json();
    let results = run["results"].as_array().expect("results");
    let pairs = [
        ("commit", "commits", "iops"),
        ("random-write", "random_write", "iops"),
        ("sequential-read", "sequential_read", "bytes_per_second"),
        ("sequential-write", "sequential_write", "bytes_per_second"),
    ];
    let mut all = true;
    for (job, figure, unit) in pairs {
        let result = results.iter().find(|result| result["job"] == job);
        let result = result.unwrap_or_else(|| panic!("no {job} in {run}"));
        let is_sound = result["outcome"] != "inconclusive";
        all &= is_sound;
        let rate = |end: &str| result[unit][end].as_f64();
        let is_known = is_sound || rate("low").is_some_and(|low| low > 0.0);
        let basis = &place["basis"][figure];
        assert_eq!(basis == "measured", is_sound, "{figure}: {place}");
        assert_eq!(basis == "unsettled", is_known && !is_sound, "{figure}: {place}");
        let measured = rate("value").expect("a rate");
        let said = place["figures"][figure]["value"].as_f64();
        let said = said.expect("a figure");
        // A bus in front of it may be known to carry a little less.
        let is_near = (said / measured - 1.0).abs() < 0.05;
        assert!(is_near || !is_known, "{figure}: {said} is not {measured}");
        assert!(is_sound || !is_known || source.contains("not settled"), "{source}");
    }
    // What was measured is asked for no more.
    let open = after["unknown"].as_array().expect("a list");
    let is_of_it = |unknown: &Value| {
        let what = unknown["what"].as_str().unwrap_or_default();
        what.starts_with(&format!("{name}, "))
    };
    assert!(!all || !open.iter().any(is_of_it), "{open:?}");
    // And later advice, which measures nothing, says the same.
    let later = advise(&home, &[]).json();
    let later = now(&later).expect("it is where it was");
    assert_eq!(later["figures"]["commits"], place["figures"]["commits"]);
}
