//! What holds for every series and every value, tried on many.

use proptest::collection::vec;
use proptest::prelude::*;
use rubus_stats::stop::StopSpec;
use rubus_stats::{Bin, Binner, Decision, Histogram, Rng, StopRule};
use rubus_stats::{bootstrap, compare, drift, interval, quantile, stalls};

/// Values of every size, as latencies have.
fn any_size() -> impl Strategy<Value = u64> {
    (0u32..64, any::<u64>()).prop_map(|(bits, value)| value >> bits)
}

/// Bins as strange as they can be.
fn any_bin() -> impl Strategy<Value = Bin> {
    let plain = (0u64..5000, 0u64..200_000_000);
    prop_oneof![
        4 => plain.prop_map(|(ops, gap)| Bin { ops, bytes: ops * 4096, longest_gap_ns: gap }),
        2 => Just(Bin::default()),
        1 => (any_size(), any_size(), any_size())
            .prop_map(|(ops, bytes, longest_gap_ns)| Bin { ops, bytes, longest_gap_ns }),
    ]
}

fn any_spec() -> impl Strategy<Value = StopSpec> {
    (0.0f64..2.0, 0.0f64..10.0, 0.0f64..20.0, any_size(), any_size()).prop_map(
        |(relative_half_width, min_seconds, max_seconds, min_bytes, max_bytes)| StopSpec {
            relative_half_width,
            min_seconds,
            max_seconds,
            min_bytes,
            max_bytes,
        },
    )
}

