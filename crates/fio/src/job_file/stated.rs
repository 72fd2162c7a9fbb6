//! Options that change what a job does and that a compared job has no field for.
//!
//! Two results whose jobs differ in one of them are not of the same work: a share of reads, a distribution, what the
//! blocks hold. Options that are not known, and those of engines that are not here, are left out.

use std::collections::BTreeMap;

use super::asked::{Options, last};
use super::options::{self, FioOption, Support};
use super::settings::Settings;
use super::spelled::spelled;

/// Options that hold a job back: its rate is what was asked for (fio's manual, "I/O rate", "I/O latency", "flow").
pub const PACE: [&str; 9] = [
    "rate",
    "rate_iops",
    "thinktime",
    "thinktime_spin",
    "thinktime_blocks",
    "thinktime_iotime",
    "thinkcycles",
    "latency_target",
    "flow",
];
/// Names, places, amounts, beginnings and ends of jobs, and what a compared job has a field or its subject a fact for.
const SHOWN_ELSEWHERE: [&str; 45] = [
    "name",
    "description",
    "filename",
    "directory",
    "filename_format",
    "opendir",
    "ioengine",
    "rw",
    "bs",
    "iodepth",
    "numjobs",
    "size",
    "io_size",
    "filesize",
    "number_ios",
    "loops",
    "runtime",
    "time_based",
    "ramp_time",
    "ramp_size",
    "startdelay",
    "wait_for",
    "stonewall",
    "new_group",
    "exitall",
    "exit_what",
    "rate_min",
    "rate_iops_min",
    "max_latency",
    "steadystate",
    "group_reporting",
    "randseed",
    "randrepeat",
    "direct",
    "buffered",
    "sync",
    "fsync",
    "fdatasync",
    "kb_base",
    "profile",
    "exec_prerun",
    "exec_postrun",
    "write_iolog",
    "uid",
    "gid",
];
/// Values that ask for what happens anyway; of every other option that is 0.
const DEFAULTS: [(&str, &str); 11] = [
    ("do_verify", "1"),
    ("fallocate", "native"),
    ("file_service_type", "roundrobin"),
    ("invalidate", "1"),
    ("nrfiles", "1"),
    ("percentage_random", "100"),
    ("random_distribution", "random"),
    ("rate_process", "linear"),
    ("rwmixread", "50"),
    ("thinktime_blocks", "1"),
    ("zonemode", "none"),
];

/// Options that do something for random operations alone.
const OF_RANDOM: [&str; 4] = ["ba", "norandommap", "percentage_random", "random_distribution"];
/// Options that do something beside one of others alone.
const BESIDE: [(&str, &[&str]); 5] = [
    ("do_verify", &["verify", "verify_pattern"]),
    ("rate_process", &["rate", "rate_iops"]),
    ("thinktime_blocks", &["thinktime"]),
    ("thinktime_iotime", &["thinktime"]),
    ("thinktime_spin", &["thinktime"]),
];

/// What options ask for, by their main names and in one spelling, a later one replacing an earlier one. What happens
/// anyway is left out.
pub fn stated<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> BTreeMap<String, String> {
    let Options { pairs, settings, base } = Options::of(pairs);
    let rw = last(&pairs, "rw").unwrap_or("read");
    let mut stated = BTreeMap::new();
    for (name, value) in pairs {
        let Some(option) = options::find(name) else { continue };
        let value = value.trim();
        match option.name {
            // What is not written is read.
            "rwmixwrite" => {
                let writes = value.parse::<u8>().ok();
                if let Some(reads) = writes.and_then(|writes| 100_u8.checked_sub(writes)) {
                    stated.insert("rwmixread".to_string(), reads.to_string());
                }
            }
            name if changes_work(option) => {
                // A flag has the value 1 or none.
                let value = if value.is_empty() { "1" } else { value };
                let value = spelled(name, value, &settings, rw, base);
                stated.insert(name.to_string(), value);
            }
            _ => {}
        }
    }
    stated.retain(|name, value| is_heeded(name, &settings) && !is_default(name, value));
    for (name, others) in BESIDE {
        if !others.iter().any(|other| stated.contains_key(*other)) {
            stated.remove(name);
        }
    }
    stated
}

/// Whether the option does something in such a job.
fn is_heeded(name: &str, job: &Settings) -> bool {
    match name {
        "rwmixread" => job.reads && job.writes,
        "offset_increment" => job.copies > 1,
        name => job.is_random || !OF_RANDOM.contains(&name),
    }
}

