//! What the user typed. Nothing here looks at the machine: that is [`rubus_command::World`]'s.

use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use rubus_fleet::inventory::Named;
use rubus_nbd::cli::Nbd;
use rubus_remote::meter;

mod advise;
mod attach;
pub mod before;
mod boot;
mod compare;
mod copy;
mod cpu;
#[cfg(test)]
mod documented;
mod enough;
mod explain;
pub mod fio_options;
pub mod help;
mod history;
mod lanes;
mod looking;
mod memory;
#[cfg(test)]
mod options_page;
mod remote;
mod serve;
mod share;
mod watch;
#[cfg(test)]
mod words;
mod writers;

pub use advise::Advise;
pub use attach::{Attach, Detach};
pub use boot::Boot;
pub use compare::Compare;
pub use copy::{Copy, HowMuch};
pub use cpu::BenchCpu;
pub use enough::Enough;
pub use explain::Explain;
pub use history::{
    History, HistoryAction, HistoryDelete, HistoryExport, HistoryImport, HistoryLabel, HistoryShow,
};
pub use lanes::Lanes;
pub use looking::{Compression, Zswap};
pub use memory::BenchMemory;
pub use remote::Remote;
pub use serve::{Encryption, Serve};
pub use share::{Gallery, Share};
pub use watch::Watch;
pub use writers::Writers;

pub use rubus_command::{General, Json};

use crate::target_name::TargetName;

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
    Boot(Boot),
    Bench(Box<Bench>),
    Enough(Enough),
    Suites(Suites),
    Compare(Compare),
    History(History),
    Share(Share),
    Gallery(Gallery),
    Copy(Copy),
    Attach(Attach),
    Detach(Detach),
    Serve(Serve),
    Nbd(Nbd),
    Recipes(Recipes),
    Plan(PlanArgs),
    Apply(Apply),
    Undo(Undo),
    Resume(Resume),
    Status(Status),
    Verify(Verify),
    Compression(Compression),
    Zswap(Zswap),
    Advise(Box<Advise>),
    Cluster(rubus_cluster::cli::Cluster),
    Watch(Watch),
    Writers(Writers),
    Completions(Completions),
    Manual(Manual),
}

/// Measure the disk under a directory and say what it can do (the default).
///
/// Takes about a minute. Writes one nameless file (at most 10 % of the free space, at most 1 GiB in
/// total, 4 GiB on an SSD or hard disk), which is gone at the end whatever
/// happens.
#[derive(Debug, ClapArgs)]
pub struct Checkup {
    /// Directory on the disk to be measured
    #[arg(default_value = ".")]
    pub path: PathBuf,
    #[command(flatten)]
    pub json: Json,
    #[command(flatten)]
    pub keeping: Keeping,
    #[command(flatten)]
    pub remote: Remote,
}

impl Checkup {
    /// What `rubus` without a command does.
    pub fn of_current_directory(json: Json) -> Self {
        Checkup {
            path: PathBuf::from("."),
            json,
            keeping: Keeping::default(),
            remote: Remote::default(),
        }
    }
}

/// Where a result goes besides the terminal.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct Keeping {
    /// Write the HTML page to this file instead of the data directory; of several machines, one page
    /// of all
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write no page
    #[arg(long, conflicts_with = "html")]
    pub no_html: bool,
    /// Show every figure, disturbance and finding below the answer
    #[arg(long, short)]
    pub verbose: bool,
    /// Keep serial numbers, addresses, and names of users and servers in the page and the markdown
    #[arg(long)]
    pub with_serials: bool,
    #[command(flatten)]
    pub kept: Kept,
}

impl Keeping {
    /// For a result that no page can show.
    pub fn without_page(kept: &Kept) -> Keeping {
        Keeping {
            html: None,
            no_html: true,
            verbose: false,
            with_serials: false,
            kept: kept.clone(),
        }
    }
}

