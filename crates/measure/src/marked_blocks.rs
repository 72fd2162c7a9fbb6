//! Is a target as big as it says? Blocks that say where they belong, where to put them, and what it
//! means when others come back.
//!
//! A stick with forged capacity takes every write and keeps only some: what lies beyond its memory
//! is written over what came before (its addresses *wrap around*), or is discarded. So each block
//! of 4096 bytes carries its own offset, a number of the run, and a checksum; whatever comes back in its
//! place says by itself what happened.
//!
//! A sample finds a device that wraps around, whatever its real size. First a contiguous run is
//! written from the start; then single blocks, so dense that behind every possible real size at least
//! one of them falls into the run again; then another run as long as the first, more than any cache
//! of a card reader holds. Then all is read back. Where a block of the run holds the stamp of
//! another place, the distance of the two is a multiple of the real size.

use rubus_stats::Rng;
use rubus_vocabulary::finding::Capacity;

/// Size of a stamped block, in bytes.
pub const BLOCK_BYTES: usize = 4096;
const BLOCK: u64 = BLOCK_BYTES as u64;
/// The first bytes of every stamped block.
const MAGIC: u64 = u64::from_le_bytes(*b"RUBUSCAP");
const HEAD_BYTES: usize = 24;
const SUM_AT: usize = BLOCK_BYTES - 8;
/// Real sizes below this are not told from chance.
const MIN_REAL: u64 = 1 << 20;
/// Share of the blocks of other places that a real size must explain.
const EXPLAINED: f64 = 0.99;
/// Blocks of other places that are kept to find the real size from.
const KEPT: usize = 4096;

/// The number of a run, by its seed: what an earlier run left is not mistaken for this one's.
pub fn nonce(seed: u64) -> u64 {
    Rng::stream(seed, u64::from_le_bytes(*b"capacity")).next_u64()
}

/// Fills a block: magic, offset, number of the run, bytes that do not compress and that no other
/// block has, and the checksum of all that; numbers are little-endian.
///
/// # Panics
/// If the block is not [`BLOCK_BYTES`] long.
pub fn stamp(block: &mut [u8], offset: u64, nonce: u64) {
    assert_eq!(block.len(), BLOCK_BYTES, "a block to be stamped");
    block[..8].copy_from_slice(&MAGIC.to_le_bytes());
    block[8..16].copy_from_slice(&offset.to_le_bytes());
    block[16..HEAD_BYTES].copy_from_slice(&nonce.to_le_bytes());
    let mut state = nonce ^ offset.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for word in block[HEAD_BYTES..SUM_AT].chunks_exact_mut(8) {
        word.copy_from_slice(&next(&mut state).to_le_bytes());
    }
    let sum = sum(&block[..SUM_AT]);
    block[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
}

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// A checksum that a flipped bit anywhere changes: each step can be undone, so two inputs that differ
/// in one word never meet again.
fn sum(bytes: &[u8]) -> u64 {
    bytes.chunks_exact(8).fold(0, |sum: u64, word| {
        let word = word.try_into().map_or(0, u64::from_le_bytes);
        (sum.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
    })
}

/// What came back in place of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The block has the right content.
    Good,
    /// A block that this run wrote at another offset.
    Of(u64),
    /// Something that this run never wrote.
    Other,
}

/// Looks at what came back from `offset`; anything but [`BLOCK_BYTES`] bytes was never written.
pub fn look(block: &[u8], offset: u64, nonce: u64) -> Found {
    if block.len() != BLOCK_BYTES {
        return Found::Other;
    }
    let word = |at: usize| {
        let bytes = block[at..at + 8].try_into();
        bytes.map_or(0, u64::from_le_bytes)
    };
    let is_ours = word(0) == MAGIC && word(16) == nonce && word(SUM_AT) == sum(&block[..SUM_AT]);
    match word(8) {
        _ if !is_ours => Found::Other,
        at if at == offset => Found::Good,
        at => Found::Of(at),
    }
}

/// Where a sample goes on a target of a size; all offsets and lengths are multiples of
/// [`BLOCK_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Length of each of the two contiguous runs: the first from the start, the second after it.
    pub run_bytes: u64,
    /// Where the single blocks begin: behind both runs.
    pub from_bytes: u64,
    /// End of the target.
    pub end_bytes: u64,
    /// Distance between two single blocks, in bytes.
    pub stride_bytes: u64,
}

/// Cards' readers and bridges have caches of a few MiB; with this they are gone. 256 MiB.
const RUN: u64 = 256 << 20;
/// On huge targets the runs grow, so that there are no more single blocks than this times 2.
const STRIDES: u64 = 65_536;

