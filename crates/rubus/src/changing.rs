//! Around the verbs that change the machine: what a recipe wants to know, the user's word for every disk that is
//! lost, and the progress of long steps.

use std::io::{IsTerminal, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use rubus_change::apply::{Change, Event, GivenAway, Progress, find_made};
use rubus_change::guard;
use rubus_change::plan::Plan;
use rubus_change::plan::journal::{StepState, Way};
use rubus_change::plan::volume::DiskIdentity;
use rubus_change::recipe::{self, Facts, LookAt, Node, NodeKind, TreeSize};
use rubus_change::steps;
use rubus_change::unseen::Unseen;
use rubus_host::{Files, clock, filling, starting};
use rubus_machine::not_copied::NotCopied;
use rubus_runs::history::{RunId, RunSummary};
use rubus_runs::store::History;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::result::Run;

use crate::directory_size::bytes_below;
use crate::exit::Refused;
use crate::places;
use crate::world::{Terminal, World};

/// What a recipe wants to know besides the surveyed machine. Of a captured machine only what was captured.
///
/// # Errors
/// When the kernel gives no random numbers for the identifiers of new disks.
pub fn facts(world: &World, machine: &Machine, look_at: &LookAt) -> anyhow::Result<Facts> {
    let files = world.files();
    let mut facts = Facts {
        seen: rubus_change::sight::look(files, &look_at.paths),
        boot_id: steps::boot_id(files),
        ..Facts::default()
    };
    let World::Live(live) = world else {
        // Nobody can look at a captured disk again.
        let surveyed = |path: &PathBuf| (path.clone(), recipe::surveyed_disk(machine, path));
        facts.disks = look_at.disks.iter().map(surveyed).collect();
        return Ok(facts);
    };
    let identity = |path: &PathBuf| (path.clone(), steps::identity(live, path));
    facts.disks = look_at.disks.iter().map(identity).collect();
    let measured = measured_before();
    facts.speeds = recipe::measured_speeds(machine, &measured);
    facts.together = recipe::measured_together(machine, &measured);
    let size = |path: &PathBuf| {
        let used = filling::usage(path).ok()?;
        Some((path.clone(), TreeSize { bytes: used.bytes, entries: used.entries }))
    };
    facts.trees = look_at.trees.iter().filter_map(size).collect();
    let bytes = |path: &PathBuf| Some((path.clone(), bytes_below(path).ok()?));
    facts.directories = look_at.directories.iter().filter_map(bytes).collect();
    let node = |path: &PathBuf| (path.clone(), node(path));
    facts.nodes = look_at.nodes.iter().map(node).collect();
    if look_at.compression {
        // One tree is enough: it is the processor that is measured.
        let top = look_at.trees.first().map_or(Path::new("/"), PathBuf::as_path);
        let measured = rubus_processor::files::measure(top, &NotCopied::of(machine));
        facts.compression = measured.speeds;
        facts.sample_bytes_per_second = measured.disk_bytes_per_second;
    }
    if look_at.program_starts {
        facts.program_start_s = starting::short_program_s();
    }
    facts.random = random(live)?;
    Ok(facts)
}

/// What is at the end of a path.
fn node(path: &Path) -> Result<Option<Node>, Unseen> {
    let found = match std::fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Unseen::from(&error)),
    };
    let kind = found.file_type();
    Ok(Some(Node {
        kind: match () {
            () if kind.is_file() => NodeKind::File,
            () if kind.is_dir() => NodeKind::Directory,
            () if kind.is_block_device() => NodeKind::BlockDevice,
            () => NodeKind::Other,
        },
        user: found.uid(),
        group: found.gid(),
        size_bytes: if kind.is_file() { found.len() } else { 0 },
    }))
}

/// Numbers that nobody else has: the identifiers of new disks and filesystems.
///
/// # Errors
/// When they cannot be read: disks with equal identifiers would be taken for one another.
pub fn random(files: &dyn Files) -> anyhow::Result<[u8; 32]> {
    const SOURCE: &str = "/dev/urandom";
    let bytes = files.read_prefix(Path::new(SOURCE), 32);
    let bytes = bytes.map_err(|why| anyhow::anyhow!("cannot read {SOURCE}: {why}"))?;
    let count = bytes.len();
    let random = bytes.try_into();
    random.map_err(|_| anyhow::anyhow!("cannot read {SOURCE}: it gave {count} bytes instead of 32"))
}

