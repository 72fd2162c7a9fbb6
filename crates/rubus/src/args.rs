//! What the user typed. Nothing here looks at the machine: that is [`crate::world`]'s.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

const AFTER_HELP: &str = "\
Without a command, rubus does a checkup of the current directory's disk: it
surveys the machine, measures for about a minute, says which pipe is the
narrowest, and keeps the result in its history.

Exit status: 0 fine; 1 the answer is no; 2 usage or machine error; 3 refused
because data could be lost.";

/// Finds the narrowest pipe in a small computer's storage path.
#[derive(Debug, Parser)]
#[command(name = "rubus", version, about, after_help = AFTER_HELP, max_term_width = 80)]
pub struct Args {
    #[command(flatten)]
    pub general: General,
    #[command(flatten)]
    pub json: Json,
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Options of every command.
#[derive(Clone, Debug, ClapArgs)]
pub struct General {
    /// Run on a captured machine (made by `rubus survey --save`)
    #[arg(long, global = true, value_name = "FILE")]
    pub machine: Option<PathBuf>,
    /// When to use colour and live progress
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: When,
    /// Print nothing but the result
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

/// The choice between text and JSON on standard output.
#[derive(Clone, Copy, Debug, Default, ClapArgs)]
pub struct Json {
    /// Print the result as JSON
    #[arg(long = "json")]
    pub wanted: bool,
}

/// When to do something that depends on the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure the disk under a directory and say what it can do (the default)
    Checkup(Checkup),
    /// Read the machine: board, buses, disks, memory, swap, kernel
    Survey(Survey),
    /// Measure targets with a suite of jobs
    Bench(Bench),
    /// Show earlier runs
    History(History),
    /// Print a completion script for a shell
    Completions(Completions),
    /// Print the manual page, or write all of them into a directory
    Manual(Manual),
}

/// Measure the disk under a directory and say what it can do.
///
/// Writes one nameless file (at most 10 % of the free space, at most 1 GiB in
/// total), which is gone at the end whatever happens.
#[derive(Debug, ClapArgs)]
pub struct Checkup {
    /// Directory on the disk to be measured
    #[arg(default_value = ".")]
    pub path: PathBuf,
    #[command(flatten)]
    pub json: Json,
    #[command(flatten)]
    pub keeping: Keeping,
}

impl Checkup {
    /// What `rubus` without a command does.
    pub fn of_current_directory(json: Json) -> Self {
        Checkup {
            path: PathBuf::from("."),
            json,
            keeping: Keeping::default(),
        }
    }
}

/// Where a result goes besides the terminal.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct Keeping {
    /// Write the page to this file instead of the data directory
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write no page
    #[arg(long, conflicts_with = "html")]
    pub no_html: bool,
    /// Keep no row in the history
    #[arg(long)]
    pub no_history: bool,
}

/// Read the machine: board, buses, disks, memory, swap, kernel.
#[derive(Debug, ClapArgs)]
pub struct Survey {
    #[command(flatten)]
    pub json: Json,
    /// Also save a capture: a tar file, or a directory if the name ends in /
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Keep serial numbers, addresses and host names in the capture
    #[arg(long, requires = "save")]
    pub with_serials: bool,
}

/// Measure targets with a suite of jobs.
///
/// A target is a directory (a nameless file of our own is measured), a file
/// (read only, unless its loss is confirmed) or a block device (read only,
/// unless its loss is confirmed).
#[derive(Debug, ClapArgs)]
pub struct Bench {
    /// What to measure: directories, files or block devices
    #[arg(required = true, value_name = "TARGET")]
    pub targets: Vec<PathBuf>,
    /// Which suite of jobs
    #[arg(long, default_value = "quick", value_name = "NAME")]
    pub suite: String,
    /// Write the result as JSON to a file, or to standard output with `-`
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write fio's JSON format to a file, or to standard output with `-`
    #[arg(long, value_name = "FILE")]
    pub fio_json: Option<PathBuf>,
    /// Measure only reading
    #[arg(long)]
    pub read_only: bool,
    /// Size of the test file or region, such as 256MiB
    #[arg(long, value_name = "SIZE", value_parser = rubus_core::units::parse_size)]
    pub size: Option<u64>,
    /// Seed of the random offsets and contents
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// What is written: incompressible, zeros, or a percentage to which it compresses
    #[arg(long, value_name = "WHAT", default_value = "incompressible", value_parser = content)]
    pub content: rubus_core::spec::Content,
    /// Keep the queue full with threads instead of io_uring
    #[arg(long)]
    pub threads: bool,
    /// Allow everything on the target to be overwritten; takes the device's
    /// serial number (or, for a file, its path)
    #[arg(long, value_name = "SERIAL")]
    pub i_will_lose_everything_on: Option<String>,
    #[command(flatten)]
    pub keeping: Keeping,
}

fn content(text: &str) -> Result<rubus_core::spec::Content, String> {
    use rubus_core::spec::Content;
    match text {
        "incompressible" | "random" => return Ok(Content::Incompressible),
        "zeros" | "zeroes" => return Ok(Content::Zeros),
        _ => {}
    }
    match text.trim_end_matches('%').parse::<u8>() {
        Ok(percent @ 1..=99) => Ok(Content::Compressible(percent)),
        _ => Err("write incompressible, zeros, or a percentage from 1 to 99".into()),
    }
}

/// Show earlier runs.
#[derive(Debug, ClapArgs)]
pub struct History {
    #[command(flatten)]
    pub json: Json,
    #[command(subcommand)]
    pub action: Option<HistoryAction>,
    /// How many runs to list
    #[arg(long, short = 'n', default_value_t = 20, value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
}

#[derive(Debug, Subcommand)]
pub enum HistoryAction {
    /// Show one run again, as it was printed
    Show(HistoryShow),
}

/// Show one run again, as it was printed.
#[derive(Debug, ClapArgs)]
pub struct HistoryShow {
    #[command(flatten)]
    pub json: Json,
    /// The run's number in the list
    pub id: i64,
    /// Also write its page to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
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