/// Where a result goes besides the terminal and a page.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct Kept {
    /// Do not record this run in the history
    #[arg(long)]
    pub no_history: bool,
    /// Name of the run in the history, for finding and comparing it
    #[arg(long, value_name = "TEXT", conflicts_with = "no_history", value_parser = history::label)]
    pub label: Option<String>,
    /// Write CSV to a file, or to standard output with `-`
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write markdown, for a forum or an issue, to a file, or to standard
    /// output with `-`
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}

/// Whether a part was named, or none was, which means all.
fn is_wanted<Name: ValueEnum>(named: &[Name], part: &str) -> bool {
    let mut names = named.iter().filter_map(ValueEnum::to_possible_value);
    named.is_empty() || names.any(|name| name.get_name() == part)
}

/// Seconds, minutes with an `m` or hours with an `h`, as seconds within bounds.
fn time_within(text: &str, bounds: std::ops::RangeInclusive<f64>) -> Option<f64> {
    let units = [("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let (number, unit_s) = units
        .into_iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)))
        .unwrap_or((text, 1.0));
    let seconds = number.parse::<f64>().ok()? * unit_s;
    bounds.contains(&seconds).then_some(seconds)
}

/// Seconds within bounds.
fn seconds_within(text: &str, least: f64, most: f64) -> Result<f64, String> {
    match text.trim_end_matches('s').parse::<f64>() {
        Ok(seconds) if (least..=most).contains(&seconds) => Ok(seconds),
        _ => Err(format!("write seconds from {least} to {most}")),
    }
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

/// What a bench is of, when it is not of a disk.
#[derive(Debug, Subcommand)]
pub enum BenchOf {
    Cpu(Box<BenchCpu>),
    Memory(Box<BenchMemory>),
}

/// Measure targets with a suite of jobs.
///
/// A target is a directory (measures a nameless file in it), a file or a block device (both
/// read-only unless you confirm their loss). ram:SIZE is memory: the upper limit for any disk on
/// this machine. Put ./ before a path that begins with ram:, rbd: or rados:, or that is named like a subcommand.
#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Bench {
    #[command(subcommand)]
    pub of: Option<BenchOf>,
    /// What to measure: directories, files, block devices, network disks (nbd://…), images of a Ceph
    /// cluster (rbd:POOL/IMAGE), objects in a pool of one (rados:POOL), or memory as ram:SIZE
    #[arg(required_unless_present = "fio_job", value_name = "TARGET", value_hint = clap::ValueHint::AnyPath,
        value_parser = OsStringValueParser::new().try_map(TargetName::parse))]
    pub targets: Vec<TargetName>,
    /// Which suite of jobs (`rubus suites` lists them) [default: quick; of
    /// memory, ram]
    #[arg(long, value_name = "NAME")]
    pub suite: Option<String>,
    /// Measure each target alone and all at once, and find the pipe they share
    #[arg(long, conflicts_with_all = ["fio_job", "precision"])]
    pub together: bool,
    /// Run the jobs of a fio job file (`-`: standard input), on TARGET or else on the files and
    /// devices it names
    #[arg(long, value_name = "FILE", conflicts_with_all =
        ["suite", "read_only", "budget", "precision", "content", "full", "drop_caches", "against"])]
    pub fio_job: Option<PathBuf>,
    /// Set an option for all jobs that do not set it themselves, such as runtime=10; fio's own
    /// form (--runtime=10) works as well
    #[arg(long, requires = "fio_job", value_name = "NAME=VALUE", value_parser = fio_option)]
    pub fio_option: Vec<(String, String)>,
    /// Run a job file without its unsupported options, and list them in the result
    #[arg(long, requires = "fio_job")]
    pub ignore_unsupported: bool,
    /// Write the result as JSON to a file, or to standard output with `-`
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write fio's JSON format to a file, to standard output with `-`, or one file per job to a
    /// directory (for fio-plot)
    #[arg(long, value_name = "FILE")]
    pub fio_json: Option<PathBuf>,
    /// Measure only reads (in a directory, a test file is still written once, to have something to
    /// read)
    #[arg(long)]
    pub read_only: bool,
    /// Size of the test file or region, such as 256MiB [default: the suite's]
    #[arg(long, value_name = "SIZE", value_parser = rubus_vocabulary::units::parse_size)]
    pub size: Option<u64>,
    /// Limit for all data written, such as 2GiB, instead of the suite's limit
    #[arg(long, value_name = "SIZE", value_parser = rubus_vocabulary::units::parse_size)]
    pub budget: Option<u64>,
    /// End a job at this precision (half the width of its 95 % interval), such as 5% [default: the
    /// suite's]
    #[arg(long, value_name = "PERCENT", value_parser = precision)]
    pub precision: Option<f64>,
    /// Seed of the random offsets and contents [default: 1; suite capacity: random]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Suite capacity: test every block of a device, not just a sample
    #[arg(long)]
    pub full: bool,
    /// Suite small-files: drop the kernel's caches before each stat pass; needs root and slows
    /// other programs for a while
    #[arg(long)]
    pub drop_caches: bool,
    /// Data to write: incompressible, zeros, or the percentage it compresses to
    #[arg(long, value_name = "WHAT", default_value = "incompressible", value_parser = content)]
    pub content: rubus_vocabulary::spec::Content,
    /// Number of connections to an NBD export [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub connections: Option<u32>,
    /// Also measure the server of a network disk: HOST:PORT or socket of its `rubus serve
    /// --status`, or for any other server `ssh://[USER@]HOST[:PORT][/PROGRAM]`; without PROGRAM,
    /// its whole machine
    #[arg(long, value_name = "PLACE", conflicts_with_all = ["together", "against"])]
    pub server_status: Option<String>,
    /// Also measure processors and network of a Ceph cluster's machines, over ssh: a list, ranges or
    /// files, as for --on
    #[arg(long, value_name = "[USER@]HOST|@FILE", value_delimiter = ',',
        value_parser = Named::parse, conflicts_with_all = ["together", "against", "on"])]
    pub nodes: Vec<Named>,
    /// Number of io_uring rings, each with a thread of its own, that share a job's queue depth: for
    /// disks that one CPU cannot keep busy; auto: as many as there are CPUs [default: 1]
    #[arg(long, value_name = "N|auto", value_parser = Lanes::parse,
        conflicts_with_all = ["threads", "together"])]
    pub lanes: Option<Lanes>,
    /// Poll for completions instead of waiting for interrupts; needs a device with poll queues, such
    /// as NVMe with nvme.poll_queues=N
    #[arg(long, conflicts_with_all = ["threads", "together"])]
    pub hipri: bool,
    /// Use threads instead of io_uring to reach the queue depth
    #[arg(long)]
    pub threads: bool,
    /// Allow everything on the target to be overwritten; takes the device's serial number, or a
    /// file's path (repeatable)
    #[arg(long, value_name = "SERIAL")]
    pub i_will_lose_everything_on: Vec<String>,
    /// Baseline to compare with; both are measured in turns
    #[arg(long, value_name = "TARGET", value_hint = clap::ValueHint::AnyPath,
        value_parser = OsStringValueParser::new().try_map(TargetName::parse))]
    pub against: Option<TargetName>,
    /// Also allow everything on the target of --against to be overwritten
    #[arg(long, value_name = "SERIAL", requires = "against")]
    pub against_i_will_lose_everything_on: Option<String>,
    #[command(flatten)]
    pub keeping: Keeping,
    #[command(flatten)]
    pub remote: Remote,
}

