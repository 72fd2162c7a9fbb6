//! How much others want the processors: the kernel's pressure account.

use std::time::Instant;

/// Share of the time in which some program waited for a processor from which the machine counts as
/// busy with something else. A throttled device leaves the processors nearly idle.
pub const BUSY: f64 = 0.25;

/// A moment from which pressure is counted.
#[derive(Clone, Copy, Debug)]
pub struct Pressure {
    at: Instant,
    waited_us: Option<u64>,
}

impl Pressure {
    /// Counts from now on.
    pub fn now() -> Self {
        Pressure {
            at: Instant::now(),
            waited_us: waited_us(),
        }
    }

    /// The share of the time since then in which some program waited for a processor; nothing where
    /// the kernel keeps no account.
    pub fn share(&self) -> Option<f64> {
        let waited_us = waited_us()?.saturating_sub(self.waited_us?);
        Some(waited_us as f64 / 1e6 / self.at.elapsed().as_secs_f64())
    }

    /// What to say when the machine was busy with something else since then.
    pub fn trouble(&self) -> Option<String> {
        let share = self.share().filter(|&share| share > BUSY)?;
        Some(format!(
            "programs waited for a processor {:.0} % of the time",
            share * 100.0
        ))
    }
}

fn waited_us() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/pressure/cpu").ok()?;
    let some = text.lines().find(|line| line.starts_with("some "))?;
    some.split_whitespace()
        .find_map(|word| word.strip_prefix("total="))?
        .parse()
        .ok()
}
