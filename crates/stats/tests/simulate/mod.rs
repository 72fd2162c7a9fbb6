//! Simulated devices whose true rate is known, measured by the stopping rule as shipped.
//!
//! Shared by the coverage test and by the example that writes `docs/data/coverage.tsv`.

use rubus_stats::estimate::Estimate;
use rubus_stats::stop::{Caveat, Outcome, StopSpec};
use rubus_stats::{Bin, Binner, Decision, Rng, StopRule, interval, quantile};

/// Length of a bin in seconds.
pub const BIN_S: f64 = 0.1;
/// Bytes of an operation.
const BLOCK_BYTES: u64 = 4096;
/// Operations in a bin of the devices that are not slow: 10 000 per second.
const OPS_PER_BIN: f64 = 1000.0;

/// How long to measure: the two presets of the suites.
pub const QUICK: StopSpec = StopSpec {
    relative_half_width: 0.10,
    min_seconds: 3.0,
    max_seconds: 8.0,
    min_bytes: 0,
    max_bytes: u64::MAX,
};
/// See [`QUICK`].
pub const NORMAL: StopSpec = StopSpec {
    relative_half_width: 0.05,
    min_seconds: 10.0,
    max_seconds: 120.0,
    min_bytes: 0,
    max_bytes: u64::MAX,
};

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Process {
    /// Independent bins with this coefficient of variation.
    Independent { cv: f64 },
    /// A trend of this share per second, with noise of 4 %.
    Drifting { per_second: f64 },
    /// An autoregressive process of first order.
    Autoregressive { correlation: f64, cv: f64 },
    /// The same on a logarithmic scale: a disk shared with others.
    Shared { correlation: f64, cv: f64 },
    /// Stops now and then: on average once in `every_s` seconds of work for `length_s` seconds,
    /// uniform between half and one and a half of it, or exponential. Noise of 4 %.
    Stalling { every_s: f64, length_s: f64, exponential: bool },
    /// One operation after another, `iops` per second; the service times have this coefficient of
    /// variation (1 is exponential).
    Slow { iops: f64, cv: f64 },
    /// Starts with this factor for a second, then settles; noise of 4 %.
    Settling { factor: f64 },
}

/// A device being simulated.
struct Simulation {
    process: Process,
    rng: Rng,
    /// State of the autoregression.
    level: f64,
    /// Time in nanoseconds.
    now_ns: f64,
    /// When the next stall begins or the present one ends, in seconds.
    change_s: f64,
    stall_from_s: Option<f64>,
    binner: Binner,
    ready: std::collections::VecDeque<Bin>,
    bins: usize,
}

impl Simulation {
    fn new(process: Process, seed: u64) -> Self {
        let mut rng = Rng::from_seed(seed);
        let level = rng.normal();
        let change_s = match process {
            Process::Stalling { every_s, .. } => rng.exponential() * every_s,
            _ => f64::INFINITY,
        };
        Simulation {
            process,
            rng,
            level,
            now_ns: 0.0,
            change_s,
            stall_from_s: None,
            binner: Binner::new(0),
            ready: std::collections::VecDeque::new(),
            bins: 0,
        }
    }

