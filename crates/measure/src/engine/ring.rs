//! Many operations in flight from one thread, through io_uring.
//!
//! One system call submits what is due and waits for the next completion; one reading of the clock
//! ends the operations that were reaped and begins those that take their places.

use std::mem::ManuallyDrop;
use std::os::fd::BorrowedFd;

use rubus_vocabulary::spec::Content;
use rustix::io::Errno;

use crate::error::io_failure;
use crate::mailbox::WorkerEnd;
use crate::ring::{Completion, Ring};
use crate::walk::Walk;
use crate::worker::Tally;
use rubus_host::block::buffers::Buffers;
use rubus_host::ticks::now_ns;

/// A ring with everything that its operations use.
pub(crate) struct Queue<'a> {
    ring: Ring,
    /// Dropped only when nothing is in flight.
    buffers: ManuallyDrop<Buffers>,
    issued_ns: Vec<u64>,
    block_bytes: u32,
    is_write: bool,
    stamps: Option<u64>,
    in_flight: u32,
    _file: BorrowedFd<'a>,
}

impl<'a> Queue<'a> {
    /// A queue of `depth` operations of `block_bytes` bytes on `file`, whose completions may be `polled` for.
    ///
    /// # Errors
    /// The kernel's refusal of a ring, or of the memory.
    pub(crate) fn new(
        file: BorrowedFd<'a>,
        depth: u32,
        block_bytes: u32,
        is_write: bool,
        content: Content,
        seed: u64,
        polled: bool,
    ) -> Result<Self, Errno> {
        let buffers = Buffers::new(depth as usize, block_bytes as usize, content, seed)
            .map_err(|_| Errno::NOMEM)?;
        let mut ring = Ring::new(depth, polled)?;
        ring.prepare(file, &buffers, block_bytes, is_write);
        Ok(Queue {
            ring,
            buffers: ManuallyDrop::new(buffers),
            issued_ns: vec![0; depth as usize],
            block_bytes,
            is_write,
            stamps: content.differs().then_some(seed),
            in_flight: 0,
            _file: file,
        })
    }

    /// Keeps the queue full along the walk until the tally says to end, then empties it.
    pub(crate) fn run(&mut self, mut walk: impl Walk, tally: &mut Tally) -> WorkerEnd {
        let end = if self.is_write {
            self.fill_and_turn::<true>(&mut walk, tally)
        } else {
            self.fill_and_turn::<false>(&mut walk, tally)
        };
        match end {
            Ok(end) => end,
            Err(error) => {
                self.abandon();
                WorkerEnd::Failed(error)
            }
        }
    }

    fn fill_and_turn<const WRITE: bool>(
        &mut self,
        walk: &mut impl Walk,
        tally: &mut Tally,
    ) -> Result<WorkerEnd, String> {
        let depth = self.issued_ns.len();
        let mut left = tally.most();
        let mut queued = 0;
        let now = now_ns();
        for slot in 0..depth.min(usize::try_from(left).unwrap_or(depth)) {
            self.issued_ns[slot] = now;
            self.issue::<WRITE>(slot, walk);
            queued += 1;
            left -= 1;
        }
        loop {
            self.submit_and_wait(queued)?;
            let now = now_ns();
            let waiting = self.ring.waiting();
            let mut reaped = waiting;
            queued = 0;
            for _ in 0..waiting {
                // The next operation of the slot begins where this one ends.
                let Some(slot) = self.reap(now, tally)? else {
                    reaped -= 1;
                    queued += 1;
                    continue;
                };
                if left > 0 {
                    left -= 1;
                    queued += 1;
                    self.issue::<WRITE>(slot, walk);
                }
            }
            self.ring.release();
            if reaped > 0 && tally.group(now, reaped) && !tally.turn(reaped) {
                let end = tally.why_over();
                self.drain(queued, tally)?;
                return Ok(end);
            }
        }
    }

    #[inline(always)]
    fn submit_and_wait(&mut self, queued: u32) -> Result<(), String> {
        self.in_flight += queued;
        match self.ring.enter(queued, 1) {
            Ok(()) => Ok(()),
            Err(errno) => Err(refused(errno, self.in_flight)),
        }
    }

    /// Queues one operation in a slot that is free.
    #[inline(always)]
    fn issue<const WRITE: bool>(&mut self, slot: usize, walk: &mut impl Walk) {
        if WRITE {
            if let Some(counter) = &mut self.stamps {
                self.buffers.stamp_block(slot, counter);
            }
        }
        self.ring.queue(slot, walk.next_offset());
    }

    /// Takes and counts one completion; returns its slot, whose timing restarts, or nothing when
    /// the same operation has been queued again.
    #[inline(always)]
    fn reap(&mut self, now: u64, tally: &mut Tally) -> Result<Option<usize>, String> {
        let done = self.ring.take();
        self.in_flight -= 1;
        let slot = done.slot();
        let Some(issued_ns) = self.issued_ns.get_mut(slot) else {
            return Err(format!("the kernel completed slot {slot}, which does not exist"));
        };
        let began_ns = std::mem::replace(issued_ns, now);
        if !done.is_whole(self.block_bytes) {
            return self.again_or_failure(done, began_ns);
        }
        if tally.latency(now.wrapping_sub(began_ns)) {
            tally.look_at(began_ns, now);
        }
        Ok(Some(slot))
    }

    /// "Try again" is no failure of the target. Kernels before 6.3 say so when they cannot split a
    /// large operation without waiting and its device is throttled, and would say so again and again:
    /// the slot's operations may wait from now on. Its time runs on.
    #[cold]
    fn again_or_failure(
        &mut self,
        done: Completion,
        began_ns: u64,
    ) -> Result<Option<usize>, String> {
        if !matches!(done.moved(), Err(Errno::AGAIN | Errno::INTR)) {
            return Err(self.describe(done));
        }
        self.issued_ns[done.slot()] = began_ns;
        self.ring.queue_again(done.slot());
        Ok(None)
    }

    #[cold]
    fn describe(&self, done: Completion) -> String {
        let verb = if self.is_write { "write" } else { "read" };
        let offset = self.ring.offset_of(done.slot());
        io_failure(verb, self.block_bytes as usize, offset, done.moved())
    }

    /// Waits for what is in flight and for the `queued` that are not yet submitted, and counts it.
    fn drain(&mut self, mut queued: u32, tally: &mut Tally) -> Result<(), String> {
        while self.in_flight + queued > 0 {
            self.submit_and_wait(queued)?;
            queued = 0;
            let now = now_ns();
            let waiting = self.ring.waiting();
            let mut reaped = waiting;
            for _ in 0..waiting {
                if self.reap(now, tally)?.is_none() {
                    reaped -= 1;
                    queued += 1;
                }
            }
            self.ring.release();
            if reaped > 0 && tally.group(now, reaped) {
                tally.turn(reaped);
            }
        }
        Ok(())
    }

    /// After a failure: waits for what is in flight without counting it.
    #[cold]
    fn abandon(&mut self) {
        self.in_flight = self.ring.abandon(self.in_flight);
    }
}

impl Drop for Queue<'_> {
    fn drop(&mut self) {
        // With operations still in flight the kernel may yet write to the memory: better to lose it
        // than to let something else live there.
        if self.in_flight == 0 {
            // SAFETY: dropped here only, once, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.buffers) };
        }
    }
}

#[cold]
fn refused(errno: Errno, in_flight: u32) -> String {
    let error = std::io::Error::from(errno);
    format!("io_uring failed with {in_flight} operations in flight: {error}")
}
