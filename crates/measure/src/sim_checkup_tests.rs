//! The checkup in virtual time, on devices like cards, a USB SSD and an NVMe whose rates are known: how many of its ten figures
//! are within ±20 % when its time is over, and how often their intervals hold the truth. `docs/data/checkup.tsv` is the table.
//!
//! - *Steady* ones are like loop devices with a limit: their speed drifts by 2 %, and they never stop.
//! - *Restless* ones have what makes real ones hard to measure: their speed drifts by 8 % with a correlation of a
//!   second, and after a mean number of written bytes they stop for a while of random length.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use rubus_vocabulary::job_names;
use rubus_vocabulary::result::JobResult;
use rubus_vocabulary::spec::Direction;

use crate::event::Event;
use crate::region::Region;
use crate::rig::Rig;
use crate::scheduler::Scheduler;
use crate::sim::{Device, Hiccups, SimRig, Unrest};
use crate::suites::{self, Endurance, Room, plan_writes};
use crate::target::Opened;

const MIB: f64 = 1_048_576.0;
/// How far a figure may be from settled and still be worth a word.
const WIDTH: f64 = 0.20;
/// Checkups of each device for the table in the documentation.
const CHECKUPS: u64 = 60;
/// What a checkup may take, in seconds.
const MAX_S: f64 = 90.0;

/// A kind of device, and what is known of it before it is measured.
struct Kind {
    name: &'static str,
    endurance: Endurance,
    /// 1 MiB in order, read and written, bytes per second.
    in_order: [f64; 2],
    /// 4 KiB, one at a time, read and written, per second.
    small: [f64; 2],
    commit_ms: f64,
    servers: usize,
    hiccups: Hiccups,
}

const KINDS: [Kind; 5] = [
    card("card, 2 MB/s", [8e6, 2e6], [400.0, 30.0], 40.0),
    card("card, 10 MB/s", [20e6, 10e6], [1500.0, 150.0], 10.0),
    card("card, 40 MB/s", [90e6, 40e6], [2500.0, 700.0], 4.0),
    Kind {
        name: "USB SSD",
        endurance: Endurance::High,
        in_order: [380e6, 300e6],
        small: [5000.0, 7000.0],
        commit_ms: 2.0,
        servers: 6,
        hiccups: hiccups(512.0, 50.0),
    },
    Kind {
        name: "NVMe",
        endurance: Endurance::High,
        in_order: [850e6, 800e6],
        small: [9000.0, 20_000.0],
        commit_ms: 0.6,
        servers: 6,
        hiccups: hiccups(2048.0, 20.0),
    },
];

/// How a device is while it works.
#[derive(Clone, Copy, PartialEq)]
enum Temper {
    Steady,
    Restless,
}

impl Temper {
    /// Standard deviation of the speed as a share of it.
    fn unrest(self) -> f64 {
        match self {
            Temper::Steady => 0.02,
            Temper::Restless => 0.08,
        }
    }
}

const fn hiccups(every_mib: f64, length_ms: f64) -> Hiccups {
    Hiccups { every_bytes: every_mib * MIB, length_ns: length_ms * 1e6 }
}

const fn card(name: &'static str, in_order: [f64; 2], small: [f64; 2], commit_ms: f64) -> Kind {
    Kind {
        name,
        endurance: Endurance::Low,
        in_order,
        small,
        commit_ms,
        servers: 1,
        hiccups: hiccups(16.0, 150.0),
    }
}

impl Kind {
    /// Nanoseconds per byte and per operation, so that both rates come out.
    fn costs(&self, side: usize) -> (f64, f64) {
        let (large_ns, small_ns) = (MIB * 1e9 / self.in_order[side], 1e9 / self.small[side]);
        let byte_ns = (large_ns - small_ns) / (MIB - 4096.0);
        (byte_ns, small_ns - 4096.0 * byte_ns)
    }

