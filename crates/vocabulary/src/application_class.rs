//! The SD Association's application performance classes, judged with intervals.
//!
//! The classes are promises under conditions that only the member specification fixes, so the
//! answer is always "behaves like A1 here", never "is A1". Thresholds: A1 (SD 5.1) 1500 random
//! reads and 500 random writes of 4 KiB per second and 10 MB/s sequential writing; A2 (SD 6.0)
//! 4000 and 2000, and the same 10 MB/s (sdcard.org, "Application Performance Class").

use serde::{Deserialize, Serialize};

use rubus_stats::estimate::Estimate;

/// One application performance class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ApplicationClass {
    /// "A1" or "A2".
    pub name: &'static str,
    /// Random 4 KiB reads per second.
    pub read_iops: f64,
    /// Random 4 KiB writes per second.
    pub write_iops: f64,
    /// Sequential writing, in bytes per second.
    pub sequential_bytes_per_second: f64,
}

/// The thresholds of class A1.
pub const A1: ApplicationClass = ApplicationClass {
    name: "A1",
    read_iops: 1500.0,
    write_iops: 500.0,
    sequential_bytes_per_second: 10e6,
};

/// The thresholds of class A2.
pub const A2: ApplicationClass = ApplicationClass {
    name: "A2",
    read_iops: 4000.0,
    write_iops: 2000.0,
    sequential_bytes_per_second: 10e6,
};

/// Whether a threshold is met, as far as an interval can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Met {
    /// The whole interval is at or above the threshold.
    Yes,
    /// The whole interval is below it.
    No,
    /// The threshold lies inside the interval.
    Inconclusive,
}

/// Compares an estimate with a threshold that it should reach.
pub fn met(estimate: &Estimate, threshold: f64) -> Met {
    if estimate.low >= threshold {
        Met::Yes
    } else if estimate.high < threshold {
        Met::No
    } else {
        Met::Inconclusive
    }
}

/// All of several conditions: one "no" decides, then one "inconclusive".
pub fn all(conditions: &[Met]) -> Met {
    if conditions.contains(&Met::No) {
        Met::No
    } else if conditions.contains(&Met::Inconclusive) {
        Met::Inconclusive
    } else {
        Met::Yes
    }
}

impl ApplicationClass {
    /// Whether the three measured figures behave like this class.
    pub fn judge(&self, reads: &Estimate, writes: &Estimate, sequential: &Estimate) -> Met {
        all(&[
            met(reads, self.read_iops),
            met(writes, self.write_iops),
            met(sequential, self.sequential_bytes_per_second),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_across_the_threshold_is_inconclusive() {
        assert_eq!(met(&Estimate::new(1600.0, 1500.0, 1700.0), 1500.0), Met::Yes);
        assert_eq!(met(&Estimate::new(1600.0, 1400.0, 1800.0), 1500.0), Met::Inconclusive);
        assert_eq!(met(&Estimate::new(1300.0, 1200.0, 1499.0), 1500.0), Met::No);
    }

    #[test]
    fn one_failure_outweighs_what_is_open() {
        let open = Estimate::new(1600.0, 1400.0, 1800.0);
        let failed = Estimate::exact(100.0);
        let fine = Estimate::exact(20e6);
        assert_eq!(A1.judge(&open, &failed, &fine), Met::No);
        assert_eq!(A1.judge(&open, &Estimate::exact(600.0), &fine), Met::Inconclusive);
        assert_eq!(A2.judge(&Estimate::exact(4000.0), &Estimate::exact(2000.0), &fine), Met::Yes);
    }
}
