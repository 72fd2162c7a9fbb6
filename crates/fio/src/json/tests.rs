//! What the readers of fio's JSON look for.

use std::collections::BTreeSet;

use rubus_fixtures as fixture;

use super::*;

/// Names that fio 3.33 prints of a job with a mix and flushes and that are known here. Of its other
/// names, `ctx`, `majf`, `minf`, `iodepth_submit` and `iodepth_complete` are not counted here.
const JOB: &str = "jobname groupid error eta elapsed job_options read write trim job_runtime usr_cpu \
    sys_cpu iodepth_level latency_ns latency_us latency_ms latency_depth latency_target latency_percentile \
    latency_window";
const SIDE: &str = "io_bytes io_kbytes bw_bytes bw iops runtime total_ios short_ios drop_ios slat_ns clat_ns \
    lat_ns bw_min bw_max bw_agg bw_mean bw_dev bw_samples iops_min iops_max iops_mean iops_stddev iops_samples";
const LATENCY: &str = "min max mean stddev N";
const PERCENTILES: &str = "1.000000 5.000000 10.000000 20.000000 30.000000 40.000000 50.000000 60.000000 70.000000 \
    80.000000 90.000000 95.000000 99.000000 99.500000 99.900000 99.950000 99.990000";
const BELOW_A_SECOND: &str = "2 4 10 20 50 100 250 500 750 1000";

fn parsed(run: &Run) -> Value {
    serde_json::from_str(&render(&[run])).expect("valid JSON")
}

fn names(value: &Value) -> BTreeSet<String> {
    let object = value.as_object().expect("an object");
    object.keys().map(|name| name.replace(' ', "_")).collect()
}

fn of_list(list: &str) -> BTreeSet<String> {
    list.split_whitespace().map(str::to_string).collect()
}

#[test]
fn fios_readers_find_what_they_look_for() {
    let run = fixture::slow_sd_card_run();
    let parsed = parsed(&run);
    let job = &parsed["jobs"][2];
    assert_eq!(job["jobname"], "random-read");
    assert_eq!(job["job options"]["rw"], "randread");
    assert_eq!(job["job options"]["bs"], "4096");
    assert_eq!(job["job options"]["iodepth"], "1");
    assert_eq!(job["read"]["bw_bytes"], 6_590_000);
    assert_eq!(job["read"]["clat_ns"]["percentile"]["99.000000"], 1_020_000);
    assert_eq!(job["write"]["iops"], 0.0);
}

#[test]
fn every_name_of_fio_that_can_be_known_is_there() {
    let parsed = parsed(&fixture::job_file_run());
    let top = "fio_version rubus_version timestamp timestamp_ms time global_options jobs disk_util";
    assert_eq!(names(&parsed), of_list(top));
    let job = &parsed["jobs"][0];
    let mut expected = of_list(JOB);
    expected.insert("desc".into());
    assert_eq!(names(job), expected);
    for side in ["read", "write", "trim"] {
        assert_eq!(names(&job[side]), of_list(SIDE), "{side}");
        assert_eq!(names(&job[side]["lat_ns"]), of_list(LATENCY));
        assert_eq!(names(&job[side]["slat_ns"]), of_list(LATENCY));
    }
    assert_eq!(names(&job["read"]["clat_ns"]["percentile"]), of_list(PERCENTILES));
    assert_eq!(names(&job["latency_ns"]), of_list(BELOW_A_SECOND));
    assert_eq!(names(&job["latency_us"]), of_list(BELOW_A_SECOND));
    let milliseconds = format!("{BELOW_A_SECOND} 2000 >=2000");
    assert_eq!(names(&job["latency_ms"]), of_list(&milliseconds));
    assert_eq!(
        names(&job["iodepth_level"]),
        of_list("1 2 4 8 16 32 64 >=64").difference(&of_list("64")).cloned().collect()
    );
}

