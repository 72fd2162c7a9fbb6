//! Jobs that were told to do less than they can: their rate is what was asked for.

use std::collections::BTreeMap;

use rubus_fio::job_file::stated::PACE;

use crate::compare::subject::SubjectDoubt;

/// Of a job whose options hold it back.
pub(super) fn doubt(stated: &BTreeMap<String, String>) -> Option<SubjectDoubt> {
    let held = held_back(stated)?;
    Some(SubjectDoubt {
        kind: "held_back".into(),
        what: format!("fio was told to hold it back: {held}"),
    })
}

/// The options that hold a job back, as `rate=10m, thinktime=5ms`.
pub fn held_back(stated: &BTreeMap<String, String>) -> Option<String> {
    let held = PACE.iter().filter_map(|name| Some(format!("{name}={}", stated.get(*name)?)));
    let held: Vec<String> = held.collect();
    (!held.is_empty()).then(|| held.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::compare::{compare, fio::subject};

    fn result(options: &serde_json::Value, runtime_ms: u64) -> serde_json::Value {
        let mut all = json!({"rw": "randread", "bs": "4k", "direct": "1"});
        for (name, value) in options.as_object().unwrap() {
            all[name] = value.clone();
        }
        json!({"fio version": "fio-3.39", "jobs": [{"jobname": "j", "error": 0, "job options": all,
            "read": {"io_bytes": 4_096_000, "io_kbytes": 4000, "total_ios": 1000,
                "runtime": runtime_ms, "bw": if runtime_ms > 0 { 4000 } else { 0 }, "iops": 0}}]})
    }

    fn remarks(here: &serde_json::Value, there: &serde_json::Value) -> Vec<String> {
        let subjects = [here, there].map(|options| subject("x", &result(options, 1000)).unwrap());
        compare(&subjects).rows[0].remarks.clone()
    }

    #[test]
    fn a_difference_that_was_asked_for_is_said() {
        let [one, two] = ["1000", "2000"].map(|rate| json!({"rate_iops": rate}));
        let words = "other rates were asked for: rate_iops=1000 against rate_iops=2000";
        assert_eq!(remarks(&one, &two), [words]);
        let none = "other rates were asked for: rate_iops=1000 against no limit";
        assert_eq!(remarks(&one, &json!({})), [none]);
        assert_eq!(remarks(&one, &one), Vec::<String>::new());
        let free = json!({"rate": "0", "thinktime_blocks": "1"});
        assert_eq!(remarks(&free, &json!({})), Vec::<String>::new());
        let thinking = remarks(&json!({"thinktime": "5ms"}), &json!({}));
        assert_eq!(thinking, ["other rates were asked for: thinktime=5ms against no limit"]);
    }

    #[test]
    fn jobs_without_a_rate_are_in_common_nevertheless() {
        let twice = ["a", "b"].map(|name| subject(name, &result(&json!({}), 0)).unwrap());
        let found = compare(&twice);
        assert_eq!(found.rows[0].remarks, ["no rate: a job did nothing, or took no time"]);
        assert!(found.next.words.contains("have no rate"), "{:?}", found.next);
        let line = crate::text::compare::headline(&found, 1);
        assert_eq!(line, "b and a have jobs in common, but no rates of them.");
        let timed = ["a", "b"].map(|name| subject(name, &result(&json!({}), 1000)).unwrap());
        assert!(!compare(&timed).next.words.contains("have no rate"));
    }
}
