//! Makes power cuts from a recording, as many as wanted: each is judged without a board, and a sample, with everything that looks
//! odd, is started on one.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::cache::Cache;
use crate::kit::Kit;
use crate::outside;

use super::caches::Caches;
use super::home::Home;
use super::judge::{self, Known, State};
use super::look::{Ended, Evidence};
use super::record::{Mark, Recording};
use super::{
    Campaign, Cut, Good, Lab, Moment, Random, Reference, Row, STATE_DIRECTORY, Way, pool, untouched,
};

/// How many cuts, and which.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// How many: as many on each way that was recorded.
    pub cuts: usize,
    /// Only on this way.
    pub only: Option<Way>,
    /// Each how many-th is started on a board too, and each that waits for a trial there on trial; none when 0.
    pub board_each: usize,
    /// Whether changes are only looked at, and ended on boards alone: those that need the rights over a kernel.
    pub looks_only: bool,
    /// Starting value of the random numbers.
    pub seed: u64,
}

/// Replays a recording and shows each cut as it is known; gives all of them.
///
/// # Errors
/// When the recording is not whole, or the lab fails. A cut with a bad end is a row.
pub fn run(
    cache: &Cache,
    campaign: &Campaign,
    directory: &Path,
    draw: Draw,
    show: &mut dyn FnMut(&Row),
) -> Result<Vec<Row>> {
    let replay = Replay::of(cache, campaign, directory)?;
    let mut ways = replay.recording.ways();
    ways.retain(|way| draw.only.is_none_or(|only| only == *way));
    ensure!(!ways.is_empty(), "nothing of the kind was recorded");
    let (each, more) = (draw.cuts / ways.len(), draw.cuts % ways.len());
    let mut rows = Vec::new();
    for (number, way) in ways.into_iter().enumerate() {
        rows.extend(replay.way(way, each + usize::from(number < more), draw, show)?);
    }
    Ok(rows)
}

/// A recording with what is known of its good states.
pub(super) struct Replay<'a> {
    cache: &'a Cache,
    campaign: Campaign,
    images: Cache,
    pub(super) recording: Recording,
    pub(super) known: Known,
    good: Good,
    reference: Reference,
    /// The same of keeping the trial, where the change has one.
    kept: Option<(Known, Good)>,
}

impl<'a> Replay<'a> {
    pub(super) fn of(cache: &'a Cache, campaign: &Campaign, directory: &Path) -> Result<Self> {
        let recording = Recording::open(directory)?;
        let images = pool::of(directory)?;
        let campaign = recording.label.campaign(campaign);
        ensure!(campaign.lossy.is_some(), "the disks of a recording have write caches");
        let mut written = Vec::new();
        for way in recording.ways() {
            let start = recording.start(campaign.board, way)?;
            let logs = recording.logs(way);
            let caches = Caches::of_logs(&images, &start, &logs, Random::of(1))?;
            written.extend(caches.card_writes());
        }
        let start = |way: Way| recording.start(campaign.board, way)?.temporary_copy(&images);
        let (before, after) = (start(Way::Apply)?, start(Way::Undo)?);
        let home = Home::of(&images, &before)?;
        let sums = untouched::sums(&images, &before.sd(), &written)?;
        let plain = judge::state(&images, &before, home, None)?;
        let earlier = judge::changes_on(&images, &before, home, &campaign.rubus)?;
        let plain_root = plain.start.root().to_owned();
        let applied = judge::state(&images, &after, home, Some(&plain_root))?;
        let good = |end: &State, root: &str| Good {
            planned: outside::differences(&plain.card, &end.card, &[STATE_DIRECTORY]),
            root: root.to_owned(),
        };
        let kept = match (recording.kept(campaign.board)?, &recording.label.verify) {
            (Some(kit), Some(kept)) => {
                let end = kit.temporary_copy(&images)?;
                let end = judge::state(&images, &end, home, Some(&plain_root))?;
                let good = good(&end, &kept.root);
                let known = Known {
                    home,
                    sums: sums.clone(),
                    earlier: earlier.clone(),
                    plain: plain.clone(),
                    waiting: Some(applied.clone().started(&end)),
                    applied: end,
                };
                Some((known, good))
            }
            _ => None,
        };
        Ok(Self {
            good: good(&applied, &recording.label.root),
            kept,
            reference: Reference { home, plain: plain.card.clone(), earlier: earlier.clone() },
            known: Known { home, sums, earlier, plain, waiting: None, applied },
            cache,
            campaign,
            images,
            recording,
        })
    }

