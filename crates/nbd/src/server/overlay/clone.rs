//! One open clone: reads that see the golden image where nothing was written, writes, and flushes that survive any crash.

use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use super::format::{BLOCK_BYTES, Header, Layout, MapNote, Page};
use super::gate::Gate;
use super::present::Present;
use super::store::{Golden, Memory, Store};
use crate::identity::{Identity, Uuid};
use crate::server::disk::{Abilities, Disk, Extent, Zeroing};
use crate::server::file_disk::new_epoch;
use crate::server::pool::lock;

/// Neighbouring blocks that are written for the first time one after the other.
const REGION_BLOCKS: u64 = 256;
const LOCKS: usize = 64;
/// Pages of the map that are held at once while they are written: 4 MiB.
const MAX_PAGES: usize = 1024;
/// Extents that are told at once.
const MAX_EXTENTS: usize = 8192;
const BLOCK: usize = BLOCK_BYTES as usize;

/// What is written by flushes alone.
#[derive(Debug)]
pub(super) struct Records {
    pub(super) header: Header,
    pub(super) header_sequence: u64,
    /// For each page of the map its place, 0 or 1, and its number; nothing where it was never written.
    pub(super) pages: Vec<Option<(usize, u64)>>,
}

/// An open clone.
pub struct CloneDisk<S: Store> {
    pub(super) store: S,
    pub(super) golden: Arc<dyn Golden>,
    pub(super) layout: Layout,
    /// Size of the disk.
    pub(super) size: u64,
    pub(super) identity: Identity,
    /// Nothing when the clone has all blocks.
    pub(super) present: Option<Present>,
    pub(super) records: Mutex<Records>,
    /// The name of the memory that outlives the server, where there is some.
    pub(super) memory: Option<(Arc<dyn Memory + Send + Sync>, String)>,
    /// It goes with the server, so nothing needs to be durable.
    pub(super) is_fleeting: bool,
    pub(super) locks: Box<[Mutex<()>; LOCKS]>,
    pub(super) gate: Gate,
    pub(super) is_broken: AtomicBool,
    /// What took the place of the epoch when a flush failed.
    pub(super) lost: OnceLock<Uuid>,
}

impl<S: Store> std::fmt::Debug for CloneDisk<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CloneDisk").field("identity", &self.identity).finish_non_exhaustive()
    }
}

