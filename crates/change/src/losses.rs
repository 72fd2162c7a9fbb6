//! The loss of what is on a disk: which disks a plan or an interrupted change overwrites, the question that is asked about each,
//! and the consent that an answer makes.
//!
//! Nothing here asks. The questions are made one by one, so that what is on a disk when its question is asked is what the answer
//! is about.

use std::path::{Path, PathBuf};

use rubus_host::Files;

use crate::apply::{Change, GivenAway, find_made};
use crate::guard;
use crate::plan::Plan;
use crate::plan::journal::{StepState, Way};
use crate::plan::volume::DiskIdentity;
use crate::steps;

/// Whether everything on a disk may be lost.
#[derive(Debug)]
pub struct Question {
    disk: DiskIdentity,
    device: guard::DeviceFacts,
    why: String,
    confirmation: guard::Confirmation,
    ends: String,
    boot: Option<String>,
}

impl Question {
    fn new(
        disk: &DiskIdentity,
        device: guard::DeviceFacts,
        why: String,
        files: &dyn Files,
    ) -> Result<Self, String> {
        Ok(Question {
            disk: disk.clone(),
            confirmation: guard::confirmation(&device),
            ends: steps::fingerprint(Path::new(&device.path))?,
            boot: steps::boot_id(files),
            device,
            why,
        })
    }

    /// Whether these words confirm the loss.
    pub fn is_confirmed_by(&self, words: &str) -> bool {
        words.trim() == self.confirmation.text
    }

    /// The question at a terminal.
    pub fn prompt(&self) -> String {
        format!(
            "\nEverything on {} will be lost:\n\n{}\nType {} ({}) to go on, or press Enter to stop: ",
            self.disk.path.display(),
            guard::card(&self.device),
            self.confirmation.text,
            self.confirmation.kind.phrase()
        )
    }

    /// What is said when the loss was not confirmed.
    pub fn refusal(&self) -> String {
        let option = format!("--i-will-lose-everything-on={}", self.confirmation.text);
        format!(
            "{} {}.\n\n{}\nIf all of this may be lost, confirm it with {}:\n  {option}",
            self.device.path,
            self.why,
            guard::card(&self.device),
            self.confirmation.kind.phrase()
        )
    }

    /// The consent that a confirmed question makes, for the journal.
    pub fn consent(self) -> GivenAway {
        GivenAway {
            disk: self.disk.path,
            words: self.disk.confirmation,
            ends: Some(self.ends),
            boot: self.boot,
        }
    }
}

/// A question for every disk of a plan that has something on it, or of which that cannot be known; the reason instead where a
/// disk is not there or is in use.
pub fn questions(plan: &Plan, files: &dyn Files) -> impl Iterator<Item = Result<Question, String>> {
    plan.disks_lost().into_iter().filter_map(|disk| {
        let device = match look_at(disk, files) {
            Ok(device) => device,
            Err(why) => return Some(Err(why)),
        };
        let why = guard::may_lose(&device)?.to_string();
        Some(Question::new(disk, device, why, files))
    })
}

/// A question for each disk that an interrupted change has yet to overwrite, where what was confirmed before does not cover
/// what is there now: perhaps another disk of the same model is plugged in, blank or not, or it was used since.
///
/// The reason instead where a disk is not there or cannot be told from another one, or what the change made before is not
/// there; the change then stands where it stood.
pub fn questions_again(
    change: &Change,
    files: &dyn Files,
) -> impl Iterator<Item = Result<Question, String>> {
    let not_made = find_made(change, files).map_err(|why| stands(change, &why)).err();
    let disks = if not_made.is_some() { Vec::new() } else { disks_still_lost(change) };
    let mut asked: Vec<PathBuf> = Vec::new();
    let questions = disks.into_iter().filter_map(move |disk| {
        if asked.contains(&disk.path) {
            return None;
        }
        let question = question_again(change, disk, files).transpose()?;
        asked.push(disk.path.clone());
        Some(question)
    });
    not_made.map(Err).into_iter().chain(questions)
}

fn question_again(
    change: &Change,
    disk: &DiskIdentity,
    files: &dyn Files,
) -> Result<Option<Question>, String> {
    let now = find(disk, files).map_err(|why| stands(change, &why))?;
    // Why it cannot be used, the step itself says: an array of this change's own making may stand on it.
    let Ok(device) = guard::fit(files, &now.path) else {
        return Ok(None);
    };
    let is_given = steps::is_given_away(&change.plan.steps, &change.consents(), disk, files)?;
    let is_blank = guard::may_lose(&device).is_none();
    let boot = steps::boot_id(files);
    let is_new_boot = boot.is_some() && disk.boot_id.is_some() && boot != disk.boot_id;
    let Some(doubt) = doubt(is_given, is_blank, is_new_boot) else {
        return Ok(None);
    };
    let why = format!(
        "{doubt}. If it is another one, plug in the one that was meant instead; {}",
        go_on(change)
    );
    Question::new(disk, device, why, files).map(Some)
}

/// Why a disk is asked about before a change that was interrupted overwrites it; nothing where it is not. On a blank one
/// nothing is lost, but after a restart it may be a new one of the same model, and the one that was named may hold a part of
/// the change.
fn doubt(is_given: bool, is_blank: bool, is_new_boot: bool) -> Option<&'static str> {
    match (is_given, is_blank) {
        (true, _) => None,
        (false, false) => Some(
            "holds data whose loss was not confirmed: it may be another disk than the one that was meant, or it was used \
             since",
        ),
        (false, true) => is_new_boot.then_some(
            "is blank, and the machine was restarted: it may be another disk than the one that was meant",
        ),
    }
}

