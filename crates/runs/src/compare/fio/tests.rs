//! fio's results of several versions and settings, as subjects.

use serde_json::{Value, json};

use super::*;

fn side(operations: u64, runtime_ms: u64) -> Value {
    let seconds = runtime_ms as f64 / 1e3;
    json!({"io_bytes": operations * 4096, "io_kbytes": operations * 4, "total_ios": operations,
        "runtime": runtime_ms, "iops": operations as f64 / seconds,
        "bw_bytes": operations as f64 * 4096.0 / seconds})
}

fn jobs(global: Value, entries: Value) -> Vec<SubjectJob> {
    let value = json!({"fio version": "fio-3.33", "global options": global, "jobs": entries});
    subject("x.json", &value).expect("fio's").jobs
}

fn only(options: Value, sides: Value) -> SubjectJob {
    let mut entry = json!({"jobname": "a", "error": 0, "job options": options});
    for (key, value) in sides.as_object().expect("an object") {
        entry[key] = value.clone();
    }
    let mut jobs = jobs(json!({}), json!([entry]));
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    jobs.remove(0)
}

#[test]
fn every_way_to_make_writes_durable_is_told_apart() {
    let write = |name: &str, value: &str| {
        only(json!({"rw": "write", name: value}), json!({"write": side(1000, 2000)}))
    };
    assert!(
        write("fsync", "1").commit && write("sync", "dsync").commit && write("sync", "1").commit
    );
    assert!(!write("fsync", "8").commit && !write("end_fsync", "1").commit);
    assert_eq!(write("sync", "1").sync, Some(WriteSync::Open { metadata_too: true }));
    let eighth = WriteSync::Flush { writes: 8, metadata_too: false };
    assert_eq!(write("fdatasync", "8").sync, Some(eighth));
}

#[test]
fn switches_that_are_off_do_not_count_as_set() {
    let entry = json!({"jobname": "a", "read": side(1000, 2000), "job_runtime": 2000});
    let global = json!({"group_reporting": "0", "numjobs": "2", "buffered": "0"});
    let jobs = jobs(global, json!([entry, entry]));
    assert_eq!((jobs[0].copies, jobs[0].access), (1, Some(Access::Direct)));
    let grouped = only(
        json!({"group_reporting": "", "numjobs": "2", "direct": "1", "buffered": "1"}),
        json!({"read": side(1000, 2000), "job_runtime": 4000}),
    );
    assert_eq!(grouped.copies, 2);
    // fio leaves a flag without a value out of its result; the copies are not there one by one.
    let flag =
        only(json!({"numjobs": "8"}), json!({"read": side(1000, 2000), "job_runtime": 16_000}));
    assert_eq!(flag.copies, 8);
}

#[test]
fn jobs_that_do_the_same_are_told_apart_by_their_names() {
    let entry = |name: &str, side_of: &str| {
        let options = json!({"rw": side_of, "bs": "4k"});
        json!({"jobname": name, "job options": options, side_of: side(1000, 2000)})
    };
    let entries = json!([
        entry("log", "write"),
        entry("data", "write"),
        entry("cold", "read"),
        entry("log", "write")
    ]);
    let titles: Vec<String> = jobs(json!({}), entries).into_iter().map(|job| job.title).collect();
    assert_eq!(
        titles,
        [
            "4 KiB sequential writes (log #1)",
            "4 KiB sequential writes (data)",
            "4 KiB sequential reads",
            "4 KiB sequential writes (log #2)"
        ]
    );
}

#[test]
fn engines_that_work_one_at_a_time_have_a_depth_of_one() {
    let depth = |engine: &str, direct: &str| {
        let options = json!({"ioengine": engine, "iodepth": "16", "direct": direct});
        only(options, json!({"read": side(1000, 2000)})).queue_depth
    };
    assert_eq!((depth("psync", "1"), depth("libaio", "0")), (Some(1), Some(1)));
    assert_eq!((depth("libaio", "1"), depth("rbd", "0")), (Some(16), Some(16)));
}

