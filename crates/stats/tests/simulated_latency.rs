//! Two runs of the same simulated device are hardly ever called different, and the intervals of latencies hold the truth.
//! `docs/data/latency.tsv` shows the same with more pairs.

mod simulate_latency;

use simulate_latency::{Device, Judged, devices, judge, name};

const PAIRS: usize = 60;

/// The shares of the document's row: p50 holds, p50 wrong words, p99 holds, p99 wrong words.
fn documented(device: Device) -> [f64; 4] {
    let text = include_str!("../../../docs/data/latency.tsv");
    let row = text.lines().find(|line| line.starts_with(&name(device)));
    let row = row.unwrap_or_else(|| panic!("no row for {device:?}"));
    let cells: Vec<&str> = row.split('\t').collect();
    [3, 6, 7, 10].map(|cell| {
        let number = cells[cell].trim_end_matches(" %");
        number.parse::<f64>().expect("a number in the table") / 100.0
    })
}

#[test]
fn equal_devices_are_not_called_different_and_intervals_hold_the_truth() {
    let found: Vec<(Device, [Judged; 2])> = std::thread::scope(|scope| {
        let simulations: Vec<_> = devices()
            .into_iter()
            .map(|device| (device, scope.spawn(move || judge(device, PAIRS, 2))))
            .collect();
        let done = simulations.into_iter();
        done.map(|(device, simulation)| (device, simulation.join().expect("it ends"))).collect()
    });
    for (device, judged) in found {
        let least = match device.correlation_s {
            c if c <= 2.0 => 0.93,
            // Half as long as the run: a limit that the document names.
            _ => 0.85,
        };
        let told = documented(device);
        for (one, told) in judged.iter().zip(told.chunks(2)) {
            // 60 pairs: 5 % are three.
            assert!(one.wrong <= 0.05 + 1e-9, "{device:?}: {one:?}");
            assert!(one.wrong <= one.wrong_alone, "{device:?}: {one:?}");
            assert!(told[1] <= 0.05, "{device:?}: {told:?}");
            // Twice the error of the smaller sample.
            assert!(
                one.coverage >= least - 0.04 && told[0] >= least,
                "{device:?}: {one:?} {told:?}"
            );
            assert!((one.coverage - told[0]).abs() < 0.08, "{device:?}: {one:?} {told:?}");
        }
        // Wide intervals would be an easy way to hold the truth.
        if device.drift == 0.0 && !device.has_tail {
            assert!(judged[1].judged > 0.8, "{device:?}: {judged:?}");
        }
        if device.drift == 0.0 {
            assert!(judged[0].median_half_width <= 0.015, "{device:?}: {judged:?}");
        }
    }
}
