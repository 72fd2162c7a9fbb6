//! Results of a run that goes on: `fio --status-interval` prints one each time, from the start of the run, and the last of them is
//! the result.

use std::collections::BTreeMap;

use serde_json::Value;

use super::part::{Part, Units};
use super::{entries, is_fio};

/// Whether a result is an interim one of the run whose later result follows it: of the same jobs, with nothing less done, and
/// written after that run began. Of two runs one after the other, the second begins when the first is written.
pub fn is_interim(earlier: &Value, later: &Value) -> bool {
    if !is_fio(earlier) || !is_fio(later) {
        return false;
    }
    let (before, after) = (jobs(earlier), jobs(later));
    let is_same_run = before.len() == after.len()
        && before.iter().zip(&after).all(|(before, after)| before.goes_on_as(after));
    let written = written_s(earlier).zip(written_s(later));
    is_same_run && written.is_some_and(|(first, last)| last - run_s(&after) < first)
}

/// How far a job is.
struct Progress<'a> {
    name: &'a Value,
    group: i64,
    /// Operations, bytes and seconds.
    done: [f64; 3],
}

impl Progress<'_> {
    fn goes_on_as(&self, later: &Progress<'_>) -> bool {
        let is_less = self.done.iter().zip(later.done).any(|(before, after)| after < *before);
        self.name == later.name && self.group == later.group && !is_less
    }
}

fn jobs<'a>(result: &'a Value) -> Vec<Progress<'a>> {
    let units = Units::of(result["fio version"].as_str().unwrap_or("fio"));
    let done = |entry: &Value| {
        let sides = ["read", "write", "trim", "mixed"];
        let parts: Vec<Part<'_>> =
            sides.iter().filter_map(|side| Part::of(&entry[*side], units)).collect();
        let operations = parts.iter().map(Part::operations).sum();
        let bytes = parts.iter().map(Part::bytes).sum();
        let seconds = parts.iter().map(Part::seconds).fold(0.0, f64::max);
        [operations, bytes, seconds]
    };
    let progress = |entry: &'a Value| Progress {
        name: &entry["jobname"],
        group: entry["groupid"].as_i64().unwrap_or(0),
        done: done(entry),
    };
    entries(result).into_iter().flatten().map(progress).collect()
}

/// How long all groups took, one after the other.
fn run_s(jobs: &[Progress<'_>]) -> f64 {
    let mut longest: BTreeMap<i64, f64> = BTreeMap::new();
    for job in jobs {
        let [_, _, seconds] = job.done;
        let group = longest.entry(job.group).or_default();
        *group = group.max(seconds);
    }
    longest.values().sum()
}

/// When a result was written, in seconds since 1970.
fn written_s(result: &Value) -> Option<f64> {
    let ms = result["timestamp_ms"].as_f64().map(|ms| ms / 1e3);
    ms.or_else(|| result["timestamp"].as_f64())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn job(group: u32, operations: u64, runtime_ms: u64) -> Value {
        json!({"jobname": "a", "groupid": group, "read": {"io_bytes": operations * 4096,
            "io_kbytes": operations * 4, "total_ios": operations, "runtime": runtime_ms}})
    }

    fn at(timestamp_ms: u64, jobs: Value) -> Value {
        json!({"fio version": "fio-3.33", "timestamp_ms": timestamp_ms, "jobs": jobs})
    }

    #[test]
    fn a_status_is_no_result_beside_the_result_of_its_run() {
        let first = at(11_000, json!([job(0, 1000, 1000), job(1, 0, 0)]));
        let second = at(13_000, json!([job(0, 2000, 2000), job(1, 900, 1000)]));
        let last = at(13_010, json!([job(0, 2000, 2000), job(1, 900, 1000)]));
        assert!(is_interim(&first, &second) && is_interim(&second, &last));
        assert!(!is_interim(&second, &first));
    }

    #[test]
    fn two_runs_in_one_file_are_two_results() {
        let run = |timestamp_ms| at(timestamp_ms, json!([job(0, 2000, 2000), job(0, 2000, 2000)]));
        assert!(!is_interim(&run(12_000), &run(14_000)));
        assert!(!is_interim(&run(12_000), &run(90_000)));
        let other = at(12_500, json!([job(0, 2000, 2000)]));
        assert!(!is_interim(&run(12_000), &other));
        assert!(!is_interim(&json!({"results": []}), &run(12_000)));
        let mut untimed = run(12_001);
        untimed["timestamp_ms"] = json!(null);
        assert!(!is_interim(&run(12_000), &untimed));
    }
}
