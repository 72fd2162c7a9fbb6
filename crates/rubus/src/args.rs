//! What the user typed. Nothing here looks at the machine: that is [`crate::world`]'s.

use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use rubus_core::remote::{Destination, meter};

mod advise;
mod attach;
mod compare;
mod copy;
mod cpu;
mod history;
mod looking;
mod memory;
mod nbd;
mod serve;
mod watch;

pub use advise::Advise;
pub use attach::{Attach, Detach};
pub use compare::Compare;
pub use copy::{Copy, HowMuch};
pub use cpu::BenchCpu;
pub use history::{
    History, HistoryAction, HistoryDelete, HistoryExport, HistoryImport, HistoryLabel, HistoryShow,
};
pub use looking::{Compression, Zswap};
pub use memory::BenchMemory;
pub use nbd::{Nbd, NbdClones, NbdCommand, NbdCopy, NbdInfo, NbdList};
pub use serve::{Encryption, Serve};
pub use watch::Watch;

use crate::target_name::TargetName;

const AFTER_HELP: &str = "\
Without a command, rubus does a checkup of the current directory's disk: it
surveys the machine, measures for about a minute, says which pipe is the
narrowest, and keeps the result in its history.

Exit status: 0 fine; 1 the answer is no; 2 usage or machine error; 3 refused
because data could be lost; 4 a change failed and was put back; 5 it could not
be put back.";

/// Finds the narrowest pipe in a small computer's storage path.
#[derive(Debug, Parser)]
#[command(name = "rubus", version, about, after_help = AFTER_HELP, max_term_width = 80)]
pub struct Args {
    #[command(flatten)]
    pub general: General,
    #[command(flatten)]
    pub json: Json,
    #[command(flatten)]
    pub remote: Remote,
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

