//! The JSON of each kind of run.

use rubus_fixtures as fixture;
use rubus_vocabulary::result::Run;

#[test]
fn the_json_of_each_kind_has_the_fields_that_it_always_had() {
    let fields = |run: &Run| -> Vec<String> {
        let json = serde_json::to_value(run).expect("JSON");
        let kinds = ["memory", "processor", "figures"].into_iter();
        let there = kinds.filter(|kind| json.get(kind).is_some());
        there.map(str::to_string).collect()
    };
    assert!(fields(&fixture::slow_sd_card_run()).is_empty());
    assert_eq!(fields(&fixture::memory_run()), ["memory"]);
    assert_eq!(fields(&fixture::processor_run()), ["processor"]);
    for run in [fixture::slow_sd_card_run(), fixture::memory_run(), fixture::processor_run()] {
        let text = serde_json::to_string(&run).expect("JSON");
        let back: Run = serde_json::from_str(&text).expect("a run");
        assert_eq!(back, run);
    }
}

#[test]
fn a_run_of_two_kinds_is_refused() {
    let mut json = serde_json::to_value(fixture::memory_run()).expect("JSON");
    let other = serde_json::to_value(fixture::processor_run()).expect("JSON");
    json["processor"] = other["processor"].clone();
    assert!(serde_json::from_value::<Run>(json).is_err());
}
