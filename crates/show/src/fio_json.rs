//! A run in fio's JSON format, so that the tools built around fio can read it.
//!
//! Field names and units follow fio 3's `--output-format=json` ("Interpreting the output", fio's
//! manual): `bw` in KiB/s, `bw_bytes` in bytes/s, times in milliseconds, latencies in nanoseconds.
//! What rubus does not measure is left out rather than filled with zeros, except where fio's
//! readers expect both directions in every job: the idle direction is all zeros there, as in fio.

use rubus_core::result::{JobResult, Run};
use rubus_core::spec::{Direction, Pattern};
use serde_json::{Value, json};

/// Runs as one fio JSON object, pretty-printed; the jobs of all runs stand in one list, as when fio
/// is given several files.
pub fn render(runs: &[&Run]) -> String {
    let first = runs.first();
    let jobs: Vec<Value> = runs
        .iter()
        .flat_map(|run| run.results.iter().map(|result| job(run, result)))
        .collect();
    let object = json!({
        // Readers look for a version of the form "fio-3.x" to pick their parser.
        "fio version": "fio-3.36",
        "rubus version": first.map(|run| &run.rubus_version),
        "time": first.map(|run| &run.started),
        "global options": { "randseed": first.map(|run| run.seed.to_string()) },
        "jobs": jobs,
    });
    // A value tree made of strings, numbers and maps cannot fail to serialise.
    serde_json::to_string_pretty(&object).unwrap_or_default()
}

fn job(run: &Run, result: &JobResult) -> Value {
    let idle = json!({
        "io_bytes": 0, "io_kbytes": 0, "bw_bytes": 0, "bw": 0, "iops": 0.0, "runtime": 0,
        "total_ios": 0,
        "slat_ns": latency_of_nothing(), "clat_ns": latency_of_nothing(), "lat_ns": latency_of_nothing(),
        "bw_mean": 0.0, "bw_dev": 0.0, "iops_mean": 0.0, "iops_stddev": 0.0,
    });
    let (read, write) = match result.direction {
        Direction::Read => (direction(result), idle),
        Direction::Write => (idle, direction(result)),
    };
    // fio gives the job's own share of one core. The split between program and kernel is known of
    // the whole machine only, so it is applied to what this process used.
    let own_percent = result.cpu_ns_per_io * result.iops.value / 1e9 * 100.0;
    let (user, system) = (result.cpu.user, result.cpu.system);
    let user_part = if user + system > 0.0 {
        user / (user + system)
    } else {
        0.5
    };
    json!({
        "jobname": result.job,
        "groupid": 0,
        "error": 0,
        "elapsed": result.elapsed_s.ceil() as u64,
        "job options": options(run, result),
        "read": read,
        "write": write,
        "trim": { "io_bytes": 0, "io_kbytes": 0, "bw_bytes": 0, "bw": 0, "iops": 0.0, "runtime": 0, "total_ios": 0 },
        "job_runtime": (result.elapsed_s * 1000.0).round() as u64,
        "usr_cpu": own_percent * user_part,
        "sys_cpu": own_percent * (1.0 - user_part),
    })
}

fn options(run: &Run, result: &JobResult) -> Value {
    let rw = match (result.pattern, result.direction) {
        (Pattern::Sequential, Direction::Read) => "read",
        (Pattern::Sequential, Direction::Write) => "write",
        (Pattern::Random, Direction::Read) => "randread",
        (Pattern::Random, Direction::Write) => "randwrite",
    };
    let mut options = json!({
        "name": result.job,
        "rw": rw,
        "bs": result.block_bytes.to_string(),
        "iodepth": result.queue_depth.to_string(),
        "numjobs": "1",
        "size": run.target.region_bytes.to_string(),
        "filename": run.target.path,
        "direct": if run.target.access == rubus_core::result::Access::Direct { "1" } else { "0" },
    });
    if result.commit {
        options["fdatasync"] = json!("1");
    }
    options
}

fn direction(result: &JobResult) -> Value {
    let bytes = result.operations * u64::from(result.block_bytes);
    let bandwidth = result.bytes_per_second.value;
    let iops_deviation = deviation(&result.iops);
    json!({
        "io_bytes": bytes,
        "io_kbytes": bytes / 1024,
        "bw_bytes": bandwidth.round() as u64,
        "bw": (bandwidth / 1024.0).round() as u64,
        "iops": result.iops.value,
        "runtime": (result.elapsed_s * 1000.0).round() as u64,
        "total_ios": result.operations,
        "bw_mean": bandwidth / 1024.0,
        "bw_dev": deviation(&result.bytes_per_second) / 1024.0,
        "iops_mean": result.iops.value,
        "iops_stddev": iops_deviation,
        "slat_ns": latency_of_nothing(),
        "clat_ns": latency(result),
        "lat_ns": latency(result),
    })
}

/// The standard error that belongs to a 95 % interval, the nearest thing to fio's deviation.
fn deviation(estimate: &rubus_core::estimate::Estimate) -> f64 {
    let half_width = (estimate.high - estimate.low) / 2.0;
    if half_width.is_finite() {
        half_width / 1.96
    } else {
        0.0
    }
}

fn latency(result: &JobResult) -> Value {
    // Little's law: the mean time in the system is the number in it over the throughput.
    let mean = match result.iops.value {
        rate if rate > 0.0 => f64::from(result.queue_depth) * 1e9 / rate,
        _ => 0.0,
    };
    let mut percentiles = serde_json::Map::new();
    let measured = &result.latency_ns;
    for (name, value) in [
        ("50.000000", measured.p50),
        ("90.000000", measured.p90),
        ("99.000000", measured.p99),
        ("99.900000", measured.p99_9),
    ] {
        if let Some(value) = value {
            percentiles.insert(name.to_string(), json!(value));
        }
    }
    json!({
        "max": measured.max.unwrap_or(0),
        "mean": mean,
        "N": result.operations,
        "percentile": percentiles,
    })
}

fn latency_of_nothing() -> Value {
    json!({ "min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_core::fixture;

    #[test]
    fn fios_readers_find_what_they_look_for() {
        let run = fixture::slow_sd_card_run();
        let parsed: Value = serde_json::from_str(&render(&[&run])).expect("valid JSON");
        let job = &parsed["jobs"][2];
        assert_eq!(job["jobname"], "random-read");
        assert_eq!(job["job options"]["rw"], "randread");
        assert_eq!(job["job options"]["bs"], "4096");
        assert_eq!(job["job options"]["iodepth"], "1");
        assert_eq!(job["read"]["bw_bytes"], 6_590_000);
        assert_eq!(job["read"]["clat_ns"]["percentile"]["99.000000"], 1_020_000);
        assert_eq!(job["write"]["iops"], 0.0);
        // Little's law: one in flight at 1609 per second is 622 µs each.
        let mean = job["read"]["lat_ns"]["mean"].as_f64().expect("a number");
        assert!((mean - 621_548.0).abs() < 1.0, "{mean}");
    }
}