impl Sample {
    /// The sample of a target; `run_bytes` if the runs shall have another length than usual. Nothing
    /// when the target is so small that it can as well be tested as a whole.
    pub fn new(size_bytes: u64, run_bytes: Option<u64>) -> Option<Sample> {
        let usual = RUN.max(size_bytes / STRIDES);
        let run = run_bytes.unwrap_or(usual.min(size_bytes / 8)) >> 20 << 20;
        if run < MIN_REAL || run.checked_mul(4)? > size_bytes {
            return None;
        }
        Some(Sample {
            run_bytes: run,
            from_bytes: 2 * run,
            end_bytes: size_bytes / BLOCK * BLOCK,
            // Two in each length of the run: whatever the real size, one falls into the run.
            stride_bytes: run / 2,
        })
    }

    /// How many single blocks there are; the last is the target's last.
    pub fn singles(&self) -> u64 {
        (self.end_bytes - self.from_bytes) / self.stride_bytes + 1
    }

    /// Offset of single block `index`: somewhere in its stride, so that no device with a pattern of its
    /// own escapes.
    pub fn single_offset(&self, index: u64, seed: u64) -> u64 {
        if index + 1 >= self.singles() {
            return self.end_bytes - BLOCK;
        }
        let room = self.stride_bytes / BLOCK;
        let jitter = Rng::stream(seed, index).below(room) * BLOCK;
        self.from_bytes + index * self.stride_bytes + jitter
    }

    /// Bytes that are written, and read back.
    pub fn bytes(&self) -> u64 {
        self.from_bytes + self.singles() * BLOCK
    }
}

/// What came back so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    good: u64,
    others: u64,
    corrupted: u64,
    unreadable: u64,
    first_bad: Option<u64>,
    last_good: Option<u64>,
    /// Greatest common divisor of the distances between where blocks were found and where they
    /// belong.
    divisor: u64,
    /// Some of them.
    kept: Vec<(u64, u64)>,
}

impl Checked {
    /// Counts the block at `offset`.
    pub fn add(&mut self, offset: u64, found: Found) {
        match found {
            Found::Good => {
                self.good += 1;
                self.last_good = Some(self.last_good.map_or(offset, |last| last.max(offset)));
                return;
            }
            Found::Of(belongs) => {
                self.others += 1;
                self.divisor = greatest_common_divisor(self.divisor, belongs.abs_diff(offset));
                if self.kept.len() < KEPT {
                    self.kept.push((offset, belongs));
                }
            }
            Found::Other => self.corrupted += 1,
        }
        self.bad(offset);
    }

    /// Counts a block that could not be read, or not even written.
    pub fn add_unreadable(&mut self, offset: u64) {
        self.unreadable += 1;
        self.bad(offset);
    }

    fn bad(&mut self, offset: u64) {
        self.first_bad = Some(self.first_bad.map_or(offset, |first| first.min(offset)));
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.good + self.others + self.corrupted + self.unreadable == 0
    }

    /// What it means for a target that announces `announced_bytes`, of which all that is to be tried
    /// was, or a sample.
    pub fn finding(&self, announced_bytes: u64, is_sample: bool) -> Capacity {
        let blocks = self.good + self.others + self.corrupted + self.unreadable;
        Capacity {
            is_sample,
            announced_bytes,
            tested_bytes: blocks * BLOCK,
            good_bytes: self.good * BLOCK,
            overwritten_bytes: self.others * BLOCK,
            corrupted_bytes: self.corrupted * BLOCK,
            unreadable_bytes: self.unreadable * BLOCK,
            first_bad_offset: self.first_bad,
            last_good_offset: self.last_good,
            wraps_at_bytes: self.wraps_at(),
        }
    }

