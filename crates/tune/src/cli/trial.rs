//! What `rubus tune` does: settings of a disk tried in turns, put back, and made to last where they help.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use rubus_command::messages::{agreed, in_columns};
use rubus_command::places::{self, say};
use rubus_command::{Exit, General, Terminal, World, message, must_be_live, signals};
use rubus_host::files::own_files;
use rubus_host::live::hands::{LiveHands, lock, make_directories};
use rubus_host::process::programs;
use rubus_host::{Hands, Live, clock};
use rubus_measure::suites::Endurance;
use rubus_measure::{Queueing, Session, Target, WatchPaths, nas, run_by_turn};
use rubus_vocabulary::units::bytes_iec;

use super::{Outside, Tune};
use crate::candidates::{Candidates, candidates};
use crate::course::{self, Trial, winners};
use crate::disk_seen::DiskSeen;
use crate::keeper::{self, Held};
use crate::lasting::{self, lasting};
use crate::live::{Fate, LiveSettings, Restored, restore_left};
use crate::live_trial::{LiveBench, LiveSwitch};
use crate::place::{self, Place};
use crate::report::{Around, TuneDocument};
use crate::setting::Candidate;
use crate::works::{Volume, suite, volume, works_of};
use crate::{proof, record, text, words};

/// What is said when a trial had to be cut off.
const CUT_OFF: &str = "nothing was kept of this trial; its settings are put back";
/// The proof takes at most this, in seconds.
const PROOF_S: f64 = 600.0;

/// Does what was asked.
pub fn run(general: &General, arguments: &Tune, outside: &dyn Outside) -> anyhow::Result<Exit> {
    if arguments.keeper {
        return Ok(if keeper::serve() { Exit::Fine } else { Exit::RollBackFailed });
    }
    if !arguments.list {
        must_be_live(general, "a trial", "a disk")?;
    }
    if arguments.forget {
        return forget();
    }
    if arguments.restore {
        return restore();
    }
    let world = World::of(general)?;
    let scene = scene(arguments, &world)?;
    if arguments.list || scene.candidates.tried.is_empty() {
        let document = TuneDocument::list(
            &scene.place,
            &scene.candidates,
            arguments.time,
            scene.volume.most_bytes,
        );
        let document = match &general.machine {
            Some(path) => TuneDocument {
                next: document.next.of_capture(&path.display().to_string()),
                ..document
            },
            None => document,
        };
        show(general, arguments, &document)?;
        return Ok(Exit::Fine);
    }
    must_be_root(&scene.place)?;
    if !general.quiet || !arguments.yes {
        message!("{}", in_columns(&announcement(&scene, arguments.time, arguments.apply)));
    }
    if !agreed(arguments.yes, "Begin the trial?")? {
        return Ok(Exit::AnswerIsNo);
    }
    // Until here, nothing has to be ended in order.
    let cancel = signals::cancel_flag()?;
    tried(general, arguments, &scene, &cancel, outside)
}

/// Where a trial is, and what it tries.
struct Scene {
    place: Place,
    candidates: Candidates,
    volume: Volume,
}

fn scene(arguments: &Tune, world: &World) -> anyhow::Result<Scene> {
    let named = &arguments.directory;
    let files = world.files();
    let real = match world {
        World::Live(_) => {
            nas::must_answer(files, named)?;
            let real = own_files::real_path(named)
                .with_context(|| format!("cannot tune {}", named.display()))?;
            anyhow::ensure!(
                real.is_dir(),
                "cannot tune {}: it is not a directory\nName a directory on the disk.",
                named.display()
            );
            real
        }
        World::Captured(_) => {
            if named.is_absolute() {
                named.clone()
            } else {
                "/".into()
            }
        }
    };
    let machine = world.survey();
    let place = place::of(&real, &machine, files).map_err(anyhow::Error::msg)?;
    let candidates = candidates(&place, works_of(arguments.purpose), files);
    let free = match files.space(&real) {
        Ok(space) => space.available_bytes,
        // A capture has the sizes of mounts only.
        Err(error) => machine
            .mounts
            .iter()
            .filter(|mount| real.starts_with(&mount.point))
            .max_by_key(|mount| mount.point.len())
            .and_then(|mount| mount.available_bytes.value().copied())
            .ok_or_else(|| {
                anyhow::anyhow!("cannot read the free space of {}: {error}", real.display())
            })?,
    };
    let disk = machine.device(&place.disk);
    let endurance = disk.map_or_else(Endurance::default, Endurance::of);
    let volume = volume(&candidates, free, endurance)
        .map_err(|why| anyhow::anyhow!("cannot tune {}: {why}", real.display()))?;
    Ok(Scene { place, candidates, volume })
}

