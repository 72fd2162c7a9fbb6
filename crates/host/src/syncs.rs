//! The calls with which images and kept files wait until a device has what was written. Each costs a write latency of that
//! device, so they are counted, and tests hold a job to its number of them.

use std::cell::Cell;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// How many of these calls this thread has made so far.
pub fn of_this_thread() -> u64 {
    COUNT.get()
}

/// `fdatasync(2)`.
pub(crate) fn data(file: BorrowedFd<'_>) -> Result<(), Errno> {
    COUNT.set(COUNT.get() + 1);
    rustix::fs::fdatasync(file)
}

/// `fsync(2)`.
pub(crate) fn whole(file: BorrowedFd<'_>) -> Result<(), Errno> {
    COUNT.set(COUNT.get() + 1);
    rustix::fs::fsync(file)
}