    /// The real size of a device whose addresses wrap around: what divides all distances. A few
    /// strays among many (a block that the device itself misplaced) do not hide it.
    fn wraps_at(&self) -> Option<u64> {
        if self.divisor >= MIN_REAL {
            return Some(self.divisor);
        }
        let mut distances: Vec<u64> =
            self.kept.iter().map(|(offset, belongs)| belongs.abs_diff(*offset)).collect();
        distances.sort_unstable();
        let middle = *distances.get(distances.len() / 2)?;
        let divisor = distances
            .iter()
            .filter(|distance| greatest_common_divisor(**distance, middle) >= MIN_REAL)
            .fold(0, |divisor, distance| greatest_common_divisor(divisor, *distance));
        let explained =
            distances.iter().filter(|distance| divisor > 0 && **distance % divisor == 0).count();
        let enough = explained as f64 >= distances.len() as f64 * EXPLAINED;
        (divisor >= MIN_REAL && enough).then_some(divisor)
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn stamped(offset: u64, nonce: u64) -> Vec<u8> {
        let mut block = vec![0; BLOCK_BYTES];
        stamp(&mut block, offset, nonce);
        block
    }

    #[test]
    fn a_block_says_where_it_belongs_and_to_which_run() {
        let block = stamped(8192, 7);
        assert_eq!(look(&block, 8192, 7), Found::Good);
        assert_eq!(look(&block, 4096, 7), Found::Of(8192));
        assert_eq!(look(&block, 8192, 8), Found::Other);
        assert_eq!(look(&[0; BLOCK_BYTES], 0, 0), Found::Other);
        assert_eq!(look(&block[..100], 8192, 7), Found::Other);
        assert_ne!(nonce(1), nonce(2));
        assert_ne!(stamped(0, 7)[24..], stamped(4096, 7)[24..]);
    }

    proptest! {
        #[test]
        fn any_flipped_bit_is_seen(offset: u64, nonce: u64, bit in 0..BLOCK_BYTES * 8) {
            let mut block = stamped(offset, nonce);
            prop_assert_eq!(look(&block, offset, nonce), Found::Good);
            block[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(look(&block, offset, nonce), Found::Other);
        }

        /// A sample of a wrap-around device of any real size finds that size; one that discards
        /// what lies beyond is found, too; a genuine one is good.
        #[test]
        fn a_sample_finds_every_real_size(
            size in 64_u64..4096, real in 1_u64..4096, drops: bool, seed: u64,
        ) {
            let (size, real) = (size * MIB, (real * MIB).min(size * MIB));
            let sample = Sample::new(size, None).expect("it is large enough");
            // Runs are followed in steps of a MiB at a place within it: no need to hold each block.
            let run = |from: u64| (from..from + sample.run_bytes).step_by(MIB as usize);
            let singles = (0..sample.singles()).map(|i| sample.single_offset(i, seed));
            let singles: Vec<u64> = singles.collect();
            let mut memory = HashMap::new();
            let place = |offset: u64| if drops {
                (offset < real).then_some(offset)
            } else {
                Some(offset % real)
            };
            let fine = |offset: u64| offset / BLOCK * BLOCK;
            let mut written = Vec::new();
            written.extend(run(0));
            written.extend(&singles);
            written.extend(run(sample.run_bytes));
            // The whole of the run is written, so the blocks that singles fall onto are, too.
            for &offset in &singles {
                if let Some(at) = place(offset).filter(|at| *at < 2 * sample.run_bytes) {
                    memory.insert(fine(at), fine(at));
                }
            }
            for &offset in &written {
                if let Some(at) = place(offset) {
                    memory.insert(at, offset);
                }
            }
            let mut checked = Checked::default();
            let looked_at = written.iter().copied().chain(
                memory.keys().copied().filter(|at| *at < sample.run_bytes).collect::<Vec<_>>(),
            );
            for offset in looked_at {
                let found = match place(offset).and_then(|at| memory.get(&at)) {
                    Some(&of) if of == offset => Found::Good,
                    Some(&of) => Found::Of(of),
                    None => Found::Other,
                };
                checked.add(offset, found);
            }
            let finding = checked.finding(size, true);
            prop_assert_eq!(finding.first_bad_offset.is_some(), real < size, "{:?}", finding);
            if real < size && !drops && size > 2 * real {
                prop_assert_eq!(finding.wraps_at_bytes, Some(real));
            }
        }
    }

    #[test]
    fn a_small_target_needs_no_sample_and_a_huge_one_few_blocks() {
        assert_eq!(Sample::new(3 * MIB, None), None);
        assert_eq!(Sample::new(100 * MIB, Some(50 * MIB)), None);
        let huge = Sample::new(18 << 40, None).expect("it is huge");
        assert!(huge.singles() <= 2 * STRIDES + 1, "{}", huge.singles());
        let card = Sample::new(64_000_000_000, None).expect("a card");
        assert_eq!(card.run_bytes, RUN);
        assert_eq!(card.single_offset(card.singles() - 1, 1), 64_000_000_000 - BLOCK);
        assert!(card.bytes() < 600 * MIB, "{}", card.bytes());
    }

    #[test]
    fn strays_do_not_make_a_size_and_do_not_hide_one() {
        let mut checked = Checked::default();
        assert!(checked.is_empty());
        checked.add(0, Found::Of(BLOCK));
        checked.add(8 * BLOCK, Found::Of(3 * BLOCK));
        assert_eq!(checked.finding(MIB, false).wraps_at_bytes, None);
        let mut checked = Checked::default();
        for i in 0..1000 {
            checked.add(i * BLOCK, Found::Of(i * BLOCK + (1 + i % 3) * 256 * MIB));
        }
        checked.add(0, Found::Of(BLOCK));
        let finding = checked.finding(1024 * MIB, false);
        assert_eq!(finding.wraps_at_bytes, Some(256 * MIB));
        assert_eq!(finding.overwritten_bytes, 1001 * BLOCK);
        assert_eq!(finding.first_bad_offset, Some(0));
    }
}
