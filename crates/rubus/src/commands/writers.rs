//! `rubus writers`: which programs wrote to the disks, from a recording or from a while of watching.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use rubus_draw::words::span;
use rubus_watch::LetThrough;
use rubus_watch::live::context::context;
use rubus_watch::live::replay::Replay;
use rubus_watch::live::view::CUT;
use rubus_watch::live::writers::{EVERY, account};
use rubus_watch::probe::{Sampler, wear};
use rubus_watch::writers::text::render;
use rubus_watch::writers::{Account, Report};

use crate::args::{General, Writers};
use crate::documents::WritersDocument;
use crate::exit::Exit;
use rubus_command::places::say;
use rubus_command::signals;
use rubus_command::{Terminal, World, must_be_live};

/// Accounts, and prints the account.
pub fn run(general: &General, arguments: &Writers) -> anyhow::Result<Exit> {
    let report = match &arguments.recording {
        Some(path) => recorded(general, path)?,
        None => watched(general, arguments)?,
    };
    if arguments.json.wanted {
        let document = WritersDocument { next: report.next(), report: &report };
        say(&(serde_json::to_string_pretty(&document)? + "\n"))?;
    } else {
        // People paste text; JSON is for this machine's owner.
        let report = LetThrough::default().report(report);
        say(&render(&report, Terminal::of(general).style()))?;
    }
    Ok(Exit::Fine)
}

fn recorded(general: &General, path: &Path) -> anyhow::Result<Report> {
    let mut replay = Replay::open(path)?;
    let mut account = Account::new(replay.header().clone());
    for at in 0..replay.samples() {
        // A damaged line in the middle is passed over: the next sample says what happened since the one before it.
        if let Some(sample) = replay.sample(at) {
            account.add(sample);
        }
    }
    if replay.was_cut() && !general.quiet {
        eprintln!("rubus: {}: {CUT}", path.display());
    }
    account.report().map_err(|_| {
        anyhow::anyhow!(
            "{} does not say which programs wrote: it was recorded by a rubus older than 0.2.0, or ends before all \
             programs were looked at for the second time\n\
             Record again with `sudo rubus watch --record FILE`.",
            path.display()
        )
    })
}

fn watched(general: &General, arguments: &Writers) -> anyhow::Result<Report> {
    must_be_live(general, "writers", "programs")?;
    let world = World::of(general)?;
    let machine = world.survey();
    let (mut header, _) = context(&machine, None, EVERY.as_secs_f64());
    header.wear = wear::read(world.files(), &machine);
    let is_asked = signals::asked_flag()?;
    if !general.quiet {
        eprintln!("Watching for {}; Ctrl-C ends it sooner.", span(arguments.time));
    }
    let sampler = Sampler::new(world.files(), &machine);
    let time = Duration::from_secs_f64(arguments.time);
    let account = account(sampler, header, time, &is_asked);
    account.report().ok().context(
        "nothing was seen: /proc is not there, or it was stopped before programs were looked at for the second time",
    )
}