#[test]
fn a_mix_is_one_job_with_two_sides() {
    let parsed = parsed(&fixture::job_file_run());
    let jobs = parsed["jobs"].as_array().expect("a list");
    assert_eq!(jobs.len(), 2);
    assert_eq!(jobs[0]["jobname"], "mix");
    assert_eq!((&jobs[0]["groupid"], &jobs[0]["desc"]), (&json!(0), &json!("what mix is for")));
    let options = json!({
        "rw": "randrw", "bssplit": "4k/67:8k/", "bs": "4096", "iodepth": "1", "numjobs": "2",
    });
    assert_eq!(jobs[0]["job options"], options);
    assert_eq!(parsed["global options"], json!({ "direct": "1" }));
    assert_eq!(jobs[0]["read"]["io_bytes"], 6_144_000);
    assert_eq!(jobs[0]["write"]["io_bytes"], 6_144_000);
    assert_eq!(jobs[1]["read"]["io_bytes"], 0);
}

#[test]
fn a_reporting_group_is_added_up() {
    let mut run = fixture::job_file_run();
    run.job_file.as_mut().expect("it is there").jobs[1].group = 0;
    let parsed = parsed(&run);
    let jobs = parsed["jobs"].as_array().expect("a list");
    assert_eq!(jobs.len(), 1);
    let write = &jobs[0]["write"];
    let sums = (&write["io_bytes"], &write["total_ios"]);
    assert_eq!(sums, (&json!(12_288_000), &json!(2000)));
    assert_eq!(write["bw_bytes"], 13_180_000);
    let single = Side::of([&run.results[1]].into_iter()).rendered();
    // Two jobs that are alike have the latencies of one, and twice its rates.
    let mean = |side: &Value| side["lat_ns"]["mean"].as_f64().expect("a number");
    assert!((mean(write) - mean(&single)).abs() < 1e-3);
    let rate = |side: &Value| side["bw_mean"].as_f64().expect("a number");
    assert_eq!(rate(write), rate(&single) * 2.0);
}

#[test]
fn rates_are_sampled_each_half_second() {
    let parsed = parsed(&fixture::job_file_run());
    let read = &parsed["jobs"][0]["read"];
    // Five bins of 600 and 300 KiB by turns: 2400 or 2100 KiB in half a second.
    assert_eq!((&read["bw_min"], &read["bw_max"]), (&json!(4200), &json!(4800)));
    assert_eq!((&read["bw_mean"], &read["bw_samples"]), (&json!(4500.0), &json!(4)));
    // 6144 bytes an operation: 4200 KiB/s are 700 operations.
    assert_eq!((&read["iops_min"], &read["iops_max"]), (&json!(700), &json!(800)));
}

#[test]
fn percentiles_rise_within_what_was_seen() {
    let mut run = fixture::job_file_run();
    run.results[0].latency_ns.p99 = Some(2_000_000);
    let parsed = parsed(&run);
    let clat = &parsed["jobs"][0]["read"]["clat_ns"];
    let list = &clat["percentile"];
    assert_eq!(list["1.000000"], 500_000);
    assert_eq!(list["99.000000"], 2_000_000);
    assert_eq!(list["99.990000"], 2_900_000);
    let mut before = 0;
    for percentile in latency::PERCENTILES {
        let value = list[latency::name(percentile)].as_u64().expect("a number");
        assert!(value >= before, "{percentile}");
        before = value;
    }
    let job = &parsed["jobs"][0];
    assert_eq!(job["latency_us"]["750"], 98.0);
    assert_eq!(job["latency_ms"]["4"], 2.0);
}

#[test]
fn each_job_has_a_file_with_the_name_that_fio_plot_sorts_by() {
    let mut run = fixture::queue_depth_run();
    let files = render_each(&[&run]);
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.contains(&"randread-32-1.json"), "{names:?}");
    assert_eq!(files.len(), run.results.len());
    let parsed: Value = serde_json::from_str(&files[0].1).expect("valid JSON");
    assert_eq!(parsed["jobs"].as_array().map(Vec::len), Some(1));
    run.results = vec![run.results[0].clone(), run.results[0].clone()];
    let files = render_each(&[&run]);
    assert!(files[1].0.ends_with("-1-2.json"), "{}", files[1].0);
}

#[test]
fn the_moment_is_fios_timestamp() {
    assert_eq!(unix_ms("1970-01-01T00:00:00.000Z"), Some(0));
    assert_eq!(unix_ms("2000-02-29T12:00:01.500Z"), Some(951_825_601_500));
    assert_eq!(unix_ms("2026-11-21T04:00:18Z"), Some(1_795_233_618_000));
    assert_eq!(unix_ms("soon"), None);
}
