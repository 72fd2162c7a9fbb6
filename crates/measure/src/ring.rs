//! The kernel's submission and completion rings: set-up, registration, and their shared memory.
//!
//! Everything `unsafe` about io_uring is in this file. A [`Ring`] serves one fixed set of *slots*:
//! slot `i` owns entry `i` of the submission table, whose operation, file and memory are written
//! once; only the offset changes from one use to the next. The indirection array of the
//! submission ring names the slots, so they may complete and be reused in any order.
//!
//! Source: `io_uring(7)`, `io_uring_setup(2)`, `io_uring_enter(2)`, `io_uring_register(2)`.

use std::ffi::c_void;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::io_uring::{
    IORING_OFF_SQ_RING, IORING_OFF_SQES, IoringEnterFlags, IoringFeatureFlags, IoringOp,
    IoringRegisterOp, IoringSetupFlags, IoringSqeFlags, io_uring_enter, io_uring_params,
    io_uring_ptr, io_uring_register, io_uring_setup, io_uring_sqe, iovec,
};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use rubus_host::block::buffers::Buffers;

/// A completion as the kernel writes it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    user_data: u64,
    result: i32,
    flags: u32,
}

const _: () = assert!(size_of::<Completion>() == 16 && size_of::<io_uring_sqe>() == 64);

impl Completion {
    /// Which slot completed.
    #[inline(always)]
    pub(crate) fn slot(&self) -> usize {
        self.user_data as usize
    }

    /// Bytes that were moved, or the error.
    #[inline(always)]
    pub(crate) fn moved(&self) -> Result<usize, Errno> {
        if self.result >= 0 {
            Ok(self.result as usize)
        } else {
            Err(Errno::from_raw_os_error(-self.result))
        }
    }

    /// True when exactly `bytes` were moved.
    #[inline(always)]
    pub(crate) fn is_whole(&self, bytes: u32) -> bool {
        self.result as u32 == bytes
    }
}

/// A mapping that the kernel shares with us.
struct Shared {
    start: NonNull<c_void>,
    bytes: usize,
}

impl Shared {
    fn map(fd: BorrowedFd<'_>, offset: u64, bytes: usize) -> Result<Self, Errno> {
        // SAFETY: a new mapping at an address of the kernel's choice disturbs nothing.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::POPULATE,
                fd,
                offset,
            )?
        };
        let start = NonNull::new(start).ok_or(Errno::NOMEM)?;
        Ok(Shared { start, bytes })
    }

    /// The address of a `T` at a byte offset.
    ///
    /// # Errors
    /// `EPROTO` when the kernel names a place outside the mapping or not aligned for `T`.
    fn place<T>(&self, offset: u32, count: usize) -> Result<NonNull<T>, Errno> {
        let offset = offset as usize;
        let end = count.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(offset));
        if end.is_none_or(|end| end > self.bytes) || offset % align_of::<T>() != 0 {
            return Err(Errno::PROTO);
        }
        // SAFETY: `offset` lies within the mapping, as just checked.
        Ok(unsafe { self.start.byte_add(offset) }.cast())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: made by `map` with this length; the ring that uses the addresses goes with it.
        let _ = unsafe { munmap(self.start.as_ptr(), self.bytes) };
    }
}

/// An io_uring whose slots read from or write to one file. To be used only by the thread that
/// made it: the kernel is told so where it wants to know.
pub(crate) struct Ring {
    submission_tail: NonNull<AtomicU32>,
    submission_mask: u32,
    array: NonNull<u32>,
    entries: NonNull<io_uring_sqe>,
    completion_head: NonNull<AtomicU32>,
    completion_tail: NonNull<AtomicU32>,
    completion_mask: u32,
    completions: NonNull<Completion>,
    /// Local copies: only this program writes these two.
    tail: u32,
    head: u32,
    slots: u32,
    // The mappings go before the descriptor, and all after the addresses above.
    _rings: Shared,
    _entries: Shared,
    fd: OwnedFd,
}

