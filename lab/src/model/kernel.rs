//! Devices of the kernel whose behaviour the model was not told, stacked by the kernel on an emulated board.

use std::time::Duration;

use anyhow::{Context, Result};
use rubus_advise::{Bend, Cost, Kind as Pipe, Operation, Resource, Stage, Step, Stripe, Tier};
use rubus_vocabulary::estimate::Estimate;

use super::Subject;
use super::case::{Forecast, Kind, Unit, Whole};
use super::ledger::Ledger;
use super::parts::{beside, by_size, fixed, less, longer, name, pairs, rate, size};
use super::rig::{Job, Measured, Rig, job, job_file, results_of};
use crate::board::Board;
use crate::cache::Cache;
use crate::devices::needs::Need;
use crate::session::{Options, Session};

pub(super) const ABOUT: &str = "Block devices of Debian's kernel on the emulated `pc` board, whose clock counts instructions, so that this machine's load changes \
     nothing: null_blk with a timer (a millisecond, four at a time), scsi_debug with its delay (0.7 ms, three at a time), zram, brd, and an NBD disk whose \
     server is in another network namespace, behind a veth; and above them dm-crypt, dm-delay, and md's RAID-0 and RAID-1. Alone, one at a time and 64: each \
     device, with the processor's time that it takes; and each layer above a null_blk that answers at once, as what an operation takes longer than of that device. \
     Of the way to the NBD disk netem's parameters are known: delay, rate and loss. Predicted: layers, devices and ways that were never measured together, 1, 8 and \
     64 in flight. All share the board's one processor. That scsi_debug's copying must be counted was learnt from the cases that are marked.";
pub(super) const NEEDS: &[Need] = &[Need::Root, Need::Board(Board::Pc)];

const STACK: &str = "stack";
const STACK_TEXT: &str = include_str!("../../board/stack");
const LONG: Duration = Duration::from_secs(1200);
const SIZES: [u64; 2] = [4 << 10, 64 << 10];
const DEPTHS: [u32; 3] = [1, 8, 64];
/// Where the ends of a device's curve are taken from.
const ENDS: [u32; 2] = [1, 64];
/// What md takes when it is told to.
const CHUNK: u32 = 64 << 10;
const PROCESSOR: &str = "processor";

/// Something to measure: how it is made, and whether it is written.
#[derive(Clone, Copy)]
struct Target {
    /// Shell that leaves the node in `$stacked`.
    make: &'static str,
    writes: bool,
    /// How long each job takes, where it is longer than most.
    seconds: Option<u32>,
}

impl Target {
    const fn read(make: &'static str) -> Target {
        Target {
            make,
            writes: false,
            seconds: None,
        }
    }

    const fn written(make: &'static str) -> Target {
        Target {
            writes: true,
            ..Target::read(make)
        }
    }

    const fn lasting(self, seconds: u32) -> Target {
        Target {
            seconds: Some(seconds),
            ..self
        }
    }
}

/// A set-up of which the model says what it gives.
struct SetUp {
    title: &'static str,
    target: Target,
    path: fn(&Stages) -> Vec<Step>,
}

