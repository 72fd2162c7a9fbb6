//! What spoils a comparison from outside: others that want the processors (the kernel's pressure account),
//! and a wall clock that is set meanwhile.

use rubus_lab::devices::Moment;

/// Share of the time in which some program waited for a processor from which the machine counts as
/// busy with something else. A throttled device leaves the processors nearly idle.
pub const BUSY: f64 = 0.25;
/// How far the wall clock may be set while a run is compared with it, in seconds.
pub const CLOCK_JUMP_S: f64 = 0.02;

/// A moment from which pressure is counted.
#[derive(Clone, Copy, Debug)]
pub struct Pressure {
    at: Moment,
    waited_us: Option<u64>,
}

impl Pressure {
    /// Counts from now on.
    pub fn now() -> Self {
        Pressure { at: Moment::now(), waited_us: waited_us() }
    }

    /// The share of the time since then in which some program waited for a processor; nothing where
    /// the kernel keeps no account.
    pub fn share(&self) -> Option<f64> {
        let waited_us = waited_us()?.saturating_sub(self.waited_us?);
        Some(waited_us as f64 / 1e6 / self.at.monotonic.elapsed().as_secs_f64())
    }

    /// What to say when the machine was busy with something else since then, or its clock was set.
    pub fn trouble(&self) -> Option<String> {
        self.clock_trouble().or_else(|| self.busy_trouble())
    }

    /// What to say when the wall clock was set since then.
    pub fn clock_trouble(&self) -> Option<String> {
        let jump_s = self.at.wall_clock_jump_s();
        (jump_s.abs() > CLOCK_JUMP_S).then(|| format!("the wall clock was set by {jump_s:.3} s"))
    }

    fn busy_trouble(&self) -> Option<String> {
        let share = self.share().filter(|&share| share > BUSY)?;
        Some(format!("programs waited for a processor {:.0} % of the time", share * 100.0))
    }
}

fn waited_us() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/pressure/cpu").ok()?;
    let some = text.lines().find(|line| line.starts_with("some "))?;
    some.split_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
}
