//! `docs/reference/bench-json.md` and the program's own JSON name the same fields: none undocumented, none
//! invented.

use std::collections::BTreeSet;

use rubus_fixtures as fixture;
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::finding::{Finding, Knee};
use rubus_vocabulary::result::{Access, Ended, Figures, JobResult, LatencyIntervals, Run};
use rubus_vocabulary::spec::Operation;
use serde_json::Value;

const DOCUMENT: &str = include_str!("../../../docs/reference/bench-json.md");

/// The names in backquotes that open the rows of the tables between two headings.
fn documented(from: &str, to: &str) -> BTreeSet<String> {
    let start = DOCUMENT.find(from).expect("the heading is there");
    let end = DOCUMENT[start..].find(to).map_or(DOCUMENT.len(), |end| start + end);
    DOCUMENT[start..end]
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|line| line.split('`').next())
        .map(str::to_string)
        .collect()
}

/// Paths of all fields in a JSON value; the machine's facts have a document of their own.
fn paths(value: &Value, prefix: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let path =
                    if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                into.insert(path.clone());
                // The names of options are the job file's.
                let is_open = path == "machine" || path.ends_with("options");
                if !is_open && !path.ends_with("doubts") {
                    paths(field, &path, into);
                }
            }
        }
        Value::Array(elements) => {
            for element in elements {
                paths(element, &format!("{prefix}[]"), into);
            }
        }
        _ => {}
    }
}

#[test]
fn every_field_of_a_run_is_documented_and_every_documented_field_exists() {
    let run = serde_json::to_value(fixture::slow_sd_card_run()).expect("a run serialises");
    let mut real = BTreeSet::new();
    paths(&run, "", &mut real);
    // What only some runs have.
    let remote = serde_json::to_value(fixture::remote_run()).expect("a run serialises");
    paths(&remote, "", &mut real);
    let memory = serde_json::to_value(fixture::memory_run()).expect("a run serialises");
    paths(&memory, "", &mut real);
    let processor = serde_json::to_value(fixture::processor_run()).expect("a run serialises");
    paths(&processor, "", &mut real);
    let kinds = serde_json::to_value(two_kinds_of_cores_run()).expect("a run serialises");
    paths(&kinds, "", &mut real);
    let network = serde_json::to_value(fixture::network_run()).expect("a run serialises");
    paths(&network, "", &mut real);
    let unusual = serde_json::to_value(unusual_run()).expect("a run serialises");
    paths(&unusual, "", &mut real);
    let job_file = serde_json::to_value(fixture::job_file_run()).expect("a run serialises");
    paths(&job_file, "", &mut real);
    let [_, in_turns] = fixture::runs_in_turns();
    let in_turns = serde_json::to_value(in_turns).expect("a run serialises");
    paths(&in_turns, "", &mut real);
    let documented = documented("## The run", "## Kinds of finding");
    let undocumented: Vec<_> = real.difference(&documented).collect();
    let invented: Vec<_> = documented.difference(&real).collect();
    assert!(undocumented.is_empty(), "undocumented: {undocumented:?}");
    assert!(invented.is_empty(), "documented but not there: {invented:?}");
}

/// A run of a processor with two kinds of cores.
fn two_kinds_of_cores_run() -> Run {
    let mut run = fixture::processor_run();
    let Figures::Processor(processor) = &mut run.figures else {
        panic!("it is of a processor");
    };
    let linpack = processor.linpack.as_mut().expect("it is in the fixture");
    let one = linpack.one.as_mut().expect("it is in the fixture");
    one.core = Some("Cortex-A76".into());
    linpack.other_kinds = vec![one.clone()];
    run
}

/// A run whose results have what most leave out.
fn unusual_run() -> Run {
    let mut run = fixture::slow_sd_card_run();
    run.results[0] = JobResult {
        operation: Operation::Stamp,
        access: Some(Access::Buffered),
        content: Some("zeros".into()),
        on: Some("sda".into()),
        copies: Some(4),
        lanes: Some(4),
        polled: true,
        passes: Some(3),
        noise: Some(0.02),
        ended: Some(Ended::Time),
        bytes: Some(1 << 20),
        response_ns: Some(run.results[0].latency_ns),
        warm_up_s: 1.5,
        latency_intervals: Some(LatencyIntervals {
            p99_at_most_ns: Some(2e6),
            ..run.results[0].latency_intervals.unwrap_or_default()
        }),
        ..run.results[0].clone()
    };
    run.target.cluster = Some(fixture::troubled_cluster());
    run
}

#[test]
fn every_field_of_every_finding_is_documented() {
    let mut real = BTreeSet::new();
    let mut findings = rubus_verdict::fixture::every_finding();
    let knee = findings.iter().find_map(|finding| match finding {
        Finding::Knee(knee) => Some(knee.clone()),
        _ => None,
    });
    findings.push(Finding::Knee(Knee {
        is_cpu_bound: true,
        is_polled: true,
        lanes_at_limit: Some(1),
        ..knee.expect("there is one")
    }));
    for finding in findings {
        let mut value = serde_json::to_value(&finding).expect("a finding serialises");
        let back: Finding = serde_json::from_value(value.clone()).expect("and reads back");
        assert_eq!(back, finding);
        let fields = value.as_object_mut().expect("a finding is an object");
        let kind = fields.remove("kind").expect("a finding has a kind");
        let kind = kind.as_str().expect("a kind is a text");
        real.insert(kind.to_string());
        paths(&value, kind, &mut real);
    }
    // What an estimate is made of is said once.
    real.retain(|path| ![".value", ".low", ".high"].iter().any(|end| path.ends_with(end)));
    assert_eq!(documented("## Kinds of finding", "## Kinds of doubt"), real);
}

#[test]
fn every_kind_of_doubt_is_documented() {
    let examples = fixture::every_doubt();
    let mut real = BTreeSet::new();
    for doubt in &examples {
        let value = serde_json::to_value(doubt).expect("a doubt serialises");
        real.insert(value["kind"].as_str().expect("a doubt has a kind").to_string());
        let back: Doubt = serde_json::from_value(value).expect("and reads back");
        assert_eq!(&back, doubt);
    }
    assert_eq!(documented("## Kinds of doubt", "`rubus checkup"), real);
}

#[test]
fn a_run_reads_back_as_it_was_written() {
    let run = fixture::slow_sd_card_run();
    let text = serde_json::to_string(&run).expect("a run serialises");
    let back: Run = serde_json::from_str(&text).expect("and reads back");
    assert!(back == run, "the run changed on its way through JSON");
}
