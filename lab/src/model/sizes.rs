//! A device that limits both operations and bytes: sizes and depths that were not measured, from some that were.

use anyhow::Result;
use rubus_advise::Kind as Pipe;

use super::Subject;
use super::case::{Forecast, Kind, Unit, Whole};
use super::ledger::Ledger;
use super::parts::{even, of_pair, size};
use super::rig::{Job, Rig, job};
use crate::devices::needs::Need;
use crate::devices::{BlockGroup, Limits, LoopDevice};

pub(super) const ABOUT: &str = "A loop device that lets 2000 reads and 40 MB per second through. Alone: 4, 16, 64, 256 and 512 KiB, at depths 1 \
     and 32. Predicted: sizes between them, at depths 1 to 64. Nothing larger: the kernel cuts a request of 1 MiB in two, and its throttle lets a queue of \
     such halves through at half the rate that was set, so the truth would not be known.";
pub(super) const NEEDS: &[Need] = &[Need::Root, Need::Loop, Need::BlockThrottle];

const MIB: u64 = 1 << 20;
const KNOWN: [u64; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 512 << 10];

pub(super) fn wholes(rig: &Rig, ledger: &Ledger) -> Result<Vec<Whole>> {
    let device = LoopDevice::new(128 * MIB)?;
    let group = BlockGroup::new()?;
    let limits = Limits {
        read_iops: Some(2000),
        read_bytes_per_second: Some(40_000_000),
        ..Limits::default()
    };
    group.limit(device.number()?, limits)?;
    let mut wanted: Vec<(u64, u32)> = Vec::new();
    for bytes in [8 << 10, 32 << 10, 128 << 10, 384 << 10] {
        wanted.extend([1, 8, 64].map(|depth| (bytes, depth)));
    }
    wanted.extend([2, 4, 16, 64].map(|depth| (4 << 10, depth)));
    let known = KNOWN.iter().flat_map(|&bytes| [1, 32].map(|depth| (bytes, depth)));
    let known: Vec<(u64, u32)> = known.collect();
    let measure = |wanted: &[(u64, u32)]| {
        let job =
            |&(bytes, depth): &(u64, u32)| Job::timed(name(bytes, depth), "randread", bytes, depth);
        let jobs: Vec<Job> = wanted.iter().map(job).collect();
        rig.undisturbed(|| rig.jobs(Some(&group), Some(device.path()), &jobs))
    };
    let stages = measure(&known)?;
    let at = |depth: u32| {
        let of_size = |&bytes: &u64| job(&stages, &name(bytes, depth));
        KNOWN.iter().map(of_size).collect::<Result<Vec<_>>>()
    };
    let path = of_pair(Pipe::Device, "device", at(1)?, at(32)?);
    let forecast = |&(bytes, depth): &(u64, u32)| {
        Forecast::new(
            Subject::Sizes,
            Kind::Interpolation,
            format!("{} reads, {depth} in flight", size(bytes)),
            "one device",
            Unit::BytesPerSecond,
            (&path, even(bytes, depth)),
        )
    };
    let forecasts: Vec<Forecast> = wanted.iter().map(forecast).collect();
    ledger.write(&forecasts)?;
    let found = measure(&wanted)?;
    let whole = |(forecast, &(bytes, depth)): (&Forecast, &(u64, u32))| {
        Ok(forecast.whole(job(&found, &name(bytes, depth))?))
    };
    forecasts.iter().zip(&wanted).map(whole).collect()
}

fn name(bytes: u64, depth: u32) -> String {
    format!("{bytes} at {depth}")
}
