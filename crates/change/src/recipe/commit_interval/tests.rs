//! The plan for another commit interval on example machines.

use super::*;
use crate::plan::Plan;
use crate::recipe::Sight;
use crate::recipe::testing::{after, facts, obstacles, plan, shown, text, wishes};
use rubus_vocabulary::fixture;

const TABLE: &str = "proc            /proc           proc    defaults          0       0\n\
                     PARTUUID=4c4f4c4f-02  /               ext4    defaults,noatime  0       1\n";

fn drawn_on(machine: &Machine, wished: &[(&str, &str)], given: &[(&str, Sight)]) -> Plan {
    plan(&RECIPE, machine, &facts(&RECIPE, machine, wished, given), wished)
}

fn drawn(wished: &[(&str, &str)], given: &[(&str, Sight)]) -> Plan {
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