#[test]
fn a_group_of_several_sections_is_not_its_first_section() {
    let mut read = side(40_000, 10_000);
    read["lat_ns"] = json!({"mean": 1e6});
    let group = |options: Value, runtime: u64| {
        only(options, json!({"read": read.clone(), "job_runtime": runtime}))
    };
    let options = json!({"group_reporting": "1", "rw": "randread", "bs": "16k"});
    let job = group(options.clone(), 40_000);
    assert_eq!((job.copies, job.is_shared, job.block_bytes), (4, true, Some(4096)));
    assert_eq!(job.title, "4 KiB random reads, 4 jobs of several sections");
    // Four copies of one section are no several sections.
    let copies = json!({"group_reporting": "1", "rw": "randread", "numjobs": "4"});
    let job = group(copies, 40_000);
    assert_eq!((job.copies, job.is_shared), (4, false));
    // The time alone does not make it several: nothing more was in flight.
    read["lat_ns"] = json!({"mean": 2e5});
    let job = only(options, json!({"read": read, "job_runtime": 40_000}));
    assert_eq!((job.copies, job.is_shared), (1, false));
}

#[test]
fn jobs_that_ran_together_are_not_like_one_alone() {
    let entry = |group: u32| {
        json!({"jobname": "a", "groupid": group, "job options": {"rw": "read"},
            "read": side(1000, 2000)})
    };
    let of = |entries: Value| {
        let value = json!({"fio version": "fio-3.33", "jobs": entries});
        subject("x.json", &value).expect("fio's")
    };
    let together = of(json!([entry(0), entry(0), entry(0), entry(1)]));
    let beside: Vec<Option<u32>> = together.jobs.iter().map(|job| job.beside).collect();
    assert_eq!(beside, [Some(2), Some(2), Some(2), Some(0)]);
    let by_rubus =
        json!({"fio version": "fio-3.36", "rubus version": "0.2.0", "jobs": [entry(0), entry(0)]});
    assert_eq!(subject("x.json", &by_rubus).expect("fio's").jobs[0].beside, None);
    let alone = of(json!([entry(0)]));
    let rows = crate::compare::compare(&[alone.clone(), together]).rows;
    assert_eq!(rows[0].remarks, ["other jobs at the same time: 0 against 2"]);
    assert_eq!(crate::compare::compare(&[alone.clone(), alone]).rows[0].remarks, [""; 0]);
}

#[test]
fn a_job_that_had_to_share_is_not_slower_for_no_known_reason() {
    let entry = |iops: u32, copies: &str| {
        json!({"jobname": "a", "groupid": 0, "job options": {"rw": "randread", "numjobs": copies},
            "read": {"io_bytes": iops * 245_760, "io_kbytes": iops * 240, "bw_bytes": iops * 4096,
                "iops": iops, "runtime": 60_000, "total_ios": iops * 60, "iops_mean": iops,
                "iops_stddev": 2.0, "iops_samples": 120}})
    };
    let of = |entries: Value| {
        let value = json!({"fio version": "fio-3.33", "jobs": entries});
        subject("x.json", &value).expect("fio's")
    };
    let alone = of(json!([entry(1000, "1")]));
    let shared = of(json!([entry(300, "3"), entry(300, "3"), entry(300, "3")]));
    let next = crate::compare::compare(&[alone.clone(), shared]).next;
    assert!(next.words.contains("other jobs at the same time: 0 against 2"), "{next:?}");
    let slower = crate::compare::compare(&[alone, of(json!([entry(300, "1")]))]).next;
    assert!(slower.words.contains("nothing that is known differs"), "{slower:?}");
}

#[test]
fn each_machine_is_compared_with_itself_in_whatever_order_they_answer() {
    let of = |host: &str, operations: u64| {
        json!({"jobname": "a", "groupid": 0, "hostname": host, "job options": {"rw": "read"},
            "read": side(operations, 2000)})
    };
    let run = |entries: Value| {
        let value = json!({"fio version": "fio-3.33", "client_stats": entries});
        subject("x.json", &value).expect("fio's")
    };
    let before = run(json!([of("pi1", 1000), of("pi2", 2000)]));
    let after = run(json!([of("pi2", 2000), of("pi1", 1000)]));
    let rows = crate::compare::compare(&[before, after]).rows;
    assert_eq!(rows.len(), 2, "{rows:?}");
    for row in rows {
        let figures = &row.throughput.figures;
        let value = |at: usize| figures[at].as_ref().map(|figure| figure.value);
        assert_eq!(value(0), value(1), "{row:?}");
    }
}

