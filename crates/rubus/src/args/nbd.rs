//! Arguments of `rubus nbd`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use rubus_nbd::server::overlay::ClientName;

use super::Json;

/// Ask NBD servers what they have, copy exports, look after clones.
#[derive(Debug, ClapArgs)]
pub struct Nbd {
    #[command(subcommand)]
    pub command: NbdCommand,
}

/// What `rubus nbd` does.
#[derive(Debug, Subcommand)]
pub enum NbdCommand {
    /// Show everything that a server offers of an export
    Info(NbdInfo),
    /// List the exports of a server
    List(NbdList),
    /// Look after the clones of a golden image
    #[command(subcommand)]
    Clones(NbdClones),
}

/// Show everything that a server offers of an export.
///
/// Only asks: nothing is read from the export and nothing written to it.
#[derive(Debug, ClapArgs)]
pub struct NbdInfo {
    /// The export, such as nbd://server/disk or nbd+unix:///disk?socket=FILE
    #[arg(value_name = "ADDRESS")]
    pub address: String,
    #[command(flatten)]
    pub json: Json,
}

/// List the exports of a server with their sizes and descriptions.
#[derive(Debug, ClapArgs)]
pub struct NbdList {
    /// The server, such as nbd://server
    #[arg(value_name = "ADDRESS")]
    pub address: String,
    #[command(flatten)]
    pub json: Json,
}

/// Look after the clones of a golden image (docs/nbd-clones.md).
#[derive(Debug, Subcommand)]
pub enum NbdClones {
    /// List the clones in a directory
    List {
        /// Where the clones are
        #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
        directory: PathBuf,
        #[command(flatten)]
        json: Json,
    },
    /// Make a clone what the golden image is now; what its client wrote is lost
    Reset {
        /// Where the clones are
        #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
        directory: PathBuf,
        /// The client
        #[arg(value_name = "NAME", value_parser = ClientName::asked)]
        name: ClientName,
        /// The golden image, if it is not where it was
        #[arg(long, value_name = "IMAGE", value_hint = clap::ValueHint::FilePath)]
        golden: Option<PathBuf>,
    },
    /// Remove a clone; what its client wrote is lost
    ThrowAway {
        /// Where the clones are
        #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
        directory: PathBuf,
        /// The client
        #[arg(value_name = "NAME", value_parser = ClientName::asked)]
        name: ClientName,
    },
    /// Write the disk that a client sees into a new image; the clone stays
    Merge {
        /// Where the clones are
        #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
        directory: PathBuf,
        /// The client
        #[arg(value_name = "NAME", value_parser = ClientName::asked)]
        name: ClientName,
        /// The new image; it must not exist, and has its name only when it is whole
        #[arg(long, value_name = "OUT", value_hint = clap::ValueHint::FilePath)]
        to: PathBuf,
        /// The golden image, if it is not where it was
        #[arg(long, value_name = "IMAGE", value_hint = clap::ValueHint::FilePath)]
        golden: Option<PathBuf>,
    },
}