fn must_be_root(place: &Place) -> anyhow::Result<()> {
    anyhow::ensure!(
        rustix::process::geteuid().is_root(),
        "cannot change settings of {}: only root may\nRun it as root: sudo rubus tune {}\n\
         `rubus tune --list` shows what would be tried.",
        place.disk,
        place.path.display()
    );
    Ok(())
}

/// Takes this machine for a trial: alone, with nothing left of an earlier one, and with a keeper.
fn hold() -> anyhow::Result<Held> {
    let directory = places::tuning();
    let hands = &mut LiveHands::new();
    make_directories(hands, &directory)?;
    let held = lock(&record::lock(&directory))?.context(
        "cannot begin a trial: another `rubus tune` is at work on this machine\nWait until it has ended.",
    )?;
    let left = restore_left(&directory, None, hands)?;
    for one in &left {
        message!(
            "{}",
            in_columns(&format!("rubus: an earlier trial was cut off: {}", words::fate(one)))
        );
    }
    anyhow::ensure!(
        left.iter().all(|one| !matches!(one.fate, Fate::Failed(_))),
        "cannot begin a trial: a setting of an earlier one is not put back\n\
         Put it back by hand, then drop the record: sudo rubus tune --forget"
    );
    Held::start(held, &directory, &session_name())
}

/// Tells this trial from every other one.
fn session_name() -> String {
    format!("{}-{}", std::process::id(), clock::monotonic_ns())
}

/// What a trial of `seconds` at most does to the machine, before it does it. The proof after `--apply` is a second one.
fn announcement(scene: &Scene, seconds: f64, has_proof: bool) -> String {
    let Scene { place, candidates, volume } = scene;
    let values = candidates.tried.len();
    let mut words = format!(
        "This tries {values} {} on {} for at most {}: writes {} at most to a nameless file of {} that is gone at the end.",
        if values == 1 { "value" } else { "values" },
        place.disk,
        rubus_draw::words::span(seconds),
        bytes_iec(volume.most_bytes),
        bytes_iec(volume.region_bytes),
    );
    if place.is_loop {
        words.push_str(
            " It is a loop device: its settings are tried, not those of the disk below its file.",
        );
    }
    words.push_str(" Each value is put back, also after Ctrl-C or a kill.");
    if has_proof {
        words.push_str(&format!(
            " What helps is then applied and measured again, for at most {}; that writes {} at most.",
            rubus_draw::words::span(seconds.min(PROOF_S)),
            bytes_iec(volume.most_bytes)
        ));
    }
    words
}

fn tried(
    general: &General,
    arguments: &Tune,
    scene: &Scene,
    cancel: &AtomicBool,
    outside: &dyn Outside,
) -> anyhow::Result<Exit> {
    let Scene { place, candidates, .. } = scene;
    let held = hold()?;
    let disk_before = DiskSeen::of(&place.disk, &Live::new());
    let began_ns = clock::monotonic_ns();
    let measured =
        measured(general, &held, scene, &candidates.tried, arguments.time, cancel, outside)?;
    drop(held);
    let best = winners(&candidates.tried, &measured.trial);
    // What a file of the owner sets keeps nothing else from lasting.
    let won = best.iter().map(|(number, _)| &candidates.tried[*number]);
    let (free, owned): (Vec<&Candidate>, Vec<&Candidate>) =
        won.partition(|one| one.set_by.is_empty());
    let chosen = if free.is_empty() { owned } else { free };
    let recipe = (!chosen.is_empty()).then(|| lasting(place, &chosen, &Live::new()));
    let around = Around {
        unrestored: words::fates(&measured.restored),
        seconds: (clock::monotonic_ns() - began_ns) as f64 / 1e9,
        bytes_written: measured.bytes_written,
        recipe: recipe
            .as_ref()
            .map(|made| made.as_ref().map(|made| made.recipe.clone()).map_err(Clone::clone)),
    };
    let document = TuneDocument::new(place, candidates, &measured.trial, around);
    let document = if arguments.apply { about_to_apply(document) } else { document };
    show(general, arguments, &document)?;
    if measured.restored.iter().any(|one| matches!(one.fate, Fate::Failed(_))) {
        return Ok(Exit::RollBackFailed);
    }
    if measured.trial.ended.is_some() || is_unjudged(&measured.trial) {
        return Ok(Exit::AnswerIsNo);
    }
    match recipe {
        Some(Ok(made)) if arguments.apply => {
            must_be_the_disk(disk_before.as_ref(), place)?;
            apply(general, arguments, scene, &chosen, &made, cancel, outside)
        }
        Some(Err(_)) if arguments.apply => Ok(Exit::AnswerIsNo),
        _ => Ok(Exit::Fine),
    }
}

