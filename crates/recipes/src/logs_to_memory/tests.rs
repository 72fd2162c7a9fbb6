//! The plan for logs in memory: its texts, what it refuses, and that it is made once.

use super::*;
use crate::testing::{after, facts, obstacles, plan, shown, text};
use crate::{Facts, PathState};
use rubus_change::plan::Plan;
use rubus_fixtures as fixture;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::Origin;

const SYSTEMD: (&str, PathState) = ("/run/systemd/system", PathState::Directory(Vec::new()));
const MIB: u64 = 1 << 20;

/// A Pi with 1 GiB, of which 600 MiB are available.
fn machine() -> Machine {
    let mut machine = fixture::pi3_with_usb_ssd();
    machine.memory.total_bytes = Fact::known(920 * MIB, "/proc/meminfo");
    machine.memory.available_bytes = Fact::known(600 * MIB, "/proc/meminfo");
    machine
}

/// Facts with this many MiB in /var/log, and in its journal.
fn facts_with(
    logs: u64,
    journal: u64,
    wished: &[(&str, &str)],
    given: &[(&str, PathState)],
) -> Facts {
    let mut given = given.to_vec();
    given.push(SYSTEMD);
    let mut facts = facts(&RECIPE, &machine(), wished, &given);
    for path in units_of_others() {
        let is_given = given.iter().any(|(given, _)| Path::new(given) == path);
        if !is_given {
            facts.seen.insert(path, PathState::Absent);
        }
    }
    facts.directories =
        [(LOGS, logs), (JOURNAL, journal)].map(|(path, mib)| (path.into(), mib * MIB)).into();
    facts
}

fn drawn(wished: &[(&str, &str)], given: &[(&str, PathState)]) -> Plan {
    let facts = facts_with(60, 40, wished, given);
    plan(&RECIPE, &machine(), &facts, wished)
}

#[test]
fn the_logs_of_a_card_go_to_memory() {
    let said = shown(&drawn(&[], &[]));
    // The program is tested where it runs.
    let program: String =
        unit_files::PROGRAM_TEXT.lines().map(|line| format!("  + {line}\n")).collect();
    assert!(said.contains(&program), "{said}");
    insta::assert_snapshot!(said.replace(&program, "  + (the program)\n"));
}

#[test]
fn made_once_it_is_not_made_again_and_another_size_is() {
    let before = facts_with(60, 40, &[], &[]);
    let first = plan(&RECIPE, &machine(), &before, &[]);
    let mut later = after(&before, &first);
    // The kernel leaves a little more now, and the filesystem has grown.
    let mut machine = machine();
    machine.memory.total_bytes = Fact::known(990 * MIB, "/proc/meminfo");
    machine.memory.available_bytes = Fact::known(20 * MIB, "/proc/meminfo");
    for mount in &mut machine.mounts {
        mount.size_bytes = Fact::known(500 * MIB, "statvfs");
    }
    let again = plan(&RECIPE, &machine, &later, &[]);
    assert_eq!(obstacles(&again), [""; 0]);
    assert!(again.is_empty(), "{:?}", again.steps);
    // So it is when the logs are in memory.
    let mut mount = machine.mounts[0].clone();
    (mount.point, mount.source, mount.filesystem) = (LOGS.into(), SOURCE.into(), "tmpfs".into());
    machine.mounts.push(mount);
    let again = plan(&RECIPE, &machine, &later, &[]);
    assert!(again.is_empty() && !again.promises.is_empty(), "{:?}", again.notes);
    later.seen.insert(SYSTEMD.0.into(), PathState::Directory(Vec::new()));
    let smaller = plan(&RECIPE, &machine, &later, &[("size", "40M")]);
    let said = shown(&smaller);
    assert!(said.contains("+ Environment=SIZE_KIB=40960 "), "{said}");
}

#[test]
fn the_size_follows_the_memory_and_the_journal_its_disk() {
    for (total, kib) in [(200, 32768), (427, 53248), (920, 117760), (7800, 262144)] {
        let mut machine = machine();
        machine.memory.total_bytes = Fact::known(total * MIB, "/proc/meminfo");
        let facts = facts_with(1, 0, &[], &[]);
        let said = shown(&plan(&RECIPE, &machine, &facts, &[]));
        let wanted = format!("SIZE_KIB={} ", kib / 4096 * 4096);
        assert!(said.contains(&wanted), "{total}: {said}");
    }
    let told = text("[Journal]\nSystemMaxUse=50M\n");
    let said = shown(&drawn(&[], &[("/etc/systemd/journald.conf.d/10-own.conf", told)]));
    assert!(said.contains(" JOURNAL_KIB=51200\n"), "{said}");
}

#[test]
fn a_journal_in_memory_and_other_spans_are_told_of() {
    let volatile = text("[Journal]\nStorage=volatile\n");
    let main = ("/etc/systemd/journald.conf", volatile);
    let said = shown(&drawn(&[("save", "weekly")], &[main]));
    assert!(said.contains("Storage=volatile"), "{said}");
    assert!(said.contains("up to a week"), "{said}");
    assert!(said.contains("+ OnCalendar=weekly"), "{said}");
}

#[test]
fn logs_that_are_in_memory_already_stay_so() {
    let mut machine = machine();
    let mut mount = machine.mounts[0].clone();
    (mount.point, mount.source, mount.filesystem) = (LOGS.into(), "log2ram".into(), "tmpfs".into());
    machine.mounts.push(mount);
    let plan = plan(&RECIPE, &machine, &facts_with(60, 40, &[], &[]), &[]);
    assert!(plan.is_empty() && plan.promises.is_empty());
    assert_eq!(plan.notes, ["/var/log is in memory already: log2ram (tmpfs) is mounted there."]);
}

