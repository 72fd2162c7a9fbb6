//! `rubus zswap`: what zswap holds, and whether it helps.

use rubus_memory::zswap::Report;

use crate::args::{General, Zswap};
use crate::documents::ZswapDocument;
use crate::exit::Exit;
use rubus_command::places::say;
use rubus_command::{Terminal, World};

/// Reads and explains.
pub fn run(general: &General, arguments: &Zswap) -> anyhow::Result<Exit> {
    let world = World::of(general)?;
    let reading = rubus_memory::zswap_probe::zswap(world.files(), &world.survey());
    let report = Report::of(&reading);
    if arguments.json.wanted {
        let value = ZswapDocument { report, reading };
        say(&(serde_json::to_string_pretty(&value)? + "\n"))?;
    } else {
        let style = Terminal::of(general).style();
        say(&rubus_memory::zswap_text::render(&report, style))?;
    }
    Ok(Exit::Fine)
}
