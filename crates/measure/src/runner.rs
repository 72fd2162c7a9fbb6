//! One job that runs: its accounts, each with its own stopping rule.
//!
//! A job of one kind of operation has one account, a mix has two. A mix has been measured long enough
//! when both have.

use std::cell::Cell;
use std::time::Duration;

use rubus_stats::estimate::Estimate;
use rubus_stats::stop::Caveat;
use rubus_stats::{Decision, Measured, StopRule};
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::result::{Access, Outcome};
use rubus_vocabulary::spec::{Direction, Job, StopSpec};

use crate::completions::Completions;
use crate::course;
use crate::mailbox::SLICE_NS;
use crate::mailbox::SLICES_PER_BIN;
use crate::rig::{Rig, Running};
use crate::work::Work;

/// One job with the work that it means here.
#[derive(Clone, Debug)]
pub(crate) struct Task<'a> {
    /// As the suite says it.
    pub(crate) job: &'a Job,
    /// As the target needs it.
    pub(crate) work: Work,
    /// What its results are called, if not after what it does.
    pub(crate) title: Option<String>,
    /// How the target is reached.
    pub(crate) access: Access,
    /// The same, where results have to say it because it is not the target's usual way.
    pub(crate) unusual_access: Option<Access>,
    /// Its file's only descriptor has to be switched to that way.
    pub(crate) is_switched: bool,
    /// Which of several files it works on.
    pub(crate) on: Option<String>,
    /// Doubts that are known before it begins.
    pub(crate) doubts: Vec<Doubt>,
}

/// A job that runs.
pub(crate) struct Runner<'a> {
    /// What it does.
    pub(crate) task: &'a Task<'a>,
    /// The workers of the job.
    pub(crate) running: Box<dyn Running>,
    /// One account for each kind of operation, in the order of the running completions.
    pub(crate) parts: Vec<Part>,
    seen_operations: u64,
    seen_at_ns: u64,
}

/// The account of one kind of operation.
pub(crate) struct Part {
    /// Reads or writes.
    pub(crate) direction: Direction,
    /// When it has been measured long enough.
    pub(crate) rule: StopRule,
    bins_fed: usize,
    decision: Decision,
    /// What the rule said after this number of bins: operations and bytes per second.
    said: Cell<Option<(usize, Estimate, Estimate)>>,
}

impl<'a> Runner<'a> {
    /// Starts the work of the task.
    ///
    /// # Errors
    /// In words, when it cannot begin.
    pub(crate) fn start(rig: &mut dyn Rig, task: &'a Task<'a>) -> Result<Self, String> {
        let running = rig.start(&task.work)?;
        let seen_at_ns = running.origin_ns();
        let part = |direction| Part {
            direction,
            rule: task.rule(bin_s(SLICES_PER_BIN)),
            bins_fed: 0,
            decision: Decision::Continue,
            said: Cell::new(None),
        };
        Ok(Runner {
            task,
            running,
            parts: task.work.sides().into_iter().map(part).collect(),
            seen_operations: 0,
            seen_at_ns,
        })
    }

    /// Lets it run for at most `most`, feeds the rules; true when it has ended.
    pub(crate) fn poll(&mut self, most: Duration, rig: &dyn Rig) -> bool {
        let ended = self.running.poll(most);
        for (part, completions) in self.parts.iter_mut().zip(self.running.completions_mut()) {
            let fed = part.bins_fed;
            for bin in completions.take_bins() {
                // After its time a job only waits for what was in flight, which is no rate.
                if self.task.work.general.is_some() && part.decision == Decision::Capped {
                    continue;
                }
                part.decision = part.rule.push(bin);
                part.bins_fed += 1;
            }
            if course::is_beyond_the_cliff(self.task.job, &part.rule, fed, part.bins_fed) {
                part.decision = Decision::Converged;
            }
        }
        let operations = self.operations();
        if operations != self.seen_operations {
            self.seen_operations = operations;
            self.seen_at_ns = rig.now_ns();
        }
        ended
    }

    /// Operations that completed so far, warm-up included.
    pub(crate) fn operations(&self) -> u64 {
        self.running.completions().iter().map(Completions::operations).sum()
    }

    /// Bytes that were moved so far in one direction, warm-up included.
    pub(crate) fn moved_bytes(&self, direction: Direction) -> u64 {
        let parts = self.parts.iter().zip(self.running.completions());
        parts
            .filter(|(part, _)| part.direction == direction)
            .map(|(_, completions)| completions.bytes())
            .sum()
    }

