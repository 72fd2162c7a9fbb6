//! How an export is cut for copying, and the book that is kept about what has been done.
//!
//! A *cell* is the unit of digests and of what is known of holes: every piece of data begins and ends on
//! cells. A *piece* is what one request moves. A *section* is the unit of the journal: it is done when
//! all of it has been written, and then has one digest, the sum over its cells that are not all zeros of
//! the XXH64 of the cell with its offset as the seed. The sum does not depend on the order in which cells
//! come, and a section of zeros has the digest 0 however its zeros were found.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rubus_nbd::wire::{AllocationFlags, Extent};
use rubus_vocabulary::checksum::xxh64;

/// A cell is this large where both ends take requests so large.
const CELL_BYTES: u64 = 64 << 10;
/// Minimum size of a section.
const MIN_SECTION_BYTES: u64 = 4 << 20;
/// Maximum number of sections, so that the ledger takes a few megabytes.
const MAX_SECTIONS: u64 = 1 << 18;

/// Maximum number of pieces set aside: a disk with more read errors is as good as dead.
pub const MAX_SET_ASIDE: usize = 4096;

/// How an export is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// All that is copied, in bytes.
    pub size_bytes: u64,
    /// A power of two.
    pub cell_bytes: u64,
    /// A power of two, at least a cell.
    pub piece_bytes: u64,
    /// A power of two, at least a piece.
    pub section_bytes: u64,
}

/// Bytes from `from` up to `to` that are all data, or all zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Offset of the first byte.
    pub from: u64,
    /// Offset behind the last byte.
    pub to: u64,
    /// They read as zeros.
    pub is_zero: bool,
}

impl Grid {
    /// Cuts `size_bytes` for requests of at most `piece_bytes`.
    pub fn new(size_bytes: u64, piece_bytes: u64) -> Grid {
        let piece_bytes = prev_power_of_two(piece_bytes.max(1));
        let least = size_bytes.div_ceil(MAX_SECTIONS).next_power_of_two();
        Grid {
            size_bytes,
            cell_bytes: CELL_BYTES.min(piece_bytes),
            piece_bytes,
            section_bytes: least.max(MIN_SECTION_BYTES).max(piece_bytes),
        }
    }

    /// How many sections there are.
    pub fn sections(&self) -> usize {
        self.size_bytes.div_ceil(self.section_bytes) as usize
    }

    /// The section of a byte.
    pub fn section_of(&self, at: u64) -> usize {
        (at / self.section_bytes) as usize
    }

    /// Where a section begins and ends.
    pub fn section(&self, number: usize) -> (u64, u64) {
        let from = number as u64 * self.section_bytes;
        (from, (from + self.section_bytes).min(self.size_bytes))
    }

    /// The first piece of a run of data, which ends where the grid says.
    pub fn piece_end(&self, run: &Run) -> u64 {
        let next = (run.from / self.piece_bytes + 1) * self.piece_bytes;
        next.min(run.to)
    }

    /// What extents say about the bytes from `from` on, on cells: a cell that has any data is data. Gives
    /// the runs, without gaps, and where they end, which is beyond `from` and at most `to`.
    pub fn runs(&self, from: u64, to: u64, extents: &[Extent]) -> (Vec<Run>, u64) {
        let told: u64 =
            extents.iter().fold(0, |sum: u64, extent| sum.saturating_add(extent.length));
        let mut end = from.saturating_add(told).min(to);
        if end < self.size_bytes {
            end = end / self.cell_bytes * self.cell_bytes;
        }
        // The extents cover less than one cell: the rest of the cell is unknown.
        if end <= from {
            let to = (from + self.cell_bytes).min(to);
            return (vec![data(from, to)], to);
        }
        let mut runs: Vec<Run> = Vec::new();
        let mut at = from;
        for extent in extents {
            let (start, stop) = (at, at.saturating_add(extent.length).min(end));
            at = stop;
            let is_zero = AllocationFlags(extent.flags).has(AllocationFlags::ZERO);
            if is_zero || start >= stop {
                continue;
            }
            let start = (start / self.cell_bytes * self.cell_bytes).max(from);
            let stop = stop.next_multiple_of(self.cell_bytes).min(end);
            add_data(&mut runs, from, start, stop);
        }
        let known = runs.last().map_or(from, |run| run.to);
        if known < end {
            runs.push(zeros(known, end));
        }
        (runs, end)
    }
}

