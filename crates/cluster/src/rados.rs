//! Objects of a pool, measured with Ceph's own `rados bench`: which jobs, and what its lines say.
//!
//! The tool prints a row each second. From these rows come the rate, its interval and the end of a job, by the rule that all other
//! jobs have; the tool's own mean is not used.

mod course;
pub mod output;
pub mod owner;

use rubus_stats::stop::StopSpec;
use rubus_vocabulary::spec::{Direction, Pattern};

pub use course::{Around, Course};

/// Name of the suite.
pub const SUITE: &str = "objects";
/// Where the objects are, so that they are told from all others in the pool.
pub const NAMESPACE: &str = "rubus-bench";
/// Bytes of an object: what RBD and CephFS cut their data into.
pub const OBJECT_BYTES: u32 = 4 << 20;
/// Operations in flight, as the tool has by itself.
pub const IN_FLIGHT: u32 = 16;
/// Objects that are written first: they warm the pool up, and the reads read them.
pub const FILL_OBJECTS: u64 = 64;

/// The longest that a job may take, in seconds.
const MAX_SECONDS: f64 = 60.0;
const MIN_SECONDS: f64 = 10.0;
const PRECISION: f64 = 0.10;
/// What is written at most, unless the user says it: in all, and as a share of what the pool still takes.
const BUDGET_BYTES: u64 = 4 << 30;
const BUDGET_SHARE: u64 = 10;

/// One thing to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectJob {
    /// Name of the job in results.
    pub name: &'static str,
    /// Writing or reading.
    pub direction: Direction,
    /// When it ends.
    pub stop: StopSpec,
}

impl ObjectJob {
    /// As the tool calls it.
    pub fn verb(&self) -> &'static str {
        match self.direction {
            Direction::Write => "write",
            Direction::Read => "rand",
        }
    }

    /// In which order objects are taken.
    pub fn pattern(&self) -> Pattern {
        match self.direction {
            Direction::Write => Pattern::Sequential,
            Direction::Read => Pattern::Random,
        }
    }

    /// What it is called.
    pub fn title(&self) -> &'static str {
        match self.direction {
            Direction::Write => "4 MiB object writes ×16",
            Direction::Read => "4 MiB object reads ×16",
        }
    }
}

/// The bytes that may be written: what the user allows, or the usual.
///
/// # Errors
/// In words, when the pool or the user leaves too little for a measurement.
pub fn budget(wanted: Option<u64>, available: u64) -> Result<u64, String> {
    const MIN_BYTES: u64 = 2 * FILL_OBJECTS * OBJECT_BYTES as u64;
    let most = available / BUDGET_SHARE;
    let budget = wanted.unwrap_or(BUDGET_BYTES.min(most));
    let [least, most, mib] = [MIN_BYTES, most, available].map(|bytes| bytes >> 20);
    if budget < MIN_BYTES || budget >> 20 > most {
        return Err(match wanted {
            Some(_) => format!(
                "--budget has to be from {least} MiB to {most} MiB, a tenth of what the pool still takes"
            ),
            None => format!(
                "the pool still takes {mib} MiB, and a benchmark writes a tenth of that at most: too little to measure"
            ),
        });
    }
    Ok(budget)
}

/// The jobs, which end at this precision (half the width of the interval as a share of the rate) and write this much at most.
pub fn jobs(precision: Option<f64>, budget: u64) -> [ObjectJob; 2] {
    let wanted = precision.unwrap_or(PRECISION);
    let finer = (PRECISION / wanted).clamp(1.0, 5.0);
    let stop = StopSpec {
        relative_half_width: wanted,
        min_seconds: MIN_SECONDS,
        max_seconds: (MAX_SECONDS * finer * finer).floor(),
        min_bytes: 0,
        max_bytes: u64::MAX,
    };
    let max_bytes = budget.saturating_sub(FILL_OBJECTS * u64::from(OBJECT_BYTES));
    [
        ObjectJob {
            name: "object-write",
            direction: Direction::Write,
            stop: StopSpec { max_bytes, ..stop },
        },
        ObjectJob { name: "object-read", direction: Direction::Read, stop },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_written_is_a_tenth_of_what_the_pool_takes() {
        assert_eq!(budget(None, 1 << 40), Ok(4 << 30));
        assert_eq!(budget(None, 10 << 30), Ok(1 << 30));
        assert_eq!(budget(Some(1 << 30), 20 << 30), Ok(1 << 30));
        let error = budget(Some(4 << 30), 10 << 30).unwrap_err();
        assert!(error.contains("from 512 MiB to 1024 MiB"), "{error}");
        let error = budget(None, 1 << 30).unwrap_err();
        assert!(error.contains("still takes 1024 MiB"), "{error}");
    }

    #[test]
    fn a_finer_precision_takes_longer_and_writes_no_more() {
        let [usual, read] = jobs(None, 1 << 30);
        assert_eq!((usual.stop.max_seconds, usual.stop.max_bytes), (60.0, 768 << 20));
        assert_eq!(read.stop.max_bytes, u64::MAX);
        let [finer, _] = jobs(Some(0.05), 1 << 30);
        assert_eq!((finer.stop.max_seconds, finer.stop.max_bytes), (240.0, 768 << 20));
        assert_eq!(jobs(Some(0.5), 1 << 30)[0].stop.max_seconds, 60.0);
    }
}
