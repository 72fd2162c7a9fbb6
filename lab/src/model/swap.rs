//! More memory touched than there is: pages in memory, in the compressed pool, and on a slow disk.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use rubus_advise::{Cost, Kind as Pipe, Resource, Stage, Step, Tier};
use rubus_stats::estimate::Estimate;
use serde_json::Value;

use super::Subject;
use super::case::{Forecast, Kind, Unit, Whole};
use super::ledger::Ledger;
use super::parts::even;
use super::rig::{Job, Measured, Rig};
use crate::devices::needs::Need;
use crate::devices::{BlockGroup, Limits, LoopDevice, Settings, programs};

pub(super) const ABOUT: &str = "`rubus bench memory pressure` in a group of little memory, with swap on a loop device of 400 reads per second. Alone: touches that find \
     their page in memory, reads of the swap device, and, with zswap, touches while everything that is not in memory is in its pool. \
     Predicted: touches per second at each size of the working set, from the share of its pages that is in each place. \
     All were looked at when that was written: none is held out.";
pub(super) const NEEDS: &[Need] = &[
    Need::Root,
    Need::DirectLoop,
    Need::BlockThrottle,
    Need::Zswap,
    Need::MemoryGroup,
    Need::Program("mkswap", "util-linux"),
];

const ZSWAP: &str = "/sys/module/zswap/parameters";
const PAGE_CLUSTER: &str = "/proc/sys/vm/page-cluster";
const READS: u64 = 400;
/// Shares of pages below this cannot be told from none: they are small differences of large numbers.
const NOTHING: f64 = 0.01;
/// Touches slower than this end the search; here none are.
const NO_LIMIT: &str = "10s";

/// Swap on a device, preferred to all other; off when this is dropped.
struct SwapOn<'a>(&'a LoopDevice);

impl SwapOn<'_> {
    fn new(device: &LoopDevice) -> Result<SwapOn<'_>> {
        let node = device.path().display().to_string();
        programs::run("mkswap", &[&node])?;
        programs::run("swapon", &["--priority", "100", &node])?;
        Ok(SwapOn(device))
    }
}

impl Drop for SwapOn<'_> {
    fn drop(&mut self) {
        let node = self.0.path().display().to_string();
        if let Err(error) = programs::run("swapoff", &[&node]) {
            eprintln!("could not take {node} out of use: {error:#}");
        }
    }
}

/// One size of the working set.
struct Rung {
    overcommit: f64,
    /// Touches per second, uniformly at random.
    touches: f64,
    set_bytes: f64,
    pool_bytes: f64,
    stored_bytes: f64,
    memory_bytes: f64,
}

impl Rung {
    /// Shares of the pages in memory, in the pool, and on the disk.
    fn shares(&self) -> [f64; 3] {
        let in_memory = (self.memory_bytes - self.pool_bytes).min(self.set_bytes) / self.set_bytes;
        let in_pool = (self.stored_bytes / self.set_bytes).min(1.0 - in_memory);
        [in_memory, in_pool, 1.0 - in_memory - in_pool]
    }
}

pub(super) fn wholes(rig: &Rig, ledger: &Ledger) -> Result<Vec<Whole>> {
    // On a disk: memory that swaps to memory would wait for itself.
    let device = LoopDevice::on_disk(2 << 30)?;
    let group = BlockGroup::new()?;
    let limits = Limits { read_iops: Some(READS), ..Limits::default() };
    group.limit(device.number()?, limits)?;
    let jobs = [Job::timed("disk", "randread", 4096, 1)];
    let disk = rig.undisturbed(|| rig.jobs(Some(&group), Some(device.path()), &jobs))?;
    let disk_s = 1.0 / disk.first().context("the disk was not measured")?.iops.value;
    // One page at a time.
    let _alone = Settings::set(&[(PathBuf::from(PAGE_CLUSTER), "0")])?;
    let mut wholes = Vec::new();
    for zswap in [false, true] {
        let enabled = if zswap { "Y" } else { "N" };
        let zswap_file = |name: &str| Path::new(ZSWAP).join(name);
        let wanted = [(zswap_file("enabled"), enabled), (zswap_file("max_pool_percent"), "20")];
        let _settings = Settings::set(&wanted)?;
        let _swap = SwapOn::new(&device)?;
        let measure = || pressure(rig, &group, if zswap { "2.2" } else { "1.6" });
        // Once to see where the pages are, and once more for what is predicted from that.
        let said = forecasts(&measure()?, disk_s, zswap)?;
        ledger.write(said.iter().map(|(forecast, _)| forecast))?;
        let began = SystemTime::now();
        let rungs = measure()?;
        for (forecast, overcommit) in &said {
            let is_it = |rung: &&Rung| (rung.overcommit - overcommit).abs() < 0.005;
            let rung = rungs.iter().find(is_it);
            let rung = rung.with_context(|| format!("{} was not measured", forecast.name))?;
            wholes.push(forecast.whole(&Measured {
                began,
                ..Measured::of_rate("touches", Estimate::exact(rung.touches))
            }));
        }
    }
    Ok(wholes)
}

