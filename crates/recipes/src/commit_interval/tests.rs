//! The plan for another commit interval on example machines.

use super::*;
use crate::PathState;
use crate::testing::{after, facts, obstacles, plan, shown, text, wishes};
use rubus_change::plan::Plan;
use rubus_fixtures as fixture;
use rubus_vocabulary::fact::Fact;

const TABLE: &str = "proc            /proc           proc    defaults          0       0\n\
                     PARTUUID=4c4f4c4f-02  /               ext4    defaults,noatime  0       1\n";

fn drawn_on(machine: &Machine, wished: &[(&str, &str)], given: &[(&str, PathState)]) -> Plan {
    plan(&RECIPE, machine, &facts(&RECIPE, machine, wished, given), wished)
}

fn drawn(wished: &[(&str, &str)], given: &[(&str, PathState)]) -> Plan {
    drawn_on(&fixture::pi3_with_usb_ssd(), wished, given)
}

#[test]
fn the_root_of_a_card_commits_once_a_minute() {
    insta::assert_snapshot!(shown(&drawn(&[], &[(FSTAB, text(TABLE))])));
}

#[test]
fn an_option_of_its_kind_is_replaced_in_its_place_and_nothing_else_is_touched() {
    let all = [
        ("defaults", "defaults,commit=60"),
        ("commit=5", "commit=60"),
        ("rw,commit=600,noatime", "rw,commit=60,noatime"),
        ("commit=1,rw,commit=2", "commit=60,rw"),
        ("rw,commit=60", "rw,commit=60"),
        ("", "commit=60"),
    ];
    for (before, expected) in all {
        assert_eq!(with_commit(before, "commit=60"), expected, "{before:?}");
    }
}

#[test]
fn made_once_it_is_not_made_again_and_another_time_is() {
    let machine = fixture::pi3_with_usb_ssd();
    let before = facts(&RECIPE, &machine, &[], &[(FSTAB, text(TABLE))]);
    let first = plan(&RECIPE, &machine, &before, &[]);
    let later = after(&before, &first);
    let again = plan(&RECIPE, &machine, &later, &[]);
    assert_eq!(obstacles(&again), [""; 0]);
    assert!(again.is_empty(), "{:?}", again.steps);
    assert_eq!(again.promises, first.promises);
    let longer = plan(&RECIPE, &machine, &later, &[("seconds", "120")]);
    let said = shown(&longer);
    assert!(said.contains("defaults,noatime,commit=120"), "{said}");
}

/// What the root commits at already, by whichever setting, is never made shorter.
#[test]
fn a_longer_interval_stays() {
    let options = |options: &str| TABLE.replace("defaults,noatime", options);
    let mut remounted = fixture::pi3_with_usb_ssd();
    for mount in remounted.mounts.iter_mut().filter(|mount| mount.point == "/") {
        mount.options = vec!["rw".into(), "commit=600".into()];
    }
    let mut told = fixture::pi3_with_usb_ssd();
    told.system.command_line =
        Fact::known("root=/dev/mmcblk0p2 rootflags=noatime,commit=300 quiet".into(), "test");
    let mut btrfs = fixture::pi3_with_usb_ssd();
    for mount in btrfs.mounts.iter_mut().filter(|mount| mount.point == "/") {
        mount.filesystem = "btrfs".into();
    }
    let usual = fixture::pi3_with_usb_ssd();
    for (machine, table, seconds, stays) in [
        (&usual, options("noatime,commit=120,errors=remount-ro"), "60", true),
        (&usual, options("commit=5,commit=90"), "60", true),
        (&usual, options("commit=0"), "60", false),
        (&usual, options("commit=30"), "60", false),
        (&remounted, options("defaults"), "60", true),
        (&remounted, options("defaults,commit=5"), "60", false),
        (&told, options("defaults"), "60", true),
        (&told, options("defaults"), "300", false),
        (&btrfs, options("defaults"), "20", true),
        (&btrfs, options("defaults"), "60", false),
    ] {
        let wished = [("seconds", seconds)];
        let plan = drawn_on(machine, &wished, &[(FSTAB, text(&table))]);
        assert_eq!(obstacles(&plan), [""; 0], "{table}");
        assert_eq!(plan.is_empty(), stays, "{table} {seconds}");
        let said = plan.notes.iter().any(|note| note.contains("stays as it is"));
        assert_eq!(said, stays, "{table} {seconds}");
    }
}

#[test]
fn every_obstacle_says_what_to_do() {
    let mut said = String::new();
    let mut other = fixture::pi3_with_usb_ssd();
    for mount in other.mounts.iter_mut().filter(|mount| mount.point == "/") {
        mount.filesystem = "f2fs".into();
    }
    let cases = [
        drawn_on(&other, &[], &[(FSTAB, text(TABLE))]),
        drawn(&[], &[(FSTAB, text("proc /proc proc defaults 0 0\n"))]),
        drawn(&[], &[]),
    ];
    for plan in cases {
        let obstacles = obstacles(&plan);
        assert!(!obstacles.is_empty() && plan.steps.is_empty());
        said += &format!("{}\n", obstacles.join("\n"));
    }
    insta::assert_snapshot!(said);
}

#[test]
fn wishes_that_make_no_sense_are_refused() {
    for value in ["0", "4", "301", "-1", "1m", ""] {
        let wished = wishes(&[("seconds", value)]);
        let error = RECIPE.plan(&fixture::pi3_with_usb_ssd(), &Default::default(), &wished, "now");
        assert!(error.is_err(), "{value}");
    }
}
