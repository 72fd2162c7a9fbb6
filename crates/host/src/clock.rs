//! Reading the clocks: one that only runs forward, and the date.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds on the clock that is never set back and never jumps (`CLOCK_MONOTONIC`). Only
/// differences mean something.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The same clock, for measuring how long ago something was.
pub fn now() -> Instant {
    Instant::now()
}

/// Nanoseconds since the machine was started, the time that it slept included (`CLOCK_BOOTTIME`).
pub fn since_boot_ns() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Processor time that this program has used so far, all of its threads together, in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
}

/// How often this thread has slept so far because it had to wait for something. That others had the
/// processor is not counted.
pub fn times_waited() -> u64 {
    // SAFETY: a structure of numbers, which may all be 0, and which the kernel fills.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage
    };
    usage.ru_nvcsw as u64
}

/// The date and time now, UTC, to the millisecond, as RFC 3339: `2026-11-21T09:30:00.250Z`. As
/// right as the machine's clock: a Raspberry Pi without a network may be off by months.
pub fn now_rfc3339() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

/// The day of a time in seconds since 1970, UTC: `2026-11-21`; none beyond the year 9999.
pub fn day_of(unix_s: i64) -> Option<String> {
    let time = jiff::Timestamp::from_second(unix_s).ok()?;
    Some(time.strftime("%Y-%m-%d").to_string())
}

/// Seconds since 1970 on the machine's clock, by which filesystems date what changes; it may be set at any moment.
pub fn date_s() -> i64 {
    clock_gettime(ClockId::Realtime).tv_sec
}

/// The same in nanoseconds.
pub fn date_ns() -> i64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec)
}

/// Sleeps at least this long.
pub fn sleep(time: Duration) {
    std::thread::sleep(time);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monotonic_clock_goes_forward() {
        let (before, waited) = (monotonic_ns(), times_waited());
        sleep(Duration::from_millis(2));
        assert!(monotonic_ns() - before >= 2_000_000);
        assert!(times_waited() > waited, "it slept");
    }

    #[test]
    fn a_day_is_written_as_in_rfc_3339() {
        assert_eq!(day_of(0).as_deref(), Some("1970-01-01"));
        assert_eq!(day_of(1_772_323_200).as_deref(), Some("2026-03-01"));
        assert_eq!(day_of(i64::MAX), None);
    }

    #[test]
    fn the_date_is_to_the_millisecond_and_in_utc() {
        let now = now_rfc3339();
        assert_eq!(now.len(), "2026-11-21T09:30:00.250Z".len(), "{now}");
        assert!(now.ends_with('Z'), "{now}");
        assert!(now.parse::<jiff::Timestamp>().is_ok(), "{now}");
    }
}
