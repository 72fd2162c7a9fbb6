//! What is still to be done of a copy: the queue from which all workers take.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rubus_nbd::server::disk::Disk;
use rubus_nbd::server::file_disk::FileDisk;
use rubus_nbd::wire::{AllocationFlags, Extent};

use super::CopyError;
use super::grid::{Grid, Ledger, Run};

/// Zeros are made in stretches of this length: quick where a server can do it at all.
const ZEROS_BYTES: u64 = 1 << 30;
/// A server without extended headers is asked about so much at a time; more does not fit into 32 bits.
const ASKED_BYTES: u64 = 1 << 31;

/// What a source knows of its holes.
pub(super) enum Knowledge {
    /// Nothing: everything has to be read.
    Nothing,
    /// A file's system knows.
    File(FileDisk),
    /// The server of an export knows; with lengths of 64 bits if that is true.
    Server(bool),
}

/// What a worker does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Copy these bytes.
    Piece(u64, u64),
    /// Make these bytes zeros.
    Zeros(u64, u64),
    /// Ask the server what these bytes are, and say so to [`Job::learnt`].
    Ask(u64, u64),
    /// Nothing now, since another worker asks.
    Wait,
    /// Nothing is left to do.
    Over,
}

/// Whatever has been silent for longer when the copy is to end hangs.
const MAX_NS: u64 = 30_000_000_000;

/// Whether a single request, such as a flush, is not waited for any longer: the copy is to end, and its server hangs.
pub(super) fn is_given_up(cancel: &AtomicBool, silent: Duration) -> bool {
    cancel.load(Ordering::Relaxed) && silent.as_nanos() > u128::from(MAX_NS)
}

/// The longest time in which a server gave no answer to what it was asked, over all connections.
#[derive(Debug, Default)]
pub(super) struct Silence {
    longest_ns: AtomicU64,
}

impl Silence {
    /// It ended after this time.
    pub(super) fn saw(&self, ns: u64) {
        self.longest_ns.fetch_max(ns, Ordering::Relaxed);
    }

    /// Whether a server that has been silent for this time hangs, by all that was seen of it.
    pub(super) fn is_hanging(&self, ns: u64) -> bool {
        ns > hangs_after_ns(self.longest_ns.load(Ordering::Relaxed))
    }
}

/// The silence after which a server hangs, given its longest pause so far. A slow server pauses too, and longer with
/// more requests in flight.
fn hangs_after_ns(longest_ns: u64) -> u64 {
    const MIN_NS: u64 = 3_000_000_000;
    longest_ns.saturating_mul(2).clamp(MIN_NS, MAX_NS)
}

/// One pass over all bytes.
pub(super) struct Job<'a> {
    pub grid: Grid,
    pub ledger: &'a Ledger,
    pub has_digests: bool,
    /// What the source's disk does not give is set aside.
    pub skips: bool,
    knowledge: Knowledge,
    /// So much is known ahead of what is being done.
    ahead_bytes: u64,
    zeros_bytes: u64,
    stop: AtomicBool,
    cancelled: AtomicBool,
    /// The longest that each end has been silent while it had something to answer.
    pub of_source: Silence,
    pub of_target: Silence,
    trouble: Mutex<Option<CopyError>>,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    runs: VecDeque<Run>,
    queued_bytes: u64,
    known_to: u64,
    is_asking: bool,
}

impl<'a> Job<'a> {
    pub(super) fn new(
        ledger: &'a Ledger,
        grid: Grid,
        knowledge: Knowledge,
        has_digests: bool,
        ahead_bytes: u64,
    ) -> Job<'a> {
        Job {
            grid,
            ledger,
            has_digests,
            skips: false,
            knowledge,
            ahead_bytes,
            zeros_bytes: ZEROS_BYTES,
            stop: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
            of_source: Silence::default(),
            of_target: Silence::default(),
            trouble: Mutex::default(),
            queue: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Zeros can only be written as data, which takes time.
    pub(super) fn zeros_are_written(&mut self) {
        self.zeros_bytes = self.grid.piece_bytes * 16;
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing new is begun from now on.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// [`Job::stop`] because the user wants it to end: an end that hangs is not waited for.
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
        self.stop();
    }

    /// Whether it was [cancelled](Job::cancel).
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// [`Job::stop`] for a reason, of which the first counts.
    pub(super) fn fail(&self, why: CopyError) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.get_or_insert(why);
        drop(trouble);
        self.stop();
    }

    /// Whether nothing is left to be begun.
    pub(super) fn is_over(&self) -> bool {
        let queue = self.queue();
        let has_more =
            queue.is_asking || !queue.runs.is_empty() || queue.known_to < self.grid.size_bytes;
        self.stop.load(Ordering::Relaxed) || !has_more
    }

