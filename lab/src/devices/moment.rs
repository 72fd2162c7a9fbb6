//! When something happened, on both clocks: the one that never jumps and the one that others print.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A moment on the monotonic and on the wall clock.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// For durations.
    pub monotonic: Instant,
    /// For comparing with what another program says about its own start.
    pub wall: SystemTime,
}

impl Moment {
    /// The current time on both clocks.
    pub fn now() -> Self {
        Moment { monotonic: Instant::now(), wall: SystemTime::now() }
    }

    /// Seconds since 1970 on the wall clock.
    pub fn unix_s(&self) -> f64 {
        self.wall.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
    }

    /// How far the wall clock has been set since then, in seconds, forward or back.
    ///
    /// What another program says about its start cannot be compared across such a jump.
    pub fn wall_clock_jump_s(&self) -> f64 {
        let now = Moment::now();
        let by_wall_s = now.unix_s() - self.unix_s();
        by_wall_s - (now.monotonic - self.monotonic).as_secs_f64()
    }
}

/// Something that lasted.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Its first moment.
    pub began: Moment,
    /// Its last moment.
    pub ended: Moment,
}

impl Span {
    /// How long it lasted, by the clock that never jumps.
    pub fn length(&self) -> Duration {
        self.ended.monotonic - self.began.monotonic
    }
}
