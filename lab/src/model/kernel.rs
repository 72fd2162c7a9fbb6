//! Devices of the kernel whose behaviour the model was not told, stacked by the kernel on an emulated board.

use anyhow::Result;
use rubus_advise::{Cost, Kind as Pipe, Resource, Stage, Step, Tier};
use rubus_stats::estimate::Estimate;

use super::Subject;
use super::case::Whole;
use super::ledger::Ledger;
use super::parts::{beside, longer, rate};
use super::rig::{Measured, Rig};
use super::stacked::{Alone, SIZES, SetUp, StackBoard, Target, stripe};
use crate::board::Board;
use crate::devices::needs::Need;
use crate::session::Options;

pub(super) const ABOUT: &str = "Block devices of Debian's kernel on the emulated `pc` board, whose clock counts instructions and so runs independently of this \
     machine's load: null_blk with a timer (a millisecond, four at a time), scsi_debug with its delay (0.7 ms, three at a time), zram, brd, and an NBD disk whose \
     server is in another network namespace, behind a veth; and above them dm-crypt, dm-delay, and md's RAID-0 and RAID-1. Alone, one at a time and 64: each \
     device, with its processor time; and each layer on top of a null_blk with no completion delay, as the added time per operation. \
     Of the way to the NBD disk netem's parameters are known: delay, rate and loss. Predicted: layers, devices and ways that were never measured together, 1, 8 and \
     64 in flight. All share the board's one processor. What stood still, because the emulator lost a timer's interrupt, is measured again. That scsi_debug's copying must be counted was learnt from the cases that are marked.";
pub(super) const NEEDS: &[Need] = &[Need::Root, Need::Board(Board::Pc)];

const SET_UPS: [SetUp<Stages>; 18] = [
    SetUp::new("dm-crypt on null_blk", Target::read("encrypt /dev/disk0"), |of| {
        [of.encrypting(), of.null(0)].concat()
    }),
    SetUp {
        title: "dm-crypt on scsi_debug",
        target: Target::read("encrypt /dev/scsi0"),
        path: |of| [of.encrypting(), of.scsi(0)].concat(),
        looked_at: |bytes, depth| bytes == SIZES[1] && depth > 1,
    },
    SetUp::new("dm-crypt on zram", Target::read("encrypt /dev/zram0"), |of| {
        [of.encrypting(), of.zram()].concat()
    }),
    SetUp::new("dm-crypt on brd", Target::read("encrypt /dev/ram0"), |of| {
        [of.encrypting(), of.brd()].concat()
    }),
    SetUp::new("dm-delay on null_blk", Target::read("delay /dev/disk0"), |of| {
        [of.delaying(), of.null(0)].concat()
    }),
    SetUp::new("dm-delay on scsi_debug", Target::read("delay /dev/scsi0"), |of| {
        [of.delaying(), of.scsi(0)].concat()
    }),
    SetUp::new("RAID-0 of two null_blk", Target::read("raid 0 /dev/disk0 /dev/disk1"), |of| {
        [of.striping(), stripe([of.null(0), of.null(1)])].concat()
    }),
    SetUp {
        title: "RAID-0 of two scsi_debug",
        target: Target::read("raid 0 /dev/scsi0 /dev/scsi1"),
        path: |of| [of.striping(), stripe([of.scsi(0), of.scsi(1)])].concat(),
        looked_at: |bytes, depth| bytes == SIZES[1] && depth > 1,
    },
    SetUp::new("RAID-1 of two null_blk", Target::read("raid 1 /dev/disk0 /dev/disk1"), |of| {
        [of.mirroring(), either([of.null(0), of.null(1)])].concat()
    }),
    SetUp {
        title: "RAID-1 of two scsi_debug",
        target: Target::read("raid 1 /dev/scsi0 /dev/scsi1"),
        path: |of| [of.mirroring(), either([of.scsi(0), of.scsi(1)])].concat(),
        looked_at: |bytes, depth| bytes == SIZES[1] && depth > 1,
    },
    SetUp::new("RAID-1 of two null_blk", Target::written("raid 1 /dev/disk0 /dev/disk1"), |of| {
        [of.mirroring_writes(), of.written(0), aside(of.written(1))].concat()
    }),
    SetUp::new(
        "dm-crypt on RAID-0 of two null_blk",
        Target::read("raid 0 /dev/disk0 /dev/disk1; encrypt /dev/md10"),
        |of| {
            let below = stripe([of.null(0), of.null(1)]);
            [of.encrypting(), of.striping(), below].concat()
        },
    ),
    SetUp::new(
        "dm-crypt on RAID-0 of two scsi_debug",
        Target::read("raid 0 /dev/scsi0 /dev/scsi1; encrypt /dev/md10"),
        |of| {
            let below = stripe([of.scsi(0), of.scsi(1)]);
            [of.encrypting(), of.striping(), below].concat()
        },
    ),
    SetUp::new("network disk, 2 ms away", Target::read("network delay 2ms"), |of| {
        [of.network(), away(2e-3)].concat()
    }),
    SetUp::new(
        "network disk, 1 ms away, 60 Mbit/s",
        Target::read("network delay 1ms rate 60mbit"),
        |of| [of.network(), away(1e-3), link(60e6)].concat(),
    ),
    SetUp::new("network disk, 30 Mbit/s", Target::read("network rate 30mbit"), |of| {
        [of.network(), link(30e6)].concat()
    }),
    SetUp::new(
        "network disk, 3 ms away, 0.5 % lost",
        Target::read("network delay 3ms loss 0.5%").lasting(10),
        |of| [of.network(), away(3e-3), losses(0.005, 3e-3)].concat(),
    ),
    SetUp::new(
        "dm-crypt on network disk, 2 ms away",
        Target::read("network delay 2ms; encrypt /dev/nbd0"),
        |of| [of.encrypting(), of.network(), away(2e-3)].concat(),
    ),
];