    /// The next bin and its expected number of operations.
    fn next_bin(&mut self) -> (Bin, f64) {
        let start_s = self.bins as f64 * BIN_S;
        self.bins += 1;
        let noise = 1.0 + 0.04 * self.rng.normal();
        match self.process {
            Process::Independent { cv } => {
                let z = self.rng.normal();
                (steady(OPS_PER_BIN * (1.0 + cv * z)), OPS_PER_BIN)
            }
            Process::Drifting { per_second } => {
                let truth = OPS_PER_BIN * (1.0 + per_second * (start_s + BIN_S / 2.0));
                (steady(truth * noise), truth)
            }
            Process::Autoregressive { correlation, cv } => {
                let z = self.autoregress(correlation);
                (steady(OPS_PER_BIN * (1.0 + cv * z)), OPS_PER_BIN)
            }
            Process::Shared { correlation, cv } => {
                let sigma = (1.0 + cv * cv).ln().sqrt();
                let z = self.autoregress(correlation);
                let factor = (sigma * z - sigma * sigma / 2.0).exp();
                (steady(OPS_PER_BIN * factor), OPS_PER_BIN)
            }
            Process::Stalling { every_s, length_s, .. } => {
                let (running_s, gap_s) = self.run_with_stalls(start_s);
                let mut bin = steady(OPS_PER_BIN * noise * running_s / BIN_S);
                bin.longest_gap_ns = bin.longest_gap_ns.max((gap_s * 1e9) as u64);
                (bin, OPS_PER_BIN * every_s / (every_s + length_s))
            }
            Process::Slow { iops, cv } => (self.slow_bin(iops, cv), iops * BIN_S),
            Process::Settling { factor } => {
                let factor = if start_s < 1.0 { factor } else { 1.0 };
                (steady(OPS_PER_BIN * factor * noise), OPS_PER_BIN)
            }
        }
    }

    fn autoregress(&mut self, correlation: f64) -> f64 {
        let fresh = (1.0 - correlation * correlation).sqrt() * self.rng.normal();
        self.level = correlation * self.level + fresh;
        self.level
    }

    /// Seconds of work in the bin that starts at `start_s`, and the length of the stall that ended
    /// in it.
    fn run_with_stalls(&mut self, start_s: f64) -> (f64, f64) {
        let Process::Stalling { every_s, length_s, exponential } = self.process else {
            unreachable!("only for stalling devices");
        };
        let end_s = start_s + BIN_S;
        let (mut at_s, mut running_s, mut gap_s) = (start_s, 0.0, 0.0);
        while at_s < end_s {
            let until_s = self.change_s.min(end_s);
            if self.stall_from_s.is_none() {
                running_s += until_s - at_s;
            }
            at_s = until_s;
            if self.change_s > end_s {
                break;
            }
            match self.stall_from_s.take() {
                Some(from_s) => {
                    gap_s = f64::max(gap_s, at_s - from_s);
                    self.change_s = at_s + self.rng.exponential() * every_s;
                }
                None => {
                    let spread =
                        if exponential { self.rng.exponential() } else { 0.5 + self.rng.unit() };
                    self.stall_from_s = Some(at_s);
                    self.change_s = at_s + length_s * spread;
                }
            }
        }
        (running_s, gap_s)
    }

    fn slow_bin(&mut self, iops: f64, cv: f64) -> Bin {
        while self.ready.is_empty() {
            let factor = if cv >= 1.0 {
                self.rng.exponential()
            } else {
                (1.0 + cv * self.rng.normal()).max(0.01)
            };
            self.now_ns += factor / iops * 1e9;
            let ready = &mut self.ready;
            self.binner.add(self.now_ns as u64, 1, BLOCK_BYTES, |bin| ready.push_back(bin));
        }
        self.ready.pop_front().unwrap_or_default()
    }
}

/// A bin in which operations complete evenly.
fn steady(ops: f64) -> Bin {
    let ops = ops.max(0.0).round() as u64;
    Bin {
        ops,
        bytes: ops * BLOCK_BYTES,
        longest_gap_ns: 100_000_000u64.checked_div(ops).unwrap_or(0),
    }
}

/// One measurement of a simulated device.
pub struct Trial {
    pub iops: Estimate,
    /// Half width of the noise alone, as a share: without what stalls may do.
    pub noise: f64,
    pub truth: f64,
    pub outcome: Outcome,
    pub elapsed_s: f64,
    pub drift_doubted: bool,
}

impl Trial {
    pub fn covered(&self) -> bool {
        self.iops.low <= self.truth && self.truth <= self.iops.high
    }
}

