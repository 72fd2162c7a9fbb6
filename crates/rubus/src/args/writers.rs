//! Arguments of `rubus writers`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::{Json, time_within};

/// Say which programs wrote to the disks, and how much.
///
/// Reads a recording of `rubus watch --record FILE`, or watches this machine for a minute. Names
/// programs, their units and where they write, what filesystems add, and what that makes in a year.
/// Run as root to see all programs; an ordinary user sees only their own. Writes nothing.
#[derive(Debug, ClapArgs)]
pub struct Writers {
    /// Recording of `rubus watch --record FILE`; without one, this machine is watched
    #[arg(value_name = "FILE")]
    pub recording: Option<PathBuf>,
    /// How long to watch, such as 90s, 10m or 2h
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time, conflicts_with = "recording")]
    pub time: f64,
    #[command(flatten)]
    pub json: Json,
}

/// Shorter times see one walk over all programs or none.
const MIN_S: f64 = 5.0;
/// Longer ones are for a recording, which outlives the program.
const MAX_S: f64 = 86_400.0;

fn time(text: &str) -> Result<f64, String> {
    time_within(text, MIN_S..=MAX_S).ok_or_else(|| "write a time from 5s to 24h".into())
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn a_time_is_in_seconds_minutes_or_hours() {
        assert_eq!(time("90s"), Ok(90.0));
        assert_eq!(time("90"), Ok(90.0));
        assert_eq!(time("10m"), Ok(600.0));
        assert_eq!(time("24h"), Ok(86_400.0));
        for wrong in ["4s", "25h", "m", "-1m", "NaN", "infs", "1d"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
