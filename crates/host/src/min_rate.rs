//! Whether the other end of a connection goes on fast enough: one byte now and then is not going on.

use std::time::Duration;

/// What is to be done within this time …
const WINDOW: Duration = Duration::from_secs(60);
/// … is so many bytes for each second.
const BYTES_PER_S: u64 = 4 << 10;

/// Watches one piece of work of the other end. Times are those of the clock that never jumps.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinRate {
    since_ns: Option<u64>,
    bytes: u64,
}

impl MinRate {
    /// So many bytes went, perhaps none. Whether they were too few over the last minute.
    pub fn is_too_slow(&mut self, bytes: usize, now_ns: u64) -> bool {
        let since_ns = *self.since_ns.get_or_insert(now_ns);
        self.bytes += bytes as u64;
        let lasted = Duration::from_nanos(now_ns.saturating_sub(since_ns));
        if lasted < WINDOW {
            return false;
        }
        let is_too_slow = self.bytes < BYTES_PER_S.saturating_mul(lasted.as_secs());
        *self = MinRate { since_ns: Some(now_ns), bytes: 0 };
        is_too_slow
    }

    /// The piece of work is done, or the other end is not to blame for what it takes.
    #[inline]
    pub fn reset(&mut self) {
        *self = MinRate::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    /// The second in which it is too slow, with so many bytes each second.
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
        assert!(!rate.is_too_slow(0, 559 * SECOND_NS));
    }
}
