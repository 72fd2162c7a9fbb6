//! Which power cuts find a flush that the product does not make: each of its flushes is left out in turn, on one board, and cuts
//! behind it are made from the card's log and looked at without a board.
//!
//! A flush is left out in the lab's layer: `strace` answers the call without doing it. The product knows nothing of that. What is
//! looked at is the card alone, so this is for changes of its files.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::cache::Cache;
use crate::firmware;
use crate::kit::Kit;
use crate::session::Session;
use crate::tools;

use super::caches::Caches;
use super::loss::Fate;
use super::pass::{ended_well, short, stop_in, stopping};
use super::{Campaign, Lab, LeftOut, Random};

const JUDGE: &str = include_str!("judge.sh");

/// What makes something durable. Only the first thread's calls are left out.
const CALLS: &str = "fsync,fdatasync,syncfs,sync,sync_file_range";

/// How many flushes behind the one that is left out a cut can come, beside the one at the end.
const MAX_FLUSHES: usize = 8;

/// Where the images are: they are many, and small.
const SHARED_MEMORY: &str = "/dev/shm";

/// A flush that was left out.
#[derive(Clone, Debug)]
pub struct Missing {
    /// Which one; none for the run in which none was.
    pub left_out: Option<LeftOut>,
    /// The call as `strace` shows it.
    pub call: String,
    /// How many cuts were looked at.
    pub cuts: usize,
    /// Those that found it: the cut, and what was wrong.
    pub found: Vec<(String, String)>,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.left_out {
            Some(LeftOut { call, number }) => write!(f, "without {call},{number}: ")?,
            None => write!(f, "nothing left out: ")?,
        }
        write!(
            f,
            "{} of {} cuts bad; {}",
            self.found.len(),
            self.cuts,
            self.call
        )?;
        for (cut, wrong) in &self.found {
            write!(f, "\n  {cut}: {wrong}")?;
        }
        Ok(())
    }
}

/// A part of the card's log in which the change was applied once.
struct Window {
    left_out: Option<LeftOut>,
    call: String,
    /// Where it begins and ends in the log.
    entries: [usize; 2],
    /// How many flushes of the card come before the call in it.
    flushes: usize,
}

/// Leaves each flush out in turn; `show` gets each as it is known. The first has none left out, and must have found nothing.
///
/// # Errors
/// When the change fails, or the lab does.
pub fn run(cache: &Cache, campaign: &Campaign, show: &mut dyn FnMut(&Missing)) -> Result<()> {
    let lab = Lab { cache, campaign };
    let plain = Kit::temporary(cache, campaign.board, &campaign.usb)?;
    lab.prepare(&plain)?;
    let kit = plain.temporary_copy(cache)?;
    let mut board = lab.boot_logged(&kit)?;
    let seed = campaign.lossy.unwrap_or(1);
    let mut caches = Caches::of(cache, &mut board, &plain, Random::of(seed))?;
    let change = lab.change(&mut board)?;
    let mut windows = Vec::new();
    // The first change of a system makes the directory of all changes, with flushes that later ones do not need.
    stopped(&mut board, &mut caches, &change, campaign.limit)?;
    let none = stopped(&mut board, &mut caches, &change, campaign.limit)?;
    let mut numbers = BTreeMap::new();
    let mut before = none.entries[0];
    for (call, after) in &none.calls {
        let name = call.split('(').next().unwrap_or_default().to_owned();
        let number = numbers.entry(name.clone()).or_insert(0);
        *number += 1;
        let flushes = caches.card_flushes(none.entries[0], before).len();
        before = *after;
        let left_out = LeftOut {
            call: name,
            number: *number,
        };
        if campaign.only.is_empty() || campaign.only.iter().any(|part| call.contains(part)) {
            windows.push(Window {
                entries: apply(&mut board, &mut caches, &change, &left_out, campaign.limit)?,
                left_out: Some(left_out),
                call: call.clone(),
                flushes,
            });
        }
    }
    windows.insert(
        0,
        Window {
            left_out: None,
            call: "none".to_owned(),
            entries: none.entries,
            flushes: 0,
        },
    );
    board.switch_off()?;
    let starts = firmware::partition_starts(&plain.sd())?;
    for window in windows {
        let missing = judged(campaign, &mut caches, window, starts, seed)?;
        show(&missing);
    }
    Ok(())
}

/// What a way there has left in the log.
struct Applied {
    entries: [usize; 2],
    /// Its calls, and where the log was after each.
    calls: Vec<(String, usize)>,
}

/// Applies the change, stops at each call to see where in the log it ends, and undoes it again.
fn stopped(
    board: &mut Session,
    caches: &mut Caches,
    change: &str,
    limit: Duration,
) -> Result<Applied> {
    let start = quiet(board, caches, limit)?;
    let command = format!("rubus apply {change} --yes");
    board.begin(&stopping(&command, CALLS, None), "root", limit)?;
    let mut calls = Vec::new();
    loop {
        let mut call = None;
        let ended = board.follow(limit, &mut |said| {
            call = stop_in(said).map(|stop| short(&stop.call));
            call.is_none()
        })?;
        if let Some(outcome) = ended {
            ended_well(&outcome).context("could not apply")?;
            break;
        }
        calls.push((
            call.context("the change did not end")?,
            caches.card_entries(board)?,
        ));
        board.answer("go")?;
    }
    let end = caches.card_entries(board)?;
    board.must("rubus undo --yes", "root", limit)?;
    Ok(Applied {
        entries: [start, end],
        calls,
    })
}

