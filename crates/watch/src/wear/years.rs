//! How long a disk lasts at a rate.

use serde::Serialize;

use rubus_stats::estimate::Estimate;

use super::Wear;

/// Days of a year.
const YEAR_DAYS: f64 = 365.25;

/// Years until a disk has used up the life that it was made for, if it is written to as it was watched.
///
/// It is an interval: a disk says its wear in steps, the rate has its own interval, and with fewer than all bytes known
/// that it was ever given, only the least time can be said.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct YearsLeft {
    /// Lower bound in years.
    pub min_years: f64,
    /// Upper bound in years; absent where there is no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_years: Option<f64>,
}

/// Years left of a disk that is written `bytes_per_day` bytes a day.
///
/// What it was given so far (`W`) used a share `u` of its life; the rest lasts for `W (1 - u) / u` bytes of the same kind.
/// That falls with `u`, so the bounds of the wear give those of the bytes, and with the bounds of the rate those of the time.
/// None where the disk says neither, or is worn out already.
pub fn years_left(wear: &Wear, bytes_per_day: Estimate) -> Option<YearsLeft> {
    let used = wear.used.filter(|used| !used.is_at_end())?;
    // A disk that is used was written to: a counter at 0 does not count.
    let counted = wear.written_bytes.filter(|bytes| *bytes > 0);
    let (min_bytes, max_bytes) = match (counted, wear.filesystems_written_bytes) {
        (Some(written), _) => (written, Some(written)),
        (None, Some(written)) => (written, None),
        (None, None) => return None,
    };
    let left = |written: u64, percent: f64| written as f64 * (100.0 - percent) / percent;
    let years = |bytes: f64, per_day: f64| bytes / per_day / YEAR_DAYS;
    let most_used = used.max_percent.map_or(100.0, |percent| percent.min(100.0));
    let min_years = years(left(min_bytes, most_used), bytes_per_day.high);
    // Without end for one that is not worn at all or not written to.
    let max_years = max_bytes
        .map(|written| years(left(written, used.min_percent), bytes_per_day.low))
        .filter(|years| years.is_finite());
    min_years.is_finite().then_some(YearsLeft { min_years, max_years })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wear::Used;

    const TB: f64 = 1e12;

    fn wear(min: f64, max: Option<f64>, written: Option<u64>, at_least: Option<u64>) -> Wear {
        Wear {
            used: Some(Used { min_percent: min, max_percent: max }),
            written_bytes: written,
            filesystems_written_bytes: at_least,
            ..Wear::default()
        }
    }

    fn rate(per_day: f64) -> Estimate {
        Estimate::new(per_day, per_day, per_day)
    }

    #[test]
    fn half_a_life_lasts_as_long_again() {
        let written = (3652.5 * 10e9) as u64;
        let left = years_left(&wear(50.0, Some(50.0), Some(written), None), rate(10e9)).unwrap();
        assert!((left.min_years - 10.0).abs() < 1e-6, "{left:?}");
        assert!((left.max_years.unwrap() - 10.0).abs() < 1e-6, "{left:?}");
    }

    #[test]
    fn a_new_disk_has_no_upper_bound_and_a_lower_one_from_what_it_was_given() {
        let left = years_left(&wear(0.0, Some(1.0), Some(TB as u64), None), rate(10e9)).unwrap();
        assert!((left.min_years - 99.0 * TB / 10e9 / 365.25).abs() < 1e-6);
        assert_eq!(left.max_years, None);
    }

    #[test]
    fn what_filesystems_have_written_bounds_only_from_below() {
        let one = wear(10.0, Some(20.0), None, Some(TB as u64));
        let left = years_left(&one, rate(10e9)).unwrap();
        assert!((left.min_years - 4.0 * TB / 10e9 / 365.25).abs() < 1e-6);
        assert_eq!(left.max_years, None);
        // The disk's own counter is better.
        let both = Wear { written_bytes: Some(2 * TB as u64), ..one };
        let left = years_left(&both, rate(10e9)).unwrap();
        assert!((left.min_years - 8.0 * TB / 10e9 / 365.25).abs() < 1e-6);
        assert!((left.max_years.unwrap() - 18.0 * TB / 10e9 / 365.25).abs() < 1e-6);
    }

    #[test]
    fn what_says_too_little_or_is_worn_out_has_no_years() {
        assert_eq!(years_left(&Wear::default(), rate(1e9)), None);
        assert_eq!(years_left(&wear(10.0, Some(20.0), None, None), rate(1e9)), None);
        assert_eq!(years_left(&wear(100.0, None, Some(1), None), rate(1e9)), None);
        assert_eq!(years_left(&wear(1.0, Some(3.0), Some(0), None), rate(1e9)), None);
        let idle = Estimate::new(0.0, 0.0, 0.0);
        let used = wear(10.0, Some(20.0), Some(1 << 40), None);
        assert_eq!(years_left(&used, idle), None);
    }

    proptest! {
        /// A disk wears linearly and says its wear in steps: the time that is truly left is always within.
        #[test]
        fn the_true_time_is_within(
            life_bytes in 1e12..1e15_f64,
            share in 0.001..0.999_f64,
            per_day in 1e8..1e12_f64,
            below in 0.0..0.5_f64,
            above in 0.0..0.5_f64,
            step in prop::sample::select(vec![1.0, 10.0]),
        ) {
            let written = life_bytes * share;
            let percent = share * 100.0;
            let min = (percent / step).floor() * step;
            let wear = wear(min, Some(min + step), Some(written as u64), None);
            let rate = Estimate::new(per_day, per_day * (1.0 - below), per_day * (1.0 + above));
            let truth = (life_bytes - written) / per_day / YEAR_DAYS;
            let left = years_left(&wear, rate).unwrap();
            prop_assert!(left.min_years <= truth * 1.000_001, "{left:?} {truth}");
            prop_assert!(left.max_years.is_none_or(|max| max >= truth * 0.999_999), "{left:?} {truth}");
        }
    }
}
