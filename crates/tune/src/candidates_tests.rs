//! Which settings are tried on which machine.

use rubus_host::capture::{self, Captured, Identities};
use rubus_host::simulated::fake::FakeFiles;
use rubus_host::simulated::recorder::Recorder;

use crate::candidates::{Candidates, candidates, look};
use crate::place::Place;
use crate::setting::{Setting, Work};

fn place() -> Place {
    Place {
        path: "/data".into(),
        filesystem: "ext4".into(),
        disk: "sda".into(),
        stacked_on: None,
        is_loop: false,
        is_usb: true,
        options: vec!["rw".into(), "relatime".into()],
    }
}

fn board() -> FakeFiles {
    let policy = "/sys/devices/system/cpu/cpufreq/policy0";
    FakeFiles::new()
        .file("/sys/block/sda/queue/read_ahead_kb", "128\n")
        .file("/sys/block/sda/queue/scheduler", "none [mq-deadline] kyber bfq\n")
        .file("/sys/block/sda/queue/nr_requests", "2\n")
        .file("/sys/block/sda/queue/wbt_lat_usec", "75000\n")
        .file(format!("{policy}/scaling_governor"), "ondemand\n")
        .file(format!("{policy}/scaling_available_governors"), "ondemand performance\n")
        .file(format!("{policy}/ondemand/up_threshold"), "50\n")
}

fn titles(found: &Candidates) -> Vec<String> {
    let title = |one: &crate::setting::Candidate| {
        format!("{} {} > {}", one.setting.title(), one.from, one.to)
    };
    found.tried.iter().map(title).collect()
}

fn reason<'a>(found: &'a Candidates, setting: &str) -> &'a str {
    let all = || found.not_tried.iter().filter(|one| one.setting == setting);
    all().next().map_or_else(|| panic!("{setting} is tried: {found:?}"), |one| &one.why)
}

#[test]
fn a_board_with_a_usb_disk_has_every_setting() {
    let found = candidates(&place(), &Work::ALL, &board());
    assert_eq!(
        titles(&found),
        [
            "read-ahead 128 > 512",
            "read-ahead 128 > 2048",
            "scheduler mq-deadline > none",
            "scheduler mq-deadline > kyber",
            "scheduler mq-deadline > bfq",
            "queued requests 2 > 128",
            "governor ondemand > performance",
        ]
    );
    let governor = found.tried.last().unwrap();
    assert!(governor.knobs[0].resets.iter().any(|path| path.ends_with("ondemand")));
    for setting in ["noatime", "commit", "UAS", "wbt_lat_usec"] {
        assert!(!reason(&found, setting).is_empty());
    }
}

#[test]
fn what_does_nothing_by_construction_is_left_out_with_the_reason() {
    let btrfs = Place { filesystem: "btrfs".into(), ..place() };
    let found = candidates(&btrfs, &Work::ALL, &board());
    assert!(reason(&found, "read-ahead").contains("of its own"));
    let crypt = Place { stacked_on: Some("dm-0".into()), ..place() };
    let found = candidates(&crypt, &Work::ALL, &board());
    assert!(reason(&found, "read-ahead").contains("dm-0"));
    let alone = board().file("/sys/block/sda/queue/scheduler", "[none]\n");
    let found = candidates(&place(), &Work::ALL, &alone);
    assert!(reason(&found, "scheduler").contains("only none"));
    assert!(reason(&found, "queued requests").contains("disk's own limit"));
    let roomy = board().file("/sys/block/sda/queue/nr_requests", "256\n");
    let found = candidates(&place(), &Work::ALL, &roomy);
    assert!(reason(&found, "queued requests").contains("256"));
}

#[test]
fn a_setting_that_no_work_asked_for_can_see_is_left_out() {
    let found = candidates(&place(), &[Work::LargeRead], &board());
    assert!(found.tried.iter().all(|one| one.setting == Setting::ReadAhead), "{found:?}");
    assert!(reason(&found, "scheduler").contains("works asked for"));
}

#[test]
fn processors_with_different_governors_are_left_to_their_owner() {
    let policy = "/sys/devices/system/cpu/cpufreq/policy4";
    let files = board()
        .file(format!("{policy}/scaling_governor"), "powersave\n")
        .file(format!("{policy}/scaling_available_governors"), "powersave performance\n");
    let found = candidates(&place(), &Work::ALL, &files);
    assert!(reason(&found, "governor").contains("different"));
}

#[test]
fn a_disk_of_which_nothing_can_be_read_has_no_candidate() {
    let found = candidates(&place(), &Work::ALL, &FakeFiles::new());
    assert!(found.tried.is_empty(), "{found:?}");
    assert!(reason(&found, "scheduler").contains("/sys/block/sda/queue/scheduler"));
}

#[test]
fn a_capture_that_may_be_shared_has_the_read_ahead_of_each_disk() {
    let files = board();
    let recorder = Recorder::new(&files);
    look(&recorder, &rubus_fixtures::pi3_with_usb_ssd());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("capture.tar");
    let when = "2026-11-21T00:58:12Z";
    capture::save(&recorder, &path, "for a test", when, Identities::Replace).unwrap();
    let captured = Captured::open(&path).unwrap();
    let found = candidates(&place(), &[Work::LargeRead], &captured);
    assert_eq!(titles(&found), ["read-ahead 128 > 512", "read-ahead 128 > 2048"]);
}
