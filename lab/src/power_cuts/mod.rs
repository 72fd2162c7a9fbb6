//! Cuts a board's power in the middle of a change and of its undoing, again and again: does it boot,
//! is anything of the old system lost, does the change end cleanly?
//!
//! One change serves for many cuts. When a cut is due, the board is paused and its disks are
//! copied; the copy is what a cut at this moment would have left. It is booted on a second board,
//! ended there, and looked at from outside; the first board goes on. A pause alone does not show
//! a write that was half done when the power went, or one that a disk had taken and lost: that is what disks with
//! write caches are for ([`Campaign::lossy`]).
//!
//! `pass` goes one way and stops, `look` looks at what a cut left, `network` has the server of a change that
//! needs one, `report` shows it; `write_log` reads what the emulator logs of a disk, `loss` says what a cut leaves of it, and
//! `caches` makes the disks from that. `record` keeps the logs of one change, `replay` makes any number of cuts from them, `judge` looks at
//! one without a board: `start` says what it would start, `other_root` finds that root, `trial` does both for a start on trial, `kept` reads
//! how far keeping that had come, `untouched` finds what need not be read, and `files` compares what is there. `pool` is where their disks are cheap, and `missing` leaves flushes out.

mod caches;
mod files;
mod home;
mod judge;
mod kept;
mod look;
mod loss;
pub mod missing;
mod network;
mod other_root;
mod pass;
mod pool;
pub mod record;
pub mod replay;
mod report;
mod start;
mod trial;
mod untouched;
mod write_log;

use std::io::{Write, stderr};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, bail};

use crate::board::Board;
use crate::cache::Cache;
use crate::kit::{Kit, UsbDisk};
use crate::outside::{self, Manifest};
use crate::session::{Options, Session};

use home::Home;
use look::{Change, Ended, Evidence};
use pass::{Left, Passed};
pub use report::{line, markdown};

/// For what takes seconds on a free machine.
const SOON: Duration = Duration::from_secs(180);

/// Where the product keeps plans and journals.
const STATE_DIRECTORY: &str = "/var/lib/rubus";

/// What is tried.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The board whose power is cut.
    pub board: Board,
    /// Its USB disks.
    pub usb: Vec<UsbDisk>,
    /// A static rubus for it.
    pub rubus: PathBuf,
    /// The network disk that the change needs. The server goes on when the board's power is cut.
    pub export: Option<Export>,
    /// What follows `rubus apply`: the recipe, its options and arguments. `{usb0}` stands for the
    /// board's name of a USB disk, `{export}` for the address of the network disk.
    pub change: Vec<String>,
    /// Shell script that prepares the board first.
    pub prepare: Option<String>,
    /// What else is tried on the board before it applies the change. It must leave nothing behind.
    pub before: Option<fn(&mut Session)>,
    /// What else is tried on the board that has applied the change and was started again, on a copy of its disks.
    pub after: Option<fn(&mut Session)>,
    /// Cuts at random moments, half of them while applying, half while undoing.
    pub runs: usize,
    /// Where else the power is cut.
    pub stops: Stops,
    /// Of these stops, only those whose words contain one of these; all when there is none.
    pub only: Vec<String>,
    /// Each how many-th cut while applying is ended with `resume`, the others with `undo`. Resuming an
    /// early cut takes as long as the whole change.
    pub resume_each: usize,
    /// How long applying and undoing take at least on this machine; without it that is measured with a run
    /// of its own before the random cuts.
    pub lengths: Option<[Duration; 2]>,
    /// How many boards look at cuts at the same time.
    pub jobs: usize,
    /// Starting value of the random numbers.
    pub seed: u64,
    /// The disks have write caches, of which a cut loses, keeps, tears or reorders what was not flushed, as random numbers
    /// from this starting value on say. The card is in a USB reader then.
    pub lossy: Option<u64>,
    /// A flush of the product that is left out, to see whether its absence is found.
    pub without_flush: Option<LeftOut>,
    /// How long a change, or its end, may take.
    pub limit: Duration,
    /// Where the disks of failed cuts go.
    pub keep_failures: Option<PathBuf>,
}

/// A network disk that the boards have.
#[derive(Clone, Debug)]
pub struct Export {
    /// Size in bytes.
    pub bytes: u64,
    /// The port of this machine on which it is served.
    pub port: u16,
    /// A rubus for this machine, which serves it.
    pub rubus: PathBuf,
}