    /// The way to other machines, whether it stands before the command or behind it.
    ///
    /// # Errors
    /// When it stands in both places, or before a command that is about this machine.
    pub fn remote(&self) -> Result<Option<&Remote>, String> {
        self.must_use_ssh()?;
        let before = Some(&self.remote).filter(|remote| !remote.on.is_empty());
        let behind = match &self.command {
            None => return Ok(before),
            Some(Command::Bench(bench)) if bench.of.is_some() => {
                let name = bench.of.as_ref().map_or("", BenchOf::name);
                return match before {
                    None => Ok(None),
                    Some(_) => Err(format!(
                        "bench {name} measures this machine: run it there, with `ssh HOST rubus bench {name}`"
                    )),
                };
            }
            Some(Command::Checkup(checkup)) => &checkup.remote,
            Some(Command::Bench(bench)) => &bench.remote,
            Some(Command::Survey(survey)) => &survey.remote,
            Some(_) if before.is_some() => {
                return Err(
                    "--on makes another machine measure or survey itself, and this command does neither; \
                     the runs of other machines are in this machine's history"
                        .into(),
                );
            }
            Some(_) => return Ok(None),
        };
        let behind = Some(behind).filter(|remote| !remote.on.is_empty());
        if before.is_some() && behind.is_some() {
            return Err("give --on before the command or behind it, but not both".into());
        }
        let remote = before.or(behind);
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
    /// Answer another rubus: records on standard output, its sign of life on standard input
    #[arg(long, global = true, hide = true)]
    pub records: bool,
}

/// The way to another machine.
#[derive(Clone, Debug, Default, ClapArgs)]
#[command(next_help_heading = "On another machine")]
pub struct Remote {
    /// Measure on this machine, reached with ssh; several in parallel, as a
    /// list or with --on again
    #[arg(long, value_name = "[USER@]HOST", value_delimiter = ',',
        value_parser = Destination::parse)]
    pub on: Vec<Destination>,
    /// An option for ssh, as in its configuration file, such as Port=2222
    #[arg(long, short = 'o', value_name = "OPTION")]
    pub ssh_option: Vec<String>,
    /// A configuration file for ssh in place of the usual one
    #[arg(long, value_name = "FILE")]
    pub ssh_config: Option<PathBuf>,
    /// The static rubus to be copied there; else this one, or one beside it
    /// that is called like the machine (rubus-aarch64, rubus-armv7, ...)
    #[arg(long, value_name = "FILE", requires = "on")]
    pub binary: Option<PathBuf>,
    /// Copy nothing: run the rubus that is installed there under this name
    #[arg(
        long,
        value_name = "COMMAND",
        requires = "on",
        conflicts_with = "binary"
    )]
    pub remote_binary: Option<String>,
    /// Run as root there, with `sudo -n`
    #[arg(long, requires = "on")]
    pub remote_sudo: bool,
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
    Bench(Box<Bench>),
    /// List the suites: what each answers, writes and takes
    Suites(Suites),
    /// Compare runs, fio's results, captures or published figures
    Compare(Compare),
    /// Show, label, delete, export or import earlier runs
    History(History),
    /// Copy a directory with everything in it, faithfully
    Copy(Copy),
    /// Make an NBD export a block device of this machine, and keep it
    Attach(Attach),
    /// Take a device its NBD export again
    Detach(Detach),
    /// Serve disk images over the network
    Serve(Serve),
    /// Ask NBD servers, copy exports, look after clones
    Nbd(Nbd),
    /// List the recipes for changing this machine
    Recipes(Recipes),
    /// Show what a recipe would do; changes nothing
    Plan(PlanArgs),
    /// Apply a recipe, or a saved plan, after showing it
    Apply(Apply),
    /// Put back what a recipe changed
    Undo(Undo),
    /// Go on with a change that was interrupted
    Resume(Resume),
    /// Show which recipes were applied, and whether they still hold
    Status(Status),
    /// Look whether everything holds that an applied recipe promises
    Verify(Verify),
    /// Show what files on btrfs take, by method of compression
    Compression(Compression),
    /// Show what zswap holds, what its counters mean, and whether it helps
    Zswap(Zswap),
    /// Say what to change for a purpose, and what it would give
    Advise(Advise),
    /// Watch the machine while it works
    Watch(Watch),
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
    /// Write the page to this file instead of the data directory
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write no page
    #[arg(long, conflicts_with = "html")]
    pub no_html: bool,
    #[command(flatten)]
    pub kept: Kept,
}

impl Keeping {
    /// For a result that no page can show.
    pub fn without_page(kept: &Kept) -> Keeping {
        Keeping {
            html: None,
            no_html: true,
            kept: kept.clone(),
        }
    }
}

/// Where a result goes besides the terminal and a page.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct Kept {
    /// Keep no row in the history
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
    /// Also save a capture: a tar file, or a directory if the name ends in /
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Keep serial numbers, addresses and host names in the capture
    #[arg(long, requires = "save")]
    pub with_serials: bool,
    /// Show all findings, with where each was read and the source of what it says
    #[arg(long, short)]
    pub verbose: bool,
    /// List the rules that make findings, and what would fire each; reads nothing
    #[arg(long, conflicts_with = "save")]
    pub rules: bool,
    #[command(flatten)]
    pub remote: Remote,
}

/// What a bench is of, when it is not of a disk.
#[derive(Debug, Subcommand)]
pub enum BenchOf {
    /// Measure the processor: ciphers and checksums
    Cpu(Box<BenchCpu>),
    /// Measure memory, and how much more than itself it carries with swap
    Memory(Box<BenchMemory>),
}

impl BenchOf {
    fn name(&self) -> &'static str {
        match self {
            BenchOf::Cpu(_) => "cpu",
            BenchOf::Memory(_) => "memory",
        }
    }
}

