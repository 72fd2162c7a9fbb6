//! Looks at what a cut has left without a board: what the firmware would start, usually and on trial, what `fsck.vfat -a` makes of the boot partition, every
//! file of the old system, what the journal says, and where the old root would start, `rubus undo` or `rubus resume` on it.
//!
//! A filesystem is mounted by this machine's kernel, except FAT: the boot partition's files are a directory here, so what this
//! finds on it is what the cut left, and not what a further cut while undoing would leave.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::cache::Cache;
use crate::firmware;
use crate::kit::Kit;
use crate::outside::{self, BOOT, Manifest, Sums};
use crate::tools;

use super::Way;
use super::files::{differences, strange};
use super::home::Home;
use super::kept;
use super::look::{Change, Ended, changes, newest};
use super::other_root::{OtherRoot, OtherRoots, is_on_network, other_root};
use super::start::{Start, start, unknown};
use super::trial::{self, FoundTrial, Trial};

const END: &str = include_str!("host_undo.sh");

/// A good state: nothing is under way, and all is on the disks.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) start: Start,
    pub(super) card: Manifest,
    /// The root on a disk, where the card does not name its own.
    pub(super) other: Option<Manifest>,
    /// The start on trial, where the change waits for one.
    pub(super) trial: Option<Trial>,
}

impl State {
    /// The same state while its trial runs, which ends with this one.
    pub(super) fn started(mut self, end: &Self) -> Self {
        let trial = self.trial.take().zip(end.other.clone());
        self.trial = trial.map(|(trial, root)| trial.started(root));
        self
    }
}

/// The states between which a cut came.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// The root on which the change is made.
    pub(super) home: Home,
    /// Sums of files that no write can have changed.
    pub(super) sums: Sums,
    /// Changes that were made before.
    pub(super) earlier: Vec<Change>,
    /// Before the change, or after it is undone.
    pub(super) plain: State,
    /// While its trial is waited for, when what is cut is `rubus verify`, which keeps that.
    pub(super) waiting: Option<State>,
    /// After the change is applied.
    pub(super) applied: State,
}

/// What a cut has left.
#[derive(Debug)]
pub(super) struct Found {
    /// What the firmware would start, or why it would not.
    start: Result<Start, String>,
    /// What it would start on trial, where the change has a trial.
    trial: Option<FoundTrial>,
    /// What `fsck.vfat -a` complained of; empty when all is well or was mended.
    fsck: String,
    card: Manifest,
    /// The root that is named, where it is not the card's; or what is wrong with it.
    other: Option<Result<OtherRoot, String>>,
    /// The root that runs on trial, or what is wrong with it, when what is cut is `rubus verify` there.
    tried: Option<Result<OtherRoot, String>>,
    /// Those that came after the earlier ones.
    changes: Vec<Change>,
    /// What is wrong with the earlier ones.
    of_earlier: Option<String>,
    /// How it was ended here.
    end: Option<End>,
}

impl Found {
    /// Whether the journals say that all is ready for the start on trial, and that this is to come.
    pub(super) fn is_on_trial(&self) -> bool {
        let is_kept = match &self.tried {
            Some(Ok(tried)) => kept::has(&tried.journal, kept::COMMITTED),
            _ => false,
        };
        !is_kept && self.changes.iter().any(|change| change.is_on_trial)
    }

    /// Which of these records, each durable before the cut, the root on trial has lost.
    pub(super) fn lost_records(&self, durable: &[&str]) -> Vec<String> {
        match &self.tried {
            Some(Ok(tried)) => kept::lost(&tried.journal, durable),
            _ => Vec::new(),
        }
    }

    /// Whether the journal says that the last change has gone this way to its end, or to its trial.
    pub(super) fn has_ended(&self, way: Way) -> bool {
        let last = self.changes.last();
        last.is_some_and(|change| {
            (change.is_finished || change.is_on_trial) && change.way == way.word()
        })
    }
}

/// A change that was ended without a board.
#[derive(Debug)]
struct End {
    command: Ended,
    status: i32,
    said: String,
    card: Manifest,
    changes: Vec<Change>,
    of_earlier: Option<String>,
}