/// Measures a device until the rule says stop.
pub fn measure(process: Process, spec: StopSpec, seed: u64) -> Trial {
    let mut device = Simulation::new(process, seed);
    let mut rule = StopRule::new(spec, BIN_S);
    let mut expected = Vec::new();
    loop {
        let (bin, truth) = device.next_bin();
        expected.push(truth);
        if rule.push(bin) != Decision::Continue {
            break;
        }
    }
    let kept = &expected[rule.warm_up_bins()..];
    let measured = rule.finish();
    let counts: Vec<f64> =
        measured.series.bytes.iter().map(|bytes| (bytes / BLOCK_BYTES) as f64).collect();
    Trial {
        noise: interval::rate(&counts, measured.series.bin_s, 1.0).relative_half_width(),
        truth: kept.iter().sum::<f64>() / kept.len() as f64 / BIN_S,
        iops: measured.iops,
        outcome: measured.outcome,
        elapsed_s: rule.elapsed_s(),
        drift_doubted: measured.caveats.iter().any(|d| matches!(d, Caveat::Drift { .. })),
    }
}

/// What many measurements of one device gave.
#[derive(Clone, Debug)]
#[allow(dead_code)]
pub struct Summary {
    pub trials: usize,
    /// Share of the intervals that hold the truth.
    pub coverage: f64,
    /// Share of the intervals that lie wholly above the truth.
    pub too_high: f64,
    /// Share of the intervals that lie wholly below the truth.
    pub too_low: f64,
    /// Mean time until the rule stopped, warm-up included.
    pub mean_s: f64,
    /// Median of the relative half widths.
    pub median_half_width: f64,
    /// Median of the half widths of the noise alone.
    pub median_noise: f64,
    /// Mean of the relative half widths that are finite.
    pub mean_half_width: f64,
    /// Mean of value over truth.
    pub bias: f64,
    /// Shares that ended converged, capped, inconclusive.
    pub outcomes: [f64; 3],
    /// Share with a doubt about drift.
    pub drift: f64,
}

/// Measures a device `trials` times.
pub fn summarise(process: Process, spec: StopSpec, trials: usize, seed: u64) -> Summary {
    let runs: Vec<Trial> =
        (0..trials as u64).map(|i| measure(process, spec, seed.wrapping_add(i))).collect();
    let share = |test: &dyn Fn(&Trial) -> bool| {
        runs.iter().filter(|run| test(run)).count() as f64 / trials as f64
    };
    let mut widths: Vec<f64> = runs.iter().map(|r| r.iops.relative_half_width()).collect();
    widths.sort_by(f64::total_cmp);
    let mut noises: Vec<f64> = runs.iter().map(|r| r.noise).collect();
    noises.sort_by(f64::total_cmp);
    let finite: Vec<f64> = widths.iter().copied().filter(|w| w.is_finite()).collect();
    Summary {
        trials,
        coverage: share(&|run| run.covered()),
        too_high: share(&|run| run.iops.low > run.truth),
        too_low: share(&|run| run.iops.high < run.truth),
        mean_s: runs.iter().map(|r| r.elapsed_s).sum::<f64>() / trials as f64,
        median_half_width: widths[trials / 2],
        median_noise: noises[trials / 2],
        mean_half_width: finite.iter().sum::<f64>() / finite.len() as f64,
        bias: runs.iter().map(|r| r.iops.value / r.truth).sum::<f64>() / trials as f64,
        outcomes: [Outcome::Converged, Outcome::Capped, Outcome::Inconclusive]
            .map(|outcome| share(&|run| run.outcome == outcome)),
        drift: share(&|run| run.drift_doubted),
    }
}

/// Whether the coverage of a device is demanded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Truth {
    /// At least 93 % of the intervals hold the truth.
    Held,
    /// Shown in the table as a limit of what any run of this length can see.
    BeyondReach,
}

/// A row of the table.
pub struct Device {
    pub name: &'static str,
    pub process: Process,
    #[allow(dead_code)]
    pub truth: Truth,
}

const fn held(name: &'static str, process: Process) -> Device {
    Device { name, process, truth: Truth::Held }
}

const fn stalling(every_s: f64, length_s: f64, exponential: bool) -> Process {
    Process::Stalling { every_s, length_s, exponential }
}

