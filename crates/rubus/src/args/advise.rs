//! Arguments of `rubus advise`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use rubus_core::advice::{Purpose, Wish};
use rubus_nbd::uri::Uri;

use super::Json;

/// Say what to change for a purpose, and what it would give.
///
/// Weighs the disks that are here, what could be bought and a network disk, by the
/// time that each takes for the work of the purpose, and names the recipe that
/// does it. Changes nothing, and measures only with --measure: until then it takes
/// what the history has, and for the rest what is usual.
#[derive(Debug, ClapArgs)]
pub struct Advise {
    /// What the machine is for
    #[arg(long = "for", value_name = "PURPOSE", default_value = "desktop")]
    pub purpose: For,
    /// Take the machine and its figures from a capture, or from a run: its number,
    /// label, 'last' or JSON file
    #[arg(long, value_name = "WHAT", value_hint = clap::ValueHint::AnyPath, conflicts_with = "measure")]
    pub from: Option<String>,
    /// Weigh this too: usb3-ssd, usb2-ssd, usb-stick, usb-disk, nvme, a1-card,
    /// a2-card, nbd, nbd://HOST/NAME, raid0:sda,sdb; again for more
    #[arg(long, value_name = "WHAT", value_parser = wish)]
    pub with: Vec<Wish>,
    /// Also show where the time goes, which pipes are in the way, and compression
    /// by the speed of the link
    #[arg(long)]
    pub pipes: bool,
    /// First measure what is not known: how the processor compresses, and the
    /// measurements at the end of the advice; what they write they say before
    #[arg(long)]
    pub measure: bool,
    /// Write the advice as a page to this file
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
    #[command(flatten)]
    pub json: Json,
}

/// The purposes, as on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum For {
    /// Somebody sits before it
    Desktop,
    /// A small server: web, database, home automation
    Server,
    /// It writes down what it sees, and must not lose it
    Logger,
    /// It gives files or disks to others
    StorageNode,
    /// Programs that need more memory than there is
    Swap,
}

impl From<For> for Purpose {
    fn from(purpose: For) -> Purpose {
        match purpose {
            For::Desktop => Purpose::Desktop,
            For::Server => Purpose::Server,
            For::Logger => Purpose::Logger,
            For::StorageNode => Purpose::StorageNode,
            For::Swap => Purpose::Swap,
        }
    }
}

/// An address is read as whoever attaches it will read it.
fn wish(text: &str) -> Result<Wish, String> {
    let wish = Wish::parse(text)?;
    match &wish {
        Wish::Network(address) if !address.is_empty() => {
            Uri::parse(address).map_err(|error| error.to_string())?;
        }
        _ => {}
    }
    Ok(wish)
}