impl End {
    /// Whether the product stopped for what only a board has: a kernel of its own, to mount, to swap and to be set, and a FAT that says
    /// where a file lies. Without that, a file that is as long as another and holds the same counts as one on the same clusters, and is
    /// not removed. Whether two files do share clusters was asked of the boot partition itself.
    fn needs_a_board(&self) -> bool {
        let reasons = [
            "Operation not permitted",
            "Read-only file system",
            "on the same clusters",
            "was not resumed, and nothing was touched",
        ];
        self.status != 0 && reasons.iter().any(|words| self.said.contains(words))
    }
}

/// What came of a look.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) root: String,
    pub(super) ended: String,
    pub(super) wrong: Vec<String>,
}

impl Known {
    /// The good states between which the cut came.
    fn ends(&self) -> [&State; 2] {
        [self.waiting.as_ref().unwrap_or(&self.plain), &self.applied]
    }

    /// The trial that is begun, undone or kept.
    fn trial(&self) -> Option<&Trial> {
        self.ends().into_iter().find_map(|state| state.trial.as_ref())
    }

    /// What is wrong with what a cut has left.
    pub(super) fn verdict(&self, found: &Found) -> Verdict {
        let mut wrong = Vec::new();
        let states = self.ends();
        match &found.start {
            Err(reason) => wrong.push(format!("does not start: {reason}")),
            Ok(start) => {
                wrong.extend(unknown(&states.map(|state| &state.start), start));
            }
        }
        let trial = found.trial.as_ref().zip(self.trial());
        if let Some((trial, whole)) = trial {
            wrong.extend(trial.wrong(whole, found.is_on_trial()));
        }
        if !found.fsck.is_empty() {
            wrong.push(format!("fsck.vfat: {}", found.fsck));
        }
        let cards = states.map(|state| &state.card);
        wrong.extend(strange(&cards, &found.card));
        let named = found.other.as_ref().map(|root| ("named", root));
        let tried = || found.tried.as_ref().map(|root| ("tried", root));
        match named.or_else(tried) {
            None => {}
            Some((what, Err(reason))) => wrong.push(format!("the root that is {what}: {reason}")),
            Some((_, Ok(root))) => {
                let lost = strange(&self.whole_roots(), &root.files);
                wrong.extend(lost.into_iter().map(|one| format!("{one} on the new root")));
            }
        }
        wrong.extend(found.of_earlier.clone());
        let is_over = found.changes.iter().all(Change::is_undone);
        if is_over && found.other.is_none() && found.end.is_none() {
            // Leftovers would stay forever, and a `tryboot.txt` would stand in the way of the next trial.
            let left = differences(&self.plain.card, &found.card).into_iter();
            wrong.extend(left.map(|one| format!("nothing to end, but {one}")));
        }
        let mut ended = if is_over { "nothing to end".to_owned() } else { "not here".to_owned() };
        if let Some(end) = found.end.as_ref().filter(|end| end.needs_a_board()) {
            // Every file is the old one or the new one all the same. What came after a trial is taken back first, and needs no board.
            "not here: it stopped".clone_into(&mut ended);
            let new = self.waiting.as_ref().unwrap_or(&self.applied);
            wrong.extend(strange(&[&self.plain.card, &new.card], &end.card));
        } else if let Some(end) = &found.end {
            // An undoing that is resumed is undone.
            let goal =
                if end.changes.iter().all(Change::is_undone) { &self.plain } else { &self.applied };
            ended = match end.command {
                Ended::Undo => "rubus undo".to_owned(),
                Ended::Resume => "rubus resume".to_owned(),
            };
            if end.status != 0 {
                wrong.push(format!("{ended}: {} {}", end.status, end.said));
            }
            let is_there = |change: &Change| change.is_where(end.command);
            if !end.changes.iter().all(is_there) {
                wrong.push(format!("not at its end: {:?}", end.changes));
            }
            wrong.extend(end.of_earlier.clone());
            wrong.extend(differences(&goal.card, &end.card));
        }
        let root = found.start.as_ref().map(|start| match &found.other {
            Some(_) => "/dev/disk".to_owned(),
            None if start.root() == self.plain.start.root() => self.home.word().to_owned(),
            None => start.root().to_owned(),
        });
        let root = root.unwrap_or_else(|_| "nothing".to_owned());
        let words = trial.map_or("", |(trial, whole)| trial.words(whole, found.is_on_trial()));
        Verdict { root: format!("{root}{words}"), ended, wrong }
    }

