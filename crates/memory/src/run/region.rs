//! Memory of our own, in pages that are never joined to larger ones.

use std::ptr::NonNull;

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// A region of the address space. Its pages come into being when they are touched.
pub(super) struct Region {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone and is not tied to a thread.
unsafe impl Send for Region {}

impl Region {
    /// Reserves `bytes` bytes of address space; none of it is backed by memory yet.
    pub(super) fn reserve(bytes: usize) -> std::io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice disturbs nothing.
        let start = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                bytes,
                protection,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )?
        };
        let region = Region { start: NonNull::new(start.cast()).ok_or(Errno::NOMEM)?, bytes };
        // Large pages go to swap as a whole, so a touch would cost what their size says. A kernel without large pages
        // does not know this advice, and does not need it.
        // SAFETY: the region is ours, and the advice changes no contents.
        let _ = unsafe { madvise(start, bytes, Advice::LinuxNoHugepage) };
        Ok(region)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn all_mut(&mut self) -> &mut [u8] {
        // SAFETY: the mapping has this length, is readable and writable, initialised by the kernel with zeros,
        // and borrowed exclusively through `self`.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `reserve` with this length, and no reference into it outlives `self`.
        // Unmapping a mapping of our own cannot fail.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
