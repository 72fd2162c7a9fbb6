//! A look once a second in a thread: its clock, its pause, and what it has seen.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rubus_host::clock;

/// Between two looks.
const INTERVAL: Duration = Duration::from_secs(1);

/// Seconds of this machine's monotonic clock.
pub fn now_s() -> f64 {
    clock::monotonic_ns() as f64 / 1e9
}

/// Until the next look, or the end.
pub(super) fn rest(stop: &AtomicBool) {
    const STEP: Duration = Duration::from_millis(100);
    for _ in 0..INTERVAL.as_millis() / STEP.as_millis() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        clock::sleep(STEP);
    }
}

/// What was seen so far, also after a look that panicked.
pub(super) fn lock<T>(seen: &Mutex<T>) -> MutexGuard<'_, T> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
