//! What the program predicts of a Ceph cluster, held against real ones: throughput, kills under load, rebuild time.
//!
//! Each prediction is the program's own (`rubus cluster size`) and is printed before its measurement begins. The tables come out as
//! Markdown.

mod kills;
mod rebuild;
mod throughput;

use std::fs;
use std::io::{Write, stdout};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde_json::Value;

use crate::cache::Cache;
use crate::ceph::{Cluster, Settings};
use crate::tools;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Measurement {
    /// Large writes and reads at three link rates and with four layouts
    Throughput,
    /// OSDs killed during acknowledged writes, and every object read back
    Kills,
    /// Time until a lost OSD's data is whole again
    Rebuild,
}

/// Measures, and gives the table with what was found.
///
/// # Errors
/// When the cluster or the program fails.
pub fn measure(cache: &Cache, rubus: &Path, what: Measurement) -> Result<String> {
    match what {
        Measurement::Throughput => throughput::table(cache, rubus),
        Measurement::Kills => kills::table(cache),
        Measurement::Rebuild => rebuild::table(cache, rubus),
    }
}

/// A layout that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Copies(u32),
    Code(u32, u32),
}

impl Shape {
    const ALL: [Shape; 4] =
        [Shape::Copies(3), Shape::Code(2, 1), Shape::Code(2, 2), Shape::Code(3, 1)];

    fn name(self) -> String {
        match self {
            Shape::Copies(copies) => format!("{copies}x"),
            Shape::Code(data, parity) => format!("{data}+{parity}"),
        }
    }

    /// Failure domains of an object, and data chunks among them.
    fn width_and_data(self) -> (u32, u32) {
        match self {
            Shape::Copies(copies) => (copies, 1),
            Shape::Code(data, parity) => (data + parity, data),
        }
    }

    /// Placement groups for about 100 per OSD, as a power of two.
    fn groups(self, osds: u32) -> u32 {
        let wanted = f64::from(osds * 100) / f64::from(self.width_and_data().0);
        2_f64.powf(wanted.log2().round()) as u32
    }

    fn make_pool(self, cluster: &Cluster, name: &str, osds: u32) -> Result<()> {
        let groups = self.groups(osds);
        match self {
            Shape::Copies(copies) => cluster.replicated_pool(name, groups, copies)?,
            Shape::Code(data, parity) => cluster.coded_pool(name, groups, data, parity, false)?,
        }
        cluster.wait_clean(Duration::from_secs(180))
    }
}

fn remove_pool(cluster: &Cluster, name: &str) -> Result<()> {
    let words = ["osd", "pool", "rm", name, name, "--yes-i-really-really-mean-it"];
    cluster.ceph(&words).map(|_| ())
}

/// What the program predicts for a cluster like the lab's: `osds` boards on this link, a client that is not the limit.
fn predicted(rubus: &Path, osds: u32, link: &str, shape: Shape, more: &[&str]) -> Result<Value> {
    let osds = osds.to_string();
    let mut command = Command::new(rubus);
    command
        .args(["cluster", "size", "--json", "--board", "mini-pc"])
        .args(["--release", "trixie", "--client-link", "10Gbit", "--nodes", &osds])
        .args(["--link", link])
        .args(more);
    match shape {
        Shape::Copies(copies) => command.args(["--replica", &copies.to_string()]),
        Shape::Code(..) => command.args(["--ec", &shape.name()]),
    };
    serde_json::from_slice(&tools::run(&mut command)?).context("the prediction is not JSON")
}

/// A number in a JSON value, by its path.
fn number(value: &Value, path: &str) -> Result<f64> {
    let found = value.pointer(path).and_then(Value::as_f64);
    found.with_context(|| format!("no number {path} in {value}"))
}

/// A value with its interval.
#[derive(Clone, Copy, Debug)]
struct Interval {
    value: f64,
    low: f64,
    high: f64,
}

impl Interval {
    fn at(value: &Value, path: &str) -> Result<Interval> {
        let part = |name: &str| number(value, &format!("{path}/{name}"));
        Ok(Interval { value: part("value")?, low: part("low")?, high: part("high")? })
    }

    /// In other units: `7.8 (7.2 to 8.1)`.
    fn words(self, unit: f64) -> String {
        let [value, low, high] = [self.value, self.low, self.high].map(|part| part / unit);
        format!("{value:.1} ({low:.1} to {high:.1})")
    }
}

/// Median and 90th percentile of errors without their signs, the latter the smallest that nine tenths do not exceed.
fn median_and_ninetieth(errors: &[f64]) -> (f64, f64) {
    let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let rank = (share * sizes.len() as f64).ceil() as usize;
        sizes.get(rank.max(1) - 1).copied().unwrap_or(0.0)
    };
    (at(0.5), at(0.9))
}

/// Seconds that the cluster's processes have run and have waited for a processor so far.
#[derive(Clone, Copy, Debug)]
struct Processors {
    ran_s: f64,
    waited_s: f64,
}

impl Processors {
    fn now(cluster: &Cluster) -> Processors {
        let (mut ran, mut waited) = (0, 0);
        for process in cluster.processes() {
            let threads = fs::read_dir(format!("/proc/{process}/task"));
            for thread in threads.into_iter().flatten().flatten() {
                let text = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
                let mut words = text.split_whitespace().map(|word| word.parse().unwrap_or(0));
                ran += words.next().unwrap_or(0_u64);
                waited += words.next().unwrap_or(0_u64);
            }
        }
        Processors { ran_s: ran as f64 / 1e9, waited_s: waited as f64 / 1e9 }
    }
}

fn say(line: &str) {
    // Progress that cannot be shown is no failure.
    let _ = writeln!(stdout(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ninetieth_percentile_is_the_smallest_that_nine_tenths_do_not_exceed() {
        let errors = [0.1, -0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, -1.0];
        assert_eq!(median_and_ninetieth(&errors), (0.5, 0.9));
        assert_eq!(median_and_ninetieth(&[-0.3]), (0.3, 0.3));
    }

    #[test]
    fn placement_groups_are_those_of_the_program() {
        let groups = Shape::ALL.map(|shape| shape.groups(4));
        assert_eq!(groups, [128, 128, 128, 128]);
    }
}
