//! `rubus status` and `rubus verify` as their user meets them, on a change of a few files.

use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use serde_json::{Value, json};

fn rubus(home: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::cargo_bin("rubus").expect("it is built");
    command
        .args(arguments)
        .env("RUBUS_CHANGES", home.join("changes"))
        .env("NO_COLOR", "1")
        .output()
        .expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A plan that makes a file and promises three things: one of a file, as a stand-in for a setting of the kernel, one
/// that never comes true, and only after a start, and one about a disk that does not exist.
fn plan(home: &Path) -> Value {
    let made = home.join("made");
    json!({
        "format": 1, "recipe": "example", "options": {}, "title": "Make a file.",
        "made": "2026-11-21T00:00:00Z", "checks": [], "notes": [], "needs_boot": true,
        "steps": [{
            "id": "file", "why": "It is wanted.",
            "action": {"do": "write_file", "path": made, "was": null,
                       "becomes": {"text": "20\n", "mode": 420}},
        }],
        "promises": [
            {"what": "it says twenty", "needs_boot": false,
             "look": {"look": "knob", "path": made, "value": "20"}},
            {"what": "something else is mounted", "needs_boot": true,
             "look": {"look": "mounted", "at": "/no/such/place", "kind": "btrfs", "uuid": "x", "options": []}},
            {"what": "no swap is on it", "needs_boot": false,
             "look": {"look": "no_swap_on_disk", "disk": "no-such-disk"}},
        ],
    })
}

fn applied(home: &Path) {
    let path = home.join("plan.json");
    std::fs::write(&path, plan(home).to_string()).expect("it is written");
    let output = rubus(home, &["apply", path.to_str().expect("it is text"), "--yes"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn every_promise_is_looked_at_and_the_status_is_the_answer() {
    let home = tempfile::tempdir().expect("a directory");
    let none = rubus(home.path(), &["verify"]);
    assert_eq!(none.status.code(), Some(0));
    assert!(text(&none.stdout).contains("nothing is promised"));
    applied(home.path());
    let output = rubus(home.path(), &["verify", "--json"]);
    // One of them comes true only after a start.
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let standings: Vec<&str> = answer["changes"][0]["promises"]
        .as_array()
        .expect("promises")
        .iter()
        .map(|promise| promise["standing"].as_str().expect("a word"))
        .collect();
    assert_eq!(standings, ["holds", "after_start", "holds"]);

    std::fs::write(home.path().join("made"), "30\n").expect("it is written");
    let output = rubus(home.path(), &["verify", "0001-example"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    assert!(said.contains("NO    it says twenty"), "{said}");
    assert!(said.contains("made is 30"), "{said}");
    assert!(said.contains("later something else is mounted"), "{said}");
    let output = rubus(home.path(), &["verify", "0009-none"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn after_another_start_nothing_may_wait_any_more() {
    let home = tempfile::tempdir().expect("a directory");
    applied(home.path());
    let journal = home.path().join("changes/0001-example/journal");
    let records = std::fs::read_to_string(&journal).expect("it is there");
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("it is Linux");
    assert!(records.contains(boot.trim()), "{records}");
    std::fs::write(&journal, records.replace(boot.trim(), "another")).expect("it is written");
    let output = rubus(home.path(), &["verify"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    assert!(said.contains("NO    something else is mounted"), "{said}");
}

#[test]
fn a_status_has_receipts_and_knows_a_journal_that_was_copied_too_early() {
    let home = tempfile::tempdir().expect("a directory");
    applied(home.path());
    let output = rubus(home.path(), &["status", "0001-example"]);
    let said = text(&output.stdout);
    assert!(said.contains("as planned: 3 bytes, mode 644"), "{said}");
    assert!(said.contains("only after a restart"), "{said}");
    let output = rubus(home.path(), &["status", "--json"]);
    let list: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(list[0]["steps"][0]["state"], "done");
    assert_eq!(list[0]["waits_for_start"], true);

    // As on a new root: the copy of the journal ends before the last step.
    let journal = home.path().join("changes/0001-example/journal");
    let records = std::fs::read_to_string(&journal).expect("it is there");
    let first: String = records.lines().take(2).map(|line| format!("{line}\n")).collect();
    std::fs::write(&journal, first).expect("it is written");
    let output = rubus(home.path(), &["status"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    assert!(said.contains("applied, but the journal on this root ends early"), "{said}");
    assert!(!said.contains("HALF DONE"), "{said}");
    let output = rubus(home.path(), &["resume"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let output = rubus(home.path(), &["status"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
}
