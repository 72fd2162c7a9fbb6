//! `rubus watch`: the machine while it works, on the screen, in a recording, for a monitoring system.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use rubus_command::places::{self, must_be_writable, say, write_whole};
use rubus_command::{Exit, General, Json, Terminal, World, can_draw, knows_utf8, message, signals};
use rubus_draw::next_step;
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::verb::{PLAIN, Page};
use serde::Serialize;

use crate::health::DiskHealth;
use crate::let_through::replaced;
use crate::live::context::context;
use crate::live::network_disks;
use crate::live::recorder::Recorder;
use crate::live::replay::Replay;
use crate::live::terminal;
use crate::live::view::{CUT, Export, Watcher, on_screen, play, unseen};
use crate::probe::{Sampler, health, wear};
use crate::text::{Letters, Mode, Trail, View};
use crate::{Header, LetThrough, Look, next};

/// Exit statuses and examples.
pub const PAGE: Page = Page {
    name: "rubus-watch",
    statuses: PLAIN,
    examples: &[
        ("rubus watch", "Show the machine until you press q."),
        (
            "rubus watch --record work.rec",
            "Record what happens; `rubus watch --replay work.rec` shows it.",
        ),
    ],
};

/// Watch the machine while it works: disks, processors, memory, swap, heat.
///
/// Keys: q quits, space pauses the screen, p hides and shows programs; in a recording the arrows
/// step, + and - change the speed, Home goes to the start. An ordinary user sees only their own
/// programs, and not all of zswap.
#[derive(Debug, Args)]
pub struct Watch {
    /// Time between two samples, from 0.1 to 3600 seconds
    #[arg(long, short, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    pub interval: f64,
    /// Take two samples, print the result, and exit
    #[arg(long)]
    pub once: bool,
    #[command(flatten)]
    pub json: Json,
    /// Record every sample in a new file, or to standard output with `-`
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Show a recording instead of this machine
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record", "prometheus", "server_status", "interval"])]
    pub replay: Option<PathBuf>,
    /// Playback speed, as a multiple of real time
    #[arg(long, value_name = "FACTOR", requires = "replay", default_value = "1", value_parser = speed)]
    pub speed: f64,
    /// Write a file for node_exporter's textfile collector, at most every 15 seconds; its name ends
    /// in .prom
    #[arg(long, value_name = "FILE")]
    pub prometheus: Option<PathBuf>,
    /// Also show the clients of the `rubus serve` with this --status
    #[arg(long, alias = "nbd-status", value_name = "FILE or ADDRESS:PORT")]
    pub server_status: Option<String>,
}

fn interval(text: &str) -> Result<f64, String> {
    let seconds: Option<f64> = text.trim_end_matches('s').trim().parse().ok();
    seconds
        .filter(|seconds| (0.1..=3600.0).contains(seconds))
        .ok_or_else(|| "give seconds from 0.1 to 3600".into())
}

fn speed(text: &str) -> Result<f64, String> {
    let factor: Option<f64> = text.trim_end_matches(['x', '×']).trim().parse().ok();
    factor
        .filter(|factor| (0.01..=1000.0).contains(factor))
        .ok_or_else(|| "give a factor from 0.01 to 1000".into())
}

/// One look at a working machine.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchDocument<'a> {
    /// What to do next.
    pub next: NextStep,
    /// The rates between two moments.
    pub watch: &'a Look,
    /// The machine, for people: board and kernel.
    pub machine: &'a str,
    /// What disks are, for people, by kernel name.
    pub disks: &'a [(String, String)],
    /// The health of each disk, the worst first; empty in recordings of older programs.
    pub health: &'a [DiskHealth],
}

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
    header.health =
        crate::health::of_machine(&machine, &health::told(world.files(), header.wear.clone()));
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
        message!("rubus: {trouble}");
    }
    let is_asked = signals::asked_flag()?;
    match can_draw {
        Ok(()) if !to_stdout => on_screen(&mut watcher, letters(general), &is_asked)?,
        _ => unseen(&mut watcher, &is_asked)?,
    }
    let file = watch.record.as_deref().filter(|_| !to_stdout);
    if let (Some(file), false) = (file, general.quiet) {
        let step = after_recording(&file.display().to_string());
        message!("{}", next_step::lines(&step, Terminal::of(general).style()).join("\n"));
    }
    Ok(Exit::Fine)
}

/// What a finished recording is for.
fn after_recording(file: &str) -> NextStep {
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
    let (shown, shown_look) = (rules.header(header.clone()), rules.look(look.clone()));
    let view = View {
        header: &shown,
        look: Some(&shown_look),
        trail: &trail,
        mode: Mode::Once,
        with_programs: true,
        notice: None,
    };
    let style = Terminal::of(general).style();
    let (columns, _) = terminal::size();
    // A file or a pipe is read with an editor, which knows UTF-8 if the locale says so.
    let text = crate::text::lines(&view, columns.max(40), knows_utf8(), style);
    say(&(text + "\n" + &next_step::lines(&next, style).join("\n") + "\n"))?;
    // A recording has no other names.
    if watch.replay.is_none() && (&shown, &shown_look) != (header, look) {
        say(&replaced("rubus watch --once --json", style))?;
    }
    Ok(())
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
            message!("rubus: {}: {CUT}", path.display());
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
