//! `rubus nbd`: arguments, exit statuses and examples, and what queries answer.

mod pages;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::info::{Exports, Info};
use crate::server::overlay::ClientName;

pub use pages::PAGES;

/// Query NBD servers, copy exports, manage clones.
#[derive(Debug, Args)]
pub struct Nbd {
    #[command(subcommand)]
    pub command: NbdCommand,
}

/// What `rubus nbd` does.
#[derive(Debug, Subcommand)]
pub enum NbdCommand {
    Info(NbdInfo),
    List(NbdList),
    Copy(NbdCopy),
    #[command(subcommand)]
    Clones(NbdClones),
}

/// Copy a disk from or to an export, and resume an interrupted copy.
///
/// SRC and DST are exports, files or block devices.
/// Skips zeros; a file stays sparse. At the end everything is flushed and read back. A file gets
/// its name only when it is complete; until then it is DST.partial, with a journal beside it, and
/// the same command resumes it.
#[derive(Debug, Args)]
pub struct NbdCopy {
    /// What to copy: nbd://server/disk, a file or a block device
    #[arg(value_name = "SRC", value_hint = clap::ValueHint::AnyPath)]
    pub source: OsString,
    /// Where to: an export, a file or a block device, at least as large
    #[arg(value_name = "DST", value_hint = clap::ValueHint::AnyPath)]
    pub destination: OsString,
    /// Do not read back what was written
    #[arg(long)]
    pub no_verify: bool,
    /// Replace an existing file DST once the copy is complete
    #[arg(long)]
    pub overwrite: bool,
    /// Confirm that everything on the device with this serial number, or on the
    /// export with this address, is lost
    #[arg(long, value_name = "SERIAL")]
    pub i_will_lose_everything_on: Vec<String>,
    /// Keep the journal in this file, so that a copy to an export or a device can be resumed
    /// [default for a file: DST.partial.journal]
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub journal: Option<PathBuf>,
    /// Continue past unreadable parts of SRC (bad sectors): retry them at the end in smaller parts,
    /// leave zeros for the rest, and list it [exit status 1]
    #[arg(long)]
    pub skip_unreadable: bool,
    /// Start over, whatever the journal says
    #[arg(long, alias = "anew")]
    pub restart: bool,
    /// Connections to a server that promises multi-conn
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub connections: u8,
    /// Requests in flight on each connection
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub depth: u16,
    /// Seconds to wait for an answer while the server's machine is reachable: its disk may take
    /// minutes to write back cached data
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub patience: u32,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

impl NbdCopy {
    /// How long a server may take for an answer.
    pub fn patience(&self) -> Duration {
        Duration::from_secs(self.patience.into())
    }
}

/// Show everything a server offers for an export.
///
/// Only queries: reads nothing from the export and writes nothing to it.
#[derive(Debug, Args)]
pub struct NbdInfo {
    /// The export, such as nbd://server/disk or nbd+unix:///disk?socket=FILE
    #[arg(value_name = "ADDRESS")]
    pub address: String,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

impl NbdInfo {
    /// Asks the server; the answer is text or JSON.
    ///
    /// # Errors
    /// When the server cannot be asked, or has no such export.
    pub fn answer(&self) -> anyhow::Result<String> {
        let info = Info::of(&self.address)?;
        if self.json {
            Ok(serde_json::to_string_pretty(&info.document())? + "\n")
        } else {
            Ok(info.text())
        }
    }
}

/// List the exports of a server with their sizes and descriptions.
#[derive(Debug, Args)]
pub struct NbdList {
    /// The server, such as nbd://server
    #[arg(value_name = "ADDRESS")]
    pub address: String,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

impl NbdList {
    /// Asks the server; the answer is text or JSON.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub fn answer(&self) -> anyhow::Result<String> {
        let exports = Exports::of(&self.address)?;
        if self.json {
            Ok(serde_json::to_string_pretty(&exports.document())? + "\n")
        } else {
            Ok(exports.text())
        }
    }
}

/// Manage the clones of a golden image.
///
/// They are made by `rubus serve --clone-per-client`.
#[derive(Debug, Subcommand)]
pub enum NbdClones {
    /// List the clones in a directory
    List {
        /// Where the clones are
        #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
        directory: PathBuf,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Reset a clone to the current golden image; its client's writes are lost
    Reset {
        /// Where the clones are
        #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
        directory: PathBuf,
        /// The client
        #[arg(value_name = "NAME", value_parser = ClientName::asked)]
        name: ClientName,
        /// The golden image, if it has moved
        #[arg(long, value_name = "IMAGE", value_hint = clap::ValueHint::FilePath)]
        golden: Option<PathBuf>,
    },
    /// Remove a clone; its client's writes are lost
    #[command(alias = "throw-away")]
    Remove {
        /// Where the clones are
        #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
        directory: PathBuf,
        /// The client
        #[arg(value_name = "NAME", value_parser = ClientName::asked)]
        name: ClientName,
    },
    /// Write a client's disk into a new image; the clone stays
    Merge {
        /// Where the clones are
        #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
        directory: PathBuf,
        /// The client
        #[arg(value_name = "NAME", value_parser = ClientName::asked)]
        name: ClientName,
        /// The new image; it must not exist, and gets its name only when it is complete
        #[arg(long, value_name = "OUT", value_hint = clap::ValueHint::FilePath)]
        to: PathBuf,
        /// The golden image, if it has moved
        #[arg(long, value_name = "IMAGE", value_hint = clap::ValueHint::FilePath)]
        golden: Option<PathBuf>,
    },
}
