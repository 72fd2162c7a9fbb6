//! One operation at a time with positional reads and writes: the cheapest engine at depth 1.
//!
//! The loop is compiled once per kind of operation and order; the account of an operation that
//! ended is at the same time the start of the next, so each costs one reading of the clock.

use std::os::fd::BorrowedFd;

use rustix::fs::fdatasync;
use rustix::io::{Errno, pread, pwrite};

use crate::error::io_failure;
use crate::mailbox::WorkerEnd;
use crate::page_cache::settle;
use crate::walk::Walk;
use crate::worker::Tally;
use rubus_host::block::buffers::stamp;
use rubus_host::ticks::now_ns;

/// One blocking operation on the target.
pub(crate) trait Operation {
    /// Does it at `offset`; gives the bytes that were moved.
    fn run(&mut self, offset: u64) -> Result<usize, Errno>;
    /// What it is, for messages ("read").
    const VERB: &'static str;
}

pub(crate) struct Read<'a> {
    /// File to read from.
    pub(crate) fd: BorrowedFd<'a>,
    /// Memory to read into.
    pub(crate) block: &'a mut [u8],
}

impl Operation for Read<'_> {
    const VERB: &'static str = "read";

    #[inline(always)]
    fn run(&mut self, offset: u64) -> Result<usize, Errno> {
        pread(self.fd, &mut *self.block, offset)
    }
}

/// A write of a block that differs from all before.
pub(crate) struct Write<'a> {
    /// File to write to.
    pub(crate) fd: BorrowedFd<'a>,
    /// Memory to write from.
    pub(crate) block: &'a mut [u8],
    /// Number of the last stamp; absent when the content is not to be touched.
    pub(crate) stamps: Option<u64>,
}

impl Write<'_> {
    #[inline(always)]
    fn stamp(&mut self) {
        if let Some(counter) = &mut self.stamps {
            stamp(self.block, counter);
        }
    }
}

impl Operation for Write<'_> {
    const VERB: &'static str = "write";

    #[inline(always)]
    fn run(&mut self, offset: u64) -> Result<usize, Errno> {
        self.stamp();
        pwrite(self.fd, &*self.block, offset)
    }
}

/// A write through the page cache that waits until the device has the data, as a direct write
/// does: without this the rate would be that of memory until the kernel throttles the writer.
pub(crate) struct SettledWrite<'a>(pub(crate) Write<'a>);

impl Operation for SettledWrite<'_> {
    const VERB: &'static str = "write";

    #[inline(always)]
    fn run(&mut self, offset: u64) -> Result<usize, Errno> {
        let written = self.0.run(offset)?;
        settle(self.0.fd, offset, written as u64)?;
        Ok(written)
    }
}

/// A commit: a write that is durable when it ends.
pub(crate) struct Commit<'a>(pub(crate) Write<'a>);

impl Operation for Commit<'_> {
    const VERB: &'static str = "commit";

    #[inline(always)]
    fn run(&mut self, offset: u64) -> Result<usize, Errno> {
        let written = self.0.run(offset)?;
        fdatasync(self.0.fd)?;
        Ok(written)
    }
}

/// Repeats the operation along the walk until the tally says to end. Each must move `block_bytes`.
pub(crate) fn run<O: Operation>(
    operation: O,
    block_bytes: usize,
    mut walk: impl Walk,
    tally: &mut Tally,
) -> WorkerEnd {
    // As a local value it is in registers; what an argument points to, a system call might change.
    let mut operation = operation;
    loop {
        let offset = walk.next_offset();
        match operation.run(offset) {
            Ok(moved) if moved == block_bytes => {}
            moved => return WorkerEnd::Failed(io_failure(O::VERB, block_bytes, offset, moved)),
        }
        if tally.one(now_ns()) && !tally.turn_one() {
            return tally.why_over();
        }
    }
}
