//! The intervals that `compare` makes of fio's results hold the truth.
//!
//! fio runs a hundred times on devices whose limit changes at random between two, each for a random time. The truth is the mean
//! of all runs with as many copies: the kernel takes time to follow a new limit, so it is not the mean of the two limits. Of two
//! results of the same kind the truth is that neither is faster. The same is simulated in many more shapes, with a truth that is
//! known beforehand, beside the code.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::program::Home;
use crate::common::{can_run, report, take_turns};
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{Limits, ThrottledLoop};
use rubus_stats::Rng;

const RUNS: usize = 100;
/// How many of a hundred intervals must hold the truth, of which 95 are promised.
const MIN_HELD: usize = 93;
/// Runs beside each other, on devices of their own.
const AT_ONCE: usize = 10;
const SECONDS: u64 = 10;
/// How long a limit holds on average.
const DWELL_S: f64 = 0.5;
/// Reads per second of the two limits.
const RATES: [u64; 2] = [200, 1400];
/// Of a rate that varies so, ten seconds tell the mean within about a half: 1.5 against 0.5. Half of the intervals are to be
/// narrower than twice that, since one that is wide enough always holds.
const MAX_USUAL_RATIO: f64 = 6.0;
const BLOCK_BYTES: f64 = 4096.0;
const DEVICE_BYTES: u64 = 32 << 20;

#[test]
fn a_hundred_intervals_of_fio_results_hold_the_truth() {
    let _turn = take_turns();
    let needs = [Need::Root, Need::Loop, Need::BlockThrottle, Need::Program("fio", "fio")];
    if !can_run("intervals of fio's results", &needs) {
        return;
    }
    let home = Home::new();
    let mut results = Vec::new();
    for batch in 0..RUNS / AT_ONCE {
        // Single jobs and groups of eight in turns.
        let copies = if batch % 2 == 0 { 1 } else { 8 };
        results.extend(run_at_once(home.path(), batch, copies));
    }
    let mut alike = 0;
    let mut by_copies: [Vec<Figure>; 2] = Default::default();
    for (number, pair) in results.chunks(2).enumerate() {
        let comparison = comparison(&home, &pair[0], &pair[1]);
        let batch = 2 * number / AT_ONCE;
        by_copies[batch % 2].extend(figures(&comparison));
        alike += usize::from(ratio(&comparison).holds(1.0));
    }
    let (mut held, mut narrow) = (0, 0);
    for figures in &by_copies {
        let truth = figures.iter().map(|figure| figure.value).sum::<f64>() / figures.len() as f64;
        held += figures.iter().filter(|figure| figure.holds(truth)).count();
        narrow +=
            figures.iter().filter(|figure| figure.high / figure.low < MAX_USUAL_RATIO).count();
        report(&format!("mean of {} runs: {truth:.1} reads a second", figures.len()));
    }
    let pairs = RUNS / 2;
    report(&format!(
        "{held} of {RUNS} intervals hold the mean, {narrow} are narrower than a factor of {MAX_USUAL_RATIO}, {alike} of {pairs} ratios hold 1"
    ));
    assert!(held >= MIN_HELD, "{held} of {RUNS}");
    assert!(narrow * 2 >= RUNS, "{narrow} of {RUNS}");
    assert!(alike * 100 >= MIN_HELD * pairs, "{alike} of {pairs}");
}

/// Results of fio, one for each of several devices that change their rates at random.
fn run_at_once(directory: &Path, batch: usize, copies: u32) -> Vec<PathBuf> {
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..AT_ONCE)
            .map(|number| {
                let path = directory.join(format!("{batch}-{number}.json"));
                let seed = (batch * AT_ONCE + number) as u64;
                scope.spawn(move || {
                    run(&path, copies, seed);
                    path
                })
            })
            .collect();
        runs.into_iter().map(|run| run.join().expect("fio runs")).collect()
    })
}

fn run(path: &Path, copies: u32, seed: u64) {
    let mut random = Rng::stream(0xf10, seed);
    let mut pick =
        || Limits { read_iops: Some(RATES[random.below(2) as usize]), ..Limits::default() };
    let device = ThrottledLoop::new(DEVICE_BYTES, pick()).expect("a device");
    let mut fio = device.command("fio");
    fio.args(["--name=job", "--rw=randread", "--bs=4k", "--direct=1", "--ioengine=psync"]);
    fio.args(["--time_based", "--group_reporting", "--output-format=json"]);
    fio.arg(format!("--filename={}", device.path().display()));
    fio.args([format!("--runtime={SECONDS}"), format!("--numjobs={copies}")]);
    fio.arg(format!("--output={}", path.display())).stdout(Stdio::null());
    let mut fio = fio.spawn().expect("fio starts");
    let mut times = Rng::stream(0xf11, seed);
    let mut change = Instant::now();
    while fio.try_wait().expect("fio is ours").is_none() {
        if Instant::now() >= change {
            device.limit(pick()).expect("another limit");
            change += Duration::from_secs_f64(times.exponential() * DWELL_S);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(fio.wait().expect("fio ends").success(), "fio failed");
}

/// A figure with its interval.
struct Figure {
    value: f64,
    low: f64,
    high: f64,
}

impl Figure {
    /// From what the program prints; a bound that is not there does not bound.
    fn of(value: &Value, unit: f64) -> Figure {
        let interval = &value["interval"];
        let number = |value: &Value| value.as_f64().map(|number| number / unit);
        Figure {
            value: number(&value["value"]).expect("a value"),
            low: number(&interval["low"]).unwrap_or_else(|| panic!("no interval: {value}")),
            high: number(&interval["high"]).unwrap_or(f64::INFINITY),
        }
    }

    fn holds(&self, truth: f64) -> bool {
        self.low <= truth && truth <= self.high
    }
}

/// Reads per second of both results.
fn figures(comparison: &Value) -> [Figure; 2] {
    let throughput = &comparison["rows"][0]["throughput"];
    [0, 1].map(|subject| Figure::of(&throughput["figures"][subject], BLOCK_BYTES))
}

fn ratio(comparison: &Value) -> Figure {
    Figure::of(&comparison["rows"][0]["throughput"]["ratios"][1]["figure"], 1.0)
}

fn comparison(home: &Home, first: &Path, second: &Path) -> Value {
    let mut command: Command = home.command();
    let output = command.arg("compare").args([first, second]).arg("--json").output();
    let output = output.expect("the program starts");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}
