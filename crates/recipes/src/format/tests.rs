//! The plan for a new filesystem on example machines.

use super::*;
use crate::testing::{disk, facts, obstacles, plan, shown, text, wishes};
use crate::{Facts, PathState};
use rubus_change::plan::Plan;
use rubus_change::unseen::Unseen;
use rubus_fixtures as fixture;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::Mount;

/// A Pi 3 with a second stick, and one partition on it.
fn machine() -> Machine {
    let mut machine = fixture::pi3_with_usb_ssd();
    for (old, new) in [("sda", "sdb"), ("sda1", "sdb1")] {
        let device = machine.device(old).cloned();
        let mut device = device.expect("the fixture has it");
        device.name = new.into();
        device.parent = device.parent.map(|_| "sdb".into());
        device.identity.partuuid = Some("3b0a02d1-01".into());
        device.identity.uuid = None;
        machine.block_devices.push(device);
    }
    machine
}

fn looked(wished: &[(&str, &str)]) -> Facts {
    let given = [("/etc/fstab", text("proc /proc proc defaults 0 0\n"))];
    let mut facts = facts(&RECIPE, &machine(), wished, &given);
    let mut stick = disk("/dev/sdb", "4C53-1");
    stick.contents = vec!["a FAT32 filesystem 'PHOTOS'".into()];
    facts.disks.insert("/dev/sdb".into(), Ok(stick));
    let busy = "/dev/sda1 is mounted at /srv/data.".to_string();
    facts.disks.insert("/dev/sda".into(), Err(busy.into()));
    facts
}

fn drawn(wished: &[(&str, &str)]) -> Plan {
    plan(&RECIPE, &machine(), &looked(wished), wished)
}

#[test]
fn a_disk_with_one_partition_mounted_now_and_later() {
    let wished = [("device", "/dev/sdb"), ("at", "/mnt/data"), ("label", "data")];
    let plan = drawn(&wished);
    assert_eq!(obstacles(&plan), [""; 0]);
    assert_eq!(plan.disks_lost().len(), 1);
    insta::assert_snapshot!(shown(&plan));
}

#[test]
fn each_kind_and_each_place() {
    let mut said = String::new();
    for (device, kind, partition) in
        [("/dev/sdb", "btrfs", "no"), ("/dev/sdb", "vfat", "yes"), ("/dev/sdb1", "swap", "yes")]
    {
        let wished = [("device", device), ("filesystem", kind), ("partition", partition)];
        let plan = drawn(&wished);
        assert_eq!(obstacles(&plan), [""; 0]);
        said += &shown(&plan);
        said += "----\n";
    }
    insta::assert_snapshot!(said);
}

#[test]
fn what_is_as_wished_is_not_made_again() {
    let wished = [("device", "/dev/sdb"), ("at", "/mnt/data")];
    let mut machine = machine();
    let part = machine.block_devices.last_mut().expect("it was pushed");
    part.content = Fact::known("ext4".into(), "test");
    let mount = Mount {
        point: "/mnt/data".into(),
        device: Some("sdb1".into()),
        ..machine.mounts[2].clone()
    };
    machine.mounts.push(mount);
    let again = plan(&RECIPE, &machine, &looked(&wished), &wished);
    assert_eq!(obstacles(&again), [""; 0]);
    assert!(again.is_empty());
}

#[test]
fn every_obstacle_says_what_to_do() {
    let mut said = String::new();
    let cases: [&[(&str, &str)]; 6] = [
        &[],
        &[("device", "/dev/sdz")],
        &[("device", "/dev/sda")],
        &[("device", "/dev/sdb"), ("at", "/usr/x")],
        &[("device", "/dev/sdb"), ("at", "/srv/data")],
        &[("device", "/dev/sdb"), ("filesystem", "swap"), ("at", "/mnt/x")],
    ];
    for wished in cases {
        let obstacles = obstacles(&drawn(wished));
        assert!(!obstacles.is_empty(), "{wished:?}");
        said += &format!("{wished:?}\n  {}\n", obstacles.join("\n  "));
    }
    let wished = [("device", "/dev/sdb"), ("filesystem", "btrfs")];
    let mut bare = looked(&wished);
    bare.seen.retain(|path, _| !path.ends_with("mkfs.btrfs"));
    let mut tiny = looked(&wished);
    let mut stick = disk("/dev/sdb", "4C53-1");
    stick.size_bytes = 1 << 20;
    tiny.disks.insert("/dev/sdb".into(), Ok(stick));
    for facts in [bare, tiny] {
        let plan = plan(&RECIPE, &machine(), &facts, &wished);
        said += &format!("{}\n", obstacles(&plan).join("\n  "));
    }
    insta::assert_snapshot!(said);
}

#[test]
fn wishes_that_make_no_sense_are_refused() {
    for (name, value) in [
        ("device", "sdb"),
        ("filesystem", "ntfs"),
        ("label", "a b"),
        ("label", "twelveletters"),
        ("partition", "maybe"),
        ("at", "data"),
    ] {
        let wished = wishes(&[(name, value)]);
        let error = RECIPE.plan(&machine(), &Facts::default(), &wished, "now");
        assert!(error.is_err(), "{name}={value}");
    }
    let nothing = fixture::unreadable_machine();
    let wished = [("device", "/dev/sdb")];
    let seen = facts(&RECIPE, &nothing, &wished, &[("/x", PathState::Absent)]);
    plan(&RECIPE, &nothing, &seen, &wished);
}

#[test]
fn who_may_not_look_is_sent_for_root_whatever_the_words() {
    let wished = [("device", "/dev/sdb"), ("at", "/mnt/data")];
    let remedy = |why: Unseen| {
        let mut facts = looked(&wished);
        facts.disks.insert("/dev/sdb".into(), Err(why));
        let plan = plan(&RECIPE, &machine(), &facts, &wished);
        let checks = plan.checks.into_iter();
        let unmet = checks.filter(|check| !check.is_met);
        unmet.filter_map(|check| check.remedy).next().unwrap()
    };
    let root = "run it with sudo: as this user it cannot be seen";
    assert_eq!(remedy(Unseen::Denied("geen toegang".into())), root);
    // A mount point may have any name.
    let words = "/dev/sdb1 is mounted at /srv/permission denied";
    assert_eq!(remedy(Unseen::Other(words.into())), "unmount what is on it, or take another disk");
}

#[test]
fn a_line_of_another_disk_is_told_of_at_the_place_and_refused_above_it() {
    let wished = [("device", "/dev/sdb"), ("at", "/srv/disks/one")];
    let with = |line: &str| {
        let mut facts = looked(&wished);
        facts.seen.insert("/etc/fstab".into(), text(line));
        plan(&RECIPE, &machine(), &facts, &wished)
    };
    let is_told =
        |plan: &Plan| plan.risks.iter().any(|risk| risk.contains("this line is replaced"));
    let other = with("UUID=0d0d-1 /srv/disks/one ext4 nofail 0 2\n");
    assert_eq!(obstacles(&other), [""; 0]);
    assert!(is_told(&other));
    assert!(!is_told(&with("/dev/sdb1 /srv/disks/one ext4 nofail 0 2\n")));
    assert_eq!(obstacles(&with("UUID=0d0d-1 /srv/disks ext4 nofail 0 2\n")).len(), 1);
    assert_eq!(obstacles(&with("UUID=0d0d-1 /srv/disks ext4 noauto 0 2\n")), [""; 0]);
}
