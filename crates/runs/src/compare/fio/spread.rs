//! How sure a rate of fio's is, from what it says of its samples.
//!
//! fio samples every rate twice a second and gives mean, deviation and count of the samples. Two things
//! are not in its result: how much neighbouring samples have to do with one another, and how much the copies
//! of a group have. Both are taken at their worst within reason:
//!
//! - Samples within two seconds ([`CORRELATED_S`]) count as one. The interval then holds the truth
//!   of a device that changes its rate about once a second (`lab/tests/loop_compare.rs` and the
//!   simulation below); of one that changes more slowly it holds less often.
//! - Of a group fio gives the sum of the means and the deviation of one copy. Copies on one device
//!   slow down together, so the deviation of their sum is that of one copy times their number.

use rubus_stats::quantile::student_t_95;
use rubus_vocabulary::figure::{Figure, Interval};

use super::part::{Part, Samples};

/// Samples nearer than this count as one, in seconds.
const CORRELATED_S: f64 = 2.0;
/// Fewer independent samples say nothing about a deviation.
const MIN_INDEPENDENT: f64 = 4.0;
/// A mean of samples that is further from the rate than this factor is not of its samples.
const MAX_OFF: f64 = 2.0;
/// fio's default distance between samples, and the longest that it is for a sample per operation
/// to be told from a sample per time, in seconds.
const SAMPLE_S: f64 = 0.5;

/// Why a rate has no interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// There are no samples with a deviation, or not of this rate.
    NoSamples,
    /// The samples are of single operations.
    PerOperation,
    /// The job was too short.
    TooShort,
    /// All samples are equal.
    NoSpread,
}

impl Unknown {
    pub(super) fn what(self) -> &'static str {
        match self {
            Unknown::NoSamples => "fio gave no samples of the rate, so it has no interval",
            Unknown::PerOperation => {
                "fio's samples are single operations (its log has no log_avg_msec), so the rate has no interval"
            }
            Unknown::TooShort => {
                "fio ran for less than about 8 s, too short for an interval of the rate"
            }
            Unknown::NoSpread => {
                "fio's samples are all equal, which does not tell how sure the rate is"
            }
        }
    }

    pub(super) fn kind(self) -> &'static str {
        match self {
            Unknown::NoSamples => "no_samples",
            Unknown::PerOperation => "samples_per_operation",
            Unknown::TooShort => "few_samples",
            Unknown::NoSpread => "no_spread",
        }
    }
}

/// Bytes per second of `copies` copies together, with a rough interval or why there is none.
pub(super) fn rate(part: &Part<'_>, copies: u32) -> (Figure, Option<Unknown>) {
    let value = part.bytes_per_second();
    // Operations and bandwidth are sampled apart, and a log may spoil either.
    let of_operations = half_width(part, "iops", part.per_second(), copies);
    let found = match of_operations {
        Ok(half_width) => Ok(half_width),
        Err(why) => half_width(part, "bw", value / 1024.0, copies).map_err(|other| match why {
            Unknown::NoSamples => other,
            why => why,
        }),
    };
    match found {
        Err(why) => (Figure::bare(value), Some(why)),
        Ok(half_width) => {
            // Symmetric as a factor: a bound below, made by subtraction, falls to nothing for a deviation that bounds well above.
            let factor = half_width.exp();
            let (low, high) = (value / factor, value * factor);
            (Figure { value, interval: Some(Interval { low, high, rough: true }) }, None)
        }
    }
}

/// Half the width of the interval over the rate.
fn half_width(part: &Part<'_>, kind: &str, rate: f64, copies: u32) -> Result<f64, Unknown> {
    let samples = part.samples(kind).ok_or(Unknown::NoSamples)?;
    let copies = f64::from(copies.max(1));
    let seconds = part.seconds();
    let count = samples.count.unwrap_or(copies * seconds / SAMPLE_S) / copies;
    if is_per_operation(part, &samples) {
        return Err(Unknown::PerOperation);
    }
    if count < 1.0 || samples.mean <= 0.0 {
        return Err(Unknown::TooShort);
    }
    if rate <= 0.0 || !(1.0 / MAX_OFF..=MAX_OFF).contains(&(samples.mean / rate)) {
        return Err(Unknown::NoSamples);
    }
    let independent = count.min(seconds / CORRELATED_S);
    if independent < MIN_INDEPENDENT {
        return Err(Unknown::TooShort);
    }
    if samples.deviation <= 0.0 {
        return Err(Unknown::NoSpread);
    }
    let relative = copies * samples.deviation / samples.mean;
    Ok(student_t_95(independent - 1.0) * relative / independent.sqrt())
}

/// Whether there is a sample for each operation and not for each half second.
fn is_per_operation(part: &Part<'_>, samples: &Samples) -> bool {
    let operations = part.operations();
    let is_for_each = samples.count.is_some_and(|count| count > 0.8 * operations);
    let apart_s = part.seconds() / operations.max(1.0);
    is_for_each && apart_s < SAMPLE_S / 2.0
}

#[cfg(test)]
mod tests;
