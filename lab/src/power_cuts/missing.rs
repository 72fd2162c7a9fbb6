//! Which power cuts find a flush that the product does not make: each of its flushes is left out in turn, on one board, and cuts
//! behind it are made from the card's log and looked at without a board.
//!
//! A flush is left out in the lab's layer: `strace` answers the call without doing it. The product knows nothing of that. What is
//! looked at is the card alone, so this is for changes of its files.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::cache::Cache;
use crate::kit::Kit;
use crate::session::Session;

use super::caches::Caches;
use super::judge::{self, Known};
use super::look::Ended;
use super::loss::Fate;
use super::pass::{ended_well, short, stop_in, stopping};
use super::record::Mark;
use super::replay::{self, Replay};
use super::{Campaign, Lab, LeftOut, Random, Way, pool, untouched};

/// What makes something durable. Only the first thread's calls are left out.
const CALLS: &str = "fsync,fdatasync,syncfs,sync,sync_file_range";

/// How many orders of the unflushed writes are tried for each cut of a recording: a name that is on the disk before what it names
/// is in one of three or so.
const ORDERS: u64 = 3;

/// How many flushes behind the one that is left out a cut can come, beside the one at the end.
const MAX_FLUSHES: usize = 8;

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
            None if self.call.contains(':') => {}
            None => write!(f, "nothing left out: ")?,
        }
        write!(f, "{} of {} cuts bad; {}", self.found.len(), self.cuts, self.call)?;
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
    let room = cache.work_directory()?;
    let images = pool::of(room.path())?;
    let plain = Kit::temporary(cache, campaign.board, &campaign.usb)?;
    let reference = lab.prepare(&plain)?;
    let kit = plain.temporary_copy(cache)?;
    let mut board = lab.boot_logged(&kit, Way::Apply)?;
    let seed = campaign.lossy.unwrap_or(1);
    let mut caches = Caches::of(&images, &mut board, &plain, Random::of(seed), Way::Apply)?;
    let change = lab.change(&mut board)?;
    // The first change of a system makes the directory of all changes, with flushes that later ones do not need.
    stopped(&mut board, &mut caches, &change, campaign.limit)?;
    let none = stopped(&mut board, &mut caches, &change, campaign.limit)?;
    let mut windows =
        vec![Window { left_out: None, call: "none".to_owned(), entries: none.entries, flushes: 0 }];
    let mut numbers = BTreeMap::new();
    let mut before = none.entries[0];
    for (call, after) in &none.calls {
        let name = call.split('(').next().unwrap_or_default().to_owned();
        let number = numbers.entry(name.clone()).or_insert(0);
        *number += 1;
        let flushes = caches.card_flushes(none.entries[0], before).len();
        before = *after;
        let left_out = LeftOut { call: name, number: *number };
        if campaign.only.is_empty() || campaign.only.iter().any(|part| call.contains(part)) {
            windows.push(Window {
                entries: apply(&mut board, &mut caches, &change, &left_out, campaign.limit)?,
                left_out: Some(left_out),
                call: call.clone(),
                flushes,
            });
        }
    }
    board.switch_off()?;
    caches.flush_card_until(none.entries[0])?;
    let state = |caches: &Caches| {
        let kit = caches.flushed().temporary_copy(&images)?;
        judge::state(&images, &kit, reference.home, None)
    };
    let before = state(&caches)?;
    caches.flush_card_until(none.settled)?;
    let after = state(&caches)?;
    let writes = caches.card_writes();
    let known = Known {
        home: reference.home,
        waiting: None,
        sums: untouched::sums(&images, &plain.temporary_copy(&images)?.sd(), &writes)?,
        earlier: reference.earlier,
        plain: before,
        applied: after,
    };
    let mut caches = caches.again(&images, &plain)?;
    for window in windows {
        show(&judged(&images, campaign, &mut caches, window, &known)?);
    }
    Ok(())
}