/// Applies the change without one flush, and undoes it again; gives where that is in the log.
fn apply(
    board: &mut Session,
    caches: &mut Caches,
    change: &str,
    left_out: &LeftOut,
    limit: Duration,
) -> Result<[usize; 2]> {
    let start = quiet(board, caches, limit)?;
    let LeftOut { call, number } = left_out;
    let script = format!(
        "strace -qq -o /dev/null -e trace={call} -e signal=none -e inject={call}:retval=0:when={number} \
         rubus apply {change} --yes"
    );
    board.must(&script, "root", limit)?;
    let end = caches.card_entries(board)?;
    board.must("rubus undo --yes", "root", limit)?;
    Ok([start, end])
}

/// Waits until all is flushed; gives where in the log that is.
fn quiet(board: &mut Session, caches: &mut Caches, limit: Duration) -> Result<usize> {
    board.must("sync; sync", "root", limit)?;
    caches.card_entries(board)
}

fn judged(
    campaign: &Campaign,
    caches: &mut Caches,
    window: Window,
    starts: (u64, u64),
    seed: u64,
) -> Result<Missing> {
    let mut missing = Missing {
        left_out: window.left_out,
        call: window.call,
        cuts: 0,
        found: Vec::new(),
    };
    let [start, end] = window.entries;
    let place = tempfile::tempdir_in(SHARED_MEMORY)?;
    caches.flush_card_until(start)?;
    let before = boot_files(&caches.flushed_card(), starts, place.path())?;
    std::fs::write(place.path().join("list"), before)?;
    let flushes = caches.card_flushes(start, end);
    let mut cuts: Vec<usize> = flushes
        .into_iter()
        .skip(window.flushes)
        .take(MAX_FLUSHES)
        .collect();
    cuts.push(end);
    let mut images = Vec::new();
    for (number, cut) in cuts.into_iter().enumerate() {
        for fate in [Fate::Lost, Fate::Reordered] {
            let image = place.path().join(format!("card-{}", images.len()));
            let mut random = Random::of(seed + number as u64);
            let writes = caches.card_cut_at(cut, fate, &mut random, &image)?;
            let when = match cut == end {
                true => "after its end".to_owned(),
                false => format!("before flush {}", number + window.flushes + 1),
            };
            let words = format!("{when}, {writes} unflushed writes {}", fate.word());
            images.push((image, words, cut == end));
        }
    }
    let list = place.path().join("list");
    let (images, list) = (&images, &list);
    let said: Result<Vec<String>> = std::thread::scope(|threads| {
        let look = |(image, _, has_ended): &'_ (PathBuf, String, bool)| {
            judge(campaign, image, starts, *has_ended, list)
        };
        let each: Vec<_> = images
            .iter()
            .map(|image| threads.spawn(move || look(image)))
            .collect();
        let ended = each.into_iter().map(|one| one.join());
        ended
            .map(|one| one.unwrap_or_else(|_| bail!("a look panicked")))
            .collect()
    });
    for ((_, words, _), said) in images.iter().zip(said?) {
        missing.cuts += 1;
        if !said.is_empty() {
            missing.found.push((words.clone(), said));
        }
    }
    Ok(missing)
}

/// What is wrong with a card that a cut has left; nothing when all is well.
fn judge(
    campaign: &Campaign,
    image: &Path,
    starts: (u64, u64),
    has_ended: bool,
    list: &Path,
) -> Result<String> {
    let room = tempfile::tempdir_in(SHARED_MEMORY)?;
    let mut judge = tools::command("unshare");
    judge.args(["-m", "bash", "-c", JUDGE, "judge"]).arg(image);
    judge.args([starts.0.to_string(), starts.1.to_string()]);
    judge.arg(&campaign.rubus).arg(room.path());
    judge.arg(if has_ended { "1" } else { "0" }).arg(list);
    let said = tools::run(&mut judge)?;
    Ok(String::from_utf8_lossy(&said).trim().replace('\n', "; "))
}

/// The files of the boot partition with their sums.
fn boot_files(card: &Path, starts: (u64, u64), place: &Path) -> Result<String> {
    let boot: PathBuf = place.join("before");
    std::fs::create_dir(&boot)?;
    let mut copy = tools::command("mcopy");
    copy.args(["-s", "-n", "-Q", "-i"]);
    copy.arg(format!("{}@@{}", card.display(), starts.0));
    tools::run(copy.arg("::").arg(&boot))?;
    let mut list = tools::command("bash");
    list.args([
        "-c",
        "find . -type f ! -name 'FSCK*.REC' | sort | xargs -d '\\n' sha256sum",
    ]);
    let list = tools::run(list.current_dir(&boot))?;
    std::fs::remove_dir_all(&boot)?;
    let list = String::from_utf8(list).context("names that are no text")?;
    ensure!(!list.is_empty(), "the boot partition is empty");
    Ok(list)
}
