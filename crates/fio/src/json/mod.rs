//! A run in fio's JSON format, so that the tools built around fio can read it.
//!
//! Field names and units follow fio 3's `--output-format=json` ("Interpreting the output", fio's
//! manual): `bw` in KiB/s, `bw_bytes` in bytes/s, times in milliseconds, latencies in nanoseconds.
//! What rubus does not measure is left out rather than filled with zeros, except where fio itself
//! prints zeros for what did not happen: the idle direction, trims, and the time of submission.

mod latency;
mod side;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::result::{Access, JobFileJob, JobResult, Run};
use rubus_vocabulary::spec::{Direction, Pattern};
use serde_json::{Value, json};

use side::Side;

/// The version of fio whose format this is; readers look for the form "fio-3.x" to pick a parser.
const FIO_VERSION: &str = "fio-3.36";
/// fio's own number for an error of the device: EIO.
const FAILED: u32 = 5;

/// Runs as one fio JSON object, pretty-printed; the jobs of all runs stand in one list, as when fio
/// is given several files.
pub fn render(runs: &[&Run]) -> String {
    let jobs: Vec<Value> = runs.iter().flat_map(|run| jobs_of(run)).collect();
    object(runs, jobs)
}

/// Each job as a file of its own, with the name that bench-fio would give it (`randread-32-1.json`:
/// the kind, the queue depth, the copies): what fio-plot compares within a directory.
pub fn render_each(runs: &[&Run]) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = Vec::new();
    for run in runs {
        for job in jobs_of(run) {
            let options = [&job["job options"], &json!(global_options(run))].map(Value::clone);
            let option = |name: &str| {
                let found = options.iter().find_map(|options| options[name].as_str());
                found.unwrap_or_default().to_string()
            };
            let (rw, depth, copies) = (option("rw"), option("iodepth"), option("numjobs"));
            let stem = format!("{}-{depth}-{copies}", rw.replace(['/', ':'], "_"));
            let taken = |name: &str| files.iter().any(|(other, _)| other == name);
            let mut name = format!("{stem}.json");
            let mut number = 1;
            while taken(&name) {
                number += 1;
                name = format!("{stem}-{number}.json");
            }
            files.push((name, object(&[run], vec![job])));
        }
    }
    files
}

fn global_options(run: &Run) -> BTreeMap<String, String> {
    match &run.job_file {
        Some(job_file) => job_file.global_options.clone(),
        None => BTreeMap::from([("randseed".to_string(), run.seed.to_string())]),
    }
}

fn object(runs: &[&Run], jobs: Vec<Value>) -> String {
    let mut object = json!({ "fio version": FIO_VERSION });
    if let Some(run) = runs.first() {
        object["rubus version"] = json!(run.rubus_version);
        if let Some(ms) = unix_ms(&run.started) {
            object["timestamp"] = json!(ms / 1000);
            object["timestamp_ms"] = json!(ms);
        }
        object["time"] = json!(run.started);
        object["global options"] = json!(global_options(run));
    }
    object["jobs"] = json!(jobs);
    // fio lists the traffic of devices here; an empty list is what it prints without any.
    object["disk_util"] = json!([]);
    // A value tree made of strings, numbers and maps cannot fail to serialise.
    serde_json::to_string_pretty(&object).unwrap_or_default()
}

/// What fio counts as one job: the two directions of a mix, or the jobs of a reporting group.
struct FioJob<'a> {
    asked: Option<&'a JobFileJob>,
    results: Vec<&'a JobResult>,
}

fn jobs_of(run: &Run) -> Vec<Value> {
    let mut jobs: Vec<FioJob<'_>> = Vec::new();
    // What was done with whole files is no row of blocks, as which fio's readers would take it.
    for result in run.results.iter().filter(|r| !r.operation.is_of_file()) {
        let asked = run.job_file.as_ref().and_then(|job_file| {
            let mut asked = job_file.jobs.iter();
            asked.find(|job| job.name == result.job)
        });
        let joins = jobs.iter_mut().find(|job| match (asked, job.asked) {
            (Some(new), Some(old)) => {
                new.name == old.name
                    || (new.group_reporting && old.group_reporting && new.group == old.group)
            }
            _ => false,
        });
        match joins {
            Some(job) => job.results.push(result),
            None => jobs.push(FioJob { asked, results: vec![result] }),
        }
    }
    jobs.iter().map(|job| rendered(run, job)).collect()
}

