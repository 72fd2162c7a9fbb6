//! Looks at what a cut has left: boots it, ends the change, boots the other root when it was applied, and
//! compares the card's files from outside.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::drives::READER_SERIAL;
use crate::kit::Kit;
use crate::mounted;
use crate::outside;
use crate::session::Session;

use super::SOON;
use super::network::own_network;
use super::report::{CARD, is_from_card};
use super::{Cut, Good, Lab, Moment, Reference, Row, STATE_DIRECTORY, Way};

/// How an interrupted change is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Resume,
    Undo,
}

/// What can be judged only once it is known what the change itself does.
#[derive(Debug)]
pub(super) struct Evidence {
    /// What is different on the card from the plain system.
    differences: Vec<String>,
    /// Device and filesystem of the root of the next boot.
    root: String,
    /// Whether the change waits for its trial.
    pub(super) is_on_trial: bool,
}

impl Evidence {
    /// What is not as it must be after applying: what the change itself changes may be changed, and nothing else.
    pub(super) fn losses(self, good: &Good) -> Vec<String> {
        let unplanned = |one: &String| !good.planned.contains(one);
        let mut wrong: Vec<String> = self.differences.into_iter().filter(unplanned).collect();
        if self.root != good.root {
            wrong.push(format!("starts {} instead of {}", self.root, good.root));
        }
        wrong
    }
}

impl Lab<'_> {
    /// Looks at one cut.
    pub(super) fn look(&self, cut: &Cut, reference: &Reference) -> (Row, Option<Evidence>) {
        let started = Instant::now();
        let mut row = Row {
            way: cut.way,
            moment: cut.moment.clone(),
            unflushed: cut.unflushed.clone(),
            booted: "nothing".to_owned(),
            ended: "-".to_owned(),
            wrong: Vec::new(),
            took: Duration::ZERO,
        };
        let untouched = match &self.campaign.keep_failures {
            Some(_) => cut.kit.temporary_copy(self.cache).map(Some),
            None => Ok(None),
        };
        let evidence = match untouched {
            Ok(untouched) => {
                let evidence = self.end(cut, reference, &mut row).unwrap_or_else(|error| {
                    row.wrong.push(format!("{error:#}"));
                    None
                });
                if let (false, Some(kit)) = (row.wrong.is_empty(), untouched) {
                    let kept = self.keep(cut, &kit);
                    row.wrong.extend(kept.err().map(|error| format!("{error:#}")));
                }
                evidence
            }
            Err(error) => {
                row.wrong.push(format!("{error:#}"));
                None
            }
        };
        row.took = started.elapsed();
        (row, evidence)
    }

    /// Puts the disks, as they were at a bad cut, where they are asked for.
    fn keep(&self, cut: &Cut, untouched: &Kit) -> Result<()> {
        let Some(directory) = &self.campaign.keep_failures else {
            return Ok(());
        };
        let moment = match &cut.moment {
            Moment::Random(after) => format!("{:.1}", after.as_secs_f64()),
            Moment::Record(words) | Moment::Sync(words) => words.clone(),
        };
        let name = format!("{} {moment}", cut.way.word());
        let name = name.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        untouched.copy_to(&directory.join(name))?;
        Ok(())
    }

    fn end(&self, cut: &Cut, reference: &Reference, row: &mut Row) -> Result<Option<Evidence>> {
        if self.campaign.export.is_some() {
            own_network()?;
        }
        let _server = if cut.is_served { self.serve(&cut.kit)? } else { None };
        let mut board = self.boot(&cut.kit)?;
        row.booted = root(&mut board)?;
        if let (true, false) = (self.campaign.export.is_some(), cut.is_served) {
            row.booted += ", no server";
        }
        let before = reference.newest(changes(&status(&mut board)?)?, row);
        let command = match cut.end {
            // Before the first record is written there is nothing to be ended.
            _ if before.is_empty() => "true",
            Ended::Resume => "rubus resume",
            // What is undone already cannot be undone again.
            Ended::Undo if before.iter().all(Change::is_undone) => "true",
            Ended::Undo => "rubus undo --yes",
        };
        if command == "rubus resume" && cut.way == Way::Apply && is_from_card(&row.booted) {
            self.attach(&mut board)?;
        }
        // After a restart, nothing proves that a disk that looks like the one that was confirmed is that one.
        let again = match command {
            "rubus resume" => self.confirmations(),
            _ => String::new(),
        };
        let outcome = board.run(&format!("{command}{again}"), "root", self.campaign.limit)?;
        row.ended = match (command, outcome.status) {
            ("true", _) => "nothing to end".to_owned(),
            (command, 0) => command.trim_end_matches(" --yes").to_owned(),
            (command, status) => format!("{command}: {status}"),
        };
        if outcome.status != 0 {
            row.wrong.push(outcome.complaint_text());
        }
        let said = status(&mut board)?;
        let all = changes(&said)?;
        let last = reference.newest(all.clone(), row);
        if !last.iter().all(|change| change.is_where(cut.end)) {
            row.wrong.push(format!("not at its end: {said}"));
        }
        board.switch_off()?;
        let is_old = last.iter().all(Change::is_undone);
        let next_root = if is_old { None } else { Some(self.boot_again(cut, &all, row)?) };
        let found = reference.home.manifest(&cut.kit)?;
        let differences = outside::differences(&reference.plain, &found, &[STATE_DIRECTORY]);
        let Some(root) = next_root else {
            // With every file as it was, it starts as it did; it must also know that all is undone.
            row.wrong.extend(differences);
            let journals = reference.home.journals(&cut.kit)?;
            let newest = journals.into_iter().skip(reference.earlier.len());
            let open = newest.filter(|journal| !is_undone(journal));
            row.wrong.extend(open.map(|journal| format!("the card's journal says {journal}")));
            return Ok(None);
        };
        Ok(Some(Evidence {
            differences,
            root,
            is_on_trial: last.iter().any(|change| change.is_on_trial),
        }))
    }

    /// Makes the start on trial for which a change waits, and keeps it there; gives what is wrong with that.
    pub(super) fn keep_trial(&self, kit: &Kit, earlier: &[Change]) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        let mut board = self.boot_on_trial(kit)?;
        let on_trial = root(&mut board)?;
        if is_from_card(&on_trial) {
            wrong.push(format!("starts {on_trial}"));
        }
        let kept = board.run("rubus verify", "root", self.campaign.limit)?;
        if kept.status != 0 {
            let said = format!("{} {}", kept.text(), kept.complaint_text());
            wrong.push(format!("rubus verify: {} {said}", kept.status));
        }
        let said = status(&mut board)?;
        let (last, of_earlier) = newest(earlier, changes(&said)?);
        if !last.iter().all(|change| change.is_finished) {
            wrong.push(format!("not kept: {said}"));
        }
        wrong.extend(of_earlier);
        board.switch_off()?;
        let mut board = self.boot(kit).context("once it is kept")?;
        let usual = root(&mut board)?;
        if usual != on_trial {
            wrong.push(format!("once it is kept, starts {usual}"));
        }
        board.switch_off()?;
        Ok(wrong)
    }

    /// The arguments with which the change's losses were confirmed.
    fn confirmations(&self) -> String {
        let given = self.campaign.change.iter();
        let given = given.filter(|word| word.starts_with("--i-will-lose-everything-on="));
        given.map(|word| format!(" {word}")).collect()
    }

    /// Whether it starts after its end too, and whether that root says the same of the change; gives the root.
    fn boot_again(&self, cut: &Cut, last: &[Change], row: &mut Row) -> Result<String> {
        let mut board = self.boot(&cut.kit).context("after the end")?;
        let next_root = root(&mut board)?;
        let said = status(&mut board)?;
        if changes(&said)? != last {
            row.wrong.push(format!("after the end, {next_root} says: {said}"));
        }
        board.switch_off()?;
        Ok(next_root)
    }
}

