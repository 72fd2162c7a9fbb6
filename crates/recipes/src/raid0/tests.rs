//! The plan for an array on example machines.

use super::*;
use crate::testing::{disk, facts, obstacles, plan, shown, text, wishes};
use crate::{DiskSpeed, Facts, TogetherSpeed};
use rubus_change::plan::Plan;
use rubus_fixtures as fixture;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::{BlockKind, HopKind, Mount, Setting};

const USUAL: [(&str, &str); 2] = [("devices", "/dev/sdb,/dev/sdc"), ("at", "/mnt/fast")];

/// A Pi 3 with two more sticks on its one bus.
fn machine() -> Machine {
    let mut machine = fixture::pi3_with_usb_ssd();
    for (name, port) in [("sdb", "1-1.3"), ("sdc", "1-1.4")] {
        let device = machine.device("sda").cloned();
        let mut device = device.expect("the fixture has it");
        device.name = name.into();
        let last = device.path.last_mut().expect("it has a path");
        last.id = port.into();
        machine.block_devices.push(device);
    }
    machine
}

/// The same with each stick on a bus of its own.
fn two_buses() -> Machine {
    let mut machine = machine();
    let stick = machine.block_devices.last_mut().expect("it was pushed");
    for hop in &mut stick.path {
        if hop.kind != HopKind::Soc {
            hop.id += "-other";
        }
    }
    machine
}

fn looked(machine: &Machine, wished: &[(&str, &str)]) -> Facts {
    let given = [
        ("/etc/fstab", text("proc /proc proc defaults 0 0\n")),
        (CONFIGURATION, text("HOMEHOST <system>\nMAILADDR root\n")),
    ];
    let mut facts = facts(&RECIPE, machine, wished, &given);
    for (path, serial) in [("/dev/sdb", "4C53-1"), ("/dev/sdc", "4C53-2")] {
        facts.disks.insert(path.into(), Ok(disk(path, serial)));
    }
    facts
}

fn measured(mut facts: Facts, read: f64, write: f64) -> Facts {
    for name in ["sdb", "sdc"] {
        let speed = DiskSpeed {
            read_bytes_per_second: Some(read),
            write_bytes_per_second: Some(write),
            source: "measured here on 2026-11-20".into(),
            ..DiskSpeed::default()
        };
        facts.speeds.insert(name.into(), speed);
    }
    facts
}

fn drawn(machine: &Machine, facts: &Facts, wished: &[(&str, &str)]) -> Plan {
    plan(&RECIPE, machine, facts, wished)
}

/// For the tests of journals that end early.
pub(crate) fn usual_plans() -> Vec<Plan> {
    let machine = machine();
    vec![drawn(&machine, &looked(&machine, &USUAL), &USUAL)]
}

#[test]
fn two_sticks_on_one_bus_are_warned_of() {
    let machine = machine();
    let mut facts = measured(looked(&machine, &USUAL), 24e6, 8e6);
    let mut larger = disk("/dev/sdc", "4C53-2");
    larger.size_bytes *= 2;
    facts.disks.insert("/dev/sdc".into(), Ok(larger));
    let plan = drawn(&machine, &facts, &USUAL);
    assert_eq!(obstacles(&plan), [""; 0]);
    assert_eq!(plan.disks_lost().len(), 2);
    insta::assert_snapshot!(shown(&plan));
}

#[test]
fn two_buses_carry_twice_as_much() {
    let machine = two_buses();
    let facts = measured(looked(&machine, &USUAL), 24e6, 8e6);
    let plan = drawn(&machine, &facts, &USUAL);
    let ratios: Vec<f64> = plan.gains.iter().map(|gain| gain.ratio).collect();
    assert_eq!(ratios, [2.0, 2.0]);
    assert!(!shown(&plan).contains("on one bus"));
}

