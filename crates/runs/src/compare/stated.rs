//! In what two jobs were told to do something else, by options that neither their figures nor their titles show.

use std::collections::{BTreeMap, BTreeSet};

use rubus_fio::job_file::stated::PACE;

use super::fio::held_back;
use super::subject::SubjectJob;

/// No more options are named.
const MAX_NAMED: usize = 4;

/// Each difference as a remark. Of rates, a job whose options are not known was free.
pub(super) fn remarks(here: &SubjectJob, there: &SubjectJob) -> Vec<String> {
    let rate = |job: &SubjectJob| job.stated.as_ref().and_then(held_back);
    let (one, other) = (rate(here), rate(there));
    let words = |rate: Option<String>| rate.unwrap_or_else(|| "no limit".into());
    let of_rates = (one != other)
        .then(|| format!("other rates were asked for: {} against {}", words(one), words(other)));
    let of_options = here.stated.as_ref().zip(there.stated.as_ref());
    let of_options = of_options.and_then(|(here, there)| options(here, there));
    of_rates.into_iter().chain(of_options).collect()
}

fn options(here: &BTreeMap<String, String>, there: &BTreeMap<String, String>) -> Option<String> {
    let names: BTreeSet<&str> = here.keys().chain(there.keys()).map(String::as_str).collect();
    let differing = names.into_iter().filter(|name| {
        let is_of_pace = PACE.contains(name);
        !is_of_pace && here.get(*name) != there.get(*name)
    });
    let value = |stated: &BTreeMap<String, String>, name: &str| match stated.get(name) {
        Some(value) => format!("{name}={value}"),
        None => format!("no {name}"),
    };
    let differing: Vec<String> = differing
        .map(|name| format!("{} against {}", value(here, name), value(there, name)))
        .collect();
    let more = match differing.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let named: Vec<&str> = differing.iter().take(MAX_NAMED).map(String::as_str).collect();
    (!named.is_empty()).then(|| format!("other options were given: {}{more}", named.join(", ")))
}

#[cfg(test)]
mod tests {
    use rubus_fixtures as fixture;
    use rubus_vocabulary::result::{JobFile, JobFileJob};
    use serde_json::{Value, json};

    use crate::compare::subject::Subject;
    use crate::compare::{compare, fio};

    fn by_fio(options: &Value) -> Subject {
        let mut all = json!({"rw": "randread", "bs": "4k", "direct": "1"});
        for (name, value) in options.as_object().expect("options") {
            all[name] = value.clone();
        }
        let side =
            json!({"io_bytes": 4_096_000, "io_kbytes": 4000, "total_ios": 1000, "runtime": 1000});
        let mut job = json!({"jobname": "j", "error": 0, "job options": all, "read": side});
        if all["rw"] == "randrw" {
            job["write"] = job["read"].clone();
        }
        fio::subject("x", &json!({"fio version": "fio-3.39", "jobs": [job]})).expect("fio's")
    }

    fn remarks(here: &Value, there: &Value) -> Vec<String> {
        compare(&[by_fio(here), by_fio(there)]).rows[0].remarks.clone()
    }

    #[test]
    fn another_work_is_never_compared_without_a_word() {
        let free = json!({});
        for (option, value) in [
            ("random_distribution", "zipf:1.2"),
            ("percentage_random", "10"),
            ("zonemode", "strided"),
            ("buffer_compress_percentage", "80"),
            ("invalidate", "0"),
            ("offset", "50%"),
            ("hipri", "1"),
        ] {
            let given = format!("other options were given: {option}={value} against no {option}");
            assert_eq!(remarks(&json!({option: value}), &free), [given]);
            assert_eq!(remarks(&json!({option: value}), &json!({option: value})), [""; 0]);
        }
        let (one, other) = (
            json!({"rate": "10m", "offset": "1g"}),
            json!({"rate": "10240k,0", "offset": "1024m"}),
        );
        assert_eq!(remarks(&one, &other), [""; 0], "another spelling");
        assert_eq!(remarks(&json!({"ba": "4096", "thinktime_blocks": "8"}), &free), [""; 0]);
        let mix = |share: &str| json!({"rw": "randrw", "rwmixread": share});
        let words = "other options were given: rwmixread=90 against rwmixread=70";
        assert_eq!(remarks(&mix("90"), &mix("70")), [words]);
        assert_eq!(remarks(&mix("50"), &json!({"rw": "randrw"})), [""; 0], "as by default");
        let target = remarks(&json!({"latency_target": "1ms"}), &free);
        assert_eq!(target, ["other rates were asked for: latency_target=1ms against no limit"]);
        let many = json!({"norandommap": "1", "nrfiles": "9", "overwrite": "1", "verify": "crc32c", "hipri": "1"});
        assert!(remarks(&many, &free)[0].ends_with(", and 1 more"), "{:?}", remarks(&many, &free));
    }

    #[test]
    fn a_run_of_the_same_job_file_was_asked_for_the_same() {
        let mut run = fixture::slow_sd_card_run();
        let result = run.results.iter().find(|result| result.job == "random-read");
        let mut result = result.expect("random reads").clone();
        result.job = "j".into();
        run.results = vec![result];
        let options = [("rw", "randread"), ("rate_iops", "100"), ("random_distribution", "zipf")];
        let options = options.map(|(name, value)| (name.to_string(), value.to_string()));
        let job = JobFileJob {
            name: "j".into(),
            section: "j".into(),
            options: options.into(),
            ..JobFileJob::default()
        };
        run.job_file = Some(JobFile { jobs: vec![job], ..JobFile::default() });
        let ours = Subject::of_run("run 1", &run);
        let same = by_fio(&json!({"rate_iops": "100", "random_distribution": "zipf"}));
        assert_eq!(compare(&[same, ours.clone()]).rows[0].remarks, [""; 0]);
        let other = by_fio(&json!({"rate_iops": "200"}));
        assert_eq!(
            compare(&[other, ours]).rows[0].remarks,
            [
                "other options were given: no random_distribution against random_distribution=zipf",
                "other rates were asked for: rate_iops=200 against rate_iops=100"
            ]
        );
    }
}
