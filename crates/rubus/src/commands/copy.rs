//! `rubus copy`: one directory to another, faithfully.

use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rubus_copy::receipt::{Comparison, Contents, Progress};
use rubus_copy::run::{CompareOptions, CopyError, CopyOptions, Paths, compare, copy};
use rubus_copy::text::{comparison as comparison_text, line, receipt as receipt_text};

use crate::args::{Copy, General, HowMuch};
use crate::documents::CopyDocument;
use crate::exit::Exit;
use rubus_command::Terminal;
use rubus_command::places::say;
use rubus_command::progress::{bar, terminal_columns};
use rubus_command::signals::{self, LongestStall};

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
    let (stalls, mut last) = (LongestStall::default(), (Instant::now(), (0, 0)));
    let seen = stalls.clone();
    let mut tell = |progress: Progress| {
        let done = (progress.entries, progress.bytes);
        seen.saw(last.0.elapsed());
        if done != last.1 {
            last = (Instant::now(), done);
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