/// What the operations of a ring whose slots are not all alike have in common.
pub(crate) struct Orders {
    files_registered: bool,
    memory_registered: bool,
    fds: Vec<i32>,
}

/// One operation of any kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    /// Write or read.
    pub(crate) is_write: bool,
    /// On which of the files.
    pub(crate) file: u32,
    /// Where in the file.
    pub(crate) offset: u64,
    /// Where in memory.
    pub(crate) address: *mut c_void,
    /// How many bytes.
    pub(crate) bytes: u32,
    /// A thread of the kernel's does it, which may wait.
    pub(crate) may_wait: bool,
}

/// The set-up flags that are tried, best first: completions delivered when this thread asks (Linux 6.1),
/// without interrupting it (5.19), and as ever. Each goes with polling: only the kernel's own submitting thread,
/// which no ring here has, excludes them.
const KINDS: [IoringSetupFlags; 3] = [
    IoringSetupFlags::SINGLE_ISSUER.union(IoringSetupFlags::DEFER_TASKRUN),
    IoringSetupFlags::COOP_TASKRUN,
    IoringSetupFlags::empty(),
];

/// A ring that is not yet mapped, with what the kernel says of it.
fn set_up(
    kind: IoringSetupFlags,
    slots: u32,
    polled: bool,
) -> Result<(OwnedFd, io_uring_params), Errno> {
    let mut params = io_uring_params::default();
    params.flags |= kind | IoringSetupFlags::CLAMP;
    if polled {
        params.flags |= IoringSetupFlags::IOPOLL;
    }
    // SAFETY: ATTACH_WQ is not among the flags.
    let fd = unsafe { io_uring_setup(slots.next_power_of_two(), &mut params) }?;
    Ok((fd, params))
}

impl Ring {
    /// A ring of `slots` slots (1 to 4096). Of a `polled` one every entry into the kernel asks the device for
    /// completions, so its files must be open with `O_DIRECT` and be able to answer; it cannot flush.
    ///
    /// # Errors
    /// `ENOSYS` where the kernel has none, `EPERM` where it is forbidden, `EPROTO` where it answers
    /// nonsense, or the error of a set-up step.
    pub(crate) fn new(slots: u32, polled: bool) -> Result<Self, Errno> {
        let mut last = Errno::INVAL;
        for kind in KINDS {
            match set_up(kind, slots, polled) {
                Ok((fd, params)) => return Ring::map(fd, &params, slots),
                // An older kernel does not know the flag.
                Err(Errno::INVAL) => last = Errno::INVAL,
                Err(errno) => return Err(errno),
            }
        }
        Err(last)
    }

    fn map(fd: OwnedFd, params: &io_uring_params, slots: u32) -> Result<Self, Errno> {
        use std::os::fd::AsFd;
        // Both rings in one mapping is as old as Linux 5.4; before that there is nothing to gain.
        let needed = IoringFeatureFlags::SINGLE_MMAP | IoringFeatureFlags::NODROP;
        if !params.features.contains(needed) || params.sq_entries < slots {
            return Err(Errno::NOSYS);
        }
        let submission_bytes = params.sq_off.array as usize + params.sq_entries as usize * 4;
        let completion_bytes =
            params.cq_off.cqes as usize + params.cq_entries as usize * size_of::<Completion>();
        let rings =
            Shared::map(fd.as_fd(), IORING_OFF_SQ_RING, submission_bytes.max(completion_bytes))?;
        let entries = Shared::map(
            fd.as_fd(),
            IORING_OFF_SQES,
            params.sq_entries as usize * size_of::<io_uring_sqe>(),
        )?;
        let (sq, cq) = (&params.sq_off, &params.cq_off);
        let ring = Ring {
            submission_tail: rings.place(sq.tail, 1)?,
            submission_mask: params.sq_entries - 1,
            array: rings.place(sq.array, params.sq_entries as usize)?,
            entries: entries.place(0, params.sq_entries as usize)?,
            completion_head: rings.place(cq.head, 1)?,
            completion_tail: rings.place(cq.tail, 1)?,
            completion_mask: params.cq_entries - 1,
            completions: rings.place(cq.cqes, params.cq_entries as usize)?,
            tail: 0,
            head: 0,
            slots,
            _rings: rings,
            _entries: entries,
            fd,
        };
        if !params.sq_entries.is_power_of_two() || !params.cq_entries.is_power_of_two() {
            return Err(Errno::PROTO);
        }
        Ok(ring)
    }