/// The next step is done at once, where there is one.
fn about_to_apply(mut document: TuneDocument) -> TuneDocument {
    if document.recipe.is_some() && document.ended.is_none() {
        document.next = rubus_vocabulary::next_step::NextStep::by_hand(
            "look at the plan that follows, and agree to it",
        );
    }
    document
}

fn is_unjudged(trial: &Trial) -> bool {
    trial.comparisons.iter().all(|one| one.trouble.is_some())
}

fn must_be_the_disk(before: Option<&DiskSeen>, place: &Place) -> anyhow::Result<()> {
    anyhow::ensure!(
        before.is_some_and(|disk| disk.is_there(&Live::new())),
        "nothing was applied: {} is gone, or another disk has its name now",
        place.disk
    );
    Ok(())
}

/// What a trial on this machine gave.
struct MeasuredTrial {
    trial: Trial,
    restored: Vec<Restored>,
    bytes_written: u64,
}

/// Tries candidates and puts everything back.
fn measured(
    general: &General,
    held: &Held,
    scene: &Scene,
    candidates: &[Candidate],
    most_s: f64,
    cancel: &AtomicBool,
    outside: &dyn Outside,
) -> anyhow::Result<MeasuredTrial> {
    let Scene { place, volume, .. } = scene;
    let suite = suite(volume);
    let hands: &mut dyn Hands = &mut LiveHands::new();
    let mut live = LiveSettings::begin(&places::tuning(), held.session(), hands)?;
    let mut told = Vec::new();
    let session = Session {
        target: Target::Directory { path: place.path.clone() },
        more_files: Vec::new(),
        needs: Vec::new(),
        suite: &suite,
        watch: WatchPaths { device: Some(place.disk.clone()), ..WatchPaths::default() },
        cancel,
        queueing: Queueing::USUAL,
    };
    let mut line = outside.line(general);
    let stalls = line.stalls();
    let write_bytes = volume.most_bytes.saturating_sub(volume.region_bytes);
    let driven = signals::within_grace(CUT_OFF, &stalls, || {
        run_by_turn(session, &mut *line, |turns| {
            let mut bench =
                LiveBench::new(turns, &place.disk, most_s, volume.turn_bytes, write_bytes);
            let mut switch = LiveSwitch::new(&mut live);
            let trial = course::run(candidates, &mut bench, &mut switch, most_s);
            told.append(&mut switch.restored);
            trial
        })
    });
    drop(line);
    let (restored, stored) = live.finish();
    told.extend(restored);
    if !matches!(driven, Ok(Ok(_))) {
        for words in words::fates(&told) {
            message!("{}", in_columns(&format!("rubus: {words}")));
        }
    }
    let (trial, bytes_written) = driven??;
    stored?;
    Ok(MeasuredTrial { trial, restored: told, bytes_written })
}

/// Makes the winners last through a plan, and measures them against the values before once more.
fn apply(
    general: &General,
    arguments: &Tune,
    scene: &Scene,
    chosen: &[&Candidate],
    made: &lasting::Lasting,
    cancel: &AtomicBool,
    outside: &dyn Outside,
) -> anyhow::Result<Exit> {
    let file = places::tuning().join(format!("{}.toml", lasting::NAME));
    places::write_whole(&file, &made.recipe)?;
    let applied = outside.apply(general, &file, arguments.yes)?;
    if applied != Exit::Fine {
        return Ok(applied);
    }
    if made.has_rule {
        take_effect(&scene.place)?;
    }
    let unset = proof::unset(chosen, &Live::new());
    if !unset.is_empty() {
        for words in unset {
            message!("{}", in_columns(&format!("rubus: {words}")));
        }
        message!(
            "{}",
            in_columns("To do: sudo rubus undo, since what was applied does not take effect")
        );
        return Ok(Exit::AnswerIsNo);
    }
    prove(general, arguments, scene, chosen, cancel, outside)
}

/// Lets udev apply the new rule to the disk, as it does at each start.
fn take_effect(place: &Place) -> anyhow::Result<()> {
    let stop = AtomicBool::new(false);
    let disk = Path::new("/sys/block").join(&place.disk).display().to_string();
    let calls: [&[&str]; 2] =
        [&["control", "--reload"], &["trigger", "--settle", "--action=change", &disk]];
    for call in calls {
        programs::run("udevadm", call, &stop).with_context(|| {
            format!(
                "the rule is in {}, but cannot take effect before a restart",
                lasting::rule_file()
            )
        })?;
    }
    Ok(())
}

