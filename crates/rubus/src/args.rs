//! What the user typed. Nothing here looks at the machine: that is [`rubus_command::World`]'s.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};
use clap_complete::Shell;
use rubus_remote::meter;

mod advise;
pub mod before;
#[cfg(test)]
mod documented;
mod explain;
pub mod help;
mod machine;
#[cfg(test)]
mod options_page;
#[cfg(test)]
mod words;

pub use advise::Advise;
pub use explain::Explain;
pub use rubus_bench::cli::bench_args::{Bench, BenchOf};
pub use rubus_bench::cli::checkup::Checkup;
pub use rubus_fleet::remote::Remote;

pub use rubus_command::{General, Json};

const AFTER_HELP: &str = "\
A pipe is anything that data passes through: the disk, its bus, the processor,
the network. The narrowest one limits all the others.

Without a command, rubus does a checkup of the current directory's disk: it
surveys the machine, measures for about a minute, says which pipe is the
narrowest, and keeps the result in its history.

`rubus COMMAND --help` explains a command. `rubus --version --verbose` says how
this program was built.";

/// Finds the narrowest pipe in a small computer's storage path.
#[derive(Debug, Parser)]
#[command(name = "rubus", version, about, after_help = AFTER_HELP, max_term_width = 80)]
pub struct Args {
    #[command(flatten)]
    pub json: Json,
    #[command(flatten)]
    pub remote: Remote,
    #[command(flatten)]
    pub general: General,
    #[command(subcommand)]
    pub command: Option<Command>,
}

impl Args {
    /// The same with the command that is meant where none was given.
    pub fn or_checkup(mut self) -> Self {
        let json = self.json;
        let checkup = || Command::Checkup(Checkup::of_current_directory(json));
        self.command.get_or_insert_with(checkup);
        self
    }

    /// The way to other machines.
    ///
    /// # Errors
    /// When it contradicts another option, or leads nowhere.
    pub fn remote(&self) -> Result<Option<&Remote>, String> {
        self.must_use_ssh()?;
        let remote = match &self.command {
            None => Some(&self.remote),
            Some(Command::Checkup(checkup)) => Some(&checkup.remote),
            Some(Command::Bench(bench)) if bench.of.is_none() => Some(&bench.remote),
            Some(Command::Survey(survey)) => Some(&survey.remote),
            Some(Command::Advise(advise)) => Some(&advise.remote),
            Some(_) => None,
        };
        let remote = remote.filter(|remote| !remote.on.is_empty());
        if let (Some(machine), Some(_)) = (&self.general.machine, remote) {
            return Err(format!(
                "--on is another machine and --machine {} a captured one: give one of them",
                machine.display()
            ));
        }
        Ok(remote)
    }

    /// Fails when there are options for an ssh that would not run.
    fn must_use_ssh(&self) -> Result<(), String> {
        let (behind, is_asked) = match &self.command {
            Some(Command::Checkup(checkup)) => (Some(&checkup.remote), false),
            Some(Command::Survey(survey)) => (Some(&survey.remote), false),
            Some(Command::Advise(advise)) => (Some(&advise.remote), false),
            Some(Command::Bench(bench)) => {
                let place = bench.server_status.as_deref().unwrap_or_default();
                (Some(&bench.remote), place.starts_with(meter::SCHEME))
            }
            _ => (None, false),
        };
        let is_idle = |remote: &Remote| {
            let has_options = !remote.ssh_option.is_empty() || remote.ssh_config.is_some();
            has_options && remote.on.is_empty()
        };
        if is_idle(&self.remote) || (!is_asked && behind.is_some_and(is_idle)) {
            return Err(
                "--ssh-option and --ssh-config are for ssh, which nothing here needs: give --on HOST beside them, or \
                 to a bench of a network disk --server-status ssh://HOST/PROGRAM"
                    .into(),
            );
        }
        Ok(())
    }
}

// Each is described where its arguments are: a description here would hide that one's details.
#[derive(Debug, Subcommand)]
pub enum Command {
    Checkup(Checkup),
    Survey(Survey),
    Explain(Explain),
    Boot(rubus_boot_check::cli::Boot),
    Bench(Box<Bench>),
    Enough(rubus_bench::cli::enough::Enough),
    Suites(rubus_bench::cli::suites::Suites),
    Compare(rubus_fleet::cli::compare::Compare),
    #[command(flatten)]
    Runs(rubus_runs::cli::Verb),
    Gallery(rubus_fleet::cli::gallery::Gallery),
    Copy(rubus_copy::cli::Copy),
    #[command(flatten)]
    Nbd(rubus_nbd_tools::cli::Verb),
    #[command(flatten)]
    Change(rubus_recipes::cli::Verb),
    Compression(rubus_processor::cli::compression::Compression),
    Zswap(rubus_memory::cli::zswap::Zswap),
    Advise(Box<Advise>),
    Tune(Box<rubus_tune::cli::Tune>),
    Cluster(rubus_cluster::cli::Cluster),
    #[command(flatten)]
    Watch(rubus_watch::cli::Verb),
    Completions(Completions),
    Manual(Manual),
}

/// Read the machine: board, buses, disks, memory, swap, kernel.
#[derive(Debug, ClapArgs)]
pub struct Survey {
    #[command(flatten)]
    pub json: Json,
    /// Also save a capture, as a tar file, or as a directory if FILE ends in /
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Keep serial numbers, addresses and host names in the capture
    #[arg(long, requires = "save")]
    pub with_serials: bool,
    /// Show serial numbers, identifiers, names, and the whole kernel command line
    #[arg(long)]
    pub serials: bool,
    /// Judge the disks by this log instead of the running kernel's: what dmesg or journalctl -k printed, or kern.log
    #[arg(long, value_name = "FILE", conflicts_with = "save")]
    pub kernel_log: Option<PathBuf>,
    /// Show everything that was read below the findings, and with these where each fact was read and the
    /// reference behind it
    #[arg(long, short)]
    pub verbose: bool,
    /// List the rules behind findings and what triggers each; does not read the machine
    #[arg(long, conflicts_with = "save")]
    pub rules: bool,
    #[command(flatten)]
    pub remote: Remote,
}

/// Print a completion script for a shell.
#[derive(Debug, ClapArgs)]
pub struct Completions {
    /// Which shell
    pub shell: Shell,
}

/// Print the manual page, or write all of them into a directory.
#[derive(Debug, ClapArgs)]
pub struct Manual {
    /// Write one page per command into this directory
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}
