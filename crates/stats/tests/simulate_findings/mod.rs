//! Simulated sweeps and sustained writes whose truth is known, judged by the findings as shipped.
//!
//! Shared by the test and by the example that writes the tables `knee.tsv`, `bend.tsv` and `cliff.tsv` of `docs/data`.

use rubus_stats::Rng;
use rubus_stats::bend::{self, Size};
use rubus_stats::cliff;
use rubus_stats::estimate::Estimate;
use rubus_stats::knee::{self, Depth};
use rubus_stats::series::Series;

/// A kind of queue whose knee can be computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Queue {
    /// This number of servers of 1 ms that share one queue.
    Servers(f64),
    /// This number of stations, each with its own queue; an operation chooses one at random.
    Stations(f64),
    /// One station behind a delay that is this multiple of its own time.
    Delayed(f64),
    /// Servers on a device that loses a third of its throughput beyond a depth of 64.
    Declining(f64),
}

impl Queue {
    /// N*, the queue depth of the knee.
    pub fn knee(self) -> f64 {
        match self {
            Queue::Servers(servers) | Queue::Declining(servers) => servers,
            Queue::Stations(stations) => stations,
            Queue::Delayed(delay) => 1.0 + delay,
        }
    }

    /// Operations per second at this queue depth; a lone one takes 1 ms.
    fn iops(self, depth: u32) -> f64 {
        let n = f64::from(depth);
        match self {
            Queue::Servers(servers) => n.min(servers) * 1e3,
            Queue::Stations(stations) => n * stations / (n + stations - 1.0) * 1e3,
            Queue::Delayed(delay) => {
                // Mean value analysis (Reiser and Lavenberg 1980).
                let busy_s = 1e-3 / (1.0 + delay);
                let (mut rate, mut waiting) = (0.0, 0.0);
                for customers in 1..=depth {
                    let at_station_s = busy_s * (1.0 + waiting);
                    rate = f64::from(customers) / (busy_s * delay + at_station_s);
                    waiting = rate * at_station_s;
                }
                rate
            }
            Queue::Declining(servers) => {
                let lost = if depth > 64 { 2.0 / 3.0 } else { 1.0 };
                n.min(servers) * 1e3 * lost
            }
        }
    }
}

/// The queues of the table with their names and the noise of a point (standard deviation).
pub const QUEUES: [(&str, Queue, f64); 12] = [
    ("one at a time", Queue::Servers(1.0), 0.03),
    ("4 servers", Queue::Servers(4.0), 0.03),
    ("10 servers", Queue::Servers(10.0), 0.03),
    ("10 servers, quiet", Queue::Servers(10.0), 0.01),
    ("10 servers, noisy", Queue::Servers(10.0), 0.08),
    ("32 servers", Queue::Servers(32.0), 0.03),
    ("10 servers, a third lost beyond 64", Queue::Declining(10.0), 0.03),
    ("4 stations", Queue::Stations(4.0), 0.03),
    ("16 stations", Queue::Stations(16.0), 0.03),
    ("a station behind 2 of its times", Queue::Delayed(2.0), 0.03),
    ("a station behind 9 of its times", Queue::Delayed(9.0), 0.03),
    ("a station behind 31 of its times", Queue::Delayed(31.0), 0.03),
];

const DEPTHS: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

fn noisy(truth: f64, deviation: f64, rng: &mut Rng) -> Estimate {
    let value = truth * (deviation * rng.normal()).exp();
    let width = (1.96 * deviation).exp();
    Estimate::new(value, value / width, value * width)
}

/// How often an interval held the truth, its median half width, and the mean of the values over the
/// truth.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub coverage: f64,
    pub median_half_width: f64,
    pub bias: f64,
}

impl Held {
    fn of(estimates: &[Estimate], truth: f64) -> Held {
        let count = estimates.len().max(1) as f64;
        // A curve that is exact to a hundredth is as good as devices are regular.
        let slack = 1e-9;
        let held = estimates
            .iter()
            .filter(|e| e.low <= truth * (1.0 + slack) && truth * (1.0 - slack) <= e.high);
        let mut widths: Vec<f64> = estimates.iter().map(Estimate::relative_half_width).collect();
        widths.sort_by(f64::total_cmp);
        Held {
            coverage: held.count() as f64 / count,
            median_half_width: widths.get(widths.len() / 2).copied().unwrap_or(f64::NAN),
            bias: estimates.iter().map(|e| e.value).sum::<f64>() / count / truth,
        }
    }
}

