//! `rubus compare` as its user meets it: files of ours and of fio, captures, published figures,
//! exit statuses, errors in words.

#[path = "compare/fleets.rs"]
mod fleets;

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use rubus_fixtures as fixture;
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::result::Run;

/// The program with a home of its own, started there.
fn rubus(home: &Path) -> Command {
    let mut command = Command::cargo_bin("rubus").expect("the program is built");
    command
        .current_dir(home)
        .env("XDG_DATA_HOME", home)
        .env_remove("NO_COLOR")
        .env("COLUMNS", "80");
    command
}

fn home() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// Status, standard output and standard error.
fn answer(home: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = rubus(home).args(arguments).output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (output.status.code().expect("no signal"), text(&output.stdout), text(&output.stderr))
}

/// The fixture with every rate times a factor, in a file.
fn file(home: &Path, name: &str, factor: f64) -> PathBuf {
    let path = home.join(name);
    std::fs::write(&path, serde_json::to_string(&run(factor)).expect("JSON")).expect("a file");
    path
}

fn run(factor: f64) -> Run {
    let mut run = fixture::slow_sd_card_run();
    for result in &mut run.results {
        let rate = result.bytes_per_second;
        result.bytes_per_second =
            Estimate::new(rate.value * factor, rate.low * factor, rate.high * factor);
    }
    run
}

#[test]
fn two_files_are_compared_and_a_regression_is_status_1() {
    let home = home();
    file(home.path(), "before.json", 1.0);
    file(home.path(), "after.json", 0.5);
    let (status, text, _) = answer(home.path(), &["compare", "before.json", "after.json"]);
    assert_eq!(status, 0);
    assert!(text.contains("after.json against before.json"), "{text}");
    let gate =
        |option: &str| answer(home.path(), &["compare", "before.json", "after.json", option]);
    let (status, _, errors) = gate("--fail-on-regression");
    assert_eq!(status, 1, "{errors}");
    assert!(
        errors.contains("regression: after.json: throughput of 1 MiB sequential reads is 0.50")
    );
    assert_eq!(gate("--fail-on-regression=20").0, 1);
    assert_eq!(gate("--fail-on-regression=60").0, 0);
    let back = ["compare", "after.json", "before.json", "--fail-on-regression"];
    assert_eq!(answer(home.path(), &back).0, 0, "faster is no regression");
}

#[test]
fn every_form_of_output_is_made() {
    let home = home();
    file(home.path(), "a.json", 1.0);
    file(home.path(), "b.json", 1.5);
    let (status, text, _) = answer(home.path(), &["compare", "a.json", "b.json", "--json"]);
    assert_eq!(status, 0);
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value["rows"][0]["throughput"]["ratios"][1]["word"], "faster");
    let (_, csv, _) = answer(home.path(), &["compare", "a.json", "b.json", "--csv=-"]);
    assert!(csv.starts_with("title,baseline,"), "{csv}");
    let (_, markdown, _) = answer(home.path(), &["compare", "a.json", "b.json", "--markdown=-"]);
    assert!(markdown.contains("| Throughput | a.json | b.json |"), "{markdown}");
    let (status, _, _) = answer(home.path(), &["compare", "a.json", "b.json", "--html", "c.html"]);
    assert_eq!(status, 0);
    let page = std::fs::read_to_string(home.path().join("c.html")).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>"));
}

#[test]
fn a_file_with_a_list_is_compared_with_itself() {
    let home = home();
    let list = vec![run(1.0), run(2.0)];
    let path = home.path().join("both.json");
    std::fs::write(path, serde_json::to_string(&list).expect("JSON")).expect("a file");
    let (status, text, errors) = answer(home.path(), &["compare", "both.json"]);
    assert_eq!(status, 0, "{errors}");
    assert!(text.contains("both.json#2 against both.json#1"), "{text}");
}

#[test]
fn published_figures_are_found_by_kind_and_listed() {
    let home = home();
    file(home.path(), "a.json", 1.0);
    let (status, text, errors) = answer(home.path(), &["compare", "a.json", "--reference"]);
    assert_eq!(status, 0, "{errors}");
    assert!(text.starts_with("baseline  pi3-card-f2fs, published"), "{text}");
    let (_, list, _) = answer(home.path(), &["compare", "--list-references"]);
    assert!(list.contains("pi2-nbd") && list.contains("pi4-card-a2"), "{list}");
    let (status, _, errors) = answer(home.path(), &["compare", "a.json", "--reference=pi9"]);
    assert_eq!(status, 2);
    assert!(errors.contains("there are: pi3-usb-ssd"), "{errors}");
}