    /// Prepares all slots: slot `i` moves block `i` of the buffers to or from `file`. File and memory
    /// are registered with the kernel where it lets us; without that each operation looks them up
    /// again, which costs a little more and measures the same.
    ///
    /// The buffers and the file must outlive the ring's last completion.
    pub(crate) fn prepare(
        &mut self,
        file: BorrowedFd<'_>,
        buffers: &Buffers,
        block_bytes: u32,
        is_write: bool,
    ) {
        let file_index = self.register_file(file);
        let registered = self.register_memory(buffers);
        let opcode = match (is_write, registered) {
            (false, true) => IoringOp::ReadFixed,
            (true, true) => IoringOp::WriteFixed,
            (false, false) => IoringOp::Read,
            (true, false) => IoringOp::Write,
        };
        for slot in 0..self.slots {
            let (flags, fd) = match file_index {
                Some(index) => (IoringSqeFlags::FIXED_FILE, index),
                None => (IoringSqeFlags::empty(), file.as_raw_fd()),
            };
            let mut entry = io_uring_sqe { opcode, flags, fd, ..io_uring_sqe::default() };
            let address = io_uring_ptr::new(buffers.block_address(slot as usize));
            entry.addr_or_splice_off_in.addr = address;
            entry.len.len = block_bytes;
            entry.user_data.u64_ = u64::from(slot);
            // SAFETY: `slots` entries were mapped, and the kernel reads an entry only between its
            // submission and its consumption by `enter`.
            unsafe { self.entries.add(slot as usize).write(entry) };
        }
    }

    fn register_file(&self, file: BorrowedFd<'_>) -> Option<i32> {
        self.register_files(&[file.as_raw_fd()]).then_some(0)
    }

    fn register_files(&self, fds: &[i32]) -> bool {
        // SAFETY: the slice holds descriptors and is only read during the call; the kernel refuses
        // those that are not open.
        let answer = unsafe {
            io_uring_register(
                &self.fd,
                IoringRegisterOp::RegisterFiles,
                fds.as_ptr().cast(),
                fds.len() as u32,
            )
        };
        answer.is_ok()
    }

    fn register_memory(&self, buffers: &Buffers) -> bool {
        let (iov_base, iov_len) = buffers.whole();
        let vector = iovec { iov_base: iov_base.cast(), iov_len: iov_len as _ };
        // SAFETY: the memory belongs to the buffers, which the caller keeps; the kernel takes its own
        // references to its pages.
        let answer = unsafe {
            io_uring_register(
                &self.fd,
                IoringRegisterOp::RegisterBuffers,
                (&raw const vector).cast(),
                1,
            )
        };
        answer.is_ok()
    }

