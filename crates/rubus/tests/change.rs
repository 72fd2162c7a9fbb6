//! The verbs that change a machine, from outside: everything up to the point where something would
//! be changed. The changing itself is proved in `rubus-apply` on a made-up machine.

use std::path::PathBuf;

use assert_cmd::Command;

fn rubus(changes: &std::path::Path) -> Command {
    let mut command = Command::cargo_bin("rubus").expect("cargo builds the program");
    command.env("RUBUS_CHANGES", changes);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn capture(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../captures")).join(name)
}

#[test]
fn the_recipes_are_listed() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = rubus(directory.path())
        .arg("recipes")
        .output()
        .expect("it runs");
    assert!(output.status.success());
    insta::assert_snapshot!(text(&output.stdout));
    let json = rubus(directory.path())
        .args(["recipes", "--json"])
        .output()
        .expect("it runs");
    let list: serde_json::Value = serde_json::from_slice(&json.stdout).expect("it is JSON");
    let names: Vec<&str> = (0..).map_while(|i| list[i]["name"].as_str()).collect();
    assert_eq!(
        names,
        ["desktop", "format", "raid0", "ramdisk", "swap", "zswap"]
    );
}

#[test]
fn a_plan_on_a_captured_board_says_what_is_in_its_way() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = rubus(directory.path())
        .arg("--machine")
        .arg(capture("pi4b-usb3-ssd"))
        .args(["plan", "zswap"])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    insta::assert_snapshot!(text(&output.stdout));
}

#[test]
fn what_cannot_be_is_refused_with_a_reason() {
    let directory = tempfile::tempdir().expect("a directory");
    let saved = directory.path().join("plan.json");
    std::fs::write(&saved, "{}").expect("a file");
    let saved = saved.display().to_string();
    let capture = capture("pi4b-usb3-ssd").display().to_string();
    for (arguments, words) in [
        (&["plan", "zswp"][..], "did you mean 'zswap'"),
        (
            &["plan", "zswap", "colour=red"],
            "it has: max-pool-percent, compressor",
        ),
        (&["plan", "zswap", "max-pool-percent=0"], "from 1 to 50"),
        (&["plan", "zswap", "max-pool-percent"], "OPTION=VALUE"),
        (&["apply", &saved, "--yes"], "is not a plan"),
        (&["apply", "no-such.json", "--yes"], "cannot read the plan"),
        (&["--machine", &capture, "apply", "zswap"], "captured one"),
        (&["undo", "--yes"], "nothing to undo"),
        (&["undo", "0009-zswap", "--yes"], "no change '0009-zswap'"),
    ] {
        let output = rubus(directory.path())
            .args(arguments)
            .output()
            .expect("it runs");
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(words), "{arguments:?}: {error}");
    }
}

#[test]
fn a_machine_without_changes_says_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = rubus(directory.path())
        .arg("status")
        .output()
        .expect("it runs");
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("No recipe has been applied"));
    let output = rubus(directory.path())
        .arg("resume")
        .output()
        .expect("it runs");
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("Nothing was interrupted"));
}
