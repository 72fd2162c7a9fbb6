//! `rubus-lab`: builds, boots and drives emulated boards. See README.md beside this crate.

mod cut_arguments;

use std::fs::File;
use std::io::{Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};
use cut_arguments::CutArguments;
use rubus_lab::bare_debian::{self, BareDebian, OLDEST};
use rubus_lab::board::{Board, Throttle};
use rubus_lab::cache::Cache;
use rubus_lab::ceph::{Cluster, Settings};
use rubus_lab::ceph_measure::{Measurement, measure};
use rubus_lab::ceph_running::Running;
use rubus_lab::devices::left;
use rubus_lab::firmware::Switches;
use rubus_lab::kit::{Kit, UsbDisk};
use rubus_lab::model::judge::Judgement;
use rubus_lab::model::ledger::{self, Ledger};
use rubus_lab::model::rig::Rig;
use rubus_lab::model::{self, Subject, reread, table};
use rubus_lab::power_cuts::record::{record, record_again};
use rubus_lab::power_cuts::{self, Campaign, missing};
use rubus_lab::session::{self, Options, Session};
use rubus_lab::test_table::{self, Company, Row, Table, Tier};
use rubus_lab::{capture, image, product, test_report};

/// Emulated boards that boot unattended.
#[derive(Debug, Parser)]
#[command(name = "rubus-lab", version, max_term_width = 80)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build a board's disks, unless they are in the cache (needs root)
    Build {
        /// Which board
        board: Board,
        /// Rebuild it, with the newest packages
        #[arg(long)]
        fresh: bool,
    },
    /// Boot a board to a shell on this terminal (Ctrl-A X ends it by force)
    Boot {
        /// Which board
        board: Board,
        #[command(flatten)]
        start: StartArguments,
    },
    /// Boot a board, run a command on it, and switch it off
    ///
    /// The exit status is the command's (124: its time was over), or 125 when
    /// the board failed.
    Run {
        /// Which board
        board: Board,
        #[command(flatten)]
        start: StartArguments,
        /// Run as this user (root or pi)
        #[arg(long, default_value = "root")]
        user: String,
        /// Seconds that the command may take
        #[arg(long, default_value_t = 600, value_name = "SECONDS")]
        timeout: u64,
        /// Bring a file or directory back
        #[arg(long, value_name = "PATH")]
        pull: Vec<String>,
        /// Where to put what is brought back
        #[arg(long, default_value = ".", value_name = "DIR")]
        out: PathBuf,
        /// The command; one word is taken as a shell script
        #[arg(last = true, required = true)]
        script: Vec<String>,
    },
    /// Cut a board's power in the middle of a change and of its undoing (needs root)
    ///
    /// For each cut: what booted, what ended the change, and whether anything of
    /// the old system was lost. The exit status is 1 when one cut ended badly.
    PowerCuts(CutArguments),
    /// Hold the pipe model against set-ups that are measured for real (needs root)
    ///
    /// The stages of each path are measured alone, the model says what they give
    /// together, and then the whole path is measured. The exit status is 1 when
    /// the errors are larger than they should be.
    Model(ModelArguments),
    /// Run a real Ceph cluster on this machine (needs root)
    #[command(subcommand)]
    Ceph(CephCommand),
    /// Choose tests from the table in lab/tests.tsv, as a filter for `cargo nextest run -E`
    Tests(TestsArguments),
    /// Report on the tests that have run: sections, slowest tests, what could not run
    Report {
        /// The list of sections: seconds, a tab, the name
        #[arg(long, value_name = "FILE")]
        sections: PathBuf,
        /// What nextest reported, in JUnit's XML
        #[arg(value_name = "FILE")]
        reports: Vec<PathBuf>,
    },
    /// Remove what killed tests left behind: devices, mounts, control groups, files
    Clean,
    /// Run a script in a checkout of this tree on a bare root of Debian (needs root)
    ///
    /// As an ordinary user with sudo, this machine's toolchain, and its devices. The
    /// exit status is the script's.
    Bare {
        /// Debian's release, such as bookworm
        suite: String,
        /// The script
        #[arg(last = true, required = true)]
        script: String,
    },
    /// Boot a board and record it with `rubus survey --save`
    Capture {
        /// Which board
        board: Board,
        /// A static rubus for the board's processor
        #[arg(long, value_name = "PATH")]
        rubus: PathBuf,
        /// Directory of the capture; replaced when it exists
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
enum CephCommand {
    /// Start a cluster and keep it until `down`, or a signal to this process
    Up {
        /// OSDs, each on a host and in a network of its own
        #[arg(long, default_value_t = 4)]
        osds: u32,
        /// Debian's release whose Ceph it is: trixie (18.2), forky (20.2)
        #[arg(long, default_value = "trixie")]
        suite: String,
        /// Size of each OSD in GiB; files are sparse
        #[arg(long, default_value_t = 6, value_name = "GIB")]
        size: u64,
        /// Rate of each OSD's link, as tc writes it, such as 100mbit
        #[arg(long, value_name = "RATE")]
        link: Option<String>,
    },
    /// Run a command in the cluster, such as `ceph status`
    Run {
        /// The command
        #[arg(last = true, required = true)]
        words: Vec<String>,
    },
    /// Hold predictions of `rubus cluster size` against real clusters
    ///
    /// Starts clusters of its own, and prints tables. Nothing else should load
    /// the machine meanwhile.
    Measure {
        /// What to measure
        #[arg(required = true, value_enum)]
        what: Vec<Measurement>,
        /// A static rubus for this machine
        #[arg(long, value_name = "PATH")]
        rubus: PathBuf,
        /// Add the tables to this file
        #[arg(long, value_name = "FILE")]
        write: Option<PathBuf>,
    },
    /// End the cluster and remove its data
    Down,
}

#[derive(Debug, Args)]
struct TestsArguments {
    /// Those that run with every change, or those that run for a release only
    #[arg(long, value_enum)]
    tier: Option<Tier>,
    /// Those that want nothing beside them, or those that do not mind
    #[arg(long, value_enum)]
    company: Option<Company>,
    /// Only a share of those that run for a release, by its number, counted from
    /// 1, or by the hash of a commit
    #[arg(long, value_name = "N|HASH")]
    share: Option<String>,
    /// Seconds that a share takes at the most
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0)]
    budget: f64,
    /// Say which they are and how long they take, instead of the filter
    #[arg(long)]
    summary: bool,
    /// Say only how many shares there are
    #[arg(long)]
    count_shares: bool,
}

