//! The last pass on small trees: what changes meanwhile is told, what is wrong fails.
#![allow(clippy::disallowed_methods, reason = "tests make what the last pass is to find")]

use std::fs;
use std::path::PathBuf;

use rubus_copy::receipt::{Listing, Remark, Stage};

use super::*;

struct Fixture {
    _directory: tempfile::TempDir,
    from: PathBuf,
    to: PathBuf,
}

/// A tree of which a first copy was made.
fn copied() -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let (from, to) = (directory.path().join("from"), directory.path().join("to"));
    fs::create_dir_all(from.join("etc")).unwrap();
    for (name, text) in [("etc/a", "first"), ("etc/b", "second"), ("c", "third")] {
        fs::write(from.join(name), text).unwrap();
    }
    copy(&from, &to, &CopyOptions::default(), &mut |_| {}).unwrap();
    Fixture { _directory: directory, from, to }
}

impl Fixture {
    fn last_pass(&self) -> LastPass<'_> {
        LastPass {
            source: &self.from,
            target: &self.to,
            excludes: Paths::default(),
            onto: Onto::Disk,
            stop: Arc::default(),
        }
    }
}

#[test]
fn what_changed_since_the_first_pass_is_brought_over() {
    let fixture = copied();
    fs::write(fixture.from.join("etc/a"), "changed").unwrap();
    fs::remove_file(fixture.from.join("c")).unwrap();
    let said = fixture.last_pass().go(&mut |_| {}).unwrap();
    assert!(said.ends_with(": no difference"), "{said}");
    let there = fs::read_to_string(fixture.to.join("etc/a")).unwrap();
    assert_eq!(there, "changed");
    assert!(!fixture.to.join("c").exists());
}

#[test]
fn what_changes_between_copy_and_look_is_told_and_no_fault() {
    let fixture = copied();
    let mut is_changed = false;
    let mut change = |progress: &rubus_copy::receipt::Progress| {
        if progress.stage == Stage::Settling && !is_changed {
            is_changed = true;
            fs::write(fixture.from.join("etc/a"), "changed later").unwrap();
            fs::remove_file(fixture.from.join("c")).unwrap();
        }
    };
    let said = fixture.last_pass().go(&mut change).unwrap();
    assert!(is_changed);
    assert!(said.contains("changed since: "), "{said}");
    assert!(said.contains("etc/a has 5 bytes and not 13"), "{said}");
    assert!(said.contains("c is not in the source"), "{said}");
}

#[test]
fn damage_in_the_copy_fails_and_is_named() {
    let fixture = copied();
    // Long ago as far as the source can tell.
    std::thread::sleep(std::time::Duration::from_millis(2100));
    let file = fixture.to.join("etc/b");
    let dated = fs::metadata(&file).unwrap().modified().unwrap();
    fs::write(&file, "secnod").unwrap();
    let file = fs::File::options().write(true).open(&file).unwrap();
    file.set_modified(dated).unwrap();
    let fault = fixture.last_pass().go(&mut |_| {}).unwrap_err();
    assert!(
        fault.starts_with("1 entry of the copy is not as it is on the running root"),
        "{fault}"
    );
    assert!(fault.contains("etc/b"), "{fault}");
    assert!(fault.contains("look at the kernel log"), "{fault}");
}

#[test]
fn differences_that_are_counted_and_not_named_are_not_explained() {
    let remark = |path: &str| Remark { path: path.into(), what: "is of 1.0 and not of 2.0".into() };
    let found = Comparison {
        differences: Listing { count: 4, examples: vec![remark("new"), remark("old"), remark("")] },
        ..Comparison::default()
    };
    let judged = judge(&found, &|path| path != "old");
    let lines = |names: &[&str]| -> Vec<String> {
        let line = |name: &&str| format!("{name} is of 1.0 and not of 2.0");
        names.iter().map(line).collect()
    };
    assert_eq!(judged.explained, lines(&["new", "the root itself"]));
    assert_eq!(judged.unexplained, lines(&["old"]));
    assert_eq!(judged.unnamed, 1);
    let fault = judged.fault();
    assert!(fault.starts_with("2 entries of the copy are not as they are"), "{fault}");
}

#[test]
fn only_the_first_are_named() {
    let lines: Vec<String> = (0..15).map(|number| format!("file {number}")).collect();
    assert!(named(&lines).ends_with("file 11 and 3 more"));
    assert_eq!(named(&lines[..2]), "file 0, file 1");
}

#[test]
fn logs_may_lack_their_last_moment_and_databases_may_not() {
    assert!(may_be_torn("var/log/journal/x/system.journal"));
    assert!(may_be_torn("/var/log/syslog"));
    assert!(!may_be_torn("var/lib/mysql/ibdata1"));
    assert!(!may_be_torn("home/pi/var/log/x"));
}
