//! Every way in which a trial can be disturbed or cut off, and what is left of the settings then.

use std::path::Path;

use crate::live::{Fate, Knob, LiveSettings, SetError, restore_left};
use crate::record::{Record, file};
use crate::simulated::{AHEAD, Kernel, RECORD, REQUESTS, SCHEDULER};

fn scheduler() -> Knob {
    Knob {
        path: SCHEDULER.into(),
        disk: Some("sda".into()),
        resets: vec![REQUESTS.into(), "/sys/block/sda/queue/iosched".into()],
    }
}

fn ahead() -> Knob {
    Knob { path: AHEAD.into(), disk: Some("sda".into()), resets: Vec::new() }
}

fn begin(kernel: &mut Kernel) -> LiveSettings<'_> {
    LiveSettings::begin(Path::new(RECORD), "one", kernel).expect("there is no record")
}

/// A whole trial of two settings; what a killed program does not do is not done.
fn trial(kernel: &mut Kernel) -> Result<(), SetError> {
    let mut live = begin(kernel);
    for _ in 0..2 {
        live.set(&scheduler(), "bfq")?;
        live.set(&scheduler(), "mq-deadline")?;
    }
    live.restore(&scheduler());
    live.set(&ahead(), "1024")?;
    live.set(&ahead(), "128")?;
    live.set(&ahead(), "1024")?;
    Ok(live.finish().1?)
}

fn left(kernel: &mut Kernel) -> Vec<Fate> {
    let restored = restore_left(Path::new(RECORD), None, kernel).expect("a record that is whole");
    restored.into_iter().map(|one| one.fate).collect()
}

#[test]
fn a_trial_leaves_every_setting_as_it_was_and_no_record() {
    let mut kernel = Kernel::new();
    let before = kernel.settings();
    trial(&mut kernel).unwrap();
    assert_eq!(kernel.settings(), before, "what the kernel resets with the scheduler, too");
    assert!(!kernel.has_record());
}

#[test]
fn a_kill_at_any_operation_leaves_what_restores_everything() {
    let mut whole = Kernel::new();
    let before = whole.settings();
    trial(&mut whole).unwrap();
    assert!(whole.operations > 20, "{}", whole.operations);
    for killed_at in 0..whole.operations {
        let mut kernel = Kernel { lives_for: Some(killed_at), ..Kernel::new() };
        // Killed: its own attempts to restore do nothing either.
        let _ = trial(&mut kernel);
        kernel.lives_for = None;
        left(&mut kernel);
        assert_eq!(kernel.settings(), before, "killed at operation {killed_at}");
        assert!(!kernel.has_record(), "killed at operation {killed_at}");
    }
}

#[test]
fn a_restoration_that_is_killed_at_any_operation_is_finished_by_the_next() {
    let cut_off = || {
        let mut kernel = Kernel::new();
        let mut live = begin(&mut kernel);
        live.set(&scheduler(), "bfq").unwrap();
        live.set(&ahead(), "1024").unwrap();
        kernel
    };
    let before = Kernel::new().settings();
    for killed_at in 0..20 {
        let mut kernel = cut_off();
        kernel.lives_for = Some(killed_at);
        let _ = restore_left(Path::new(RECORD), None, &mut kernel);
        kernel.lives_for = None;
        left(&mut kernel);
        assert_eq!(kernel.settings(), before, "killed at operation {killed_at}");
        assert!(!kernel.has_record());
    }
}

#[test]
fn what_another_program_has_set_meanwhile_stays() {
    let mut kernel = Kernel::new();
    let mut live = begin(&mut kernel);
    live.set(&ahead(), "1024").unwrap();
    kernel.put(AHEAD, "4096");
    assert_eq!(left(&mut kernel), [Fate::Foreign("4096".into())]);
    assert_eq!(kernel.value(AHEAD), Some("4096"));
    assert!(!kernel.has_record(), "there is nothing more to do about it");
}

#[test]
fn nothing_is_written_over_a_value_of_another_program() {
    let mut kernel = Kernel::new();
    begin(&mut kernel).set(&ahead(), "1024").unwrap();
    let record = Record::load(Path::new(RECORD), &kernel).unwrap().unwrap();
    kernel.put(AHEAD, "4096");
    let mut live = LiveSettings::again(record, Path::new(RECORD), &mut kernel);
    let refused = live.set(&ahead(), "128").unwrap_err();
    assert!(matches!(refused, SetError::Foreign { .. }), "{refused}");
    assert!(live.check(&ahead(), "1024").is_err());
    assert_eq!(kernel.value(AHEAD), Some("4096"));
}

