//! Where each operation goes: offsets from a seed.
//!
//! Random offsets are uniform over the blocks of the region and independent: a block may be
//! visited twice before another is visited once. (A map of visited blocks would cost more per
//! operation than everything else here together.) The same seed gives the same offsets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rubus_stats::Rng;

/// A way through a region. Offsets are in bytes from the start of the target.
pub(crate) trait Walk {
    /// The offset of the next operation.
    fn next_offset(&mut self) -> u64;
}

/// Block after block, from the start again at the end.
#[derive(Clone, Debug)]
pub(crate) struct Ascending {
    block_bytes: u64,
    end: u64,
    next: u64,
}

impl Ascending {
    /// Through the whole blocks of `region_bytes`, which must hold at least one.
    pub(crate) fn new(region_bytes: u64, block_bytes: u64) -> Self {
        Ascending {
            block_bytes,
            end: whole_blocks(region_bytes, block_bytes) * block_bytes,
            next: 0,
        }
    }
}

impl Walk for Ascending {
    #[inline(always)]
    fn next_offset(&mut self) -> u64 {
        let offset = self.next;
        let after = offset + self.block_bytes;
        self.next = if after >= self.end { 0 } else { after };
        offset
    }
}

/// Block after block without an end: for a file that grows.
#[derive(Clone, Debug)]
pub(crate) struct Appending {
    block_bytes: u64,
    next: u64,
}

impl Appending {
    /// From the offset `start` on.
    pub(crate) fn new(start: u64, block_bytes: u64) -> Self {
        Appending { block_bytes, next: start }
    }
}

impl Walk for Appending {
    #[inline(always)]
    fn next_offset(&mut self) -> u64 {
        let offset = self.next;
        self.next += self.block_bytes;
        offset
    }
}

/// Like [`Ascending`], shared by several threads: each block goes to one of them.
#[derive(Clone, Debug)]
pub(crate) struct SharedAscending {
    block_bytes: u64,
    blocks: u64,
    taken: Arc<AtomicU64>,
}

impl SharedAscending {
    /// Through the whole blocks of `region_bytes`, which must hold at least one.
    pub(crate) fn new(region_bytes: u64, block_bytes: u64) -> Self {
        SharedAscending {
            block_bytes,
            blocks: whole_blocks(region_bytes, block_bytes),
            taken: Arc::default(),
        }
    }
}

impl Walk for SharedAscending {
    #[inline(always)]
    fn next_offset(&mut self) -> u64 {
        self.taken.fetch_add(1, Ordering::Relaxed) % self.blocks * self.block_bytes
    }
}

/// Uniformly random blocks.
///
/// The generator is Knuth's 64-bit linear congruential one ("MMIX", *The Art of Computer
/// Programming* 2, 3.3.4), whose upper bits are used: the highest are the best, and the
/// multiplication by the number of blocks takes exactly those. It costs three instructions, a
/// quarter of the generator of the statistics, which seeds it.
#[derive(Clone, Debug)]
pub(crate) struct Uniform {
    block_bytes: u64,
    blocks: u64,
    state: u64,
}

impl Uniform {
    /// Over the whole blocks of `region_bytes`, which must hold at least one.
    pub(crate) fn new(region_bytes: u64, block_bytes: u64, mut random: Rng) -> Self {
        Uniform {
            block_bytes,
            blocks: whole_blocks(region_bytes, block_bytes),
            state: random.next_u64(),
        }
    }
}

impl Walk for Uniform {
    #[inline(always)]
    fn next_offset(&mut self) -> u64 {
        const MULTIPLIER: u64 = 6_364_136_223_846_793_005;
        const INCREMENT: u64 = 1_442_695_040_888_963_407;
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT);
        let block = (u128::from(self.state) * u128::from(self.blocks)) >> 64;
        block as u64 * self.block_bytes
    }
}

fn whole_blocks(region_bytes: u64, block_bytes: u64) -> u64 {
    let blocks = region_bytes / block_bytes;
    assert!(blocks > 0, "a region of {region_bytes} bytes holds no block of {block_bytes}");
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascending_wraps_at_the_last_whole_block() {
        let mut walk = Ascending::new(3 * 4096 + 100, 4096);
        let offsets: Vec<u64> = (0..5).map(|_| walk.next_offset()).collect();
        assert_eq!(offsets, [0, 4096, 8192, 0, 4096]);
    }

    #[test]
    fn shared_walkers_take_turns() {
        let mut one = SharedAscending::new(3 * 512, 512);
        let mut two = one.clone();
        let offsets = [one.next_offset(), two.next_offset(), two.next_offset(), one.next_offset()];
        assert_eq!(offsets, [0, 512, 1024, 0]);
    }

    #[test]
    fn random_offsets_are_aligned_inside_and_everywhere() {
        let mut walk = Uniform::new(64 * 4096, 4096, Rng::from_seed(1));
        let mut visits = [0u32; 64];
        for _ in 0..64_000 {
            let offset = walk.next_offset();
            assert_eq!(offset % 4096, 0);
            visits[(offset / 4096) as usize] += 1;
        }
        assert!(visits.iter().all(|&n| (800..1200).contains(&n)), "{visits:?}");
    }

    #[test]
    fn the_seed_decides() {
        let offsets = |seed| {
            let mut walk = Uniform::new(1 << 40, 4096, Rng::from_seed(seed));
            [walk.next_offset(), walk.next_offset()]
        };
        assert_eq!(offsets(5), offsets(5));
        assert_ne!(offsets(5), offsets(6));
    }
}