    pub(super) fn images(&self) -> &Cache {
        &self.images
    }

    pub(super) fn campaign(&self) -> &Campaign {
        &self.campaign
    }

    pub(super) fn caches(&self, way: Way, random: Random) -> Result<Caches> {
        let start = self.recording.start(self.campaign.board, way)?;
        let caches = Caches::of_logs(&self.images, &start, &self.recording.logs(way), random)?;
        match self.recording.export_log(way) {
            Some(log) => caches.with_export(&log),
            None => Ok(caches),
        }
    }
}

/// Disks that are to be looked at.
struct Left {
    kit: Kit,
    number: usize,
    way: Way,
    moment: Moment,
    unflushed: String,
    /// The trial was promised before: the record that says so was durable.
    is_on_trial: bool,
    /// The records that were durable before, while a trial is kept.
    durable: Vec<String>,
}

impl Replay<'_> {
    fn way(
        &self,
        way: Way,
        count: usize,
        draw: Draw,
        show: &mut dyn FnMut(&Row),
    ) -> Result<Vec<Row>> {
        // Other numbers on the way back.
        let seed = match way {
            Way::Apply => draw.seed * 2,
            Way::Undo => draw.seed * 2 + 1,
            Way::Verify => !draw.seed,
        };
        let mut random = Random::of(seed);
        let marks = self.recording.marks(way);
        let cuts = cuts(marks, count, &mut random);
        let mut caches = self.caches(way, random)?;
        let promised = match way {
            Way::Apply => promised(marks),
            Way::Undo | Way::Verify => None,
        };
        std::thread::scope(|threads| {
            let (to_look, lefts) = sync_channel::<Left>(0);
            let (rows, found) = channel();
            let lefts = Arc::new(Mutex::new(lefts));
            for _ in 0..self.campaign.jobs.max(1) {
                let (lefts, rows) = (Arc::clone(&lefts), rows.clone());
                threads.spawn(move || self.look_at_all(&lefts, &rows, draw));
            }
            drop((lefts, rows));
            let mut all = Vec::new();
            for (number, (moment, entries)) in cuts.into_iter().enumerate() {
                let (kit, unflushed) = caches.cut_at(&self.images, &entries)?;
                let left = Left {
                    kit,
                    number,
                    way,
                    moment,
                    unflushed,
                    is_on_trial: promised.is_some_and(|promised| is_behind(&entries, promised)),
                    durable: match way {
                        Way::Verify => durable(marks, &entries),
                        Way::Apply | Way::Undo => Vec::new(),
                    },
                };
                ensure!(to_look.send(left).is_ok(), "nobody looks at cuts any more");
                all.extend(found.try_iter().inspect(|row| show(row)));
            }
            drop(to_look);
            all.extend(found.iter().inspect(|row| show(row)));
            Ok(all)
        })
    }

    fn look_at_all(&self, lefts: &Mutex<Receiver<Left>>, rows: &Sender<Row>, draw: Draw) {
        loop {
            let next = lefts.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(left) = next else { return };
            if rows.send(self.look(left, draw)).is_err() {
                return;
            }
        }
    }

    fn look(&self, left: Left, draw: Draw) -> Row {
        let started = Instant::now();
        let mut row = Row {
            way: left.way,
            moment: left.moment.clone(),
            unflushed: left.unflushed.clone(),
            booted: "nothing".to_owned(),
            ended: "-".to_owned(),
            wrong: Vec::new(),
            took: Duration::ZERO,
        };
        if let Err(error) = self.judge(left, draw, &mut row) {
            row.wrong.push(format!("{error:#}"));
        }
        row.took = started.elapsed();
        row
    }

    fn judge(&self, left: Left, draw: Draw, row: &mut Row) -> Result<()> {
        let campaign = &self.campaign;
        let end = (!draw.looks_only).then(|| match left.way {
            // Going on with what a trial has begun needs its root, which is not there for this machine.
            Way::Verify => Ended::Undo,
            Way::Apply | Way::Undo => end_of(left.number, campaign.resume_each),
        });
        let known = match (left.way, &self.kept) {
            (Way::Verify, Some((known, _))) => known,
            _ => &self.known,
        };
        let is_needed_again = draw.board_each > 0 || campaign.keep_failures.is_some();
        let copy =
            if is_needed_again { Some(left.kit.temporary_copy(&self.images)?) } else { None };
        let kit = copy.as_ref().unwrap_or(&left.kit);
        let found = judge::look(&self.images, kit, &campaign.rubus, end, known)?;
        drop(copy);
        let verdict = known.verdict(&found);
        row.booted = verdict.root;
        row.ended = verdict.ended;
        row.wrong = verdict.wrong;
        if left.is_on_trial && !found.is_on_trial() {
            let lost = "the trial was promised, and the journal does not say so";
            row.wrong.push(lost.to_owned());
        }
        let durable: Vec<&str> = left.durable.iter().map(String::as_str).collect();
        row.wrong.extend(found.lost_records(&durable));
        let each = draw.board_each;
        if each > 0 && found.is_on_trial() {
            self.start_on_trial(&left.kit, row);
        }
        let is_drawn = each > 0 && left.number % each == each / 2;
        if each > 0 && (is_drawn || !row.wrong.is_empty()) {
            self.start(left, row);
        } else if let (false, Some(directory)) = (row.wrong.is_empty(), &campaign.keep_failures) {
            let name = format!("{} {}", left.way.word(), left.number);
            let name = name.replace(' ', "-");
            left.kit.copy_to(&directory.join(name))?;
        }
        Ok(())
    }

    /// Makes the start on trial, for which what a cut left waits, on a board. What both say is wrong.
    fn start_on_trial(&self, kit: &Kit, row: &mut Row) {
        let lab = Lab { cache: self.cache, campaign: &self.campaign };
        let copy = kit.temporary_copy(&self.images);
        let wrong = copy.and_then(|kit| lab.keep_trial(&kit, &self.reference.earlier));
        let wrong = wrong.unwrap_or_else(|error| vec![format!("{error:#}")]);
        let wrong = wrong.into_iter();
        row.wrong.extend(wrong.map(|wrong| format!("on trial, on a board: {wrong}")));
        row.booted.push_str(" (on a board too)");
    }

    /// Starts what a cut left on a board. What both say is wrong.
    fn start(&self, left: Left, row: &mut Row) {
        let cut = Cut {
            kit: left.kit,
            way: left.way,
            moment: left.moment,
            unflushed: left.unflushed,
            end: match left.number % 2 {
                0 => Ended::Undo,
                _ => Ended::Resume,
            },
            // Without its server a board has to start from the card, and the change can still be undone.
            is_served: left.number % 4 != 0,
        };
        let lab = Lab { cache: self.cache, campaign: &self.campaign };
        let (seen, evidence) = lab.look(&cut, &self.reference);
        let good = |evidence: &Evidence| match (&self.kept, evidence.is_on_trial) {
            (Some((_, kept)), false) if cut.way == Way::Verify => kept,
            _ => &self.good,
        };
        let wrong = evidence.map(|evidence| {
            let good = good(&evidence);
            evidence.losses(good)
        });
        let wrong = seen.wrong.into_iter().chain(wrong.into_iter().flatten());
        row.wrong.extend(wrong.map(|wrong| format!("on a board: {wrong}")));
        // What was said of the trial stays.
        let trial = row.booted.split_once(',').map(|(_, trial)| format!(",{trial}"));
        row.booted = format!("{} (board){}", seen.booted, trial.unwrap_or_default());
        row.ended = seen.ended;
    }
}

