//! Arguments of `rubus advise`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use rubus_advise::advice::Wish;
use rubus_machine::purpose::Purpose;
use rubus_nbd::uri::Uri;

use super::{Json, Remote};

/// Say what to change for a purpose, and what it would gain.
///
/// Ranks the disks of this machine, disks you could buy and a network disk by the time each needs
/// for the work of the purpose, and names the recipe that makes the change. Changes nothing, and
/// measures only with --measure: otherwise it uses the history, and typical values for the rest. With
/// --on it surveys other machines and uses what this machine's history has of them.
#[derive(Debug, ClapArgs)]
pub struct Advise {
    /// What the machine is for
    #[arg(value_name = "PURPOSE", default_value = "desktop")]
    purpose: For,
    /// The same, as earlier versions took it
    #[arg(long = "for", value_name = "PURPOSE", hide = true, conflicts_with = "purpose")]
    purpose_as_option: Option<For>,
    /// Take the machine and its figures from a capture, or from a run: its number,
    /// label, 'last' or JSON file
    #[arg(long, value_name = "WHAT", value_hint = clap::ValueHint::AnyPath,
        conflicts_with_all = ["measure", "on"])]
    pub from: Option<String>,
    /// Rank this too: usb3-ssd, usb2-ssd, usb-stick, usb-disk, nvme, a1-card, a2-card, nbd,
    /// nbd://HOST/NAME, raid0:sda,sdb (repeatable)
    #[arg(long, value_name = "WHAT", value_parser = wish)]
    pub with: Vec<Wish>,
    /// Also show why, what else could be changed, and what is not known
    #[arg(long, short)]
    pub verbose: bool,
    /// With all that, show where the time goes, which pipes limit it, and compression by link speed
    #[arg(long)]
    pub pipes: bool,
    /// First measure what is unknown: compression speed, and the measurements listed at the end of
    /// the advice; each announces what it writes
    #[arg(long, conflicts_with = "on")]
    pub measure: bool,
    /// Write the advice as a page to this file
    #[arg(long, alias = "page", value_name = "FILE")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub json: Json,
    #[command(flatten)]
    pub remote: Remote,
}

impl Advise {
    /// What the machine is for.
    pub fn purpose(&self) -> Purpose {
        self.purpose_as_option.unwrap_or(self.purpose).into()
    }
}

/// The purposes, as on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum For {
    /// A desktop someone works at
    Desktop,
    /// A small server: web, database, home automation
    #[value(aliases = ["web", "database", "home-automation"])]
    Server,
    /// Records data and must not lose it
    Logger,
    /// A NAS: serves files or disks to other machines
    #[value(aliases = ["nas", "file-server"])]
    StorageNode,
    /// Programs that need more memory than the machine has
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

/// An address is parsed as `attach` parses it.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What the help says of a purpose is what people type.
    #[test]
    fn a_purpose_has_the_names_that_its_help_uses() {
        for (typed, purpose) in [
            ("nas", For::StorageNode),
            ("database", For::Server),
            ("web", For::Server),
            ("storage-node", For::StorageNode),
        ] {
            assert_eq!(For::from_str(typed, false), Ok(purpose), "{typed}");
        }
        assert!(For::from_str("toaster", false).is_err());
    }
}
