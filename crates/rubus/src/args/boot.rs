//! Arguments of `rubus boot`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap::builder::PossibleValuesParser;
use rubus_boot::model::Model;

use super::Json;

/// Explain how this machine starts, or where a card would stop.
///
/// Follows a start from the firmware to the mounts: medium, boot partition, config.txt, kernel,
/// initramfs, command line, root, fstab. Says "starts", "stops at" with what to change, or "not certain
/// after", then each link and each medium. DISK or IMAGE is a card in a reader, or the file of one; root is
/// needed only for a disk. Writes nothing.
#[derive(Debug, ClapArgs)]
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