/// A call of the product that makes something durable, and is answered without being done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name, such as `fsync`.
    pub call: String,
    /// Which one of these calls, counted from 1.
    pub number: usize,
}

/// Exact moments at which the power is cut, beside the random ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stops {
    /// No exact moments, random ones only.
    No,
    /// After each record of the journal, when it has just become durable.
    Records,
    /// After each rename, removal and flush of a file or directory too.
    Syncs,
}

/// Which way the change is gone when the power is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// The change is applied.
    Apply,
    /// The change is undone.
    Undo,
    /// What `rubus verify` does on a trial that came up: it keeps it. Only a recording goes this way.
    Verify,
}

impl Way {
    /// The product's word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Undo => "undo",
            Self::Verify => "verify",
        }
    }
}

/// When the power was cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// After the command had run for this time.
    Random(Duration),
    /// A record of the journal had just become durable.
    Record(String),
    /// A call that makes something durable, or changes a directory, had just ended.
    Sync(String),
}

/// What came of one cut.
#[derive(Clone, Debug)]
pub struct Row {
    /// Which way the change was gone.
    pub way: Way,
    /// When the power was cut.
    pub moment: Moment,
    /// What became of what was not flushed; empty when that is on the disks.
    pub unflushed: String,
    /// What booted then: device and filesystem of the root.
    pub booted: String,
    /// What ended the change, and how.
    pub ended: String,
    /// What is wrong; empty when all is well.
    pub wrong: Vec<String>,
    /// How long looking at this cut took.
    pub took: Duration,
}

/// What a campaign has given.
#[derive(Clone, Debug)]
pub struct Results {
    /// One row for each cut.
    pub rows: Vec<Row>,
    /// Records that were written while applying and while undoing, in the run with exact stops.
    pub records: [usize; 2],
    /// How long applying and undoing took, without the time in which the board stood still.
    pub lengths: [Duration; 2],
}

/// A cut that is to be looked at.
struct Cut {
    kit: Kit,
    way: Way,
    moment: Moment,
    unflushed: String,
    end: Ended,
    /// Whether the server of its network disk is there afterwards.
    is_served: bool,
}

/// What is known of a good end.
struct Reference {
    /// The root on which the change is made.
    home: Home,
    /// Files of the plain system.
    plain: Manifest,
    /// Changes that were made there before.
    earlier: Vec<Change>,
}

/// Runs a campaign and shows each row as it is known; gives all of them.
///
/// # Errors
/// When the change fails without any cut, or the lab itself does. A cut with a bad end is a row.
pub fn run(cache: &Cache, campaign: &Campaign, show: &mut dyn FnMut(&Row)) -> Result<Results> {
    let lab = Lab { cache, campaign };
    let plain = Kit::temporary(cache, campaign.board, &campaign.usb)?;
    if let Some(export) = &campaign.export {
        plain.add_export(export.bytes)?;
    }
    let reference = lab.prepare(&plain)?;
    std::thread::scope(|threads| {
        let (to_look, cuts) = sync_channel::<Cut>(0);
        let (rows, found) = channel();
        let cuts = Arc::new(Mutex::new(cuts));
        let (lab, reference) = (&lab, &reference);
        for _ in 0..campaign.jobs.max(1) {
            let (cuts, rows) = (Arc::clone(&cuts), rows.clone());
            threads.spawn(move || lab.look_at_all(&cuts, &rows, reference));
        }
        drop((cuts, rows));
        let course = CampaignRun {
            lab,
            to_look,
            found,
            waiting: 0,
            number: 0,
            passes: 0,
            unjudged: Vec::new(),
            rows: Vec::new(),
            show,
        };
        course.run(&plain, reference)
    })
}

/// A campaign under way.
struct CampaignRun<'a> {
    lab: &'a Lab<'a>,
    to_look: SyncSender<Cut>,
    found: Receiver<(Row, Option<Evidence>)>,
    /// Cuts that were given out to be looked at.
    waiting: usize,
    /// Cuts so far.
    number: usize,
    /// How often the change was gone one way.
    passes: u64,
    /// What cannot be judged before it is known what the change itself does.
    unjudged: Vec<(Row, Evidence)>,
    rows: Vec<Row>,
    show: &'a mut dyn FnMut(&Row),
}

