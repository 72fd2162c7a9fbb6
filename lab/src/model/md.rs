//! RAID-0 by the kernel's md on an emulated board, over disks on one bus and on two.

use anyhow::Result;
use rubus_advise::{Kind as Pipe, Step, Stripe};

use super::Subject;
use super::case::{Forecast, Kind, Unit, Whole};
use super::ledger::Ledger;
use super::parts::{even, name, of_sizes, pairs, size};
use super::rig::{Job, Measured, Rig, job, job_file, results_of};
use crate::board::{Board, Throttle};
use crate::cache::Cache;
use crate::devices::needs::Need;
use crate::raid_board::{BUS_OF_DISK, MOUNTED_AT, RaidBoard};

pub(super) const ABOUT: &str = "RAID-0 by the kernel's md in chunks of 64 KiB, as the recipe `raid0` makes it on the emulated `pc` board. The emulator \
     limits each USB disk to 12 MiB and 300 requests per second, and each bus, which its disks share, to 16 MiB and 400. Alone, on the board: a disk with its \
     limit, a bus with its limit below two disks that have none, and reads one at a time without any limit, which is the board's own time for a read: its one \
     processor spends it, several times less than what the limits ask. Predicted: random reads of two disks on one bus, of two on two buses, and of three, one \
     at a time and eight. A limit of the emulator lets at once through what was not asked for during the last tenth of a second, so that a lone read seldom waits \
     for it: it is a stage beside the board's own time, and arrays gain with one read at a time too, which real disks do not let them.";
pub(super) const NEEDS: &[Need] = &[Need::Root, Need::Board(Board::Pc)];

const DISK: Throttle = Throttle { bytes_per_second: 12 << 20, operations_per_second: 300 };
const BUS: Throttle = Throttle { bytes_per_second: 16 << 20, operations_per_second: 400 };
/// What the recipe takes when nothing is said.
const CHUNK: u32 = 64 << 10;
const SIZES: [u64; 3] = [4 << 10, 64 << 10, 1 << 20];
const DEPTHS: [u32; 2] = [1, 8];
/// Some dozens of the largest reads.
const RUN_MS: u32 = 4000;

const ARRAYS: [(&str, &[usize]); 3] = [
    ("2 disks on one bus", &[0, 1]),
    ("2 disks on two buses", &[0, 2]),
    ("3 disks, 2 of them on one bus", &[0, 1, 2]),
];

pub(super) fn wholes(rig: &Rig, ledger: &Ledger) -> Result<Vec<Whole>> {
    let mut board = RaidBoard::boot(&Cache::of_this_machine(), rig.program_for_a_board()?)?;
    let stages = Stages::measure(rig, &mut board)?;
    board.limit(Some(DISK), Some(BUS))?;
    let mut wholes = Vec::new();
    for (title, disks) in ARRAYS {
        let path = stages.path(disks);
        let forecast = |(bytes, depth)| {
            Forecast::new(
                Subject::Md,
                Kind::Composition,
                format!("{title}, {} reads, {depth} in flight", size(bytes)),
                size(bytes),
                Unit::BytesPerSecond,
                (&path, even(bytes, depth)),
            )
        };
        let forecasts: Vec<Forecast> = pairs(&SIZES, &DEPTHS).map(forecast).collect();
        ledger.write(&forecasts)?;
        let plan = board.plan(disks)?;
        let array = board.make_array(disks, &plan)?;
        // A new ext4 goes on to write its empty tables for minutes, unless nothing may be written.
        board.must(&format!("mount -o remount,ro {MOUNTED_AT}"))?;
        let found = reads(rig, &mut board, &[array], &DEPTHS)?;
        board.must(&format!("mount -o remount,rw {MOUNTED_AT}"))?;
        board.take_back()?;
        for (forecast, (bytes, depth)) in forecasts.iter().zip(pairs(&SIZES, &DEPTHS)) {
            wholes.push(forecast.whole(job(&found, &name(bytes, depth))?));
        }
    }
    board.switch_off()?;
    Ok(wholes)
}

