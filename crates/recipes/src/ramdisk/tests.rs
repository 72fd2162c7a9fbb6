//! The plan for a RAM disk on example machines.

use super::*;
use crate::PathState;
use crate::testing::{after, facts, obstacles, plan, shown, text};
use rubus_change::plan::Action;
use rubus_change::steps::WriteFile;
use rubus_change::unseen::Unseen;
use rubus_fixtures as fixture;

const USUAL: [(&str, &str); 2] = [("at", "/mnt/ram"), ("size", "200M")];
const TABLE: &str = "proc  /proc  proc  defaults  0  0\n";

fn machine() -> Machine {
    fixture::pi3_with_usb_ssd()
}

fn drawn(wished: &[(&str, &str)], given: &[(&str, PathState)]) -> rubus_change::plan::Plan {
    let facts = facts(&RECIPE, &machine(), wished, given);
    plan(&RECIPE, &machine(), &facts, wished)
}

#[test]
fn a_directory_in_memory_now_and_at_each_boot() {
    let plan = drawn(&USUAL, &[("/etc/fstab", text(TABLE))]);
    insta::assert_snapshot!(shown(&plan));
}

#[test]
fn a_quarter_of_the_memory_without_a_size() {
    let plan = drawn(&[("at", "/mnt/ram")], &[]);
    assert_eq!(obstacles(&plan), [""; 0]);
    let said = format!("{:?}", plan.steps);
    assert!(said.contains("size=237371392"), "{said}");
}

#[test]
fn what_is_already_there_is_not_done_again() {
    let first_facts = facts(&RECIPE, &machine(), &USUAL, &[]);
    let first = plan(&RECIPE, &machine(), &first_facts, &USUAL);
    let mut later = machine();
    let mut mount = later.mounts[3].clone();
    mount.point = "/mnt/ram".into();
    mount.filesystem = "tmpfs".into();
    mount.options = vec!["rw".into(), "size=204800k".into()];
    later.mounts.push(mount);
    let mut facts = after(&first_facts, &first);
    let files = PathState::Directory(vec!["kept".into()]);
    facts.seen.insert("/mnt/ram".into(), files);
    let again = plan(&RECIPE, &later, &facts, &USUAL);
    assert_eq!(obstacles(&again), [""; 0]);
    assert!(again.is_empty(), "{:?}", again.steps);
}

#[test]
fn every_obstacle_says_what_to_do() {
    let full: Vec<String> = ["a", "b", "c", "d", "e", "f"].map(String::from).to_vec();
    let mut said = String::new();
    type Case<'a> = (&'a [(&'a str, &'a str)], Vec<(&'a str, PathState)>);
    let cases: [Case<'_>; 7] = [
        (&[], vec![]),
        (&[("at", "/")], vec![]),
        (&[("at", "/etc/x")], vec![]),
        (&[("at", "/srv/data")], vec![]),
        (&USUAL, vec![("/mnt/ram", PathState::Directory(full))]),
        (&USUAL, vec![("/mnt/ram", text("a file"))]),
        (&[("at", "/mnt/ram"), ("size", "700M")], vec![]),
    ];
    for (wished, given) in cases {
        let plan = drawn(wished, &given);
        let obstacles = obstacles(&plan);
        assert!(!obstacles.is_empty(), "{wished:?} {given:?}");
        said += &format!("{wished:?}\n  {}\n", obstacles.join("\n  "));
    }
    insta::assert_snapshot!(said);
}

#[test]
fn a_place_that_is_mounted_by_the_first_look_is_not_free() {
    for (options, count) in [("noauto,x-systemd.automount", 1), ("noauto", 0)] {
        let table = format!("UUID=5a /mnt/ram ext4 {options} 0 2\n");
        let plan = drawn(&USUAL, &[("/etc/fstab", text(&table))]);
        assert_eq!(obstacles(&plan).len(), count, "{options}: {:?}", obstacles(&plan));
    }
}

#[test]
fn a_capture_that_says_nothing_of_it_still_has_a_plan() {
    let wished = &USUAL;
    let mut facts = facts(&RECIPE, &machine(), wished, &[]);
    for sight in facts.seen.values_mut() {
        *sight = PathState::Hidden(Unseen::NotCaptured("not in the capture".into()));
    }
    let plan = plan(&RECIPE, &machine(), &facts, wished);
    assert_eq!(obstacles(&plan), [""; 0]);
    let nothing =
        RECIPE.plan(&fixture::unreadable_machine(), &facts, &crate::testing::wishes(wished), "now");
    assert!(nothing.is_ok());
}

#[test]
fn wishes_that_make_no_sense_are_refused() {
    for (name, value) in [
        ("at", "mnt/ram"),
        ("at", "/mnt/../etc"),
        ("at", "/mnt//ram"),
        ("at", "/mnt/a\nb"),
        ("size", "0"),
        ("size", "lots"),
    ] {
        let wished = crate::testing::wishes(&[(name, value)]);
        let error = RECIPE.plan(&machine(), &Default::default(), &wished, "now");
        assert!(error.is_err(), "{name}={value}");
    }
}

#[test]
fn a_place_with_a_blank_is_written_as_fstab_wants_it() {
    let plan = drawn(&[("at", "/mnt/my ram")], &[]);
    let table = plan.steps.iter().find_map(|step| match &step.action {
        Action::WriteFile(WriteFile { becomes, .. }) => Some(becomes.text.clone()),
        _ => None,
    });
    assert!(table.unwrap().contains(r"/mnt/my\040ram"));
}