fn precision(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim().parse::<f64>() {
        Ok(percent) if (0.1..=50.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("write a percentage from 0.1 to 50, such as 5%".into()),
    }
}

fn fio_option(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("write it as NAME=VALUE".into()),
    }
}

fn content(text: &str) -> Result<rubus_vocabulary::spec::Content, String> {
    use rubus_vocabulary::spec::Content;
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

/// List the suites: question, data written, duration.
#[derive(Debug, ClapArgs)]
pub struct Suites {
    #[command(flatten)]
    pub json: Json,
}

/// List the recipes for changing this machine, or explain one.
///
/// With a name: what the recipe changes, what it needs, its options and an example.
#[derive(Debug, ClapArgs)]
pub struct Recipes {
    /// Explain this recipe [default: list all]
    #[arg(value_name = "RECIPE")]
    pub name: Option<String>,
    #[command(flatten)]
    pub json: Json,
}

/// Show what a recipe would do, without changing anything.
#[derive(Debug, ClapArgs)]
pub struct PlanArgs {
    /// The recipe (see `rubus recipes`), or one of your own, ending in .toml
    pub recipe: String,
    /// Options of the recipe, such as max-pool-percent=25 (see `rubus recipes RECIPE`)
    #[arg(value_name = "OPTION=VALUE", value_parser = wish)]
    pub wishes: Vec<(String, String)>,
    /// Plan for a card's image instead of this machine (only desktop; as root)
    #[arg(long, value_name = "FILE")]
    pub image: Option<PathBuf>,
    #[command(flatten)]
    pub json: Json,
}

/// Show a recipe or a saved plan, ask, and apply it.
///
/// Each step is journaled first, so that it can be undone, and resumed after a power cut.
#[derive(Debug, ClapArgs)]
pub struct Apply {
    /// The recipe, one of your own, ending in .toml, or a plan saved by
    /// `rubus plan RECIPE --json`, ending in .json
    #[arg(value_name = "RECIPE|PLAN")]
    pub recipe: String,
    /// Options of the recipe, such as max-pool-percent=25 (see `rubus recipes RECIPE`)
    #[arg(value_name = "OPTION=VALUE", value_parser = wish)]
    pub wishes: Vec<(String, String)>,
    /// Allow everything on a disk that the plan overwrites to be lost; takes its serial number
    /// (repeatable)
    #[arg(long, value_name = "SERIAL")]
    pub i_will_lose_everything_on: Vec<String>,
    /// Measure a directory with the suite quick before the change, so that `rubus verify --measure`
    /// can show the gain; without DIR, /
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = "/")]
    pub measure: Option<PathBuf>,
    /// Make a new image from a card's image instead of changing this machine (only desktop); FILE
    /// is only read
    #[arg(long, value_name = "FILE", requires = "to", conflicts_with_all = ["measure", "i_will_lose_everything_on"])]
    pub image: Option<PathBuf>,
    /// The new image; it must not exist, and gets its name only when it is complete
    #[arg(long, value_name = "OUT", requires = "image")]
    pub to: Option<PathBuf>,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub yes: bool,
}