const SET_UPS: [SetUp; 18] = [
    SetUp {
        title: "dm-crypt on null_blk",
        target: Target::read("encrypt /dev/disk0"),
        path: |of| [of.encrypting(), of.null(0)].concat(),
    },
    SetUp {
        title: "dm-crypt on scsi_debug",
        target: Target::read("encrypt /dev/scsi0"),
        path: |of| [of.encrypting(), of.scsi(0)].concat(),
    },
    SetUp {
        title: "dm-crypt on zram",
        target: Target::read("encrypt /dev/zram0"),
        path: |of| [of.encrypting(), of.zram()].concat(),
    },
    SetUp {
        title: "dm-crypt on brd",
        target: Target::read("encrypt /dev/ram0"),
        path: |of| [of.encrypting(), of.brd()].concat(),
    },
    SetUp {
        title: "dm-delay on null_blk",
        target: Target::read("delay /dev/disk0"),
        path: |of| [of.delaying(), of.null(0)].concat(),
    },
    SetUp {
        title: "dm-delay on scsi_debug",
        target: Target::read("delay /dev/scsi0"),
        path: |of| [of.delaying(), of.scsi(0)].concat(),
    },
    SetUp {
        title: "RAID-0 of two null_blk",
        target: Target::read("raid 0 /dev/disk0 /dev/disk1"),
        path: |of| [of.striping(), stripe([of.null(0), of.null(1)])].concat(),
    },
    SetUp {
        title: "RAID-0 of two scsi_debug",
        target: Target::read("raid 0 /dev/scsi0 /dev/scsi1"),
        path: |of| [of.striping(), stripe([of.scsi(0), of.scsi(1)])].concat(),
    },
    SetUp {
        title: "RAID-1 of two null_blk",
        target: Target::read("raid 1 /dev/disk0 /dev/disk1"),
        path: |of| [of.mirroring(), either([of.null(0), of.null(1)])].concat(),
    },
    SetUp {
        title: "RAID-1 of two scsi_debug",
        target: Target::read("raid 1 /dev/scsi0 /dev/scsi1"),
        path: |of| [of.mirroring(), either([of.scsi(0), of.scsi(1)])].concat(),
    },
    SetUp {
        title: "RAID-1 of two null_blk",
        target: Target::written("raid 1 /dev/disk0 /dev/disk1"),
        path: |of| [of.mirroring_writes(), of.written(0), aside(of.written(1))].concat(),
    },
    SetUp {
        title: "dm-crypt on RAID-0 of two null_blk",
        target: Target::read("raid 0 /dev/disk0 /dev/disk1; encrypt /dev/md10"),
        path: |of| {
            let below = stripe([of.null(0), of.null(1)]);
            [of.encrypting(), of.striping(), below].concat()
        },
    },
    SetUp {
        title: "dm-crypt on RAID-0 of two scsi_debug",
        target: Target::read("raid 0 /dev/scsi0 /dev/scsi1; encrypt /dev/md10"),
        path: |of| {
            let below = stripe([of.scsi(0), of.scsi(1)]);
            [of.encrypting(), of.striping(), below].concat()
        },
    },
    SetUp {
        title: "network disk, 2 ms away",
        target: Target::read("network delay 2ms"),
        path: |of| [of.network(), away(2e-3)].concat(),
    },
    SetUp {
        title: "network disk, 0.5 ms away, 100 Mbit/s",
        target: Target::read("network delay 500us rate 100mbit"),
        path: |of| [of.network(), away(5e-4), link(100e6)].concat(),
    },
    SetUp {
        title: "network disk, 20 Mbit/s",
        target: Target::read("network rate 20mbit"),
        path: |of| [of.network(), link(20e6)].concat(),
    },
    SetUp {
        title: "network disk, 2 ms away, 1 % lost",
        target: Target::read("network delay 2ms loss 1%").lasting(10),
        path: |of| [of.network(), away(2e-3), losses(0.01, 2e-3)].concat(),
    },
    SetUp {
        title: "dm-crypt on network disk, 2 ms away",
        target: Target::read("network delay 2ms; encrypt /dev/nbd0"),
        path: |of| [of.encrypting(), of.network(), away(2e-3)].concat(),
    },
];


pub(super) fn wholes(rig: &Rig, ledger: &Ledger) -> Result<Vec<Whole>> {
    let mut board = KernelBoard::boot(rig)?;
    let stages = Stages::measure(rig, &mut board)?;
    let mut wholes = Vec::new();
    for set_up in &SET_UPS {
        let path = (set_up.path)(&stages);
        let forecasts: Vec<Forecast> = pairs(&SIZES, &DEPTHS)
            .map(|(bytes, depth)| set_up.forecast(&path, bytes, depth))
            .collect();
        ledger.write(&forecasts)?;
        let found = board.measure(rig, set_up.target, &DEPTHS)?;
        for (forecast, (bytes, depth)) in forecasts.iter().zip(pairs(&SIZES, &DEPTHS)) {
            wholes.push(forecast.whole(job(&found, &name(bytes, depth))?));
        }
    }
    board.session.switch_off()?;
    Ok(wholes)
}

impl SetUp {
    /// What was looked at when it turned out that a device may keep the processor busy longer than one that answers at once.
    fn is_chosen(&self, bytes: u64, depth: u32) -> bool {
        const LOOKED_AT: [&str; 3] = [
            "dm-crypt on scsi_debug",
            "RAID-0 of two scsi_debug",
            "RAID-1 of two scsi_debug",
        ];
        LOOKED_AT.contains(&self.title) && bytes == SIZES[1] && depth > 1
    }

