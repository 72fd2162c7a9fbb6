//! `rubus history` as its user meets it: labels, filters, deletion, export, import, tables.

use std::path::Path;

use assert_cmd::Command;
use rubus_fixtures as fixture;
use rubus_vocabulary::result::Run;

fn rubus(home: &Path) -> Command {
    let mut command = Command::cargo_bin("rubus").expect("the program is built");
    command
        .current_dir(home)
        .env("XDG_DATA_HOME", home)
        .env_remove("NO_COLOR")
        .env("COLUMNS", "80");
    command
}

/// Status, standard output and standard error.
fn answer(home: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = rubus(home).args(arguments).output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (output.status.code().expect("no signal"), text(&output.stdout), text(&output.stderr))
}

/// A home whose history has two runs: 1 of the SD card, 2 of another suite an hour later.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a temporary directory");
    let card = fixture::slow_sd_card_run();
    let mut other: Run = card.clone();
    other.started = "2026-11-21T02:02:03.000Z".into();
    other.suite = "full".into();
    other.target.path = "/srv/data".into();
    let text = serde_json::to_string(&vec![card, other]).expect("JSON");
    std::fs::write(home.path().join("runs.json"), text).expect("a file");
    let (status, _, errors) = answer(home.path(), &["history", "import", "runs.json"]);
    assert_eq!(status, 0, "{errors}");
    assert_eq!(errors, "imported: 2 runs as 1 to 2; there already: 0\n");
    home
}

fn numbers(home: &Path, arguments: &[&str]) -> Vec<i64> {
    let all: Vec<&str> = ["history", "--json"].iter().chain(arguments).copied().collect();
    let (status, text, errors) = answer(home, &all);
    assert_eq!(status, 0, "{errors}");
    let list: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let list = list.as_array().expect("a list");
    list.iter().map(|run| run["id"].as_i64().expect("a number")).collect()
}

#[test]
fn runs_are_listed_newest_first_and_filtered() {
    let home = home();
    assert_eq!(numbers(home.path(), &[]), [2, 1]);
    assert_eq!(numbers(home.path(), &["--suite", "full"]), [2]);
    assert_eq!(numbers(home.path(), &["--target", "/HOME"]), [1]);
    assert_eq!(numbers(home.path(), &["--board", "raspberry pi 3"]), [2, 1]);
    assert_eq!(numbers(home.path(), &["--since", "2026-11-21T02"]), [2]);
    assert_eq!(numbers(home.path(), &["--label", "x"]), [] as [i64; 0]);
    let (_, text, _) = answer(home.path(), &["history", "--suite", "none"]);
    assert_eq!(text, "none of the 2 runs is like that\n");
    let (status, _, errors) = answer(home.path(), &["history", "--since", "yesterday"]);
    assert_eq!(status, 2);
    assert!(errors.contains("write 2026-11-21"), "{errors}");
}

#[test]
fn a_label_names_a_run_wherever_a_run_is_named() {
    let home = home();
    let path = home.path();
    assert_eq!(answer(path, &["history", "label", "1", "before"]).0, 0);
    assert_eq!(numbers(path, &["--label", "before"]), [1]);
    let (status, text, errors) = answer(path, &["compare", "before", "last"]);
    assert_eq!(status, 0, "{errors}");
    assert!(text.contains("run 2 against before (run 1)"), "{text}");
    let (_, shown, _) = answer(path, &["history", "show", "before"]);
    let (_, again, _) = answer(path, &["history", "show", "last~1"]);
    assert!(!shown.is_empty() && shown == again);
    // What people type first.
    assert_eq!(answer(path, &["history", "before"]).1, shown);
    let (_, last, _) = answer(path, &["history", "show", "last"]);
    for typed in [&["history", "last"][..], &["history", "show"], &["history", "2"]] {
        assert_eq!(answer(path, typed).1, last, "{typed:?}");
    }
    let (status, text, _) = answer(path, &["history", "last", "--json"]);
    assert!(status == 0 && text.starts_with('{'), "{text}");
    assert_eq!(answer(path, &["history", "last", "--suite", "full"]).0, 2);
    answer(path, &["history", "label", "last", "before"]);
    let (_, _, errors) = answer(path, &["history", "show", "before"]);
    assert!(errors.contains("several runs have the label 'before'; this is run 2"), "{errors}");
    assert_eq!(answer(path, &["history", "label", "2", "--remove"]).0, 0);
    for bad in ["7", "last", "last~2", "", "-"] {
        assert_eq!(answer(path, &["history", "label", "1", bad]).0, 2, "{bad}");
    }
    let (status, _, errors) = answer(path, &["history", "show", "after"]);
    assert_eq!(status, 2);
    assert!(errors.contains("no run in the history has the label 'after'"), "{errors}");
    let (status, _, errors) = answer(path, &["compare", "last~5", "1"]);
    assert_eq!(status, 2);
    assert!(errors.contains("the history has 2 runs"), "{errors}");
}

