//! Two devices of known speed measured in turns: a difference of a tenth is found and sized, equals
//! are not told apart; and a history on a full disk, where the run is shown nevertheless.
//!
//! Both devices are throttled in one control group. Reads in large blocks are limited to 20 and 22 MiB/s,
//! small ones to 500 per second on both, so one run knows both truths.

use std::process::Command;

use crate::common::program::{Answer, Home, binary};
use crate::common::run::measure_undisturbed;
use crate::common::{can_run, report, take_turns};
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{BlockGroup, FilesystemKind, Limits, LoopDevice, SmallFilesystem};
use serde_json::Value;

const MIB: u64 = 1 << 20;

/// What disturbs a throttled device.
const DISTURBANCES: [&str; 3] = ["cpu_starved", "cpu_stolen", "other_traffic"];

/// How far the ratio may be from the truth.
const FROM_THE_TRUTH: f64 = 0.03;
const TRUTH: f64 = 1.1;

/// A device whose large reads have this limit, and whose small ones have the limit of all.
fn limited(group: &BlockGroup, mib_per_second: u64) -> LoopDevice {
    let device = LoopDevice::new(64 * MIB).expect("a loop device");
    device.without_write_cache().expect("no write cache");
    let limits = Limits {
        read_bytes_per_second: Some(mib_per_second * MIB),
        read_iops: Some(500),
        ..Limits::default()
    };
    let number = device.number().expect("a device has a number");
    group.limit(number, limits).expect("a limit");
    device
}

fn answer(command: &mut Command) -> Answer {
    Answer::of(command.output().expect("the program starts"))
}

/// The comparison of the last run with the one before it.
fn comparison(home: &Home) -> Value {
    home.run(&["compare", "1", "2", "--json"]).json()
}

/// Ratio, its ends, and the word, of the throughput of a job.
fn ratio(comparison: &Value, job: &str) -> (f64, f64, f64, String) {
    let rows = comparison["rows"].as_array().expect("a list of rows");
    let row = rows.iter().find(|row| row["jobs"][0] == job);
    let ratio =
        &row.unwrap_or_else(|| panic!("no {job} in {comparison}"))["throughput"]["ratios"][1];
    let figure = &ratio["figure"];
    let number = |value: &Value| value.as_f64().expect("a number");
    (
        number(&figure["value"]),
        number(&figure["interval"]["low"]),
        number(&figure["interval"]["high"]),
        ratio["word"].as_str().expect("a word").to_string(),
    )
}

#[test]
fn a_tenth_is_found_in_turns_and_equals_are_not_told_apart() {
    let _turn = take_turns();
    if !can_run("two devices in turns", &[Need::Root, Need::Loop, Need::BlockThrottle]) {
        return;
    }
    let group = BlockGroup::new().expect("a control group");
    let (slow, fast) = (limited(&group, 20), limited(&group, 22));
    let homes = std::cell::RefCell::new(Vec::new());
    let is_good = |_: &Value| {
        let homes = homes.borrow();
        let home: &Home = homes.last().expect("it was measured");
        let comparison = comparison(home);
        complaints(&comparison).is_empty()
    };
    measure_undisturbed(&DISTURBANCES, is_good, || {
        let home = Home::new();
        let mut command = group.command("nice");
        home.adopt(&mut command);
        command
            .args(["-n", "-20"])
            .arg(binary())
            .arg("bench")
            .arg(fast.path())
            .arg("--against")
            .arg(slow.path())
            .args(["--read-only", "--quiet", "--json", "-"]);
        let answer = answer(&mut command);
        assert_eq!(answer.status, Some(0), "{answer}");
        let runs = answer.json();
        homes.borrow_mut().push(home);
        // Disturbances of either count.
        let mut both = runs[1].clone();
        let doubts = runs[0]["doubts"].as_array().expect("doubts").clone();
        both["doubts"].as_array_mut().expect("doubts").extend(doubts);
        both
    });
    let homes = homes.into_inner();
    let home = homes.last().expect("it was measured");
    let comparison = comparison(home);
    for job in ["sequential-read", "random-read", "random-read-deep"] {
        report(&format!("{job}: {:?}", ratio(&comparison, job)));
    }
    let wrong = complaints(&comparison);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(comparison["interleaved"], true);
    // The other way round it is slower, by the same rounds.
    let gate = home.run(&["compare", "2", "1", "--fail-on-regression"]);
    assert_eq!(gate.status, Some(1), "{gate}");
    assert!(gate.stderr.contains("regression: run 1"), "{gate}");
}

fn complaints(comparison: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let (value, low, high, word) = ratio(comparison, "sequential-read");
    if (value / TRUTH - 1.0).abs() > FROM_THE_TRUTH || word != "faster" {
        wrong.push(format!("sequential-read: {value} ({low} to {high}) {word}"));
    }
    for job in ["random-read", "random-read-deep"] {
        let (value, low, high, word) = ratio(comparison, job);
        if (value - 1.0).abs() > FROM_THE_TRUTH || word != "no_evidence" {
            wrong.push(format!("{job}: {value} ({low} to {high}) {word}"));
        }
    }
    wrong
}

#[test]
fn on_a_full_disk_the_run_is_shown_and_the_history_keeps_what_it_has() {
    let _turn = take_turns();
    if !can_run("full disk", &[Need::Root, Need::Loop]) {
        return;
    }
    let data = SmallFilesystem::new(FilesystemKind::Tmpfs, MIB).expect("a tmpfs");
    let device = LoopDevice::new(8 * MIB).expect("a loop device");
    let home = Home::new();
    let measure = || {
        let mut command = home.command();
        command.env("XDG_DATA_HOME", data.path()).arg("bench").arg(device.path()).args([
            "--read-only",
            "--no-html",
            "--precision=50%",
        ]);
        answer(&mut command)
    };
    let first = measure();
    assert_eq!(first.status, Some(0), "{first}");
    assert!(first.stderr.contains("history: run 1"), "{first}");
    // Writes until nothing fits any more; that it fails in the end is the point.
    let _ = std::fs::write(data.path().join("filler"), vec![1_u8; 2 * MIB as usize]);
    let second = measure();
    assert_eq!(second.status, Some(0), "{second}");
    assert!(second.says("sequential reads"), "it was measured: {second}");
    let told = "this run is not in the history: no space is left";
    assert!(second.stderr.contains(told), "{second}");
    std::fs::remove_file(data.path().join("filler")).expect("the filler");
    let mut list = home.command();
    list.env("XDG_DATA_HOME", data.path()).args(["history", "--json"]);
    let list = answer(&mut list);
    assert_eq!(list.json().as_array().map(Vec::len), Some(1), "{list}");
}