#[derive(Debug, Args)]
struct ModelArguments {
    /// Only these subjects
    #[arg(long, value_name = "SUBJECT", num_args = 1.., value_enum)]
    only: Vec<Subject>,
    /// Write the page to this file, and every case beside it as .cases.tsv; with --only,
    /// in the place of what is there of these subjects
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Write the predictions to this file, each before it is measured [default:
    /// beside the page as .predictions.jsonl; without a page or with --only
    /// target/model.predictions.jsonl, and into the page's at the end]
    #[arg(long, value_name = "FILE")]
    predictions: Option<PathBuf>,
    /// Measure nothing: make this page again from the table of its cases
    #[arg(long, value_name = "FILE", conflicts_with_all = ["only", "write", "predictions", "json"])]
    judge: Option<PathBuf>,
    /// Measure nothing: print every case of this page, with what was measured and why it misses
    #[arg(long, value_name = "FILE", conflicts_with_all = ["only", "write", "predictions", "json", "judge"])]
    show: Option<PathBuf>,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
    /// How often a measurement that others disturbed is repeated at most
    #[arg(long, default_value_t = 2, value_name = "N")]
    again: u32,
    /// The program; without it RUBUS_BIN, else a release build is made
    #[arg(long, value_name = "PATH")]
    rubus: Option<PathBuf>,
}

/// The usual USB disk, and blank ones behind it.
fn usb_disks(blank: &[(u64, usize)]) -> Vec<UsbDisk> {
    let mut usb = vec![UsbDisk::as_sold()];
    for (bytes, bus) in blank {
        usb.push(UsbDisk::blank(usb.len(), *bytes).on_bus(*bus));
    }
    usb
}

#[derive(Debug, Args)]
struct StartArguments {
    /// Keep the disks in this directory: made at the first boot, used as they are at the next
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// With --keep, at the first boot: one more USB disk, blank, on controller BUS [0]
    #[arg(long, value_name = "BYTES[,BUS]", requires = "keep", value_parser = blank_disk)]
    usb: Vec<(u64, usize)>,
    /// Set the firmware's one-shot flag: it reads tryboot.txt
    #[arg(long)]
    tryboot: bool,
    /// A firmware that knows trials, and says so in the device tree
    #[arg(long)]
    knows_trials: bool,
    /// Let the firmware start from a USB disk when no card has a boot partition
    #[arg(long)]
    usb_boot: bool,
    /// Take the SD card out
    #[arg(long)]
    without_card: bool,
    /// Pull the USB disks out
    #[arg(long)]
    without_usb: bool,
    /// With a network card, behind which there is this machine: 10.0.2.2
    #[arg(long)]
    network: bool,
    /// Limit the SD card: bytes and operations per second
    #[arg(long, value_name = "BYTES,IOPS")]
    throttle_sd: Option<Throttle>,
    /// Put a file into the board, in a directory of its PATH
    #[arg(long, value_name = "FILE")]
    push: Vec<PathBuf>,
    /// Words that the firmware adds to the kernel's command line
    #[arg(long, value_name = "WORDS", default_value = "")]
    kernel_words: String,
    /// Let the clock count instructions (2 ns each), so that processor time on the board is a number of them
    #[arg(long)]
    count_instructions: bool,
}

impl StartArguments {
    fn options(&self) -> Options {
        Options {
            throttle_sd: self.throttle_sd,
            push: self.push.clone(),
            switches: Switches {
                tryboot: self.tryboot,
                knows_trials: self.knows_trials,
                usb_boot: self.usb_boot,
                as_pi3: false,
            },
            kernel_words: self.kernel_words.clone(),
            without_card: self.without_card,
            without_usb: self.without_usb,
            network: self.network,
            counts_instructions: self.count_instructions,
            ..Options::default()
        }
    }