/// Something like it for a recording, with no board: the flushes that the card got from a call are taken for none, so that what it wrote
/// is durable with the next one only. Unlike a call that is left out, that takes a filesystem its own flushes too. Each way ends
/// with a control: the same cuts with nothing left out.
///
/// # Errors
/// When the recording is not whole, or the lab fails.
pub fn in_recording(
    cache: &Cache,
    campaign: &Campaign,
    directory: &Path,
    show: &mut dyn FnMut(&Missing),
) -> Result<()> {
    let replay = Replay::of(cache, campaign, directory)?;
    ensure!(
        replay.recording.label.export.is_none(),
        "the log of a network disk has no common order with the card's"
    );
    for way in [Way::Apply, Way::Undo] {
        let mut caches = replay.caches(way, Random::of(1))?;
        let flushes_in = |from, to| caches.card_flushes(from, to);
        let mut calls = calls(replay.recording.marks(way), &flushes_in);
        let named = |call: &Call| format!("{}: {}", way.word(), call.words);
        calls.retain(|call| {
            campaign.only.is_empty() || campaign.only.iter().any(|part| named(call).contains(part))
        });
        let mut control =
            Missing { left_out: None, call: way.word().to_owned(), cuts: 0, found: Vec::new() };
        for call in &calls {
            caches.flush_card_until(call.durable)?;
            for is_left_out in [false, true] {
                let ignored = if is_left_out { &*call.flushes } else { &[] };
                let lefts = replay.lefts(&mut caches, call, way, ignored)?;
                let cuts = lefts.len();
                let found = found(replay.images(), replay.campaign(), lefts, &replay.known)?;
                if is_left_out {
                    show(&Missing { left_out: None, call: named(call), cuts, found });
                } else {
                    control.cuts += cuts;
                    control.found.extend(found);
                }
            }
        }
        if !calls.is_empty() {
            show(&control);
        }
    }
    Ok(())
}

/// A call of a recording that has flushed the card.
struct Call {
    words: String,
    /// What had been durable before it.
    durable: usize,
    /// The flushes that it made.
    flushes: Vec<usize>,
    /// Where cuts find that they are missing: behind it, and before the next flush.
    cuts: Vec<usize>,
    /// Whether the change had ended then, or waited for its trial: its last record was said to be durable.
    is_last: bool,
}

/// The calls between these marks that have flushed the card.
fn calls(marks: &[Mark], flushes_in: &dyn Fn(usize, usize) -> Vec<usize>) -> Vec<Call> {
    let end = marks.last().map_or(0, |mark| mark.entries[0]);
    let mut calls = Vec::new();
    // A flush while the logs were measured within a call is the call's.
    let ends = marks.iter().skip(1).filter(|mark| !mark.call.is_empty());
    let marks: Vec<&Mark> = marks.iter().take(1).chain(ends).collect();
    for pair in marks.windows(2) {
        let (from, to) = (pair[0].entries[0], pair[1].entries[0]);
        let flushes = flushes_in(from, to);
        if flushes.is_empty() {
            continue;
        }
        let next = flushes_in(to, end).first().copied().unwrap_or(end);
        let mut cuts = vec![to, next];
        cuts.dedup();
        let before = flushes_in(0, from);
        calls.push(Call {
            words: replay::words(pair[1], true).replacen("after ", "", 1),
            durable: before.last().map_or(0, |last| last + 1),
            flushes,
            cuts,
            is_last: ["finished", "on_trial"].contains(&&*pair[1].record),
        });
    }
    calls
}

impl Replay<'_> {
    fn lefts(
        &self,
        caches: &mut Caches,
        call: &Call,
        way: Way,
        ignored: &[usize],
    ) -> Result<Vec<Left>> {
        let ended = call.is_last.then_some(way);
        let mut lefts = Vec::new();
        caches.ignore_card_flushes(ignored);
        let orders = std::iter::repeat_n(Fate::Reordered, ORDERS as usize);
        let fates: Vec<Fate> = std::iter::once(Fate::Lost).chain(orders).collect();
        for (number, cut) in call.cuts.iter().enumerate() {
            for (order, fate) in (0..).zip(&fates) {
                let mut random = Random::of(*cut as u64 * (ORDERS + 1) + order);
                let (kit, writes) = caches.card_cut_at(self.images(), *cut, *fate, &mut random)?;
                let when = ["behind it", "before the next flush"][number];
                let words = format!("{when}, {writes} unflushed writes {}", fate.word());
                lefts.push((kit, words, ended));
            }
        }
        caches.ignore_card_flushes(&[]);
        Ok(lefts)
    }
}

/// A card, the cut that has left it, and the way that had ended.
type Left = (Kit, String, Option<Way>);