#[test]
fn the_sum_of_all_clients_counts_where_it_alone_was_kept() {
    let of = |name: &str, operations: u64| json!({"jobname": name, "groupid": 0, "hostname": "pi2", "read": side(operations, 2000)});
    let jobs = |entries: Value| {
        let value = json!({"fio version": "fio-3.33", "client_stats": entries,
            "global options": {"rw": "read", "numjobs": "2", "group_reporting": "1"}});
        subject("x.json", &value).expect("fio's").jobs
    };
    let with_clients = jobs(json!([of("a", 1000), of("All clients", 2000)]));
    assert_eq!(with_clients.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), ["a"]);
    let alone = jobs(json!([of("All clients", 2000)]));
    assert_eq!((alone.len(), alone[0].copies, alone[0].on.clone()), (1, 1, None));
    assert!(alone[0].doubts.iter().any(|doubt| doubt.kind == "all_clients"));
}

#[test]
fn options_that_do_not_say_the_work_name_none() {
    // fio 2.6, whose clients had options of their own.
    let value = json!({"fio version": "fio-2.6", "global options": {"unified_rw_reporting": "1"},
        "client_stats": [{"jobname": "All clients", "groupid": 0, "error": 0, "hostname": "pi2",
            "mixed": {"io_bytes": 2_186_952, "bw": 16_653, "iops": 2252.49, "runtime": 121_363,
                "total_ios": 273_369}}]});
    let jobs = subject("x.json", &value).expect("fio's").jobs;
    assert_eq!(jobs[0].title, "8 KiB reads and writes");
    assert_eq!((jobs[0].scope, jobs[0].queue_depth), (Scope::BothDirections, None));
    // What is replayed is in the log, and its blocks are those of the log.
    let mut read = side(1000, 2000);
    read["io_bytes"] = json!(8_192_000);
    read["io_kbytes"] = json!(8000);
    let replayed =
        only(json!({"read_iolog": "trace.log", "ioengine": "libaio"}), json!({"read": read}));
    assert_eq!((replayed.title.as_str(), replayed.block_bytes), ("8 KiB reads", Some(8192)));
    assert_eq!((replayed.queue_depth, replayed.access), (None, None));
}

#[test]
fn the_size_of_the_region_is_in_units_of_fio() {
    let region = |size: &str, base: &str| {
        let value = json!({"fio version": "fio-3.33", "global options": {"size": size,
            "kb_base": base}, "jobs": [{"jobname": "a", "read": side(1000, 2000)}]});
        let subject = subject("x.json", &value).expect("fio's");
        subject.fact("region").map(String::from)
    };
    for size in ["4194304", "4m", "4MB", "4Mi"] {
        assert_eq!(region(size, "1024").as_deref(), Some("4.00 MiB"), "{size}");
    }
    assert_eq!(region("4MiB", "1000").as_deref(), Some("4.00 MiB"));
    assert_eq!(region("50%", "1024").as_deref(), Some("50%"));
}

#[test]
fn what_reads_back_its_writes_is_one_job() {
    let options = json!({"group_reporting": "1", "rw": "write", "verify": "crc32c"});
    let mut write = side(5000, 5000);
    write["lat_ns"] = json!({"mean": 1e6});
    let entry = json!({"jobname": "v", "job options": options, "write": write.clone(),
        "read": write, "job_runtime": 10_000});
    let jobs = jobs(json!({}), json!([entry]));
    assert_eq!((jobs.len(), jobs[0].copies), (2, 1));
}

