//! `rubus zswap`: what zswap holds, and whether it helps.

use clap::Args;
use rubus_command::places::say;
use rubus_command::{Exit, General, Json, Terminal, World};
use rubus_machine::swap_place::SwapPlace;
use rubus_vocabulary::verb::{PLAIN, Page};
use serde::Serialize;

use crate::zswap::{Reading, Report};
use crate::{zswap_probe, zswap_text};

/// Exit statuses and examples.
pub const PAGE: Page = Page {
    name: "rubus-zswap",
    statuses: PLAIN,
    examples: &[("sudo rubus zswap", "Show all counters; some need root.")],
};

/// Show what zswap holds, what its counters mean, and whether it helps.
///
/// Without root, shows only public counters: how much is stored and how often, but not why pages
/// were rejected.
#[derive(Debug, Args)]
pub struct Zswap {
    #[command(flatten)]
    pub json: Json,
}

/// What zswap holds, and whether it helps.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ZswapDocument {
    /// The answer.
    pub report: Report,
    /// What was read.
    pub reading: Reading,
}

/// Reads and explains.
pub fn run(general: &General, arguments: &Zswap) -> anyhow::Result<Exit> {
    let world = World::of(general)?;
    let machine = world.survey();
    let reading = zswap_probe::zswap(world.files(), &machine);
    let mut report = Report::of(&reading, SwapPlace::of(&machine));
    if let Some(capture) = &general.machine {
        report.next = report.next.of_capture(&capture.display().to_string());
    }
    if arguments.json.wanted {
        let value = ZswapDocument { report, reading };
        say(&(serde_json::to_string_pretty(&value)? + "\n"))?;
    } else {
        let style = Terminal::of(general).style();
        say(&zswap_text::render(&report, style))?;
    }
    Ok(Exit::Fine)
}