impl CampaignRun<'_> {
    fn run(mut self, plain: &Kit, reference: &Reference) -> Result<Results> {
        let campaign = self.lab.campaign;
        let mut random = Random::of(campaign.seed);
        let mut draw = |way: Way, length: Duration| {
            let half = campaign.runs / 2;
            let count = match way {
                Way::Apply => campaign.runs - half,
                Way::Undo => half,
                Way::Verify => 0,
            };
            let mut moments: Vec<Duration> = (0..count).map(|_| random.below(length)).collect();
            moments.sort();
            moments
        };
        let known = campaign.lengths;
        let drawn = known.map(|[apply, undo]| [draw(Way::Apply, apply), draw(Way::Undo, undo)]);
        let [apply_moments, undo_moments] = drawn.clone().unwrap_or_default();

        let applied = self.pass(Way::Apply, plain, apply_moments, campaign.stops)?;
        let changed = reference.home.manifest(&applied.kit)?;
        let root = self.lab.root_of(&applied.kit)?;
        let planned = outside::differences(&reference.plain, &changed, &[STATE_DIRECTORY]);
        let good = Good { planned, root };
        self.settle()?;
        self.judge(&good);
        let undone = self.pass(Way::Undo, &applied.kit, undo_moments, campaign.stops)?;
        let left = reference.home.manifest(&undone.kit)?;
        let differences = outside::differences(&reference.plain, &left, &[STATE_DIRECTORY]);
        if !differences.is_empty() {
            bail!("undoing without any cut leaves\n{}", differences.join("\n"));
        }
        self.settle()?;
        self.judge(&good);

        let lengths = [applied.length, undone.length];
        let rests = match drawn {
            Some(_) => [applied.left, undone.left],
            None => [draw(Way::Apply, lengths[0]), draw(Way::Undo, lengths[1])],
        };
        for (way, kit, mut rest) in [Way::Apply, Way::Undo]
            .into_iter()
            .zip([plain, &applied.kit])
            .zip(rests)
            .map(|((way, kit), rest)| (way, kit, rest))
        {
            // Another pass for moments beyond the end of a quicker run; they are drawn again.
            while !rest.is_empty() {
                let again = self.pass(way, kit, rest, Stops::No)?;
                rest = again.left.iter().map(|_| random.below(again.length)).collect();
                rest.sort();
            }
            self.settle()?;
            self.judge(&good);
        }
        Ok(Results { rows: self.rows, records: [applied.records, undone.records], lengths })
    }

    fn pass(
        &mut self,
        way: Way,
        from: &Kit,
        moments: Vec<Duration>,
        stops: Stops,
    ) -> Result<Passed> {
        let lab = self.lab;
        self.passes += 1;
        let random = lab.campaign.lossy.map(|seed| Random::of(seed + self.passes));
        let passed =
            lab.pass(way, from, moments, stops, random, &mut |left| self.cut(left, way))?;
        let note = format!("{} to the end: {:.0} s", way.word(), passed.length.as_secs_f64());
        writeln!(stderr(), "{note}")?;
        Ok(passed)
    }

    /// Gives disks out to be looked at.
    fn cut(&mut self, left: Left, way: Way) -> Result<()> {
        let each = match way {
            Way::Apply => self.lab.campaign.resume_each.max(1),
            Way::Undo | Way::Verify => 2,
        };
        self.number += 1;
        let end = match self.number % each {
            0 => Ended::Resume,
            _ => Ended::Undo,
        };
        let cut = Cut {
            kit: left.kit,
            way,
            moment: left.moment,
            unflushed: left.unflushed,
            end,
            // Without its server a board has to start from the card, and the change can still be undone.
            is_served: end == Ended::Resume || self.number % 4 != 1,
        };
        if self.to_look.send(cut).is_err() {
            bail!("nobody looks at cuts any more");
        }
        self.waiting += 1;
        if self.lab.campaign.jobs <= 1 {
            return self.settle();
        }
        while let Ok(looked) = self.found.try_recv() {
            self.take(looked);
        }
        Ok(())
    }

    /// Waits for every cut that was given out.
    fn settle(&mut self) -> Result<()> {
        while self.waiting > 0 {
            let looked = self.found.recv()?;
            self.take(looked);
        }
        Ok(())
    }

    fn take(&mut self, (row, evidence): (Row, Option<Evidence>)) {
        self.waiting -= 1;
        match evidence {
            Some(evidence) => self.unjudged.push((row, evidence)),
            None => self.give(row),
        }
    }

    fn judge(&mut self, good: &Good) {
        for (mut row, evidence) in std::mem::take(&mut self.unjudged) {
            row.wrong.extend(evidence.losses(good));
            self.give(row);
        }
    }

    fn give(&mut self, row: Row) {
        (self.show)(&row);
        self.rows.push(row);
    }
}

