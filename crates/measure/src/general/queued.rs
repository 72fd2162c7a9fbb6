//! Many operations of any kind in flight from one thread, through io_uring, from a script.

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rubus_vocabulary::spec::Content;
use rustix::io::Errno;

use super::baton::Baton;
use super::blocking::{BREATH, drop_cached, flush_all, verb, wait_for};
use super::checks::Checks;
use super::ledger::Ledger;
use super::script::{Operation, Step};
use super::work::Copy;
use crate::error::io_failure;
use crate::mailbox::WorkerEnd;
use crate::ring::{Completion, Order, Orders, Ring};
use rubus_host::block::buffers::{Buffers, stamp};
use rubus_host::ticks::now_ns;

/// A queue with everything that its operations use.
pub(crate) struct Queue<'a> {
    ring: Ring,
    orders: Orders,
    /// Blocks to read into or to write from, one per slot; of a mix the one kind, then the other. Dropped
    /// only when nothing is in flight.
    buffers: ManuallyDrop<Buffers>,
    files: &'a [Arc<OwnedFd>],
    content: Content,
    stamps: u64,
    checks: Option<&'a Checks>,
    /// Where the blocks to write from begin.
    write_blocks: usize,
    flying: Vec<Option<Flying>>,
    free: Vec<usize>,
    queued: u32,
    in_flight: u32,
    /// The kernel has said that it cannot do operations of this size without waiting.
    waits_from_bytes: u32,
    /// A write whose flush waits for all others.
    before_flush: Option<Flying>,
}

/// An operation on its way.
#[derive(Clone, Copy)]
struct Flying {
    operation: Operation,
    began_ns: u64,
}

impl<'a> Queue<'a> {
    /// A queue of `depth` operations of one copy of a job.
    ///
    /// # Errors
    /// The kernel's refusal of a ring, or of the memory.
    pub(crate) fn new(
        copy: &'a Copy,
        depth: u32,
        content: Content,
        seed: u64,
    ) -> Result<Self, Errno> {
        let (files, longest) = (&copy.files[..], copy.plan.longest());
        let slots = depth as usize;
        let block_bytes = (longest as usize).next_multiple_of(4096);
        let buffers = Buffers::new(copy.blocks() * slots, block_bytes, content, seed)
            .map_err(|_| Errno::NOMEM)?;
        let mut ring = Ring::new(depth, false)?;
        let fds: Vec<BorrowedFd<'_>> = files.iter().map(|file| file.as_fd()).collect();
        let orders = ring.prepare_orders(&fds, &buffers);
        Ok(Queue {
            ring,
            orders,
            buffers: ManuallyDrop::new(buffers),
            files,
            content,
            stamps: seed,
            checks: copy.checks.as_ref(),
            write_blocks: (copy.blocks() - 1) * slots,
            flying: vec![None; slots],
            free: (0..slots).rev().collect(),
            queued: 0,
            in_flight: 0,
            waits_from_bytes: u32::MAX,
            before_flush: None,
        })
    }
}

/// Keeps the queue full of what is due until the script is over or the worker is told to end.
/// `origin_ns` is the start of the script.
pub(crate) fn run(
    queue: &mut Queue<'_>,
    baton: &Baton,
    ledger: &mut Ledger,
    origin_ns: u64,
) -> WorkerEnd {
    match queue.turn(baton, ledger, origin_ns) {
        Ok(end) => end,
        Err(error) => {
            queue.abandon();
            WorkerEnd::Failed(error)
        }
    }
}