    /// What the new root may be like. While a trial is kept, it is as the change made it or as that start has made it.
    fn whole_roots(&self) -> Vec<&Manifest> {
        let tried = self.waiting.as_ref().and_then(|state| state.trial.as_ref());
        let tried = tried.map(Trial::roots).unwrap_or_default();
        tried.into_iter().chain(&self.applied.other).collect()
    }
}

/// Looks at the disks of a good state. `plain_root` is what names the root before the change, in another state than that.
pub(super) fn state(
    cache: &Cache,
    kit: &Kit,
    home: Home,
    plain_root: Option<&str>,
) -> Result<State> {
    let place = cache.work_directory()?;
    let start = start(kit, false, &place.path().join("start"))?;
    let card = home.manifest(kit)?;
    let trial = match plain_root {
        Some(_) if trial::is_in(&card) => Some(trial::whole(cache, kit)?),
        _ => None,
    };
    let other = match plain_root {
        Some(root) if root != start.root() => Some(other_root(cache, kit, start.root())?.files),
        _ => None,
    };
    Ok(State { start, card, other, trial })
}

/// Looks at what a cut has left; with `end`, ends the change where the change's own root would start.
pub(super) fn look(
    cache: &Cache,
    kit: &Kit,
    rubus: &Path,
    end: Option<Ended>,
    known: &Known,
) -> Result<Found> {
    let place = cache.work_directory()?;
    let start = start(kit, false, &place.path().join("start"));
    let start = start.map_err(|error| format!("{error:#}"));
    let mut trial = if known.trial().is_some() {
        Some(trial::found(kit, &place.path().join("trial")))
    } else {
        None
    };
    let (boot_start, root_start) = firmware::partition_starts(&kit.sd())?;
    let fsck = check_boot(&kit.sd(), boot_start, root_start - boot_start)?;
    let boot = place.path().join("boot");
    fs::create_dir(&boot)?;
    outside::copy_boot_files(&kit.sd(), boot_start, &boot)?;
    let root = place.path().join("root");
    fs::create_dir(&root)?;
    let plain_root = known.plain.start.root();
    let named = start.as_ref().map(Start::root).unwrap_or(plain_root);
    let mounted = known.home.mounted(kit, &root)?;
    let mut sums = known.sums.clone();
    let card = known.home.files(kit, &root, &boot, &mut sums)?;
    let mut roots = OtherRoots::of(cache, kit);
    let other = (named != plain_root).then(|| roots.named(named));
    if let Some(trial) = &mut trial {
        trial.look_further(&mut roots, &card);
    }
    let tried = known.waiting.as_ref().and_then(|state| state.trial.as_ref());
    let tried = tried.map(|trial| roots.named(trial.root()));
    dress(&boot, &known.plain.card)?;
    let (_, _, before) = ended(&root, &boot, rubus, None)?;
    let (before, of_earlier) = newest(&known.earlier, before);
    let is_over = before.iter().all(Change::is_undone);
    // When the server of a network disk is not there, the card's root stands in.
    let starts_card = other.is_none() || is_on_network(named);
    let end = match end.filter(|_| starts_card && !is_over) {
        None => None,
        Some(command) => {
            let (status, said, changes) = ended(&root, &boot, rubus, Some(command))?;
            let (changes, of_earlier) = newest(&known.earlier, changes);
            Some(End {
                command,
                status,
                said,
                card: known.home.files(kit, &root, &boot, &mut sums)?,
                changes,
                of_earlier,
            })
        }
    };
    drop(mounted);
    Ok(Found { start, trial, fsck, card, other, tried, changes: before, of_earlier, end })
}