#[test]
fn reads_and_writes_in_one_result_are_both_whatever_their_key() {
    let options = json!({"rw": "randrw", "unified_rw_reporting": "1"});
    let mixed = only(options.clone(), json!({"mixed": side(1000, 2000)}));
    let under_read = only(options, json!({"read": side(1000, 2000)}));
    for job in [&mixed, &under_read] {
        assert_eq!(job.scope, Scope::BothDirections);
        assert_eq!(job.title, "4 KiB random reads and writes");
    }
    let options = json!({"rw": "write", "unified_rw_reporting": "mixed"});
    let written = only(options, json!({"read": side(1000, 2000)}));
    assert_eq!((written.scope, written.direction), (Scope::OneDirection, Direction::Write));
    // Of both reports the halves count, which other programs have as well.
    let options = json!({"rw": "randrw", "unified_rw_reporting": "both"});
    let entry = json!({"jobname": "a", "job options": options, "read": side(1000, 2000),
        "write": side(1000, 2000), "mixed": side(2000, 2000)});
    let halves = jobs(json!({}), json!([entry]));
    assert_eq!((halves.len(), halves[0].scope), (2, Scope::OneDirection));
}

#[test]
fn a_job_that_failed_before_it_did_anything_is_named() {
    let failed = json!({"jobname": "gone", "error": 2, "read": {"io_bytes": 0, "total_ios": 0}});
    let done = json!({"jobname": "there", "error": 0, "read": side(1000, 2000)});
    let of = |jobs: Value| subject("x.json", &json!({"fio version": "fio-3.36", "jobs": jobs}));
    let subject = of(json!([failed, done])).expect("fio's");
    assert_eq!(subject.jobs.len(), 1);
    assert_eq!(subject.doubts[0].what, "fio ended the job gone with error 2");
    let in_text = json!({"jobname": "there", "error": "5", "read": side(1000, 2000)});
    let doubts = of(json!([in_text])).expect("fio's").jobs.remove(0).doubts;
    assert!(doubts.iter().any(|doubt| doubt.what == "fio ended this job with error 5"));
    let why = of(json!([failed])).expect_err("nothing done");
    assert!(why.ends_with("wrote anything; fio ended the job gone with error 2"), "{why}");
}

#[test]
fn discards_are_jobs_of_their_own_kind() {
    let job = only(json!({"rw": "randtrim"}), json!({"trim": side(1000, 2000)}));
    assert_eq!((job.scope, job.title.as_str()), (Scope::Discards, "4 KiB random discards"));
}

#[test]
fn results_of_fio_2_are_read_in_their_units() {
    let value = json!({"fio version": "fio-2.2.10", "jobs": [{"jobname": "test",
        "read": {"io_bytes": 0, "bw": 0, "iops": 0.0, "runtime": 0, "total_ios": 0},
        "write": {"io_bytes": 37_500_272, "bw": 62_499, "iops": 15_624.7, "runtime": 600_008,
            "total_ios": 9_374_944, "clat": {"percentile": {"50.000000": 8160}}}}]});
    let jobs = subject("x.json", &value).expect("fio's").jobs;
    // Without its options, whether they were at random is not known.
    assert_eq!(jobs[0].title, "4 KiB writes");
    assert_eq!(jobs[0].p50_ns.map(|figure| figure.value), Some(8_160_000.0));
    // Its result does not say the depth, how it was opened, or how sure it is.
    assert_eq!((jobs[0].queue_depth, jobs[0].access), (None, None));
    assert_eq!(jobs[0].doubts[0].kind, "no_samples");
    let value = json!({"fio version": "fio-2.1.4", "jobs": [{"jobname": "r", "read":
        {"io_bytes": 36_244, "bw": 1269, "iops": 317, "runtime": 28_551}}]});
    let jobs = subject("x.json", &value).expect("fio's").jobs;
    assert_eq!(jobs[0].title, "4 KiB reads");
}

#[test]
fn other_output_of_fio_is_known_as_such() {
    assert!(is_other_output("m: (g=0): rw=randread, bs=(R) 4096B-4096B, ioengine=psync\n"));
    assert!(is_other_output("m: (groupid=0, jobs=1): err= 0: pid=7\n"));
    assert!(is_other_output("3;fio-3.33;m;0;0;4096;51150\n"));
    assert!(!is_other_output("eggs\nmilk\n"));
}