    /// Why it was stopped, if something went wrong.
    pub(super) fn take_trouble(&self) -> Option<CopyError> {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.take()
    }

    pub(super) fn next(&self) -> Next {
        let mut queue = self.queue();
        if self.stop.load(Ordering::Relaxed) {
            return Next::Over;
        }
        if queue.queued_bytes < self.ahead_bytes && !queue.is_asking {
            if let Some(question) = self.learn_more(&mut queue) {
                return question;
            }
        }
        let Some(run) = queue.runs.front_mut() else {
            return if queue.is_asking { Next::Wait } else { Next::Over };
        };
        let from = run.from;
        let to = if run.is_zero {
            run.to.min(from + self.zeros_bytes)
        } else {
            self.grid.piece_end(run)
        };
        let is_zero = run.is_zero;
        run.from = to;
        if run.from == run.to {
            queue.runs.pop_front();
        }
        queue.queued_bytes = queue.queued_bytes.saturating_sub(to - from);
        if is_zero { Next::Zeros(from, to) } else { Next::Piece(from, to) }
    }

    /// Finds out what comes next, or says what is to be asked for that.
    fn learn_more(&self, queue: &mut Queue) -> Option<Next> {
        let size = self.grid.size_bytes;
        while queue.queued_bytes < self.ahead_bytes {
            while queue.known_to < size {
                let section = self.grid.section_of(queue.known_to);
                if self.ledger.is_done(section) {
                    queue.known_to = self.grid.section(section).1
                } else {
                    break;
                }
            }
            let from = queue.known_to;
            if from >= size {
                return None;
            }
            match &self.knowledge {
                Knowledge::Nothing => self.add(queue, from, size, None),
                Knowledge::File(disk) => {
                    let extents = disk.extents(from, size - from, false).unwrap_or_default();
                    let told: Vec<Extent> = extents.iter().map(as_told).collect();
                    self.add(queue, from, size, Some(&told));
                }
                Knowledge::Server(is_extended) => {
                    queue.is_asking = true;
                    let most = if *is_extended { size } else { ASKED_BYTES };
                    return Some(Next::Ask(from, size.min(from.saturating_add(most))));
                }
            }
        }
        None
    }

    /// What the server said about the bytes that were to be asked about; nothing when it said nothing,
    /// then everything from there on is read.
    pub(super) fn learnt(&self, from: u64, to: u64, told: Option<&[Extent]>) {
        let mut queue = self.queue();
        let to = if told.is_some() { to } else { self.grid.size_bytes };
        self.add(&mut queue, from, to, told);
        queue.is_asking = false;
        drop(queue);
        self.changed.notify_all();
    }

    fn add(&self, queue: &mut Queue, from: u64, to: u64, told: Option<&[Extent]>) {
        let (runs, end) = match told {
            Some(extents) => self.grid.runs(from, to, extents),
            None => {
                let is_zero = false;
                (vec![Run { from, to, is_zero }], to)
            }
        };
        queue.known_to = end;
        for run in self.ledger.without_done(runs) {
            queue.queued_bytes += run.to - run.from;
            queue.runs.push_back(run);
        }
    }

    /// Waits until there may be something to do, for a while.
    pub(super) fn wait(&self) {
        let queue = self.queue();
        let most = Duration::from_millis(100);
        drop(self.changed.wait_timeout(queue, most));
    }
}

fn as_told(extent: &rubus_nbd::server::disk::Extent) -> Extent {
    let flags = if extent.is_hole {
        AllocationFlags::HOLE.with(AllocationFlags::ZERO).0
    } else {
        AllocationFlags::NONE.0
    };
    Extent { length: extent.length, flags }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_request_is_given_up_when_the_copy_is_to_end_and_its_server_hangs() {
        let cancel = AtomicBool::new(false);
        assert!(!is_given_up(&cancel, Duration::from_secs(3000)), "a slow disk may take so long");
        cancel.store(true, Ordering::Relaxed);
        assert!(!is_given_up(&cancel, Duration::from_secs(30)));
        assert!(is_given_up(&cancel, Duration::from_secs(31)));
    }

    #[test]
    fn a_server_hangs_that_is_silent_for_twice_its_longest_time() {
        let seconds = [(0, 3), (1, 3), (4, 8), (10, 20), (600, 30)];
        for (longest, limit) in seconds {
            assert_eq!(hangs_after_ns(longest * 1_000_000_000), limit * 1_000_000_000);
        }
        assert_eq!(hangs_after_ns(u64::MAX), 30_000_000_000);
    }
}
