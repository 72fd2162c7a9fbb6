//! `rubus nbd info` and `rubus nbd list`: what a server offers. Only asks.

use clap::Args;
use rubus_vocabulary::verb::{PLAIN, Page};

use crate::info::{Exports, Info};

/// Exit statuses and examples.
pub(super) const INFO_PAGE: Page = Page {
    name: "rubus-nbd-info",
    statuses: PLAIN,
    examples: &[(
        "rubus nbd info nbd://192.168.1.5/disk",
        "Show size, block sizes and features of an export.",
    )],
};

/// Exit statuses and examples.
pub(super) const LIST_PAGE: Page = Page {
    name: "rubus-nbd-list",
    statuses: PLAIN,
    examples: &[("rubus nbd list nbd://192.168.1.5", "List the exports of a server.")],
};

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