/// Keeps others from writing blocks for the first time.
enum Locked<'a> {
    One { _guard: MutexGuard<'a, ()> },
    Several { _guards: Vec<MutexGuard<'a, ()>> },
}

pub(super) fn new_locks() -> Box<[Mutex<()>; LOCKS]> {
    Box::new(std::array::from_fn(|_| Mutex::new(())))
}

impl<S: Store> CloneDisk<S> {
    /// Which disk it is. After a failed flush it says that writes may be lost, as the next one to open it will.
    pub fn identity(&self) -> Identity {
        Identity { boot: *self.lost.get().unwrap_or(&self.identity.boot), ..self.identity }
    }

    /// How many bytes of the disk are the clone's own.
    pub fn own_bytes(&self) -> u64 {
        let blocks = match &self.present {
            Some(present) => present.count(),
            None => self.layout.blocks,
        };
        blocks * BLOCK_BYTES
    }

    /// Makes everything durable and says in the file that nothing is missing. Nothing may be written afterwards.
    ///
    /// # Errors
    /// The device's; the next one to open it finds out what is missing.
    pub fn close(&self) -> io::Result<()> {
        let is_closed = self.is_broken.load(Ordering::Acquire) && self.lost.get().is_none();
        if self.is_fleeting || is_closed {
            return Ok(());
        }
        self.flush()?;
        {
            let mut records = lock(&self.records);
            if records.header.in_use {
                records.header.in_use = false;
                records.header.note = Some(MapNote::of(&records.pages));
                self.write_header(&mut records).inspect_err(|_| self.lose())?;
            }
        }
        // A write after this point would be in no map.
        self.break_down();
        Ok(())
    }

    /// Says in the file that it is being written, durably.
    pub(super) fn say_in_use(&self) -> io::Result<()> {
        self.write_header(&mut lock(&self.records))
    }

    /// Writes the header durably.
    fn write_header(&self, records: &mut Records) -> io::Result<()> {
        let sequence = records.header_sequence + 1;
        let slot = records.header.encode(sequence);
        // The slot before it was made durable when it was written.
        let at = Header::slot_at((sequence % 2) as usize);
        self.store.write_at(at, &mut [IoSlice::new(&slot[..])])?;
        self.store.sync()?;
        records.header_sequence = sequence;
        Ok(())
    }

    /// Data first, then the map that says so; see `docs/internals/clone-file.md`.
    fn flush_now(&self) -> io::Result<()> {
        let Some(present) = &self.present else {
            return self.store.sync();
        };
        let mut records = lock(&self.records);
        let mut from = 0;
        loop {
            let pages = present.take_changed(&mut from, MAX_PAGES);
            // The blocks of these pages, and the pages before them.
            self.store.sync()?;
            for page in &pages {
                self.write_page(&mut records, page)?;
            }
            if pages.len() < MAX_PAGES {
                return if pages.is_empty() { Ok(()) } else { self.store.sync() };
            }
        }
    }

    fn write_page(&self, records: &mut Records, page: &Page) -> io::Result<()> {
        let number = page.number as usize;
        let (slot, sequence) = match records.pages[number] {
            Some((slot, sequence)) => (1 - slot, sequence + 1),
            None => (0, 1),
        };
        let bytes = page.encode(self.identity.export, self.identity.generation, sequence);
        let at = self.layout.page_at(number, slot);
        self.store.write_at(at, &mut [IoSlice::new(&bytes[..])])?;
        records.pages[number] = Some((slot, sequence));
        Ok(())
    }

    /// What could not be made durable may be gone from the page cache, too: from here on this clone takes nothing
    /// more, and the next one to open it believes the file alone.
    fn break_down(&self) {
        self.is_broken.store(true, Ordering::Release);
        if let Some((memory, name)) = &self.memory {
            memory.forget(name);
        }
    }

    /// A flush failed.
    pub(super) fn lose(&self) {
        // First, so that it is never taken for one that was closed.
        self.lost.get_or_init(new_epoch);
        self.break_down();
    }

    fn check(&self) -> io::Result<()> {
        if self.is_broken.load(Ordering::Acquire) {
            Err(io::Error::other(
                "this clone was closed, or a flush of it failed; it takes no more writes until it is opened again",
            ))
        } else {
            Ok(())
        }
    }

    fn place(&self, offset: u64) -> u64 {
        self.layout.data_at + offset
    }

    fn lock_blocks(&self, first: u64, end: u64) -> Locked<'_> {
        let (first, last) = (first / REGION_BLOCKS, (end - 1) / REGION_BLOCKS);
        if first == last {
            return Locked::One { _guard: lock(&self.locks[first as usize % LOCKS]) };
        }
        let mut wanted = [false; LOCKS];
        for region in first..=last.min(first + LOCKS as u64 - 1) {
            wanted[region as usize % LOCKS] = true;
        }
        // All take them in the same order.
        let locks = self.locks.iter().zip(wanted);
        let guards = locks.filter(|(_, wanted)| *wanted).map(|(mutex, _)| lock(mutex));
        Locked::Several { _guards: guards.collect() }
    }

    /// Writes where at least one block is not there; what a cut block lacks comes from the golden image.
    fn write_first(&self, present: &Present, offset: u64, from: &[u8]) -> io::Result<()> {
        let to = offset + from.len() as u64;
        let (first, end) = (offset / BLOCK_BYTES, to.div_ceil(BLOCK_BYTES));
        let _locked = self.lock_blocks(first, end);
        let mut before = [0; BLOCK];
        let mut after = [0; BLOCK];
        let mut before_bytes = (offset % BLOCK_BYTES) as usize;
        if before_bytes > 0 && present.has(first) {
            before_bytes = 0;
        }
        let mut after_bytes = (end * BLOCK_BYTES - to) as usize;
        if after_bytes > 0 && present.has(end - 1) {
            after_bytes = 0;
        }
        let (before, after) = (&mut before[..before_bytes], &mut after[..after_bytes]);
        let start = offset - before_bytes as u64;
        if before_bytes > 0 {
            self.golden.read_at(start, before)?;
        }
        if after_bytes > 0 {
            self.golden.read_at(to, after)?;
        }
        let parts = &mut [IoSlice::new(before), IoSlice::new(from), IoSlice::new(after)];
        match before_bytes + after_bytes {
            0 => self.store.write_at(self.place(start), &mut parts[1..2])?,
            _ => self.store.write_at(self.place(start), parts)?,
        }
        present.set(first, end);
        Ok(())
    }

    /// The whole blocks of a range; the cut one at the end of the disk is whole.
    fn whole_blocks(&self, offset: u64, length: u64) -> (u64, u64) {
        let to = offset + length;
        let end = if to == self.size { self.layout.blocks } else { to / BLOCK_BYTES };
        (offset.div_ceil(BLOCK_BYTES), end)
    }

    fn zero_blocks(&self, first: u64, end: u64, how: Zeroing) -> io::Result<()> {
        let _locked = self.present.as_ref().map(|_| self.lock_blocks(first, end));
        let (at, bytes) = (self.place(first * BLOCK_BYTES), (end - first) * BLOCK_BYTES);
        let mut done = if how.may_punch {
            self.store.punch(at, bytes)
        } else {
            Err(io::ErrorKind::Unsupported.into())
        };
        if is_unsupported(&done) {
            done = self.store.zero_in_place(at, bytes);
        }
        if is_unsupported(&done) && !how.only_if_fast {
            done = self.store.write_zeros(at, bytes);
        }
        done?;
        if let Some(present) = &self.present {
            present.set(first, end);
        }
        Ok(())
    }

    /// Calls `take` for each run of blocks that are or are not there, with the bytes of the range that lie in it.
    fn for_each_run(
        &self,
        offset: u64,
        length: u64,
        mut take: impl FnMut(bool, u64, u64) -> io::Result<bool>,
    ) -> io::Result<()> {
        let to = offset + length;
        let Some(present) = &self.present else {
            take(true, offset, to)?;
            return Ok(());
        };
        let end = to.div_ceil(BLOCK_BYTES);
        let mut at = offset;
        while at < to {
            let (is_there, run_end) = present.run(at / BLOCK_BYTES, end);
            let run_to = (run_end * BLOCK_BYTES).min(to);
            if !take(is_there, at, run_to)? {
                return Ok(());
            }
            at = run_to;
        }
        Ok(())
    }
}

