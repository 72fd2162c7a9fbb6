//! Open file descriptions that syncs of an image have for themselves.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Condvar, Mutex, PoisonError};

use rustix::fs::{Mode, OFlags};

/// Open file descriptions for what makes writes durable. The kernel reports a failed write-back to each description
/// once, so two syncs at once through the same one would tell one of them of success.
#[derive(Debug)]
pub(super) struct Descriptions {
    pub(super) idle: Mutex<Vec<OwnedFd>>,
    returned: Condvar,
    /// They could not be opened: one sync at a time, through the image's own.
    are_missing: bool,
}

/// Maximum number of syncs at once.
pub(super) const DESCRIPTIONS: usize = 4;

impl Descriptions {
    /// Opens what `fd` has open again. It must be done before anything is written: a description does not learn of
    /// errors that another has reported before it was opened.
    pub(super) fn of(fd: BorrowedFd<'_>, is_writable: bool) -> Descriptions {
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let open = || rustix::fs::open(&path, flags, Mode::empty());
        let all =
            if is_writable { (0..DESCRIPTIONS).map(|_| open()).collect() } else { Ok(Vec::new()) };
        let all: Vec<OwnedFd> = all.unwrap_or_default();
        Descriptions {
            are_missing: all.is_empty(),
            idle: Mutex::new(all),
            returned: Condvar::new(),
        }
    }

    /// Lets `sync` have one for itself; `own` where there are none.
    pub(super) fn with<T>(&self, own: BorrowedFd<'_>, sync: impl FnOnce(BorrowedFd<'_>) -> T) -> T {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if self.are_missing {
            return sync(own);
        }
        let mine = loop {
            match idle.pop() {
                Some(mine) => break mine,
                None => {
                    idle = self.returned.wait(idle).unwrap_or_else(PoisonError::into_inner);
                }
            }
        };
        drop(idle);
        let answer = sync(mine.as_fd());
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(mine);
        self.returned.notify_one();
        answer
    }
}
