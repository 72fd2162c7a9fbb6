//! What an operation costs a stage, by its size.

use rubus_stats::estimate::Estimate;
use serde::{Deserialize, Serialize};

/// Seconds that an operation takes, as a function of its bytes.
///
/// Known at one or more sizes. Between two of them the truth of a stage that gets no slower by getting less lies
/// between two laws: a fixed cost and a cost per byte that add up (the line through both points), and one of the two
/// that hides the other (a throttle, a bus that transfers while the device seeks). The line is the value, the other
/// law the low end. Below the smallest size the smallest one's cost holds, above the largest its cost per byte.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Bytes and seconds, by ascending bytes.
    points: Vec<(f64, Estimate)>,
    /// True when the cost has no part that is fixed.
    is_proportional: bool,
}

impl Cost {
    /// The same for every size.
    ///
    /// # Panics
    /// If the cost is negative: that is a programming error.
    pub fn fixed(seconds: Estimate) -> Cost {
        assert!(seconds.low >= 0.0, "a cost is not negative");
        Cost { points: vec![(f64::MAX, seconds)], is_proportional: false }
    }

    /// Nothing but a rate.
    ///
    /// # Panics
    /// If the rate is not positive: that is a programming error.
    pub fn rate(bytes_per_second: Estimate) -> Cost {
        Cost { points: vec![(1.0, inverse(bytes_per_second))], is_proportional: true }
    }

    /// As measured: pairs of bytes per operation and operations per second, at least one, each size once.
    ///
    /// # Panics
    /// If there is none, or a rate is not positive: that is a programming error.
    pub fn measured(iops_by_bytes: &[(u64, Estimate)]) -> Cost {
        let seconds = iops_by_bytes.iter().map(|&(bytes, iops)| (bytes, inverse(iops)));
        Cost::seconds(seconds)
    }

    /// Pairs of bytes per operation and its seconds, at least one, each size once.
    ///
    /// # Panics
    /// If there is none: that is a programming error.
    pub fn seconds(by_bytes: impl IntoIterator<Item = (u64, Estimate)>) -> Cost {
        let mut points: Vec<(f64, Estimate)> =
            by_bytes.into_iter().map(|(bytes, seconds)| (bytes.max(1) as f64, seconds)).collect();
        assert!(!points.is_empty(), "a cost from no measurement");
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points.dedup_by(|a, b| a.0 == b.0);
        Cost { points, is_proportional: false }
    }

    /// Seconds of an operation of `bytes` bytes.
    pub fn at(&self, bytes: f64) -> Estimate {
        let after = self.points.partition_point(|point| point.0 < bytes);
        match (after.checked_sub(1).map(|i| self.points[i]), self.points.get(after)) {
            (_, Some(&(size, seconds))) if size == bytes => seconds,
            (None, Some(&(size, seconds))) if self.is_proportional => seconds.scaled(bytes / size),
            (None, Some(&(_, seconds))) => seconds,
            (Some((size, seconds)), None) => seconds.scaled(bytes / size),
            (Some(smaller), Some(&larger)) => between(smaller, larger, bytes),
            (None, None) => unreachable!("a cost has a point"),
        }
    }
}

fn between(smaller: (f64, Estimate), larger: (f64, Estimate), bytes: f64) -> Estimate {
    let part = (bytes - smaller.0) / (larger.0 - smaller.0);
    let line = |of: fn(&Estimate) -> f64| of(&smaller.1) * (1.0 - part) + of(&larger.1) * part;
    let hidden = smaller.1.low.max(larger.1.low * bytes / larger.0);
    let value = line(|seconds| seconds.value);
    Estimate::new(
        value,
        hidden.min(line(|seconds| seconds.low)).min(value),
        line(|seconds| seconds.high).max(value),
    )
}

/// One over it, for rates and times.
///
/// # Panics
/// If the value is not positive: that is a programming error.
pub(crate) fn inverse(estimate: Estimate) -> Estimate {
    assert!(estimate.value > 0.0, "a rate of nothing has no inverse");
    let low = if estimate.low > 0.0 { 1.0 / estimate.low } else { f64::INFINITY };
    let value = 1.0 / estimate.value;
    Estimate::new(value, (1.0 / estimate.high).min(value), low.max(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iops(value: f64) -> Estimate {
        Estimate::new(value, value * 0.9, value * 1.1)
    }

    #[test]
    fn a_measured_size_costs_what_was_measured() {
        let cost = Cost::measured(&[(1 << 20, iops(20.0)), (4096, iops(500.0))]);
        assert_eq!(cost.at(4096.0), inverse(iops(500.0)));
        assert_eq!(cost.at(1048576.0), inverse(iops(20.0)));
    }

    #[test]
    fn between_sizes_both_laws_are_inside() {
        // A throttle of 500 operations and 20 MiB per second, exactly measured at both ends.
        let exact = Estimate::exact;
        let cost = Cost::measured(&[(4096, exact(500.0)), (1 << 20, exact(20.0))]);
        let seen = cost.at(65536.0);
        let throttle = (1.0_f64 / 500.0).max(65536.0 / (20.0 * 1048576.0));
        assert!((seen.low - throttle).abs() < 1e-12, "{seen:?}");
        // A fixed cost and a cost per byte that add up: the line.
        let byte_s = (1.0 / 20.0 - 1.0 / 500.0) / (1048576.0 - 4096.0);
        assert!((seen.value - (1.0 / 500.0 + byte_s * 61440.0)).abs() < 1e-12, "{seen:?}");
    }

    #[test]
    fn outside_of_what_was_measured_one_law_is_left() {
        let cost = Cost::measured(&[(4096, iops(500.0)), (1 << 20, iops(20.0))]);
        assert_eq!(cost.at(512.0), cost.at(4096.0));
        assert!((cost.at(2.0 * 1048576.0).value - 0.1).abs() < 1e-12);
        assert_eq!(Cost::fixed(iops(2.0)).at(7.0), iops(2.0));
        assert_eq!(Cost::rate(iops(1000.0)).at(500.0).value, 0.5);
        assert_eq!(Cost::rate(iops(1000.0)).at(0.5).value, 0.0005);
    }

    proptest::proptest! {
        #[test]
        fn more_bytes_never_cost_less(
            small in 1.0..1e6_f64, large in 1.0..1e3_f64, a in 1.0..1e7_f64, b in 1.0..1e7_f64,
        ) {
            // The larger size has fewer operations per second, and more bytes.
            let large = large.min(small);
            let cost = Cost::measured(&[(4096, iops(small)), (1 << 20, iops(large))]);
            let (a, b) = (a.min(b), a.max(b));
            proptest::prop_assert!(cost.at(a).value <= cost.at(b).value * (1.0 + 1e-12));
            proptest::prop_assert!(cost.at(a).low <= cost.at(a).value);
        }
    }
}
