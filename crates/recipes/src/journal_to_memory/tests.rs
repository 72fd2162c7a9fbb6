//! The plan for a journal in memory: written once, after the settings of others, and in an order that undoing can go back.

use super::*;
use crate::testing::{after, facts, obstacles, plan, shown, text, without};
use rubus_change::plan::Plan;
use rubus_change::plan::commands::commands;
use rubus_change::steps::RestartService;
use rubus_fixtures as fixture;
use rubus_vocabulary::fact::Fact;

const SYSTEMD: (&str, PathState) = ("/run/systemd/system", PathState::Directory(Vec::new()));
const SIZE: [(&str, &str); 1] = [("size", "32M")];

fn old_journal() -> (&'static str, PathState) {
    let name = "5c1d0a1d2b3c4d5e8f90a1b2c3d4e5f6".into();
    (OLD_JOURNAL, PathState::Directory(vec![name]))
}

/// The example, with /run of 90 MiB.
fn machine() -> Machine {
    let mut machine = fixture::pi3_with_usb_ssd();
    let mut run = machine.mounts[3].clone();
    run.point = "/run".into();
    run.size_bytes = Fact::known(90 << 20, "statvfs");
    machine.mounts.push(run);
    machine
}

fn drawn(wished: &[(&str, &str)], given: &[(&str, PathState)]) -> Plan {
    let machine = machine();
    let mut given = given.to_vec();
    given.push(SYSTEMD);
    plan(&RECIPE, &machine, &facts(&RECIPE, &machine, wished, &given), wished)
}

#[test]
fn the_journal_of_a_card_goes_to_memory() {
    insta::assert_snapshot!(shown(&drawn(&SIZE, &[old_journal()])));
}

#[test]
fn without_a_size_journald_decides_and_rsyslog_is_told_of() {
    let said = shown(&drawn(&[], &[]));
    assert!(!said.contains("RuntimeMaxUse"), "{said}");
    assert!(said.contains("at most 9.00 MiB, a tenth of /run"), "{said}");
    assert!(said.contains("There is no /var/log/journal"), "{said}");
    assert!(said.contains("rsyslog is installed"), "{said}");
    let machine = machine();
    let mut none = facts(&RECIPE, &machine, &[], &[SYSTEMD]);
    without(RSYSLOG, &mut none);
    let said = shown(&plan(&RECIPE, &machine, &none, &[]));
    assert!(!said.contains("rsyslog"), "{said}");
}

/// Undoing goes back from the last step to the first: journald must start again when its file is gone, not before.
#[test]
fn journald_starts_again_after_the_file_whichever_way() {
    let plan = drawn(&SIZE, &[]);
    let restarts: Vec<(usize, When)> = plan
        .steps
        .iter()
        .enumerate()
        .filter_map(|(place, step)| match &step.action {
            Action::RestartService(RestartService { when, .. }) => Some((place, *when)),
            _ => None,
        })
        .collect();
    let last = plan.steps.len() - 1;
    assert_eq!(restarts, [(0, When::Undone), (last, When::Applied)]);
    let run: Vec<usize> = plan.steps.iter().map(|step| commands(&step.action).len()).collect();
    assert_eq!(run.first(), Some(&0), "it waits for the undo");
    assert_eq!(run.last(), Some(&2), "it is restarted, and asked");
}

#[test]
fn made_once_it_is_not_made_again_and_another_size_is() {
    let machine = machine();
    let before = facts(&RECIPE, &machine, &SIZE, &[SYSTEMD, old_journal()]);
    let first = plan(&RECIPE, &machine, &before, &SIZE);
    let later = after(&before, &first);
    let again = plan(&RECIPE, &machine, &later, &SIZE);
    assert_eq!(obstacles(&again), [""; 0]);
    assert!(again.is_empty(), "{:?}", again.steps);
    let larger = plan(&RECIPE, &machine, &later, &[("size", "5000K")]);
    let said = shown(&larger);
    assert!(said.contains("- RuntimeMaxUse=32M"), "{said}");
    assert!(said.contains("+ RuntimeMaxUse=5120000"), "{said}");
}

/// Raspberry Pi OS has such a file.
#[test]
fn what_others_say_counts_in_the_order_of_the_names() {
    let theirs = |path, says: &str| (path, text(&format!("[Journal]\n#Storage=auto\n{says}\n")));
    let rpi = "/usr/lib/systemd/journald.conf.d/40-rpi-volatile-storage.conf";
    let is_there = drawn(&[], &[theirs(rpi, "Storage=volatile")]);
    assert!(is_there.is_empty(), "{:?}", is_there.steps);
    assert!(is_there.notes[0].contains(rpi), "{:?}", is_there.notes);
    // With a size there is something to do.
    assert!(!drawn(&SIZE, &[theirs(rpi, "Storage=volatile")]).is_empty());
    // One that sorts later has the last word, and one of the same name above hides it.
    let later = theirs("/etc/systemd/journald.conf.d/50-own.conf", "Storage = persistent");
    assert!(!drawn(&[], &[theirs(rpi, "Storage=volatile"), later]).is_empty());
    let above = theirs("/etc/systemd/journald.conf.d/40-rpi-volatile-storage.conf", "Compress=yes");
    assert!(!drawn(&[], &[theirs(rpi, "Storage=volatile"), above]).is_empty());
    let main = theirs(MAIN_FILE, "Storage=volatile");
    assert!(drawn(&[], &[main]).is_empty());
}

#[test]
fn a_capture_does_not_say_what_journald_is_told() {
    let mut machine = machine();
    machine.origin = Origin::Capture { path: "captures/board".into(), label: "hand-built".into() };
    let facts = facts(&RECIPE, &machine, &[], &[]);
    let plan = plan(&RECIPE, &machine, &facts, &[]);
    assert_eq!(obstacles(&plan), [""; 0]);
    let unknown = plan.checks.iter().filter(|check| check.is_unknown);
    assert_eq!(unknown.count(), 2, "{:?}", plan.checks);
    assert!(!shown(&plan).contains("There is no /var/log/journal"));
}

#[test]
fn every_obstacle_says_what_to_do() {
    let mut said = String::new();
    let persistent = text("[Journal]\nStorage=persistent\n");
    for (wished, given) in [
        (&[][..], (SYSTEMD.0, PathState::Absent)),
        (&[("size", "80M")], SYSTEMD),
        (&[], ("/usr/lib/systemd/journald.conf.d/99-keep.conf", persistent.clone())),
        (&[], ("/etc/systemd/journald.conf.d/zz-own.conf", persistent)),
    ] {
        let machine = machine();
        let mut facts = facts(&RECIPE, &machine, wished, &[SYSTEMD]);
        facts.seen.insert(given.0.into(), given.1);
        let obstacles = obstacles(&plan(&RECIPE, &machine, &facts, wished));
        assert_eq!(obstacles.len(), 1, "{obstacles:?}");
        said += &format!("{wished:?}\n  {}\n", obstacles.join("\n  "));
    }
    insta::assert_snapshot!(said);
    assert!((RECIPE.options[0].check)("1M").is_err());
}