fn data(from: u64, to: u64) -> Run {
    Run { from, to, is_zero: false }
}

fn zeros(from: u64, to: u64) -> Run {
    Run { from, to, is_zero: true }
}

/// Appends data behind the runs that begin at `first`, with zeros between.
fn add_data(runs: &mut Vec<Run>, first: u64, start: u64, stop: u64) {
    match runs.last_mut() {
        Some(last) if !last.is_zero && last.to >= start => last.to = last.to.max(stop),
        last => {
            let known = last.map_or(first, |last| last.to);
            if known < start {
                runs.push(zeros(known, start));
            }
            runs.push(data(start, stop));
        }
    }
}

fn prev_power_of_two(number: u64) -> u64 {
    1 << (u64::BITS - 1 - number.leading_zeros())
}

/// Whether all bytes are zeros.
#[inline]
pub fn is_zero(bytes: &[u8]) -> bool {
    static ZEROS: [u8; 4096] = [0; 4096];
    bytes.chunks(ZEROS.len()).all(|part| part == &ZEROS[..part.len()])
}

/// The digest of data that begin at `at`, which is on a cell.
pub fn digest(grid: &Grid, at: u64, bytes: &[u8]) -> u64 {
    let cells = bytes.chunks(grid.cell_bytes as usize);
    let offsets = (at..).step_by(grid.cell_bytes as usize);
    cells.zip(offsets).fold(0, |sum: u64, (cell, offset)| {
        if is_zero(cell) { sum } else { sum.wrapping_add(xxh64(cell, offset)) }
    })
}

/// Cuts data into pieces that are all zeros and pieces that are to be written: ranges of `bytes`, with
/// whether they are zeros. Zeros of less than `least` bytes are written like data. Everything is a multiple
/// of `unit` but the end.
pub fn split(
    bytes: &[u8],
    unit: usize,
    least: usize,
    mut found: impl FnMut(std::ops::Range<usize>, bool),
) {
    let (mut start, mut zeros) = (0, 0);
    let mut at = 0;
    let mut flush = |start: &mut usize, zeros: usize, at: usize| {
        if *start < at - zeros {
            found(*start..at - zeros, false);
        }
        if zeros > 0 {
            found(at - zeros..at, true);
        }
        *start = at;
    };
    for part in bytes.chunks(unit) {
        if is_zero(part) {
            zeros += part.len();
        } else {
            if zeros >= least {
                flush(&mut start, zeros, at);
            }
            zeros = 0;
        }
        at += part.len();
    }
    let all_zero = start + zeros == at;
    let zeros = if zeros >= least || all_zero { zeros } else { 0 };
    flush(&mut start, zeros, at);
}

/// What has been done of a copy.
#[derive(Debug)]
pub struct Ledger {
    grid: Grid,
    /// Bytes of each section that are not done.
    left: Vec<AtomicU64>,
    digests: Vec<AtomicU64>,
    /// Sections that are done and not yet in the journal.
    finished: Mutex<Vec<usize>>,
    /// Pieces that could not be read at the first attempt.
    aside: Mutex<Vec<(u64, u64)>>,
    /// What cannot be read of the source, in the order in which it was found.
    unreadable: Mutex<Vec<(u64, u64)>>,
    done_bytes: AtomicU64,
    data_bytes: AtomicU64,
}

impl Ledger {
    /// Nothing is done.
    pub fn new(grid: Grid) -> Ledger {
        let left = (0..grid.sections()).map(|number| {
            let (from, to) = grid.section(number);
            AtomicU64::new(to - from)
        });
        Ledger {
            grid,
            left: left.collect(),
            digests: (0..grid.sections()).map(|_| AtomicU64::new(0)).collect(),
            finished: Mutex::default(),
            aside: Mutex::default(),
            unreadable: Mutex::default(),
            done_bytes: AtomicU64::new(0),
            data_bytes: AtomicU64::new(0),
        }
    }

