//! `rubus writers`: which programs wrote to the disks, from a recording or from a while of watching.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use rubus_command::places::say;
use rubus_command::values::time_within;
use rubus_command::{Exit, General, Json, Terminal, World, message, must_be_live, signals};
use rubus_draw::words::span;
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::verb::{PLAIN, Page};
use serde::Serialize;

use crate::LetThrough;
use crate::let_through::replaced;
use crate::live::context::context;
use crate::live::replay::Replay;
use crate::live::view::CUT;
use crate::live::writers::{EVERY, account};
use crate::probe::{Sampler, wear};
use crate::writers::text::render;
use crate::writers::{Account, Report};

/// Exit statuses and examples.
pub const PAGE: Page = Page {
    name: "rubus-writers",
    statuses: PLAIN,
    examples: &[
        ("sudo rubus writers", "Watch for a minute and say which programs wrote to the disks."),
        ("sudo rubus watch --interval 30 --record day.rec", "Record a day; Ctrl-C ends it."),
        ("rubus writers day.rec", "Say who wrote in that time, and what that makes in a year."),
    ],
};

/// Say which programs wrote to the disks, and how much.
///
/// Reads a recording of `rubus watch --record FILE`, or watches this machine for a minute. Names
/// programs, their units and where they write, what filesystems add, and what that makes in a year.
/// Run as root to see all programs; an ordinary user sees only their own. Writes nothing.
#[derive(Debug, Args)]
pub struct Writers {
    /// Recording of `rubus watch --record FILE`; without one, this machine is watched
    #[arg(value_name = "FILE")]
    pub recording: Option<PathBuf>,
    /// How long to watch, such as 90s, 10m or 2h
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time, conflicts_with = "recording")]
    pub time: f64,
    #[command(flatten)]
    pub json: Json,
}

/// Shorter times see one walk over all programs or none.
const MIN_S: f64 = 5.0;
/// Longer ones are for a recording, which outlives the program.
const MAX_S: f64 = 86_400.0;

fn time(text: &str) -> Result<f64, String> {
    time_within(text, MIN_S..=MAX_S).ok_or_else(|| "write a time from 5s to 24h".into())
}

/// Who wrote to the disks.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WritersDocument<'a> {
    #[serde(flatten)]
    pub report: &'a Report,
    /// Which program had most written, in a sentence.
    pub answer: String,
    /// What to do next.
    pub next: NextStep,
}

/// Accounts, and prints the account.
pub fn run(general: &General, arguments: &Writers) -> anyhow::Result<Exit> {
    let report = match &arguments.recording {
        Some(path) => recorded(general, path)?,
        None => watched(general, arguments)?,
    };
    if arguments.json.wanted {
        let document =
            WritersDocument { answer: report.answer(), next: report.next(), report: &report };
        say(&(serde_json::to_string_pretty(&document)? + "\n"))?;
    } else {
        // People paste text; JSON is for this machine's owner.
        let shown = LetThrough::default().report(report.clone());
        let style = Terminal::of(general).style();
        say(&render(&shown, style))?;
        // A recording has no other names.
        if arguments.recording.is_none() && shown != report {
            say(&format!("\n{}", replaced("rubus writers --json", style)))?;
        }
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
        message!("rubus: {}: {CUT}", path.display());
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
        message!("Watching for {}; Ctrl-C ends it sooner.", span(arguments.time));
    }
    let sampler = Sampler::new(world.files(), &machine);
    let time = Duration::from_secs_f64(arguments.time);
    let account = account(sampler, header, time, &is_asked);
    account.report().ok().context(
        "nothing was seen: /proc is not there, or it was stopped before programs were looked at for the second time",
    )
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn a_time_is_in_seconds_minutes_or_hours() {
        assert_eq!(time("90s"), Ok(90.0));
        assert_eq!(time("90"), Ok(90.0));
        assert_eq!(time("10m"), Ok(600.0));
        assert_eq!(time("24h"), Ok(86_400.0));
        for wrong in ["4s", "25h", "m", "-1m", "NaN", "infs", "1d"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
