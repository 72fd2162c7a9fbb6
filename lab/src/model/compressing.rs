//! Compression by btrfs where nothing but the processors is the limit.

use std::fs::File;
use std::io::Read;

use anyhow::{Context, Result};
use rubus_advise::{Kind as Pipe, Step};
use rubus_stats::estimate::Estimate;
use serde_json::Value;

use super::Subject;
use super::btrfs::{EXTENT, EXTENTS, file};
use super::case::{Forecast, Kind, Unit, Whole};
use super::commits::Mounted;
use super::ledger::Ledger;
use super::parts::{operation, rate};
use super::rig::{Measured, Rig, bench, job};
use crate::devices::needs::Need;
use crate::devices::{LoopDevice, mark, programs};

pub(super) const ABOUT: &str = "btrfs on a loop device over memory, which nothing limits. Alone: the program's own figure for compressing such data with all \
     processors, outside any filesystem (`rubus bench cpu compression`); and a file of it written without compression. Predicted: writing it with compression, to \
     the final flush, the processors doing one thing after the other. With `compress-force`, as here, btrfs leaves the rest of 512 KiB alone \
     after a piece that does not shrink, so of random data it tries a quarter. Both this and the flush of zlib after each page were learnt from zlib:3; zlib:6 \
     differs from it by its level only.";
pub(super) const NEEDS: &[Need] = &[
    Need::Root,
    Need::Loop,
    Need::Filesystem("btrfs"),
    Need::Program("mkfs.btrfs", "btrfs-progs"),
];

const MIB: u64 = 1 << 20;
/// What `rubus bench cpu` reads at most.
const SAMPLE_BYTES: usize = 8 << 20;
const METHODS: [&str; 4] = ["zlib:3", "zlib:6", "zstd:3", "zstd:9"];
/// The one from which something was learnt.
const LOOKED_AT: &str = "zlib:3";
/// Percent of each page that are zeros, and how such data are called.
const DATA: [(u32, &str); 3] = [(0, "random data"), (50, "half zeros"), (85, "six sevenths zeros")];
/// Pieces that btrfs compresses one after the other (512 KiB, `run_delalloc_compressed`). After one that does not shrink it leaves
/// the others as they are (`compress_file_range`, `fs/btrfs/inode.c`).
const PIECES: f64 = 4.0;
/// A second's work and more.
const FILE_BYTES: u64 = 320 * MIB;

pub(super) fn wholes(rig: &Rig, ledger: &Ledger) -> Result<Vec<Whole>> {
    let device = LoopDevice::new(1024 * MIB)?;
    let node = device.path().display().to_string();
    programs::run("mkfs.btrfs", &["-q", "-f", "-m", "single", &node])?;
    let mut wholes = Vec::new();
    for (zeros, data) in DATA {
        let write = file("write", zeros, FILE_BYTES).with("end_fsync", 1);
        let on = |options: &str| -> Result<Measured> {
            let mounted = Mounted::new(device.path(), options)?;
            let jobs = std::slice::from_ref(&write);
            let run = || rig.jobs(None, Some(mounted.path()), jobs);
            Ok(job(&rig.fastest(2, run)?, "write")?.clone())
        };
        let plain = on("noatime")?;
        let speeds = compression(rig, zeros)?;
        for method in METHODS {
            let speed = speeds.by(method)?;
            let speed = match zeros {
                0 => speed.scaled(PIECES),
                _ => speed,
            };
            let mut forecast = Forecast::new(
                Subject::Compressing,
                Kind::Blind,
                format!("writing {data}, {method}"),
                format!("writing {data}"),
                Unit::BytesPerSecond,
                (&path(speed, &plain), operation(EXTENT, EXTENTS)),
            );
            if method == LOOKED_AT || zeros == 0 {
                forecast = forecast.chosen();
            }
            ledger.write([&forecast])?;
            wholes.push(forecast.whole(&on(&format!("noatime,compress-force={method}"))?));
        }
    }
    Ok(wholes)
}

/// What takes the processors' time for each extent, one thing after the other: the method and the filesystem.
fn path(method: Estimate, plain: &Measured) -> Vec<Step> {
    let of = |kind: Pipe, bytes_per_second| rate(kind, "processors", bytes_per_second);
    vec![of(Pipe::Compression, method), of(Pipe::Filesystem, plain.bytes_per_second)]
}

/// What `rubus bench cpu` says of a file's data, by method.
struct Speeds(Vec<Value>);

/// How fast the processors handle data like the jobs', in which `zeros` percent of each page are zeros.
fn compression(rig: &Rig, zeros: u32) -> Result<Speeds> {
    let files = mark::directory()?;
    std::fs::write(files.path().join("data"), like_a_jobs(zeros)?)?;
    let mut command = rig.command(None);
    let methods = METHODS.join(",");
    command.args(["bench", "cpu", "compression", "--methods", &methods]);
    command.arg("--data").arg(files.path());
    Ok(Speeds::of(&bench(command)?))
}

/// As `buffer_compress_percentage` makes them: of each page so much is zeros, behind what is random.
fn like_a_jobs(zeros: u32) -> Result<Vec<u8>> {
    const PAGE: usize = 4096;
    let mut data = vec![0; SAMPLE_BYTES];
    let mut random = File::open("/dev/urandom")?;
    for page in data.chunks_mut(PAGE) {
        let random_bytes = PAGE * (100 - zeros as usize) / 100;
        random.read_exact(&mut page[..random_bytes])?;
    }
    Ok(data)
}

impl Speeds {
    fn of(run: &Value) -> Speeds {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let mut samples = list(&run["processor"]["compression"]["samples"]);
        samples.retain(|sample| sample["source"]["kind"] == "files");
        let mut rows: Vec<Value> =
            samples.iter().flat_map(|sample| list(&sample["rows"])).collect();
        rows.retain(|row| row["cut"] == "extents");
        Speeds(rows)
    }

    /// Bytes per second that all processors compress.
    fn by(&self, method: &str) -> Result<Estimate> {
        let row = self.0.iter().find(|row| row["method"] == method);
        let all = &row.with_context(|| format!("{method} was not measured"))?["all"];
        Ok(serde_json::from_value(all["compress_bytes_per_second"].clone())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_advise::predict;
    use serde_json::json;

    #[test]
    fn what_was_measured_of_files_is_found_by_method() {
        let rate = |value: f64| json!({"value": value, "low": value, "high": value});
        let row = |cut: Value, compress: f64| {
            json!({"method": "zstd:3", "cut": cut,
                "all": {"compress_bytes_per_second": rate(compress)}})
        };
        let sample = |kind: &str, compress: f64| {
            json!({"source": {"kind": kind},
                "rows": [row(json!({"pages": {"bytes": 4096}}), 1.0), row(json!("extents"), compress)]})
        };
        let samples = [sample("corpus", 2.0), sample("files", 3.0)];
        let speeds = Speeds::of(&json!({"processor": {"compression": {"samples": samples}}}));
        assert_eq!(speeds.by("zstd:3").unwrap(), Estimate::exact(3.0));
        assert!(speeds.by("zlib:3").is_err());
    }

    #[test]
    fn the_processors_do_one_thing_after_the_other() {
        let plain = Measured::of_rate("", Estimate::exact(600e6));
        let path = path(Estimate::exact(300e6), &plain);
        let found = predict(&path, &operation(EXTENT, EXTENTS));
        assert!((found.bytes_per_second.value / 200e6 - 1.0).abs() < 1e-6);
    }
}
