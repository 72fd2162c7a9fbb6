//! The worker that writes stamped blocks or looks at what comes back.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::marked_blocks::{BLOCK_BYTES, Found, look, stamp};
use rubus_vocabulary::spec::Content;
use rustix::io::Errno;

use crate::capacity::files::Files;
use crate::capacity::{CHUNK, Ledger, Places};
use crate::error::advice;
use crate::mailbox::WorkerEnd;
use crate::worker::Tally;
use crate::workers::{WorkerShare, WorkerStart, Workers};
use rubus_host::block::buffers::Buffers;
use rubus_host::ticks::now_ns;

/// After this many unreadable or unwritable bytes in a row it gives up: 64 MiB.
const ENOUGH: u64 = 64 << 20;
/// A chunk that cannot be read as a whole is tried block by block for this long, 10 s; a failing
/// device takes seconds for each.
const BLOCK_BY_BLOCK_NS: u64 = 10_000_000_000;
/// Number of operations between two looks at the free space.
const OPERATIONS_PER_LOOK: u64 = 64;

/// One pass of a job.
#[derive(Clone)]
pub(crate) struct Task {
    /// Where the blocks are.
    pub(crate) files: Arc<Files>,
    /// What is known of them.
    pub(crate) ledger: Arc<Ledger>,
    /// In which order.
    pub(crate) places: Places,
    /// Number of the run.
    pub(crate) nonce: u64,
    /// Whether they are written, or read back.
    pub(crate) writes: bool,
    /// Free bytes to leave on a directory's disk.
    pub(crate) reserve_bytes: u64,
}

impl Task {
    /// Starts the worker, which resumes where the previous pass ended.
    ///
    /// # Errors
    /// In words, when the thread cannot be made.
    pub(crate) fn start(&self) -> Result<Workers, String> {
        Workers::start_each(1, |_, start| {
            let task = self.clone();
            Box::new(move || task.run(&start))
        })
    }

    fn run(&self, start: &WorkerStart) {
        let memory = Buffers::new(1, CHUNK as usize, Content::Zeros, 0);
        let mut memory = match memory {
            Ok(memory) => memory,
            Err(error) => {
                return start.fail(format!("cannot get {CHUNK} bytes of memory: {error}"));
            }
        };
        let left = self.places.count().saturating_sub(self.ledger.taken());
        let mut tally = start.begin(WorkerShare {
            max_operations: left.max(1),
            block_bytes: match self.places {
                Places::Run(..) => CHUNK as u32,
                Places::Singles(..) => BLOCK_BYTES as u32,
            },
            warm_up_ns: 500_000_000,
            warm_up_operations: left / 10,
        });
        let end = if self.writes {
            self.write_all(memory.first_mut(), &mut tally)
        } else {
            self.read_all(memory.first_mut(), &mut tally)
        };
        tally.finish(end);
    }

    fn write_all(&self, memory: &mut [u8], tally: &mut Tally) -> WorkerEnd {
        let mut failed_bytes = 0;
        loop {
            let index = self.ledger.take();
            let Some((offset, length)) = self.places.get(index) else {
                return WorkerEnd::Spent;
            };
            if index % OPERATIONS_PER_LOOK == 0 && self.is_full() {
                self.end(offset, "other programs used the space meanwhile".into());
                return WorkerEnd::Spent;
            }
            let bytes = &mut memory[..length as usize];
            for (at, block) in blocks(offset, bytes) {
                stamp(block, at, self.nonce);
            }
            match self.files.write(offset, bytes) {
                Ok(()) => {
                    self.ledger.written_bytes.fetch_add(length, Ordering::Relaxed);
                    failed_bytes = 0;
                }
                Err(errno @ (Errno::NOSPC | Errno::DQUOT)) if self.reserve_bytes > 0 => {
                    self.end(offset, words(errno));
                    return WorkerEnd::Spent;
                }
                Err(errno) if is_gone(errno) => {
                    return WorkerEnd::Failed(format!(
                        "a write at byte {offset} failed: {}",
                        words(errno)
                    ));
                }
                Err(errno) => {
                    self.ledger.note_unwritten(offset, length);
                    failed_bytes += length;
                    if failed_bytes >= ENOUGH {
                        self.end(offset + length, words(errno));
                        return WorkerEnd::Spent;
                    }
                }
            }
            if tally.one(now_ns()) && !tally.turn_one() {
                return tally.why_over();
            }
        }
    }

    fn is_full(&self) -> bool {
        let free = || self.files.opened().free_bytes();
        self.reserve_bytes > 0 && free().is_some_and(|bytes| bytes < self.reserve_bytes)
    }

    /// Notes where writing ended early.
    fn end(&self, offset: u64, reason: String) {
        self.ledger.end(offset, reason);
    }

    fn read_all(&self, memory: &mut [u8], tally: &mut Tally) -> WorkerEnd {
        let mut failed_bytes = 0;
        while let Some((offset, length)) = self.places.get(self.ledger.take()) {
            let bytes = &mut memory[..length as usize];
            match self.read_one(offset, bytes) {
                Ok(true) => failed_bytes = 0,
                Ok(false) => failed_bytes += length,
                Err(errno) => {
                    return WorkerEnd::Failed(format!(
                        "a read at byte {offset} failed: {}",
                        words(errno)
                    ));
                }
            }
            if failed_bytes >= ENOUGH {
                return WorkerEnd::Failed(format!(
                    "{} MiB in a row could not be read; the device is failing",
                    ENOUGH >> 20
                ));
            }
            if tally.one(now_ns()) && !tally.turn_one() {
                return tally.why_over();
            }
        }
        WorkerEnd::Spent
    }

    /// Reads and looks; true if at least one block could be read.
    fn read_one(&self, offset: u64, bytes: &mut [u8]) -> Result<bool, Errno> {
        let found: Vec<Option<Found>> = match self.files.read(offset, bytes) {
            Ok(()) => {
                blocks(offset, bytes).map(|(at, block)| Some(look(block, at, self.nonce))).collect()
            }
            Err(errno) if is_gone(errno) => return Err(errno),
            Err(_) => self.read_by_block(offset, bytes)?,
        };
        self.ledger.count(offset, &found);
        Ok(found.iter().any(Option::is_some))
    }

    /// What can be read of a chunk that cannot be read as a whole.
    fn read_by_block(&self, offset: u64, bytes: &mut [u8]) -> Result<Vec<Option<Found>>, Errno> {
        let deadline_ns = now_ns() + BLOCK_BY_BLOCK_NS;
        let mut found = Vec::new();
        for (at, block) in blocks(offset, bytes) {
            let in_time = now_ns() < deadline_ns;
            found.push(match in_time.then(|| self.files.read(at, block)) {
                Some(Ok(())) => Some(look(block, at, self.nonce)),
                Some(Err(errno)) if is_gone(errno) => return Err(errno),
                Some(Err(_)) | None => None,
            });
        }
        Ok(found)
    }
}

/// The blocks of a chunk with their offsets.
fn blocks(offset: u64, bytes: &mut [u8]) -> impl Iterator<Item = (u64, &mut [u8])> {
    let offsets = (offset..).step_by(BLOCK_BYTES);
    offsets.zip(bytes.chunks_exact_mut(BLOCK_BYTES))
}

/// Whether there is no device any more.
fn is_gone(errno: Errno) -> bool {
    matches!(errno, Errno::NODEV | Errno::NXIO | Errno::ROFS | Errno::BADF)
}

fn words(errno: Errno) -> String {
    let (error, advice) = (std::io::Error::from(errno), advice(errno));
    format!("{error}{advice}")
}