const fn slow(iops: f64, cv: f64) -> Process {
    Process::Slow { iops, cv }
}

/// The devices of the table.
pub const DEVICES: &[Device] = &[
    held("quiet, CV 4 %", Process::Independent { cv: 0.04 }),
    held("independent, CV 20 %", Process::Independent { cv: 0.20 }),
    held("drifting, +0.5 % per second", Process::Drifting { per_second: 0.005 }),
    held("AR(1) 0.5, CV 20 %", Process::Autoregressive { correlation: 0.5, cv: 0.20 }),
    held("AR(1) 0.9, CV 20 %", Process::Autoregressive { correlation: 0.9, cv: 0.20 }),
    held("stalls of 0.33 s in 3 % of bins", stalling(10.0 / 3.0, 0.33, false)),
    held("the same, exponential lengths", stalling(10.0 / 3.0, 0.33, true)),
    held("stalls of 0.1 s in 20 % of bins", stalling(0.5, 0.1, true)),
    Device {
        name: "stalls of 1 s in 1 % of bins",
        process: stalling(10.0, 1.0, true),
        truth: Truth::BeyondReach,
    },
    held("shared disk, AR 0.7, CV 60 %", Process::Shared { correlation: 0.7, cv: 0.6 }),
    held("first second twice as fast", Process::Settling { factor: 2.0 }),
    held("2 IOPS, regular", slow(2.0, 0.1)),
    held("2 IOPS, random", slow(2.0, 1.0)),
    held("5 IOPS, regular", slow(5.0, 0.1)),
    held("20 IOPS, regular", slow(20.0, 0.1)),
    held("20 IOPS, random", slow(20.0, 1.0)),
];

/// The presets by their names in `docs/data/coverage.tsv`.
#[allow(dead_code)]
pub const PRESETS: [(&str, StopSpec); 2] = [("quick", QUICK), ("normal", NORMAL)];

/// The columns of `docs/data/coverage.tsv`.
#[allow(dead_code)]
pub const COLUMNS: &str = "preset\tsimulated device\tholds the truth\ttoo high\ttoo low\tmean time\t\
    half width: median\tmean\tmedian, noise alone\tbias\tconverged, capped, inconclusive\n";

/// A row of `docs/data/coverage.tsv`.
#[allow(dead_code)]
pub fn table_row(preset: &str, device: &Device, summary: &Summary) -> String {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let [converged, capped, inconclusive] = summary.outcomes.map(|x| (x * 100.0).round());
    format!(
        "{preset}\t{}\t{}\t{}\t{}\t{:.1} s\t±{}\t±{}\t±{}\t{:+.1} %\t{converged}, {capped}, {inconclusive} %\n",
        device.name,
        percent(summary.coverage),
        percent(summary.too_high),
        percent(summary.too_low),
        summary.mean_s,
        percent(summary.median_half_width),
        percent(summary.mean_half_width),
        percent(summary.median_noise),
        (summary.bias - 1.0) * 100.0,
    )
}

/// What the rule is compared with: stop as soon as the t interval of at least ten bins, taken as
/// independent, is within ± `wanted`. True when that interval holds the truth.
#[allow(dead_code)]
pub fn naive(process: Process, wanted: f64, seed: u64) -> bool {
    let mut simulation = Simulation::new(process, seed);
    let (mut counts, mut truth) = (Vec::new(), 0.0);
    for _ in 0..1200 {
        let (bin, expected) = simulation.next_bin();
        counts.push(bin.ops as f64);
        truth = expected;
        let n = counts.len() as f64;
        let error = (interval::variance(&counts) / n).sqrt();
        let half = quantile::student_t_95(n - 1.0) * error;
        if n >= 10.0 && half <= wanted * interval::mean(&counts) {
            break;
        }
    }
    let n = counts.len() as f64;
    let half = quantile::student_t_95(n - 1.0) * (interval::variance(&counts) / n).sqrt();
    (interval::mean(&counts) - truth).abs() <= half
}