    /// A section was done before, and had this digest.
    pub fn is_done_already(&self, number: usize, digest: u64) {
        let left = self.left[number].swap(0, Ordering::Relaxed);
        self.digests[number].store(digest, Ordering::Relaxed);
        self.done_bytes.fetch_add(left, Ordering::Relaxed);
    }

    /// A section has to be done again.
    pub fn is_left_again(&self, number: usize) {
        let (from, to) = self.grid.section(number);
        self.digests[number].store(0, Ordering::Relaxed);
        let before = self.left[number].swap(to - from, Ordering::Relaxed);
        self.done_bytes.fetch_sub(to - from - before, Ordering::Relaxed);
    }

    /// Whether nothing of a section is left.
    pub fn is_done(&self, number: usize) -> bool {
        self.left[number].load(Ordering::Acquire) == 0
    }

    /// A piece of data was done, of which `data_bytes` were written as data.
    pub fn data_done(&self, from: u64, to: u64, digest: u64, data_bytes: u64) {
        let section = self.grid.section_of(from);
        self.digests[section].fetch_add(digest, Ordering::Relaxed);
        self.data_bytes.fetch_add(data_bytes, Ordering::Relaxed);
        self.done(section, to - from);
    }

    /// A run of zeros was done.
    pub fn zeros_done(&self, from: u64, to: u64) {
        let mut at = from;
        while at < to {
            let section = self.grid.section_of(at);
            let stop = self.grid.section(section).1.min(to);
            self.done(section, stop - at);
            at = stop;
        }
    }

    fn done(&self, section: usize, bytes: u64) {
        self.done_bytes.fetch_add(bytes, Ordering::Relaxed);
        let before = self.left[section].fetch_sub(bytes, Ordering::AcqRel);
        if before == bytes {
            self.finished().push(section);
        }
    }

    fn finished(&self) -> MutexGuard<'_, Vec<usize>> {
        locked(&self.finished)
    }

    /// The sections done since the last call. Sections with read errors are left out, so that a resumed copy tries
    /// them again.
    pub fn take_finished(&self) -> Vec<(usize, u64)> {
        let taken = std::mem::take(&mut *self.finished());
        let unreadable = locked(&self.unreadable);
        let is_whole = |number: &usize| {
            let mut places = unreadable.iter();
            places.all(|(from, _)| self.grid.section_of(*from) != *number)
        };
        let whole = taken.into_iter().filter(is_whole);
        whole.map(|number| (number, self.digest(number))).collect()
    }

    /// A piece could not be read and is to be tried again later. False when there are too many of them.
    pub fn set_aside(&self, from: u64, to: u64) -> bool {
        let mut aside = locked(&self.aside);
        aside.push((from, to));
        aside.len() <= MAX_SET_ASIDE
    }

    /// What was set aside since the last time, in the order of the disk.
    pub fn take_set_aside(&self) -> Vec<(u64, u64)> {
        let mut taken = std::mem::take(&mut *locked(&self.aside));
        taken.sort_unstable();
        taken
    }

    /// These bytes, which are of one section, cannot be read.
    pub fn is_unreadable(&self, from: u64, to: u64) {
        let mut unreadable = locked(&self.unreadable);
        match unreadable.last_mut() {
            Some(last)
                if last.1 == from && self.grid.section_of(last.0) == self.grid.section_of(from) =>
            {
                last.1 = to;
            }
            _ => unreadable.push((from, to)),
        }
    }

    /// What cannot be read of the source.
    pub fn unreadable(&self) -> Vec<(u64, u64)> {
        locked(&self.unreadable).clone()
    }

    /// The digest of a section that is done.
    pub fn digest(&self, number: usize) -> u64 {
        self.digests[number].load(Ordering::Acquire)
    }

    /// Bytes that are done.
    pub fn done_bytes(&self) -> u64 {
        self.done_bytes.load(Ordering::Relaxed)
    }

    /// Bytes that were written as data.
    pub fn data_bytes(&self) -> u64 {
        self.data_bytes.load(Ordering::Relaxed)
    }

    /// The runs without what is done already.
    pub fn without_done(&self, runs: Vec<Run>) -> Vec<Run> {
        let mut left = Vec::with_capacity(runs.len());
        for run in runs {
            let mut at = run.from;
            while at < run.to {
                let section = self.grid.section_of(at);
                let stop = self.grid.section(section).1.min(run.to);
                match left.last_mut() {
                    _ if self.is_done(section) => {}
                    Some(Run { to, is_zero, .. }) if *to == at && *is_zero == run.is_zero => {
                        *to = stop;
                    }
                    _ => left.push(Run { from: at, to: stop, is_zero: run.is_zero }),
                }
                at = stop;
            }
        }
        left
    }
}