    fn forecast(&self, path: &[Step], bytes: u64, depth: u32) -> Forecast {
        let verb = if self.target.writes {
            "writes"
        } else {
            "reads"
        };
        let operation = Operation {
            bytes,
            depth,
            bend: Bend::Stations,
        };
        let forecast = Forecast::new(
            Subject::Kernel,
            Kind::Blind,
            format!("{}, {} {verb}, {depth} in flight", self.title, size(bytes)),
            format!("{} {verb}, {depth} in flight", size(bytes)),
            Unit::Iops,
            (path, operation),
        );
        match self.is_chosen(bytes, depth) {
            true => forecast.chosen(),
            false => forecast,
        }
    }
}

/// What something does alone, by size.
struct Alone {
    lone: Vec<Measured>,
    many: Vec<Measured>,
}

/// What each device and each layer takes.
struct Stages {
    instant: Alone,
    instant_written: Alone,
    null: Alone,
    null_written: Alone,
    scsi: Alone,
    zram: Alone,
    brd: Alone,
    network: Alone,
    encrypted: Alone,
    delayed: Alone,
    striped: Alone,
    mirrored: Alone,
    mirrored_written: Alone,
}

impl Stages {
    fn measure(rig: &Rig, board: &mut KernelBoard) -> Result<Stages> {
        let mut of = |target: Target| -> Result<Alone> {
            let found = board.measure(rig, target, &ENDS)?;
            let at = |depth: u32| found.iter().filter(move |one| one.depth == depth).cloned();
            Ok(Alone {
                lone: at(ENDS[0]).collect(),
                many: at(ENDS[1]).collect(),
            })
        };
        Ok(Stages {
            instant: of(Target::read("stacked=/dev/instant0"))?,
            instant_written: of(Target::written("stacked=/dev/instant0"))?,
            null: of(Target::read("stacked=/dev/disk0"))?,
            null_written: of(Target::written("stacked=/dev/disk0"))?,
            scsi: of(Target::read("stacked=/dev/scsi0"))?,
            zram: of(Target::read("stacked=/dev/zram0"))?,
            brd: of(Target::read("stacked=/dev/ram0"))?,
            network: of(Target::read("network"))?,
            encrypted: of(Target::read("encrypt /dev/instant0"))?,
            delayed: of(Target::read("delay /dev/instant0"))?,
            striped: of(Target::read("raid 0 /dev/instant0 /dev/instant1"))?,
            mirrored: of(Target::read("raid 1 /dev/instant0 /dev/instant1"))?,
            mirrored_written: of(Target::written("raid 1 /dev/instant0 /dev/instant1"))?,
        })
    }

    fn null(&self, number: u32) -> Vec<Step> {
        self.null
            .device(&format!("null_blk {number}"), &self.instant)
    }

    fn written(&self, number: u32) -> Vec<Step> {
        self.null_written
            .device(&format!("null_blk {number}"), &self.instant_written)
    }

    fn scsi(&self, number: u32) -> Vec<Step> {
        self.scsi
            .device(&format!("scsi_debug {number}"), &self.instant)
    }

    fn zram(&self) -> Vec<Step> {
        self.zram.of_the_processor(Pipe::Processor)
    }

    fn brd(&self) -> Vec<Step> {
        self.brd.of_the_processor(Pipe::Processor)
    }

    /// Client, protocol and server, all on this board.
    fn network(&self) -> Vec<Step> {
        self.network.of_the_processor(Pipe::Server)
    }

    fn encrypting(&self) -> Vec<Step> {
        self.encrypted.beyond(&self.instant, Pipe::Cipher)
    }

    fn striping(&self) -> Vec<Step> {
        self.striped.beyond(&self.instant, Pipe::Processor)
    }

    fn mirroring(&self) -> Vec<Step> {
        self.mirrored.beyond(&self.instant, Pipe::Processor)
    }

    /// What md does for a write beyond two of the devices' own writes.
    fn mirroring_writes(&self) -> Vec<Step> {
        let twice = |found: &[Measured]| {
            let of = |one: &Measured| Measured {
                iops: one.iops.scaled(0.5),
                ..one.clone()
            };
            found.iter().map(of).collect()
        };
        let both = Alone {
            lone: twice(&self.instant_written.lone),
            many: twice(&self.instant_written.many),
        };
        self.mirrored_written.beyond(&both, Pipe::Processor)
    }

    /// Operations wait side by side.
    fn delaying(&self) -> Vec<Step> {
        vec![Step::Stage(Stage {
            kind: Pipe::Device,
            resource: None,
            cost: longer(&self.delayed.lone, &self.instant.lone),
        })]
    }
}

