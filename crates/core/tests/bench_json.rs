//! `docs/bench-json.md` and the program's own JSON name the same fields: none undocumented, none
//! invented.

use std::collections::BTreeSet;

use rubus_core::doubt::Doubt;
use rubus_core::fixture;
use serde_json::Value;

const DOCUMENT: &str = include_str!("../../../docs/bench-json.md");

/// The names in backquotes that open the rows of the tables between two headings.
fn documented(from: &str, to: &str) -> BTreeSet<String> {
    let start = DOCUMENT.find(from).expect("the heading is there");
    let end = DOCUMENT[start..]
        .find(to)
        .map_or(DOCUMENT.len(), |end| start + end);
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
                let path = if prefix.is_empty() {
                    name.clone()
                } else {
                    format!("{prefix}.{name}")
                };
                into.insert(path.clone());
                if path != "machine" && !path.ends_with("doubts") {
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
    let documented = documented("## The run", "## Kinds of doubt");
    let undocumented: Vec<_> = real.difference(&documented).collect();
    let invented: Vec<_> = documented.difference(&real).collect();
    assert!(undocumented.is_empty(), "undocumented: {undocumented:?}");
    assert!(
        invented.is_empty(),
        "documented but not there: {invented:?}"
    );
}

#[test]
fn every_kind_of_doubt_is_documented() {
    let examples = fixture::every_doubt();
    let mut real = BTreeSet::new();
    for doubt in &examples {
        let value = serde_json::to_value(doubt).expect("a doubt serialises");
        real.insert(
            value["kind"]
                .as_str()
                .expect("a doubt has a kind")
                .to_string(),
        );
        let back: Doubt = serde_json::from_value(value).expect("and reads back");
        assert_eq!(&back, doubt);
    }
    assert_eq!(documented("## Kinds of doubt", "`rubus checkup"), real);
}

#[test]
fn a_run_reads_back_as_it_was_written() {
    let run = fixture::slow_sd_card_run();
    let text = serde_json::to_string(&run).expect("a run serialises");
    let back: rubus_core::result::Run = serde_json::from_str(&text).expect("and reads back");
    assert!(back == run, "the run changed on its way through JSON");
}