/// What the fits of a queue gave.
#[derive(Clone, Copy, Debug)]
pub struct KneeSummary {
    pub knee: Held,
    pub ceiling: Held,
    pub one_at_a_time: f64,
    pub reached: f64,
}

/// Fits the knee of `trials` simulated sweeps.
pub fn knees(queue: Queue, deviation: f64, trials: usize) -> KneeSummary {
    let mut rng = Rng::from_seed(4);
    let fits: Vec<knee::Fit> = (0..trials)
        .filter_map(|_| {
            let depth =
                |&depth: &u32| Depth { depth, iops: noisy(queue.iops(depth), deviation, &mut rng) };
            let sweep: Vec<Depth> = DEPTHS.iter().map(depth).collect();
            knee::fit(&sweep)
        })
        .collect();
    let depths: Vec<Estimate> = fits.iter().map(|fit| fit.depth).collect();
    let ceilings: Vec<Estimate> = fits.iter().map(|fit| fit.ceiling_iops).collect();
    let share = |is: fn(&knee::Fit) -> bool| {
        fits.iter().filter(|fit| is(fit)).count() as f64 / trials as f64
    };
    KneeSummary {
        knee: Held::of(&depths, queue.knee()),
        ceiling: Held::of(&ceilings, queue.knee() * 1e3),
        one_at_a_time: share(|fit| fit.is_one_at_a_time),
        reached: share(|fit| fit.is_reached),
    }
}

/// Set-up times and rates of simulated block-size sweeps, and the noise of a point.
pub const LINES: [(&str, f64, f64, f64); 4] = [
    ("a card: 0.4 ms, 22 MB/s", 4e-4, 22e6, 0.03),
    ("the same, noisy", 4e-4, 22e6, 0.08),
    ("commits: 12 ms, 15 MB/s", 12e-3, 15e6, 0.05),
    ("a fast disk: 60 µs, 900 MB/s", 60e-6, 900e6, 0.03),
];

/// Fits the bend of `trials` simulated sweeps: the size of the bend, and the rate.
pub fn bends(setup_s: f64, rate: f64, deviation: f64, trials: usize) -> (Held, Held) {
    let mut rng = Rng::from_seed(5);
    let fits: Vec<bend::Fit> = (0..trials)
        .filter_map(|_| {
            let size = |power: u32| {
                let block_bytes = 1_u32 << power;
                let each_s = setup_s + f64::from(block_bytes) / rate;
                let iops = noisy(1.0 / each_s, deviation, &mut rng);
                Size { block_bytes, iops }
            };
            let sweep: Vec<Size> = (10..=24).step_by(2).map(size).collect();
            bend::fit(&sweep)
        })
        .collect();
    let sizes: Vec<Estimate> = fits.iter().map(|fit| fit.block_bytes).collect();
    let rates: Vec<Estimate> = fits.iter().map(|fit| fit.bytes_per_second).collect();
    (Held::of(&sizes, setup_s * rate), Held::of(&rates, rate))
}

/// How a sustained write goes on, beside its level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Course {
    /// Bytes per second before and after, in MB.
    pub levels: [f64; 2],
    /// Seconds before the fall and after it.
    pub seconds: [f64; 2],
    /// Coefficient of variation and correlation of neighbouring bins.
    pub noise: (f64, f64),
    /// Dips to a tenth of the level: their period and their duration, in seconds.
    pub dips_s: Option<(f64, f64)>,
    /// Stalls of 0.5 s on average, and their mean interval in seconds.
    pub stalls_every_s: Option<f64>,
}