    /// Whether it has been measured long enough, or for too long.
    pub(crate) fn decision(&self) -> Decision {
        let decided = |wanted| move |part: &Part| part.decision == wanted;
        if self.parts.iter().any(decided(Decision::Capped)) {
            return Decision::Capped;
        }
        let moved = self.moved_bytes(Direction::Read) + self.moved_bytes(Direction::Write);
        let suffices = self.task.work.general.is_none() || moved >= self.task.job.stop.min_bytes;
        if suffices && self.parts.iter().all(decided(Decision::Converged)) {
            Decision::Converged
        } else {
            Decision::Continue
        }
    }

    /// Whether it has been measured long enough to end by itself.
    pub(crate) fn is_done(&self, rig: &dyn Rig) -> bool {
        self.decision() != Decision::Continue || self.is_overdue(rig) || self.has_ended()
    }

    /// Whether its time is over. The rule counts whole bins only; while the device does nothing it sees
    /// none.
    pub(crate) fn is_overdue(&self, rig: &dyn Rig) -> bool {
        let lasted_ns = rig.now_ns().saturating_sub(self.running.origin_ns());
        seconds(lasted_ns) >= self.task.job.stop.max_seconds
    }

    /// Whether all its workers have ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.running.completions().iter().all(Completions::all_ended)
    }

    /// The first failure of a worker.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.running.completions().iter().find_map(Completions::failure)
    }

    /// How long nothing has completed though something was owed.
    pub(crate) fn idle_ns(&self, now_ns: u64) -> u64 {
        let rests = self.running.completions().iter().map(Completions::rests_until_ns);
        let rested_ns = rests.max().unwrap_or(0);
        now_ns.saturating_sub(self.seen_at_ns.max(rested_ns))
    }

    /// Whether anything counts already.
    pub(crate) fn is_measuring(&self) -> bool {
        self.parts.iter().any(|part| part.rule.measured_s() > 0.0)
    }

    /// Operations and bytes per second in the last second, of all kinds together.
    pub(crate) fn recent(&self) -> (f64, f64) {
        let (mut iops, mut bytes_per_second) = (0.0, 0.0);
        for completions in self.running.completions() {
            let lasted_s = bin_s(completions.recent().len());
            if lasted_s > 0.0 {
                let operations: u64 = completions.recent().map(|s| u64::from(s.operations)).sum();
                let bytes: u64 = completions.recent().map(|slice| slice.bytes).sum();
                iops += operations as f64 / lasted_s;
                bytes_per_second += bytes as f64 / lasted_s;
            }
        }
        (iops, bytes_per_second)
    }

    /// What the rules say so far, of all kinds together: operations and bytes per second.
    pub(crate) fn so_far(&self) -> (Estimate, Estimate) {
        let said: Vec<(Estimate, Estimate)> = self.parts.iter().map(Part::so_far).collect();
        (sum(said.iter().map(|s| s.0)), sum(said.iter().map(|s| s.1)))
    }
}

/// The sum of estimates whose errors have nothing to do with one another.
fn sum(estimates: impl Iterator<Item = Estimate>) -> Estimate {
    let (mut value, mut down, mut up) = (0.0, 0.0_f64, 0.0_f64);
    for estimate in estimates {
        value += estimate.value;
        down = down.hypot(estimate.value - estimate.low);
        up = up.hypot(estimate.high - estimate.value);
    }
    Estimate::new(value, (value - down).max(0.0), value + up)
}

impl Task<'_> {
    /// The rule for one of its accounts, with bins of that length.
    fn rule(&self, bin_s: f64) -> StopRule {
        let Some(general) = &self.work.general else {
            return course::rule(self.job, bin_s);
        };
        // The budget in bytes is the script's, and both directions share it.
        let spec = StopSpec { min_bytes: 0, max_bytes: u64::MAX, ..self.job.stop };
        let mut rule = StopRule::new(spec, bin_s);
        if general.is_paced() {
            rule = rule.with_own_pace();
        }
        let shape = self.job.shape.as_deref();
        if let Some(ramp_s) = shape.and_then(|shape| shape.ramp_s) {
            rule = rule.with_ramp_s(ramp_s);
        }
        // A job whose least time is its longest is not to end for its precision either.
        let is_timed = self.job.stop.min_seconds >= self.job.stop.max_seconds;
        if is_timed || shape.is_some_and(|shape| shape.time_based) {
            rule.for_its_whole_time()
        } else {
            rule
        }
    }
}