/// What each part of the way does alone, by size.
struct Stages {
    own: Vec<Measured>,
    disk: Vec<Measured>,
    bus: Vec<Measured>,
}

impl Stages {
    fn measure(rig: &Rig, board: &mut RaidBoard) -> Result<Stages> {
        let one = board.nodes(&[0]);
        let both = board.nodes(&[0, 1]);
        board.limit(None, None)?;
        let own = reads(rig, board, &one, &[1])?;
        board.limit(Some(DISK), None)?;
        let disk = reads(rig, board, &one, &[8])?;
        board.limit(None, Some(BUS))?;
        let bus = reads(rig, board, &both, &[8])?;
        Ok(Stages { own, disk, bus })
    }

    /// An array of these disks.
    fn path(&self, disks: &[usize]) -> Vec<Step> {
        let member = |&disk: &usize| {
            let bus = BUS_OF_DISK[disk];
            vec![
                Step::Stage(of_sizes(Pipe::Processor, "board", &self.own)),
                Step::Beside(of_sizes(Pipe::Device, &format!("disk {disk}"), &self.disk)),
                Step::Beside(of_sizes(Pipe::Bus, &format!("bus {bus}"), &self.bus)),
            ]
        };
        vec![Step::Stripe(Stripe {
            chunk_bytes: CHUNK,
            members: disks.iter().map(member).collect(),
        })]
    }
}

/// Random reads of every size at each depth; each read meets one of the nodes in turn.
fn reads(
    rig: &Rig,
    board: &mut RaidBoard,
    nodes: &[String],
    depths: &[u32],
) -> Result<Vec<Measured>> {
    let of = |(bytes, depth)| {
        Job::timed(name(bytes, depth), "randread", bytes, depth)
            .with("runtime", format!("{RUN_MS}ms"))
            .with("filename", nodes.join(":"))
            .with("file_service_type", "roundrobin")
    };
    let jobs: Vec<Job> = pairs(&SIZES, depths).map(of).collect();
    rig.undisturbed(|| results_of(&board.bench(&job_file(&jobs), None)?, &jobs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_advise::predict;
    use rubus_stats::estimate::Estimate;

    fn measured(iops: [f64; 3]) -> Vec<Measured> {
        let of = |(block_bytes, iops)| Measured {
            block_bytes,
            ..Measured::of_rate("", Estimate::exact(iops))
        };
        SIZES.into_iter().zip(iops).map(of).collect()
    }

    #[test]
    fn disks_add_up_until_their_bus_is_full() {
        let stages = Stages {
            own: measured([2500.0, 1400.0, 600.0]),
            disk: measured([300.0, 192.0, 12.0]),
            bus: measured([400.0, 256.0, 16.0]),
        };
        let wanted = [
            [400.0, 256.0, 16.0],
            [600.0, 384.0, 24.0],
            // Two in three reads go over the first bus.
            [600.0, 384.0, 24.0],
        ];
        for ((title, disks), wanted) in ARRAYS.into_iter().zip(wanted) {
            for (bytes, iops) in SIZES.into_iter().zip(wanted) {
                for depth in DEPTHS {
                    let found = predict(&stages.path(disks), &even(bytes, depth)).iops.value;
                    let off = found / iops - 1.0;
                    assert!(off.abs() < 1e-6, "{title}, {bytes} at {depth}: {found}");
                }
            }
        }
    }

    #[test]
    fn what_the_board_spends_itself_is_no_wider_with_more_disks() {
        let stages = Stages {
            own: measured([250.0, 140.0, 60.0]),
            disk: measured([300.0, 192.0, 12.0]),
            bus: measured([400.0, 256.0, 16.0]),
        };
        let found = predict(&stages.path(&[0, 2]), &even(4 << 10, 8));
        assert_eq!(found.pipes[0].name, "board");
        assert!((found.iops.value - 250.0).abs() < 1e-6, "{found:?}");
    }
}