#[test]
fn nothing_is_deleted_without_a_yes_and_pages_go_with_their_runs() {
    let home = home();
    let path = home.path();
    let pages = path.join("rubus/pages");
    std::fs::create_dir_all(&pages).expect("a directory");
    std::fs::write(pages.join("run-1.html"), "page").expect("a page");
    let (status, _, errors) = answer(path, &["history", "delete", "1"]);
    assert_eq!(status, 2);
    assert!(errors.contains("use --yes"), "{errors}");
    assert_eq!(numbers(path, &[]), [2, 1]);
    assert_eq!(answer(path, &["history", "delete", "1", "9", "--yes"]).0, 2);
    assert_eq!(numbers(path, &[]), [2, 1]);
    assert_eq!(answer(path, &["history", "delete", "1", "--yes"]).0, 0);
    assert_eq!(numbers(path, &[]), [2]);
    assert!(!pages.join("run-1.html").exists());
    answer(path, &["history", "import", "runs.json"]);
    assert_eq!(numbers(path, &[]), [2, 3], "number 1 is not given again");
}

#[test]
fn an_export_moves_a_history_to_another_home_once() {
    let home = home();
    answer(home.path(), &["history", "label", "2", "before"]);
    let (status, lines, _) = answer(home.path(), &["history", "export"]);
    assert_eq!((status, lines.lines().count()), (0, 2));
    let other = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(other.path().join("export.jsonl"), &lines).expect("a file");
    for (added, known) in [("2 runs as 1 to 2", 0), ("0 runs", 2)] {
        let (status, _, errors) = answer(other.path(), &["history", "import", "export.jsonl"]);
        assert_eq!(status, 0);
        assert_eq!(errors, format!("imported: {added}; there already: {known}\n"));
    }
    assert_eq!(numbers(other.path(), &["--label", "before"]), [2]);
    // An export is something that can be compared.
    let (status, text, errors) = answer(other.path(), &["compare", "export.jsonl"]);
    assert_eq!(status, 0, "{errors}");
    assert!(text.contains("export.jsonl#2"), "{text}");
    let (status, _, errors) = answer(other.path(), &["history", "import", "absent"]);
    assert_eq!(status, 2);
    assert!(errors.contains("cannot read absent"), "{errors}");
}

#[test]
fn a_run_is_shown_as_csv_and_markdown() {
    let home = home();
    let (status, csv, _) = answer(home.path(), &["history", "show", "1", "--csv=-"]);
    assert_eq!(status, 0);
    assert!(csv.starts_with("started_utc,") && csv.lines().count() == 11, "{csv}");
    let (_, markdown, _) = answer(home.path(), &["history", "show", "1", "--markdown=-"]);
    assert!(markdown.contains("| job | rate | 95 % interval |"), "{markdown}");
    let both = ["history", "show", "1", "--csv", "r.csv", "--markdown", "r.md"];
    let (_, text, _) = answer(home.path(), &both);
    assert!(text.starts_with("rubus "), "{text}");
    assert!(home.path().join("r.csv").exists() && home.path().join("r.md").exists());
}
