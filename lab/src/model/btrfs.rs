//! Compression by btrfs before a slow device: each method, with data that compress more and less.

use anyhow::Result;
use rubus_advise::{Kind as Pipe, Operation, Step};
use rubus_stats::estimate::Estimate;

use super::Subject;
use super::case::{Forecast, Kind, Unit, Whole, share_of_second};
use super::commits::Mounted;
use super::ledger::Ledger;
use super::parts::{operation, rate};
use super::rig::{Job, Measured, Rig, job};
use crate::devices::needs::Need;
use crate::devices::{LimitForAll, Limits, LoopDevice, programs};

pub(super) const ABOUT: &str = "btrfs with each method on a loop device. Alone: the same file written and read where the device is not limited (what \
     the processors and the filesystem can), how many bytes of it arrive at the device, and the device's limit of 24 MB/s. Predicted: \
     writing it (with the final flush) and reading it (with an empty cache) at that limit.";
pub(super) const NEEDS: &[Need] = &[
    Need::Root,
    Need::Loop,
    Need::ThrottleForAll,
    Need::Filesystem("btrfs"),
    Need::Program("mkfs.btrfs", "btrfs-progs"),
];

const MIB: u64 = 1 << 20;
const LIMIT: u64 = 24_000_000;
/// btrfs compresses extents of this size.
pub(super) const EXTENT: u64 = 128 << 10;
/// Extents in flight: what may be dirty, or is read ahead.
pub(super) const EXTENTS: u32 = 32;
/// From so busy beside the other one, both stages decide together.
const AS_NARROW: f64 = 0.8;
const METHODS: [&str; 5] = ["zlib:3", "lzo", "zstd:1", "zstd:3", "zstd:9"];
/// Percent of each block that are zeros, how such data are called, and the file's bytes: about a second's work at the limit.
const DATA: [(u32, &str, u64); 3] = [
    (0, "random data", 32 * MIB),
    (50, "half zeros", 48 * MIB),
    (85, "six sevenths zeros", 128 * MIB),
];

pub(super) fn wholes(rig: &Rig, ledger: &Ledger) -> Result<Vec<Whole>> {
    let device = LoopDevice::new(768 * MIB)?;
    let node = device.path().display().to_string();
    programs::run("mkfs.btrfs", &["-q", "-f", "-m", "single", &node])?;
    let limit = LimitForAll::new(device.number()?, Limits::default())?;
    let mut wholes = Vec::new();
    for method in METHODS {
        let options = format!("noatime,compress-force={method}");
        let mounted = Mounted::new(device.path(), &options)?;
        for (zeros, data, bytes) in DATA {
            let write = file("write", zeros, bytes).with("end_fsync", 1);
            let jobs = [write, file("read", zeros, bytes)];
            let run = || rig.jobs(None, Some(mounted.path()), &jobs);
            limit.change(Limits::default())?;
            let before = written(&device)?;
            let alone = rig.fastest(2, run)?;
            // Twice a file that is written, and twice one to be read.
            let arrived = (written(&device)? - before) as f64 / (4 * bytes) as f64;
            let mut forecasts = Vec::new();
            for (direction, verb) in [("write", "writing"), ("read", "reading")] {
                let path = path(job(&alone, direction)?, arrived);
                let operation = operation(EXTENT, EXTENTS);
                let forecast = Forecast::new(
                    Subject::Btrfs,
                    kind(&path, &operation),
                    format!("{verb} {data}, {method}"),
                    format!("{verb} {data}"),
                    Unit::BytesPerSecond,
                    (&path, operation),
                );
                forecasts.push((forecast, direction));
            }
            ledger.write(forecasts.iter().map(|(forecast, _)| forecast))?;
            limit.change(Limits {
                read_bytes_per_second: Some(LIMIT),
                write_bytes_per_second: Some(LIMIT),
                ..Limits::default()
            })?;
            let both = rig.fastest(1, run)?;
            limit.change(Limits::default())?;
            for (forecast, direction) in &forecasts {
                wholes.push(forecast.whole(job(&both, direction)?));
            }
        }
    }
    Ok(wholes)
}

/// A job that goes over a file of such data.
pub(super) fn file(rw: &str, zeros: u32, bytes: u64) -> Job {
    // What lies in extents that were reserved before is not compressed.
    Job::once(rw, rw, MIB, bytes)
        .with("buffer_compress_percentage", zeros)
        .with("fallocate", "none")
}

/// Where either the processors or the disk have far less to do, what the other did alone is what is predicted.
fn kind(path: &[Step], operation: &Operation) -> Kind {
    if share_of_second(path, operation) < AS_NARROW { Kind::Identity } else { Kind::Composition }
}

/// The processors' work on the data as they are, and what is left of them on the device.
fn path(alone: &Measured, arrived: f64) -> Vec<Step> {
    vec![
        rate(Pipe::Compression, "processor", alone.bytes_per_second),
        Step::Bytes { factor: Estimate::exact(arrived), whole_bytes: 1 },
        rate(Pipe::Device, "device", Estimate::exact(LIMIT as f64)),
    ]
}

/// Bytes written to the device since it was made, as the kernel counts them.
fn written(device: &LoopDevice) -> Result<u64> {
    let name = device.path().file_name().unwrap_or_default();
    let path = std::path::Path::new("/sys/block").join(name).join("stat");
    let text = std::fs::read_to_string(path)?;
    let sectors = text.split_whitespace().nth(6);
    Ok(512 * sectors.and_then(|field| field.parse::<u64>().ok()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_disk_alone_limits_is_an_identity() {
        let kind_at = |alone: f64| {
            let found = Measured::of_rate("", Estimate::exact(alone));
            kind(&path(&found, 1.0), &operation(EXTENT, EXTENTS))
        };
        assert_eq!(kind_at(400e6), Kind::Identity);
        assert_eq!(kind_at(24e6), Kind::Composition);
        // The same with the processors.
        assert_eq!(kind_at(2e6), Kind::Identity);
    }
}
