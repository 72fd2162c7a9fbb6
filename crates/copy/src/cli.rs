//! `rubus copy`: one directory to another, faithfully. Its arguments, exit statuses, examples and JSON document.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::{Args, ValueEnum};
use rubus_command::places::say;
use rubus_command::progress::{bar, terminal_columns};
use rubus_command::signals::{self, LongestStall};
use rubus_command::{Exit, General, Json, Terminal};
use rubus_host::clock::monotonic_ns;
use rubus_vocabulary::verb::Page;
use serde::Serialize;

use crate::receipt::{Comparison, Contents, CopyReceipt, Progress};
use crate::run::{CompareOptions, CopyError, CopyOptions, Paths, compare, copy};
use crate::text::{comparison as comparison_text, line, receipt as receipt_text};

/// Exit statuses and examples.
pub const PAGES: &[Page] = &[PAGE];

const PAGE: Page = Page {
    name: "rubus-copy",
    statuses: &[
        (0, "complete"),
        (1, "something was lost, changed meanwhile, or differs"),
        (2, "the copy failed"),
    ],
    examples: &[
        (
            "sudo rubus copy / /mnt/new --system --verify sample",
            "Copy the running system to an empty filesystem, and compare.",
        ),
        (
            "sudo rubus copy / /mnt/new --system --again --last",
            "Bring that copy up to date, once the services are stopped.",
        ),
    ],
};

/// Copy a directory tree faithfully.
///
/// Keeps owners, modes, times to the nanosecond, access control lists, extended attributes,
/// capabilities, hard links, holes, devices, pipes, sockets and flags. Does not enter other
/// filesystems mounted in FROM. TO must not exist or be empty. The same command resumes an
/// interrupted copy. TO/.rubus-copy records what was copied, until --last.
#[derive(Debug, Args)]
pub struct Copy {
    /// The directory to copy
    #[arg(value_name = "FROM", value_hint = clap::ValueHint::DirPath)]
    pub from: PathBuf,
    /// Where to; must not exist, be empty, or hold a copy of FROM
    #[arg(value_name = "TO", value_hint = clap::ValueHint::DirPath)]
    pub to: PathBuf,
    /// Leave out a path; / is FROM, and * matches any characters of one name: /swapfile, /tmp/*
    /// (keeps the empty directory) (repeatable)
    #[arg(long, value_name = "PATH")]
    pub exclude: Vec<OsString>,
    /// Leave out what a copy of a running system must not contain: the contents of /proc, /sys,
    /// /dev, /run, /tmp, /mnt and /media, and /lost+found
    #[arg(long)]
    pub system: bool,
    /// Update a finished copy: copy what changed since, remove from TO what is gone from FROM
    #[arg(long)]
    pub again: bool,
    /// This is the last pass: remove TO/.rubus-copy at the end
    #[arg(long)]
    pub last: bool,
    /// Compare FROM and TO afterwards: nothing, all entries with a sample of 256 MiB of contents,
    /// or everything
    #[arg(long, value_name = "HOW MUCH", default_value = "none")]
    pub verify: HowMuch,
    /// Number of copying threads [default: what suits the disk of FROM]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub workers: Option<u8>,
    /// Read small files one by one through the filesystem, not in batches from the ext4 disk:
    /// slower, same result
    #[arg(long)]
    pub by_file: bool,
    #[command(flatten)]
    pub json: Json,
}

/// How much to compare after a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HowMuch {
    /// Nothing, not even names
    None,
    /// Everything about every entry, and 256 MiB of randomly chosen contents
    Sample,
    /// Everything
    All,
}

/// A copied tree.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CopyDocument<'a> {
    /// What was copied.
    pub copy: &'a CopyReceipt,
    /// How the copy compares with the original; null: not compared.
    pub comparison: Option<&'a Comparison>,
}

/// The JSON documents that it prints.
#[cfg(feature = "schema")]
pub fn documents() -> Vec<rubus_vocabulary::verb::Document> {
    use rubus_vocabulary::verb::Document;
    vec![Document::of::<CopyDocument<'_>>("copy", "rubus copy --json")]
}

/// What is said when a copy had to be cut off.
const GOES_ON: &str = "the same command continues from its last checkpoint";

/// Copies, and compares if that is wanted.
pub fn run(general: &General, arguments: &Copy) -> anyhow::Result<Exit> {
    anyhow::ensure!(
        general.machine.is_none(),
        "copy is about directories of this machine; leave --machine out"
    );
    let terminal = Terminal::of(general);
    let excludes = excludes(arguments)?;
    let stop = signals::cancel_flag()?;
    let options = CopyOptions {
        excludes: excludes.clone(),
        workers: arguments.workers.map(usize::from),
        again: arguments.again,
        is_last: arguments.last,
        by_file: arguments.by_file,
        stop: Some(Arc::clone(&stop)),
        ..CopyOptions::default()
    };
    let bar = bar(terminal);
    let (stalls, mut last) = (LongestStall::default(), (monotonic_ns(), (0, 0)));
    let seen = stalls.clone();
    let mut tell = |progress: Progress| {
        let done = (progress.entries, progress.bytes);
        seen.saw(Duration::from_nanos(monotonic_ns().saturating_sub(last.0)));
        if done != last.1 {
            last = (monotonic_ns(), done);
        }
        let columns = usize::from(terminal_columns()).saturating_sub(3);
        bar.set_message(line(&progress, columns));
    };
    let copied = signals::within_grace(GOES_ON, &stalls, || {
        copy(&arguments.from, &arguments.to, &options, &mut tell)
    })?;
    let receipt = copied.inspect_err(|_| bar.finish_and_clear())?;
    let compared =
        signals::within_grace(GOES_ON, &stalls, || verify(arguments, excludes, &stop, &mut tell))?;
    bar.finish_and_clear();
    let compared = compared?;
    if arguments.json.wanted {
        let both = CopyDocument { copy: &receipt, comparison: compared.as_ref() };
        say(&(serde_json::to_string_pretty(&both)? + "\n"))?;
    } else if !general.quiet || !receipt.is_complete() {
        say(&receipt_text(&receipt, terminal.style()))?;
    }
    if let (Some(compared), false) = (&compared, arguments.json.wanted) {
        if !general.quiet || !compared.is_same() {
            say(&comparison_text(compared, terminal.style()))?;
        }
    }
    let is_same = compared.is_none_or(|compared| compared.is_same());
    Ok(if receipt.is_complete() && is_same { Exit::Fine } else { Exit::AnswerIsNo })
}

fn excludes(arguments: &Copy) -> anyhow::Result<Paths> {
    let paths: Vec<&[u8]> = arguments.exclude.iter().map(|path| path.as_bytes()).collect();
    let named = Paths::new(&paths).map_err(|why| anyhow::anyhow!("--exclude {why}"))?;
    Ok(if arguments.system { named.and(Paths::of_a_running_system()) } else { named })
}

fn verify(
    arguments: &Copy,
    excludes: Paths,
    stop: &Arc<AtomicBool>,
    tell: &mut dyn FnMut(Progress),
) -> Result<Option<Comparison>, CopyError> {
    let contents = match arguments.verify {
        HowMuch::None => return Ok(None),
        HowMuch::Sample => Contents::Sample,
        HowMuch::All => Contents::All,
    };
    let options = CompareOptions {
        excludes,
        contents,
        stop: Some(Arc::clone(stop)),
        ..CompareOptions::default()
    };
    compare(&arguments.from, &arguments.to, &options, tell).map(Some)
}