impl Queue<'_> {
    fn turn(
        &mut self,
        baton: &Baton,
        ledger: &mut Ledger,
        origin_ns: u64,
    ) -> Result<WorkerEnd, String> {
        let mut next: Option<Operation> = None;
        let mut is_over = false;
        loop {
            let is_stopped = ledger.is_stopped();
            let now = now_ns();
            while !is_over && !self.free.is_empty() {
                let operation = match next.take() {
                    // What will be read back has to be written in any case.
                    Some(operation) if !is_stopped || self.checks.is_some() => operation,
                    _ if is_stopped => break,
                    Some(operation) => operation,
                    None => match baton.next(now.saturating_sub(origin_ns)) {
                        Step::Do(operation) => operation,
                        Step::Drain => break,
                        Step::Over => {
                            is_over = true;
                            break;
                        }
                    },
                };
                let is_due = origin_ns.saturating_add(operation.due_ns) <= now;
                if !is_due && !is_stopped {
                    next = Some(operation);
                    break;
                }
                self.issue(operation, now, ledger);
            }
            if self.is_idle() {
                match next {
                    _ if is_stopped => return Ok(WorkerEnd::Stopped),
                    None if is_over => return Ok(WorkerEnd::Spent),
                    None => {
                        // An operation of another copy is in the way.
                        std::thread::sleep(BREATH);
                        continue;
                    }
                    Some(operation) => {
                        wait_for(&operation, origin_ns, ledger);
                        continue;
                    }
                }
            }
            let due_ns = next.map(|operation| origin_ns.saturating_add(operation.due_ns));
            self.wait(due_ns.filter(|_| !self.free.is_empty()))?;
            self.reap(baton, ledger)?;
        }
    }

    fn is_idle(&self) -> bool {
        self.queued + self.in_flight == 0 && self.before_flush.is_none()
    }

    fn issue(&mut self, operation: Operation, now: u64, ledger: &mut Ledger) {
        let Some(slot) = self.free.pop() else {
            return;
        };
        if self.is_idle() {
            ledger.busy_from(now);
        }
        let began_ns = if operation.drops.is_some() {
            drop_cached(self.files[operation.file as usize].as_fd(), &operation);
            now_ns()
        } else {
            now
        };
        self.flying[slot] = Some(Flying { operation, began_ns });
        if operation.is_write {
            let index = self.write_blocks + slot;
            let block = &mut self.buffers.block_mut(index)[..operation.bytes as usize];
            if self.content.differs() {
                stamp(block, &mut self.stamps);
            }
            if let Some(checks) = self.checks {
                checks.seal(block, &operation);
            }
        }
        self.enqueue(slot, &operation);
    }

    fn enqueue(&mut self, slot: usize, operation: &Operation) {
        let index = if operation.is_write { self.write_blocks + slot } else { slot };
        let order = Order {
            is_write: operation.is_write,
            file: operation.file,
            offset: operation.offset,
            address: self.buffers.block_address(index),
            bytes: operation.bytes,
            may_wait: operation.bytes >= self.waits_from_bytes,
        };
        self.ring.queue_order(slot, &self.orders, &order);
        self.queued += 1;
    }

    /// Submits what is queued and waits for a completion, but not beyond `due_ns`.
    fn wait(&mut self, due_ns: Option<u64>) -> Result<(), String> {
        let queued = std::mem::take(&mut self.queued);
        self.in_flight += queued;
        let wanted = u32::from(due_ns.is_none() && self.in_flight > 0);
        let entered = self.ring.enter(queued, wanted);
        let waited = entered.and_then(|()| match due_ns {
            Some(due_ns) if self.ring.waiting() == 0 => {
                let most = Duration::from_nanos(due_ns.saturating_sub(now_ns()));
                self.ring.max_wait(most)
            }
            _ => Ok(()),
        });
        waited.map_err(|errno| {
            let (error, in_flight) = (std::io::Error::from(errno), self.in_flight);
            format!("io_uring failed with {in_flight} operations in flight: {error}")
        })
    }

    /// Counts all completions that are there.
    fn reap(&mut self, baton: &Baton, ledger: &mut Ledger) -> Result<(), String> {
        let mut now = now_ns();
        for _ in 0..self.ring.waiting() {
            let done = self.ring.take();
            self.in_flight -= 1;
            let slot = done.slot();
            let Some(flying) = self.flying.get(slot).copied().flatten() else {
                return Err(format!("the kernel completed slot {slot}, which is not in use"));
            };
            if !done.is_whole(flying.operation.bytes) {
                self.again_or_failure(slot, done, &flying.operation)?;
                continue;
            }
            self.flying[slot] = None;
            self.free.push(slot);
            match flying.operation.flush {
                Some(flush) if flush.alone => self.before_flush = Some(flying),
                _ => {
                    self.count(&flying, now, ledger);
                    baton.done(&flying.operation);
                    self.check(slot, &flying.operation)?;
                }
            }
        }
        self.ring.release();
        let all_ended = self.queued + self.in_flight == 0;
        if let Some(flying) = self.before_flush.take_if(|_| all_ended) {
            if let Some(flush) = flying.operation.flush {
                flush_all(self.files, flush, &flying.operation)?;
            }
            now = now_ns();
            self.count(&flying, now, ledger);
            baton.done(&flying.operation);
        }
        ledger.close(now);
        Ok(())
    }

    /// Compares what was read with what it should be.
    fn check(&mut self, slot: usize, operation: &Operation) -> Result<(), String> {
        match self.checks {
            Some(checks) if !operation.is_write => {
                let block = &mut self.buffers.block_mut(slot)[..operation.bytes as usize];
                checks.check(block, operation)
            }
            _ => Ok(()),
        }
    }

    fn count(&mut self, flying: &Flying, now: u64, ledger: &mut Ledger) {
        let Flying { operation, began_ns } = *flying;
        ledger.done(&operation, began_ns, now);
    }

    /// "Try again" is no failure of the target: see the same in `engine::ring`.
    #[cold]
    fn again_or_failure(
        &mut self,
        slot: usize,
        done: Completion,
        operation: &Operation,
    ) -> Result<(), String> {
        if matches!(done.moved(), Err(Errno::AGAIN | Errno::INTR)) {
            self.waits_from_bytes = self.waits_from_bytes.min(operation.bytes);
            self.enqueue(slot, operation);
            return Ok(());
        }
        let bytes = operation.bytes as usize;
        Err(io_failure(verb(operation), bytes, operation.offset, done.moved()))
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
