//! Arguments of `rubus gallery`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::Json;

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
