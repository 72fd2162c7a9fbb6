//! What is still to be done of a copy: the queue from which all workers take.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::CopyError;
use super::grid::{Grid, Ledger, Run};
use crate::server::disk::Disk;
use crate::server::file_disk::FileDisk;
use crate::wire::{AllocationFlags, Extent};

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
    /// Nothing more.
    Over,
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
            return match queue.is_asking {
                true => Next::Wait,
                false => Next::Over,
            };
        };
        let from = run.from;
        let to = match run.is_zero {
            true => run.to.min(from + self.zeros_bytes),
            false => self.grid.piece_end(run),
        };
        let is_zero = run.is_zero;
        run.from = to;
        if run.from == run.to {
            queue.runs.pop_front();
        }
        queue.queued_bytes = queue.queued_bytes.saturating_sub(to - from);
        match is_zero {
            true => Next::Zeros(from, to),
            false => Next::Piece(from, to),
        }
    }

    /// Finds out what comes next, or says what is to be asked for that.
    fn learn_more(&self, queue: &mut Queue) -> Option<Next> {
        let size = self.grid.size_bytes;
        while queue.queued_bytes < self.ahead_bytes {
            while queue.known_to < size {
                let section = self.grid.section_of(queue.known_to);
                match self.ledger.is_done(section) {
                    true => queue.known_to = self.grid.section(section).1,
                    false => break,
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

fn as_told(extent: &crate::server::disk::Extent) -> Extent {
    let flags = match extent.is_hole {
        true => AllocationFlags::HOLE.with(AllocationFlags::ZERO).0,
        false => AllocationFlags::NONE.0,
    };
    Extent { length: extent.length, flags }
}