    /// The kept disks, when there are to be some.
    fn kit(&self, cache: &Cache, board: Board) -> Result<Option<Kit>> {
        let Some(directory) = &self.keep else {
            return Ok(None);
        };
        if Kit::is_in(directory) {
            return Kit::open(board, directory).map(Some);
        }
        Kit::make(cache, board, directory, &usb_disks(&self.usb)).map(Some)
    }
}

/// Reads `BYTES` or `BYTES,BUS`.
fn blank_disk(text: &str) -> Result<(u64, usize), String> {
    let (bytes, bus) = text.split_once(',').unwrap_or((text, "0"));
    match (bytes.parse(), bus.parse()) {
        (Ok(bytes), Ok(bus)) => Ok((bytes, bus)),
        _ => Err(format!("'{text}' is not BYTES or BYTES,BUS (for example 8000000000,1)")),
    }
}

/// Exit status when the lab failed and not the command.
const LAB_FAILED: u8 = 125;

fn main() -> ExitCode {
    match perform(Arguments::parse().command) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            let _ = writeln!(stderr(), "rubus-lab: {error:#}");
            ExitCode::from(LAB_FAILED)
        }
    }
}

fn perform(command: Command) -> Result<u8> {
    let cache = Cache::of_this_machine();
    match command {
        Command::Build { board, fresh } => {
            if fresh {
                image::forget(&cache, board)?;
            }
            let started = Instant::now();
            let disks = image::disks(&cache, board)?;
            let seconds = started.elapsed().as_secs_f64();
            writeln!(stdout(), "{}\n{}", disks.sd.display(), disks.usb.display())?;
            writeln!(stderr(), "ready after {seconds:.1} s")?;
            Ok(0)
        }
        Command::Boot { board, start } => {
            let kit = start.kit(&cache, board)?;
            session::boot_on_terminal(&cache, board, kit.as_ref(), &start.options())?;
            Ok(0)
        }
        Command::Run { board, start, user, timeout, pull, out, script } => {
            let mut session = match start.kit(&cache, board)? {
                Some(kit) => Session::boot_kit(&cache, &kit, &start.options())?,
                None => Session::boot(&cache, board, &start.options())?,
            };
            writeln!(stderr(), "booted in {:.1} s", session.boot_s())?;
            let mut show = |text: &[u8]| {
                let _ = stdout().write_all(text).and_then(|()| stdout().flush());
            };
            let limit = Duration::from_secs(timeout);
            let outcome = session.run_showing(&quoted(&script), &user, limit, &mut show)?;
            stderr().write_all(&outcome.complaint)?;
            if !pull.is_empty() {
                let paths: Vec<&str> = pull.iter().map(String::as_str).collect();
                session.pull(&paths, &out)?;
            }
            session.switch_off()?;
            Ok(u8::try_from(outcome.status).unwrap_or(LAB_FAILED))
        }
        Command::PowerCuts(arguments) => {
            let page = arguments.markdown.clone();
            if let Some(directory) = arguments.record.clone() {
                let way = arguments.during;
                let campaign = arguments.campaign()?;
                match way {
                    Some(way) => record_again(&cache, &campaign, &directory, way)?,
                    None => record(&cache, &campaign, &directory)?,
                };
                return Ok(0);
            }
            if let Some(directory) = arguments.replay.clone() {
                return replay(&cache, arguments, &directory);
            }
            if arguments.each_flush {
                return leave_out_each(&cache, &arguments.campaign()?);
            }
            cut(&cache, &arguments.campaign()?, page.as_deref())
        }
        Command::Model(arguments) => hold_model(&arguments),
        Command::Ceph(verb) => ceph(&cache, verb),
        Command::Tests(arguments) => choose_tests(&arguments),
        Command::Report { sections, reports } => {
            write!(stdout(), "{}", test_report::of_files(&sections, &reports)?)?;
            Ok(0)
        }
        Command::Clean => Ok(clean(&cache)),
        Command::Bare { suite, script } => on_bare_debian(&cache, &suite, &script),
        Command::Capture { board, rubus, out } => {
            capture::record(&cache, board, &rubus, &out)?;
            Ok(0)
        }
    }
}