proptest! {
    #[test]
    fn percentiles_agree_with_the_sorted_values(
        mut values in vec(any_size(), 1..500),
        q in 0.0f64..=1.0,
    ) {
        let mut histogram = Histogram::new();
        values.iter().for_each(|&v| histogram.record(v));
        values.sort_unstable();
        let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
        let exact = values[rank - 1];
        let got = histogram.percentile_ns(q).unwrap();
        let error = got.abs_diff(exact) as f64;
        prop_assert!(error <= exact as f64 / 128.0 + 0.5, "{got} for {exact}");
        prop_assert_eq!(histogram.count(), values.len() as u64);
        prop_assert_eq!(histogram.min_ns(), values.first().copied());
        prop_assert_eq!(histogram.max_ns(), values.last().copied());
    }

    #[test]
    fn merging_is_recording_both(
        a in vec(any_size(), 0..100),
        b in vec(any_size(), 0..100),
    ) {
        let record = |values: &[u64]| {
            let mut histogram = Histogram::new();
            values.iter().for_each(|&v| histogram.record(v));
            histogram
        };
        let mut merged = record(&a);
        merged.merge(&record(&b));
        prop_assert_eq!(merged, record(&[a, b].concat()));
    }

    #[test]
    fn bins_hold_everything_and_in_order(
        steps in vec((0u64..400, 1u64..5), 0..200),
        bin_ns in 1u64..150,
    ) {
        let mut binner = Binner::with_bin_ns(0, bin_ns);
        let (mut bins, mut now_ns, mut total) = (Vec::new(), 0, 0);
        for (step_ns, ops) in steps {
            now_ns += step_ns;
            total += ops;
            binner.add(now_ns, ops, ops * 10, |bin| bins.push(bin));
            prop_assert_eq!(bins.len() as u64, now_ns / bin_ns);
        }
        binner.advance(now_ns + bin_ns, |bin| bins.push(bin));
        prop_assert_eq!(bins.iter().map(|bin| bin.ops).sum::<u64>(), total);
        prop_assert_eq!(bins.iter().map(|bin| bin.bytes).sum::<u64>(), total * 10);
        for bin in &bins {
            prop_assert!(bin.ops > 0 || bin.longest_gap_ns == 0);
        }
    }

    #[test]
    fn intervals_scale_with_the_unit(
        counts in vec(0u32..3000, 2..300),
        factor in 1u32..100_000,
    ) {
        let counts: Vec<f64> = counts.into_iter().map(f64::from).collect();
        let factor = f64::from(factor);
        let scaled: Vec<f64> = counts.iter().map(|x| x * factor).collect();
        let (a, b) = (interval::mean_interval(&counts), interval::mean_interval(&scaled));
        let same = |x: f64, y: f64| (x * factor - y).abs() <= 1e-6 * y.abs() + 1e-9;
        prop_assert!(same(a.mean, b.mean) && same(a.below, b.below) && same(a.above, b.above));
        let (a, b) = (interval::rate(&counts, 0.1, 1.0), interval::rate(&scaled, 0.1, factor));
        prop_assert!(same(a.value, b.value) && same(a.low, b.low) && same(a.high, b.high));
    }

    #[test]
    fn a_longer_series_of_the_same_is_known_better(counts in vec(1u32..3000, 20..60)) {
        let counts: Vec<f64> = counts.into_iter().map(f64::from).collect();
        let longer = counts.repeat(20);
        let (short, long) = (interval::rate(&counts, 0.1, 1.0), interval::rate(&longer, 0.1, 1.0));
        prop_assert!((short.value - long.value).abs() < 1e-6 * short.value);
        prop_assert!(long.high - long.low <= short.high - short.low);
    }

    #[test]
    fn the_rule_takes_everything_and_ends(
        spec in any_spec(),
        bin_s in 0.001f64..1.0,
        bins in vec(any_bin(), 1..120),
    ) {
        let mut rule = StopRule::new(spec, bin_s);
        let (mut elapsed_s, mut decided) = (0.0, Decision::Continue);
        for bin in bins {
            let decision = rule.push(bin);
            prop_assert!(rule.elapsed_s() > elapsed_s);
            elapsed_s = rule.elapsed_s();
            prop_assert!(rule.measured_s() <= elapsed_s);
            prop_assert!(decided == Decision::Continue || decision == decided);
            decided = decision;
            prop_assert!(decision != Decision::Continue || elapsed_s < spec.max_seconds);
            prop_assert!(rule.expected_left_s() >= 0.0);
        }
        let measured = rule.finish();
        for estimate in [measured.iops, measured.bytes_per_second, rule.iops()] {
            prop_assert!(0.0 <= estimate.low && estimate.low <= estimate.value);
            prop_assert!(estimate.value <= estimate.high && estimate.value.is_finite());
        }
        for stall in &measured.stalls {
            prop_assert!(stall.length_ns >= stalls::MIN_NS);
            prop_assert!(stall.end_ns() as f64 / 1e9 <= elapsed_s + 1e-6);
        }
        for pair in measured.stalls.windows(2) {
            prop_assert!(pair[0].end_ns() < pair[1].start_ns);
        }
    }

    #[test]
    fn no_series_makes_the_helpers_panic(
        series in vec(prop_oneof![0.0f64..1e12, Just(0.0)], 0..120),
        seed: u64,
    ) {
        let mut rng = Rng::from_seed(seed);
        if let Some(ratio) = drift::drift(&series) {
            prop_assert!(ratio.low <= ratio.value && ratio.value <= ratio.high);
        }
        if let Some(change) = drift::change_point(&series) {
            prop_assert!(change.at > 0 && change.at < series.len());
        }
        prop_assert!(interval::correlation_time(&series) >= 1.0);
        let _ = bootstrap::percentile_interval(&series, 0.9, 20, &mut rng);
        let _ = compare::ratio_of_series(&series, &series, 20, &mut rng);
    }

    #[test]
    fn stalls_are_disjoint_and_ordered(
        candidates in vec((0u64..10_000_000_000, 0u64..1_000_000_000), 0..100),
        threshold_ns in 50_000_000u64..500_000_000,
    ) {
        let candidates: Vec<stalls::Episode> = candidates
            .into_iter()
            .map(|(start_ns, length_ns)| stalls::Episode { start_ns, length_ns })
            .collect();
        // In a window of this length, no episodes are a pace.
        let found = stalls::find(&candidates, threshold_ns, u64::MAX);
        for pair in found.windows(2) {
            prop_assert!(pair[0].end_ns() < pair[1].start_ns);
        }
        for candidate in candidates.iter().filter(|c| c.length_ns >= threshold_ns) {
            prop_assert!(found.iter().any(|stall| stall.start_ns <= candidate.start_ns
                && candidate.end_ns() <= stall.end_ns()));
        }
        prop_assert!(found.iter().all(|stall| stall.length_ns >= threshold_ns));
    }

    #[test]
    fn bounded_numbers_are_bounded(seed: u64, bound in any_size()) {
        let mut rng = Rng::from_seed(seed);
        for _ in 0..20 {
            prop_assert!(rng.below(bound) < bound.max(1));
            let unit = rng.unit();
            prop_assert!((0.0..1.0).contains(&unit));
        }
    }

    #[test]
    fn quantiles_rise(freedom in 0.5f64..2000.0, p in 0.01f64..0.98, step in 0.001f64..0.019) {
        prop_assert!(quantile::student_t(p, freedom) < quantile::student_t(p + step, freedom));
        prop_assert!(quantile::gamma(p, freedom) < quantile::gamma(p + step, freedom));
    }
}
