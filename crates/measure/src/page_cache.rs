//! What of a file lies in the page cache.

use std::ffi::c_void;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// The share of the file's first `bytes` that lies in the page cache, by `mincore(2)`; at most the
/// first 256 MiB are looked at.
pub(crate) fn resident_share(file: BorrowedFd<'_>, bytes: u64) -> Option<f64> {
    const MAX: u64 = 256 << 20;
    let length = usize::try_from(bytes.min(MAX)).ok().filter(|&n| n > 0)?;
    let page = rustix::param::page_size();
    let mut pages = vec![0_u8; length.div_ceil(page)];
    // SAFETY: a new mapping at an address of the kernel's choice; its memory is never touched.
    let start =
        unsafe { mmap(std::ptr::null_mut(), length, ProtFlags::READ, MapFlags::SHARED, file, 0) };
    let start: *mut c_void = start.ok()?;
    // SAFETY: the range is the mapping just made; the vector has one byte for each of its pages.
    let answer = unsafe { libc::mincore(start.cast(), length, pages.as_mut_ptr().cast()) };
    // SAFETY: made above with this length and not used afterwards.
    let _ = unsafe { munmap(start, length) };
    if answer != 0 {
        return None;
    }
    let resident = pages.iter().filter(|&&page| page & 1 == 1).count();
    Some(resident as f64 / pages.len() as f64)
}

/// Writes back a range of the page cache and waits for it. Metadata and the device's own cache are
/// not flushed. Filesystems without such a thing (in memory) have nothing to wait for.
pub(crate) fn settle(fd: BorrowedFd<'_>, offset: u64, length: u64) -> Result<(), Errno> {
    use std::os::fd::AsRawFd;
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: the call takes numbers only; the descriptor is borrowed and so is open.
    let answer = unsafe {
        libc::sync_file_range(
            fd.as_raw_fd(),
            offset as libc::off64_t,
            length as libc::off64_t,
            flags,
        )
    };
    match answer {
        0 => Ok(()),
        _ => match std::io::Error::last_os_error().raw_os_error() {
            Some(libc::ENOSYS | libc::EINVAL | libc::ESPIPE) | None => Ok(()),
            Some(code) => Err(Errno::from_raw_os_error(code)),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn what_was_just_written_is_there_and_a_hole_is_not() {
        let mut file = tempfile::tempfile().expect("a file");
        file.set_len(1 << 20).expect("a size");
        assert_eq!(resident_share(file.as_fd(), 1 << 20), Some(0.0));
        file.write_all(&[1; 1 << 19]).expect("the first half");
        let share = resident_share(file.as_fd(), 1 << 20).expect("it can be told");
        assert!((0.4..0.6).contains(&share), "{share}");
        assert_eq!(resident_share(file.as_fd(), 0), None);
    }
}