/// The changes that the journals on a root tell of.
pub(super) fn changes_on(
    cache: &Cache,
    kit: &Kit,
    home: Home,
    rubus: &Path,
) -> Result<Vec<Change>> {
    let place = cache.work_directory()?;
    home.opened(kit, place.path(), |root, boot| {
        let (_, _, changes) = ended(root, boot, rubus, None)?;
        Ok(changes)
    })
}

/// Does what every start does; gives what could not be mended.
fn check_boot(card: &Path, start: u64, bytes: u64) -> Result<String> {
    let mut attach = tools::command("losetup");
    attach.args(["--find", "--show", "--offset", &start.to_string()]);
    attach.args(["--sizelimit", &bytes.to_string()]).arg(card);
    let device = String::from_utf8_lossy(&tools::run(&mut attach)?).into_owned();
    let device = device.trim();
    let checked = tools::command("fsck.vfat").args(["-a", device]).output();
    tools::run(tools::command("losetup").args(["--detach", device]))?;
    let checked = checked.context("no fsck.vfat")?;
    Ok(complaint(checked.status.code(), &String::from_utf8_lossy(&checked.stdout)))
}

/// What counts of what `fsck.vfat -a` says. With status 1 it has mended all, but of two names on the same clusters one is empty then.
fn complaint(status: Option<i32>, said: &str) -> String {
    match status {
        Some(0 | 1) if !said.contains("share clusters") => String::new(),
        _ => tools::tail(said, 4).replace('\n', " "),
    }
}

/// Gives the copies of the boot partition's files the permissions that FAT shows: 755 for all, which is what the plan has of those that
/// were there, while those that are new were planned with 644.
fn dress(boot: &Path, plain: &Manifest) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    for entry in fs::read_dir(boot)? {
        let path = entry?.path();
        if path.is_file() {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let mode = if plain.contains_key(&format!("{BOOT}/{name}")) { 0o755 } else { 0o644 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        }
    }
    Ok(())
}

/// Ends the change on a mounted root, or asks only how far it is.
fn ended(
    root: &Path,
    boot: &Path,
    rubus: &Path,
    end: Option<Ended>,
) -> Result<(i32, String, Vec<Change>)> {
    let command = match end {
        None => "",
        Some(Ended::Undo) => "undo --yes",
        Some(Ended::Resume) => "resume",
    };
    let mut shell = tools::command("unshare");
    shell.args(["-m", "bash", "-c", END, "end"]).arg(root);
    shell.arg(boot).arg(rubus).arg(command);
    let output = shell.output().context("cannot run unshare")?;
    let said = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
    let status = output.status.code().unwrap_or(-1);
    ensure!(status != 100, "cannot mount what a change needs: {said}");
    let changes = changes(&String::from_utf8_lossy(&output.stdout)).context(said.clone())?;
    Ok((status, said, changes))
}

#[cfg(test)]
mod tests {
    use super::super::files::manifest;
    use super::super::start::with_command_line;
    use super::*;

    fn state(cmdline: &str, files: &[(&str, &str)]) -> State {
        State { start: with_command_line(cmdline), card: manifest(files), other: None, trial: None }
    }

    fn known() -> Known {
        Known {
            home: Home::Card,
            sums: Sums::default(),
            earlier: Vec::new(),
            waiting: None,
            plain: state("root=old", &[("/a", "f 1"), ("/b", "f 1")]),
            applied: State {
                other: Some(manifest(&[("/a", "f 1")])),
                ..state("root=new", &[("/a", "f 2"), ("/b", "f 1"), ("/new", "f 1")])
            },
        }
    }

    fn change(way: &str, is_finished: bool) -> Change {
        Change { way: way.into(), is_finished, is_on_trial: false }
    }

    fn found(cmdline: &str, files: &[(&str, &str)]) -> Found {
        let state = state(cmdline, files);
        Found {
            start: Ok(state.start),
            trial: None,
            fsck: String::new(),
            card: state.card,
            other: None,
            tried: None,
            changes: vec![change("apply", false)],
            of_earlier: None,
            end: None,
        }
    }

