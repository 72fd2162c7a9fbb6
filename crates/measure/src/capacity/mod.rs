//! Is a target as big as it says: writing blocks that say where they belong, and looking at what
//! comes back. What the blocks hold and what an answer means is decided in `crate::marked_blocks`.

mod files;
mod rig;
pub(crate) mod session;
mod worker;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::marked_blocks::{BLOCK_BYTES, Checked, Found, Sample};

/// Size of the operations of a run.
pub(crate) const CHUNK: u64 = 1 << 20;
const BLOCK: u64 = BLOCK_BYTES as u64;

/// Where a job's operations go, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Places {
    /// Everything between two offsets.
    Run(u64, u64),
    /// The single blocks of a sample, with the seed that scatters them.
    Singles(Sample, u64),
}

impl Places {
    /// Offset and length of operation `index`; nothing behind the last.
    pub(crate) fn get(&self, index: u64) -> Option<(u64, u64)> {
        match *self {
            Places::Run(from, to) => {
                let offset = index.checked_mul(CHUNK)?.checked_add(from)?;
                (offset < to).then(|| (offset, CHUNK.min(to - offset)))
            }
            Places::Singles(sample, seed) => {
                (index < sample.singles()).then(|| (sample.single_offset(index, seed), BLOCK))
            }
        }
    }

    /// How many operations there are.
    pub(crate) fn count(&self) -> u64 {
        match *self {
            Places::Run(from, to) => to.saturating_sub(from).div_ceil(CHUNK),
            Places::Singles(sample, _) => sample.singles(),
        }
    }
}

/// What the workers and the session tell each other.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// The next operation of the job that runs.
    next: AtomicU64,
    /// Bytes that were written.
    pub(crate) written_bytes: AtomicU64,
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    checked: Checked,
    /// Blocks that could not be written: offset and length of each stretch.
    unwritten: Vec<(u64, u64)>,
    /// Where writing ended before the end of the target, and why in words.
    ended: Option<(u64, String)>,
}

impl Ledger {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the next operation, which is then the caller's.
    fn take(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Lets the next job begin with its first operation.
    pub(crate) fn rewind(&self) {
        self.next.store(0, Ordering::Relaxed);
    }

    /// How many operations of the job that runs were taken.
    pub(crate) fn taken(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// What came back so far.
    pub(crate) fn checked(&self) -> Checked {
        self.books().checked.clone()
    }

    /// Where writing ended early, and why.
    pub(crate) fn ended(&self) -> Option<(u64, String)> {
        self.books().ended.clone()
    }

    /// Notes where writing ended early.
    fn end(&self, offset: u64, reason: String) {
        self.books().ended = Some((offset, reason));
    }

    /// Counts blocks that follow one another from `offset`, those that could be read with what they
    /// are. What could not be written is not expected to come back.
    fn count(&self, offset: u64, found: &[Option<Found>]) {
        let mut books = self.books();
        for (at, found) in (offset..).step_by(BLOCK_BYTES).zip(found) {
            match found {
                Some(found) if !books.is_unwritten(at) => books.checked.add(at, *found),
                _ => books.checked.add_unreadable(at),
            }
        }
    }

    /// Notes a stretch that could not be written; they come in ascending order within a job.
    fn note_unwritten(&self, offset: u64, length: u64) {
        let mut books = self.books();
        match books.unwritten.last_mut() {
            Some((from, known)) if *from + *known == offset => *known += length,
            _ => {
                let place = books.unwritten.partition_point(|(from, _)| *from < offset);
                books.unwritten.insert(place, (offset, length));
            }
        }
    }
}

impl Books {
    /// Whether the block at `offset` could not be written.
    fn is_unwritten(&self, offset: u64) -> bool {
        let after = self.unwritten.partition_point(|(from, _)| *from <= offset);
        let stretch = after.checked_sub(1).map(|index| self.unwritten[index]);
        stretch.is_some_and(|(from, length)| offset < from + length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_with_what_is_left_of_it() {
        let run = Places::Run(CHUNK, 3 * CHUNK + 8192);
        assert_eq!(run.count(), 3);
        assert_eq!(run.get(0), Some((CHUNK, CHUNK)));
        assert_eq!(run.get(2), Some((3 * CHUNK, 8192)));
        assert_eq!(run.get(3), None);
        assert_eq!(run.get(u64::MAX), None);
        let sample = Sample::new(64 << 20, None).expect("it is large enough");
        let singles = Places::Singles(sample, 1);
        let last = singles.get(singles.count() - 1);
        assert_eq!(last, Some(((64 << 20) - BLOCK, BLOCK)));
        assert_eq!(singles.get(singles.count()), None);
    }

    #[test]
    fn what_was_not_written_is_known_by_its_blocks() {
        let ledger = Ledger::default();
        ledger.note_unwritten(5 * BLOCK, BLOCK);
        ledger.note_unwritten(6 * BLOCK, BLOCK);
        ledger.note_unwritten(BLOCK, BLOCK);
        let unwritten = (0..9).filter(|block| ledger.books().is_unwritten(block * BLOCK));
        assert_eq!(unwritten.collect::<Vec<_>>(), [1, 5, 6]);
    }
}
