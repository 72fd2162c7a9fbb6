//! What was seen of the commits of a measurement.

use rubus_stats::estimate::Estimate;
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::result::{Access, JobResult, LatencyBins, LatencyIntervals, Stall};

/// What was seen of the commits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Number of commits.
    pub commits: u64,
    /// Duration in seconds.
    pub seconds: f64,
    /// Per second, with its interval.
    pub per_second: Option<Estimate>,
    /// The shortest, in nanoseconds.
    pub shortest_ns: Option<u64>,
    /// The median, in nanoseconds.
    pub median_ns: Option<u64>,
    /// The 99th percentile with its interval, in nanoseconds.
    pub p99_ns: Option<Estimate>,
    /// The longest, in nanoseconds.
    pub longest_ns: u64,
    /// How they are distributed.
    pub bins: LatencyBins,
    /// Times in which nothing was done.
    pub stalls: Vec<Stall>,
    /// What held the program up, so that slow commits may not be the storage's fault.
    pub held_up: Option<Doubt>,
    /// Writes that nothing flushed ended in memory: the storage itself was not seen.
    pub is_cached: bool,
    /// The measurement was stopped before its end.
    pub is_cut_short: bool,
}

impl Evidence {
    /// Of the commits of a job.
    pub fn of(result: &JobResult) -> Evidence {
        let latency = &result.latency_ns;
        let intervals = result.latency_intervals;
        Evidence {
            commits: result.operations,
            seconds: result.elapsed_s,
            per_second: Some(result.iops),
            shortest_ns: latency.min,
            median_ns: latency.p50,
            p99_ns: intervals.and_then(|found| p99(&found)),
            longest_ns: latency.max.unwrap_or(0),
            bins: result.latency_bins.clone().unwrap_or_default(),
            stalls: result.stalls.clone(),
            held_up: result.doubts.iter().find(|doubt| holds_up(doubt)).cloned(),
            is_cached: !result.commit && is_cached(result),
            is_cut_short: false,
        }
    }

    /// Commits that surely took `ns` or longer.
    pub(super) fn at_least(&self, ns: u64) -> u64 {
        let mut low_ns = 0;
        let mut count = 0;
        for (&up_to_ns, &operations) in self.bins.up_to_ns.iter().zip(&self.bins.operations) {
            // Where bins were left out, a bin begins about a ninth below its end.
            low_ns = low_ns.max(up_to_ns - up_to_ns / 9);
            if low_ns >= ns {
                count += operations;
            }
            low_ns = up_to_ns;
        }
        // The longest is known by itself.
        count.max(u64::from(self.longest_ns >= ns)).min(self.commits)
    }
}

/// The 99th percentile. Both of its upper ends hold at 97.5 %: the one of its interval, which may be none, and the latency that
/// surely less than 1 % exceed.
fn p99(found: &LatencyIntervals) -> Option<Estimate> {
    let p99 = found.p99_ns?;
    let at_most = found.p99_at_most_ns.unwrap_or(f64::INFINITY);
    let high = p99.high.min(at_most).max(p99.value);
    // It is no lower than the median is.
    let median = found.p50_ns.map_or(p99.low, |p50| p50.low);
    let low = p99.low.max(median).min(p99.value);
    Some(Estimate::new(p99.value, low, high))
}

/// Whether direct I/O was refused, or was none.
fn is_cached(result: &JobResult) -> bool {
    let is_it = |doubt: &Doubt| {
        matches!(doubt, Doubt::ThroughPageCache { .. } | Doubt::DirectIsBuffered { .. })
    };
    result.access == Some(Access::Buffered) || result.doubts.iter().any(is_it)
}

fn holds_up(doubt: &Doubt) -> bool {
    matches!(doubt, Doubt::CpuStarved { .. } | Doubt::CpuStolen { .. } | Doubt::Stopped { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shorter_of_two_upper_ends_counts() {
        let bounded = |high, at_most| {
            let found = LatencyIntervals {
                p50_ns: None,
                p99_ns: Some(Estimate::new(2.4e6, 2.2e6, high)),
                p99_at_most_ns: at_most,
            };
            p99(&found).expect("there is one").high
        };
        assert_eq!(bounded(f64::INFINITY, Some(2.8e6)), 2.8e6);
        assert_eq!(bounded(40e6, Some(2.8e6)), 2.8e6);
        assert_eq!(bounded(2.6e6, Some(2.8e6)), 2.6e6);
        assert_eq!(bounded(f64::INFINITY, None), f64::INFINITY);
        // Never below the figure itself.
        assert_eq!(bounded(2.6e6, Some(2.3e6)), 2.4e6);
    }

    #[test]
    fn the_tail_is_not_below_the_median() {
        let found = LatencyIntervals {
            p50_ns: Some(Estimate::new(1.53e6, 1.4e6, 1.6e6)),
            p99_ns: Some(Estimate::new(29.7e6, 0.178e6, 125e6)),
            p99_at_most_ns: None,
        };
        assert_eq!(p99(&found).expect("there is one").low, 1.4e6);
    }
}
