//! Predictions against a simulation of the same path, operation by operation: with work that is spread by chance, for which mean value
//! analysis is exact, and with work that takes the same time every time, for which only its interval is promised.

use std::collections::VecDeque;

use rubus_advise::{Bend, Cost, Kind, Operation, Prediction, Resource, Stage, Step, predict};
use rubus_stats::estimate::Estimate;

/// A delay without a queue in seconds, and stations by seconds and servers; an operation visits all of them in this
/// order.
struct Path {
    delay_s: f64,
    stations: &'static [(f64, u32)],
}

const PATHS: [Path; 4] = [
    // A link and a server of four threads, behind a long way.
    Path { delay_s: 0.004, stations: &[(0.0005, 1), (0.003, 4)] },
    // A cipher on two cores before a disk that takes one at a time.
    Path { delay_s: 0.0, stations: &[(0.001, 2), (0.0008, 1)] },
    // Three stages that are as narrow as each other.
    Path { delay_s: 0.0, stations: &[(0.002, 1), (0.002, 1), (0.002, 1)] },
    // Sixteen at once, and a narrow link.
    Path { delay_s: 0.001, stations: &[(0.005, 16), (0.0004, 1)] },
];
const DEPTHS: [u32; 6] = [1, 2, 4, 8, 16, 32];
const OPERATIONS: u32 = 60_000;

/// How long work takes, beside its mean.
#[derive(Clone, Copy)]
enum Work {
    Even,
    ByChance,
}

/// Numbers from 0 to 1 that look like chance (xorshift).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn seconds(&mut self, mean_s: f64, work: Work) -> f64 {
        match work {
            Work::Even => mean_s,
            Work::ByChance => -mean_s * (1.0 - self.next()).ln(),
        }
    }
}

/// Operations per second with `depth` in flight.
fn simulate(path: &Path, depth: u32, work: Work) -> f64 {
    let mut chance = Chance(0x5eed_0000 + u64::from(depth));
    let count = path.stations.len();
    let mut queues: Vec<VecDeque<usize>> = vec![VecDeque::new(); count];
    let mut busy = vec![0; count];
    // Where each operation is, the delay being the last place, and when it is done there; nothing while it queues.
    let mut at = vec![count; depth as usize];
    let mut until: Vec<Option<f64>> = vec![Some(0.0); depth as usize];
    let (mut now, mut done) = (0.0, 0);
    while done < OPERATIONS {
        let working = (0..at.len()).filter_map(|one| Some((one, until[one]?)));
        let next = working.min_by(|a, b| a.1.total_cmp(&b.1));
        let (one, when) = next.expect("something goes on");
        now = when;
        until[one] = None;
        let place = at[one];
        if place < count {
            busy[place] -= 1;
            if let Some(waiting) = queues[place].pop_front() {
                busy[place] += 1;
                until[waiting] = Some(now + chance.seconds(path.stations[place].0, work));
            }
        }
        let place = (place + 1) % (count + 1);
        at[one] = place;
        if place == count {
            done += 1;
            until[one] = Some(now + chance.seconds(path.delay_s, work));
        } else if busy[place] < path.stations[place].1 {
            busy[place] += 1;
            until[one] = Some(now + chance.seconds(path.stations[place].0, work));
        } else {
            queues[place].push_back(one);
        }
    }
    f64::from(done) / now
}

fn predicted(path: &Path, depth: u32) -> Prediction {
    let stage = |resource, seconds| {
        Step::Stage(Stage {
            kind: Kind::Device,
            resource,
            cost: Cost::fixed(Estimate::exact(seconds)),
        })
    };
    let stations = path.stations.iter().enumerate();
    let mut steps: Vec<Step> = stations
        .map(|(number, &(seconds, servers))| {
            let resource = Resource::many(format!("station {number}"), servers);
            stage(Some(resource), seconds)
        })
        .collect();
    steps.push(stage(None, path.delay_s));
    let operation = Operation { bytes: 4096, depth, bend: Bend::Stations };
    predict(&steps, &operation)
}

#[test]
fn work_that_is_spread_by_chance_is_predicted() {
    for path in &PATHS {
        for depth in DEPTHS {
            let found = simulate(path, depth, Work::ByChance);
            let error = predicted(path, depth).iops.value / found - 1.0;
            assert!(error.abs() < 0.02, "{:?} at {depth}: {error}", path.stations);
        }
    }
}

#[test]
fn even_work_lies_in_the_interval() {
    let mut waits_less = false;
    for path in &PATHS {
        for depth in DEPTHS {
            let found = simulate(path, depth, Work::Even);
            let iops = predicted(path, depth).iops;
            let is_within = iops.low * 0.999 <= found && found <= iops.high * 1.001;
            assert!(is_within, "{:?} at {depth}: {found}, {iops:?}", path.stations);
            waits_less |= found > iops.value * 1.1;
        }
    }
    assert!(waits_less, "even work waits less than chance has it");
}
