//! Targets that share a pipe are told from targets that do not.
//!
//! Two directories on one throttled device get half of it each when both are read; two devices with
//! limits of their own keep what they have. The truth is the kernel's throttle.

use std::path::Path;

use crate::common::program::{Answer, Home, binary};
use crate::common::{can_run, report, take_turns};
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{BlockGroup, FilesystemKind, Limits, SmallFilesystem};
use serde_json::Value;

const MIB: u64 = 1 << 20;

const LIMITS: Limits = Limits {
    read_bytes_per_second: Some(20 * MIB),
    write_bytes_per_second: Some(20 * MIB),
    read_iops: Some(1000),
    write_iops: Some(1000),
};

#[test]
fn one_throttled_device_is_a_shared_pipe_and_two_are_not() {
    let _turn = take_turns();
    let needs = [Need::Root, Need::Loop, Need::BlockThrottle];
    if !can_run("targets together", &needs) {
        return;
    }
    // They hardly need a processor, so both can be measured at once.
    let (shared, apart) = std::thread::scope(|scope| {
        let shared = scope.spawn(on_one_device);
        let apart = scope.spawn(on_two_devices);
        (shared.join(), apart.join())
    });
    let shared = shared.expect("the measurement on one device");
    let apart = apart.expect("the measurement on two devices");
    report(&format!("one device: {shared:#?}\ntwo devices: {apart:#?}"));
    assert_eq!(shared.len(), 2, "reads of two kinds");
    for found in &shared {
        assert_eq!(found.is_shared, Some(true), "{found:?}");
        assert!((found.share - 0.5).abs() < 0.05, "{found:?}");
        assert!(found.suspect.starts_with("the disk "), "{found:?}");
    }
    assert_eq!(apart.len(), 2, "reads of two kinds");
    for found in &apart {
        assert_ne!(found.is_shared, Some(true), "{found:?}");
        assert!((found.share - 1.0).abs() < 0.08, "{found:?}");
    }
}

/// What the program found for one kind of job.
#[derive(Debug)]
struct Found {
    share: f64,
    is_shared: Option<bool>,
    suspect: String,
}

fn on_one_device() -> Vec<Found> {
    let filesystem = SmallFilesystem::new(FilesystemKind::Ext4, 512 * MIB).expect("a filesystem");
    let group = BlockGroup::new().expect("a group");
    limit(&group, &filesystem);
    let places = ["a", "b"].map(|name| filesystem.path().join(name));
    for place in &places {
        std::fs::create_dir(place).expect("a directory");
    }
    measure(&group, [&places[0], &places[1]])
}

fn on_two_devices() -> Vec<Found> {
    let filesystems = [0, 1]
        .map(|_| SmallFilesystem::new(FilesystemKind::Ext4, 512 * MIB).expect("a filesystem"));
    let group = BlockGroup::new().expect("a group");
    for filesystem in &filesystems {
        limit(&group, filesystem);
    }
    measure(&group, [filesystems[0].path(), filesystems[1].path()])
}

fn limit(group: &BlockGroup, filesystem: &SmallFilesystem) {
    let device = filesystem.device().expect("ext4 is on a device");
    let number = device.number().expect("its number");
    group.limit(number, LIMITS).expect("the limit can be set");
}

fn measure(group: &BlockGroup, places: [&Path; 2]) -> Vec<Found> {
    let home = Home::new();
    let mut command = group.command(binary());
    home.adopt(&mut command);
    command
        .arg("bench")
        .args(places)
        .args(["--together", "--read-only", "--size", "32MiB"])
        .args(["--json", "-", "--no-html", "--no-history"]);
    let answer = Answer::of(command.output().expect("the program starts"));
    assert_eq!(answer.status, Some(0), "{answer}");
    let run: Value = serde_json::from_str(&answer.stdout).expect("the run is JSON");
    let findings = run["findings"].as_array().expect("a list of findings");
    // What the rules say of the machine stands there, too.
    let pairs = findings.iter().filter(|finding| finding["kind"] != "rule");
    let found = pairs.map(|finding| {
        assert_eq!(finding["kind"], "shared_pipe");
        Found {
            share: finding["share"]["value"].as_f64().expect("a share"),
            is_shared: finding["is_shared"].as_bool(),
            suspect: finding["suspect"].as_str().unwrap_or_default().to_string(),
        }
    });
    found.collect()
}
