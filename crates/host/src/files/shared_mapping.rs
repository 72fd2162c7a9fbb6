//! A file as shared memory: reads and writes without system calls, whose failures are errors.
//!
//! Where the device fails or the filesystem is full, the kernel sends SIGBUS to the thread that touches
//! the page, which ends the program by default. While a copy runs, a handler puts an empty page there
//! instead, and the copy fails.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{Ordering, compiler_fence};

use rustix::io::Errno;
use rustix::mm::{
    Advice, MapFlags, MsyncFlags, ProtFlags, madvise, mmap, mmap_anonymous, msync, munmap,
};

/// The beginning of a file, mapped as shared memory.
#[derive(Debug)]
pub struct SharedMapping {
    start: NonNull<u8>,
    bytes: usize,
    is_writable: bool,
    /// Pages that the kernel could not provide are empty ones now, so nothing read from it is certain.
    has_failed: Cell<bool>,
}

// SAFETY: the mapping belongs to this value alone and is not tied to a thread.
unsafe impl Send for SharedMapping {}

/// In which order pages will be touched, for read-ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TouchOrder {
    /// In ascending order.
    Sequential,
    /// In random order.
    Random,
}

impl SharedMapping {
    /// Maps the first `bytes` bytes of a file that is open for reading, and for writing too where it
    /// shall be written.
    ///
    /// # Errors
    /// The system's error, when the file cannot be mapped or the address space is too small.
    pub fn new(
        file: BorrowedFd<'_>,
        bytes: u64,
        is_writable: bool,
        order: TouchOrder,
    ) -> Result<Self, Errno> {
        install_handler()?;
        let bytes = usize::try_from(bytes).map_err(|_| Errno::NOMEM)?;
        let protection =
            if is_writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: a new mapping at an address of the kernel's choice disturbs nothing.
        let start =
            unsafe { mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, file, 0)? };
        let start = NonNull::new(start.cast()).ok_or(Errno::NOMEM)?;
        let mapping = SharedMapping { start, bytes, is_writable, has_failed: Cell::new(false) };
        let advice = match order {
            TouchOrder::Sequential => Advice::Sequential,
            TouchOrder::Random => Advice::Random,
        };
        // Without the advice the kernel reads ahead as it sees fit.
        // SAFETY: the range is the mapping just made, and the advice changes no contents.
        let _ = unsafe { madvise(mapping.start.as_ptr().cast(), bytes, advice) };
        Ok(mapping)
    }

    /// Copies from the file.
    ///
    /// # Errors
    /// `INVAL` beyond the mapping, `IO` where the kernel could not provide a page, and always from then
    /// on.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), Errno> {
        let source = self.at(offset, into.len())?;
        // SAFETY: both are valid for that length, and the buffer is no part of the mapping.
        self.guarded(source, into.len(), || unsafe {
            std::ptr::copy_nonoverlapping(source, into.as_mut_ptr(), into.len());
        })
    }

    /// Copies to the file.
    ///
    /// # Errors
    /// As [`SharedMapping::read`], and `BADF` where the mapping is not for writing.
    pub fn write(&self, offset: u64, from: &[u8]) -> Result<(), Errno> {
        if !self.is_writable {
            return Err(Errno::BADF);
        }
        let target = self.at(offset, from.len())?;
        // SAFETY: both are valid for that length, and the buffer is no part of the mapping.
        self.guarded(target, from.len(), || unsafe {
            std::ptr::copy_nonoverlapping(from.as_ptr(), target, from.len());
        })
    }

    /// Writes a range back and makes it durable, with `msync(MS_SYNC)`.
    ///
    /// # Errors
    /// `INVAL` beyond the mapping, else the system's error.
    pub fn flush(&self, offset: u64, bytes: u64) -> Result<(), Errno> {
        let bytes = usize::try_from(bytes).map_err(|_| Errno::INVAL)?;
        let start = self.at(offset, bytes)?;
        let into_page = start.addr() % rustix::param::page_size();
        // SAFETY: the range lies in the mapping, which begins on a page.
        unsafe { msync(start.sub(into_page).cast(), bytes + into_page, MsyncFlags::SYNC) }
    }

    /// Writes all of it back and makes it durable.
    ///
    /// # Errors
    /// If the device reports an I/O error.
    pub fn flush_all(&self) -> Result<(), Errno> {
        self.flush(0, self.bytes as u64)
    }

    /// Runs a copy from or to a range of the mapping.
    fn guarded(&self, start: *const u8, bytes: usize, copy: impl FnOnce()) -> Result<(), Errno> {
        if self.has_failed.get() {
            return Err(Errno::IO);
        }
        HAS_FAILED.set(false);
        COPIED.set((start.addr(), start.addr() + bytes));
        // The handler runs in this thread, so that it sees what the compiler has stored by then.
        compiler_fence(Ordering::SeqCst);
        copy();
        compiler_fence(Ordering::SeqCst);
        COPIED.set((0, 0));
        self.has_failed.set(HAS_FAILED.get());
        if self.has_failed.get() { Err(Errno::IO) } else { Ok(()) }
    }

    fn at(&self, offset: u64, bytes: usize) -> Result<*mut u8, Errno> {
        let offset = usize::try_from(offset).map_err(|_| Errno::INVAL)?;
        let end = offset.checked_add(bytes).filter(|&end| end <= self.bytes);
        end.ok_or(Errno::INVAL)?;
        // SAFETY: the offset lies within the mapping.
        Ok(unsafe { self.start.as_ptr().add(offset) })
    }
}

