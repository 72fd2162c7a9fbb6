//! `rubus boot`: how this machine starts, or where a card would stop.

use std::path::Path;

use anyhow::Context;
use rubus_boot::chain::Outcome;
use rubus_host::block::disk_bytes::{DiskBytes, DiskBytesError};
use rubus_machine::card::Card;
use rubus_machine::start::{self, CardParts, Start, StartReport};

use crate::args::{Boot, General};
use crate::exit::Exit;
use rubus_command::places::say;
use rubus_command::{Terminal, World};

/// Follows the start and shows it.
pub fn run(general: &General, arguments: &Boot) -> anyhow::Result<Exit> {
    let start = match &arguments.disk {
        Some(disk) => of_disk(disk, arguments.board.as_deref())?,
        None => {
            let world = World::of(general)?;
            let machine = world.survey();
            start::of_machine(world.files(), &machine)
        }
    };
    if arguments.json.wanted {
        say(&(serde_json::to_string_pretty(&StartReport::of(&start))? + "\n"))?;
    } else {
        say(&start::text::render(&start, arguments.verbose, Terminal::of(general).style()))?;
    }
    Ok(match start.chain.outcome() {
        Outcome::Starts => Exit::Fine,
        Outcome::StopsAt(_) | Outcome::NotCertainAfter(_) => Exit::AnswerIsNo,
    })
}

/// The start of a disk or image, which is only read.
fn of_disk(path: &Path, board: Option<&str>) -> anyhow::Result<Start> {
    let shown = path.display().to_string();
    let opened = DiskBytes::open(path).map_err(|why| {
        let remedy = match why {
            DiskBytesError::Denied => format!("\nRun it as root: sudo rubus boot {shown}"),
            _ => String::new(),
        };
        anyhow::anyhow!("cannot look at {shown}: {why}{remedy}")
    });
    let disk = opened?;
    let card = Card::open(&disk)
        .map_err(anyhow::Error::msg)
        .with_context(|| format!("cannot look at {shown}"))?;
    let parts = CardParts::of(&shown, &card).map_err(anyhow::Error::msg)?;
    Ok(start::of_card(&parts, board))
}
