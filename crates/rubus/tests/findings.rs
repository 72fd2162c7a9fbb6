//! Findings as their user meets them: in a survey, in a run that measured, on its page, and the list of the rules.

use std::collections::BTreeSet;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

fn rubus(home: &Path) -> Command {
    let mut command = Command::cargo_bin("rubus").expect("the program is built");
    command
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .env("XDG_DATA_HOME", home)
        .env("COLUMNS", "80");
    command
}

fn said(home: &Path, arguments: &[&str]) -> String {
    let output = rubus(home).args(arguments).output().expect("it runs");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {complaint}");
    String::from_utf8(output.stdout).expect("the program writes UTF-8")
}

fn json(home: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&said(home, arguments)).expect("it is JSON")
}

/// The names of the rules of a `findings` list, those of the moment left out.
fn rules(object: &Value) -> BTreeSet<String> {
    let findings = object["findings"].as_array().expect("a list of findings");
    let of_rules = findings.iter().filter(|finding| finding["kind"] == "rule");
    of_rules
        .map(|finding| finding["rule"].as_str().expect("a name").to_string())
        .filter(|rule| !rule.ends_with("-now") && rule != "hot")
        .collect()
}

const CAPTURE: [&str; 3] = ["--machine", "captures/pi4b-usb3-ssd", "survey"];

/// Findings come first and whole, each with the code that `explain` takes.
#[test]
fn a_survey_tells_all_with_their_codes_and_verbose_their_sources() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let short = said(home.path(), &CAPTURE);
    let long = said(home.path(), &[&CAPTURE[..], &["--verbose"]].concat());
    let found = rules(&json(home.path(), &[&CAPTURE[..], &["--json"]].concat()));
    assert!(found.len() > 5, "{found:?}");
    for text in [&short, &long] {
        for rule in &found {
            assert!(text.contains(&format!("[{rule}]")), "{rule} in {text}");
        }
    }
    let (before, _) = short.split_once("\nMachine\n").expect("the machine");
    assert!(before.contains("Findings: ") && !short.contains(" more: "), "{short}");
    assert!(long.contains("source: ") && !short.contains("source: "), "{long}");
    let findings = &long[long.find("Findings").expect("a title")..];
    let (findings, _) = findings.split_once("\nHealth\n").expect("the health");
    insta::assert_snapshot!(findings.to_string());
}

/// Of a finding of this machine, and of one that needs figures.
#[test]
fn a_code_is_explained_with_what_is_found_here() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let explained = |code| said(home.path(), &["--machine", CAPTURE[1], "explain", code]);
    insta::assert_snapshot!(
        [explained("usb3-disk-at-usb2"), explained("slow-commits"), explained("half-duplex")]
            .concat()
    );
    let refused = rubus(home.path()).args(["explain", "slow-comits"]).output().expect("it runs");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("slow-commits"));
}

#[test]
fn the_rules_are_listed_without_reading_the_machine() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let text = said(home.path(), &["survey", "--rules"]);
    let list = json(home.path(), &["survey", "--rules", "--json"]);
    let list = list.as_array().expect("a list");
    assert!(list.len() >= 60);
    for rule in list {
        let name = rule["rule"].as_str().expect("a name");
        assert!(text.contains(name), "{name}");
        assert!(rule["when"].as_str().is_some_and(|when| !when.is_empty()));
    }
    rubus(home.path()).args(["survey", "--rules", "--on", "nowhere.invalid"]).assert().code(2);
}

#[test]
fn a_run_that_measured_has_its_findings_in_json_and_on_its_page() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory on a disk");
    let page = home.path().join("page.html");
    let job = home.path().join("small.fio");
    std::fs::write(&job, "[small]\nrw=read\nbs=64k\nsize=1m\n").expect("it is written");
    let page_path = page.to_string_lossy();
    let place_path = place.path().to_string_lossy();
    let job_path = job.to_string_lossy();
    let run = json(
        home.path(),
        &[
            "bench",
            &place_path,
            "--fio-job",
            &job_path,
            "--json",
            "-",
            "--html",
            &page_path,
            "--no-history",
        ],
    );
    let survey = json(home.path(), &["survey", "--json"]);
    // What is of facts alone does not hang on the measuring.
    assert!(rules(&survey).is_subset(&rules(&run)), "{:?}\n{:?}", rules(&survey), rules(&run));
    let page = std::fs::read_to_string(page).expect("a page");
    for rule in rules(&run) {
        assert!(page.contains(&format!("rule {rule};")), "{rule}");
    }
}
