//! One direction of a job: what fio prints under `read` and `write`.

use rubus_stats::estimate::Estimate;
use rubus_vocabulary::result::JobResult;
use serde_json::{Value, json};

use super::latency::{self, Bins};

/// fio averages bandwidth and IOPS over samples of this many seconds, and prints least, most and
/// mean of them.
const SAMPLE_S: f64 = 0.5;

/// The results of one direction, added up.
#[derive(Default)]
pub(super) struct Side {
    operations: u64,
    bytes: u64,
    bytes_per_second: f64,
    iops: f64,
    runtime_s: f64,
    /// Bytes in each half second.
    samples: Vec<f64>,
    /// Standard errors of throughput and of IOPS, for results without a series.
    errors: (f64, f64),
    pub(super) bins: Bins,
    min_ns: u64,
    max_ns: u64,
    mean_ns: f64,
    /// Sum of the squared distances from the mean.
    squares: f64,
    /// Percentiles that are known better than from the bins.
    exact_ns: Vec<(f64, u64)>,
}

impl Side {
    /// All results of one direction.
    pub(super) fn of<'a>(results: impl Iterator<Item = &'a JobResult>) -> Side {
        let mut side = Side::default();
        for (index, result) in results.enumerate() {
            side.add_latency(result);
            side.exact_ns = match index {
                0 => exact_percentiles(result),
                _ => Vec::new(),
            };
            side.operations += result.operations;
            side.bytes += result.moved_bytes();
            side.bytes_per_second += result.bytes_per_second.value;
            side.iops += result.iops.value;
            side.runtime_s = side.runtime_s.max(result.elapsed_s);
            side.errors.0 += deviation(&result.bytes_per_second);
            side.errors.1 += deviation(&result.iops);
            side.add_samples(result);
        }
        side
    }

    fn add_samples(&mut self, result: &JobResult) {
        let Some(series) = &result.series else { return };
        let bins = (SAMPLE_S / series.bin_s).round().max(1.0) as usize;
        for (index, bins) in series.bytes.chunks_exact(bins).enumerate() {
            if self.samples.len() <= index {
                self.samples.push(0.0);
            }
            self.samples[index] += bins.iter().sum::<u64>() as f64;
        }
    }

    fn add_latency(&mut self, result: &JobResult) {
        let measured = &result.latency_ns;
        if let Some(bins) = &result.latency_bins {
            for (&up_to_ns, &operations) in bins.up_to_ns.iter().zip(&bins.operations) {
                *self.bins.entry(up_to_ns).or_default() += operations;
            }
        }
        let min_ns = measured.min.unwrap_or(0);
        self.min_ns = match self.operations {
            0 => min_ns,
            _ => self.min_ns.min(min_ns),
        };
        self.max_ns = self.max_ns.max(measured.max.unwrap_or(0));
        // Little's law: the mean time in the system is the number in it over the throughput.
        let by_law = match result.iops.value {
            rate if rate > 0.0 => f64::from(result.queue_depth) * 1e9 / rate,
            _ => 0.0,
        };
        let mean_ns = measured.mean.unwrap_or(by_law);
        let (before, added) = (self.operations as f64, result.operations as f64);
        let all = (before + added).max(1.0);
        let apart = mean_ns - self.mean_ns;
        self.mean_ns += apart * added / all;
        self.squares += measured.stddev.unwrap_or(0.0).powi(2) * added;
        self.squares += apart.powi(2) * before * added / all;
    }

    /// As fio prints it.
    pub(super) fn rendered(&self) -> Value {
        let bandwidth = self.bytes_per_second;
        let bytes_per_operation = self.bytes as f64 / self.operations.max(1) as f64;
        let bw = Spread::of(self.samples.iter().map(|bytes| bytes / SAMPLE_S / 1024.0));
        let bw = bw.unwrap_or(Spread::without_series(bandwidth / 1024.0, self.errors.0 / 1024.0));
        let iops = self.samples.iter();
        let iops = iops.map(|bytes| bytes / SAMPLE_S / bytes_per_operation.max(1.0));
        let iops = Spread::of(iops).unwrap_or(Spread::without_series(self.iops, self.errors.1));
        json!({
            "io_bytes": self.bytes,
            "io_kbytes": self.bytes / 1024,
            "bw_bytes": bandwidth.round() as u64,
            "bw": (bandwidth / 1024.0).round() as u64,
            "iops": self.iops,
            "runtime": (self.runtime_s * 1000.0).round() as u64,
            "total_ios": self.operations,
            "short_ios": 0,
            "drop_ios": 0,
            "slat_ns": nothing(),
            "clat_ns": self.latency(true),
            "lat_ns": self.latency(false),
            "bw_min": bw.least.round() as u64,
            "bw_max": bw.most.round() as u64,
            "bw_agg": if self.operations > 0 { 100.0 } else { 0.0 },
            "bw_mean": bw.mean,
            "bw_dev": bw.deviation,
            "bw_samples": bw.samples,
            "iops_min": iops.least.round() as u64,
            "iops_max": iops.most.round() as u64,
            "iops_mean": iops.mean,
            "iops_stddev": iops.deviation,
            "iops_samples": iops.samples,
        })
    }

    fn latency(&self, with_percentiles: bool) -> Value {
        let mut object = json!({
            "min": self.min_ns,
            "max": self.max_ns,
            "mean": self.mean_ns,
            "stddev": (self.squares / self.operations.max(1) as f64).sqrt(),
            "N": self.operations,
        });
        if with_percentiles && self.operations > 0 {
            let max_ns = match self.max_ns {
                0 => u64::MAX,
                max_ns => max_ns,
            };
            let list = latency::percentiles(&self.bins, self.min_ns, max_ns, &self.exact_ns);
            object["percentile"] = Value::Object(list);
        }
        object
    }
}

/// What fio prints of a sampled rate.
struct Spread {
    least: f64,
    most: f64,
    mean: f64,
    deviation: f64,
    samples: usize,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Option<Spread> {
        let values: Vec<f64> = values.collect();
        let samples = values.len();
        let mean = values.iter().sum::<f64>() / samples as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        (samples > 0).then(|| Spread {
            least: values.iter().copied().fold(f64::INFINITY, f64::min),
            most: values.iter().copied().fold(0.0, f64::max),
            mean,
            deviation: (squares / (samples.max(2) - 1) as f64).sqrt(),
            samples,
        })
    }

    /// The rate itself with its standard error, where nothing says how it went over time.
    fn without_series(mean: f64, deviation: f64) -> Spread {
        Spread { least: mean, most: mean, mean, deviation, samples: 0 }
    }
}

fn exact_percentiles(result: &JobResult) -> Vec<(f64, u64)> {
    let measured = &result.latency_ns;
    let known =
        [(50.0, measured.p50), (90.0, measured.p90), (99.0, measured.p99), (99.9, measured.p99_9)];
    known.into_iter().filter_map(|(of, ns)| Some((of, ns?))).collect()
}

/// The standard error that belongs to a 95 % interval, the nearest thing to fio's deviation.
fn deviation(estimate: &Estimate) -> f64 {
    let half_width = (estimate.high - estimate.low) / 2.0;
    if half_width.is_finite() { half_width / 1.96 } else { 0.0 }
}

fn nothing() -> Value {
    json!({ "min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0 })
}