/// How long the logs were when the record was durable that promises the start on trial.
fn promised(marks: &[Mark]) -> Option<&[usize]> {
    let promise = marks.iter().find(|mark| mark.record == "on_trial");
    promise.map(|mark| &*mark.entries)
}

/// The records that were durable when the logs had these lengths.
fn durable(marks: &[Mark], cut: &[usize]) -> Vec<String> {
    let before = marks.iter().filter(|mark| is_behind(cut, &mark.entries));
    let records = before.map(|mark| mark.record.clone());
    records.filter(|record| !record.is_empty()).collect()
}

/// Whether a cut came after the logs had these lengths.
fn is_behind(cut: &[usize], entries: &[usize]) -> bool {
    cut.iter().zip(entries).all(|(cut, before)| cut >= before)
}

/// How a cut is ended here: every `resume_each`-th with `resume`, none when that is 0.
fn end_of(number: usize, resume_each: usize) -> Ended {
    if resume_each > 0 && number % resume_each == resume_each - 1 {
        Ended::Resume
    } else {
        Ended::Undo
    }
}

/// Moments for cuts and how long the logs were then, in their order. Each interval between two marks is as probable as the
/// others, whatever it wrote; within one, a cut comes anywhere in what one disk did, and at its end where several wrote: their logs
/// have no common order.
fn cuts(marks: &[Mark], count: usize, random: &mut Random) -> Vec<(Moment, Vec<usize>)> {
    let pairs: Vec<[&Mark; 2]> = marks.windows(2).map(|pair| [&pair[0], &pair[1]]).collect();
    let pairs: Vec<_> = pairs.into_iter().filter(|[from, to]| from.entries != to.entries).collect();
    if pairs.is_empty() {
        return Vec::new();
    }
    let mut drawn: Vec<(usize, Vec<usize>)> = (0..count)
        .map(|number| {
            // One in each interval as long as there are enough cuts, the rest anywhere.
            let place = if number / pairs.len() < count / pairs.len() {
                number % pairs.len()
            } else {
                random.number(pairs.len() as u64) as usize
            };
            let [from, to] = pairs[place];
            (place, super::caches::moment(&from.entries, &to.entries, random))
        })
        .collect();
    drawn.sort();
    let moment = |(place, entries): (usize, Vec<usize>)| {
        let [_, to] = pairs[place];
        let is_at_end = entries == to.entries;
        (Moment::Sync(words(to, is_at_end)), entries)
    };
    drawn.into_iter().map(moment).collect()
}

