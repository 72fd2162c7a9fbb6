//! Jobs that were told to do less than they can: their rate is what was asked for.

use serde_json::Value;

use super::option;
use crate::compare::subject::{SubjectDoubt, SubjectJob};

/// Options that hold a job back, with the value that does not (fio's manual, "I/O rate").
const OPTIONS: [(&str, &str); 7] = [
    ("rate", "0"),
    ("rate_iops", "0"),
    ("thinktime", "0"),
    ("thinktime_spin", "0"),
    ("thinktime_blocks", "1"),
    ("thinktime_iotime", "0"),
    ("thinkcycles", "0"),
];
const KIND: &str = "held_back";
/// What stands before the options.
const WORDS: &str = "fio was told to hold it back: ";

/// Of a job whose options hold it back.
pub(super) fn doubt(entry: &Value, global: &Value) -> Option<SubjectDoubt> {
    let stated = OPTIONS.iter().filter_map(|(name, free)| {
        let value = option(entry, global, name).filter(|value| value != free)?;
        Some(format!("{name}={value}"))
    });
    let stated: Vec<String> = stated.collect();
    let what = format!("{WORDS}{}", stated.join(", "));
    (!stated.is_empty()).then(|| SubjectDoubt { kind: KIND.into(), what })
}

/// That a difference of two jobs was asked for.
pub fn remark(here: &SubjectJob, there: &SubjectJob) -> Option<String> {
    let (here, there) = (stated(here), stated(there));
    let words = |stated: Option<&str>| stated.unwrap_or("no limit").to_string();
    (here != there)
        .then(|| format!("other rates were asked for: {} against {}", words(here), words(there)))
}

fn stated(job: &SubjectJob) -> Option<&str> {
    let doubt = job.doubts.iter().find(|doubt| doubt.kind == KIND)?;
    doubt.what.strip_prefix(WORDS)
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
