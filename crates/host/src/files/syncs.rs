//! The calls with which images and kept files wait until a device has what was written. Each costs a write latency of that
//! device, so they are counted, and tests hold a job to its number of them.

use std::cell::Cell;
use std::os::fd::{AsRawFd, BorrowedFd};

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

/// Has the kernel begin to write a range back, by `sync_file_range(2)`. It waits for room in the device's queue at most, so it
/// is not counted. A failure stays for the next of the other calls to tell: only the flags that wait would take it from there.
pub(crate) fn start(file: BorrowedFd<'_>, offset: u64, length: u64) {
    // SAFETY: the call takes numbers only; the descriptor is borrowed and so is open.
    let _ = unsafe {
        libc::sync_file_range(
            file.as_raw_fd(),
            offset as libc::off64_t,
            length as libc::off64_t,
            libc::SYNC_FILE_RANGE_WRITE,
        )
    };
}

/// `fsync(2)`.
pub(crate) fn whole(file: BorrowedFd<'_>) -> Result<(), Errno> {
    COUNT.set(COUNT.get() + 1);
    rustix::fs::fsync(file)
}
