//! `rubus nbd info` and `rubus nbd list`: what a server offers.

use rubus_nbd::info::{Exports, Info};

use crate::args::{NbdInfo, NbdList};
use crate::exit::Exit;
use crate::places::say;

/// Shows all about one export.
pub fn info(arguments: &NbdInfo) -> anyhow::Result<Exit> {
    let info = Info::of(&arguments.address)?;
    say(&match arguments.json.wanted {
        true => serde_json::to_string_pretty(&info.document())? + "\n",
        false => info.text(),
    })?;
    Ok(Exit::Fine)
}

/// Shows all exports.
pub fn list(arguments: &NbdList) -> anyhow::Result<Exit> {
    let exports = Exports::of(&arguments.address)?;
    say(&match arguments.json.wanted {
        true => serde_json::to_string_pretty(&exports.document())? + "\n",
        false => exports.text(),
    })?;
    Ok(Exit::Fine)
}
