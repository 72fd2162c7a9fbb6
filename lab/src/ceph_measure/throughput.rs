//! Large writes and reads by `rubus bench rados:POOL`, at three rates of the links and with four layouts.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Cluster, Interval, Processors, Settings, Shape, median_and_ninetieth, predicted, say};
use crate::cache::Cache;
use crate::tools;

const OSDS: u32 = 4;
/// The fastest first: it takes the shortest.
const LINKS: [&str; 3] = ["200mbit", "100mbit", "50mbit"];
/// Each OSD's file, which is sparse: a benchmark writes a tenth of what the pool takes.
const OSD_BYTES: u64 = 24 << 30;
/// What a run writes at most.
const BUDGET: &str = "512MiB";
const WORKS: [(&str, &str, &str); 2] =
    [("write", "large-write", "object-write"), ("read", "large-read", "object-read")];

/// What is predicted of a layout at a rate, with as many objects in flight as the benchmark has: writes, reads.
fn forecast(rubus: &Path, shape: Shape, link: &str) -> Result<[Interval; 2]> {
    let found = predicted(rubus, OSDS, link, shape, &["--disk", "10GB"])?;
    let of = |work: &str| {
        let all = found["ceilings"].as_array().context("no ceilings")?;
        let ceiling = all.iter().find(|ceiling| ceiling["work"] == work);
        Interval::at(ceiling.context("no such work")?, "/expected_bytes_per_second")
    };
    Ok([of(WORKS[0].1)?, of(WORKS[1].1)?])
}

pub(super) fn table(cache: &Cache, rubus: &Path) -> Result<String> {
    let settings = Settings {
        osds: OSDS,
        osd_bytes: OSD_BYTES,
        link: Some(LINKS[0].into()),
        ..Settings::default()
    };
    let mut forecasts = Vec::new();
    for link in LINKS {
        for shape in Shape::ALL {
            let both = forecast(rubus, shape, link)?;
            let [write, read] = both.map(|rate| rate.words(1e6));
            say(&format!("predicted {} {link}: write {write}, read {read} MB/s", shape.name()));
            forecasts.push((shape, link, both));
        }
    }
    let cluster = Cluster::start(cache, &settings)?;
    fs::copy(rubus, cluster.place().join("rubus")).context("the program does not go in")?;
    let pool = |shape: Shape| shape.name().replace('+', "-");
    for shape in Shape::ALL {
        shape.make_pool(&cluster, &pool(shape), OSDS)?;
    }
    let (mut rows, mut errors) = (Vec::new(), Vec::new());
    for (shape, link, both) in forecasts {
        for osd in 0..OSDS {
            cluster.limit_link(osd, link)?;
        }
        let (run, used) = bench(&cluster, &pool(shape))?;
        for ((name, _, job), forecast) in WORKS.into_iter().zip(both) {
            let all = run["results"].as_array().context("no results")?;
            let found = all.iter().find(|found| found["job"] == job);
            let found = found.with_context(|| format!("no {job} in {run}"))?;
            let rate = Interval::at(found, "/bytes_per_second")?;
            let error = forecast.value / rate.value - 1.0;
            errors.push(error);
            let row = format!(
                "| {} | {} Mbit/s | {name} | {} | {} | {:+.0} % | {:.2}, {:.2}{} |",
                shape.name(),
                link.trim_end_matches("mbit"),
                forecast.words(1e6),
                rate.words(1e6),
                error * 100.0,
                used.ran_s,
                used.waited_s,
                if used.waited_s > used.ran_s { " **" } else { "" },
            );
            say(&row);
            rows.push(row);
        }
    }
    let (median, ninetieth) = median_and_ninetieth(&errors);
    Ok(format!(
        "| layout | links | work | predicted, MB/s | measured, MB/s | error | processors: ran, waited |\n\
         |---|---|---|---|---|---:|---|\n{}\n\n\
         Error: median {:.0} %, 90th percentile {:.0} % of {} rows.\n",
        rows.join("\n"),
        median * 100.0,
        ninetieth * 100.0,
        errors.len()
    ))
}

/// A run, and processors that the cluster's daemons used and waited for meanwhile, as a mean.
fn bench(cluster: &Cluster, pool: &str) -> Result<(Value, Processors)> {
    let (start, before) = (Instant::now(), Processors::now(cluster));
    let pool = format!("rados:{pool}:conf=/ceph/ceph.conf");
    let words = ["bench", &pool, "--no-history", "--no-html", "--quiet"];
    let limits = ["--budget", BUDGET, "--json", "/ceph/run.json"];
    let mut command = cluster.inside(None, "/ceph/rubus");
    tools::run(command.args(words).args(limits))?;
    let (after, elapsed) = (Processors::now(cluster), start.elapsed().as_secs_f64());
    let text = fs::read_to_string(cluster.place().join("run.json")).context("no result")?;
    let used = Processors {
        ran_s: (after.ran_s - before.ran_s) / elapsed,
        waited_s: (after.waited_s - before.waited_s) / elapsed,
    };
    Ok((serde_json::from_str(&text)?, used))
}
