//! Time until the data of a lost OSD is whole again on the others.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Signal, kill_process};

use super::{Cluster, Interval, Settings, Shape, number, predicted, remove_pool, say};
use crate::cache::Cache;

const OSDS: u32 = 5;
const LINK: &str = "100mbit";
/// How full the cluster is, in percent of what it holds safely.
const FILLED: &str = "10";
const OBJECT_BYTES: f64 = 4_194_304.0;
const LOST: u32 = 2;

pub(super) fn table(cache: &Cache, rubus: &Path) -> Result<String> {
    let settings = Settings {
        osds: OSDS,
        osd_bytes: 10_000_000_000,
        link: Some(LINK.into()),
        ..Settings::default()
    };
    let mut forecasts = Vec::new();
    for shape in Shape::ALL {
        let found = predicted(rubus, OSDS, LINK, shape, &["--filled", FILLED])?;
        let hours = Interval::at(&found, "/rebuild/restore_h")?;
        let seconds = Interval {
            value: hours.value * 3600.0,
            low: hours.low * 3600.0,
            high: hours.high * 3600.0,
        };
        let lost = number(&found, "/rebuild/lost_bytes")?;
        say(&format!(
            "predicted {}: {} s",
            shape.name(),
            seconds.words(1.0)
        ));
        forecasts.push((shape, seconds, lost));
    }
    let cluster = Cluster::start(cache, &settings)?;
    // What is reported may be a second old, not five.
    cluster.ceph(&["config", "set", "global", "mgr_stats_period", "1"])?;
    let mut rows = Vec::new();
    for (shape, forecast, lost) in forecasts {
        let took = measured(&cluster, shape, lost)?;
        let row = format!(
            "| {} | {:.0} | {} | {took:.0} | {:+.0} % |",
            shape.name(),
            lost / 1e6,
            forecast.words(1.0),
            (forecast.value / took - 1.0) * 100.0
        );
        say(&row);
        rows.push(row);
    }
    Ok(format!(
        "| layout | lost, MB | predicted, s | measured, s | error |\n|---|---:|---|---:|---:|\n{}\n",
        rows.join("\n")
    ))
}

/// Fills a pool so that an OSD has these bytes of chunks, loses one, and waits until all is whole.
fn measured(cluster: &Cluster, shape: Shape, lost: f64) -> Result<f64> {
    const POOL: &str = "lost";
    shape.make_pool(cluster, POOL, OSDS)?;
    let (width, data) = shape.width_and_data();
    let bytes = lost * f64::from(OSDS) * f64::from(data) / f64::from(width);
    let objects = ((bytes / OBJECT_BYTES).round() as u64).to_string();
    let words = [
        "bench",
        "-p",
        POOL,
        "900",
        "write",
        "-t",
        "16",
        "--max-objects",
        &objects,
    ];
    cluster.run("rados", &[&words[..], &["--no-cleanup"]].concat())?;
    cluster.wait_clean(Duration::from_secs(120))?;
    kill_process(cluster.osd_process(LOST)?, Signal::KILL).context("it cannot be killed")?;
    let osd = LOST.to_string();
    cluster.wait("the OSD is down", Duration::from_secs(60), || {
        Ok(cluster.json(&["osd", "stat"])?["num_up_osds"] == u64::from(OSDS) - 1)
    })?;
    // As `mon_osd_down_out_interval` does after 600 s.
    cluster.ceph(&["osd", "out", &osd])?;
    let start = Instant::now();
    cluster.wait("recovery begins", Duration::from_secs(30), || {
        Ok(cluster.json(&["pg", "stat"])?["pg_summary"]
            .to_string()
            .contains("remapped"))
    })?;
    cluster.wait_clean(Duration::from_secs(900))?;
    let took = start.elapsed().as_secs_f64();
    remove_pool(cluster, POOL)?;
    cluster.restart_osd(LOST)?;
    cluster.ceph(&["osd", "in", &osd])?;
    cluster.wait("all OSDs are up", Duration::from_secs(90), || {
        Ok(cluster.json(&["osd", "stat"])?["num_up_osds"] == u64::from(OSDS))
    })?;
    Ok(took)
}