#[test]
fn captures_are_compared_by_their_facts() {
    let home = home();
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures");
    let mut found: Vec<PathBuf> = std::fs::read_dir(captures)
        .expect("captures")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    let paths: Vec<&str> = found.iter().take(2).map(|p| p.to_str().expect("UTF-8")).collect();
    let (status, text, errors) = answer(home.path(), &["compare", paths[0], paths[1]]);
    assert_eq!(status, 0, "{errors}");
    assert!(text.contains("What differs") && !text.contains("Throughput"), "{text}");
}

#[test]
fn what_cannot_be_compared_is_said_with_status_2() {
    let home = home();
    let write =
        |name: &str, text: &str| std::fs::write(home.path().join(name), text).expect("a file");
    write("list.txt", "eggs\nmilk\n");
    write("normal.out", "m: (g=0): rw=randread, bs=(R) 4096B-4096B, ioengine=psync\nfio-3.33\n");
    std::fs::write(home.path().join("packed.xz"), b"\xfd7zXZ\x00\x00").expect("a file");
    write("empty", "");
    write("torn.json", "{\"results\": [");
    write("other.json", "{\"name\": \"x\", \"version\": 2}");
    write("nothing.json", "[]");
    write("suite.json", "{\"title\": \"x\", \"results\": {\"abc\": {}}}");
    write("half.json", "{\"results\": [], \"rubus_version\": \"0.1.0\"}");
    file(home.path(), "a.json", 1.0);
    let cases = [
        ("absent.json", "neither a run in the history nor a file"),
        ("list.txt", "neither the JSON of rubus or fio nor a captured machine"),
        ("normal.out", "fio --output-format=json"),
        ("packed.xz", "xz -dc FILE | rubus"),
        ("empty", "empty is empty"),
        ("torn.json", "torn.json is not JSON"),
        ("other.json", "an object with the fields name, version"),
        ("nothing.json", "an empty list"),
        ("suite.json", "neither a run of rubus nor fio's: an object with"),
        ("half.json", "looks like a run of rubus"),
        ("last", "there is no history yet"),
        ("7", "there is no history yet"),
    ];
    for (name, expected) in cases {
        let (status, out, errors) = answer(home.path(), &["compare", "a.json", name]);
        assert_eq!((status, out.as_str()), (2, ""), "{name}: {errors}");
        assert!(errors.contains(expected), "{name}: {errors}");
    }
    let (status, _, errors) = answer(home.path(), &["compare", "a.json"]);
    assert_eq!(status, 2);
    assert!(errors.contains("name a second run, or --reference"), "{errors}");
}

#[test]
fn one_run_under_two_names_is_nothing_to_compare() {
    let home = home();
    for name in ["a.json", "copy.json"] {
        file(home.path(), name, 1.0);
    }
    std::fs::write(home.path().join("fio.json"), rubus_fio::json::render(&[&run(1.0)]))
        .expect("a file");
    for (names, expected) in [
        (["a.json", "a.json"], "a.json with: it is named twice"),
        (["fio.json", "fio.json"], "fio.json with: it is named twice"),
        (["a.json", "copy.json"], "a.json with: copy.json has the same content"),
    ] {
        let (status, out, errors) = answer(home.path(), &["compare", names[0], names[1]]);
        assert_eq!((status, out.as_str()), (2, ""), "{names:?}: {errors}");
        assert!(errors.contains(expected), "{names:?}: {errors}");
    }
}

#[test]
fn fios_own_json_is_read_warnings_and_all() {
    let home = home();
    let run = run(1.0);
    let fio = rubus_fio::json::render(&[&run]);
    let text = format!(
        "fio: this platform does not support process shared mutexes\n\
         Jobs: 2 (f=2): [R(2)][50.0%][eta 00m:13s]\n{fio}\nrun: (groupid=0, jobs=1): err= 0\n"
    );
    std::fs::write(home.path().join("fio.json"), text).expect("a file");
    file(home.path(), "a.json", 1.0);
    let (status, text, errors) = answer(home.path(), &["compare", "fio.json", "a.json"]);
    assert_eq!(status, 0, "{errors}");
    assert!(text.contains("4 KiB random reads ×32"), "{text}");
    assert!(text.contains("measured by fio"), "{text}");
}