fn locked<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn extent(length: u64, flags: u64) -> Extent {
        Extent { length, flags }
    }

    const HOLE: u64 = 3;
    const CELL: u64 = 64 << 10;

    #[test]
    fn a_cell_with_any_data_is_data() {
        let grid = Grid::new(10 * CELL, 256 << 10);
        let extents = [
            extent(CELL + 512, HOLE),
            extent(512, 0),
            extent(5 * CELL, HOLE),
            extent(100 * CELL, 0),
        ];
        let (runs, end) = grid.runs(0, 10 * CELL, &extents);
        let expected = [
            zeros(0, CELL),
            data(CELL, 2 * CELL),
            zeros(2 * CELL, 6 * CELL),
            data(6 * CELL, 10 * CELL),
        ];
        assert_eq!((runs.as_slice(), end), (&expected[..], 10 * CELL));
        // A hole that is not known to read as zeros has to be read.
        let (runs, _) = grid.runs(0, CELL, &[extent(CELL, 1)]);
        assert_eq!(runs, [data(0, CELL)]);
    }

    #[test]
    fn what_is_told_of_less_than_a_cell_is_no_knowledge() {
        let grid = Grid::new(10 * CELL, 256 << 10);
        let (runs, end) = grid.runs(CELL, 10 * CELL, &[extent(4096, HOLE)]);
        assert_eq!((runs.as_slice(), end), (&[data(CELL, 2 * CELL)][..], 2 * CELL));
        let (runs, end) = grid.runs(0, 10 * CELL, &[extent(CELL, HOLE), extent(1, 0)]);
        assert_eq!((runs.as_slice(), end), (&[zeros(0, CELL)][..], CELL));
    }

    proptest! {
        #[test]
        fn runs_have_no_gaps_and_hide_no_data(
            pieces in proptest::collection::vec((1_u64..300_000, 0_u64..4), 1..20),
            size in 1_u64..2_000_000,
            piece in prop_oneof![Just(4096_u64), Just(100_000), Just(1 << 20)],
        ) {
            let grid = Grid::new(size, piece);
            let extents: Vec<Extent> = pieces.iter().map(|(l, f)| extent(*l, *f)).collect();
            let mut from = 0;
            // As a client asks: again from where the answer ended.
            let (runs, end) = grid.runs(from, size, &extents);
            prop_assert!(end > from && end <= size);
            prop_assert!(end == size || end % grid.cell_bytes == 0);
            for run in &runs {
                prop_assert_eq!(run.from, from);
                prop_assert!(run.to > run.from);
                prop_assert_eq!(run.from % grid.cell_bytes, 0);
                from = run.to;
            }
            prop_assert_eq!(from, end);
            let mut at = 0;
            for extent in extents {
                let (start, stop) = (at, (at + extent.length).min(end));
                at += extent.length;
                if extent.flags & 2 == 0 && start < stop {
                    let hidden = runs.iter().any(|run| {
                        run.is_zero && run.from < stop && start < run.to
                    });
                    prop_assert!(!hidden);
                }
            }
        }

        #[test]
        fn splitting_loses_nothing(
            parts in proptest::collection::vec((1_usize..5000, any::<bool>()), 0..12),
            unit in prop_oneof![Just(512_usize), Just(4096)],
            least in prop_oneof![Just(512_usize), Just(8192)],
        ) {
            let mut bytes = Vec::new();
            for (length, is_zero) in parts {
                bytes.resize(bytes.len() + length, u8::from(!is_zero));
            }
            let mut end = 0;
            let mut ranges = Vec::new();
            split(&bytes, unit, least, |range, is_zero| ranges.push((range, is_zero)));
            for (range, zeros) in ranges {
                prop_assert_eq!(range.start, end);
                prop_assert!(range.end > range.start && range.start % unit == 0);
                prop_assert!(!zeros || is_zero(&bytes[range.clone()]));
                // Zeros that would be worth leaving out are not written.
                if !zeros {
                    prop_assert!(!is_zero(&bytes[range.clone()]));
                }
                end = range.end;
            }
            prop_assert_eq!(end, bytes.len());
        }

        #[test]
        fn a_digest_does_not_depend_on_how_zeros_are_found(
            cells in proptest::collection::vec(any::<u8>(), 1..9),
        ) {
            let grid = Grid::new(CELL * 8, 1 << 20);
            let bytes: Vec<u8> = cells.iter().flat_map(|b| [if *b < 100 { 0 } else { *b }; CELL as usize]).collect();
            let whole = digest(&grid, 0, &bytes);
            let apart = bytes.chunks(CELL as usize).zip(0..).filter(|(cell, _)| !is_zero(cell));
            let sum = apart.fold(0_u64, |sum, (cell, i)| sum.wrapping_add(digest(&grid, i * CELL, cell)));
            prop_assert_eq!(whole, sum);
        }
    }

    #[test]
    fn the_book_knows_what_is_left() {
        let grid = Grid::new(3 * (4 << 20) + 5, 256 << 10);
        assert_eq!(grid.sections(), 4);
        let ledger = Ledger::new(grid);
        ledger.is_done_already(1, 77);
        let runs = ledger.without_done(vec![zeros(0, 6 << 20), data(6 << 20, grid.size_bytes)]);
        assert_eq!(runs, [zeros(0, 4 << 20), data(8 << 20, grid.size_bytes)]);
        ledger.zeros_done(0, 4 << 20);
        ledger.data_done(8 << 20, (8 << 20) + 100, 5, 100);
        assert_eq!(ledger.take_finished(), [(0, 0)]);
        ledger.data_done((8 << 20) + 100, 12 << 20, 6, 0);
        ledger.data_done(12 << 20, grid.size_bytes, 9, 5);
        assert_eq!(ledger.take_finished(), [(2, 11), (3, 9)]);
        assert_eq!(ledger.done_bytes(), grid.size_bytes);
        assert_eq!((ledger.data_bytes(), ledger.digest(1)), (105, 77));
    }

    #[test]
    fn a_section_of_which_something_cannot_be_read_is_done_and_not_to_be_relied_on() {
        let grid = Grid::new(12 << 20, 256 << 10);
        let ledger = Ledger::new(grid);
        assert!(ledger.set_aside(5 << 20, (5 << 20) + (256 << 10)));
        assert!(ledger.set_aside(1 << 20, (1 << 20) + (256 << 10)));
        let aside = ledger.take_set_aside();
        assert_eq!(aside[0], (1 << 20, (1 << 20) + (256 << 10)));
        assert!(aside.len() == 2 && ledger.take_set_aside().is_empty());
        let at = 5 << 20;
        ledger.is_unreadable(at, at + 512);
        ledger.is_unreadable(at + 512, at + 1024);
        ledger.is_unreadable(at + 4096, at + 4608);
        assert_eq!(ledger.unreadable(), [(at, at + 1024), (at + 4096, at + 4608)]);
        ledger.data_done(0, grid.size_bytes / 3, 1, 7);
        ledger.zeros_done(grid.size_bytes / 3, grid.size_bytes);
        assert_eq!(ledger.take_finished(), [(0, 1), (2, 0)]);
        assert_eq!(ledger.done_bytes(), grid.size_bytes);
        let many = (0..=MAX_SET_ASIDE as u64).map(|n| ledger.set_aside(n, n + 1));
        assert_eq!(many.filter(|is_room| !is_room).count(), 1);
    }

    #[test]
    fn the_largest_disk_has_a_small_book() {
        let grid = Grid::new(i64::MAX as u64, 256 << 10);
        assert!(grid.sections() as u64 <= MAX_SECTIONS);
        assert_eq!(Grid::new(0, 4096).sections(), 0);
    }
}