/// The last runs of disks in the history, newest first. A plan can be made without any.
fn measured_before() -> Vec<(RunId, Run)> {
    last_runs(|line| line.device.is_some() || line.suite == rubus_runs::together::SUITE)
}

/// The last runs of anything in the history, newest first.
pub fn runs_before() -> Vec<(RunId, Run)> {
    last_runs(|_| true)
}

fn last_runs(is_wanted: impl Fn(&RunSummary) -> bool) -> Vec<(RunId, Run)> {
    const MAX: u32 = 50;
    let own = places::present_history().and_then(|path| History::open(&path).ok());
    let of_caller = places::history_of_caller().and_then(|path| History::open_to_read(&path).ok());
    let mut runs = Vec::new();
    for history in own.iter().chain(&of_caller) {
        let lines = history.list(MAX, 0).unwrap_or_default().into_iter();
        let wanted = lines.filter(&is_wanted);
        runs.extend(wanted.filter_map(|line| Some((line.id, history.get(line.id).ok()?.run))));
    }
    // Moments are in UTC and written in one way, so that they can be compared as texts.
    runs.sort_by(|(_, a), (_, b)| b.started.cmp(&a.started));
    runs.truncate(MAX as usize);
    runs
}

/// The user's word for every disk of a plan that has something on it, or of which that cannot be known: from `given`,
/// else typed. Gives what is to be written down.
///
/// # Errors
/// [`Refused`] when a disk is not there, is in use, or its loss is not confirmed.
pub fn confirm_losses(
    plan: &Plan,
    given: &[String],
    files: &dyn Files,
) -> anyhow::Result<Vec<GivenAway>> {
    let disks = plan.disks_lost();
    let mut confirmed = Vec::new();
    for disk in disks {
        let device = look_at(disk, files)?;
        if let Some(why) = guard::may_lose(&device) {
            confirmed.push(confirm_loss(disk, &device, why, given, files)?);
        }
    }
    Ok(confirmed)
}