/// Device and filesystem of the root that runs. A card in a reader and the disks change their names from start to start, so
/// these get others.
pub(super) fn root(board: &mut Session) -> Result<String> {
    let root = mounted::at(board, "/")?;
    let mut source = root.source;
    if board.drives.card_in_reader {
        let card = board.device_of(READER_SERIAL)?;
        let number = source.trim_start_matches(|c: char| !c.is_ascii_digit());
        source = if source.starts_with(&card) {
            format!("{CARD}{number}")
        } else {
            format!("/dev/disk{number}")
        };
    }
    Ok(format!("{source} {}", root.kind))
}

pub(super) fn status(board: &mut Session) -> Result<String> {
    Ok(board.run("rubus status --json", "root", SOON)?.text())
}

impl Reference {
    /// The changes that came after those that were there before; these must be as they were.
    fn newest(&self, all: Vec<Change>, row: &mut Row) -> Vec<Change> {
        let (newest, wrong) = newest(&self.earlier, all);
        row.wrong.extend(wrong);
        newest
    }
}

/// The changes that came after these, and what is wrong with these. The product says all in their order.
pub(super) fn newest(earlier: &[Change], mut all: Vec<Change>) -> (Vec<Change>, Option<String>) {
    let newest = all.split_off(earlier.len().min(all.len()));
    let wrong = (all != earlier)
        .then(|| format!("of the earlier changes it says {all:?} instead of {earlier:?}"));
    (newest, wrong)
}