#[test]
fn a_capture_does_not_say_how_large_the_logs_are() {
    let mut machine = machine();
    machine.origin = Origin::Capture { path: "captures/board".into(), label: "hand-built".into() };
    let mut facts = facts(&RECIPE, &machine, &[], &[]);
    for path in units_of_others() {
        facts.seen.insert(path, PathState::Absent);
    }
    let plan = plan(&RECIPE, &machine, &facts, &[]);
    assert_eq!(obstacles(&plan), [""; 0]);
    let unknown = plan.checks.iter().filter(|check| check.is_unknown);
    assert_eq!(unknown.count(), 2, "{:?}", plan.checks);
}

/// Six lines about programs that each Debian has hid the one check that matters.
#[test]
fn programs_that_a_capture_does_not_hold_are_one_check() {
    let mut machine = machine();
    machine.origin = Origin::Capture { path: "captures/board".into(), label: "hand-built".into() };
    let mut facts = facts_with(60, 40, &[], &[]);
    for path in programs::paths(PROGRAMS) {
        facts.seen.insert(path, PathState::Absent);
    }
    let unknown = |facts: &Facts| -> Vec<String> {
        let checks = plan(&RECIPE, &machine, facts, &[]).checks;
        let unknown = checks.into_iter().filter(|check| check.is_unknown);
        unknown.map(|check| check.what).filter(|what| what.contains("program")).collect()
    };
    assert_eq!(
        unknown(&facts),
        ["the programs find, xargs, comm, mount, umount and systemctl are there"]
    );
    for path in ["/usr/bin/find", "/usr/bin/xargs", "/usr/bin/comm"] {
        facts.seen.insert(path.into(), PathState::Something);
    }
    assert_eq!(unknown(&facts), ["the programs mount, umount and systemctl are there"]);
}

#[test]
fn every_obstacle_says_what_to_do() {
    let mut said = String::new();
    let mut tell = |title: &str, machine: &Machine, facts: &Facts, wished: &[(&str, &str)]| {
        let obstacles = obstacles(&plan(&RECIPE, machine, facts, wished));
        assert_eq!(obstacles.len(), 1, "{title}: {obstacles:?}");
        said += &format!("{title}\n  {}\n", obstacles.join("\n  "));
    };
    let fine = || facts_with(60, 40, &[], &[]);
    let mut none = fine();
    none.seen.insert(SYSTEMD.0.into(), PathState::Absent);
    tell("no systemd", &machine(), &none, &[]);
    let large = [("size", "300M")];
    tell("too large", &machine(), &fine(), &large);
    let mut small = machine();
    small.memory.total_bytes = Fact::known(60 * MIB, "/proc/meminfo");
    tell("a small machine", &small, &facts_with(1, 0, &[], &[]), &[("size", "32M")]);
    let mut busy = machine();
    busy.memory.available_bytes = Fact::known(50 * MIB, "/proc/meminfo");
    tell("memory in use", &busy, &fine(), &[]);
    let logs = facts_with(140, 40, &[], &[]);
    tell("many logs", &machine(), &logs, &[]);
    let logs = facts_with(340, 40, &[], &[]);
    tell("far too many logs", &machine(), &logs, &[]);
    let there = ("/etc/systemd/system/log2ram.service", text("[Unit]\n"));
    tell("log2ram", &machine(), &facts_with(60, 40, &[], &[there]), &[]);
    let line = (FSTAB, text("tmpfs /var/log tmpfs size=64M 0 0\n"));
    tell("fstab", &machine(), &facts_with(60, 40, &[], &[line]), &[]);
    let mut audited = machine();
    let mut mount = audited.mounts[0].clone();
    mount.point = "/var/log/audit".into();
    audited.mounts.push(mount);
    tell("a mount below", &audited, &fine(), &[]);
    insta::assert_snapshot!(said);
    assert!((RECIPE.options[0].check)("1M").is_err());
    assert!((RECIPE.options[1].check)("never").is_err());
}

#[test]
fn a_captured_system_without_systemd_is_refused_where_the_capture_shows_it() {
    let mut captured = machine();
    captured.origin = Origin::Capture { path: "captures/board".into(), label: "hand-built".into() };
    let mut facts = facts_with(60, 40, &[], &[]);
    facts.seen.insert(SYSTEMD.0.into(), PathState::Absent);
    let said = |machine: &Machine, facts: &Facts| {
        let plan = plan(&RECIPE, machine, facts, &[]);
        (obstacles(&plan).len(), shown(&plan))
    };
    assert_eq!(said(&captured, &facts).0, 0);
    let mut alpine = captured.clone();
    alpine.system.os_ids = vec!["alpine".into()];
    let (refused, text) = said(&alpine, &facts);
    assert!(refused == 1 && text.contains("no: the system is alpine"), "{text}");
    facts.seen.insert("/sbin/openrc".into(), PathState::Something);
    let (refused, text) = said(&captured, &facts);
    assert!(refused == 1 && text.contains("OpenRC does: /sbin/openrc is there"), "{text}");
    // A file that an older system left says nothing.
    facts.seen.insert("/lib/systemd/systemd".into(), PathState::Something);
    assert_eq!(said(&captured, &facts).0, 0);
}
