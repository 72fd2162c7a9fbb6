//! Time until the data of a lost OSD is whole again on the others.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::{Cluster, Interval, Settings, Shape, number, predicted, remove_pool, say};
use crate::cache::Cache;

const OSDS: u32 = 5;
/// Sparse, of which [`FILLED`] is written.
const OSD_BYTES: u64 = 20_000_000_000;
const LINK: &str = "100mbit";
/// While the pool is filled.
const WIDE_LINK: &str = "10gbit";
/// How full the cluster is, in percent of what it holds safely.
const FILLED: &str = "10";
const OBJECT_BYTES: f64 = 4_194_304.0;
const LOST: u32 = 2;

pub(super) fn table(cache: &Cache, rubus: &Path) -> Result<String> {
    let settings = Settings {
        osds: OSDS,
        osd_bytes: OSD_BYTES,
        link: Some(WIDE_LINK.into()),
        ..Settings::default()
    };
    let mut forecasts = Vec::new();
    for shape in Shape::ALL {
        let disk = OSD_BYTES.to_string();
        let more = ["--filled", FILLED, "--disk", &disk];
        let found = predicted(rubus, OSDS, LINK, shape, &more)?;
        let hours = Interval::at(&found, "/rebuild/restore_h")?;
        let seconds = Interval {
            value: hours.value * 3600.0,
            low: hours.low * 3600.0,
            high: hours.high * 3600.0,
        };
        let lost = number(&found, "/rebuild/lost_bytes")?;
        say(&format!("predicted {}: {} s", shape.name(), seconds.words(1.0)));
        forecasts.push((shape, seconds, lost));
    }
    let cluster = Cluster::start(cache, &settings)?;
    // What is reported may be a second old, not five.
    cluster.ceph(&["config", "set", "global", "mgr_stats_period", "1"])?;
    // A placement group whose log still names all its objects is recovered by the log, one that has been written to for longer is
    // backfilled. The logs here are so short that it is as on a disk in use.
    for (option, value) in [
        ("osd_min_pg_log_entries", "2"),
        ("osd_max_pg_log_entries", "3"),
        ("osd_pg_log_trim_min", "1"),
        ("osd_target_pg_log_entries_per_osd", "0"),
    ] {
        cluster.ceph(&["config", "set", "osd", option, value])?;
    }
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

fn limit_links(cluster: &Cluster, rate: &str) -> Result<()> {
    (0..OSDS).try_for_each(|osd| cluster.limit_link(osd, rate))
}

/// Fills a pool so that an OSD has these bytes of chunks, loses one, and waits until all is whole.
fn measured(cluster: &Cluster, shape: Shape, lost: f64) -> Result<f64> {
    const POOL: &str = "lost";
    shape.make_pool(cluster, POOL, OSDS)?;
    limit_links(cluster, WIDE_LINK)?;
    let (width, data) = shape.width_and_data();
    let bytes = lost * f64::from(OSDS) * f64::from(data) / f64::from(width);
    let objects = ((bytes / OBJECT_BYTES).round() as u64).to_string();
    let words = ["bench", "-p", POOL, "900", "write", "-t", "16", "--max-objects", &objects];
    cluster.run("rados", &[&words[..], &["--no-cleanup"]].concat())?;
    cluster.wait_clean(Duration::from_secs(120))?;
    limit_links(cluster, LINK)?;
    cluster.kill_osd(LOST, OSDS - 1)?;
    let osd = LOST.to_string();
    // Until the placement groups are reported as they are now, they would look whole.
    cluster.wait("the loss is seen", Duration::from_secs(30), || {
        Ok(cluster.json(&["pg", "stat"])?["pg_summary"].to_string().contains("undersized"))
    })?;
    // As `mon_osd_down_out_interval` does after 600 s.
    cluster.ceph(&["osd", "out", &osd])?;
    let start = Instant::now();
    cluster.wait_clean(Duration::from_secs(900))?;
    let took = start.elapsed().as_secs_f64();
    remove_pool(cluster, POOL)?;
    cluster.restart_osd(LOST)?;
    cluster.ceph(&["osd", "in", &osd])?;
    cluster.wait_up(OSDS, Duration::from_secs(90))?;
    Ok(took)
}
