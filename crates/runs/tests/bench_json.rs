//! Runs, findings and doubts read back as they were written, and the schema describes every kind of finding and of doubt.

use std::collections::BTreeSet;

use rubus_fixtures as fixture;
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::finding::{Finding, Knee};
use rubus_vocabulary::result::Run;
use serde_json::Value;

const TYPES: &str = include_str!("../../../docs/reference/schemas/types.schema.json");

/// The kinds that the schema of a type describes.
fn described(name: &str) -> BTreeSet<String> {
    let types: Value = serde_json::from_str(TYPES).expect("the schema is JSON");
    let forms = types["$defs"][name]["oneOf"].as_array().expect("the type has forms").clone();
    let has_words = |form: &&Value| form["description"].as_str().is_some_and(|it| !it.is_empty());
    let kind = |form: &Value| form["properties"]["kind"]["const"].as_str().map(str::to_string);
    forms.iter().filter(has_words).map(|form| kind(form).expect("a form has its kind")).collect()
}

fn kind_of(value: &Value) -> String {
    value["kind"].as_str().expect("it has a kind").to_string()
}

#[test]
fn every_finding_reads_back_and_its_kind_is_described() {
    let mut kinds = BTreeSet::new();
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
        let value = serde_json::to_value(&finding).expect("a finding serialises");
        kinds.insert(kind_of(&value));
        let back: Finding = serde_json::from_value(value).expect("and reads back");
        assert_eq!(back, finding);
    }
    assert_eq!(described("Finding"), kinds);
}

#[test]
fn every_doubt_reads_back_and_its_kind_is_described() {
    let mut kinds = BTreeSet::new();
    for doubt in fixture::every_doubt() {
        let value = serde_json::to_value(&doubt).expect("a doubt serialises");
        kinds.insert(kind_of(&value));
        let back: Doubt = serde_json::from_value(value).expect("and reads back");
        assert_eq!(back, doubt);
    }
    assert_eq!(described("Doubt"), kinds);
}

#[test]
fn a_run_reads_back_as_it_was_written() {
    let run = fixture::slow_sd_card_run();
    let text = serde_json::to_string(&run).expect("a run serialises");
    let back: Run = serde_json::from_str(&text).expect("and reads back");
    assert!(back == run, "the run changed on its way through JSON");
}