/// Whether the last record of a journal says that the change is undone.
fn is_undone(journal: &str) -> bool {
    let last = journal.lines().last().unwrap_or_default();
    let last: Value = serde_json::from_str(last).unwrap_or_default();
    last["record"] == "finished" && last["way"] == "undo"
}

/// What the product says of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) way: String,
    pub(super) is_finished: bool,
    /// All but what waits for a trial start is done.
    pub(super) is_on_trial: bool,
}

impl Change {
    pub(super) fn is_undone(&self) -> bool {
        self.is_finished && self.way == "undo"
    }

    /// Whether this is where a command leaves it.
    pub(super) fn is_where(&self, command: Ended) -> bool {
        match command {
            Ended::Undo => self.is_undone(),
            Ended::Resume => self.is_finished || self.is_on_trial,
        }
    }
}

pub(super) fn changes(status: &str) -> Result<Vec<Change>> {
    let value: Value =
        serde_json::from_str(status).with_context(|| format!("rubus status said {status:?}"))?;
    let list = value.as_array().context("rubus status gives no list")?;
    let change = |value: &Value| {
        Some(Change {
            way: value["way"].as_str()?.to_owned(),
            is_finished: value["is_finished"].as_bool()?,
            is_on_trial: value["is_on_trial"].as_bool().unwrap_or(false),
        })
    };
    let all: Option<Vec<Change>> = list.iter().map(change).collect();
    all.with_context(|| format!("rubus status said {status:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_change_itself_changes_may_differ_and_its_root_must_start() {
        let good = Good {
            planned: vec!["changed /a".to_owned(), "new /new".to_owned()],
            root: "/dev/sda2 btrfs".to_owned(),
        };
        let found = |differences: &[&str], root: &str| {
            let differences = differences.iter().map(|&one| one.to_owned()).collect();
            let evidence = Evidence { differences, root: root.to_owned(), is_on_trial: false };
            evidence.losses(&good)
        };
        assert!(found(&["changed /a"], "/dev/sda2 btrfs").is_empty());
        let lost = found(&["lost /a", "new /new", "changed /b"], "/dev/sda2 btrfs");
        assert_eq!(lost, ["lost /a", "changed /b"]);
        let old = found(&[], "/dev/mmcblk0p2 ext4");
        assert!(old[0].contains("starts /dev/mmcblk0p2"), "{old:?}");
    }

    #[test]
    fn the_last_record_says_whether_a_change_is_undone() {
        assert!(is_undone(
            "{\"record\":\"begun\",\"step\":0}\n{\"record\":\"finished\",\"way\":\"undo\"}\n"
        ));
        assert!(!is_undone("{\"record\":\"finished\",\"way\":\"apply\"}\n"));
        assert!(!is_undone("{\"record\":\"finished\",\"way\":\"undo\"}\n{\"record\":\"begun\"}\n"));
        assert!(!is_undone(""));
    }

    #[test]
    fn earlier_changes_are_left_as_they_were() {
        let change =
            |way: &str, is_finished| Change { way: way.into(), is_finished, is_on_trial: false };
        let (old, new) = (change("apply", true), change("undo", false));
        let earlier = [old.clone()];
        let both = newest(&earlier, vec![old.clone(), new.clone()]);
        assert_eq!(both, (vec![new], None));
        assert_eq!(newest(&earlier, vec![old.clone()]), (vec![], None));
        let (_, wrong) = newest(&earlier, vec![change("undo", true)]);
        assert!(wrong.unwrap().starts_with("of the earlier changes"));
        let (none, wrong) = newest(&earlier, Vec::new());
        assert!(none.is_empty() && wrong.is_some());
        assert_eq!(newest(&[], vec![old.clone()]), (vec![old], None));
    }

    #[test]
    fn a_change_on_trial_is_where_resume_leaves_it_and_not_where_undo_does() {
        let said = "[{\"way\": \"apply\", \"is_finished\": false, \"is_on_trial\": true}]";
        let change = &changes(said).unwrap()[0];
        assert!(change.is_where(Ended::Resume) && !change.is_where(Ended::Undo));
        let said = said.replace("true", "false");
        assert!(!changes(&said).unwrap()[0].is_where(Ended::Resume));
    }

    #[test]
    fn status_is_read_and_nonsense_is_not() {
        let one = changes("[{\"way\": \"undo\", \"is_finished\": true, \"name\": \"x\"}]").unwrap();
        assert!(one[0].is_undone());
        assert!(changes("[]").unwrap().is_empty());
        assert!(changes("[{\"way\": 3}]").is_err());
        assert!(changes("oops").is_err());
    }
}