/// Measure targets with a suite of jobs.
///
/// A target is a directory (a nameless file of our own is measured), a file
/// (read only, unless its loss is confirmed) or a block device (read only,
/// unless its loss is confirmed). ram:SIZE is memory: the most that a disk on
/// this machine could look like. Put ./ before a path that begins with ram:, or
/// that is called like one of the commands.
#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Bench {
    #[command(subcommand)]
    pub of: Option<BenchOf>,
    /// What to measure: directories, files, block devices, or memory as ram:SIZE
    #[arg(required_unless_present = "fio_job", value_name = "TARGET", value_hint = clap::ValueHint::AnyPath,
        value_parser = OsStringValueParser::new().try_map(TargetName::parse))]
    pub targets: Vec<TargetName>,
    /// Which suite of jobs (`rubus suites` lists them) [default: quick; of
    /// memory, ram]
    #[arg(long, value_name = "NAME")]
    pub suite: Option<String>,
    /// Measure all targets alone and all at once, and find the pipe that they share
    #[arg(long, conflicts_with_all = ["fio_job", "precision"])]
    pub together: bool,
    /// Run the jobs of a job file in fio's format, on the files and devices
    /// that it names or, if TARGET is given, there
    #[arg(long, value_name = "FILE", conflicts_with_all =
        ["suite", "read_only", "size", "budget", "precision", "content", "full", "drop_caches", "against"])]
    pub fio_job: Option<PathBuf>,
    /// Run a job file without the options that are not supported, and list
    /// them in the result
    #[arg(long, requires = "fio_job")]
    pub ignore_unsupported: bool,
    /// Write the result as JSON to a file, or to standard output with `-`
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write fio's JSON format to a file, to standard output with `-`, or each
    /// job as a file of its own to a directory (as fio-plot wants them)
    #[arg(long, value_name = "FILE")]
    pub fio_json: Option<PathBuf>,
    /// Measure only reading (in a directory a test file is still written, once,
    /// to have something to read)
    #[arg(long)]
    pub read_only: bool,
    /// Size of the test file or region, such as 256MiB
    #[arg(long, value_name = "SIZE", value_parser = rubus_core::units::parse_size)]
    pub size: Option<u64>,
    /// What may be written in all, such as 2GiB, instead of the suite's limit
    #[arg(long, value_name = "SIZE", value_parser = rubus_core::units::parse_size)]
    pub budget: Option<u64>,
    /// Precision at which a job ends, as half the width of its 95 % interval, such as 5%
    #[arg(long, value_name = "PERCENT", value_parser = precision)]
    pub precision: Option<f64>,
    /// Seed of the random offsets and contents
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Suite capacity: test every block of a device and not only a sample
    #[arg(long)]
    pub full: bool,
    /// Suite small-files: empty all of the kernel's caches before files are
    /// looked at, which needs root and slows other programs for a while
    #[arg(long)]
    pub drop_caches: bool,
    /// What is written: incompressible, zeros, or a percentage to which it compresses
    #[arg(long, value_name = "WHAT", default_value = "incompressible", value_parser = content)]
    pub content: rubus_core::spec::Content,
    /// Use so many connections to an NBD export
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub connections: Option<u32>,
    /// Ask the server of a network disk what it spends: HOST:PORT or socket of
    /// its `rubus serve --status`; of any other server over ssh:
    /// `ssh://[USER@]HOST[:PORT][/PROGRAM]`, without PROGRAM all of its machine
    #[arg(long, value_name = "PLACE", conflicts_with_all = ["together", "against"])]
    pub server_status: Option<String>,
    /// Keep the queue full with threads instead of io_uring
    #[arg(long)]
    pub threads: bool,
    /// Allow everything on the target to be overwritten; takes the device's
    /// serial number (or, for a file, its path); once for each of several
    #[arg(long, value_name = "SERIAL")]
    pub i_will_lose_everything_on: Vec<String>,
    /// Measure in turns with this target and compare: it is the baseline
    #[arg(long, value_name = "TARGET", value_hint = clap::ValueHint::AnyPath,
        value_parser = OsStringValueParser::new().try_map(TargetName::parse))]
    pub against: Option<TargetName>,
    /// Allow everything on the target of --against to be overwritten, too
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

/// List the suites: what each answers, writes and takes.
#[derive(Debug, ClapArgs)]
pub struct Suites {
    #[command(flatten)]
    pub json: Json,
}