/// Undo a change.
#[derive(Debug, ClapArgs)]
pub struct Undo {
    /// The change (see `rubus status`) [default: the last one]
    pub change: Option<String>,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub yes: bool,
}

/// Resume an interrupted change.
///
/// Continues in the direction it was going, forwards or back, which you confirmed at its start.
/// Asks again before overwriting a disk that may be a different one, or that was used since.
#[derive(Debug, ClapArgs)]
pub struct Resume {
    /// Allow everything on a disk that the change has yet to overwrite to be lost; takes the
    /// confirmation that the refusal names (repeatable)
    #[arg(long, value_name = "SERIAL")]
    pub i_will_lose_everything_on: Vec<String>,
    /// Do not ask for confirmation, as in `apply` and `undo`; a disk that may be a different one
    /// still needs its own
    #[arg(long, short)]
    pub yes: bool,
}

/// Check everything an applied recipe promises.
///
/// Checks the running machine; most checks need root.
#[derive(Debug, ClapArgs)]
pub struct Verify {
    /// The change (see `rubus status`) [default: the last one]
    pub change: Option<String>,
    /// All applied changes
    #[arg(long, conflicts_with = "change")]
    pub all: bool,
    /// Repeat the measurement from before the change, and compare
    #[arg(long, conflicts_with_all = ["all", "wanted"])]
    pub measure: bool,
    #[command(flatten)]
    pub json: Json,
}

/// Show applied changes and whether they still hold.
#[derive(Debug, ClapArgs)]
pub struct Status {
    /// Show this change with every step [default: a summary of all]
    pub change: Option<String>,
    #[command(flatten)]
    pub json: Json,
}

fn wish(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("write it as OPTION=VALUE, such as max-pool-percent=25".into()),
    }
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