/// Measures the values from before against the new ones: they must be slower.
fn prove(
    general: &General,
    arguments: &Tune,
    scene: &Scene,
    chosen: &[&Candidate],
    cancel: &AtomicBool,
    outside: &dyn Outside,
) -> anyhow::Result<Exit> {
    let reversed = proof::reversed(chosen);
    if !general.quiet {
        let words = format!(
            "Proving it: the values from before against the new ones, for at most {}; writes {} at most.",
            rubus_draw::words::span(arguments.time.min(PROOF_S)),
            bytes_iec(scene.volume.most_bytes)
        );
        message!("{}", in_columns(&words));
    }
    let held = hold()?;
    let most_s = arguments.time.min(PROOF_S);
    let measured = measured(general, &held, scene, &reversed, most_s, cancel, outside)?;
    drop(held);
    for words in words::fates(&measured.restored) {
        message!("{}", in_columns(&format!("rubus: {words}")));
    }
    let proof = proof::of(&reversed, &measured.trial);
    let columns = Terminal::of(general).style().columns;
    let lines: Vec<String> =
        proof.lines.iter().flat_map(|line| rubus_draw::text::wrap(line, columns)).collect();
    say(&(lines.join("\n") + "\n"))?;
    if measured.restored.iter().any(|one| matches!(one.fate, Fate::Failed(_))) {
        return Ok(Exit::RollBackFailed);
    }
    Ok(if proof.holds { Exit::Fine } else { Exit::AnswerIsNo })
}

fn show(general: &General, arguments: &Tune, document: &TuneDocument) -> anyhow::Result<()> {
    if arguments.json.wanted {
        return say(&(serde_json::to_string_pretty(document)? + "\n"));
    }
    say(&text::render(document, Terminal::of(general).style()))
}

/// Puts back what a trial has left that was cut off.
fn restore() -> anyhow::Result<Exit> {
    let directory = places::tuning();
    let hands = &mut LiveHands::new();
    let Some(_) = record::Record::load(&directory, hands.files())? else {
        say("Nothing is left of a trial: all settings are put back.\n")?;
        return Ok(Exit::Fine);
    };
    let _held = lock(&record::lock(&directory))?.context(
        "cannot put settings back: a `rubus tune` is at work on this machine, and does that itself",
    )?;
    let restored = restore_left(&directory, None, hands)?;
    for one in &restored {
        say(&format!("{}\n", in_columns(&words::fate(one))))?;
    }
    let has_failed = restored.iter().any(|one| matches!(one.fate, Fate::Failed(_)));
    Ok(if has_failed { Exit::RollBackFailed } else { Exit::Fine })
}

/// Drops the record, whatever is in it.
fn forget() -> anyhow::Result<Exit> {
    let directory = places::tuning();
    let hands = &mut LiveHands::new();
    if !hands.files().exists(&record::file(&directory)) {
        say("There is no record of a trial.\n")?;
        return Ok(Exit::Fine);
    }
    let _held = lock(&record::lock(&directory))?
        .context("cannot drop the record: a `rubus tune` is at work on this machine")?;
    if let Ok(Some(found)) = record::Record::load(&directory, hands.files()) {
        for entry in &found.entries {
            let words = format!(
                "{} is left as it is; before the trial it was {}",
                entry.path.display(),
                entry.was
            );
            say(&format!("{}\n", in_columns(&words)))?;
        }
    }
    record::remove(&directory, hands)?;
    say("The record is dropped.\n")?;
    Ok(Exit::Fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_tried_how_long_and_how_much_is_written_is_said_beforehand() {
        let place = Place {
            path: "/mnt/ssd".into(),
            filesystem: "ext4".into(),
            disk: "sda".into(),
            stacked_on: None,
            is_loop: false,
            is_usb: true,
            options: Vec::new(),
        };
        let volume = Volume { region_bytes: 256 << 20, turn_bytes: 1 << 20, most_bytes: 512 << 20 };
        let candidates = Candidates { tried: Vec::new(), not_tried: Vec::new() };
        let scene = Scene { place, candidates, volume };
        let words = announcement(&scene, 1200.0, false);
        assert!(words.contains("on sda for at most 20 min: writes 512 MiB at most"), "{words}");
        assert!(!words.contains("applied"), "{words}");
        let words = announcement(&scene, 1200.0, true);
        assert!(
            words.contains("again, for at most 10 min; that writes 512 MiB at most"),
            "{words}"
        );
    }
}
