//! Devices that are smaller than they say, and genuine ones: what the suite `capacity` says of them.
//! Trees of small files: what a kill leaves, and what a limit of the device does to them.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::program::{Answer, Home};
use crate::common::{can_run, take_turns};
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{
    Beyond, FakeDevice, FilesystemKind, Limits, LoopDevice, SmallFilesystem, ThrottledLoop,
    programs,
};
use serde_json::Value;

const MIB: u64 = 1 << 20;
const FAKE: [Need; 3] = [Need::Root, Need::Loop, Need::NbdFile];

/// Runs the suite on a block device whose loss is confirmed.
fn capacity(home: &Home, device: &Path, more: &[&str]) -> (Answer, Value) {
    let (path, json) = (device.display().to_string(), home.path().join("run.json"));
    let (allowed, json_name) =
        (format!("--i-will-lose-everything-on={path}"), json.display().to_string());
    let mut arguments = vec!["bench", &path, "--suite", "capacity", "--json", &json_name];
    if !more.contains(&"--read-only") {
        arguments.push(&allowed);
    }
    arguments.extend(more);
    let answer = home.run(&arguments);
    let text = std::fs::read_to_string(&json);
    let text = text.unwrap_or_else(|error| panic!("{error}: {answer}"));
    let run: Value = serde_json::from_str(&text).expect("the run is JSON");
    (answer, run)
}

fn finding<'a>(run: &'a Value, field: &str) -> &'a Value {
    let findings = run["findings"].as_array().expect("a list of findings");
    let found = findings.iter().find(|finding| finding["kind"] == "capacity");
    &found.unwrap_or_else(|| panic!("no capacity in {findings:?}"))[field]
}

#[test]
fn a_device_that_wraps_around_is_found_with_its_real_size() {
    let _turn = take_turns();
    if !can_run("a wrapping device", &FAKE) {
        return;
    }
    for (real, more) in [(11 * MIB, &[][..]), (20 * MIB, &["--full"][..])] {
        let home = Home::new();
        let fake = FakeDevice::new(64 * MIB, real, Beyond::Wraps).unwrap();
        let device = LoopDevice::over(&fake.path()).unwrap();
        let (answer, run) = capacity(&home, device.path(), more);
        assert_eq!(answer.status, Some(1), "{answer}");
        assert_eq!(finding(&run, "wraps_at_bytes"), real, "{answer}");
        assert_eq!(finding(&run, "corrupted_bytes"), 0, "{answer}");
        assert!(answer.says("Keep no data on it"), "{answer}");
        if !more.is_empty() {
            // What was written last is what there is.
            assert_eq!(finding(&run, "good_bytes"), real, "{answer}");
            assert_eq!(finding(&run, "tested_bytes"), 64 * MIB, "{answer}");
        }
    }
}

#[test]
fn a_device_that_throws_away_or_fails_beyond_its_size_is_found() {
    let _turn = take_turns();
    if !can_run("a cut device", &FAKE) {
        return;
    }
    for beyond in [Beyond::Vanishes, Beyond::Fails] {
        for more in [&[][..], &["--full"][..]] {
            let home = Home::new();
            let fake = FakeDevice::new(64 * MIB, 24 * MIB, beyond).unwrap();
            let device = LoopDevice::over(&fake.path()).unwrap();
            let (answer, run) = capacity(&home, device.path(), more);
            assert_eq!(answer.status, Some(1), "{beyond:?} {more:?} {answer}");
            assert!(finding(&run, "wraps_at_bytes").is_null(), "{answer}");
            assert_eq!(finding(&run, "overwritten_bytes"), 0, "{answer}");
            let bad = finding(&run, "first_bad_offset").as_u64();
            // A sample knows it within a stride.
            let within = if more.is_empty() { 24 * MIB..32 * MIB } else { 24 * MIB..24 * MIB + 1 };
            assert!(bad.is_some_and(|bad| within.contains(&bad)), "{bad:?}: {answer}");
            let lost = match beyond {
                Beyond::Fails => "unreadable_bytes",
                _ => "corrupted_bytes",
            };
            assert!(finding(&run, lost).as_u64() > Some(0), "{answer}");
        }
    }
}

#[test]
fn a_genuine_device_is_good_and_can_be_looked_at_again() {
    let _turn = take_turns();
    if !can_run("a genuine device", &FAKE) {
        return;
    }
    let home = Home::new();
    let genuine = FakeDevice::new(64 * MIB, 64 * MIB, Beyond::Wraps).unwrap();
    let device = LoopDevice::over(&genuine.path()).unwrap();
    let (answer, run) = capacity(&home, device.path(), &[]);
    assert_eq!(answer.status, Some(0), "{answer}");
    assert!(finding(&run, "tested_bytes").as_u64() < Some(20 * MIB), "{answer}");
    let (answer, run) = capacity(&home, device.path(), &["--full"]);
    assert_eq!(answer.status, Some(0), "{answer}");
    assert_eq!(finding(&run, "good_bytes"), 64 * MIB, "{answer}");
    let results = run["results"].as_array().expect("results");
    assert_eq!(results.len(), 2, "{answer}");
    for result in results {
        assert_eq!(result["operation"], "stamp", "{answer}");
        let bytes = result["series"]["bytes"].as_array().expect("a series");
        assert!(!bytes.is_empty(), "{answer}");
    }
    // What this run has written is found again, until a single bit of it changes.
    let seed = run["seed"].to_string();
    let again = ["--full", "--read-only", "--seed", &seed];
    let (answer, run) = capacity(&home, device.path(), &again);
    assert_eq!(answer.status, Some(0), "{answer}");
    assert_eq!(run["bytes_written"], 0, "{answer}");
    genuine.flip_a_bit_at(33 * MIB + 77).unwrap();
    let (answer, run) = capacity(&home, device.path(), &again);
    assert_eq!(answer.status, Some(1), "{answer}");
    assert_eq!(finding(&run, "corrupted_bytes"), 4096, "{answer}");
    assert_eq!(finding(&run, "first_bad_offset"), 33 * MIB, "{answer}");
    let (answer, _) = capacity(&home, device.path(), &["--full", "--read-only", "--seed", "7"]);
    assert_eq!(answer.status, Some(1), "another run's numbers: {answer}");
}

