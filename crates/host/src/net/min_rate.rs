//! Whether the other end of a connection goes on fast enough: one byte now and then is not going on.

use std::time::Duration;

/// What is to be done within this time …
const WINDOW: Duration = Duration::from_secs(60);
/// … is this many bytes per second.
const BYTES_PER_S: u64 = 4 << 10;

/// Watches one piece of work of the other end. Times are those of the clock that never jumps.
#[derive(Clone, Copy, Debug)]
pub struct MinRate {
    window: Duration,
    since_ns: Option<u64>,
    bytes: u64,
}

impl Default for MinRate {
    fn default() -> MinRate {
        MinRate::over(WINDOW)
    }
}

impl MinRate {
    /// Watches over another time than a minute.
    pub fn over(window: Duration) -> MinRate {
        MinRate { window, since_ns: None, bytes: 0 }
    }

    /// Counts bytes that came, perhaps none. True if they were too few over a window that ends now.
    pub fn is_too_slow(&mut self, bytes: usize, now_ns: u64) -> bool {
        let since_ns = *self.since_ns.get_or_insert(now_ns);
        self.bytes += bytes as u64;
        let lasted = Duration::from_nanos(now_ns.saturating_sub(since_ns));
        if lasted < self.window {
            return false;
        }
        let is_too_slow = (self.bytes as f64) < BYTES_PER_S as f64 * lasted.as_secs_f64();
        (self.since_ns, self.bytes) = (Some(now_ns), 0);
        is_too_slow
    }

    /// The piece of work is done, or the other end is not to blame for what it takes.
    #[inline]
    pub fn reset(&mut self) {
        (self.since_ns, self.bytes) = (None, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    /// The second in which it is too slow, at `bytes` bytes per second.
    fn ends(rate: &mut MinRate, bytes: usize) -> Option<u64> {
        (0..200).find(|second| rate.is_too_slow(bytes, second * SECOND_NS))
    }

    #[test]
    fn a_byte_now_and_then_is_too_slow_and_a_slow_line_is_not() {
        assert_eq!(ends(&mut MinRate::default(), 0), Some(60));
        assert_eq!(ends(&mut MinRate::default(), 1), Some(60));
        assert_eq!(ends(&mut MinRate::default(), 4000), Some(60));
        assert_eq!(ends(&mut MinRate::default(), 5000), None);
        // What came in the first minute does not count in the second.
        let mut rate = MinRate::default();
        rate.is_too_slow(1 << 30, 0);
        assert_eq!(ends(&mut rate, 1), Some(120));
        rate.reset();
        assert!(!rate.is_too_slow(0, 500 * SECOND_NS));
        let mut short = MinRate::over(Duration::from_millis(300));
        assert!(!short.is_too_slow(0, 0));
        assert!(short.is_too_slow(1228, SECOND_NS * 3 / 10));
        assert!(!short.is_too_slow(1229, SECOND_NS * 6 / 10));
        assert!(!rate.is_too_slow(0, 559 * SECOND_NS));
    }
}