    fn device(&self, temper: Temper) -> Device {
        let mut device = Device::of_iops(1.0, 1.0);
        for side in 0..2 {
            (device.byte_ns[side], device.base_ns[side]) = self.costs(side);
        }
        device.commit_ns = self.commit_ms * 1e6;
        device.servers = self.servers;
        device.hiccups = (temper == Temper::Restless).then_some(self.hiccups);
        device.unrest = Some(Unrest { share: temper.unrest(), correlation_s: 1.0 });
        device
    }

    /// Seconds that an operation takes on average.
    fn mean_s(&self, temper: Temper, result: &JobResult) -> f64 {
        let bytes = f64::from(result.block_bytes);
        let is_write = result.direction == Direction::Write;
        let (byte_ns, base_ns) = self.costs(usize::from(is_write));
        let commit_ns = if result.commit { self.commit_ms * 1e6 } else { 0.0 };
        let hiccup_ns = if is_write && temper == Temper::Restless {
            bytes / self.hiccups.every_bytes * self.hiccups.length_ns
        } else {
            0.0
        };
        (base_ns + byte_ns * bytes + commit_ns + hiccup_ns) / 1e9
    }

    /// Operations per second in the long run; nothing of a reader beside a writer on a device that does several things at
    /// once: the simulation lets the one run ahead of the other.
    fn truth(&self, temper: Temper, result: &JobResult, all: &[JobResult]) -> Option<f64> {
        let mean_s = self.mean_s(temper, result);
        let pair = [job_names::BYSTANDER_WRITE, job_names::BYSTANDER_READ];
        let is_of_pair = pair.contains(&result.job.as_str());
        if is_of_pair && self.servers > 1 {
            return None;
        }
        let rate = if is_of_pair {
            // Of four writes and a read in flight each waits for all others.
            let of_pair = all.iter().filter(|one| pair.contains(&one.job.as_str()));
            let each_s = of_pair.map(|one| f64::from(one.queue_depth) * self.mean_s(temper, one));
            f64::from(result.queue_depth) / each_s.sum::<f64>()
        } else {
            f64::from(result.queue_depth.min(self.servers as u32)) / mean_s
        };
        // Over time the mean of one over the level.
        Some(rate * (1.0 + temper.unrest().powi(2)))
    }
}

#[derive(Default)]
struct Tally {
    checkups: u32,
    figures: u32,
    narrow: u32,
    /// Figures whose truth is known, and those whose interval holds it.
    known: u32,
    held: u32,
    too_high: u32,
    /// The reader beside a writer: the most that its rate was above the truth, as a ratio.
    bystander_excess: f64,
    longest_s: f64,
    most_bytes: u64,
    planned_bytes: u64,
    /// Of each job: how often it was narrow.
    by_job: BTreeMap<String, u32>,
    /// Of each job: how often its interval lay below the truth, and above it.
    missed: BTreeMap<String, [u32; 2]>,
}

impl Tally {
    fn of(kind: &Kind, temper: Temper, endurance: Endurance, checkups: u64) -> Tally {
        let mut tally = Tally::default();
        for seed in 1..=checkups {
            tally.checkup(kind, temper, endurance, seed);
        }
        tally
    }

