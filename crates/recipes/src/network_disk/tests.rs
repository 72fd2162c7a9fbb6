//! The plan for a network disk on example machines.

use super::*;
use crate::PathState;
use crate::testing::{after, facts, obstacles, plan, shown, text};
use rubus_fixtures as fixture;

const USUAL: [(&str, &str); 2] =
    [("address", "nbd://192.168.1.2/disk%20one"), ("at", "/mnt/network")];
const TABLE: &str = "proc  /proc  proc  defaults  0  0\n";

fn machine() -> Machine {
    fixture::pi3_with_usb_ssd()
}

const SYSTEMD: (&str, PathState) = ("/run/systemd/system", PathState::Directory(Vec::new()));

fn given() -> Vec<(&'static str, PathState)> {
    vec![
        SYSTEMD,
        ("/etc/fstab", text(TABLE)),
        ("/sys/module/nbd", PathState::Directory(vec!["parameters".into()])),
        ("/usr/local/bin/rubus", PathState::Something),
    ]
}

fn drawn(wished: &[(&str, &str)], given: &[(&str, PathState)]) -> rubus_change::plan::Plan {
    let facts = facts(&RECIPE, &machine(), wished, given);
    plan(&RECIPE, &machine(), &facts, wished)
}

#[test]
fn a_network_disk_now_and_at_each_boot() {
    insta::assert_snapshot!(shown(&drawn(&USUAL, &given())));
}

#[test]
fn what_is_already_there_is_not_done_again() {
    let first_facts = facts(&RECIPE, &machine(), &USUAL, &given());
    let first = plan(&RECIPE, &machine(), &first_facts, &USUAL);
    let mut later = machine();
    let mut mount = later.mounts[3].clone();
    mount.point = "/mnt/network".into();
    mount.filesystem = "ext4".into();
    mount.device = Some("nbd0".into());
    later.mounts.push(mount);
    let mut facts = after(&first_facts, &first);
    let files = PathState::Directory(vec!["kept".into()]);
    facts.seen.insert("/mnt/network".into(), files);
    let attached = text("rubus nbd://192.168.1.2/disk%20one\n");
    facts.seen.insert("/sys/block/nbd0/backend".into(), attached);
    let again = plan(&RECIPE, &later, &facts, &USUAL);
    assert_eq!(obstacles(&again), [""; 0]);
    assert!(again.is_empty(), "{:?}", again.steps);
}

#[test]
fn what_is_missing_or_taken_is_an_obstacle() {
    let backend = ("/sys/block/nbd0/backend", text("rubus nbd://other/\n"));
    let plan = drawn(&USUAL, &[SYSTEMD, backend.clone()]);
    assert!(
        obstacles(&drawn(&USUAL, &[backend]))
            .iter()
            .any(|found| found.starts_with("systemd starts the services of this machine")),
    );
    let all = obstacles(&plan);
    let missing = ["the kernel has the NBD driver", "the device is free"];
    assert!(
        all.len() == 2 && all.iter().zip(missing).all(|(found, what)| found.starts_with(what)),
        "{all:?}"
    );
    let nothing = obstacles(&drawn(&[], &[]));
    assert!(nothing[0].starts_with("the disk and its mount point are named"), "{nothing:?}");
}

#[test]
fn addresses_and_devices_that_cannot_be_are_refused() {
    for good in ["nbd://server/disk", "nbd://[::1]:10810/", "nbd+unix:///x?socket=/run/nbd"] {
        assert_eq!(network_address::check(good), Ok(()), "{good}");
    }
    for wrong in [
        "",
        "nbd://",
        "http://server",
        "nbd://a b",
        "nbd://a\n[Service]",
        "nbd://a\"",
        "nbd://a$b",
        "nbd:///disk",
        "nbd+unix:///disk",
    ] {
        assert!(network_address::check(wrong).is_err(), "{wrong}");
    }
    assert!(network_address::check("nbds://server/disk").unwrap_err().contains("TLS"));
    assert_eq!(device("/dev/nbd15"), Ok(15));
    for wrong in ["nbd0", "/dev/nbd16", "/dev/nbd00", "/dev/sda"] {
        assert!(device(wrong).is_err(), "{wrong}");
    }
}
