//! Bytes that go from an image to a socket, or from a socket to an image, past this program's memory.
//!
//! The kernel puts the pages that it has of a file into a pipe, by reference, and takes them from
//! there to the socket: nothing is copied. The other way it puts what a socket has received into the
//! pipe, mostly by reference, and copies it from there into the pages of the file: once instead of
//! twice. Both steps are system calls of this program, so it knows the outcome before it reports
//! success to the other end.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::io::retry_on_intr;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

use crate::clock::monotonic_ns;
use crate::net::Stream;
use crate::net::min_rate::MinRate;

/// Maximum number of bytes in a pipe, if they begin at a page boundary.
const MAX_BYTES: usize = 1 << 20;
/// The kernel counts pages of this size or larger ones; with larger ones a pipe only holds more.
const PAGE_BYTES: u64 = 4096;

/// The way of pages from a file to a socket, or back.
#[derive(Debug)]
pub struct Conduit {
    into: OwnedFd,
    from: OwnedFd,
    held_bytes: usize,
}

impl Conduit {
    /// A conduit for up to 1 MiB at once; `None` if this user may not have another pipe of that
    /// size.
    pub fn new() -> Option<Conduit> {
        let (from, into) = pipe_with(PipeFlags::CLOEXEC).ok()?;
        fcntl_setpipe_size(&into, MAX_BYTES).ok()?;
        Some(Conduit { into, from, held_bytes: 0 })
    }

    /// How many bytes it holds.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Whether `bytes` bytes at this offset can be held at once.
    pub fn has_room(offset: u64, bytes: usize) -> bool {
        let first = offset / PAGE_BYTES;
        let end = (offset + bytes as u64).div_ceil(PAGE_BYTES);
        (end - first) * PAGE_BYTES <= MAX_BYTES as u64
    }

    /// Takes bytes of a file, which should be in the page cache; others are read from the device
    /// first. Writes to the file that happen before the bytes are sent may show in them.
    ///
    /// # Errors
    /// If the device reports an I/O error; `UnexpectedEof` if the file is too short. The conduit is
    /// unusable then.
    pub(crate) fn fill(
        &mut self,
        file: BorrowedFd<'_>,
        offset: u64,
        bytes: usize,
    ) -> io::Result<()> {
        let mut at = offset;
        while self.held_bytes < bytes {
            let left = bytes - self.held_bytes;
            // NONBLOCK is about room in the pipe: if there is too little, this fails and does not hang.
            let flags = SpliceFlags::NONBLOCK;
            let filled =
                retry_on_intr(|| splice(file, Some(&mut at), &self.into, None, left, flags));
            match filled? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.held_bytes += count,
            }
        }
        Ok(())
    }

    /// Sends all that is held, and waits for room as [`Stream::send_all`] does. A connection that is
    /// gone is also a signal, SIGPIPE, which the program has to ignore.
    ///
    /// # Errors
    /// As for [`Stream::send_all`].
    pub fn send(&mut self, to: &Stream) -> io::Result<()> {
        let mut rate = MinRate::default();
        while self.held_bytes > 0 {
            let (held, flags) = (self.held_bytes, SpliceFlags::empty());
            match retry_on_intr(|| splice(&self.from, None, to, None, held, flags))? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => {
                    self.held_bytes -= count;
                    if self.held_bytes > 0 && rate.is_too_slow(count, monotonic_ns()) {
                        return Err(io::ErrorKind::WouldBlock.into());
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes at most `most` bytes of what a socket has received, in addition to what it holds; if
    /// `wait`, waits for the first of them, as [`Stream::receive_into`] does. Returns their number, 0
    /// when the other end has closed.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is there; `InvalidInput` when such a socket cannot do that; others when
    /// the connection is broken.
    pub fn receive(&mut self, from: &Stream, most: usize, wait: bool) -> io::Result<usize> {
        // A flag of the call would be about room in the pipe only, for TCP.
        if !wait && !from.wait(false, Some(Duration::ZERO))? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let flags = SpliceFlags::empty();
        let count = retry_on_intr(|| splice(from, None, &self.into, None, most, flags))?;
        self.held_bytes += count;
        Ok(count)
    }

    /// Writes the first `bytes` bytes that are held to a file.
    ///
    /// # Errors
    /// The device's; `InvalidInput` when the file cannot do that. What is written until then is no more
    /// held.
    pub(crate) fn drain(
        &mut self,
        file: BorrowedFd<'_>,
        offset: u64,
        bytes: usize,
    ) -> io::Result<()> {
        let mut at = offset;
        let end = offset + bytes as u64;
        while at < end {
            let left = (end - at) as usize;
            let flags = SpliceFlags::empty();
            match retry_on_intr(|| splice(&self.from, None, file, Some(&mut at), left, flags))? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => self.held_bytes -= count,
            }
        }
        Ok(())
    }

    /// Removes the first `bytes` bytes that are held and returns a copy of them.
    ///
    /// # Errors
    /// `UnexpectedEof` if it holds fewer bytes.
    pub fn take(&mut self, bytes: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; bytes];
        let mut done = 0;
        while done < bytes.len() {
            match retry_on_intr(|| rustix::io::read(&self.from, &mut bytes[done..]))? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => done += count,
            }
        }
        self.held_bytes -= done;
        Ok(bytes)
    }
}