/// The user's word for the disks that an interrupted change has yet to overwrite, where what they confirmed before does not
/// cover what is there now: perhaps another disk of the same model is plugged in, blank or not, or it was used since.
///
/// # Errors
/// [`Refused`] when a disk is not there or cannot be told from another one, what the change made before is not there, or a loss
/// is not confirmed; the change then stands where it stood.
pub fn confirm_again(
    change: &Change,
    given: &[String],
    files: &dyn Files,
) -> anyhow::Result<Vec<GivenAway>> {
    find_made(change, files).map_err(|why| stands(change, &why))?;
    let mut confirmed: Vec<GivenAway> = Vec::new();
    for disk in disks_still_lost(change) {
        let now = find(disk, files).map_err(|why| stands(change, &why))?;
        // Why it cannot be used, the step itself says: an array of this change's own making may stand on it.
        let Ok(device) = guard::fit(files, &now.path) else {
            continue;
        };
        if confirmed.iter().any(|known| known.disk == disk.path) {
            continue;
        }
        let is_given = steps::is_given_away(&change.plan.steps, &change.consents(), disk, files);
        let is_blank = guard::may_lose(&device).is_none();
        let boot = steps::boot_id(files);
        let is_new_boot = boot.is_some() && disk.boot_id.is_some() && boot != disk.boot_id;
        let Some(doubt) = doubt(is_given.map_err(Refused)?, is_blank, is_new_boot) else {
            continue;
        };
        let why = format!(
            "{doubt}. If it is another one, plug in the one that was meant instead; {}",
            go_on(change)
        );
        confirmed.push(confirm_loss(disk, &device, &why, given, files)?);
    }
    Ok(confirmed)
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

/// Why a change cannot be gone on with yet. Nothing of it is done or undone then.
fn stands(change: &Change, why: &str) -> Refused {
    Refused(format!(
        "{} was not resumed, and nothing was touched: {why}; {}",
        change.name,
        go_on(change)
    ))
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

/// The user's word for the loss of what is on one disk.
fn confirm_loss(
    disk: &DiskIdentity,
    device: &guard::DeviceFacts,
    why: &str,
    given: &[String],
    files: &dyn Files,
) -> anyhow::Result<GivenAway> {
    let wanted = guard::confirmation(device);
    // What is on it when the question is asked is what the answer is about.
    let ends = steps::fingerprint(Path::new(&device.path)).map_err(Refused)?;
    let is_given = given.iter().any(|words| words.trim() == wanted.text);
    if !is_given && !typed(disk, device, &wanted)? {
        let option = format!("--i-will-lose-everything-on={}", wanted.text);
        return Err(Refused(format!(
            "{} {why}.\n\n{}\nIf all of this may be lost, confirm it with {}:\n  {option}",
            device.path,
            guard::card(device),
            wanted.kind.phrase()
        ))
        .into());
    }
    Ok(GivenAway {
        disk: disk.path.clone(),
        words: disk.confirmation.clone(),
        ends: Some(ends),
        boot: steps::boot_id(files),
    })
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
fn look_at(disk: &DiskIdentity, files: &dyn Files) -> anyhow::Result<guard::DeviceFacts> {
    let now = find(disk, files).map_err(|why| {
        let shown = disk.path.display();
        Refused(format!("{shown} was not touched: {why}, or make a new plan"))
    })?;
    let device = guard::fit(files, &now.path).map_err(|refusal| Refused(refusal.to_string()))?;
    Ok(device)
}

/// The disk that is meant, by all that it says of itself.
fn find(disk: &DiskIdentity, files: &dyn Files) -> Result<guard::Disk, String> {
    let disks = guard::disks(files)?;
    steps::find_disk(disk, &disks, steps::boot_id(files).as_deref())
}

/// Whether the user types the confirmation; no without a terminal.
fn typed(
    disk: &DiskIdentity,
    device: &guard::DeviceFacts,
    wanted: &guard::Confirmation,
) -> anyhow::Result<bool> {
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return Ok(false);
    }
    eprint!(
        "\nEverything on {} will be lost:\n\n{}\nType {} ({}) to go on, or press Enter to stop: ",
        disk.path.display(),
        guard::card(device),
        wanted.text,
        wanted.kind.phrase()
    );
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).context("cannot read the confirmation")?;
    Ok(answer.trim() == wanted.text)
}

/// Tells on standard error how a change goes on: a line for every step, and for long ones a line that is written
/// again and again; without a terminal a new line every ten seconds.
#[derive(Debug)]
pub struct Teller {
    is_quiet: bool,
    is_live: bool,
    /// Whether an unfinished line is on the terminal.
    is_line_open: bool,
    told_ns: u64,
    /// Whether it was told why the change goes back.
    has_said_why: bool,
}

impl Teller {
    /// For this user's terminal.
    pub fn new(terminal: Terminal, is_quiet: bool) -> Self {
        Teller {
            is_quiet,
            is_live: terminal.live,
            is_line_open: false,
            told_ns: 0,
            has_said_why: false,
        }
    }

    /// Tells of one event.
    pub fn tell(&mut self, event: Event<'_>) {
        if self.is_quiet {
            return;
        }
        match event {
            Event::Step { step, of, title, .. } => {
                self.line(&format!("[{}/{of}] {title}", step + 1));
                // A step that ends within ten seconds needs no second line.
                self.told_ns = clock::monotonic_ns();
            }
            Event::Progress { progress, .. } => self.progress(progress),
            Event::Remark { words } => self.line(&format!("rubus: {words}")),
            Event::TurningBack { why } => {
                self.turning_back(why, "putting everything back");
            }
        }
    }

    /// Tells why it does not go on, and what is done instead.
    pub fn turning_back(&mut self, why: &str, instead: &str) {
        if !self.is_quiet {
            self.line(&format!("rubus: {why}\nrubus: {instead}"));
            self.has_said_why = true;
        }
    }

    /// What is said of a change that went back: how all is now, and why, where that was not told when it happened.
    pub fn went_back(&self, why: &str, now: &str) -> String {
        match self.has_said_why {
            true => format!("rubus: {now}"),
            false => format!("rubus: {why}\nrubus: {now}"),
        }
    }

    /// Ends the line of the progress.
    pub fn close(&mut self) {
        if self.is_line_open {
            std::eprint!("\r\x1b[K");
            self.is_line_open = false;
        }
    }

    fn line(&mut self, text: &str) {
        self.close();
        eprintln!("{text}");
    }

    fn progress(&mut self, progress: &Progress) {
        const LIVE_EVERY_NS: u64 = 200_000_000;
        const PLAIN_EVERY_NS: u64 = 10_000_000_000;
        let now = clock::monotonic_ns();
        let every = if self.is_live { LIVE_EVERY_NS } else { PLAIN_EVERY_NS };
        if now.saturating_sub(self.told_ns) < every {
            return;
        }
        self.told_ns = now;
        let words = words(progress);
        if self.is_live {
            // Longer than the terminal is wide it would leave its first rows behind.
            let cut: String = words.chars().take(78).collect();
            std::eprint!("\r\x1b[K      {}", rubus_draw::text::clean(&cut));
            // A progress that cannot be shown is no reason to stop.
            let _ = std::io::stderr().flush();
            self.is_line_open = true;
        } else {
            eprintln!("      {words}");
        }
    }
}

fn words(progress: &Progress) -> String {
    let mut text = match progress.share {
        Some(share) => format!("{:>3.0} %  {}", share.clamp(0.0, 1.0) * 100.0, progress.words),
        None => progress.words.clone(),
    };
    if let Some(left_s) = progress.left_s.filter(|left| left.is_finite()) {
        text += &format!(", {} left", about(left_s));
    }
    text
}

/// A time that is an estimate, with as few digits as it deserves.
fn about(seconds: f64) -> String {
    match seconds {
        s if s < 60.0 => format!("about {:.0} s", (s / 5.0).ceil() * 5.0),
        s if s < 5400.0 => format!("about {:.0} min", (s / 60.0).ceil()),
        s => format!("about {:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use rubus_change::apply::ChangeStore;
    use rubus_change::fixture::long_plan::big_plan;
    use rubus_change::plan::Step;
    use rubus_host::fake::FakeFiles;
    use rubus_host::rehearsal::Rehearsal;

    use super::*;

    #[test]
    fn progress_in_words() {
        let mut progress = Progress {
            words: "copied 12 of 98 files".into(),
            share: Some(0.1234),
            left_s: Some(61.0),
        };
        assert_eq!(words(&progress), " 12 %  copied 12 of 98 files, about 2 min left");
        progress.share = None;
        progress.left_s = Some(3.0);
        assert_eq!(words(&progress), "copied 12 of 98 files, about 5 s left");
        progress.left_s = Some(9000.0);
        assert_eq!(words(&progress), "copied 12 of 98 files, about 2.5 h left");
        progress.left_s = None;
        assert_eq!(words(&progress), "copied 12 of 98 files");
    }

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
        let machine = &mut Rehearsal::new().directory("/changes");
        let store = ChangeStore::at("/changes");
        let mut change = store.begin(big_plan(), Vec::new(), "now", machine).unwrap();
        let nothing = FakeFiles::new().dir("/sys/block");
        let why = confirm_again(&change, &[], &nothing).unwrap_err();
        assert!(why.is::<Refused>());
        let why = why.to_string();
        for words in [
            "0001-example was not resumed, and nothing was touched",
            "is not there; plug it in again",
            "then run `rubus resume` again, or go back with `rubus undo 0001-example`",
        ] {
            assert!(why.contains(words), "'{words}' in: {why}");
        }
        change.state.way = Way::Undo;
        assert_eq!(confirm_again(&change, &[], &nothing).unwrap(), []);
    }

    #[test]
    fn a_change_whose_new_filesystem_is_not_there_stands() {
        let machine = &mut Rehearsal::new().directory("/changes");
        let store = ChangeStore::at("/changes");
        let mut change = store.begin(big_plan(), Vec::new(), "now", machine).unwrap();
        // Nothing is overwritten any more: only the rest of the change needs the disk.
        let overwrites = |step: &Step| !step.action.disks_lost().is_empty();
        let last = change.plan.steps.iter().rposition(overwrites).unwrap();
        change.state.steps[..=last].fill(StepState::Done);
        let nothing = FakeFiles::new().dir("/sys/block");
        let why = confirm_again(&change, &[], &nothing).unwrap_err();
        assert!(why.is::<Refused>(), "{why:#}");
        let why = why.to_string();
        for words in [
            "was not resumed, and nothing was touched",
            "what was made on /dev/sda1 before the interruption is not there: no disk has",
            "plug the disk in",
            "then run `rubus resume` again, or go back with `rubus undo 0001-example`",
        ] {
            assert!(why.contains(words), "'{words}' in: {why}");
        }
        change.state.way = Way::Undo;
        assert_eq!(confirm_again(&change, &[], &nothing).unwrap(), []);
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

    #[test]
    fn random_numbers_that_cannot_be_read_are_an_error_and_not_zeros() {
        let missing = random(&FakeFiles::new()).unwrap_err();
        assert!(missing.to_string().starts_with("cannot read /dev/urandom"), "{missing}");
        let short = FakeFiles::new().file("/dev/urandom", "short");
        let short = random(&short).unwrap_err();
        assert!(short.to_string().contains("5 bytes instead of 32"), "{short}");
        let whole = FakeFiles::new().file("/dev/urandom", vec![7; 32]);
        assert_eq!(random(&whole).unwrap(), [7; 32]);
    }
}
