//! What of a file lies in the page cache.

use std::ffi::c_void;
use std::os::fd::BorrowedFd;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// The share of the file's first `bytes` that lies in the page cache, by `mincore(2)`; at most the
/// first 256 MiB are looked at.
pub(crate) fn resident_share(file: BorrowedFd<'_>, bytes: u64) -> Option<f64> {
    const MOST: u64 = 256 << 20;
    let length = usize::try_from(bytes.min(MOST)).ok().filter(|&n| n > 0)?;
    let page = rustix::param::page_size();
    let mut pages = vec![0_u8; length.div_ceil(page)];
    // SAFETY: a new mapping at an address of the kernel's choice; its memory is never touched.
    let start = unsafe {
        mmap(
            std::ptr::null_mut(),
            length,
            ProtFlags::READ,
            MapFlags::SHARED,
            file,
            0,
        )
    };
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
