//! `rubus compare` of fleets: what is said, exit statuses, and what is refused in words.

use std::path::Path;

use rubus_fixtures as fixture;
use serde_json::{Value, json};

use super::{answer, file, home};

/// A document as `rubus bench --on … --json FILE` writes it: boards with a run each, slower by these
/// factors.
fn fleet(slower: &[f64]) -> Value {
    let board = |(at, slower): (usize, &f64)| {
        let mut run = fixture::remote_run();
        for result in &mut run.results {
            result.iops = result.iops.scaled(1.0 / slower);
            result.bytes_per_second = result.bytes_per_second.scaled(1.0 / slower);
        }
        json!({
            "name": format!("pi{:02}", at + 1), "address": null, "groups": [], "status": 0,
            "failure": null, "runs": [run], "history": [at + 1],
        })
    };
    let boards: Vec<Value> = slower.iter().enumerate().map(board).collect();
    json!({"command": "bench", "boards": boards, "differences": [], "outliers": null})
}

fn write(home: &Path, name: &str, value: &Value) {
    std::fs::write(home.join(name), value.to_string()).expect("a file");
}

/// Four boards before, and after with a slow one.
fn two(home: &Path) {
    write(home, "before.json", &fleet(&[1.0; 4]));
    write(home, "after.json", &fleet(&[1.0, 1.02, 2.5, 0.99]));
}

#[test]
fn the_board_that_became_slower_is_named_and_is_a_regression() {
    let home = home();
    two(home.path());
    let (status, text, errors) = answer(home.path(), &["compare", "before.json", "after.json"]);
    assert_eq!((status, errors.as_str()), (0, ""));
    assert!(text.starts_with("Fleet comparison: 4 boards measured in both\n"), "{text}");
    assert!(text.contains("Slower boards\n  pi03: sequential read 0.40 times"), "{text}");
    assert!(!text.contains("Faster boards"), "{text}");
    let gate = |order: [&str; 2], option: &str| {
        answer(home.path(), &["compare", order[0], order[1], option])
    };
    let order = ["before.json", "after.json"];
    let (status, _, errors) = gate(order, "--fail-on-regression");
    assert_eq!(status, 1, "{errors}");
    let words = "rubus: regression: pi03: Sequential read is 0.40 times that of before.json";
    assert!(errors.contains(words), "{errors}");
    assert_eq!(gate(order, "--fail-on-regression=20").0, 1);
    assert_eq!(gate(order, "--fail-on-regression=70").0, 0);
    let back = ["after.json", "before.json"];
    assert_eq!(gate(back, "--fail-on-regression").0, 0, "faster is no regression");
}

#[test]
fn the_json_has_every_figure_and_standard_input_is_read() {
    let home = home();
    two(home.path());
    let (status, text, _) =
        answer(home.path(), &["compare", "before.json", "after.json", "--json"]);
    assert_eq!(status, 0);
    let value: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value["rows"][2]["board"], "pi03");
    assert_eq!(value["rows"][2]["figures"][0]["word"], "slower");
    assert_eq!(value["comparisons"], 20);
    let both = format!("{}\n{}", fleet(&[1.0; 3]), fleet(&[1.1; 3]));
    let output = super::rubus(home.path())
        .args(["compare", "-"])
        .write_stdin(both)
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("standard input#2: bench of 3 boards"), "{text}");
    write(home.path(), "done.json", &value);
    let (status, _, errors) = answer(home.path(), &["compare", "done.json", "before.json"]);
    assert_eq!(status, 2);
    assert!(errors.contains("done.json is already a comparison"), "{errors}");
}

/// Status 2, and an error with these words.
fn refused(home: &Path, arguments: &[&str], words: &[&str]) {
    let (status, text, errors) = answer(home, arguments);
    assert_eq!((status, text.as_str()), (2, ""), "{arguments:?}: {errors}");
    for word in words {
        assert!(errors.contains(word), "{arguments:?}: {word}: {errors}");
    }
}

#[test]
fn what_cannot_be_compared_is_refused_with_what_to_do() {
    let home = home();
    let home = home.path();
    two(home);
    file(home, "run.json", 1.0);
    let say = |name: &str, value: Value| write(home, name, &value);
    say(
        "survey.json",
        json!({"command": "survey", "differences": [],
        "boards": [{"name": "a", "status": 0, "failure": null, "runs": [], "history": []}]}),
    );
    say(
        "down.json",
        json!({"command": "bench", "differences": [],
        "boards": [{"name": "a", "failure": "Connection refused", "runs": []}]}),
    );
    say("broken.json", json!({"command": "bench", "differences": [], "boards": [{"nam": 1}]}));
    let mut twice = fleet(&[1.0; 2]);
    twice["boards"][1]["name"] = "pi01".into();
    say("twice.json", twice);
    let mut others = fleet(&[1.0; 6]);
    for board in others["boards"].as_array_mut().expect("a list") {
        let name = format!("x-{}", board["name"].as_str().expect("a name"));
        board["name"] = name.into();
    }
    say("others.json", others);
    let with = |other: &'static str| ["compare", "before.json", other];
    refused(
        home,
        &with("run.json"),
        &["cannot compare before.json, a fleet, with run.json", "jq '.boards[]"],
    );
    refused(home, &["compare", "run.json", "after.json"], &["after.json, a fleet, with run.json"]);
    refused(home, &["compare", "before.json"], &["nothing to compare before.json with"]);
    refused(
        home,
        &["compare", "before.json", "before.json"],
        &["nothing to compare before.json with: it is named twice"],
    );
    refused(
        home,
        &["compare", "before.json", "after.json", "before.json"],
        &["3 fleets at once", "before and after"],
    );
    refused(
        home,
        &with("survey.json"),
        &["survey.json", "`rubus survey`, which measures nothing", "rubus bench --on"],
    );
    refused(home, &with("down.json"), &["no board has a run", "a: Connection refused"]);
    refused(home, &with("broken.json"), &["looks like a fleet, but does not read as one"]);
    refused(home, &with("twice.json"), &["the board pi01 twice"]);
    refused(
        home,
        &with("others.json"),
        &["no board has a run in both", "pi01: only in before.json", "and 7 more"],
    );
    for option in ["--csv=-", "--markdown=-", "--html=x.html", "--reference"] {
        let name = option.split('=').next().expect("a name");
        let arguments = ["compare", "before.json", "after.json", option];
        refused(home, &arguments, &[name]);
    }
    refused(
        home,
        &["advise", "--from", "before.json"],
        &["before.json is the document of a fleet"],
    );
}
