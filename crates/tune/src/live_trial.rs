//! A trial on this machine: turns of the engine, and settings through the one place that changes them.

use std::path::Path;

use rubus_host::{Files, Live};
use rubus_measure::{BenchError, ByTurn};
use rubus_vocabulary::result::JobResult;
use rubus_vocabulary::spec::Direction;

use crate::course::{Bench, Ended, Side, Switch, Turn};
use crate::live::{Fate, LiveSettings, Restored};
use crate::setting::{Candidate, Work};

/// How long a turn lasts after its warm-up, in seconds.
const TURN_S: f64 = 1.0;
/// A turn with fewer operations than this is too short...
const ENOUGH_OPERATIONS: u64 = 100;
/// ... and lasts longer from then on, up to this.
const LONGEST_TURN_S: f64 = 4.0;
/// What is around a turn, in seconds, until it is known.
const AROUND_S: f64 = 0.9;
/// Share of what is read that must come from the disk.
const FROM_DISK: f64 = 0.5;
const SECTOR: f64 = 512.0;

/// Measures on the disk below a directory.
pub struct LiveBench<'t, 's, 'a> {
    turns: &'t mut ByTurn<'s, 'a>,
    disk: String,
    files: Live,
    start_ns: u64,
    most_s: f64,
    turn_bytes: u64,
    left_bytes: u64,
    /// Length of a turn of each work, and how long it took with all around it.
    lengths: [(f64, f64); Work::ALL.len()],
}

impl<'t, 's, 'a> LiveBench<'t, 's, 'a> {
    /// For at most `most_s` seconds from now, and at most `write_bytes` written, `turn_bytes` in a turn.
    pub fn new(
        turns: &'t mut ByTurn<'s, 'a>,
        disk: &str,
        most_s: f64,
        turn_bytes: u64,
        write_bytes: u64,
    ) -> LiveBench<'t, 's, 'a> {
        let start_ns = turns.now_ns();
        LiveBench {
            turns,
            disk: disk.into(),
            files: Live::new(),
            start_ns,
            most_s,
            turn_bytes,
            left_bytes: write_bytes,
            lengths: [(TURN_S, TURN_S + AROUND_S); Work::ALL.len()],
        }
    }

    fn seconds_since(&self, start_ns: u64) -> f64 {
        self.turns.now_ns().saturating_sub(start_ns) as f64 / 1e9
    }

    /// Bytes that the disk has read since it was attached.
    fn read_bytes(&self) -> Option<f64> {
        let path = Path::new("/sys/block").join(&self.disk).join("stat");
        let text = self.files.text(&path).ok()?;
        // Documentation/block/stat.rst: the third field is sectors read.
        let sectors: f64 = text.split_whitespace().nth(2)?.parse().ok()?;
        Some(sectors * SECTOR)
    }
}

fn place(work: Work) -> usize {
    Work::ALL.iter().position(|one| *one == work).unwrap_or_default()
}

impl Bench for LiveBench<'_, '_, '_> {
    fn turn(&mut self, work: Work) -> Result<Turn, Ended> {
        let at = place(work);
        let (seconds, _) = self.lengths[at];
        let (began_ns, before) = (self.turns.now_ns(), self.read_bytes());
        self.turns.left_s = (self.most_s - self.elapsed_s()).max(0.0);
        let results = match self.turns.turn(at, seconds) {
            Ok(Ok(results)) => results,
            Ok(Err(why)) => return Ok(Turn::Unable(why)),
            Err(BenchError::Interrupted { .. }) => return Err(Ended::Stopped),
            Err(error) => return Err(Ended::Failed(error.to_string())),
        };
        if work.writes() {
            self.left_bytes = self.left_bytes.saturating_sub(self.turn_bytes);
        }
        self.lengths[at].1 = self.seconds_since(began_ns).max(seconds);
        let wanted = if work == Work::Commit { Direction::Write } else { Direction::Read };
        let Some(result) = results.iter().find(|result| result.direction == wanted) else {
            return Ok(Turn::Unable("it gave no result".into()));
        };
        if let Some(why) = unseen(result, before, self.read_bytes(), &self.disk) {
            return Ok(Turn::Unable(why));
        }
        if result.operations < ENOUGH_OPERATIONS && seconds < LONGEST_TURN_S {
            // The rounds before are not as long, but each round's two turns are.
            self.lengths[at].0 = (seconds * 2.0).min(LONGEST_TURN_S);
        }
        Ok(Turn::Rate { per_second: result.iops.value, operations: result.operations })
    }

    fn elapsed_s(&self) -> f64 {
        self.seconds_since(self.start_ns)
    }

    fn turn_s(&self, work: Work) -> f64 {
        self.lengths[place(work)].1
    }

    fn may_write(&self, work: Work, turns: usize) -> bool {
        !work.writes() || self.left_bytes >= self.turn_bytes.saturating_mul(turns as u64)
    }
}

/// Why a result says nothing about the disk: what was read did not come from it.
fn unseen(
    result: &JobResult,
    before: Option<f64>,
    after: Option<f64>,
    disk: &str,
) -> Option<String> {
    if result.direction == Direction::Write {
        return None;
    }
    let read = after? - before?;
    let moved = result.operations as f64 * f64::from(result.block_bytes);
    (read < moved * FROM_DISK).then(|| {
        format!(
            "it cannot see {disk}: of {:.0} MB read only {:.0} MB came from it, the rest from a cache above it",
            moved / 1e6,
            read.max(0.0) / 1e6
        )
    })
}

/// Changes the settings of this machine.
pub struct LiveSwitch<'l, 'h> {
    live: &'l mut LiveSettings<'h>,
    /// What was to be told when a setting was restored.
    pub restored: Vec<Restored>,
}

impl<'l, 'h> LiveSwitch<'l, 'h> {
    /// Through these.
    pub fn new(live: &'l mut LiveSettings<'h>) -> LiveSwitch<'l, 'h> {
        LiveSwitch { live, restored: Vec::new() }
    }
}

fn value(candidate: &Candidate, side: Side) -> &str {
    match side {
        Side::Present => &candidate.from,
        Side::Tried => &candidate.to,
    }
}

impl Switch for LiveSwitch<'_, '_> {
    fn switch(&mut self, candidate: &Candidate, side: Side) -> Result<(), String> {
        let value = value(candidate, side);
        let set = |knob| {
            if !self.live.is_under_trial(knob) {
                // Since the candidates were listed another program may have changed it.
                self.live.check(knob, &candidate.from)?;
            }
            self.live.set(knob, value)
        };
        candidate.knobs.iter().try_for_each(set).map_err(|error| error.to_string())
    }

    fn check(&mut self, candidate: &Candidate, side: Side) -> Result<(), String> {
        let value = value(candidate, side);
        candidate
            .knobs
            .iter()
            .try_for_each(|knob| self.live.check(knob, value))
            .map_err(|error| error.to_string())
    }

    fn restore(&mut self, candidate: &Candidate) {
        for knob in candidate.knobs.iter().rev() {
            let restored = self.live.restore(knob);
            self.restored.extend(restored.filter(|one| one.fate != Fate::Restored));
        }
    }
}