/// List the recipes for changing this machine.
#[derive(Debug, ClapArgs)]
pub struct Recipes {
    #[command(flatten)]
    pub json: Json,
}

/// Show what a recipe would do; changes nothing.
#[derive(Debug, ClapArgs)]
pub struct PlanArgs {
    /// The recipe (see `rubus recipes`), or one of your own, ending in .toml
    pub recipe: String,
    /// What is chosen, such as max-pool-percent=25
    #[arg(value_name = "OPTION=VALUE", value_parser = wish)]
    pub wishes: Vec<(String, String)>,
    /// For the image of a card instead of this machine (only desktop; as root)
    #[arg(long, value_name = "FILE")]
    pub image: Option<PathBuf>,
    #[command(flatten)]
    pub json: Json,
}

/// Apply a recipe, or a saved plan, after showing it.
///
/// Every step is written down before it is done, so that it can be undone, and
/// gone on with after a power cut.
#[derive(Debug, ClapArgs)]
pub struct Apply {
    /// The recipe, one of your own, ending in .toml, or a plan saved by
    /// `rubus plan RECIPE --json`, ending in .json
    #[arg(value_name = "RECIPE|PLAN")]
    pub recipe: String,
    /// What is chosen, such as max-pool-percent=25
    #[arg(value_name = "OPTION=VALUE", value_parser = wish)]
    pub wishes: Vec<(String, String)>,
    /// Allow everything on a disk to be lost that the plan overwrites; takes its
    /// serial number; once for each of several
    #[arg(long, value_name = "SERIAL")]
    pub i_will_lose_everything_on: Vec<String>,
    /// Measure a directory with the suite quick before anything is changed, so that
    /// `rubus verify --measure` can say what it has brought; without DIR, /
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = "/")]
    pub measure: Option<PathBuf>,
    /// Make a new image from the image of a card instead of changing this machine
    /// (only desktop); FILE is only read
    #[arg(long, value_name = "FILE", requires = "to", conflicts_with_all = ["measure", "i_will_lose_everything_on"])]
    pub image: Option<PathBuf>,
    /// The new image; it must not exist, and has its name only when it is whole
    #[arg(long, value_name = "OUT", requires = "image")]
    pub to: Option<PathBuf>,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
}

/// Put back what a recipe changed.
#[derive(Debug, ClapArgs)]
pub struct Undo {
    /// Which change (see `rubus status`); without it the last one
    pub change: Option<String>,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
}

/// Go on with a change that was interrupted.
///
/// Goes on the way that it was on, forwards or back, which was agreed to when it began.
/// Asks again before a disk is overwritten that may be another one than was meant,
/// or that was used since.
#[derive(Debug, ClapArgs)]
pub struct Resume {
    /// Allow everything on a disk to be lost that the change has yet to overwrite;
    /// takes the words that the refusal names; once for each of several
    #[arg(long, value_name = "SERIAL")]
    pub i_will_lose_everything_on: Vec<String>,
    /// Do not ask whether to go on, as `apply` and `undo` take it; a disk that may be another one still takes its words
    #[arg(long, short)]
    pub yes: bool,
}

/// Look whether everything holds that an applied recipe promises.
///
/// Looks at the running machine, most of it only as root, and ends with status 0
/// when everything holds (what comes true after the next start may wait for it),
/// else with 1.
#[derive(Debug, ClapArgs)]
pub struct Verify {
    /// Which change (see `rubus status`); without it the last one
    pub change: Option<String>,
    /// All changes that are applied
    #[arg(long, conflicts_with = "change")]
    pub all: bool,
    /// Measure again what was measured before the change, and compare
    #[arg(long, conflicts_with_all = ["all", "wanted"])]
    pub measure: bool,
    #[command(flatten)]
    pub json: Json,
}

/// Show which recipes were applied, and whether they still hold.
#[derive(Debug, ClapArgs)]
pub struct Status {
    /// Which change, with every step; without it all, in short
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