/// What the change itself does, without any cut.
struct Good {
    /// What is different on the card.
    planned: Vec<String>,
    /// Device and filesystem of the root.
    root: String,
}

/// A campaign with the machine that it runs on.
struct Lab<'a> {
    cache: &'a Cache,
    campaign: &'a Campaign,
}

impl Lab<'_> {
    fn boot(&self, kit: &Kit) -> Result<Session> {
        Session::boot_kit(self.cache, kit, &self.options())
    }

    fn options(&self) -> Options {
        Options {
            push: vec![self.campaign.rubus.clone()],
            network: self.campaign.export.is_some(),
            card_in_reader: self.campaign.lossy.is_some(),
            ..Options::default()
        }
    }

    /// The one start for which the firmware reads `tryboot.txt`.
    fn boot_on_trial(&self, kit: &Kit) -> Result<Session> {
        let mut options = self.options();
        options.switches.tryboot = true;
        Session::boot_kit(self.cache, kit, &options)
    }

    /// The start from which a way is gone, and what it writes is logged when its disks have caches.
    fn boot_logged(&self, kit: &Kit, way: Way) -> Result<Session> {
        let mut options = Options { logs_writes: self.campaign.lossy.is_some(), ..self.options() };
        options.switches.tryboot = way == Way::Verify;
        Session::boot_kit(self.cache, kit, &options)
    }

    /// Boots a fresh kit once, so that what a first boot makes is there, and prepares it.
    fn prepare(&self, kit: &Kit) -> Result<Reference> {
        let mut board = self.boot(kit)?;
        self.install(&mut board)?;
        let mut earlier = Vec::new();
        if let Some(script) = &self.campaign.prepare {
            board.must(script, "root", self.campaign.limit)?;
            earlier = look::changes(&look::status(&mut board)?)?;
        }
        board.switch_off()?;
        let home = Home::of(self.cache, kit)?;
        if home != Home::Card {
            // What the first start of a root makes belongs to the plain system too.
            self.boot(kit)?.switch_off()?;
        }
        Ok(Reference { plain: home.manifest(kit)?, home, earlier })
    }

    /// The root that a kit starts.
    fn root_of(&self, kit: &Kit) -> Result<String> {
        let kit = kit.temporary_copy(self.cache)?;
        let _server = self.serve(&kit)?;
        let mut board = self.boot(&kit)?;
        let root = look::root(&mut board)?;
        if let Some(after) = self.campaign.after {
            after(&mut board);
        }
        board.switch_off()?;
        Ok(root)
    }

    fn look_at_all(
        &self,
        cuts: &Mutex<Receiver<Cut>>,
        rows: &Sender<(Row, Option<Evidence>)>,
        reference: &Reference,
    ) {
        loop {
            let next = cuts.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(cut) = next else { return };
            if rows.send(self.look(&cut, reference)).is_err() {
                return;
            }
        }
    }
}

/// Numbers that look random and are the same for the same seed (xorshift64).
pub struct Random(u64);

impl Random {
    /// Small seeds that are next to each other give numbers that are not.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, length: Duration) -> Duration {
        length.mul_f64(self.part())
    }

    /// A whole number from 0 on and below `end`; 0 when that is 0.
    pub fn number(&mut self, end: u64) -> u64 {
        // Far below 2^53, so that each number is as probable as the others.
        ((self.part() * end as f64) as u64).min(end.saturating_sub(1))
    }

    /// From 0 on and below 1.
    fn part(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_spread_and_repeatable() {
        let length = Duration::from_secs(100);
        let moments = |seed| {
            let mut random = Random::of(seed);
            (0..200).map(|_| random.below(length)).collect::<Vec<_>>()
        };
        assert_eq!(moments(7), moments(7));
        assert!(moments(7).iter().all(|moment| *moment < length));
        let early = moments(7).iter().filter(|m| m.as_secs() < 50).count();
        assert!((60..140).contains(&early), "{early} of 200 in the first half");
    }
}
