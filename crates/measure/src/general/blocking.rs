//! One operation at a time with blocking calls, from a script: alone, or as one of several threads.

use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rubus_vocabulary::spec::Content;
use rustix::fs::{Advice, fadvise, fdatasync, fsync};
use rustix::io::{Errno, pread, pwrite};

use super::baton::Baton;
use super::checks::Checks;
use super::ledger::Ledger;
use super::script::{Flush, Operation, Step};
use crate::error::advice;
use crate::error::io_failure;
use crate::mailbox::WorkerEnd;
use crate::page_cache::settle;
use rubus_host::block::buffers::{Buffers, stamp};
use rubus_host::files::shared_mapping::SharedMapping;
use rubus_host::ticks::now_ns;

/// A sleeping worker looks up this often, to see whether it shall end and to close its slices.
const NAP_NS: u64 = 20_000_000;

/// How long a worker stands aside for an operation that is in its way.
pub(super) const BREATH: Duration = Duration::from_micros(50);

/// What a blocking worker works with.
pub(crate) struct Hands<'a> {
    /// The files, in the numbering of the script.
    pub(crate) files: &'a [Arc<OwnedFd>],
    /// The same files as shared memory, where that is how they are read and written.
    pub(crate) maps: Option<Vec<SharedMapping>>,
    /// A block to read into or to write from, or first one and then the other, each as long as the
    /// longest operation.
    pub(crate) buffers: Buffers,
    /// What is written.
    pub(crate) content: Content,
    /// Number of the last stamp.
    pub(crate) stamps: u64,
    /// Writes wait until the device has them.
    pub(crate) settles: bool,
    /// How blocks are sealed and checked.
    pub(crate) checks: Option<&'a Checks>,
    /// Which block is written from; the first is read into.
    pub(crate) write_block: usize,
}

/// Takes operations from the baton and does them until there are none or the worker is told to end.
/// `origin_ns` is the start of the script.
pub(crate) fn run(
    mut hands: Hands<'_>,
    baton: &Baton,
    ledger: &mut Ledger,
    origin_ns: u64,
) -> WorkerEnd {
    while !ledger.is_stopped() {
        match baton.next(now_ns().saturating_sub(origin_ns)) {
            Step::Over => return WorkerEnd::Spent,
            Step::Drain => {
                baton.wait_for_others(0, Duration::from_nanos(NAP_NS));
                // It may be an operation of another copy that is in the way.
                std::thread::sleep(BREATH);
                ledger.busy_from(now_ns());
            }
            Step::Do(operation) => {
                let waited = wait_for(&operation, origin_ns, ledger);
                // What will be read back has to be written in any case.
                let done = if waited || hands.checks.is_some() {
                    hands.carry_out(&operation, baton, ledger)
                } else {
                    Ok(())
                };
                baton.done(&operation);
                if let Err(error) = done {
                    return WorkerEnd::Failed(error);
                }
            }
        }
    }
    WorkerEnd::Stopped
}

/// Rests until the operation is due; false when the worker was told to end meanwhile.
pub(super) fn wait_for(operation: &Operation, origin_ns: u64, ledger: &mut Ledger) -> bool {
    let due_ns = origin_ns.saturating_add(operation.due_ns);
    let mut now = now_ns();
    let spin_until_ns = now.saturating_add(operation.spin_ns).min(due_ns);
    while now < spin_until_ns && !ledger.is_stopped() {
        std::hint::spin_loop();
        now = now_ns();
    }
    while now < due_ns {
        if ledger.is_stopped() {
            return false;
        }
        ledger.rest(now, due_ns);
        std::thread::sleep(Duration::from_nanos((due_ns - now).min(NAP_NS)));
        now = now_ns();
    }
    true
}

