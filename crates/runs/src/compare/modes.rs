//! Latencies with two modes: the median is then of the one or the other by a hair, and no figure to compare.

use rubus_vocabulary::result::LatencyBins;

/// Each mode has at least this share of the operations: with less, the median is safely within the other.
const MIN_SHARE: f64 = 0.3;
/// The valley between them spans a factor of 4, and has no more than this.
const MAX_BETWEEN: f64 = 0.05;

/// Two modes of a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Modes {
    /// Median of the faster operations, in nanoseconds.
    pub fast_ns: u64,
    /// Share of the faster operations, 0 to 1.
    pub fast_share: f64,
    /// Median of the slower ones.
    pub slow_ns: u64,
}

/// The two modes, where there are two and the median may be of either.
pub(super) fn of(bins: &LatencyBins) -> Option<Modes> {
    let all: f64 = bins.operations.iter().map(|count| *count as f64).sum();
    let share = |is_meant: &dyn Fn(u64) -> bool| {
        let each = bins.up_to_ns.iter().zip(&bins.operations);
        each.filter(|(end, _)| is_meant(**end)).map(|(_, count)| *count as f64).sum::<f64>() / all
    };
    if all <= 0.0 {
        return None;
    }
    bins.up_to_ns.iter().find_map(|low_end| {
        let (low, high) = (*low_end, low_end.saturating_mul(4));
        let fast_share = share(&|end| end <= low);
        let slow_share = share(&|end| end > high);
        let are_two = fast_share >= MIN_SHARE
            && slow_share >= MIN_SHARE
            && 1.0 - fast_share - slow_share <= MAX_BETWEEN;
        are_two.then(|| Modes {
            fast_ns: median(bins, |end| end <= low),
            fast_share,
            slow_ns: median(bins, |end| end > high),
        })
    })
}

fn median(bins: &LatencyBins, is_meant: impl Fn(u64) -> bool) -> u64 {
    let each = bins.up_to_ns.iter().zip(&bins.operations);
    let meant: Vec<(u64, u64)> =
        each.filter(|(end, _)| is_meant(**end)).map(|(end, count)| (*end, *count)).collect();
    let half = meant.iter().map(|(_, count)| *count).fold(0, u64::saturating_add) / 2;
    let mut below = 0_u64;
    for (end, count) in &meant {
        below = below.saturating_add(*count);
        if below > half {
            return *end;
        }
    }
    meant.last().map_or(0, |(end, _)| *end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bins(each: &[(u64, u64)]) -> LatencyBins {
        LatencyBins {
            up_to_ns: each.iter().map(|(end, _)| *end).collect(),
            operations: each.iter().map(|(_, count)| *count).collect(),
        }
    }

    #[test]
    fn two_modes_with_a_valley_between_are_named() {
        let two = bins(&[(500_000, 40), (550_000, 12), (50_000_000, 20), (56_000_000, 28)]);
        let modes = of(&two).expect("two modes");
        assert_eq!((modes.fast_ns, modes.slow_ns), (500_000, 56_000_000));
        assert!((modes.fast_share - 0.52).abs() < 1e-9);
    }

    #[test]
    fn one_mode_a_long_tail_and_a_slope_are_not_two() {
        assert_eq!(of(&bins(&[(500, 40), (550, 60)])), None);
        assert_eq!(of(&bins(&[(500, 80), (5_000, 20)])), None, "a tail");
        let slope = bins(&[(500, 25), (1_000, 25), (2_000, 25), (4_000, 25)]);
        assert_eq!(of(&slope), None);
        assert_eq!(of(&LatencyBins::default()), None);
    }
}