/// The same of a run of this program, which does what is done here and nothing else.
pub fn stated_here<'a>(
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> BTreeMap<String, String> {
    let is_done = |name: &str| {
        options::find(name).is_some_and(|option| matches!(option.support, Support::Done(_)))
    };
    let mut stated = stated(pairs);
    stated.retain(|name, _| is_done(name));
    stated
}

fn changes_work(option: FioOption) -> bool {
    let is_shown = SHOWN_ELSEWHERE.contains(&option.name);
    let has_effect =
        !matches!(option.support, Support::NoEffect(_)) && !option.support.is_of_an_engine();
    PACE.contains(&option.name) || (has_effect && !is_shown)
}

fn is_default(name: &str, value: &str) -> bool {
    let is_off = value == "none"
        && options::find(name)
            .is_some_and(|option| matches!(option.support, Support::NotDoneUnlessOff(_)));
    let default = DEFAULTS.iter().find(|(known, _)| *known == name);
    is_off || value == default.map_or("0", |(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(pairs: &[(&str, &str)]) -> String {
        let stated = stated(pairs.iter().copied());
        let words = stated.iter().map(|(name, value)| format!("{name}={value}"));
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_changes_the_work_is_told_by_its_main_name() {
        let work = [("rw", "randrw"), ("bs", "4k"), ("iodepth", "8"), ("filename", "/x")];
        assert_eq!(words(&work), "");
        let mix = [("readwrite", "randrw"), ("rwmixwrite", "30"), ("zero_buffers", "")];
        assert_eq!(words(&mix), "rwmixread=70 zero_buffers=1");
        let zones = [("rw", "write"), ("zonemode", "ZBD"), ("latency_target", "5ms")];
        assert_eq!(words(&zones), "latency_target=5ms zonemode=zbd");
    }

    #[test]
    fn what_happens_anyway_is_not_told() {
        let anyway = [
            ("rw", "rw"),
            ("rwmixread", "50"),
            ("random_distribution", "random"),
            ("buffer_compress_percentage", "0"),
            ("rate", "0"),
            ("thinktime_blocks", "1"),
            ("log_avg_msec", "500"),
            ("http_pass", "secret"),
            ("no_such_option", "1"),
        ];
        assert_eq!(words(&anyway), "");
        assert_eq!(words(&[("rw", "read"), ("rwmixread", "70")]), "", "no mix");
    }

    #[test]
    fn what_does_nothing_in_such_a_job_is_not_told() {
        let alone = [
            ("rw", "read"),
            ("norandommap", "1"),
            ("random_distribution", "zipf"),
            ("offset_increment", "1g"),
            ("thinktime_blocks", "8"),
            ("thinktime", "0us"),
            ("rate_process", "poisson"),
            ("rate", "0,0"),
            ("ba", "8k"),
            ("bsrange", "4k-4k"),
            ("write_hint", "none"),
        ];
        assert_eq!(words(&alone), "");
        let beside = [
            ("rw", "randread"),
            ("numjobs", "2"),
            ("offset_increment", "1024m"),
            ("thinktime", "5000"),
            ("thinktime_blocks", "8"),
            ("norandommap", ""),
        ];
        let told = "norandommap=1 offset_increment=1g thinktime=5ms thinktime_blocks=8";
        assert_eq!(words(&beside), told);
    }

    #[test]
    fn a_unit_is_that_of_the_job() {
        let binary = words(&[("rw", "read"), ("rate", "10m")]);
        let decimal = words(&[("kb_base", "1000"), ("rw", "read"), ("rate", "10mib")]);
        assert_eq!((binary.as_str(), binary == decimal), ("rate=10m", true));
        let other = words(&[("kb_base", "1000"), ("rw", "read"), ("rate", "10m")]);
        assert_eq!(other, "rate=10000000");
    }

    #[test]
    fn a_run_of_ours_does_only_what_is_done() {
        let pairs = [("rw", "randread"), ("random_distribution", "zipf:1.2"), ("hipri", "1")];
        let here: Vec<String> = stated_here(pairs).into_keys().collect();
        assert_eq!(here, ["random_distribution"]);
        assert_eq!(words(&pairs), "hipri=1 random_distribution=zipf:1.2");
    }

    #[test]
    fn every_name_here_is_a_main_name_of_an_option() {
        let beside = BESIDE
            .into_iter()
            .flat_map(|(name, others)| std::iter::once(name).chain(others.iter().copied()));
        let listed = SHOWN_ELSEWHERE.into_iter().chain(PACE).chain(OF_RANDOM).chain(beside);
        for name in listed.chain(DEFAULTS.map(|(name, _)| name)) {
            assert_eq!(options::find(name).map(|option| option.name), Some(name), "{name}");
        }
    }
}
