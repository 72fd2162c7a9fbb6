//! Simulated devices whose level wanders and whose latencies have tails, measured as shipped and compared with themselves.
//!
//! Shared by the test and by the example that writes `docs/data/latency.tsv`.

use rubus_stats::batches::Batches;
use rubus_stats::compare::{BETWEEN_RUNS, between_runs, ratio};
use rubus_stats::estimate::Estimate;
use rubus_stats::{Histogram, Rng};

/// A device with one operation at a time of about a millisecond.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Device {
    /// Standard deviation of the level, as a logarithm.
    pub drift: f64,
    /// Seconds after which the level has forgotten two thirds of what it was.
    pub correlation_s: f64,
    /// One operation in a hundred takes 20 to 60 times as long, and comes in bursts.
    pub has_tail: bool,
}

/// The devices of the table.
pub fn devices() -> Vec<Device> {
    let mut devices = Vec::new();
    for drift in [0.0, 0.03, 0.1] {
        for has_tail in [false, true] {
            for correlation_s in [0.1, 0.5, 1.0, 2.0, 5.0] {
                // Without drift and bursts there is nothing to be correlated.
                if drift > 0.0 || has_tail || correlation_s == 1.0 {
                    devices.push(Device { drift, correlation_s, has_tail });
                }
            }
        }
    }
    devices
}

/// How long each run lasts, in seconds of the device's time.
pub const RUN_S: f64 = 10.0;
/// A cut of the batches, in seconds.
const CUT_S: f64 = 0.1;

/// Time is counted in steps in which the level stays: 10 ms.
const STEP_S: f64 = 0.01;

/// A wandering level with mean 0 and deviation 1.
struct Wander {
    now: f64,
    keep: f64,
}

impl Wander {
    fn new(correlation_s: f64, rng: &mut Rng) -> Self {
        Wander { now: rng.normal(), keep: (-STEP_S / correlation_s).exp() }
    }

    fn step(&mut self, rng: &mut Rng) -> f64 {
        self.now = self.keep * self.now + (1.0 - self.keep * self.keep).sqrt() * rng.normal();
        self.now
    }
}

/// One run of a device: the batches of its latencies.
pub fn run(device: Device, seconds: f64, rng: &mut Rng) -> Batches {
    let (mut histogram, mut batches) = (Histogram::new(), Batches::new());
    let mut level = Wander::new(device.correlation_s, rng);
    let mut busy = Wander::new(device.correlation_s, rng);
    let (mut now_s, mut next_step, mut next_cut) = (0.0, STEP_S, CUT_S);
    let mut factor = (device.drift * level.now).exp();
    let mut chance = tail_chance(device, busy.now);
    while now_s < seconds {
        let mut latency_s = 1e-3 * factor * (0.15 * rng.normal()).exp();
        if chance > 0.0 && rng.unit() < chance {
            latency_s *= 20.0 + 40.0 * rng.unit();
        }
        now_s += latency_s;
        histogram.record((latency_s * 1e9) as u64);
        while next_step <= now_s {
            next_step += STEP_S;
            factor = (device.drift * level.step(rng)).exp();
            chance = tail_chance(device, busy.step(rng));
        }
        while next_cut <= now_s {
            next_cut += CUT_S;
            batches.cut(&histogram);
        }
    }
    batches
}

/// 1.5 % on average, in bursts: lognormal with a deviation of a half.
fn tail_chance(device: Device, busy: f64) -> f64 {
    if device.has_tail { 0.015 * (0.5 * busy - 0.125).exp() } else { 0.0 }
}

/// What came out for one quantile of a device.
#[derive(Clone, Copy, Debug, Default)]
pub struct Judged {
    /// Share of the intervals that hold the quantile that all runs together show.
    pub coverage: f64,
    /// Median half width of the intervals.
    pub median_half_width: f64,
    /// Share of pairs of runs whose ratio leaves 1 out, by the intervals of the runs alone.
    pub wrong_alone: f64,
    /// The same with the allowance between runs, which is what a comparison says.
    pub wrong: f64,
    /// Share of the runs whose interval has both ends.
    pub judged: f64,
}

/// Measures a device `2 * pairs` times and compares the runs in pairs: p50 and p99.
pub fn judge(device: Device, pairs: usize, seed: u64) -> [Judged; 2] {
    let runs: Vec<Batches> = (0..2 * pairs)
        .map(|number| run(device, RUN_S, &mut Rng::stream(seed, number as u64)))
        .collect();
    let mut all = Batches::new();
    runs.iter().for_each(|run| all.merge(run));
    [0.5, 0.99].map(|share| {
        let truth = all.quantile(share).expect("a long run has a quantile").value;
        let found: Vec<Option<Estimate>> = runs.iter().map(|run| run.quantile(share)).collect();
        let given: Vec<Estimate> = found.iter().copied().flatten().collect();
        let held = given.iter().filter(|e| e.low <= truth && truth <= e.high);
        let bounded = given.iter().filter(|e| e.high.is_finite()).count();
        let mut widths: Vec<f64> = given.iter().map(Estimate::relative_half_width).collect();
        widths.sort_by(f64::total_cmp);
        let ratios: Vec<Estimate> =
            found.chunks_exact(2).filter_map(|pair| ratio(pair[0]?, pair[1]?)).collect();
        let leaves_out = |ratio: &Estimate| ratio.low > 1.0 || ratio.high < 1.0;
        let wrong_alone = ratios.iter().filter(|ratio| leaves_out(ratio)).count();
        let wrong =
            ratios.iter().filter(|ratio| leaves_out(&between_runs(**ratio, BETWEEN_RUNS))).count();
        Judged {
            coverage: held.count() as f64 / given.len().max(1) as f64,
            median_half_width: widths.get(widths.len() / 2).copied().unwrap_or(f64::NAN),
            wrong_alone: wrong_alone as f64 / pairs as f64,
            wrong: wrong as f64 / pairs as f64,
            judged: bounded as f64 / (2 * pairs) as f64,
        }
    })
}

/// The first cells of a device's row.
pub fn name(device: Device) -> String {
    format!(
        "{:.0} %\t{} s\t{}",
        100.0 * device.drift,
        device.correlation_s,
        if device.has_tail { "1.5 %, bursts" } else { "none" }
    )
}
