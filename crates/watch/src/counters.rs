//! Counters that only grow, until they are reset.

/// How far a counter went from one reading to the next; none if it was set back, as that of a device that was taken out
/// and put in again.
///
/// The kernel keeps the times of `/proc/diskstats` in 32 bits on every machine and all of its counters in 32 bits on
/// 32-bit machines ("I/O statistics fields", Documentation/admin-guide/iostats.rst). A counter that is smaller than
/// before has run over if that makes for less than half of its range, and was set back otherwise.
pub fn advance(before: u64, now: u64) -> Option<u64> {
    const RANGE: u64 = 1 << 32;
    if now >= before {
        return Some(now - before);
    }
    if before >= RANGE {
        return None;
    }
    let over = RANGE - before + now;
    (over < RANGE / 2).then_some(over)
}
