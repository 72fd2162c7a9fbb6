//! The intervals that the stopping rule reports hold the truth: on simulated devices whose true
//! rate is known, with both presets, counting every interval that is reported, the inconclusive
//! ones included. `docs/data/coverage.tsv` shows the same numbers with more trials.

mod simulate;

use simulate::{DEVICES, Device, NORMAL, QUICK, Summary, Truth, summarise};

const TRIALS: usize = 1000;

/// The numbers of a device's row for a preset, 0 or 1: share that holds the truth, mean
/// seconds, median half width.
fn documented(name: &str, table: usize) -> [f64; 3] {
    let text = include_str!("../../../docs/data/coverage.tsv");
    let start = format!("{}\t{name}\t", simulate::PRESETS[table].0);
    let row = text.lines().find(|line| line.starts_with(&start));
    let row = row.unwrap_or_else(|| panic!("no row begins with {start:?}"));
    let cells: Vec<&str> = row.split('\t').collect();
    [(2, 0.01), (5, 1.0), (6, 0.01)].map(|(cell, unit)| {
        let number = cells[cell].trim_matches(|c: char| !c.is_ascii_digit());
        unit * number.parse::<f64>().expect("a number in the table")
    })
}

/// Measures a device with both presets and demands the coverage, and that the document says the
/// same.
fn measured(name: &str) -> (Summary, Summary) {
    let device = DEVICES.iter().find(|d| d.name == name).expect("a known device");
    let both = [QUICK, NORMAL].map(|spec| summarise(device.process, spec, TRIALS, 1));
    for (table, summary) in both.iter().enumerate() {
        assert!(summary.coverage >= 0.93, "{name}: {summary:?}");
        let [coverage, mean_s, half_width] = documented(name, table);
        assert!((coverage - summary.coverage).abs() < 0.02, "{name}: {summary:?}");
        assert!((mean_s / summary.mean_s - 1.0).abs() < 0.1, "{name}: {summary:?}");
        assert!((half_width / summary.median_half_width - 1.0).abs() < 0.15, "{name}: {summary:?}");
        let outcomes: f64 = summary.outcomes.iter().sum();
        assert!((outcomes - 1.0).abs() < 1e-9);
    }
    let [quick, normal] = both;
    (quick, normal)
}

#[test]
fn every_device_of_the_table_is_demanded_here_or_named_as_a_limit() {
    let this = include_str!("simulated_coverage.rs");
    for Device { name, truth, .. } in DEVICES {
        let demanded = this.contains(&format!("measured(\"{name}\")"));
        assert_eq!(demanded, *truth == Truth::Held, "{name}");
    }
}

#[test]
fn quiet() {
    let (quick, normal) = measured("quiet, CV 4 %");
    // Wide intervals would be an easy way to hold the truth, and long runs to narrow ones.
    assert!(quick.mean_s <= 5.0 && quick.median_half_width <= 0.10, "{quick:?}");
    assert!(normal.mean_s <= 15.0 && normal.median_half_width <= 0.05, "{normal:?}");
    assert!(quick.outcomes[0] >= 0.99 && normal.outcomes[0] >= 0.99);
    assert!(quick.drift <= 0.02 && normal.drift <= 0.02);
}

#[test]
fn independent() {
    let (quick, normal) = measured("independent, CV 20 %");
    assert!(quick.median_half_width <= 0.12 && normal.median_half_width <= 0.05);
    assert!(normal.mean_s <= 30.0, "{normal:?}");
}

#[test]
fn drifting() {
    let (quick, _) = measured("drifting, +0.5 % per second");
    assert!(quick.median_half_width <= 0.10, "{quick:?}");
}

#[test]
fn autocorrelated() {
    let (quick, normal) = measured("AR(1) 0.5, CV 20 %");
    assert!(quick.median_half_width <= 0.15 && normal.median_half_width <= 0.05);
    let (quick, normal) = measured("AR(1) 0.9, CV 20 %");
    assert!(quick.median_half_width <= 0.40 && normal.median_half_width <= 0.08);
}

#[test]
fn stalling() {
    let (quick, normal) = measured("stalls of 0.33 s in 3 % of bins");
    assert!(quick.median_half_width <= 0.20 && normal.median_half_width <= 0.05);
    let (quick, normal) = measured("the same, exponential lengths");
    assert!(quick.median_half_width <= 0.20 && normal.median_half_width <= 0.08);
    let (quick, normal) = measured("stalls of 0.1 s in 20 % of bins");
    assert!(quick.median_half_width <= 0.25 && normal.median_half_width <= 0.06);
}

#[test]
fn shared() {
    let (quick, normal) = measured("shared disk, AR 0.7, CV 60 %");
    assert!(quick.median_half_width <= 0.40 && normal.median_half_width <= 0.12);
}

#[test]
fn settling() {
    // The first second does not count: there is no trace of it in the result.
    let (quick, normal) = measured("first second twice as fast");
    assert!((quick.bias - 1.0).abs() < 0.005 && (normal.bias - 1.0).abs() < 0.005);
}

#[test]
fn slow() {
    let (quick, normal) = measured("2 IOPS, regular");
    assert!(quick.median_half_width <= 0.7 && normal.median_half_width <= 0.05);
    let (quick, normal) = measured("2 IOPS, random");
    assert!(quick.median_half_width <= 0.9 && normal.median_half_width <= 0.2);
    let (quick, normal) = measured("5 IOPS, regular");
    assert!(quick.median_half_width <= 0.2 && normal.median_half_width <= 0.05);
    let (quick, normal) = measured("20 IOPS, regular");
    assert!(quick.median_half_width <= 0.10 && normal.median_half_width <= 0.05);
    let (quick, normal) = measured("20 IOPS, random");
    assert!(quick.median_half_width <= 0.30 && normal.median_half_width <= 0.06);
}

#[test]
fn the_naive_rule_would_fail() {
    // What the rule is for: stop at the first narrow t interval, and the truth is mostly missed.
    let device = DEVICES.iter().find(|d| d.name == "stalls of 0.33 s in 3 % of bins");
    let process = device.expect("a known device").process;
    let held = (0..TRIALS as u64).filter(|&seed| simulate::naive(process, 0.05, seed));
    let coverage = held.count() as f64 / TRIALS as f64;
    assert!(coverage < 0.6, "{coverage}");
}
