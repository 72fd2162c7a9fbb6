//! The way to other machines: which ones, and how ssh reaches them.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use rubus_host::net::ssh::Options;

use crate::inventory::{Board, Named};

/// Machines that work at the same time, unless the user says otherwise.
const AT_ONCE: &str = "16";

/// What these options stand below in the help.
pub const HEADING: &str = "On another machine";

/// The way to another machine.
#[derive(Clone, Debug, Default, ClapArgs)]
#[command(next_help_heading = HEADING)]
pub struct Remote {
    /// Measure on this machine, over ssh; on several (a list, a range as `pi[01:20]`, or
    /// repeatable), or on those of a fleet file or an Ansible inventory: @FILE or @FILE:GROUP
    #[arg(long, value_name = "[USER@]HOST|@FILE", value_delimiter = ',',
        value_parser = Named::parse)]
    pub on: Vec<Named>,
    /// Limit for the machines that work at the same time
    #[arg(long, value_name = "N", requires = "on", default_value = AT_ONCE,
        value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub at_once: u16,
    /// Option for ssh, as in its configuration file, such as Port=2222
    #[arg(long, short = 'o', value_name = "OPTION")]
    pub ssh_option: Vec<String>,
    /// Configuration file for ssh, instead of the default
    #[arg(long, value_name = "FILE")]
    pub ssh_config: Option<PathBuf>,
    /// The static rubus to copy there [default: this one, or one beside it named for the machine:
    /// rubus-aarch64, rubus-armv7, ...]
    #[arg(long, value_name = "FILE", requires = "on")]
    pub binary: Option<PathBuf>,
    /// Copy nothing: run this command, a rubus installed there
    #[arg(long, value_name = "COMMAND", requires = "on", conflicts_with = "binary")]
    pub remote_binary: Option<String>,
    /// Run as root there, with `sudo -n`
    #[arg(long, requires = "on")]
    pub remote_sudo: bool,
}

impl Remote {
    /// How ssh reaches a machine. If it is `silent`, it may ask for nothing.
    pub fn options(&self, board: &Board, silent: bool) -> Options {
        // ssh takes the first of several: what was typed comes before what a file says.
        let mut settings = [&self.ssh_option[..], &board.settings].concat();
        if silent {
            settings.push("BatchMode=yes".into());
        }
        Options { config: self.ssh_config.clone(), settings }
    }
}
