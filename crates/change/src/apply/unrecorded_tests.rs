//! Journals that end early: wherever the journal ends and however far the machine is, going back leaves it as it was, or says
//! what it left. The same over the plans of every recipe is a test of `rubus_recipes`.
#![allow(
    clippy::disallowed_methods,
    reason = "tests put links in the way of a change of this machine"
)]

use std::path::Path;

use rubus_host::live::hands::LiveHands;
use rubus_host::{Files, Live};

use super::super::rehearsal::{
    STORE, applied_to, everything, journal_of, last, machine, undo, with_context,
};
use super::super::{ASKED_FOR, ChangeStore, Ending, differences, go, obstacles, turn};
use super::*;
use crate::fixture::plans::small_plan;
use crate::plan::TextFile;
use crate::steps::{RemoveFile, WriteFile};

#[test]
fn wherever_a_journal_is_torn_within_a_line_undo_knows_the_same() {
    let plan = &small_plan();
    let before = everything(plan, &machine(plan).directory(STORE), STORE);
    let applied = applied_to(plan, plan.steps.len() + 1);
    let journal = journal_of(&applied);
    let text = applied.text(Path::new(&journal)).unwrap() + "\n";
    for end in 0..text.len() {
        let mut machine = applied.clone();
        machine.meddle(&journal, &text[..end]);
        let left = undo(plan, &mut machine).unwrap_or_else(|why| panic!("byte {end}: {why}"));
        assert!(left.is_nothing(), "byte {end}: {left:?}");
        assert_eq!(everything(plan, &machine, STORE), before, "byte {end}");
    }
}

#[test]
fn what_something_else_changed_beyond_the_journal_is_said_and_not_touched() {
    let plan = &small_plan();
    let old = "/etc/old.conf";
    for (steps, stops) in [(2, false), (3, false), (4, true), (7, true)] {
        let mut machine = applied_to(plan, steps);
        machine.meddle(&journal_of(&machine), "");
        machine.meddle(old, "mine\n");
        let undone = undo(plan, &mut machine);
        assert_eq!(machine.text(Path::new(old)).unwrap(), "mine", "{steps} steps");
        match (undone, stops) {
            // A later step is in place, so this one was, and something else has changed it since.
            (Err(why), true) => assert!(why.contains(old), "{why}"),
            (Ok(left), false) => {
                let [found] = &left.found[..] else { panic!("{steps} steps: {left:?}") };
                assert!(found.starts_with(old) && found.contains("was not touched"), "{found}");
            }
            other => panic!("{steps} steps: {other:?}"),
        }
    }
}

#[test]
fn a_directory_with_something_in_it_is_not_called_removed() {
    let plan = &small_plan();
    let mut machine = applied_to(plan, 7);
    machine = machine.file("/etc/example.d/mine.conf", "mine\n", 0o644);
    let left = undo(plan, &mut machine).unwrap();
    assert_eq!(left.announced, ["the directory /etc/example.d stays: something is in it"]);
    assert_eq!(left.found, Vec::<String>::new());
}

/// A change of one file in a directory of its own, on this machine.
fn applied_here(top: &Path, action: Action) -> Change {
    let hands = &mut LiveHands::new();
    let mut plan = small_plan();
    plan.steps.truncate(1);
    plan.steps[0].action = action;
    let store = ChangeStore::at(top.join("changes"));
    let mut change = store.begin(plan.clone(), Vec::new(), "now", hands).unwrap();
    with_context(&plan, |context| go(&mut change, hands, context)).unwrap();
    assert!(change.state.is_finished && change.state.way == Way::Apply);
    change
}

fn undone_here(change: &mut Change) -> Result<Ending, String> {
    let hands = &mut LiveHands::new();
    let plan = change.plan.clone();
    let ended = with_context(&plan, |context| {
        turn(change, Way::Undo, ASKED_FOR, hands, context)?;
        go(change, hands, context)
    });
    ended.map_err(|error| error.to_string())
}

#[test]
fn a_directory_that_was_replaced_by_a_link_is_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path().canonicalize().unwrap();
    let (own, other) = (top.join("own"), top.join("other"));
    std::fs::create_dir(&own).unwrap();
    let path = own.join("a.conf");
    let write = WriteFile { path: path.clone(), was: None, becomes: TextFile::public("new\n") };
    let mut change = applied_here(&top, write.into());
    std::fs::rename(&own, &other).unwrap();
    std::os::unix::fs::symlink(&other, &own).unwrap();
    let found = obstacles(&change, &[], &Live::new());
    assert!(found[0].contains("leads to"), "{found:?}");
    let why = undone_here(&mut change).unwrap_err();
    assert!(why.contains("its directory was"), "{why}");
    assert_eq!(std::fs::read(other.join("a.conf")).unwrap(), b"new\n");
    // Put right, it goes on.
    std::fs::remove_file(&own).unwrap();
    std::fs::rename(&other, &own).unwrap();
    assert_eq!(undone_here(&mut change), Ok(Ending::Undone));
    assert!(!path.exists());
}

#[test]
fn a_dangling_link_in_the_place_of_a_removed_file_stays() {
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path().canonicalize().unwrap();
    let path = top.join("gone.conf");
    std::fs::write(&path, "gone\n").unwrap();
    let mode = Live::new().mode(&path).unwrap();
    let was = TextFile { text: "gone\n".into(), mode };
    let mut change = applied_here(&top, RemoveFile { path: path.clone(), was }.into());
    std::os::unix::fs::symlink(top.join("nowhere"), &path).unwrap();
    let found = obstacles(&change, &[], &Live::new());
    assert!(found[0].contains("a symbolic link to"), "{found:?}");
    assert_eq!(differences(&change, &[], &Live::new()).len(), 1);
    assert!(undone_here(&mut change).is_err());
    assert_eq!(std::fs::read_link(&path).unwrap(), top.join("nowhere"));
}

#[test]
fn an_honest_interruption_looks_nowhere_else() {
    let plan = &small_plan();
    for steps in 0..plan.steps.len() {
        let machine = applied_to(plan, steps);
        assert_eq!(
            unrecorded(&last(&machine), &machine).steps,
            Vec::<usize>::new(),
            "{steps} steps"
        );
    }
}