impl Part {
    /// What the rule says so far. It is asked again only when there is notably more to judge by: of a
    /// long job that takes a while.
    fn so_far(&self) -> (Estimate, Estimate) {
        if let Some((bins, iops, bytes_per_second)) = self.said.get() {
            if self.bins_fed < bins + bins.div_ceil(50) {
                return (iops, bytes_per_second);
            }
        }
        let (iops, bytes_per_second) = (self.rule.iops(), self.rule.bytes_per_second());
        self.said.set(Some((self.bins_fed, iops, bytes_per_second)));
        (iops, bytes_per_second)
    }

    /// What the job gave, and how long the warm-up was.
    pub(crate) fn judge(&self, task: &Task<'_>, completions: &Completions) -> (Measured, u64) {
        let (measured, warm_up_ns) = self.judge_series(task, completions);
        let lasted_ns = completions.last_ns().unwrap_or(0).saturating_sub(completions.origin_ns);
        // Operations that outlasted the job's time are all that was done.
        if measured.operations == 0 && completions.operations() > 0 && lasted_ns > warm_up_ns {
            return (self.whole(task, completions), 0);
        }
        (measured, warm_up_ns)
    }

    /// What the series says, and how long the warm-up was. A job whose budget was spent before there
    /// were enough bins of a tenth of a second is judged by shorter ones.
    fn judge_series(&self, task: &Task<'_>, completions: &Completions) -> (Measured, u64) {
        const ENOUGH_BINS: usize = 30;
        let rule_warm_ns = (self.rule.warm_up_bins() * SLICES_PER_BIN) as u64 * SLICE_NS;
        if self.bins_fed >= ENOUGH_BINS || self.decision == Decision::Converged {
            return (with_tail(&self.rule, task, completions), rule_warm_ns);
        }
        // With fewer bins than that all slices are early ones.
        let usable = (completions.slices() as usize).saturating_sub(completions.warm_slices());
        if usable < 2 {
            return (self.whole(task, completions), 0);
        }
        let sizes = [SLICES_PER_BIN, 10, 4, 2];
        let size = sizes.into_iter().find(|size| usable / size >= ENOUGH_BINS).unwrap_or(1);
        let warm_bins = completions.warm_slices().div_ceil(size);
        let mut rule = task.rule(bin_s(size)).with_warm_up_s(warm_bins as f64 * bin_s(size));
        for bin in completions.early_bins(size) {
            rule.push(bin);
        }
        let warm_up_ns = (warm_bins * size) as u64 * SLICE_NS;
        (with_tail(&rule, task, completions), warm_up_ns)
    }

    /// A job that was over before there was a series: its plain rate, of which nothing is certain.
    fn whole(&self, task: &Task<'_>, completions: &Completions) -> Measured {
        let (operations, bytes) = (completions.operations(), completions.bytes());
        let lasted_ns = completions.last_ns().unwrap_or(0).saturating_sub(completions.origin_ns);
        let measured_s = seconds(lasted_ns);
        let rate = |amount: u64| match lasted_ns {
            0 => 0.0,
            _ => amount as f64 / measured_s,
        };
        let unknown = |value: f64| Estimate::new(value, 0.0, f64::INFINITY);
        Measured {
            measured_s,
            operations,
            bytes,
            iops: unknown(rate(operations)),
            bytes_per_second: unknown(rate(bytes)),
            outcome: Outcome::Inconclusive,
            caveats: vec![Caveat::NotPrecise {
                reached: f64::INFINITY,
                wanted: task.job.stop.relative_half_width,
            }],
            ..self.rule.finish()
        }
    }
}

/// What the rule says, and what a job that came to its own end did after the last whole bin: who says
/// how much is to be moved wants to see that it was. After a stop there is only waiting for what was in
/// flight.
fn with_tail(rule: &StopRule, task: &Task<'_>, completions: &Completions) -> Measured {
    let mut measured = rule.finish();
    let last_ns = completions.last_ns().unwrap_or(0);
    let lasted_s = seconds(last_ns.saturating_sub(completions.origin_ns));
    let ended_itself = completions.all_ended() && lasted_s < task.job.stop.max_seconds;
    if task.work.general.is_some() && ended_itself {
        measured.include_tail(
            completions.operations().saturating_sub(rule.operations()),
            completions.bytes().saturating_sub(rule.bytes()),
            lasted_s - rule.elapsed_s(),
        );
    }
    measured
}

/// Length of `slices` slices in seconds.
pub(crate) fn bin_s(slices: usize) -> f64 {
    slices as f64 * SLICE_NS as f64 / 1e9
}

/// Nanoseconds in seconds.
pub(crate) fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}