    #[test]
    fn a_file_is_the_old_one_or_the_new_one_and_nothing_else() {
        let known = known();
        let wrong = |files| known.verdict(&found("root=old", files)).wrong;
        assert!(wrong(&[("/a", "f 1"), ("/b", "f 1")]).is_empty());
        assert!(wrong(&[("/a", "f 2"), ("/b", "f 1"), ("/new", "f 1"), ("/x", "f 9")]).is_empty());
        assert_eq!(
            wrong(&[("/a", "f 3"), ("/new", "f 0")]),
            ["neither old nor new: /a", "lost /b", "neither old nor new: /new"]
        );
    }

    #[test]
    fn what_is_started_is_known_and_its_root_is_whole() {
        let known = known();
        let files: &[(&str, &str)] = &[("/a", "f 1"), ("/b", "f 1")];
        let mut cut = found("root=half", files);
        assert_eq!(known.verdict(&cut).wrong, ["starts an unknown command line"]);
        cut = found("root=new", files);
        cut.other = Some(Ok(OtherRoot::default()));
        assert_eq!(known.verdict(&cut).wrong, ["lost /a on the new root"]);
        cut.other = Some(Err("no disk has it".into()));
        assert_eq!(known.verdict(&cut).wrong, ["the root that is named: no disk has it"]);
        cut = found("root=old", files);
        cut.start = Err("config.txt is empty".into());
        let verdict = known.verdict(&cut);
        assert_eq!(verdict.wrong, ["does not start: config.txt is empty"]);
        assert_eq!(verdict.root, "nothing");
    }

    #[test]
    fn a_trial_is_judged_once_the_journal_promises_it() {
        let (mut known, whole) = (known(), Trial::of("root=new", &[("/a", "f 1")]));
        known.applied.trial = Some(whole);
        let files: &[(&str, &str)] = &[("/a", "f 1"), ("/b", "f 1")];
        let cut = |way: &str, is_on_trial| {
            let mut cut = found("root=old", files);
            cut.trial = Some(FoundTrial::of("root=new", &[]));
            cut.changes = vec![Change { is_on_trial, ..change(way, false) }];
            (known.verdict(&cut), cut.is_on_trial())
        };
        let (verdict, is_on_trial) = cut("apply", true);
        assert_eq!(verdict.wrong, ["on trial, lost /a on the new root"]);
        assert!(is_on_trial && verdict.root.ends_with(", trial incomplete"));
        let (verdict, is_on_trial) = cut("apply", false);
        assert!(verdict.wrong.is_empty() && !is_on_trial);
        assert!(cut("undo", false).0.wrong.is_empty());
    }

    #[test]
    fn while_a_trial_is_kept_its_root_is_whole_and_undoing_takes_that_back_first() {
        let mut known = known();
        let waiting = &[("/a", "f 2"), ("/b", "f 1"), ("/new", "f 1")];
        known.waiting = Some(State {
            trial: Some(Trial::of("root=new", &[("/a", "f 1")])),
            ..state("root=old", waiting)
        });
        known.applied.card.insert("/new".into(), "f 2".into());
        let mut cut = found("root=old", waiting);
        cut.trial = Some(FoundTrial::of("root=new", &[("/a", "f 1")]));
        cut.tried = Some(Ok(OtherRoot {
            files: manifest(&[("/a", "f 1")]),
            journal: "{\"record\":\"committed\"}\n".into(),
        }));
        cut.changes[0].is_on_trial = true;
        assert!(known.verdict(&cut).wrong.is_empty() && !cut.is_on_trial());
        assert!(cut.lost_records(&["committed"]).is_empty());
        assert_eq!(cut.lost_records(&["committed", "begun 2 (x)"]).len(), 1);
        let mut stopped = |new| {
            let files = [("/a", "f 2"), ("/b", "f 1"), ("/new", new)];
            cut.end = Some(End {
                command: Ended::Undo,
                status: 5,
                said: "Operation not permitted".into(),
                card: manifest(&files),
                changes: Vec::new(),
                of_earlier: None,
            });
            known.verdict(&cut).wrong
        };
        assert!(stopped("f 1").is_empty());
        assert_eq!(stopped("f 2"), ["neither old nor new: /new"]);
        cut.tried = Some(Ok(OtherRoot::default()));
        cut.end = None;
        assert!(cut.is_on_trial());
        assert_eq!(known.verdict(&cut).wrong, ["lost /a on the new root"]);
    }