/// Whether the kernel has all pages of a part of a file in memory; false also where it does not say,
/// before Linux 6.5.
pub(crate) fn is_in_memory(file: BorrowedFd<'_>, offset: u64, bytes: usize) -> bool {
    /// The number of the call is the same for all processors.
    const CACHESTAT: libc::c_long = 451;
    static IS_UNKNOWN: AtomicBool = AtomicBool::new(false);
    if IS_UNKNOWN.load(Ordering::Relaxed) {
        return false;
    }
    let range = [offset, bytes as u64];
    // Pages that are there, dirty, being written, thrown out, and thrown out lately.
    let mut counts = [0_u64; 5];
    // SAFETY: the kernel reads two numbers and writes five, and both arrays live until it is done.
    let answer = unsafe {
        libc::syscall(CACHESTAT, file.as_raw_fd(), range.as_ptr(), counts.as_mut_ptr(), 0_u32)
    };
    if answer != 0 {
        let error = io::Error::last_os_error();
        IS_UNKNOWN.store(error.raw_os_error() == Some(libc::ENOSYS), Ordering::Relaxed);
        return false;
    }
    let page = rustix::param::page_size() as u64;
    let pages = (offset + bytes as u64).div_ceil(page) - offset / page;
    counts[0] >= pages
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Files of its own.
mod tests {
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    const BYTES: usize = 300_000;

    fn file(directory: &std::path::Path) -> (std::fs::File, Vec<u8>) {
        let path = directory.join("file");
        let bytes: Vec<u8> = (0..BYTES).map(|at| (at * 7 % 251) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        (std::fs::File::open(&path).unwrap(), bytes)
    }

    #[test]
    fn what_is_in_the_file_arrives() {
        for place in [std::env::temp_dir(), "/dev/shm".into()] {
            let directory = tempfile::tempdir_in(place).unwrap();
            let (file, bytes) = file(directory.path());
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            let stream = Stream::connected(ours.into(), "pair".into());
            let mut conduit = Conduit::new().unwrap();
            // More than a socket holds, so a reader is needed.
            let reads = std::thread::spawn(move || {
                let mut all = Vec::new();
                theirs.read_to_end(&mut all).unwrap();
                all
            });
            for (from, to) in [(0, BYTES), (1, 4097), (4096, 8192), (70_001, 290_000)] {
                conduit.fill(file.as_fd(), from as u64, to - from).unwrap();
                conduit.send(&stream).unwrap();
            }
            drop(stream);
            let wanted = [&bytes[..], &bytes[1..4097], &bytes[4096..8192], &bytes[70_001..290_000]];
            assert!(reads.join().unwrap() == wanted.concat());
        }
    }

    #[test]
    fn what_a_socket_has_received_arrives_in_the_file() {
        use std::io::Write;
        use std::os::unix::fs::FileExt;
        for place in [std::env::temp_dir(), "/dev/shm".into()] {
            let directory = tempfile::tempdir_in(place).unwrap();
            let (_, bytes) = file(directory.path());
            let path = directory.path().join("other");
            let other = std::fs::File::create_new(&path).unwrap();
            other.write_all_at(&[9; 5], 0).unwrap();
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            let stream = Stream::connected(ours.into(), "pair".into());
            let mut conduit = Conduit::new().unwrap();
            let nothing = conduit.receive(&stream, 1, false).unwrap_err();
            assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
            let sent = bytes.clone();
            let sends = std::thread::spawn(move || theirs.write_all(&sent).unwrap());
            let mut at = 3;
            loop {
                // What is there, in two steps into the same conduit.
                let first = conduit.receive(&stream, 7000, true).unwrap();
                if first == 0 {
                    break;
                }
                let more = conduit.receive(&stream, usize::MAX >> 33, false);
                let held = conduit.held_bytes();
                assert_eq!(held, first + more.unwrap_or(0));
                conduit.drain(other.as_fd(), at, held - 1).unwrap();
                assert_eq!(conduit.held_bytes(), 1);
                conduit.drain(other.as_fd(), at + held as u64 - 1, 1).unwrap();
                assert_eq!(conduit.held_bytes(), 0);
                at += held as u64;
            }
            sends.join().unwrap();
            assert!(std::fs::read(&path).unwrap() == [&[9; 3], &bytes[..]].concat());
        }
    }

    #[test]
    fn what_a_file_does_not_take_from_a_pipe_can_be_copied() {
        use std::io::Write;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let log = std::fs::File::options().append(true).create(true).open(&path).unwrap();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let stream = Stream::connected(ours.into(), "pair".into());
        let mut conduit = Conduit::new().unwrap();
        theirs.write_all(&[1, 2, 3]).unwrap();
        assert_eq!(conduit.receive(&stream, 9, true).unwrap(), 3);
        let error = conduit.drain(log.as_fd(), 0, 3).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(conduit.held_bytes(), 3);
        assert_eq!(conduit.take(2).unwrap(), [1, 2]);
        assert_eq!(conduit.take(1).unwrap(), [3]);
        assert_eq!(conduit.held_bytes(), 0);
    }

    #[test]
    fn what_the_file_has_not_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let (file, _) = file(directory.path());
        let mut conduit = Conduit::new().unwrap();
        let error = conduit.fill(file.as_fd(), BYTES as u64 - 10, 11).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(Conduit::has_room(0, MAX_BYTES) && !Conduit::has_room(1, MAX_BYTES));
    }

    #[test]
    fn pages_that_were_given_up_are_not_in_memory() {
        // A filesystem in memory gives nothing up.
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let (file, _) = file(directory.path());
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        assert!(!is_in_memory(file.as_fd(), 0, BYTES));
    }
}