#[test]
fn fios_json_is_read_as_shells_and_pipes_leave_it() {
    let home = home();
    let run = run(1.0);
    let fio = rubus_fio::json::render(&[&run]);
    file(home.path(), "a.json", 1.0);
    let in_utf_16: Vec<u8> = format!("\u{feff}{}", fio.replace('\n', "\r\n"))
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, fio.as_bytes()).expect("memory");
    let packed = encoder.finish().expect("memory");
    let cut = fio.match_indices('\n').nth(20).expect("lines").0 + 1;
    let (before, behind) = fio.split_at(cut);
    let between = format!("{before}Jobs: 1 (f=1): [r(1)][50.0%][eta 00m:03s]\n{behind}");
    let odd = fio.replace("\"usr_cpu\": ", "\"usr_cpu\": -nan, \"rest\": ");
    assert_ne!(odd, fio);
    let forms = [
        ("powershell.json", in_utf_16),
        ("fio.json.gz", packed),
        ("between.json", between.into_bytes()),
        ("odd.json", odd.into_bytes()),
        ("word.json", [&b"Temp\xe9rature\n"[..], fio.as_bytes()].concat()),
    ];
    for (name, bytes) in forms {
        std::fs::write(home.path().join(name), bytes).expect("a file");
        let (status, text, errors) = answer(home.path(), &["compare", name, "a.json"]);
        assert_eq!(status, 0, "{name}: {errors}");
        assert!(text.contains("4 KiB random reads ×32"), "{name}: {text}");
    }
}

#[test]
fn fios_json_is_read_out_of_what_a_program_wraps_it_in() {
    let home = home();
    let fio = rubus_fio::json::render(&[&run(1.0)]);
    file(home.path(), "a.json", 1.0);
    let wrapped = format!("{{\"node\": \"pi1\", \"raw\": {fio}}}");
    std::fs::write(home.path().join("wrapped.json"), wrapped).expect("a file");
    let (status, text, errors) = answer(home.path(), &["compare", "wrapped.json", "a.json"]);
    assert_eq!(status, 0, "{errors}");
    assert!(text.contains("measured by fio"), "{text}");
    let two = format!("{{\"before\": {fio}, \"after\": {fio}}}");
    std::fs::write(home.path().join("two.json"), two).expect("a file");
    let (status, _, errors) = answer(home.path(), &["compare", "two.json", "a.json"]);
    assert_eq!(status, 2);
    assert!(errors.contains("neither a run of rubus nor fio"), "{errors}");
}

#[test]
fn of_fios_statuses_of_one_run_the_last_counts() {
    let home = home();
    let run = run(1.0);
    let fio = rubus_fio::json::render(&[&run]);
    std::fs::write(home.path().join("status.json"), format!("{fio}\n{fio}\n")).expect("a file");
    file(home.path(), "a.json", 1.0);
    let (status, text, errors) = answer(home.path(), &["compare", "status.json", "a.json"]);
    assert_eq!(status, 0, "{errors}");
    assert!(text.contains("status.json") && !text.contains("status.json#1"), "{text}");
    // fio was stopped while it printed one.
    let cut = format!("{fio}\n{fio}\n{}", &fio[..fio.len() / 2]);
    std::fs::write(home.path().join("cut.json"), cut).expect("a file");
    let (status, text, errors) = answer(home.path(), &["compare", "cut.json", "a.json"]);
    assert_eq!(status, 0, "{errors}");
    assert!(text.contains("cut.json") && !text.contains("cut.json#1"), "{text}");
    assert!(errors.contains("left out: the last result of cut.json, which is cut off"), "{errors}");
    std::fs::write(home.path().join("half.json"), &fio[..fio.len() / 2]).expect("a file");
    let (status, _, errors) = answer(home.path(), &["compare", "half.json", "a.json"]);
    assert_eq!(status, 2);
    assert!(errors.contains("half.json is not JSON: it ends within a document"), "{errors}");
}