#[test]
fn a_directorys_free_space_is_filled_and_freed() {
    let _turn = take_turns();
    if !can_run("free space", &[Need::Root, Need::Loop, Need::Filesystem("ext4")]) {
        return;
    }
    let home = Home::new();
    let filesystem = SmallFilesystem::new(FilesystemKind::Ext4, 700 * MIB).unwrap();
    let free = filesystem.free_bytes().unwrap();
    let path = filesystem.path().display().to_string();
    let answer = home.run(&["bench", &path, "--suite", "capacity"]);
    assert_eq!(answer.status, Some(0), "{answer}");
    assert!(answer.stderr.contains("stay free meanwhile"), "{answer}");
    assert!(answer.says("came back as they were written"), "{answer}");
    let left = filesystem.free_bytes().unwrap();
    assert!(free - left < MIB, "{free} free before, {left} after");
    // A directory cannot be looked at again, and without an allowance nothing is overwritten.
    let answer = home.run(&["bench", &path, "--suite", "capacity", "--read-only"]);
    assert_eq!(answer.status, Some(2), "{answer}");
    let file = filesystem.path().join("letter");
    std::fs::write(&file, vec![7; MIB as usize]).unwrap();
    let answer = home.run(&["bench", &file.display().to_string(), "--suite", "capacity"]);
    assert_ne!(answer.status, Some(0), "{answer}");
    assert_eq!(std::fs::read(&file).unwrap(), vec![7; MIB as usize]);
}

#[test]
fn a_killed_run_leaves_a_tree_that_the_next_removes() {
    let _turn = take_turns();
    if !can_run("a killed tree", &[Need::Root]) {
        return;
    }
    let home = Home::new();
    let filesystem = SmallFilesystem::new(FilesystemKind::Tmpfs, 512 * MIB).unwrap();
    let path = filesystem.path().display().to_string();
    let trees = || {
        let entries = std::fs::read_dir(filesystem.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with(".rubus-tree-")).count()
    };
    let run = ["bench", &path, "--suite", "small-files", "--size", "30MiB"];
    let mut child =
        home.command().args(run).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let give_up = Instant::now() + Duration::from_secs(20);
    while trees() == 0 && Instant::now() < give_up {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(trees(), 1, "the run was over before it was killed");
    let answer = home.run(&run);
    assert_eq!(answer.status, Some(0), "{answer}");
    assert_eq!(trees(), 0, "{answer}");
    assert_eq!(std::fs::read_dir(filesystem.path()).unwrap().count(), 0);
}

/// Each durable file costs at least one device write, so a limit of writes per second limits files per second too.
#[test]
fn durable_files_are_no_faster_than_the_devices_writes() {
    let _turn = take_turns();
    let needs = [Need::Root, Need::DirectLoop, Need::BlockThrottle, Need::Filesystem("ext4")];
    if !can_run("durable files", &needs) {
        return;
    }
    const WRITES: u64 = 300;
    let home = Home::new();
    let limits = Limits { write_iops: Some(WRITES), ..Limits::default() };
    let device = ThrottledLoop::new(1024 * MIB, limits).unwrap();
    let point = tempfile::TempDir::with_prefix("rubus-lab-").unwrap();
    let mounted = Mounted::new(device.path(), point.path());
    let json = home.path().join("run.json");
    let (path, json_name) = (mounted.0.clone(), json.display().to_string());
    let answer = home.run(&[
        "bench",
        &path,
        "--suite",
        "small-files",
        "--size",
        "6MiB",
        "--json",
        &json_name,
    ]);
    assert_eq!(answer.status, Some(0), "{answer}");
    let run: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    let results = run["results"].as_array().expect("results");
    let rate = |name: &str| {
        let result = results.iter().find(|result| result["job"] == name);
        result.unwrap_or_else(|| panic!("no {name}: {answer}"))["iops"]["low"].as_f64()
    };
    let durable = rate("create-durably").expect("a lower bound");
    assert!(durable <= WRITES as f64, "{durable}: {answer}");
    // Together they are in one journal and gain by it, but each has a block of its own.
    let together = rate("create-durably-4").expect("a lower bound");
    assert!(together <= WRITES as f64, "{together}: {answer}");
    let plain = rate("create").expect("a lower bound");
    assert!(plain > 0.0, "{answer}");
}

/// A filesystem of ours, mounted until it is dropped.
struct Mounted(String);

impl Mounted {
    fn new(device: &Path, point: &Path) -> Self {
        let (node, at) = (device.display().to_string(), point.display().to_string());
        programs::run("mkfs.ext4", &["-q", "-F", "-E", "lazy_itable_init=0", &node]).unwrap();
        programs::run("mount", &[&node, &at]).unwrap();
        Mounted(at)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Err(error) = programs::run("umount", &[&self.0]) {
            eprintln!("could not unmount {}: {error:#}", self.0);
        }
    }
}