impl Drop for SharedMapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this length, and no reference into it outlives
        // `self`. Unmapping a mapping of our own cannot fail.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

thread_local! {
    /// The range of a mapping that this thread copies from or to; empty between copies.
    static COPIED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    static HAS_FAILED: Cell<bool> = const { Cell::new(false) };
}

/// What SIGBUS did before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Installs the handler, once; other threads wait until it is there.
fn install_handler() -> Result<(), Errno> {
    static INSTALLED: OnceLock<Result<(), Errno>> = OnceLock::new();
    *INSTALLED.get_or_init(install)
}

fn install() -> Result<(), Errno> {
    // SAFETY: all fields of a `sigaction` may be zero.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: only reads the action in force.
    check(unsafe { libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut before) })?;
    BEFORE.get_or_init(|| before);
    // SAFETY: as above.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_bus_error;
    action.sa_sigaction = handler as libc::sighandler_t;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
    // SAFETY: the handler does only what is safe in one: it reads and writes thread-local cells without
    // initialisation or destructor, and calls the kernel.
    check(unsafe { libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut()) })
}

fn check(answer: c_int) -> Result<(), Errno> {
    match answer {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
    }
}

extern "C" fn on_bus_error(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel gives the handler of a fault its address.
    let address = unsafe { (*info).si_addr() }.addr();
    let (start, end) = COPIED.get();
    let page_bytes = rustix::param::page_size();
    let page = address - address % page_bytes;
    // A copy of part of a page may fault anywhere in it.
    let is_copied = start < end && address < end && page + page_bytes > start;
    // SAFETY: the page belongs to a mapping that this thread is copying from or to, and to nothing else.
    let replaced = is_copied && unsafe { replace(page, page_bytes) }.is_ok();
    if replaced {
        HAS_FAILED.set(true);
        return;
    }
    // Not ours: the access is made again and ends as it would have without this handler.
    if let Some(before) = BEFORE.get() {
        // SAFETY: it was in force before.
        unsafe { libc::sigaction(signal, before, std::ptr::null_mut()) };
    }
}

/// Puts an empty page in the place of one that the kernel cannot provide.
///
/// # Safety
/// Nothing else may live at this page.
unsafe fn replace(page: usize, bytes: usize) -> Result<(), Errno> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::FIXED;
    let at = std::ptr::with_exposed_provenance_mut::<c_void>(page);
    // SAFETY: as the caller promises.
    unsafe { mmap_anonymous(at, bytes, protection, flags) }.map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, SeekFrom};
    use std::os::fd::AsFd;

    use super::*;

    fn file(bytes: u64) -> std::fs::File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(bytes).unwrap();
        file
    }

    fn mapped(file: &std::fs::File, bytes: u64) -> SharedMapping {
        SharedMapping::new(file.as_fd(), bytes, true, TouchOrder::Random).unwrap()
    }

    #[test]
    fn what_is_written_is_in_the_file() {
        let mut file = file(10_000);
        let mapping = mapped(&file, 10_000);
        mapping.write(5000, b"here").unwrap();
        mapping.flush(5000, 4).unwrap();
        mapping.flush_all().unwrap();
        let mut text = [0; 4];
        file.seek(SeekFrom::Start(5000)).unwrap();
        file.read_exact(&mut text).unwrap();
        assert_eq!(&text, b"here");
        mapping.read(5000, &mut text[..2]).unwrap();
        assert_eq!(mapping.read(9_998, &mut text), Err(Errno::INVAL));
        assert_eq!(mapping.write(u64::MAX, &text), Err(Errno::INVAL));
    }

    #[test]
    fn a_mapping_for_reading_refuses_writes() {
        let file = file(4096);
        let mapping =
            SharedMapping::new(file.as_fd(), 4096, false, TouchOrder::Sequential).unwrap();
        assert_eq!(mapping.write(0, b"x"), Err(Errno::BADF));
        assert_eq!(mapping.read(0, &mut [1; 8]), Ok(()));
    }

    #[test]
    fn a_page_that_cannot_be_had_is_an_error_in_every_thread() {
        let run = || {
            let file = file(16_384);
            let mapping = mapped(&file, 16_384);
            // The pages beyond the end of a file are as those of a disk that fails.
            file.set_len(4096).unwrap();
            let mut block = vec![1; 8192];
            assert_eq!(mapping.read(0, &mut block[..4096]), Ok(()));
            assert_eq!(mapping.read(8192, &mut block), Err(Errno::IO));
            assert_eq!(mapping.read(8192, &mut block), Err(Errno::IO));
            let other = mapped(&file, 16_384);
            assert_eq!(other.write(0, &block[..4096]), Ok(()));
            assert_eq!(other.write(12_000, &block[..100]), Err(Errno::IO));
        };
        std::thread::scope(|scope| {
            (0..4).for_each(|_| drop(scope.spawn(run)));
        });
    }
}
