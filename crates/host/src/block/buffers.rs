//! The memory that is read into and written from: page-aligned blocks, filled once.
//!
//! What a block holds is decided here; which block goes where on the target is not.

use std::ffi::c_void;
use std::ptr::NonNull;

use rubus_stats::Rng;
use rubus_vocabulary::spec::Content;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Each piece of a written block of this many bytes gets its own number, so that no two written
/// blocks are equal and a target with deduplication gains nothing.
pub(crate) const STAMP_STRIDE: usize = 4096;
/// Length of such a number.
const STAMP_BYTES: usize = 8;

/// A row of equal blocks in memory that begins on a page and is present from the start, so that no
/// page fault is measured.
pub struct Buffers {
    start: NonNull<u8>,
    mapped_bytes: usize,
    block_bytes: usize,
    blocks: usize,
}

// SAFETY: the mapping belongs to this value alone and is not tied to a thread.
unsafe impl Send for Buffers {}

impl Buffers {
    /// Room for `blocks` blocks of `block_bytes` bytes, filled with `content`.
    ///
    /// Blocks are aligned to 4096 bytes when their size is a multiple of that, else to the largest
    /// power of two that divides their size.
    ///
    /// # Errors
    /// The system's error when there is not that much memory.
    pub fn new(
        blocks: usize,
        block_bytes: usize,
        content: Content,
        seed: u64,
    ) -> std::io::Result<Self> {
        let Some(wanted) = blocks.checked_mul(block_bytes).filter(|&bytes| bytes > 0) else {
            return Err(rustix::io::Errno::NOMEM.into());
        };
        let mapped_bytes = wanted.next_multiple_of(4096);
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice disturbs nothing.
        let start = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                mapped_bytes,
                protection,
                MapFlags::PRIVATE | MapFlags::POPULATE,
            )?
        };
        let start = NonNull::new(start.cast()).ok_or(rustix::io::Errno::NOMEM)?;
        let mut buffers = Buffers { start, mapped_bytes, block_bytes, blocks };
        buffers.fill(content, seed);
        Ok(buffers)
    }

    fn fill(&mut self, content: Content, seed: u64) {
        let mut random = Rng::from_seed(seed);
        let block_bytes = self.block_bytes;
        let bytes = self.all_mut();
        match content {
            Content::Zeros => {}
            Content::Pattern(pattern) => {
                let pattern = pattern.bytes();
                for block in bytes.chunks_mut(block_bytes) {
                    let again = pattern.iter().cycle();
                    block.iter_mut().zip(again).for_each(|(byte, value)| *byte = *value);
                }
            }
            Content::Incompressible => random.fill(bytes),
            Content::Compressible(percent) => {
                // Of each 4 KiB that many percent are random and the rest repeats one byte: small
                // enough a unit for every compressor's window to see the same share.
                let share = usize::from(percent.clamp(1, 99));
                for page in bytes.chunks_mut(4096) {
                    let random_bytes = page.len() * share / 100;
                    random.fill(&mut page[..random_bytes]);
                }
            }
        }
    }

    /// All blocks.
    pub fn all_mut(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is `mapped_bytes` long, readable, writable, initialised by the
        // kernel with zeros, and borrowed exclusively through `self`.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.mapped_bytes) }
    }

    /// The first block.
    pub fn first_mut(&mut self) -> &mut [u8] {
        let block_bytes = self.block_bytes;
        &mut self.all_mut()[..block_bytes]
    }

    /// One block.
    ///
    /// # Panics
    /// If there is no such block.
    pub fn block_mut(&mut self, index: usize) -> &mut [u8] {
        assert!(index < self.blocks, "block {index} of {}", self.blocks);
        let block_bytes = self.block_bytes;
        &mut self.all_mut()[index * block_bytes..][..block_bytes]
    }

    /// [`stamp`]s one block, if there is such a block.
    #[inline(always)]
    pub fn stamp_block(&mut self, index: usize, counter: &mut u64) {
        if index >= self.blocks || self.block_bytes < STAMP_BYTES {
            return;
        }
        // SAFETY: the block lies within the mapping, which `self` borrows exclusively. The same
        // through `block_mut` would check the bounds twice more in the hot loop.
        let block = unsafe {
            let start = self.start.as_ptr().add(index * self.block_bytes);
            std::slice::from_raw_parts_mut(start, self.block_bytes)
        };
        stamp(block, counter);
    }

    /// Address of a block, for the kernel.
    ///
    /// # Panics
    /// If there is no such block.
    pub fn block_address(&self, index: usize) -> *mut c_void {
        assert!(index < self.blocks, "block {index} of {}", self.blocks);
        // SAFETY: the block lies within the mapping.
        unsafe { self.start.as_ptr().add(index * self.block_bytes) }.cast()
    }

    /// Address and length of everything, for the kernel.
    pub fn whole(&self) -> (*mut c_void, usize) {
        (self.start.as_ptr().cast(), self.mapped_bytes)
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this length, and no reference into it can
        // outlive `self`. The kernel holds its own references to pages that are still in use.
        // Unmapping a mapping of our own cannot fail, and there would be nothing to do about it.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.mapped_bytes) };
    }
}