fn on_bare_debian(cache: &Cache, suite: &str, script: &str) -> Result<u8> {
    let root = BareDebian::new(cache, suite)?;
    root.add_network()?;
    root.add_checkout()?;
    root.add_toolchain(OLDEST)?;
    let script = format!("cd {} && {script}", bare_debian::CHECKOUT);
    let status = root.run_on_this_machine(bare_debian::USER, &script)?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(LAB_FAILED))
}

/// Starts, uses or ends a cluster; the exit status of `run` is the command's.
fn ceph(cache: &Cache, verb: CephCommand) -> Result<u8> {
    match verb {
        CephCommand::Up { osds, suite, size, link } => {
            if Running::find(cache).is_ok() {
                bail!("a cluster is running already; end it first: rubus-lab ceph down");
            }
            let settings = Settings { suite, osds, osd_bytes: size << 30, link };
            let mut cluster = Cluster::start(cache, &settings)?;
            Running::announce(cache, &cluster)?;
            writeln!(
                stdout(),
                "{}\nUse it from another terminal: rubus-lab ceph run -- ceph status\nIt ends with rubus-lab ceph down, or Ctrl-C here.",
                cluster.ceph(&["osd", "stat"])?.trim()
            )?;
            cluster.wait_for_end()?;
            Running::forget(cache);
            Ok(0)
        }
        CephCommand::Run { words } => {
            let status = Running::find(cache)?.command(&words).status()?;
            Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(125))
        }
        CephCommand::Measure { what, rubus, write } => {
            if Running::find(cache).is_ok() {
                bail!("a cluster is running already; end it first: rubus-lab ceph down");
            }
            for what in what {
                let table = measure(cache, &rubus, what)?;
                writeln!(stdout(), "\n{table}")?;
                if let Some(path) = &write {
                    let mut file = File::options().append(true).create(true).open(path)?;
                    writeln!(file, "{table}")?;
                }
            }
            Ok(0)
        }
        CephCommand::Down => {
            Running::find(cache)?.end(cache)?;
            Ok(0)
        }
    }
}