    fn checkup(&mut self, kind: &Kind, temper: Temper, endurance: Endurance, seed: u64) {
        let room = Room { endurance, ..Room::new("sim", 1 << 40, true) };
        let suite = suites::by_name("quick", &room).expect("it is a suite");
        let suite = suite.expect("there is room");
        let mut rig = SimRig::seeded(kind.device(temper), seed);
        let cancel = AtomicBool::new(false);
        let regions = vec![Region::single(Opened::pretended(None), suite.region_bytes)];
        let mut scheduler = Scheduler::new(&mut rig, &suite, regions, &cancel, 0);
        let ended_by = scheduler.run_all(&mut |_: &Event<'_>| {});
        assert!(ended_by.is_none(), "{ended_by:?}");
        let (results, bytes_written) = scheduler.into_results();
        self.checkups += 1;
        self.longest_s = self.longest_s.max(rig.now_ns() as f64 / 1e9);
        self.most_bytes = self.most_bytes.max(bytes_written);
        self.planned_bytes = plan_writes(&suite, true);
        for result in &results {
            let found = result.iops;
            let is_narrow = found.relative_half_width() <= WIDTH;
            self.figures += 1;
            self.narrow += u32::from(is_narrow);
            *self.by_job.entry(result.job.clone()).or_default() += u32::from(is_narrow);
            let Some(truth) = kind.truth(temper, result, &results) else {
                continue;
            };
            self.known += 1;
            self.held += u32::from(found.low <= truth && truth <= found.high);
            self.too_high += u32::from(found.low > truth);
            if result.job == job_names::BYSTANDER_READ {
                self.bystander_excess = self.bystander_excess.max(found.value / truth);
            }
            if found.high < truth || found.low > truth {
                let missed = self.missed.entry(result.job.clone()).or_default();
                missed[usize::from(found.low > truth)] += 1;
            }
        }
    }

    /// How many figures of a checkup are narrow, on average.
    fn narrow(&self) -> f64 {
        f64::from(self.narrow) / f64::from(self.checkups)
    }

    fn row(&self, name: &str) -> String {
        let percent = |count: u32| 100.0 * f64::from(count) / f64::from(self.known);
        let wide = self.by_job.iter();
        let wide: Vec<&str> = wide
            .filter(|(_, narrow)| 2 * **narrow < self.checkups)
            .map(|(job, _)| job.as_str())
            .collect();
        let wide = if wide.is_empty() { "–".to_string() } else { wide.join(", ") };
        format!(
            "{name}\t{:.1} of {:.0}\t{:.1} %\t{:.1} %\t{:.0} s\t{:.1} GiB\t{wide}",
            self.narrow(),
            f64::from(self.figures) / f64::from(self.checkups),
            percent(self.held),
            percent(self.too_high),
            self.longest_s,
            self.most_bytes as f64 / MIB / 1024.0,
        )
    }
}

#[test]
fn sim_a_checkup_settles_most_figures_of_a_steady_device_in_its_time() {
    // The fast ones take long to simulate in a build for tests.
    for kind in &KINDS[..3] {
        let tally = Tally::of(kind, Temper::Steady, kind.endurance, 3);
        assert!(tally.longest_s <= MAX_S, "{}: {} s", kind.name, tally.longest_s);
        assert!(tally.most_bytes <= tally.planned_bytes, "{}", kind.name);
        assert!(tally.narrow() >= 8.0, "{}: {:?}", kind.name, tally.by_job);
        assert!(
            tally.held * 100 >= tally.known * 93,
            "{}: below and above {:?}",
            kind.name,
            tally.missed
        );
        // The writer's bytes are spent first; the reader ends with it and does not go on alone.
        assert!(tally.bystander_excess < 1.1, "{}: {}", kind.name, tally.bystander_excess);
    }
}

#[test]
#[ignore = "takes minutes"]
fn sim_the_tables_of_checkups_are_those_of_the_documentation() {
    let table = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/data/checkup.tsv");
    let table = std::fs::read_to_string(table).expect("docs/data/checkup.tsv");
    for (name, temper) in [("steady", Temper::Steady), ("restless", Temper::Restless)] {
        let mut rows = Vec::new();
        for kind in &KINDS {
            if kind.endurance == Endurance::High {
                // What the budget of a card would give.
                let low = Tally::of(kind, temper, Endurance::Low, CHECKUPS);
                rows.push(low.row(&format!("{}, 1 GiB", kind.name)));
            }
            let tally = Tally::of(kind, temper, kind.endurance, CHECKUPS);
            println!("{}: below and above the truth {:?}", kind.name, tally.missed);
            rows.push(tally.row(kind.name));
        }
        let rows: String = rows.iter().map(|row| format!("{name}\t{row}\n")).collect();
        assert!(table.contains(&rows), "docs/data/checkup.tsv does not have these rows:\n{rows}");
    }
}