    #[test]
    fn where_nothing_is_left_to_end_nothing_of_the_change_is_left() {
        let known = known();
        let mut cut = found("root=old", &[("/a", "f 1"), ("/b", "f 1"), ("/new", "f 1")]);
        let left = ["nothing to end, but new /new"];
        cut.changes.clear();
        assert_eq!(known.verdict(&cut).wrong, left);
        cut.changes = vec![change("undo", true)];
        assert_eq!(known.verdict(&cut).wrong, left);
        cut.changes = vec![change("undo", false)];
        assert!(known.verdict(&cut).wrong.is_empty());
    }

    #[test]
    fn where_undoing_needs_a_board_every_file_is_old_or_new() {
        let known = known();
        let stopped = |files, said: &str| {
            let mut cut = found("root=old", &[("/a", "f 2"), ("/b", "f 1")]);
            cut.end = Some(End {
                command: Ended::Undo,
                status: 5,
                said: said.into(),
                card: manifest(files),
                changes: Vec::new(),
                of_earlier: None,
            });
            known.verdict(&cut)
        };
        let half: &[(&str, &str)] = &[("/a", "f 2"), ("/b", "f 1"), ("/new", "f 1")];
        let refused = "cannot mount: Operation not permitted (os error 1)";
        let seen = stopped(half, refused);
        assert_eq!((seen.wrong.len(), &*seen.ended), (0, "not here: it stopped"));
        assert_eq!(stopped(&half[1..], refused).wrong, ["lost /a"]);
        assert!(!stopped(half, "the disk is full").wrong.is_empty());
    }

    #[test]
    fn undoing_leaves_every_file_as_it_was_and_says_so() {
        let known = known();
        let files: &[(&str, &str)] = &[("/a", "f 1"), ("/b", "f 1")];
        let end = |files, status, way| {
            let mut cut = found("root=old", &[("/a", "f 2"), ("/b", "f 1")]);
            cut.end = Some(End {
                command: Ended::Undo,
                status,
                said: "no".into(),
                card: manifest(files),
                changes: vec![change(way, true)],
                of_earlier: None,
            });
            known.verdict(&cut)
        };
        let good = end(files, 0, "undo");
        assert_eq!((good.wrong.len(), &*good.ended), (0, "rubus undo"));
        assert_eq!(end(&files[..1], 0, "undo").wrong, ["lost /b"]);
        assert_eq!(end(files, 2, "undo").wrong, ["rubus undo: 2 no"]);
        assert!(end(files, 0, "apply").wrong[0].starts_with("not at its end"));
        let mut cut = found("root=old", files);
        let resumed = |cut: &mut Found, way| {
            cut.end = Some(End {
                command: Ended::Resume,
                status: 0,
                said: String::new(),
                card: manifest(files),
                changes: vec![change(way, true)],
                of_earlier: None,
            });
            known.verdict(cut).wrong
        };
        assert!(resumed(&mut cut, "undo").is_empty());
        assert!(!resumed(&mut cut, "apply").is_empty());
    }

    #[test]
    fn what_fsck_mends_is_well_but_for_two_names_on_the_same_clusters() {
        let dirty = "Dirty bit is set. Fs was not properly unmounted.\n Automatically removing dirty bit.\n";
        assert!(complaint(Some(1), dirty).is_empty() && complaint(Some(0), "").is_empty());
        let shared = "/a\n  and\n/b\n  share clusters.\n  Truncating second to 0 bytes.\n";
        assert!(complaint(Some(1), shared).contains("share clusters"));
        assert_eq!(complaint(Some(4), "no FAT"), "no FAT");
    }
}