/// The courses of the table.
pub const COURSES: [(&str, Course); 9] = {
    const PLAIN: Course = Course {
        levels: [60.0, 10.0],
        seconds: [30.0, 40.0],
        noise: (0.05, 0.0),
        dips_s: None,
        stalls_every_s: None,
    };
    [
        ("a fall from 60 to 10 MB/s after 30 s", PLAIN),
        ("the same, CV 30 %, correlated", Course { noise: (0.3, 0.6), ..PLAIN }),
        ("the same, a dip of 1 s every 6 s", Course { dips_s: Some((6.0, 1.0)), ..PLAIN }),
        ("the same, stalls of 0.5 s every 8 s", Course { stalls_every_s: Some(8.0), ..PLAIN }),
        (
            "a fall from 60 to 36 MB/s, CV 20 %",
            Course { levels: [60.0, 36.0], noise: (0.2, 0.3), ..PLAIN },
        ),
        ("a short burst of 3 s", Course { seconds: [3.0, 40.0], ..PLAIN }),
        (
            "no fall, CV 30 %, correlated",
            Course { levels: [60.0, 60.0], noise: (0.3, 0.6), ..PLAIN },
        ),
        (
            "no fall, a dip of 1 s every 6 s",
            Course { levels: [60.0, 60.0], dips_s: Some((6.0, 1.0)), ..PLAIN },
        ),
        (
            "no fall, stalls of 0.5 s every 8 s",
            Course { levels: [60.0, 60.0], stalls_every_s: Some(8.0), ..PLAIN },
        ),
    ]
};

const BIN_S: f64 = 0.1;

/// A course as a series, with the bytes before the fall.
fn simulate(course: &Course, rng: &mut Rng) -> (Series, f64) {
    let bins = ((course.seconds[0] + course.seconds[1]) / BIN_S) as usize;
    let (cv, correlation) = course.noise;
    let mut level = rng.normal();
    let phase_s = rng.unit() * course.dips_s.map_or(0.0, |(every_s, _)| every_s);
    let mut stalled_s = 0.0;
    let mut before = 0.0;
    let mut bytes = Vec::new();
    for bin in 0..bins {
        let now_s = bin as f64 * BIN_S;
        let is_before = now_s < course.seconds[0] - 1e-9;
        let mut rate = course.levels[usize::from(!is_before)] * 1e6;
        level = correlation * level + (1.0 - correlation * correlation).sqrt() * rng.normal();
        rate *= (1.0 + cv * level).max(0.0);
        if let Some((every_s, for_s)) = course.dips_s {
            if (now_s + phase_s) % every_s < for_s {
                rate *= 0.1;
            }
        }
        if let Some(every_s) = course.stalls_every_s {
            if stalled_s <= 0.0 && rng.unit() < BIN_S / every_s {
                stalled_s = rng.exponential() * 0.5;
            }
            let share = (stalled_s / BIN_S).clamp(0.0, 1.0);
            rate *= 1.0 - share;
            stalled_s -= BIN_S;
        }
        let moved = (rate * BIN_S) as u64;
        if is_before {
            before += moved as f64;
        }
        bytes.push(moved);
    }
    (Series { bin_s: BIN_S, bytes }, before)
}

/// What the search for a cliff gave.
#[derive(Clone, Copy, Debug)]
pub struct CliffSummary {
    /// Share of the courses in which a cliff was found.
    pub found: f64,
    /// Share of those whose interval holds the bytes before the fall.
    pub coverage: f64,
    /// Largest distance of the bytes found from the truth in 95 of 100 courses, as a share.
    pub worst: f64,
}

/// Looks for the cliff in `trials` courses.
pub fn cliffs(course: &Course, trials: usize) -> CliffSummary {
    let mut rng = Rng::from_seed(6);
    let (mut held, mut off) = (0_usize, Vec::new());
    for _ in 0..trials {
        let (series, truth) = simulate(course, &mut rng);
        let Some(fall) = cliff::fall(&series, 1048576.0) else {
            continue;
        };
        let found = fall.burst_bytes;
        held += usize::from(found.low <= truth && truth <= found.high);
        off.push((found.value / truth - 1.0).abs());
    }
    off.sort_by(f64::total_cmp);
    CliffSummary {
        found: off.len() as f64 / trials as f64,
        coverage: held as f64 / off.len().max(1) as f64,
        worst: off.get(off.len() * 95 / 100).copied().unwrap_or(f64::NAN),
    }
}
