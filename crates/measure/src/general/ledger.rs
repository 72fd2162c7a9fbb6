//! The accounts of one worker of a shaped job: reads and writes each have their own tally.
//!
//! - A latency is the service time, from the moment in which the operation was issued; what a limit
//!   or a pause kept back before that does not count.
//! - A response is from the moment in which the operation was due by its limit: with the time that it waited for
//!   those before it. While a device stalls, few operations are issued, so latencies alone hide most of a stall
//!   (coordinated omission; Tene, "How NOT to measure latency", 2013).
//! - A gap is a time in which the target owed something and completed nothing of either kind. Time in which
//!   the worker rested of its own will is none.

use super::plan::{READS, WRITES};
use super::script::Operation;
use crate::mailbox::WorkerEnd;
use crate::worker::Tally;

/// The tallies of one worker.
pub(crate) struct Ledger {
    /// Of reads and of writes, where there are any.
    tallies: [Option<Tally>; 2],
    /// One operation at a time: its latency is the gap.
    is_single: bool,
    /// The start of the script.
    origin_ns: u64,
    groups: [Group; 2],
}

/// What completed together.
#[derive(Clone, Copy, Default)]
struct Group {
    operations: u32,
    bytes: u64,
    latency_ns: u64,
}

impl Ledger {
    /// The ledger of a worker with `is_single` operation at a time, whose script begins at `origin_ns`; at least one
    /// tally is there.
    pub(crate) fn new(tallies: [Option<Tally>; 2], is_single: bool, origin_ns: u64) -> Self {
        Ledger { tallies, is_single, origin_ns, groups: [Group::default(); 2] }
    }

    /// The worker issues an operation at `now_ns` while nothing else is in flight: from now on it is
    /// owed something.
    pub(crate) fn busy_from(&mut self, now_ns: u64) {
        self.tallies.iter_mut().flatten().for_each(|tally| tally.pass(now_ns));
    }

    /// The worker rests at `now_ns`, and will until `until_ns`.
    pub(crate) fn rest(&mut self, now_ns: u64, until_ns: u64) {
        for tally in self.tallies.iter_mut().flatten() {
            tally.pass(now_ns);
            tally.mailbox().rest_until(until_ns);
        }
    }

    /// Counts one operation; [`Ledger::close`] follows.
    pub(crate) fn done(&mut self, operation: &Operation, began_ns: u64, ended_ns: u64) {
        let side = if operation.is_write { WRITES } else { READS };
        let Some(tally) = &mut self.tallies[side] else {
            return;
        };
        let latency_ns = ended_ns.saturating_sub(began_ns);
        if tally.latency(latency_ns) && !self.is_single {
            tally.look_at(began_ns, ended_ns);
        }
        if let Some(scheduled_ns) = operation.scheduled_ns {
            let due_ns = self.origin_ns.saturating_add(scheduled_ns);
            tally.response(ended_ns.saturating_sub(due_ns));
        }
        let group = &mut self.groups[side];
        group.operations += 1;
        group.bytes += u64::from(operation.bytes);
        group.latency_ns = latency_ns;
    }

    /// Ends the counting of what completed at `now_ns`.
    pub(crate) fn close(&mut self, now_ns: u64) {
        if self.groups.iter().all(|group| group.operations == 0) {
            // Nothing completed: whatever is owed is still owed.
            return;
        }
        for (tally, group) in self.tallies.iter_mut().zip(&mut self.groups) {
            let (Some(tally), group) = (tally, std::mem::take(group)) else {
                continue;
            };
            match group.operations {
                0 => tally.pass(now_ns),
                1 => {
                    tally.group_of(now_ns, 1, group.bytes, Some(group.latency_ns));
                }
                several => {
                    tally.group_of(now_ns, several, group.bytes, None);
                }
            }
        }
    }

    /// Whether the worker has been told to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.tallies.iter().flatten().any(|tally| tally.mailbox().is_stopped())
    }

    /// Ends the accounts and reports them.
    pub(crate) fn finish(self, end: &WorkerEnd) {
        for tally in self.tallies.into_iter().flatten() {
            tally.finish(end.clone());
        }
    }
}