#[test]
fn a_setting_that_cannot_be_restored_holds_up_no_other_and_can_be_tried_again() {
    let mut kernel = Kernel::new();
    let before = kernel.settings();
    let mut live = begin(&mut kernel);
    live.set(&scheduler(), "bfq").unwrap();
    live.set(&ahead(), "1024").unwrap();
    kernel.stuck.insert(AHEAD.into());
    let fates = left(&mut kernel);
    assert!(matches!(fates[..], [Fate::Failed(_), Fate::Restored]), "{fates:?}");
    assert_eq!(kernel.value(SCHEDULER), Some("none [mq-deadline] bfq"));
    assert!(kernel.has_record());
    kernel.stuck.clear();
    assert_eq!(left(&mut kernel), [Fate::Restored]);
    assert_eq!(kernel.settings(), before);
    assert!(!kernel.has_record());
}

#[test]
fn a_disk_that_is_gone_or_was_replaced_is_not_touched() {
    for is_replaced in [false, true] {
        let mut kernel = Kernel::new();
        begin(&mut kernel).set(&ahead(), "1024").unwrap();
        kernel.unplug();
        if is_replaced {
            let other = Kernel::new();
            for (path, text) in other.settings() {
                kernel.put(&path.to_string_lossy(), &text);
            }
            kernel.put("/sys/block/sda/diskseq", "8");
            kernel.put(AHEAD, "1024");
        }
        assert_eq!(left(&mut kernel), [Fate::Gone]);
        assert_eq!(kernel.value(AHEAD), is_replaced.then_some("1024"));
        assert!(!kernel.has_record());
    }
}

#[test]
fn a_record_from_before_a_restart_changes_nothing() {
    let mut kernel = Kernel::new();
    begin(&mut kernel).set(&ahead(), "1024").unwrap();
    kernel.put(crate::record::BOOT_ID, "boot-2");
    assert_eq!(left(&mut kernel), [Fate::OtherBoot]);
    assert_eq!(kernel.value(AHEAD), Some("1024"));
    assert!(!kernel.has_record());
}

#[test]
fn the_keeper_of_one_trial_leaves_another_ones_record() {
    let mut kernel = Kernel::new();
    begin(&mut kernel).set(&ahead(), "1024").unwrap();
    let restored = restore_left(Path::new(RECORD), Some("two"), &mut kernel).unwrap();
    assert!(restored.is_empty() && kernel.has_record());
    restore_left(Path::new(RECORD), Some("one"), &mut kernel).unwrap();
    assert_eq!(kernel.value(AHEAD), Some("128"));
}

#[test]
fn a_second_trial_does_not_begin_on_a_record() {
    let mut kernel = Kernel::new();
    begin(&mut kernel).set(&ahead(), "1024").unwrap();
    assert!(LiveSettings::begin(Path::new(RECORD), "two", &mut kernel).is_err());
}

#[test]
fn a_value_that_the_kernel_refuses_changes_nothing() {
    let mut kernel = Kernel::new();
    let before = kernel.settings();
    kernel.stuck.insert(AHEAD.into());
    let mut live = begin(&mut kernel);
    assert!(matches!(live.set(&ahead(), "1024"), Err(SetError::Refused(_))));
    assert_eq!(live.restore(&ahead()).map(|one| one.fate), Some(Fate::Restored));
    assert!(!kernel.has_record());
    assert_eq!(kernel.settings(), before);
}

#[test]
fn without_a_place_for_the_record_nothing_is_changed() {
    let mut kernel = Kernel { lives_for: Some(0), ..Kernel::new() };
    let mut live = begin(&mut kernel);
    assert!(matches!(live.set(&ahead(), "1024"), Err(SetError::Record(_))));
    assert_eq!(kernel.value(AHEAD), Some("128"));
}

#[test]
fn a_damaged_record_is_named_and_not_guessed_at() {
    let mut kernel = Kernel::new();
    kernel.put(&file(Path::new(RECORD)).to_string_lossy(), "{");
    let error = restore_left(Path::new(RECORD), None, &mut kernel).unwrap_err();
    assert!(error.to_string().contains("--forget"), "{error}");
    assert!(kernel.has_record());
}
