//! Arguments of `rubus share` and `rubus gallery`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::Json;

/// Write a run to a file that can be published: without serial numbers, addresses and names.
///
/// A value is in the file only if a rule lets its field through: numbers, words from closed lists,
/// models, sizes. Serial numbers, UUIDs, servers and paths of your own become counted pseudonyms
/// (server-1); other texts are left out. The label stays. `rubus share last -` shows the file first.
/// `rubus compare` and `rubus gallery` read it, `rubus history import` adds it to a history.
#[derive(Debug, ClapArgs)]
pub struct Share {
    /// The run: its number, its label, last, last~1
    #[arg(value_name = "RUN", default_value = "last")]
    pub run: String,
    /// The file; `-` is standard output [default: named for the board, the disk and the day]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// Compare many shared runs: boards, cards and disks in one table.
///
/// Reads what `rubus share` and `rubus history export` write, and the JSON of `rubus bench`. The
/// page needs no server software: put it on any web space.
#[derive(Debug, ClapArgs)]
pub struct Gallery {
    /// Files, and directories of .json files
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// Write a page to a file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub json: Json,
}