/// What is predicted at each size that is no stage, and the size.
fn forecasts(rungs: &[Rung], disk_s: f64, zswap: bool) -> Result<Vec<(Forecast, f64)>> {
    let memory =
        rungs.iter().find(|rung| rung.overcommit < 0.9).context("no size that fits into memory")?;
    let memory_s = 1.0 / memory.touches;
    // The size at which most is in the pool and nothing on the disk tells what the pool costs.
    let pooled = rungs
        .iter()
        .filter(|rung| rung.shares()[1] > 0.02 && rung.shares()[2] < NOTHING)
        .max_by(|a, b| a.overcommit.total_cmp(&b.overcommit));
    let pool_s = match pooled {
        Some(rung) if zswap => {
            let [in_memory, in_pool, _] = rung.shares();
            (1.0 / rung.touches - in_memory * memory_s).max(0.0) / in_pool
        }
        _ => memory_s,
    };
    let tier = |share: f64, name: &str, seconds: f64| Tier {
        share: Estimate::exact(share),
        below: vec![Step::Stage(Stage {
            kind: Pipe::Swap,
            resource: Some(Resource::one(name)),
            cost: Cost::fixed(Estimate::exact(seconds)),
        })],
    };
    let is_stage = |rung: &&Rung| {
        rung.overcommit < 1.01 || pooled.is_some_and(|pooled| pooled.overcommit == rung.overcommit)
    };
    let judged = rungs.iter().filter(|rung| !is_stage(rung)).map(|rung| {
        let [in_memory, in_pool, on_disk] = rung.shares();
        let path = [Step::Tiers(vec![
            tier(in_memory, "memory", memory_s),
            tier(in_pool, "pool", pool_s),
            tier(on_disk, "swap disk", disk_s),
        ])];
        let with = if zswap { "zswap, then disk" } else { "disk" };
        let forecast = Forecast::new(
            Subject::Swap,
            // The share of the pages that is on the disk is seen at the very size.
            Kind::Identity,
            format!("{with}: {:.2} times the memory", rung.overcommit),
            "touches",
            Unit::TouchesPerSecond,
            (&path, even(4096, 1)),
        );
        // What counts as nothing on the disk was set after such rungs had been seen.
        (forecast.chosen(), rung.overcommit)
    });
    Ok(judged.collect())
}

fn pressure(rig: &Rig, group: &BlockGroup, most: &str) -> Result<Vec<Rung>> {
    let mut command = rig.command(Some(group));
    command.args(["bench", "memory", "pressure", "--seconds", "2"]);
    command.args(["--limit", NO_LIMIT, "--max-working-set", most]);
    command.args(["--json", "-", "--no-history", "--quiet"]);
    let output = command.output().context("could not start the program")?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let run: Value = serde_json::from_slice(&output.stdout).context("its JSON")?;
    let pressure = &run["memory"]["pressure"][0];
    let number = |value: &Value| value.as_f64().with_context(|| format!("{value} is no number"));
    let memory_bytes = number(&pressure["group"]["memory_bytes"])?;
    let mut rungs = Vec::new();
    for rung in pressure["rungs"].as_array().context("no sizes")? {
        let phases = rung["phases"].as_array().into_iter().flatten();
        let Some(phase) = phases.into_iter().find(|phase| phase["access"] == "uniform") else {
            continue;
        };
        rungs.push(Rung {
            overcommit: number(&rung["overcommit"])?,
            touches: number(&phase["touches"])? / number(&phase["elapsed_s"])?,
            set_bytes: number(&rung["working_set_bytes"])?,
            pool_bytes: rung["pool_bytes"].as_f64().unwrap_or(0.0),
            stored_bytes: rung["stored_bytes"].as_f64().unwrap_or(0.0),
            memory_bytes,
        });
    }
    Ok(rungs)
}