#[test]
fn what_was_measured_at_once_counts_before_what_is_known_of_the_bus() {
    let machine = two_buses();
    let mut facts = measured(looked(&machine, &USUAL), 24e6, 8e6);
    let at_once = |each: f64| TogetherSpeed {
        disks: vec!["sdc".into(), "sdb".into()],
        is_read: true,
        alone_bytes_per_second: vec![24e6, 25e6],
        together_bytes_per_second: vec![each, each + 1e6],
        source: "measured at once on 2026-11-20, run 9".into(),
    };
    facts.together = vec![at_once(12e6), at_once(24e6)];
    let plan = drawn(&machine, &facts, &USUAL);
    let ratios: Vec<f64> = plan.gains.iter().map(|gain| gain.ratio).collect();
    assert_eq!(ratios, [1.0, 2.0], "the newest one, and of writing what is known");
    assert!(plan.gains[0].source.ends_with("run 9"));
    assert!(shown(&plan).contains("No gain in reading large files"));

    facts.together.remove(0);
    let plan = drawn(&machine, &facts, &USUAL);
    assert_eq!(plan.gains[0].ratio, 48e6 / 25e6);
    assert!(!shown(&plan).contains("No gain"));
    // Of other disks it says nothing.
    facts.together[0].disks[0] = "sdx".into();
    let plan = drawn(&machine, &facts, &USUAL);
    assert_eq!(plan.gains[0].ratio, 2.0);
}

#[test]
fn without_a_measurement_nothing_is_predicted() {
    let machine = machine();
    let wished = [USUAL[0], USUAL[1], ("filesystem", "btrfs"), ("chunk", "512K")];
    let plan = drawn(&machine, &looked(&machine, &wished), &wished);
    assert!(plan.gains.is_empty());
    insta::assert_snapshot!(shown(&plan));
}

#[test]
fn a_kernel_whose_configuration_cannot_be_seen_is_not_called_fine() {
    let mut machine = two_buses();
    machine.kernel_config.clear();
    let of_kernel = |facts: &Facts| {
        let plan = drawn(&machine, facts, &USUAL);
        let mut checks = plan.checks.into_iter();
        checks.find(|check| check.what == "the kernel has RAID-0").expect("it is checked")
    };
    let mut facts = looked(&machine, &USUAL);
    let unseen = of_kernel(&facts);
    assert!(unseen.is_met && unseen.is_unknown, "{unseen:?}");
    facts.seen.insert(MDSTAT.into(), text("Personalities : [raid0] \n"));
    let seen = of_kernel(&facts);
    assert!(seen.is_met && !seen.is_unknown, "{seen:?}");
}

#[test]
fn an_array_that_is_there_is_left_alone() {
    let mut machine = machine();
    let mut md = machine.device("sda").cloned().expect("in the fixture");
    md.name = "md127".into();
    md.kind = BlockKind::Md;
    md.below = vec!["sdb".into(), "sdc".into()];
    machine.block_devices.push(md);
    let mount = Mount {
        point: "/mnt/fast".into(),
        device: Some("md127".into()),
        ..machine.mounts[2].clone()
    };
    machine.mounts.push(mount);
    let plan = drawn(&machine, &looked(&machine, &USUAL), &USUAL);
    assert_eq!(obstacles(&plan), [""; 0]);
    assert!(plan.is_empty());
}

#[test]
fn every_obstacle_says_what_to_do() {
    let machine = machine();
    let mut no_raid = machine.clone();
    no_raid.kernel_config =
        vec![Setting { name: "MD_RAID0".into(), value: Fact::known("not set".into(), "test") }];
    let other = [("devices", "/dev/sda1,/dev/sdz"), ("at", "/mnt/fast")];
    let busy = [("devices", "/dev/sda,/dev/sdb"), ("at", "/mnt/fast")];
    let cases: [(&Machine, &[(&str, &str)]); 4] =
        [(&machine, &[]), (&no_raid, &USUAL), (&machine, &other), (&machine, &busy)];
    let mut said = String::new();
    for (machine, wished) in cases {
        let mut facts = looked(machine, wished);
        let busy = "/dev/sda1 is mounted at /srv/data.".to_string();
        facts.disks.insert("/dev/sda".into(), Err(busy.into()));
        let obstacles = obstacles(&drawn(machine, &facts, wished));
        assert!(!obstacles.is_empty(), "{wished:?}");
        said += &format!("{wished:?}\n  {}\n", obstacles.join("\n  "));
    }
    insta::assert_snapshot!(said);
}

#[test]
fn wishes_that_make_no_sense_are_refused() {
    for (name, value) in [
        ("devices", "/dev/sda"),
        ("devices", "/dev/sda,/dev/sda"),
        ("devices", "sda,sdb"),
        ("chunk", "3K"),
        ("chunk", "1"),
        ("filesystem", "vfat"),
        ("name", "a/b"),
    ] {
        let wished = wishes(&[(name, value)]);
        let error = RECIPE.plan(&machine(), &Facts::default(), &wished, "now");
        assert!(error.is_err(), "{name}={value}");
    }
}
