//! Reading at an offset until the buffer is full, over short reads and interruptions.

use rustix::fd::AsFd;
use rustix::io::Errno;

/// A read that failed, perhaps after some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FailedRead {
    /// Bytes that were read before.
    pub(crate) done: usize,
    pub(crate) errno: Errno,
}

/// Reads until the buffer is full or the file ends, and says how many bytes that were.
pub(crate) fn full_read(
    fd: impl AsFd,
    buffer: &mut [u8],
    offset: u64,
) -> Result<usize, FailedRead> {
    let mut done = 0;
    while done < buffer.len() {
        match rustix::io::pread(&fd, &mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(FailedRead { done, errno }),
        }
    }
    Ok(done)
}
