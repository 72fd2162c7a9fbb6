//! `rubus boot`: how this machine starts, or where a card would stop.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use clap::builder::PossibleValuesParser;
use rubus_boot::chain::Outcome;
use rubus_boot::model::Model;
use rubus_command::places::say;
use rubus_command::{Exit, General, Json, Terminal, World};
use rubus_host::block::disk_bytes::{DiskBytes, DiskBytesError};
use rubus_vocabulary::verb::{MISTAKE, Page};

use crate::card::Card;
use crate::start::{self, CardParts, Start, StartReport};

/// Exit statuses and examples.
pub const PAGES: &[Page] = &[Page {
    name: "rubus-boot",
    statuses: &[
        (0, "it starts, certainly or likely"),
        (1, "it stops, or what follows is not certain"),
        MISTAKE,
    ],
    examples: &[
        ("rubus boot", "Say how this machine starts, link by link."),
        (
            "sudo rubus boot /dev/sdb --board pi4",
            "Say where the card in the reader would stop in a Raspberry Pi 4.",
        ),
        ("rubus boot card.img", "Say in which boards an image starts."),
    ],
}];

/// The JSON documents that it prints.
#[cfg(feature = "schema")]
pub fn documents() -> Vec<rubus_vocabulary::verb::Document> {
    use rubus_vocabulary::verb::Document;
    vec![Document::of::<StartReport>("boot", "rubus boot --json")]
}

/// Explain how this machine starts, or where a card would stop.
///
/// Follows a start from the firmware to the mounts: medium, boot partition, config.txt, kernel,
/// initramfs, command line, root, fstab. Says "It starts", "It stops at" with what to change, or "It is not
/// certain", then each link and each medium. DISK or IMAGE is a card in a reader, or the file of one; root
/// is needed only for a disk. Writes nothing.
#[derive(Debug, Args)]
pub struct Boot {
    /// Disk or image of a card to look at; without one, this machine
    #[arg(value_name = "DISK|IMAGE", value_hint = clap::ValueHint::FilePath, conflicts_with = "machine")]
    pub disk: Option<PathBuf>,
    /// Board that the disk or image is put into, such as pi4; without it, each kind of board
    #[arg(long, value_name = "BOARD", requires = "disk", hide_possible_values = true,
        value_parser = PossibleValuesParser::new(Model::filter_names()))]
    pub board: Option<String>,
    /// Show where each link was read and since when its rule holds, and all notes
    #[arg(long, short)]
    pub verbose: bool,
    #[command(flatten)]
    pub json: Json,
}

/// Follows the start and shows it.
///
/// # Errors
/// When the disk or image cannot be read, or the answer not be written.
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