impl<S: Store> Disk for CloneDisk<S> {
    fn size_bytes(&self) -> u64 {
        self.size
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            is_read_only: false,
            can_trim: true,
            can_zero_fast: true,
            knows_extents: true,
            // All connections of one client have one clone.
            is_shared: true,
            is_rotational: false,
        }
    }

    fn read_ready(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.for_each_run(offset, into.len() as u64, |is_there, at, to| {
            let part = &mut into[(at - offset) as usize..(to - offset) as usize];
            if is_there {
                self.store.read_ready_at(self.place(at), part)?
            } else {
                self.golden.read_ready_at(at, part)?
            }
            Ok(true)
        })
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.for_each_run(offset, into.len() as u64, |is_there, at, to| {
            let part = &mut into[(at - offset) as usize..(to - offset) as usize];
            if is_there {
                self.store.read_at(self.place(at), part)?
            } else {
                self.golden.read_at(at, part)?
            }
            Ok(true)
        })
    }

    fn write(&self, offset: u64, from: &[u8]) -> io::Result<()> {
        self.check()?;
        if from.is_empty() {
            return Ok(());
        }
        if let Some(present) = &self.present {
            let end = (offset + from.len() as u64).div_ceil(BLOCK_BYTES);
            if !present.has_all(offset / BLOCK_BYTES, end) {
                return self.write_first(present, offset, from);
            }
        }
        self.store.write_at(self.place(offset), &mut [IoSlice::new(from)])
    }

    fn flush(&self) -> io::Result<()> {
        // If the image changes meanwhile, its blocks are neither the old nor the new ones.
        if self.present.is_some() {
            self.golden.check()?;
        }
        if self.is_fleeting {
            return Ok(());
        }
        self.gate.pass(|| {
            self.check()?;
            self.flush_now().inspect_err(|_| self.lose())
        })
    }

    /// Blocks of the golden image stay what they are: nothing would be gained.
    fn trim(&self, offset: u64, length: u64) -> io::Result<()> {
        self.check()?;
        let (first, end) = self.whole_blocks(offset, length);
        if first >= end {
            return Ok(());
        }
        let bytes = (end - first) * BLOCK_BYTES;
        self.for_each_run(first * BLOCK_BYTES, bytes, |is_there, at, to| {
            if is_there {
                let punched = self.store.punch(self.place(at), to - at);
                if !is_unsupported(&punched) {
                    punched?;
                }
            }
            Ok(true)
        })
    }

    fn zero(&self, offset: u64, length: u64, how: Zeroing) -> io::Result<()> {
        self.check()?;
        let (first, end) = self.whole_blocks(offset, length);
        let to = offset + length;
        if first >= end {
            return self.write_short_zeros(offset, to);
        }
        // First what may be refused.
        self.zero_blocks(first, end, how)?;
        self.write_short_zeros(offset, first * BLOCK_BYTES)?;
        self.write_short_zeros((end * BLOCK_BYTES).min(to), to)
    }

    fn extents(&self, offset: u64, length: u64, only_one: bool) -> io::Result<Vec<Extent>> {
        let mut extents: Vec<Extent> = Vec::new();
        self.for_each_run(offset, length, |is_there, from, to| {
            let mut at = from;
            while at < to {
                let data = if is_there {
                    self.store.next_data(self.place(at))?.map(|(start, end)| {
                        let data_at = self.layout.data_at;
                        (start.saturating_sub(data_at), end.saturating_sub(data_at))
                    })
                } else {
                    self.golden.next_data(at)?
                };
                let (start, end) = data.unwrap_or((to, to));
                let (start, end) = (start.clamp(at, to), end.clamp(at, to));
                add(&mut extents, Extent::hole(start - at));
                add(&mut extents, Extent::data(end - start));
                at = end.max(start);
            }
            Ok(extents.len() < if only_one { 2 } else { MAX_EXTENTS })
        })?;
        if only_one {
            extents.truncate(1);
        }
        Ok(extents)
    }

    fn prefetch(&self, offset: u64, length: u64) -> io::Result<()> {
        self.for_each_run(offset, length, |is_there, at, to| {
            if is_there {
                self.store.will_need(self.place(at), to - at)
            } else {
                self.golden.will_need(at, to - at)
            }
            Ok(true)
        })
    }

    /// Its exports have asked before it is opened.
    fn admits(&self) -> io::Result<()> {
        Ok(())
    }

    fn lost_writes(&self) -> Option<Uuid> {
        self.lost.get().copied()
    }
}

impl<S: Store> CloneDisk<S> {
    fn write_short_zeros(&self, from: u64, to: u64) -> io::Result<()> {
        let zeros = [0; 2 * BLOCK];
        match to.checked_sub(from) {
            None | Some(0) => Ok(()),
            Some(bytes) => self.write(from, &zeros[..bytes as usize]),
        }
    }
}

fn add(extents: &mut Vec<Extent>, next: Extent) {
    match extents.last_mut() {
        _ if next.length == 0 => {}
        Some(last) if last.is_hole == next.is_hole => last.length += next.length,
        _ => extents.push(next),
    }
}

fn is_unsupported(done: &io::Result<()>) -> bool {
    matches!(done, Err(error) if error.kind() == io::ErrorKind::Unsupported)
}
