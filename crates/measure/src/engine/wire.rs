//! Many operations in flight from one thread, on a connection of our own to a network disk.
//!
//! One exchange sends what is due and waits for the next completion; one reading of the clock ends the
//! operations that were completed and begins those that take their places, as with io_uring.

use crate::mailbox::WorkerEnd;
use crate::remote::{Completion, Connections, Request, RequestKind, Wire};
use crate::walk::Walk;
use crate::work::Work;
use crate::worker::Tally;
use rubus_host::block::buffers::Buffers;
use rubus_host::ticks::now_ns;

/// A connection with everything that its operations use.
pub(crate) struct Line<'a> {
    wire: Box<dyn Wire>,
    connections: &'a Connections,
    buffers: Buffers,
    slots: Vec<Slot>,
    due: Vec<Request>,
    completions: Vec<Completion>,
    block_bytes: u32,
    kind: RequestKind,
    /// Each write is followed by a flush, and both are one operation.
    flushes: bool,
    stamps: Option<u64>,
    in_flight: u32,
    hole_bytes: u64,
}

/// One operation in flight.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    issued_ns: u64,
    offset: u64,
    /// Its write is completed, its flush is not.
    is_flushing: bool,
}

impl<'a> Line<'a> {
    /// A line with `depth` operations of `work` in flight, at least one.
    ///
    /// # Errors
    /// In words, when there is no connection or no memory.
    pub(crate) fn new(
        connections: &'a Connections,
        work: &Work,
        depth: u32,
        seed: u64,
    ) -> Result<Self, String> {
        let depth = depth.max(1) as usize;
        let (block_bytes, content) = (work.block_bytes, work.content);
        let buffers = Buffers::new(depth, block_bytes as usize, content, seed)
            .map_err(|error| format!("cannot get memory for {depth} blocks: {error}"))?;
        let at_once = connections.commits_at_once();
        Ok(Line {
            wire: connections.take()?,
            connections,
            buffers,
            slots: vec![Slot::default(); depth],
            due: Vec::with_capacity(depth),
            completions: Vec::with_capacity(depth),
            block_bytes,
            kind: match (work.is_write(), work.is_commit() && at_once) {
                (false, _) => RequestKind::Read,
                (true, false) => RequestKind::Write,
                (true, true) => RequestKind::DurableWrite,
            },
            flushes: work.is_commit() && !at_once,
            stamps: (work.is_write() && content.differs()).then_some(seed),
            in_flight: 0,
            hole_bytes: 0,
        })
    }

    /// Keeps the queue full along the walk until the tally says to end, then empties it. The
    /// connection is given back unless it broke.
    pub(crate) fn run(mut self, mut walk: impl Walk, tally: &mut Tally) -> WorkerEnd {
        let end = self.fill_and_turn(&mut walk, tally);
        self.connections.add_hole_bytes(self.hole_bytes);
        match end {
            Ok(end) => {
                self.connections.give_back(self.wire);
                end
            }
            Err(error) => WorkerEnd::Failed(error),
        }
    }

    fn fill_and_turn(
        &mut self,
        walk: &mut impl Walk,
        tally: &mut Tally,
    ) -> Result<WorkerEnd, String> {
        let depth = self.slots.len();
        let mut left = tally.most();
        let now = now_ns();
        for slot in 0..depth.min(usize::try_from(left).unwrap_or(depth)) {
            self.issue(slot, walk.next_offset(), now);
            left -= 1;
        }
        loop {
            let now = self.exchange()?;
            let mut reaped = 0;
            for index in 0..self.completions.len() {
                let Some(slot) = self.reap(index, now, tally)? else {
                    continue;
                };
                reaped += 1;
                if left > 0 {
                    left -= 1;
                    self.issue(slot, walk.next_offset(), now);
                }
            }
            if reaped > 0 && !self.count(now, reaped, tally) {
                let end = tally.why_over();
                self.drain(tally)?;
                return Ok(end);
            }
        }
    }

    /// Counts completed operations; false when the worker is to end.
    #[inline(always)]
    fn count(&self, now: u64, reaped: u32, tally: &mut Tally) -> bool {
        if self.slots.len() == 1 {
            // Its latency is the time since the one before.
            return !tally.one(now) || tally.turn_one();
        }
        !tally.group(now, reaped) || tally.turn(reaped)
    }

    /// Sends what is due and waits; gives the time at which the completions were there.
    #[inline(always)]
    fn exchange(&mut self) -> Result<u64, String> {
        self.in_flight += self.due.len() as u32;
        self.completions.clear();
        let (due, memory) = (&self.due, self.buffers.all_mut());
        self.wire.exchange(due, memory, &mut self.completions)?;
        self.due.clear();
        Ok(now_ns())
    }

    #[inline(always)]
    fn issue(&mut self, slot: usize, offset: u64, now: u64) {
        if let Some(counter) = &mut self.stamps {
            self.buffers.stamp_block(slot, counter);
        }
        self.slots[slot] = Slot { issued_ns: now, offset, is_flushing: false };
        self.send(slot, self.kind);
    }

    fn send(&mut self, slot: usize, kind: RequestKind) {
        let is_flush = kind == RequestKind::Flush;
        self.due.push(Request {
            slot: slot as u32,
            kind,
            offset: if is_flush { 0 } else { self.slots[slot].offset },
            length: if is_flush { 0 } else { self.block_bytes },
            memory_at: slot * self.block_bytes as usize,
        });
    }

    /// Takes one completion; gives the slot whose operation it ended, or nothing when a flush has
    /// still to follow.
    #[inline(always)]
    fn reap(&mut self, index: usize, now: u64, tally: &mut Tally) -> Result<Option<usize>, String> {
        let done = &self.completions[index];
        self.in_flight -= 1;
        let number = done.slot as usize;
        let Some(slot) = self.slots.get_mut(number) else {
            return Err(format!("slot {number} was completed, which does not exist"));
        };
        if let Some(failure) = &done.failure {
            return Err(describe(self.kind, self.block_bytes, slot, failure));
        }
        self.hole_bytes += u64::from(done.hole_bytes);
        if self.flushes && !slot.is_flushing {
            slot.is_flushing = true;
            self.send(number, RequestKind::Flush);
            return Ok(None);
        }
        let began_ns = slot.issued_ns;
        if self.slots.len() > 1 && tally.latency(now.wrapping_sub(began_ns)) {
            tally.look_at(began_ns, now);
        }
        Ok(Some(number))
    }

    /// Waits for what is in flight and for what is due, and counts it.
    fn drain(&mut self, tally: &mut Tally) -> Result<(), String> {
        while self.in_flight > 0 || !self.due.is_empty() {
            let now = self.exchange()?;
            let mut reaped = 0;
            for index in 0..self.completions.len() {
                reaped += u32::from(self.reap(index, now, tally)?.is_some());
            }
            if reaped > 0 {
                self.count(now, reaped, tally);
            }
        }
        Ok(())
    }
}

#[cold]
fn describe(kind: RequestKind, block_bytes: u32, slot: &Slot, failure: &str) -> String {
    let verb = match kind {
        RequestKind::Read => "read",
        RequestKind::Write => "write",
        RequestKind::DurableWrite => "durable write",
        RequestKind::Flush => "flush",
    };
    let offset = slot.offset;
    if slot.is_flushing {
        return format!("the flush after a write at byte {offset} failed: {failure}");
    }
    format!("a {verb} of {block_bytes} bytes at byte {offset} failed: {failure}")
}