impl Alone {
    /// A device that takes its time, and of the processor what an instant one takes of it; or what was counted, where that is more
    /// because the processor moves the bytes.
    fn device(&self, name: &str, instant: &Alone) -> Vec<Step> {
        let instant = Cost::measured(&by_size(&instant.many));
        let own = |one: &Measured| {
            let least = instant.at(one.block_bytes as f64);
            let counted = Estimate::exact(one.processors_s);
            let is_more = counted.value > least.value;
            (one.block_bytes, if is_more { counted } else { least })
        };
        let own = Stage {
            kind: Pipe::Processor,
            resource: Some(Resource::one(PROCESSOR)),
            cost: Cost::seconds(self.many.iter().map(own)),
        };
        let mut path = Stage::of_pair(
            Pipe::Device,
            Resource::one(name),
            &by_size(&self.lone),
            &by_size(&self.many),
        );
        path.push(Step::Beside(own));
        path
    }

    /// Something that nothing but the processor does.
    fn of_the_processor(&self, kind: Pipe) -> Vec<Step> {
        let (lone, many) = (by_size(&self.lone), by_size(&self.many));
        Stage::of_pair(kind, Resource::one(PROCESSOR), &lone, &many)
    }

    /// A layer that spends the processor: what it takes longer than what it lies on.
    fn beyond(&self, below: &Alone, kind: Pipe) -> Vec<Step> {
        let busy = longer(&self.many, &below.many);
        let lone = longer(&self.lone, &below.lone);
        let rest = SIZES.map(|bytes| {
            let (lone, busy) = (lone.at(bytes as f64), busy.at(bytes as f64));
            (bytes, less(lone, busy))
        });
        vec![
            Step::Stage(Stage {
                kind,
                resource: Some(Resource::one(PROCESSOR)),
                cost: busy,
            }),
            Step::Stage(Stage {
                kind,
                resource: None,
                cost: Cost::seconds(rest),
            }),
        ]
    }
}

/// A way on which operations go side by side, and which takes so many seconds.
fn away(seconds: f64) -> Vec<Step> {
    vec![Step::Stage(Stage {
        kind: Pipe::Network,
        resource: None,
        cost: Cost::fixed(Estimate::exact(seconds)),
    })]
}

fn link(bits_per_second: f64) -> Vec<Step> {
    let width = Estimate::exact(bits_per_second / 8.0);
    vec![rate(Pipe::Network, "link", width)]
}

/// What lost answers cost. Nothing follows a lone one by which its loss would be seen: the kernel sends it again after its shortest time limit,
/// 200 ms and the way there and back (`TCP_RTO_MIN`). Behind a lost one of many all others wait, for the way there and back and the quarter of it
/// that RACK allows for packets that overtake each other (RFC 8985).
fn losses(share: f64, way_s: f64) -> Vec<Step> {
    let (lone_s, each_s) = (0.2 + way_s, 1.25 * way_s);
    vec![
        fixed(Pipe::Network, "connection", 1, Estimate::exact(share * each_s)),
        Step::Stage(Stage {
            kind: Pipe::Network,
            resource: None,
            cost: Cost::fixed(Estimate::exact(share * (lone_s - each_s))),
        }),
    ]
}

fn stripe(members: [Vec<Step>; 2]) -> Vec<Step> {
    vec![Step::Stripe(Stripe {
        chunk_bytes: CHUNK,
        members: members.into(),
    })]
}

/// Each read meets one of two that are alike.
fn either(members: [Vec<Step>; 2]) -> Vec<Step> {
    let tier = |below| Tier {
        share: Estimate::exact(0.5),
        below,
    };
    vec![Step::Tiers(members.map(tier).into())]
}

/// All of a path that goes on at the same time as something that takes as long.
fn aside(path: Vec<Step>) -> Vec<Step> {
    path.into_iter().map(beside).collect()
}

/// The board with its devices. Dropping it cuts its power.
struct KernelBoard {
    session: Session,
}

impl KernelBoard {
    fn boot(rig: &Rig) -> Result<KernelBoard> {
        let stack = rig.directory().join(STACK);
        std::fs::write(&stack, STACK_TEXT).context("could not write the board's script")?;
        let options = Options {
            push: vec![stack, rig.program_for_a_board()?],
            counts_instructions: true,
            // Timers of less than a tick.
            kernel_words: "highres=on nohz=on".into(),
            ..Options::default()
        };
        let mut session = Session::boot(&Cache::of_this_machine(), Board::Pc, &options)?;
        session.must(&script("prepare_disks"), "root", LONG)?;
        Ok(KernelBoard { session })
    }