/// Prints the filter for the tests that are asked for; status 1 when there are none.
fn choose_tests(arguments: &TestsArguments) -> Result<u8> {
    let table = Table::of_this_tree()?;
    let shares = table.shares(arguments.budget);
    if arguments.count_shares {
        writeln!(stdout(), "{}", shares.len())?;
        return Ok(0);
    }
    let share = match &arguments.share {
        None => None,
        // The numbers of shares are short, hashes are not.
        Some(text) if text.len() < 8 => {
            let number = text.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
            let number = number.filter(|&number| number < shares.len());
            Some(
                number
                    .with_context(|| format!("shares are numbered from 1 to {}", shares.len()))?,
            )
        }
        Some(hash) => Some(test_table::share_of_commit(hash, shares.len())?),
    };
    let is_wanted = |row: &Row| {
        arguments.tier.is_none_or(|tier| tier == row.tier)
            && arguments.company.is_none_or(|company| company == row.company)
            && share.is_none_or(|share| shares[share].iter().any(|other| other.name == row.name))
    };
    let rows: Vec<&Row> = table.rows().iter().filter(|row| is_wanted(row)).collect();
    if arguments.summary {
        let of = share.map(|share| format!("share {} of {}: ", share + 1, shares.len()));
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        writeln!(
            stdout(),
            "{}{:.0} s: {}",
            of.unwrap_or_default(),
            test_table::wall_s(rows.iter().copied()),
            names.join(" ")
        )?;
    } else if let Some(filter) = table.filter(is_wanted) {
        writeln!(stdout(), "{filter}")?;
    }
    Ok(u8::from(rows.is_empty()))
}

/// Removes what killed tests left, and says what.
fn clean(cache: &Cache) -> u8 {
    let removed = left::remove();
    cache.sweep();
    for line in &removed {
        let _ = writeln!(stderr(), "left by a run that was killed: {line}");
    }
    u8::from(removed.iter().any(|line| line.starts_with("could not")))
}

/// Measures the subjects and says how good the predictions are.
fn hold_model(arguments: &ModelArguments) -> Result<u8> {
    if let Some(path) = &arguments.judge {
        return judge_again(path);
    }
    if let Some(path) = &arguments.show {
        let rows = read_rows(&ModelPage::cases_of(path))?;
        write!(stdout(), "{}", model::page::every_case(&rows))?;
        return Ok(0);
    }
    let named = std::env::var_os("RUBUS_BIN").map(PathBuf::from);
    let rubus = match arguments.rubus.clone().or(named) {
        Some(path) => path,
        None => product::rubus_here()?,
    };
    let subjects = match arguments.only.as_slice() {
        [] => Subject::ALL.to_vec(),
        some => some.to_vec(),
    };
    for line in left::remove() {
        let _ = writeln!(stderr(), "left by a run that was killed: {line}");
    }
    let before = match &arguments.write {
        Some(page) if !arguments.only.is_empty() => Some(ModelPage::read(page)?),
        _ => None,
    };
    let predictions = match (&arguments.predictions, &arguments.write) {
        (Some(path), _) => path.clone(),
        (None, Some(page)) if before.is_none() => ModelPage::predictions_of(page),
        _ => PathBuf::from("target/model.predictions.jsonl"),
    };
    let ledger = Ledger::new(&predictions)?;
    let rig = Rig::new(&rubus, arguments.again)?;
    let report = model::run(&subjects, &rig, &ledger, &mut |line| {
        // Nothing can be done when standard error is closed.
        let _ = writeln!(stderr(), "{line}");
    })?;
    let (page, rows) = match &before {
        Some(before) => model::again::page(&before.text, before.rows.clone(), &report)?,
        None => (model::summary::of_report(&report)?, report.rows()),
    };
    if let Some(path) = &arguments.write {
        write_file(path, &page)?;
        write_file(&ModelPage::cases_of(path), &table::text(&rows))?;
    }
    if let (Some(before), Some(path)) = (before, &arguments.write) {
        let again = ledger::read(&predictions)?;
        let lines = model::again::predictions(before.predictions, again);
        write_file(&ModelPage::predictions_of(path), &ledger::text(lines)?)?;
    }
    let judged = Judgement::that_counts(&table::scores(&rows)?);
    match (arguments.json, &arguments.write) {
        (true, _) => writeln!(stdout(), "{}", serde_json::to_string_pretty(&report)?)?,
        (false, Some(_)) => writeln!(stdout(), "{judged}")?,
        (false, None) => writeln!(stdout(), "{page}\n{}", model::page::every_case(&rows))?,
    }
    // What was asked for again and is as old as before.
    let is_old = !arguments.only.is_empty() && !report.left_out.is_empty();
    Ok(u8::from(!judged.missed().is_empty() || report.cases.is_empty() || is_old))
}

/// A page that was measured before.
struct ModelPage {
    text: String,
    rows: Vec<table::Row>,
    predictions: Vec<ledger::Line>,
}