impl Hands<'_> {
    fn carry_out(
        &mut self,
        operation: &Operation,
        baton: &Baton,
        ledger: &mut Ledger,
    ) -> Result<(), String> {
        let file = Arc::clone(&self.files[operation.file as usize]);
        let fd = file.as_fd();
        self.prepare(operation);
        drop_cached(fd, operation);
        let began_ns = now_ns();
        ledger.busy_from(began_ns);
        let wanted = operation.bytes as usize;
        let moved =
            if operation.is_write { self.write(fd, operation) } else { self.read(fd, operation) };
        if moved != Ok(wanted) {
            return Err(io_failure(verb(operation), wanted, operation.offset, moved));
        }
        if let Some(flush) = operation.flush {
            if flush.alone {
                while !baton.wait_for_others(1, Duration::from_nanos(NAP_NS)) {
                    if ledger.is_stopped() {
                        break;
                    }
                }
            }
            self.flush(flush, operation)?;
        }
        let ended_ns = now_ns();
        ledger.done(operation, began_ns, ended_ns);
        ledger.close(ended_ns);
        match self.checks {
            Some(checks) if !operation.is_write => {
                checks.check(&mut self.buffers.block_mut(READ_BLOCK)[..wanted], operation)
            }
            _ => Ok(()),
        }
    }

    fn prepare(&mut self, operation: &Operation) {
        if !operation.is_write {
            return;
        }
        let block = &mut self.buffers.block_mut(self.write_block)[..operation.bytes as usize];
        if self.content.differs() {
            stamp(block, &mut self.stamps);
        }
        if let Some(checks) = self.checks {
            checks.seal(block, operation);
        }
    }

    fn read(&mut self, fd: BorrowedFd<'_>, operation: &Operation) -> Result<usize, Errno> {
        let block = &mut self.buffers.block_mut(READ_BLOCK)[..operation.bytes as usize];
        match &self.maps {
            None => pread(fd, block, operation.offset),
            Some(maps) => {
                maps[operation.file as usize].read(operation.offset, block)?;
                Ok(block.len())
            }
        }
    }

    fn write(&mut self, fd: BorrowedFd<'_>, operation: &Operation) -> Result<usize, Errno> {
        let block = &self.buffers.block_mut(self.write_block)[..operation.bytes as usize];
        if let Some(maps) = &self.maps {
            maps[operation.file as usize].write(operation.offset, block)?;
            return Ok(block.len());
        }
        let written = pwrite(fd, block, operation.offset)?;
        if self.settles {
            settle(fd, operation.offset, written as u64)?;
        }
        Ok(written)
    }

    fn flush(&self, flush: Flush, operation: &Operation) -> Result<(), String> {
        let Some(maps) = &self.maps else {
            return flush_all(self.files, flush, operation);
        };
        let done = if flush.alone {
            maps.iter().try_for_each(SharedMapping::flush_all)
        } else {
            let mapping = &maps[operation.file as usize];
            mapping.flush(operation.offset, u64::from(operation.bytes))
        };
        done.map_err(|errno| flush_failure(operation, errno))
    }
}

/// Which block of the buffers is read into.
const READ_BLOCK: usize = 0;

pub(super) fn verb(operation: &Operation) -> &'static str {
    if operation.is_write { "write" } else { "read" }
}

/// Has the page cache drop what the operation asks for. A filesystem that cannot answers from memory, as with fio.
pub(super) fn drop_cached(file: BorrowedFd<'_>, operation: &Operation) {
    if let Some(stretch) = operation.drops {
        let length = NonZeroU64::new(stretch.bytes);
        let _ = fadvise(file, stretch.offset, length, Advice::DontNeed);
    }
}

/// The flush that follows a write. A commit concerns the file of its write, a flush of the whole job
/// all files of it.
pub(super) fn flush_all(
    files: &[Arc<OwnedFd>],
    flush: Flush,
    operation: &Operation,
) -> Result<(), String> {
    let of_this = |file: u32| flush.alone || file == operation.file;
    for (file, _) in files.iter().zip(0..).filter(|&(_, number)| of_this(number)) {
        let answer = if flush.metadata_too { fsync(file) } else { fdatasync(file) };
        answer.map_err(|errno| flush_failure(operation, errno))?;
    }
    Ok(())
}

fn flush_failure(operation: &Operation, errno: Errno) -> String {
    let error = std::io::Error::from(errno);
    let (offset, advice) = (operation.offset, advice(errno));
    format!("the flush after a write at byte {offset} failed: {error}{advice}")
}