/// Where a cut was.
pub(super) fn words(mark: &Mark, is_at_end: bool) -> String {
    let when = if is_at_end { "after" } else { "before the end of" };
    let what = match (&*mark.record, &*mark.call) {
        ("", "") => "programs and threads",
        ("", call) => call,
        (record, _) => record,
    };
    match &*mark.step {
        "" => format!("{when} {what}"),
        step if what.contains(step) => format!("{when} {what}"),
        step => format!("{when} {what} in {step}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_nth_cut_is_resumed() {
        let resumed = |each| (0..6).map(move |n| end_of(n, each) == Ended::Resume);
        assert_eq!(resumed(0).filter(|&it| it).count(), 0);
        assert_eq!(resumed(1).filter(|&it| it).count(), 6);
        let third = [false, false, true, false, false, true];
        assert!(resumed(3).eq(third));
    }

    #[test]
    fn a_trial_is_promised_once_its_record_is_durable() {
        let mark = |record: &str, entries: [usize; 2]| Mark {
            record: record.into(),
            entries: entries.into(),
            ..Mark::default()
        };
        let mut marks =
            vec![mark("done 9 (x)", [9, 4]), mark("on_trial", [12, 4]), mark("", [20, 5])];
        let seen = promised(&marks).unwrap();
        assert!(is_behind(&[12, 4], seen) && is_behind(&[15, 5], seen));
        assert!(!is_behind(&[11, 4], seen) && !is_behind(&[12, 3], seen));
        marks.remove(1);
        assert!(promised(&marks).is_none());
    }

    #[test]
    fn cuts_come_in_order_in_each_interval_in_which_something_was_written() {
        let mark = |call: &str, entries: [usize; 2]| Mark {
            call: call.into(),
            entries: entries.into(),
            ..Mark::default()
        };
        let marks =
            [mark("", [5, 1]), mark("one", [9, 1]), mark("nothing", [9, 1]), mark("both", [12, 3])];
        for (seed, count) in [(1, 2), (2, 7), (3, 40)] {
            let drawn = cuts(&marks, count, &mut Random::of(seed));
            assert_eq!(drawn.len(), count);
            let mut before = vec![5, 1];
            let mut seen = [0, 0];
            for (moment, entries) in drawn {
                let grows = before.iter().zip(&entries).all(|(before, now)| before <= now);
                assert!(grows, "{before:?} {entries:?}");
                before.clone_from(&entries);
                let Moment::Sync(words) = moment else { panic!("{moment:?}") };
                match words.rsplit(' ').next() {
                    Some("one") => {
                        assert!((5..=9).contains(&entries[0]) && entries[1] == 1);
                        assert_eq!(words == "after one", entries[0] == 9, "{words}");
                        seen[0] += 1;
                    }
                    Some("both") => {
                        assert_eq!(entries, [12, 3]);
                        seen[1] += 1;
                    }
                    _ => panic!("{words}"),
                }
            }
            assert!(seen.iter().all(|&seen| seen >= count / 2), "{seen:?}");
        }
        assert!(cuts(&[], 3, &mut Random::of(1)).is_empty());
    }
}