fn rendered(run: &Run, job: &FioJob<'_>) -> Value {
    let side = |direction| {
        let results = job.results.iter().filter(|r| r.direction == direction);
        Side::of(results.copied())
    };
    let (read, write) = (side(Direction::Read), side(Direction::Write));
    let first = job.results[0];
    let elapsed_s = job.results.iter().map(|r| r.elapsed_s).fold(0.0, f64::max);
    let failed = job.results.iter().any(|result| {
        let failed = |doubt: &Doubt| matches!(doubt, Doubt::TargetFailed { .. });
        result.doubts.iter().any(failed)
    });
    let bins = latency::merged([&read, &write].map(|side| &side.bins));
    let (user, system) = cpu_percent(&job.results);
    let depths = job.results.iter().map(|r| r.queue_depth);
    let mut object = json!({
        "jobname": job.asked.map_or(&first.job, |asked| &asked.section),
        "groupid": job.asked.map_or(0, |asked| asked.group),
        "error": if failed { FAILED } else { 0 },
        "eta": 0,
        "elapsed": elapsed_s.ceil() as u64,
        "job options": options(run, job),
        "read": read.rendered(),
        "write": write.rendered(),
        "trim": Side::default().rendered(),
        "job_runtime": (elapsed_s * 1000.0).round() as u64,
        "usr_cpu": user,
        "sys_cpu": system,
        "iodepth_level": depth_levels(&job.results),
        "latency_ns": latency::buckets(&bins, 1, false),
        "latency_us": latency::buckets(&bins, 1_000, false),
        "latency_ms": latency::buckets(&bins, 1_000_000, true),
        "latency_depth": depths.max().unwrap_or(1),
        "latency_target": 0,
        "latency_percentile": 100.0,
        "latency_window": 0,
    });
    if let Some(description) = job.asked.and_then(|asked| asked.description.as_ref()) {
        object["desc"] = json!(description);
    }
    object
}

/// The job's own share of one core in percent, in the program and in the kernel. The split between
/// the two is known of the whole machine only, so it is applied to what this process used.
fn cpu_percent(results: &[&JobResult]) -> (f64, f64) {
    let used: f64 = results.iter().map(|r| r.cpu_ns_per_io * r.iops.value).sum();
    let own_percent = used / 1e9 * 100.0;
    let user: f64 = results.iter().map(|r| r.cpu.user).sum();
    let system: f64 = results.iter().map(|r| r.cpu.system).sum();
    let user_part = match user + system {
        all if all > 0.0 => user / all,
        _ => 0.5,
    };
    (own_percent * user_part, own_percent * (1.0 - user_part))
}

/// Shares of the operations in percent by the depth at which they ran: the queue is kept full.
fn depth_levels(results: &[&JobResult]) -> Value {
    let levels = ["1", "2", "4", "8", "16", "32", ">=64"];
    let all: u64 = results.iter().map(|r| r.operations).sum();
    let mut shares = BTreeMap::from(levels.map(|level| (level, 0.0)));
    for result in results {
        let level = levels[(result.queue_depth.max(1).ilog2() as usize).min(6)];
        *shares.entry(level).or_default() += result.operations as f64 * 100.0 / all.max(1) as f64;
    }
    json!(shares)
}

fn options(run: &Run, job: &FioJob<'_>) -> Value {
    if let Some(asked) = job.asked {
        return asked_options(run, asked, job);
    }
    let result = job.results[0];
    let mut options = json!({
        "name": result.job,
        "rw": rw(result),
        "bs": result.block_bytes.to_string(),
        "iodepth": result.queue_depth.to_string(),
        "numjobs": result.copies.unwrap_or(1).to_string(),
        "size": run.target.region_bytes.to_string(),
        "filename": run.target.path,
        "direct": if run.access_of(result) == Access::Direct { "1" } else { "0" },
    });
    if result.commit {
        options["fdatasync"] = json!("1");
    }
    options
}

/// A job's own options, with those that readers sort by even where the job file leaves them out.
fn asked_options(run: &Run, asked: &JobFileJob, job: &FioJob<'_>) -> Value {
    let mut options = asked.options.clone();
    let global = global_options(run);
    let result = job.results[0];
    let copies = match job.results.len() {
        1 => result.copies.unwrap_or(1),
        _ => 1,
    };
    for (name, value) in [
        ("rw", rw(result).to_string()),
        ("bs", result.block_bytes.to_string()),
        ("iodepth", result.queue_depth.to_string()),
        ("numjobs", copies.to_string()),
    ] {
        if !global.contains_key(name) {
            options.entry(name.into()).or_insert(value);
        }
    }
    json!(options)
}

fn rw(result: &JobResult) -> &'static str {
    match (result.pattern, result.direction) {
        (Pattern::Sequential, Direction::Read) => "read",
        (Pattern::Sequential, Direction::Write) => "write",
        (Pattern::Random, Direction::Read) => "randread",
        (Pattern::Random, Direction::Write) => "randwrite",
    }
}

/// Milliseconds since 1970 of a time such as `2026-03-01T12:34:56.789Z`.
fn unix_ms(rfc3339: &str) -> Option<u64> {
    let number = |from: usize, to: usize| rfc3339.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let seconds = number(11, 13)? * 3600 + number(14, 16)? * 60 + number(17, 19)?;
    // Days since 1970 in the Gregorian calendar; years begin in March, so that the day that comes
    // and goes is the last one.
    let (year, month) = match month {
        1 | 2 => (year.checked_sub(1)?, month + 9),
        3..=12 => (year, month - 3),
        _ => return None,
    };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    let days = days.checked_sub(719_468)?;
    let fraction = number(20, 23).unwrap_or(0);
    Some((days * 86_400 + seconds) * 1000 + fraction)
}