/// Why a change cannot be resumed yet. None of its steps is done or undone then.
fn stands(change: &Change, why: &str) -> String {
    format!("{} was not resumed, and nothing was touched: {why}; {}", change.name, go_on(change))
}

fn go_on(change: &Change) -> String {
    format!("then run `rubus resume` again, or go back with `rubus undo {}`", change.name)
}

/// The disks that steps which are not done yet overwrite; none when the change goes back.
fn disks_still_lost(change: &Change) -> Vec<&DiskIdentity> {
    if change.state.way == Way::Undo || change.state.is_finished {
        return Vec::new();
    }
    let steps = change.plan.steps.iter().zip(&change.state.steps);
    let not_done = steps.filter(|(_, state)| **state != StepState::Done);
    not_done.flat_map(|(step, _)| step.action.disks_lost()).collect()
}

/// Makes a plan that was saved say what is on its disks now, and not what was there when it was made. A disk that is not
/// there or cannot be used stays as it is: that is said before anything is done.
pub fn refresh_contents(plan: &mut Plan, files: &dyn Files) {
    refresh_with(plan, &|disk| {
        let device = look_at(disk, files).ok()?;
        Some(device.contents.iter().map(guard::content_words).collect())
    });
}

fn refresh_with(plan: &mut Plan, look: &dyn Fn(&DiskIdentity) -> Option<Vec<String>>) {
    for step in &mut plan.steps {
        for disk in step.action.disks_lost_mut() {
            if let Some(contents) = look(disk) {
                disk.contents = contents;
            }
        }
    }
}

/// The disk that is meant, as it is now.
fn look_at(disk: &DiskIdentity, files: &dyn Files) -> Result<guard::DeviceFacts, String> {
    let shown = disk.path.display();
    let now = find(disk, files)
        .map_err(|why| format!("{shown} was not touched: {why}, or make a new plan"))?;
    guard::fit(files, &now.path).map_err(|refusal| refusal.to_string())
}

/// The disk that is meant, by all that it says of itself.
fn find(disk: &DiskIdentity, files: &dyn Files) -> Result<guard::Disk, String> {
    let disks = guard::disks(files)?;
    steps::find_disk(disk, &disks, steps::boot_id(files).as_deref())
}

#[cfg(test)]
mod tests {
    use rubus_host::simulated::fake::FakeFiles;
    use rubus_host::simulated::rehearsal::SimulatedMachine;

    use super::*;
    use crate::apply::ChangeStore;
    use crate::fixture::long_plan::big_plan;
    use crate::plan::Step;

    #[test]
    fn a_saved_plan_says_what_is_on_its_disks_now() {
        let mut plan = big_plan();
        let lost = plan.disks_lost().len();
        assert!(lost > 0);
        refresh_with(&mut plan, &|_| Some(vec!["an ext4 filesystem".into()]));
        let disks = plan.steps.iter().flat_map(|step| step.action.disks_lost());
        for disk in disks {
            assert_eq!(disk.contents, ["an ext4 filesystem"], "{}", disk.path.display());
        }
        let before = plan.clone();
        refresh_with(&mut plan, &|_| None);
        assert_eq!(plan, before, "what cannot be looked at stays");
    }

    #[test]
    fn a_change_whose_disk_is_not_there_stands_and_says_how_to_go_on() {
        let machine = &mut SimulatedMachine::new().directory("/changes");
        let store = ChangeStore::at("/changes");
        let mut change = store.begin(big_plan(), Vec::new(), "now", machine).unwrap();
        let nothing = FakeFiles::new().dir("/sys/block");
        let why = questions_again(&change, &nothing).next().unwrap().unwrap_err();
        for words in [
            "0001-example was not resumed, and nothing was touched",
            "is not there; plug it in again",
            "then run `rubus resume` again, or go back with `rubus undo 0001-example`",
        ] {
            assert!(why.contains(words), "'{words}' in: {why}");
        }
        change.state.way = Way::Undo;
        assert!(questions_again(&change, &nothing).next().is_none());
    }

    #[test]
    fn a_change_whose_new_filesystem_is_not_there_stands() {
        let machine = &mut SimulatedMachine::new().directory("/changes");
        let store = ChangeStore::at("/changes");
        let mut change = store.begin(big_plan(), Vec::new(), "now", machine).unwrap();
        // Nothing is overwritten any more: only the rest of the change needs the disk.
        let overwrites = |step: &Step| !step.action.disks_lost().is_empty();
        let last = change.plan.steps.iter().rposition(overwrites).unwrap();
        change.state.steps[..=last].fill(StepState::Done);
        let nothing = FakeFiles::new().dir("/sys/block");
        let why = questions_again(&change, &nothing).next().unwrap().unwrap_err();
        for words in [
            "was not resumed, and nothing was touched",
            "what was made on /dev/sda1 before the interruption is not there: no disk has",
            "plug the disk in",
            "then run `rubus resume` again, or go back with `rubus undo 0001-example`",
        ] {
            assert!(why.contains(words), "'{words}' in: {why}");
        }
        change.state.way = Way::Undo;
        assert!(questions_again(&change, &nothing).next().is_none());
    }

    #[test]
    fn a_blank_twin_is_asked_about_after_a_restart() {
        let (given, blank, restarted) = (true, true, true);
        let asked = doubt(!given, blank, restarted).expect("it may be another one");
        assert!(asked.contains("may be another disk than the one that was meant"), "{asked}");
        assert_eq!(doubt(!given, blank, !restarted), None, "it has not left the machine");
        assert_eq!(doubt(given, blank, restarted), None, "it was just asked about");
        assert!(doubt(!given, !blank, !restarted).is_some(), "it was used since");
        assert_eq!(doubt(given, !blank, restarted), None);
    }
}