/// Makes a block that is about to be written differ from all others: the next numbers go to the
/// start of each 4 KiB of it.
#[inline(always)]
pub fn stamp(block: &mut [u8], counter: &mut u64) {
    *counter = counter.wrapping_add(1);
    if let Some(head) = block.first_chunk_mut::<STAMP_BYTES>() {
        *head = counter.to_le_bytes();
    }
    if block.len() > STAMP_STRIDE {
        *counter = stamp_rest(&mut block[STAMP_STRIDE..], *counter);
    }
}

/// The pages after the first; kept apart so that small blocks pay for one page only. Takes the last
/// number and gives the new last one: by reference, it would be in memory in the hot loop.
#[inline(never)]
fn stamp_rest(rest: &mut [u8], mut counter: u64) -> u64 {
    for page in rest.chunks_mut(STAMP_STRIDE) {
        counter = counter.wrapping_add(1);
        if let Some(head) = page.first_chunk_mut::<STAMP_BYTES>() {
            *head = counter.to_le_bytes();
        }
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distinct_bytes(bytes: &[u8]) -> usize {
        let mut seen = [false; 256];
        for &byte in bytes {
            seen[usize::from(byte)] = true;
        }
        seen.iter().filter(|&&there| there).count()
    }

    #[test]
    fn content_is_what_was_asked_for() {
        let mut random = Buffers::new(2, 8192, Content::Incompressible, 1).unwrap();
        assert_eq!(distinct_bytes(random.first_mut()), 256);
        let mut zeros = Buffers::new(2, 8192, Content::Zeros, 1).unwrap();
        assert!(zeros.all_mut().iter().all(|&byte| byte == 0));
        let mut half = Buffers::new(1, 4096, Content::Compressible(50), 1).unwrap();
        let zeros = half.first_mut().iter().filter(|&&byte| byte == 0).count();
        assert!((2048..2100).contains(&zeros), "{zeros}");
    }

    #[test]
    fn blocks_are_aligned_and_apart() {
        let mut buffers = Buffers::new(3, 4096, Content::Zeros, 0).unwrap();
        let mut counter = 0;
        for index in 0..4 {
            buffers.stamp_block(index, &mut counter);
        }
        assert_eq!(counter, 3, "there is no fourth block");
        for index in 0..3 {
            assert_eq!(buffers.block_address(index) as usize % 4096, 0);
            assert_eq!(buffers.all_mut()[index * 4096], index as u8 + 1);
        }
        assert_eq!(buffers.whole().1, 3 * 4096);
    }

    #[test]
    fn stamped_blocks_differ_in_each_page() {
        let mut buffers = Buffers::new(1, 8192, Content::Incompressible, 1).unwrap();
        let mut counter = 0;
        stamp(buffers.first_mut(), &mut counter);
        let before = buffers.first_mut().to_vec();
        stamp(buffers.first_mut(), &mut counter);
        let after = buffers.first_mut();
        assert_ne!(before[..4096], after[..4096]);
        assert_ne!(before[4096..], after[4096..]);
        assert_eq!(counter, 4);
    }

    #[test]
    fn impossible_sizes_are_errors() {
        assert!(Buffers::new(0, 4096, Content::Zeros, 0).is_err());
        assert!(Buffers::new(usize::MAX, 4096, Content::Zeros, 0).is_err());
    }
}