impl ModelPage {
    fn read(path: &Path) -> Result<ModelPage> {
        Ok(ModelPage {
            text: read_file(path)?,
            rows: read_rows(&ModelPage::cases_of(path))?,
            predictions: ledger::read(&ModelPage::predictions_of(path))?,
        })
    }

    /// The table of its cases beside it.
    fn cases_of(path: &Path) -> PathBuf {
        path.with_extension("cases.tsv")
    }

    /// The file of predictions beside it.
    fn predictions_of(path: &Path) -> PathBuf {
        path.with_extension("predictions.jsonl")
    }
}

/// Makes a page again from the table of its cases.
fn judge_again(path: &Path) -> Result<u8> {
    let rows = read_rows(&ModelPage::cases_of(path))?;
    let again = reread::judge(&read_file(path)?, &rows)?;
    write_file(path, &again)?;
    let judged = Judgement::that_counts(&table::scores(&rows)?);
    writeln!(stdout(), "{judged}")?;
    Ok(u8::from(!judged.missed().is_empty()))
}

fn read_rows(path: &Path) -> Result<Vec<table::Row>> {
    table::read(&read_file(path)?).with_context(|| format!("cannot use {path:?}"))
}

fn read_file(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("could not read {path:?}"))
}

fn write_file(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("could not write {path:?}"))
}

/// Runs a campaign and prints a row for each cut; the page has all of them at any time.
fn cut(cache: &Cache, campaign: &Campaign, page: Option<&Path>) -> Result<u8> {
    let mut rows = Vec::new();
    let results = power_cuts::run(cache, campaign, &mut |row| {
        rows.push(row.clone());
        // Nothing can be done when standard output is closed; what became of the page is seen at the end.
        let _ = writeln!(stdout(), "{}", power_cuts::line(row));
        let _ = page.map(|page| std::fs::write(page, power_cuts::markdown(&rows, None)));
    })?;
    if let Some(page) = page {
        std::fs::write(page, power_cuts::markdown(&rows, Some(&results)))
            .with_context(|| format!("could not write {page:?}"))?;
    }
    let bad = rows.iter().filter(|row| !row.wrong.is_empty()).count();
    writeln!(stdout(), "{} cuts, {bad} ended badly", rows.len())?;
    Ok(u8::from(bad > 0))
}

/// Makes cuts from a recording and prints a row for each.
fn replay(cache: &Cache, arguments: CutArguments, directory: &Path) -> Result<u8> {
    let page = arguments.markdown.clone();
    let draw = power_cuts::replay::Draw {
        cuts: arguments.runs,
        only: arguments.during,
        board_each: arguments.board_each,
        looks_only: arguments.look_only,
        seed: arguments.lossy.unwrap_or(1),
    };
    let leaves_out = arguments.each_flush;
    let campaign = arguments.campaign()?;
    if leaves_out {
        missing::in_recording(cache, &campaign, directory, &mut |missing| {
            // Nothing can be done when standard output is closed.
            let _ = writeln!(stdout(), "{missing}");
        })?;
        return Ok(0);
    }
    let rows = power_cuts::replay::run(cache, &campaign, directory, draw, &mut |row| {
        // Nothing can be done when standard output is closed.
        let _ = writeln!(stdout(), "{}", power_cuts::line(row));
    })?;
    if let Some(page) = page {
        std::fs::write(&page, power_cuts::markdown(&rows, None))
            .with_context(|| format!("could not write {page:?}"))?;
    }
    let bad = rows.iter().filter(|row| !row.wrong.is_empty()).count();
    writeln!(stdout(), "{} cuts, {bad} ended badly", rows.len())?;
    Ok(u8::from(bad > 0))
}

/// Leaves each flush out in turn and prints what found it.
fn leave_out_each(cache: &Cache, campaign: &Campaign) -> Result<u8> {
    missing::run(cache, campaign, &mut |missing| {
        // Nothing can be done when standard output is closed.
        let _ = writeln!(stdout(), "{missing}");
    })?;
    Ok(0)
}

/// One word is a script as it stands; several are words of one command.
fn quoted(words: &[String]) -> String {
    match words {
        [script] => script.clone(),
        words => words
            .iter()
            .map(|word| format!("'{}'", word.replace('\'', r"'\''")))
            .collect::<Vec<_>>()
            .join(" "),
    }
}
