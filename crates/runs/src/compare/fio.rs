//! fio's `--output-format=json` as a subject.
//!
//! Fields and units after "Interpreting the output" and "JSON output" of fio's manual: `bw_bytes` in bytes
//! per second, latencies in nanoseconds (`clat_ns`, from fio 3 on), options as text.

use serde_json::Value;

use super::subject::{Source, Subject, SubjectDoubt, SubjectJob};
use rubus_vocabulary::figure::{Figure, Interval, Named, Unit};
use rubus_vocabulary::result::Access;
use rubus_vocabulary::spec::{Direction, Operation, Pattern};
use rubus_vocabulary::stats::quantile::student_t_95;
use rubus_vocabulary::units::block;
use rubus_vocabulary::units::{bytes_iec, parse_size};

/// Fewer samples than this say nothing about a deviation.
const MIN_SAMPLES: f64 = 5.0;

/// Whether the JSON is fio's.
pub fn is_fio(value: &Value) -> bool {
    value.get("fio version").is_some() && (value.get("jobs").is_some() || has_client_stats(value))
}

fn has_client_stats(value: &Value) -> bool {
    value.get("client_stats").is_some()
}

/// The jobs of one of fio's JSON objects; a job that reads and writes gives two.
///
/// fio publishes no interval. Where it gives the deviation between its samples (two per second by
/// default), a rough one is made of it as of independent values: mean ± t · deviation / √samples.
///
/// # Errors
/// A sentence that says what is missing.
pub fn subject(name: &str, value: &Value) -> Result<Subject, String> {
    let list = match value.get("jobs").or_else(|| value.get("client_stats")) {
        Some(Value::Array(list)) => list,
        _ => return Err("it is fio's JSON, but has no list of jobs".into()),
    };
    let global = value.get("global options").unwrap_or(&Value::Null);
    let version = value["fio version"].as_str().unwrap_or("fio");
    let mut jobs = Vec::new();
    for entry in list {
        // The line that sums up all clients would count everything twice.
        if entry["jobname"].as_str() == Some("All clients") {
            continue;
        }
        jobs.extend(parts(entry, global));
    }
    if jobs.is_empty() {
        return Err("it is fio's JSON, but none of its jobs read or wrote anything".into());
    }
    let first = list.first().unwrap_or(&Value::Null);
    let option = |key| option(first, global, key);
    Ok(Subject {
        name: name.into(),
        source: Source::Fio,
        when: None,
        facts: vec![
            named("target", option("filename").or_else(|| option("directory"))),
            named("region", option("size").map(size)),
            named("engine", option("ioengine")),
            named("version", Some(version.into())),
        ],
        jobs,
        doubts: Vec::new(),
        note: Some(
            "fio gives no intervals; those here are rough, from the deviation between its samples"
                .into(),
        ),
        against: None,
        picture: None,
        is_of_guest: false,
    })
}

/// A size in our words, or as it is.
fn size(text: String) -> String {
    parse_size(&text).map_or(text, bytes_iec)
}

fn named(name: &str, value: Option<String>) -> Named {
    Named { name: name.into(), value }
}