    /// Prepares slots whose operations differ in everything: see [`Ring::queue_order`]. The buffers
    /// and the files must outlive the ring's last completion.
    pub(crate) fn prepare_orders(&mut self, files: &[BorrowedFd<'_>], buffers: &Buffers) -> Orders {
        let fds: Vec<i32> = files.iter().map(AsRawFd::as_raw_fd).collect();
        Orders {
            files_registered: self.register_files(&fds),
            memory_registered: self.register_memory(buffers),
            fds,
        }
    }

    /// Queues an operation of any kind in a slot; [`Ring::enter`] submits it.
    ///
    /// The slot must not be in flight, and `order` must name memory of the buffers and a file that
    /// [`Ring::prepare_orders`] was given.
    pub(crate) fn queue_order(&mut self, slot: usize, orders: &Orders, order: &Order) {
        assert!(slot < self.slots as usize, "slot {slot} of {}", self.slots);
        let mut entry = io_uring_sqe {
            opcode: match (order.is_write, orders.memory_registered) {
                (false, true) => IoringOp::ReadFixed,
                (true, true) => IoringOp::WriteFixed,
                (false, false) => IoringOp::Read,
                (true, false) => IoringOp::Write,
            },
            ..io_uring_sqe::default()
        };
        if orders.files_registered {
            entry.flags |= IoringSqeFlags::FIXED_FILE;
            entry.fd = order.file as i32;
        } else {
            entry.fd = orders.fds[order.file as usize];
        }
        if order.may_wait {
            entry.flags |= IoringSqeFlags::ASYNC;
        }
        entry.addr_or_splice_off_in.addr = io_uring_ptr::new(order.address);
        entry.len.len = order.bytes;
        entry.user_data.u64_ = slot as u64;
        // SAFETY: `slots` entries were mapped; this one is not in flight, and the kernel reads an
        // entry only between its submission and its consumption by `enter`.
        unsafe { self.entries.add(slot).write(entry) };
        self.queue(slot, order.offset);
    }

    /// Waits until a completion may be there, at most `most`, without submitting anything.
    ///
    /// # Errors
    /// The kernel's; an interruption by a signal is not one.
    pub(crate) fn max_wait(&mut self, most: std::time::Duration) -> Result<(), Errno> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let timeout = Timespec { tv_sec: most.as_secs() as _, tv_nsec: most.subsec_nanos() as _ };
        let mut wanted = [PollFd::new(&self.fd, PollFlags::IN)];
        match poll(&mut wanted, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        // Where completions are delivered only when this thread asks for them, this asks.
        self.enter(0, 0)
    }

    /// Queues a slot's operation at `offset`; [`Ring::enter`] submits it.
    ///
    /// The slot must not be in flight.
    ///
    /// # Panics
    /// If there is no such slot.
    #[inline(always)]
    pub(crate) fn queue(&mut self, slot: usize, offset: u64) {
        assert!(slot < self.slots as usize, "slot {slot} of {}", self.slots);
        // SAFETY: the slot is one of those mapped, and the kernel reads its entry only in `enter`;
        // the masked index lies within the array.
        unsafe {
            (*self.entries.add(slot).as_ptr()).off_or_addr2.off = offset;
            self.array.add((self.tail & self.submission_mask) as usize).write(slot as u32);
        }
        self.tail = self.tail.wrapping_add(1);
    }

    /// Queues a slot's last operation once more. This and all later ones of the slot are handed to
    /// a thread of the kernel's, which may wait.
    ///
    /// The slot must not be in flight.
    #[cold]
    pub(crate) fn queue_again(&mut self, slot: usize) {
        let offset = self.offset_of(slot);
        // SAFETY: the slot is one of those mapped and not in flight, so only we touch its entry.
        unsafe { (*self.entries.add(slot).as_ptr()).flags |= IoringSqeFlags::ASYNC };
        self.queue(slot, offset);
    }

    /// Where a slot's last operation went.
    ///
    /// # Panics
    /// If there is no such slot.
    pub(crate) fn offset_of(&self, slot: usize) -> u64 {
        assert!(slot < self.slots as usize, "slot {slot} of {}", self.slots);
        // SAFETY: the slot is one of those mapped; the kernel only reads entries.
        unsafe { (*self.entries.add(slot).as_ptr()).off_or_addr2.off }
    }

    /// Submits the last `queued` slots and waits until `wanted` completions are there.
    ///
    /// # Errors
    /// The kernel's; an interruption by a signal is not one.
    #[inline(always)]
    pub(crate) fn enter(&mut self, queued: u32, wanted: u32) -> Result<(), Errno> {
        // SAFETY: the word is in the mapping and shared with the kernel as an atomic.
        unsafe { self.submission_tail.as_ref() }.store(self.tail, Ordering::Release);
        let flags = IoringEnterFlags::GETEVENTS;
        // SAFETY: the flags name no argument; what the entries point to is the caller's promise to
        // `prepare`.
        match unsafe { io_uring_enter(&self.fd, queued, wanted, flags) } {
            Ok(submitted) if submitted == queued => Ok(()),
            answer => self.enter_again(queued, wanted, answer),
        }
    }

    #[cold]
    fn enter_again(
        &mut self,
        queued: u32,
        wanted: u32,
        mut answer: Result<u32, Errno>,
    ) -> Result<(), Errno> {
        let mut left = queued;
        loop {
            match answer {
                Ok(submitted) => {
                    left -= submitted.min(left);
                    if left == 0 && self.waiting() >= wanted {
                        return Ok(());
                    }
                    // With completions at hand the caller can make room.
                    if submitted == 0 && left > 0 && self.waiting() == 0 {
                        return Err(Errno::BUSY);
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::BUSY) if self.waiting() > 0 => {}
                Err(errno) => return Err(errno),
            }
            // SAFETY: as in `enter`.
            answer = unsafe { io_uring_enter(&self.fd, left, wanted, IoringEnterFlags::GETEVENTS) };
        }
    }

    /// How many completions can be taken now.
    #[inline(always)]
    pub(crate) fn waiting(&self) -> u32 {
        // SAFETY: the word is in the mapping and shared with the kernel as an atomic.
        let tail = unsafe { self.completion_tail.as_ref() }.load(Ordering::Acquire);
        tail.wrapping_sub(self.head)
    }

    /// The next completion. There must be one: see [`Ring::waiting`]. The kernel gets its place
    /// back at the next [`Ring::release`].
    #[inline(always)]
    pub(crate) fn take(&mut self) -> Completion {
        let index = (self.head & self.completion_mask) as usize;
        self.head = self.head.wrapping_add(1);
        // SAFETY: the masked index lies within the mapped completions, and the kernel does not
        // write there before `release`.
        unsafe { self.completions.add(index).read() }
    }

    /// Gives the places of the taken completions back to the kernel.
    #[inline(always)]
    pub(crate) fn release(&mut self) {
        // SAFETY: the word is in the mapping and shared with the kernel as an atomic.
        unsafe { self.completion_head.as_ref() }.store(self.head, Ordering::Release);
    }

    /// Waits for what is in flight, without looking at it, and gives how much still is when the kernel
    /// refuses to wait. What was queued and not submitted never will be.
    #[cold]
    pub(crate) fn abandon(&mut self, mut in_flight: u32) -> u32 {
        loop {
            let reaped = self.waiting();
            for _ in 0..reaped {
                self.take();
            }
            self.release();
            in_flight = in_flight.saturating_sub(reaped);
            if in_flight == 0 || self.enter(0, 1).is_err() {
                return in_flight;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel that has a kind of ring has it with polling, too: the flags exclude one another in none.
    #[test]
    fn every_kind_of_ring_can_be_polled() {
        for kind in KINDS {
            let plain = set_up(kind, 8, false);
            let polled = set_up(kind, 8, true);
            if let Ok((_, params)) = &polled {
                assert!(params.flags.contains(IoringSetupFlags::IOPOLL | kind));
            }
            if let Ok((_, params)) = &plain {
                assert!(!params.flags.contains(IoringSetupFlags::IOPOLL));
            }
            assert_eq!(polled.err(), plain.err(), "{kind:?}");
        }
    }
}
