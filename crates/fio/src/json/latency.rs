//! Latencies in fio's words: the list of percentiles, and the shares of operations by decades.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Operations by the upper end of their bin in nanoseconds.
pub(super) type Bins = BTreeMap<u64, u64>;

/// The percentiles that fio prints if it is not told otherwise.
pub(super) const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// All bins together.
pub(super) fn merged(all: [&Bins; 2]) -> Bins {
    let mut bins = Bins::new();
    for (&up_to_ns, &operations) in all.into_iter().flatten() {
        *bins.entry(up_to_ns).or_default() += operations;
    }
    bins
}

/// fio's name of a percentile.
pub(super) fn name(percentile: f64) -> String {
    format!("{percentile:.6}")
}

/// The percentiles as far as the bins tell, between `min_ns` and `max_ns`; `exact_ns` are known
/// better.
pub(super) fn percentiles(
    bins: &Bins,
    min_ns: u64,
    max_ns: u64,
    exact_ns: &[(f64, u64)],
) -> Map<String, Value> {
    let all: u64 = bins.values().sum();
    let mut list = Map::new();
    let mut floor_ns = min_ns;
    for percentile in PERCENTILES {
        let exact = exact_ns.iter().find(|(of, _)| *of == percentile);
        let binned = || {
            let rank = (percentile / 100.0 * all as f64).ceil().max(1.0) as u64;
            let mut seen = 0;
            let mut bins = bins.iter();
            let bin = bins.find(|(_, operations)| {
                seen += **operations;
                seen >= rank
            });
            bin.map(|(&up_to_ns, _)| up_to_ns)
        };
        let Some(value_ns) = exact.map(|&(_, ns)| ns).or_else(binned) else {
            continue;
        };
        // A bin is known by its upper end, which may lie above what came behind it.
        floor_ns = value_ns.max(floor_ns).min(max_ns.max(floor_ns));
        list.insert(name(percentile), json!(floor_ns));
    }
    list
}

/// Shares of the operations in percent by their latency in units of `unit_ns`: up to 2, 4, 10, …,
/// 1000 units, and with `is_last` up to 2000 and beyond.
pub(super) fn buckets(bins: &Bins, unit_ns: u64, is_last: bool) -> Value {
    let all: u64 = bins.values().sum();
    let share = |from_ns: u64, to_ns: u64| {
        let inside = bins.iter().filter(|(ns, _)| (from_ns..to_ns).contains(*ns));
        let operations: u64 = inside.map(|(_, operations)| operations).sum();
        operations as f64 * 100.0 / all.max(1) as f64
    };
    let mut list = Map::new();
    // Below two units lies what the smaller unit counts up to its 1000.
    let mut from_ns = if unit_ns == 1 { 0 } else { unit_ns };
    let mut bounds = vec![2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
    if is_last {
        bounds.push(2000);
    }
    for bound in bounds {
        let to_ns = bound * unit_ns;
        list.insert(bound.to_string(), json!(share(from_ns, to_ns)));
        from_ns = to_ns;
    }
    if is_last {
        list.insert(">=2000".into(), json!(share(from_ns, u64::MAX)));
    }
    Value::Object(list)
}