pub(super) fn wholes(rig: &Rig, ledger: &Ledger) -> Result<Vec<Whole>> {
    let options = Options { counts_instructions: true, ..Options::default() };
    let mut board = StackBoard::boot(rig, options)?;
    let stages = Stages::measure(rig, &mut board)?;
    let wholes = board.wholes(rig, ledger, Subject::Kernel, &SET_UPS, &stages)?;
    board.session.switch_off()?;
    Ok(wholes)
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
    fn measure(rig: &Rig, board: &mut StackBoard) -> Result<Stages> {
        let mut of = |target: Target| board.alone(rig, target);
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
        self.null.device(&format!("null_blk {number}"), &self.instant)
    }

    fn written(&self, number: u32) -> Vec<Step> {
        self.null_written.device(&format!("null_blk {number}"), &self.instant_written)
    }

    fn scsi(&self, number: u32) -> Vec<Step> {
        self.scsi.device(&format!("scsi_debug {number}"), &self.instant)
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
            let of = |one: &Measured| Measured { iops: one.iops.scaled(0.5), ..one.clone() };
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

/// A path that takes this number of seconds and limits no concurrency.
fn away(seconds: f64) -> Vec<Step> {
    vec![Step::Stage(Stage {
        kind: Pipe::Network,
        resource: None,
        cost: Cost::fixed(Estimate::exact(seconds)),
    })]
}

/// What a packet carries, and what netem counts of it: with its headers.
const CARRIED_BYTES: f64 = 1448.0;
const PACKET_BYTES: f64 = 1514.0;

fn link(bits_per_second: f64) -> Vec<Step> {
    let width = bits_per_second / 8.0 * CARRIED_BYTES / PACKET_BYTES;
    vec![rate(Pipe::Network, "link", Estimate::exact(width))]
}

/// What lost packets cost. Where others follow, their acknowledgements show the loss, and what is behind it waits for the way there and back
/// and the quarter of it that RACK allows for packets that overtake each other (RFC 8985). Behind the last of a lone answer none follows: the
/// kernel sends it again after its shortest time limit, 200 ms (`TCP_RTO_MIN`), and the way. That losses narrow TCP's window, and that netem loses whole bursts, is not in here.
fn losses(share: f64, way_s: f64) -> Vec<Step> {
    let seen_s = 1.25 * way_s;
    let unseen_s = 0.2 + way_s - seen_s;
    let packets = |bytes: u64| (bytes as f64 / CARRIED_BYTES).ceil();
    let waits = SIZES.map(|bytes| (bytes, Estimate::exact(share * packets(bytes) * seen_s)));
    vec![
        Step::Stage(Stage {
            kind: Pipe::Network,
            resource: Some(Resource::one("connection")),
            cost: Cost::seconds(waits),
        }),
        Step::Stage(Stage {
            kind: Pipe::Network,
            resource: None,
            cost: Cost::fixed(Estimate::exact(share * unseen_s)),
        }),
    ]
}

/// Each read meets one of two that are alike.
fn either(members: [Vec<Step>; 2]) -> Vec<Step> {
    let tier = |below| Tier { share: Estimate::exact(0.5), below };
    vec![Step::Tiers(members.map(tier).into())]
}

/// All of a path that goes on at the same time as something that takes as long.
fn aside(path: Vec<Step>) -> Vec<Step> {
    path.into_iter().map(beside).collect()
}

#[cfg(test)]
mod tests {
    use super::super::parts::operation;
    use super::super::stacked::of_rates;
    use super::*;
    use rubus_advise::predict;

    fn stages() -> Stages {
        Stages {
            instant: of_rates(50_000.0, 100_000.0),
            instant_written: of_rates(50_000.0, 100_000.0),
            null: of_rates(1000.0, 4000.0),
            null_written: of_rates(1000.0, 4000.0),
            scsi: of_rates(1250.0, 3000.0),
            zram: of_rates(20_000.0, 25_000.0),
            brd: of_rates(40_000.0, 50_000.0),
            network: of_rates(5000.0, 10_000.0),
            // 80 and 90 µs longer.
            encrypted: of_rates(10_000.0, 10_000.0),
            // 5 ms longer.
            delayed: of_rates(1e6 / 5020.0, 12_000.0),
            striped: of_rates(50_000.0, 100_000.0),
            mirrored: of_rates(50_000.0, 100_000.0),
            mirrored_written: of_rates(25_000.0, 50_000.0),
        }
    }

    #[test]
    fn a_lone_operation_waits_for_everything_and_many_for_the_narrowest() {
        let stages = stages();
        let iops = |title: &str, writes: bool, depth: u32| {
            let mut all = SET_UPS.iter();
            let is_it = |one: &&SetUp<Stages>| one.title == title && one.target.writes == writes;
            let path = (all.find(is_it).unwrap().path)(&stages);
            predict(&path, &operation(SIZES[0], depth)).iops.value
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
            assert!((found / lone - 1.0).abs() < 0.02, "{title}: {found}, {lone}");
            let found = iops(title, writes, 4096);
            assert!((found / many - 1.0).abs() < 0.02, "{title}: {found}, {many}");
        }
    }

    #[test]
    fn a_link_carries_packets_with_headers_and_a_lost_one_is_waited_for() {
        let iops = |path: &[Step], bytes: u64, depth: u32| {
            predict(path, &operation(bytes, depth)).iops.value
        };
        // 30 Mbit/s are 3.59 MB/s of payload.
        let found = iops(&link(30e6), SIZES[1], 64);
        assert!((found * SIZES[1] as f64 / 3.587e6 - 1.0).abs() < 1e-3, "{found}");
        // One in a hundred: alone 203 ms for the last of three packets, and 3.75 ms for each of the others that is lost.
        let lone = 1.0 / iops(&losses(0.01, 3e-3), SIZES[0], 1);
        assert!((lone - (0.01 * 0.203 + 2.0 * 0.01 * 3.75e-3)).abs() < 1e-9, "{lone}");
        let many = iops(&losses(0.01, 3e-3), SIZES[1], 4096);
        assert!((many * 46.0 * 0.01 * 3.75e-3 - 1.0).abs() < 0.01, "{many}");
    }
}