    /// Makes the target, measures it at every size and these depths, and takes it apart.
    fn measure(&mut self, rig: &Rig, target: Target, depths: &[u32]) -> Result<Vec<Measured>> {
        let rw = if target.writes {
            "randwrite"
        } else {
            "randread"
        };
        let jobs: Vec<Job> = pairs(&SIZES, depths)
            .map(|(bytes, depth)| {
                let job = Job::timed(name(bytes, depth), rw, bytes, depth);
                match target.seconds {
                    Some(seconds) => job.with("runtime", seconds),
                    None => job,
                }
            })
            .collect();
        let text = job_file(&jobs);
        let lose = match target.writes {
            true => "--i-will-lose-everything-on=$stacked",
            false => "",
        };
        let script = script(&format!(
            "set -e\n{}\ncat >/run/jobs.fio <<'END'\n{text}\nEND\nsync\n\
             rubus bench $stacked --fio-job /run/jobs.fio {lose} --quiet --no-history --no-html --json -\ntake_apart >&2",
            target.make
        ));
        rig.fastest(1, || {
            let text = self.session.must(&script, "root", LONG)?;
            let run = serde_json::from_str(&text)
                .with_context(|| format!("{:?} gave no JSON: {text}", target.make))?;
            results_of(&run, &jobs)
        })
    }
}

fn script(what: &str) -> String {
    format!(". /run/lab/push/{STACK}\n{what}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_advise::predict;

    /// So many operations per second of each size.
    fn alone(lone: f64, many: f64) -> Alone {
        let of = |iops: f64, depth: u32| {
            let one = |block_bytes| Measured {
                block_bytes,
                depth,
                ..Measured::of_rate("", Estimate::exact(iops))
            };
            SIZES.map(one).into()
        };
        Alone {
            lone: of(lone, ENDS[0]),
            many: of(many, ENDS[1]),
        }
    }

    fn stages() -> Stages {
        Stages {
            instant: alone(50_000.0, 100_000.0),
            instant_written: alone(50_000.0, 100_000.0),
            null: alone(1000.0, 4000.0),
            null_written: alone(1000.0, 4000.0),
            scsi: alone(1250.0, 3000.0),
            zram: alone(20_000.0, 25_000.0),
            brd: alone(40_000.0, 50_000.0),
            network: alone(5000.0, 10_000.0),
            // 80 and 90 µs longer.
            encrypted: alone(10_000.0, 10_000.0),
            // 5 ms longer.
            delayed: alone(1e6 / 5020.0, 12_000.0),
            striped: alone(50_000.0, 100_000.0),
            mirrored: alone(50_000.0, 100_000.0),
            mirrored_written: alone(25_000.0, 50_000.0),
        }
    }

    #[test]
    fn a_lone_operation_waits_for_everything_and_many_for_the_narrowest() {
        let stages = stages();
        let iops = |title: &str, writes: bool, depth: u32| {
            let mut all = SET_UPS.iter();
            let is_it = |one: &&SetUp| one.title == title && one.target.writes == writes;
            let path = (all.find(is_it).unwrap().path)(&stages);
            let operation = Operation {
                bytes: SIZES[0],
                depth,
                bend: Bend::Stations,
            };
            predict(&path, &operation).iops.value
        };
        let cases = [
            ("dm-crypt on null_blk", false, 1e6 / 1080.0, 4000.0),
            ("dm-delay on null_blk", false, 1e6 / 6000.0, 4000.0),
            ("RAID-0 of two null_blk", false, 1000.0, 8000.0),
            ("RAID-1 of two null_blk", false, 1000.0, 8000.0),
            ("network disk, 2 ms away", false, 1e6 / 2200.0, 10_000.0),
            // Each disk gets each write.
            ("RAID-1 of two null_blk", true, 1000.0, 4000.0),
        ];
        for (title, writes, lone, many) in cases {
            let found = iops(title, writes, 1);
            assert!(
                (found / lone - 1.0).abs() < 0.02,
                "{title}: {found}, {lone}"
            );
            let found = iops(title, writes, 4096);
            assert!(
                (found / many - 1.0).abs() < 0.02,
                "{title}: {found}, {many}"
            );
        }
    }

    #[test]
    fn what_takes_no_longer_takes_nothing() {
        let wide = Estimate::new(5.0, 4.0, 6.0);
        assert_eq!(
            less(Estimate::exact(4.5), wide),
            Estimate::new(0.0, 0.0, 0.5)
        );
        assert_eq!(
            less(wide, Estimate::new(3.0, 2.0, 3.5)),
            Estimate::new(2.0, 0.5, 4.0)
        );
    }
}