/// What a way there has left in the log.
struct Applied {
    entries: [usize; 2],
    /// Where the log was when all of it had been flushed.
    settled: usize,
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
        calls.push((call.context("the change did not end")?, caches.card_entries(board)?));
        board.answer("go")?;
    }
    let end = caches.card_entries(board)?;
    let settled = quiet(board, caches, limit)?;
    board.must("rubus undo --yes", "root", limit)?;
    Ok(Applied { entries: [start, end], settled, calls })
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
    images: &Cache,
    campaign: &Campaign,
    caches: &mut Caches,
    window: Window,
    known: &Known,
) -> Result<Missing> {
    let [start, end] = window.entries;
    caches.flush_card_until(start)?;
    let flushes = caches.card_flushes(start, end);
    let cuts = flushes.into_iter().skip(window.flushes).take(match window.left_out {
        Some(_) => MAX_FLUSHES,
        // The control has them all.
        None => usize::MAX,
    });
    let mut cuts: Vec<usize> = cuts.collect();
    cuts.push(end);
    let mut lefts = Vec::new();
    let seed = campaign.lossy.unwrap_or(1);
    for (number, cut) in cuts.into_iter().enumerate() {
        for fate in [Fate::Lost, Fate::Torn, Fate::Reordered] {
            let mut random = Random::of(seed + number as u64);
            let (kit, writes) = caches.card_cut_at(images, cut, fate, &mut random)?;
            let when = if cut == end {
                "after its end".to_owned()
            } else {
                format!("before flush {}", number + window.flushes + 1)
            };
            let words = format!("{when}, {writes} unflushed writes {}", fate.word());
            lefts.push((kit, words, (cut == end).then_some(Way::Apply)));
        }
    }
    Ok(Missing {
        left_out: window.left_out,
        call: window.call,
        cuts: lefts.len(),
        found: found(images, campaign, lefts, known)?,
    })
}

/// Looks at cards; gives the cuts that left something bad, and what.
fn found(
    images: &Cache,
    campaign: &Campaign,
    lefts: Vec<Left>,
    known: &Known,
) -> Result<Vec<(String, String)>> {
    let lefts = Mutex::new(lefts);
    let found = Mutex::new(Vec::new());
    let look = || -> Result<()> {
        loop {
            let left = lefts.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some((kit, words, ended)) = left else {
                return Ok(());
            };
            let wrong = judge(images, campaign, &kit, ended, known)?;
            if !wrong.is_empty() {
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                found.push((words, wrong));
            }
        }
    };
    std::thread::scope(|threads| {
        let looks: Vec<_> = (0..campaign.jobs.max(1)).map(|_| threads.spawn(look)).collect();
        let mut ended = looks.into_iter().map(|look| look.join());
        ended.try_for_each(|look| look.unwrap_or_else(|_| bail!("a look panicked")))
    })?;
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort();
    Ok(found)
}

/// What is wrong with a card that a cut has left; nothing when all is well.
fn judge(
    images: &Cache,
    campaign: &Campaign,
    kit: &Kit,
    ended: Option<Way>,
    known: &Known,
) -> Result<String> {
    let found = match judge::look(images, kit, &campaign.rubus, Some(Ended::Undo), known) {
        Ok(found) => found,
        // A filesystem that cannot be mounted, or a journal that cannot be read.
        Err(error) => return Ok(format!("{error:#}")),
    };
    let mut wrong = known.verdict(&found).wrong;
    if ended.is_some_and(|way| !found.has_ended(way)) {
        wrong.push("it had ended, and the journal does not say so".to_owned());
    }
    Ok(wrong.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_flushed_is_cut_behind_it_and_before_the_next_flush() {
        let mark = |call: &str, entries: usize| Mark {
            call: call.into(),
            entries: vec![entries, 9],
            ..Mark::default()
        };
        let marks = [
            mark("", 4),
            mark("", 7),
            mark("one", 10),
            mark("rename", 12),
            Mark { record: "finished".into(), ..mark("two", 20) },
            Mark { record: "on_trial".into(), ..mark("three", 30) },
        ];
        let flushes = [1, 6, 8, 15, 29];
        let flushes_in = |from: usize, to: usize| {
            let within = flushes.iter().filter(|flush| (from..to).contains(*flush));
            within.copied().collect()
        };
        let calls = calls(&marks, &flushes_in);
        let seen: Vec<_> = calls
            .iter()
            .map(|call| (&*call.words, call.durable, &*call.flushes, &*call.cuts))
            .collect();
        let last: Vec<bool> = calls.iter().map(|call| call.is_last).collect();
        assert_eq!(last, [false, true, true]);
        assert_eq!(
            seen,
            [
                ("one", 2, &[6, 8][..], &[10, 15][..]),
                ("finished", 9, &[15], &[20, 29]),
                ("on_trial", 16, &[29], &[30]),
            ]
        );
    }
}
