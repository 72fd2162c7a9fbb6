//! The intervals hold the truth of a device that changes its rate at random.

use serde_json::{Value, json};

use super::super::part::Units;
use super::*;
use rubus_stats::Rng;

fn part(value: &Value) -> Part<'_> {
    Part::of(value, Units::Bytes).expect("it worked")
}

/// What fio says of a job whose copies had these operations in each half second.
fn told(samples: &[Vec<f64>], block_bytes: f64) -> Value {
    let seconds = samples[0].len() as f64 * SAMPLE_S;
    let mut mean = 0.0;
    let mut squares = 0.0;
    let mut count = 0.0;
    for copy in samples {
        let rates: Vec<f64> = copy.iter().map(|operations| operations / SAMPLE_S).collect();
        let own = rates.iter().sum::<f64>() / rates.len() as f64;
        mean += own;
        squares += rates.iter().map(|rate| (rate - own).powi(2)).sum::<f64>();
        count += rates.len() as f64;
    }
    let operations: f64 = samples.iter().flatten().sum();
    json!({
        "io_bytes": operations * block_bytes, "io_kbytes": operations * block_bytes / 1024.0,
        "total_ios": operations, "iops": operations / seconds, "runtime": seconds * 1e3,
        "bw_bytes": operations * block_bytes / seconds,
        "iops_mean": mean, "iops_stddev": (squares / (count - 1.0)).sqrt(), "iops_samples": count,
    })
}

/// Operations in each half second on a device that takes `slow` or `fast` operations a second, each for a
/// random time of `dwell_s` on average.
fn toggled(seconds: f64, dwell_s: f64, rates: [f64; 2], random: &mut Rng) -> Vec<f64> {
    let mut operations = vec![0.0; (seconds / SAMPLE_S) as usize];
    let mut at_s = 0.0;
    while at_s < seconds {
        let rate = rates[random.below(2) as usize];
        let until_s = (at_s + random.exponential() * dwell_s).min(seconds);
        while at_s < until_s {
            let bin = ((at_s / SAMPLE_S + 1e-9) as usize).min(operations.len() - 1);
            let end_s = until_s.min((bin + 1) as f64 * SAMPLE_S);
            operations[bin] += rate * (end_s - at_s);
            if end_s <= at_s {
                break;
            }
            at_s = end_s;
        }
        at_s = until_s;
    }
    operations
}

/// Of 1,000 runs with an interval, how many hold the device's mean rate, and the usual ratio of an interval's bounds. A run in
/// which the rate never changed has none.
fn intervals(
    seconds: f64,
    dwell_s: f64,
    copies: u32,
    of_copy: impl Fn(f64, &mut Rng) -> f64,
) -> (u32, f64) {
    let mut random = Rng::from_seed(u64::from(copies) + (seconds * 8.0 + dwell_s * 64.0) as u64);
    let mut held = 0;
    let mut ratios = Vec::new();
    while ratios.len() < 1000 {
        let device = toggled(seconds, dwell_s, [400.0, 3200.0], &mut random);
        let samples: Vec<Vec<f64>> = (0..copies)
            .map(|_| {
                let share =
                    |operations: &f64| of_copy(*operations / f64::from(copies), &mut random);
                device.iter().map(share).collect()
            })
            .collect();
        let value = told(&samples, 4096.0);
        let (figure, unknown) = rate(&part(&value), copies);
        let Some(interval) = figure.interval else {
            assert_eq!(unknown, Some(Unknown::NoSpread));
            continue;
        };
        ratios.push(interval.high / interval.low);
        let truth = 1800.0 * 4096.0;
        held += u32::from(interval.low <= truth && truth <= interval.high);
    }
    ratios.sort_by(f64::total_cmp);
    (held, ratios[ratios.len() / 2])
}

#[test]
fn intervals_hold_the_truth_of_a_device_that_toggles_about_once_a_second_and_are_no_wider_than_useful()
 {
    let even = |share: f64, _: &mut Rng| share;
    for (seconds, max_ratio) in [(10.0, 6.5), (20.0, 3.0), (60.0, 1.8)] {
        for dwell_s in [0.1, 0.5, 0.9] {
            for copies in [1, 8] {
                let (held, ratio) = intervals(seconds, dwell_s, copies, even);
                let case = format!("{seconds} s, {dwell_s} s, {copies} copies");
                assert!(held >= 930, "{case}: {held} of 1000");
                assert!(ratio <= max_ratio, "{case}: {ratio}");
            }
        }
    }
}

#[test]
fn copies_with_luck_of_their_own_are_held_as_well() {
    let uneven = |share: f64, random: &mut Rng| share * 2.0 * random.unit();
    let (held, _) = intervals(20.0, 0.5, 8, uneven);
    assert!(held >= 930, "{held} of 1000");
}

#[test]
fn a_group_is_as_sure_as_its_sum_and_not_as_all_its_samples() {
    let one: Vec<f64> = (0..40).map(|i| 100.0 + f64::from(i % 5)).collect();
    let alone = told(std::slice::from_ref(&one), 4096.0);
    let group = told(&vec![one; 8], 4096.0);
    let width = |value: &Value, copies| {
        let (figure, _) = rate(&part(value), copies);
        let interval = figure.interval.expect("an interval");
        (interval.high - interval.low) / figure.value
    };
    let ratio = width(&group, 8) / width(&alone, 1);
    assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
}

#[test]
fn without_a_usable_spread_there_is_no_interval() {
    let base = json!({"io_bytes": 40_960_000, "io_kbytes": 40_000, "total_ios": 10_000,
        "iops": 500.0, "bw_bytes": 2_048_000, "bw": 2000, "runtime": 20_000,
        "iops_mean": 500.0, "iops_stddev": 10.0, "iops_samples": 40,
        "bw_mean": 2000.0, "bw_dev": 60.0, "bw_samples": 40});
    let with = |changes: Value| {
        let mut value = base.clone();
        for (key, change) in changes.as_object().expect("an object") {
            value[key] = change.clone();
        }
        let (figure, unknown) = rate(&part(&value), 1);
        assert_eq!(figure.interval.is_some(), unknown.is_none());
        unknown
    };
    assert_eq!(with(json!({})), None);
    // A log of each operation spoils one of the two only.
    let log = json!({"iops_mean": 1.0, "iops_stddev": 0.0, "iops_samples": 10_000});
    assert_eq!(with(log.clone()), None);
    let mut both = log;
    both["bw_mean"] = json!(2100.0);
    both["bw_samples"] = json!(10_000);
    assert_eq!(with(both), Some(Unknown::PerOperation));
    let level = json!({"iops_stddev": 0.0, "bw_dev": 0.0});
    assert_eq!(with(level), Some(Unknown::NoSpread));
    let short = json!({"runtime": 5000, "iops_samples": 10, "bw_samples": 10});
    assert_eq!(with(short), Some(Unknown::TooShort));
    let other = json!({"iops_mean": 5.0, "bw_mean": 20.0});
    assert_eq!(with(other), Some(Unknown::NoSamples));
}