/// An option of the job, or of all jobs.
fn option(job: &Value, global: &Value, key: &str) -> Option<String> {
    let found = job.get("job options").and_then(|options| options.get(key));
    match found.or_else(|| global.get(key))? {
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// The reading and the writing part of a job, as far as they did anything.
fn parts(entry: &Value, global: &Value) -> Vec<SubjectJob> {
    let halves = [(Direction::Read, "read"), (Direction::Write, "write")];
    halves
        .into_iter()
        .filter(|(_, key)| entry[key]["total_ios"].as_u64().unwrap_or(0) > 0)
        .map(|(direction, key)| job(entry, global, direction, &entry[key]))
        .collect()
}

fn job(entry: &Value, global: &Value, direction: Direction, part: &Value) -> SubjectJob {
    let option = |key: &str| option(entry, global, key);
    let is_set = |key: &str| option(key).is_some_and(|value| value != "0");
    let rw = option("rw").or_else(|| option("readwrite"));
    let pattern = match rw.as_deref() {
        Some(rw) if rw.starts_with("rand") => Pattern::Random,
        _ => Pattern::Sequential,
    };
    let bytes = part["io_bytes"].as_f64().unwrap_or(0.0);
    let operations = part["total_ios"].as_f64().unwrap_or(1.0).max(1.0);
    let stated = option("bs").or_else(|| option("blocksize"));
    // "4k,8k" is for reads and writes; without the option the mean size is what was done.
    let stated = stated.and_then(|text| {
        let mut sizes = text.split(',');
        let first = sizes.next()?.to_string();
        let own = match direction {
            Direction::Read => None,
            Direction::Write => sizes.next().filter(|size| !size.is_empty()),
        };
        parse_size(own.unwrap_or(&first)).ok()
    });
    let block_bytes = stated.unwrap_or((bytes / operations).round() as u64);
    let block_bytes = u32::try_from(block_bytes).ok().filter(|bytes| *bytes > 0);
    let number = |key: &str| option(key).and_then(|text| text.parse::<u32>().ok());
    let commit = direction == Direction::Write
        && (["fsync", "fdatasync"].iter().any(|key| option(key).as_deref() == Some("1")));
    let name = entry["jobname"].as_str().unwrap_or("job").to_string();
    let depth = number("iodepth").unwrap_or(1);
    let copies = number("numjobs").unwrap_or(1).max(1);
    // A copy that is reported by itself is one; a group has the figures of all.
    let copies = if is_set("group_reporting") || global.get("group_reporting").is_some() {
        copies
    } else {
        1
    };
    SubjectJob {
        title: title(direction, pattern, block_bytes, depth, commit, copies),
        name,
        direction,
        pattern,
        block_bytes,
        queue_depth: Some(depth),
        copies,
        commit,
        access: Some(match is_set("direct") {
            true => Access::Direct,
            false => Access::Buffered,
        }),
        content: None,
        on: None,
        is_shared: ["read", "write"]
            .iter()
            .all(|key| entry[key]["total_ios"].as_u64().unwrap_or(0) > 0),
        operation: Operation::Block,
        throughput: rate(part),
        unit: Unit::BytesPerSecond,
        // fio times a commit's two halves apart; neither is the latency of the commit.
        p50_ns: percentile(part, "50.000000").filter(|_| !commit),
        p99_ns: percentile(part, "99.000000").filter(|_| !commit),
        doubts: match entry["error"].as_i64() {
            None | Some(0) => Vec::new(),
            Some(error) => vec![SubjectDoubt {
                kind: "target_failed".into(),
                what: format!("fio ended this job with error {error}"),
            }],
        },
    }
}

fn title(
    direction: Direction,
    pattern: Pattern,
    block_bytes: Option<u32>,
    depth: u32,
    commit: bool,
    copies: u32,
) -> String {
    let size = block_bytes.map_or(String::new(), |bytes| block(bytes) + " ");
    let what = match (commit, pattern, direction) {
        (true, _, _) => "commits",
        (_, Pattern::Sequential, Direction::Read) => "sequential reads",
        (_, Pattern::Sequential, Direction::Write) => "sequential writes",
        (_, Pattern::Random, Direction::Read) => "random reads",
        (_, Pattern::Random, Direction::Write) => "random writes",
    };
    let depth = if depth > 1 { format!(" ×{depth}") } else { String::new() };
    let copies = if copies > 1 { format!(", {copies} copies") } else { String::new() };
    format!("{size}{what}{depth}{copies}")
}

/// Bytes per second, with a rough interval where fio says how its samples deviate.
fn rate(part: &Value) -> Figure {
    let number = |key: &str| part[key].as_f64().filter(|x| x.is_finite());
    let kib = number("bw").map(|kib| kib * 1024.0);
    let value = number("bw_bytes").or(kib).unwrap_or(0.0);
    let samples = number("bw_samples").or(number("iops_samples"));
    let relative = match (number("iops_mean"), number("iops_stddev")) {
        (Some(mean), Some(deviation)) if mean > 0.0 => Some(deviation / mean),
        _ => match (number("bw_mean"), number("bw_dev")) {
            (Some(mean), Some(deviation)) if mean > 0.0 => Some(deviation / mean),
            _ => None,
        },
    };
    let (Some(samples), Some(relative)) = (samples, relative) else {
        return Figure::bare(value);
    };
    if samples < MIN_SAMPLES {
        return Figure::bare(value);
    }
    let half_width = student_t_95(samples - 1.0) * relative / samples.sqrt();
    Figure {
        value,
        interval: Some(Interval {
            low: value * (1.0 - half_width).max(0.0),
            high: value * half_width.exp(),
            rough: true,
        }),
    }
}

fn percentile(part: &Value, key: &str) -> Option<Figure> {
    let found =
        ["clat_ns", "lat_ns"].iter().find_map(|kind| part[kind]["percentile"][key].as_f64())?;
    (found > 0.0).then(|| Figure::bare(found))
}
