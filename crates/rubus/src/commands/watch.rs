//! `rubus watch`: the machine while it works, on the screen, in a recording, for a monitoring system.

use std::path::Path;

use anyhow::Context;
use rubus_draw::next_step;
use rubus_vocabulary::next_step::NextStep;
use rubus_watch::live::context::context;
use rubus_watch::live::network_disks;
use rubus_watch::live::recorder::Recorder;
use rubus_watch::live::replay::Replay;
use rubus_watch::live::terminal;
use rubus_watch::live::view::{CUT, Export, Watcher, on_screen, play, unseen};
use rubus_watch::probe::{Sampler, health, wear};
use rubus_watch::text::{Letters, Mode, Trail, View};
use rubus_watch::{Header, LetThrough, Look, next};

use crate::args::{General, Watch};
use crate::documents::WatchDocument;
use crate::exit::Exit;
use rubus_command::places::{self, must_be_writable, say, write_whole};
use rubus_command::signals;
use rubus_command::{Terminal, World, can_draw, knows_utf8};

/// Watches, shows a recording, or looks once.
pub fn run(general: &General, watch: &Watch) -> anyhow::Result<Exit> {
    if let Some(path) = &general.machine {
        anyhow::bail!(
            "watch looks at a machine that runs, and {} is a captured one: `rubus survey --machine FILE` shows it, and \
             `rubus watch --replay FILE` what was recorded with `rubus watch --record FILE`",
            path.display()
        );
    }
    anyhow::ensure!(
        watch.once || !watch.json.wanted,
        "--json prints one look: use it with --once; `rubus watch --record -` prints every sample as a line of JSON"
    );
    if let Some(path) = &watch.prometheus {
        let is_read = path == Path::new("-") || path.extension().is_some_and(|end| end == "prom");
        anyhow::ensure!(
            is_read,
            "the collector reads only files whose names end in .prom, and {} does not",
            path.display()
        );
        must_be_writable(path)?;
    }
    match &watch.replay {
        Some(path) => replay(general, watch, path),
        None => live(general, watch),
    }
}

fn live(general: &General, watch: &Watch) -> anyhow::Result<Exit> {
    let to_stdout = watch.record.as_deref() == Some(Path::new("-"));
    let has_work = watch.record.is_some() || watch.prometheus.is_some();
    let can_draw = can_draw();
    if let (Err(why), false, false) = (can_draw, watch.once, has_work) {
        anyhow::bail!(
            "{why}: `rubus watch --once` prints one look, `--once --json` prints it for programs, and --record FILE and \
             --prometheus FILE work without a screen"
        );
    }
    let world = World::of(general)?;
    let machine = world.survey();
    let (mut header, trouble) =
        context(&machine, places::present_history().as_deref(), watch.interval);
    if watch.record.is_some() {
        header.wear = wear::read(world.files(), &machine);
    }
    header.health = rubus_watch::health::of_machine(
        &machine,
        &health::told(world.files(), header.wear.clone()),
    );
    let sampler = Sampler::new(world.files(), &machine);
    let disks = network_disks::Disks::new(watch.server_status.as_deref());
    let recorder = watch.record.as_deref();
    let recorder = recorder.map(|path| Recorder::begin(path, &header));
    let export = watch.prometheus.as_deref();
    let export =
        export.map(|path| Box::new(move |text: &str| write_whole(path, text)) as Export<'_>);
    let mut watcher = Watcher::new(sampler, disks, header, recorder.transpose()?, export);
    if watch.once {
        return once(general, watch, &mut watcher);
    }
    if let (Some(trouble), false) = (&trouble, general.quiet) {
        eprintln!("rubus: {trouble}");
    }
    let is_asked = signals::asked_flag()?;
    match can_draw {
        Ok(()) if !to_stdout => on_screen(&mut watcher, letters(general), &is_asked)?,
        _ => unseen(&mut watcher, &is_asked)?,
    }
    let file = watch.record.as_deref().filter(|_| !to_stdout);
    if let (Some(file), false) = (file, general.quiet) {
        let step = after_recording(&file.display().to_string());
        eprintln!("{}", next_step::lines(&step, Terminal::of(general).style()).join("\n"));
    }
    Ok(Exit::Fine)
}

/// What a finished recording is for.
pub fn after_recording(file: &str) -> NextStep {
    NextStep::command(
        &["rubus", "writers", file],
        "who wrote how much, and how long the disks last",
    )
}

/// Two samples, and what they say.
fn once(general: &General, watch: &Watch, watcher: &mut Watcher<'_>) -> anyhow::Result<Exit> {
    let look = watcher.once()?.clone();
    // Who wants them on standard output wants nothing else there.
    let taken = [&watch.record, &watch.prometheus];
    if taken.into_iter().flatten().any(|path| path == Path::new("-")) {
        return Ok(Exit::Fine);
    }
    print(general, watch, watcher.header(), &look)?;
    Ok(Exit::Fine)
}

fn print(general: &General, watch: &Watch, header: &Header, look: &Look) -> anyhow::Result<()> {
    let next = next::next(header, look);
    if watch.json.wanted {
        let value = WatchDocument {
            next,
            watch: look,
            machine: &header.machine,
            disks: &header.disks,
            health: &header.health,
        };
        return say(&(serde_json::to_string_pretty(&value)? + "\n"));
    }
    let trail = Trail::default();
    // People paste text; JSON and the screen are for this machine's owner.
    let mut rules = LetThrough::default();
    let (header, look) = (rules.header(header.clone()), rules.look(look.clone()));
    let view = View {
        header: &header,
        look: Some(&look),
        trail: &trail,
        mode: Mode::Once,
        with_programs: true,
        notice: None,
    };
    let style = Terminal::of(general).style();
    let (columns, _) = terminal::size();
    // A file or a pipe is read with an editor, which knows UTF-8 if the locale says so.
    let text = rubus_watch::text::lines(&view, columns.max(40), knows_utf8(), style);
    say(&(text + "\n" + &next_step::lines(&next, style).join("\n") + "\n"))
}

fn letters(general: &General) -> Letters {
    Letters { utf8: knows_utf8(), colour: Terminal::of(general).colour }
}

fn replay(general: &General, watch: &Watch, path: &Path) -> anyhow::Result<Exit> {
    let mut replay = Replay::open(path)?;
    if watch.once {
        let last = replay.samples() - 1;
        let look = replay.look(last).context("its last two samples are damaged")?;
        if replay.was_cut() && !general.quiet {
            eprintln!("rubus: {}: {CUT}", path.display());
        }
        print(general, watch, replay.header(), &look)?;
        return Ok(Exit::Fine);
    }
    if let Err(why) = can_draw() {
        anyhow::bail!("{why}: `rubus watch --replay FILE --once` prints the end of a recording");
    }
    let is_asked = signals::asked_flag()?;
    play(&mut replay, watch.speed, letters(general), &is_asked)?;
    Ok(Exit::Fine)
}
