//! Whether a client's writes have to wait for the device, because memory is full of what it has not
//! yet taken.
//!
//! Finding out must cost nothing while all is well. So a turn that took long only arouses suspicion:
//! others may just have had the processor. While there is suspicion each write is watched, and one
//! that was long and slept is slow.

use std::io;

use rubus_host::clock::times_waited;

use super::pool::now_ns;

/// A write that takes this long is slow.
const SLOW_NS: u64 = 20_000_000;
/// How long slowness and suspicion last.
const LASTS_NS: u64 = 1_000_000_000;

/// What is known about a client's writes. Times are those of the clock that never jumps.
#[derive(Default)]
pub(super) struct Slowness {
    slow_until_ns: u64,
    watch_until_ns: u64,
}

impl Slowness {
    /// Whether a write that arrived at `came_ns` should run in the pool, so as not to block the
    /// session.
    #[inline]
    pub fn is_slow(&self, came_ns: u64) -> bool {
        came_ns < self.slow_until_ns
    }

    /// Records that a turn with writes took `took_ns`.
    #[inline]
    pub fn turn_took(&mut self, took_ns: u64, now_ns: u64) {
        if took_ns >= SLOW_NS {
            self.watch_until_ns = self.watch_until_ns.max(now_ns + LASTS_NS);
        }
    }

    /// Does a write that arrived at `came_ns`, and times it while there is suspicion.
    ///
    /// # Errors
    /// If the write fails.
    #[inline]
    pub fn write(&mut self, came_ns: u64, work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        if came_ns < self.watch_until_ns { self.watch(work) } else { work() }
    }

    #[cold]
    fn watch(&mut self, work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let (begin_ns, waited) = (now_ns(), times_waited());
        let result = work();
        let end_ns = now_ns();
        if end_ns - begin_ns >= SLOW_NS && times_waited() > waited {
            self.slow_until_ns = end_ns + LASTS_NS;
            self.watch_until_ns = self.slow_until_ns + LASTS_NS;
        }
        result
    }
}
