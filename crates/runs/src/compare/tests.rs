//! Comparison as its reader needs it: the right jobs side by side, what differs, and words that the
//! figures carry.

use super::*;
use crate::reference;
use rubus_fixtures as fixture;
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::job_names;
use rubus_vocabulary::result::{Access, Run};

fn scaled(mut run: Run, name: &str, factor: f64, half_width: f64) -> Run {
    for result in &mut run.results {
        if result.job == name {
            let value = result.bytes_per_second.value * factor;
            result.bytes_per_second =
                Estimate::new(value, value * (1.0 - half_width), value * (1.0 + half_width));
        }
    }
    run
}

fn two(a: &Run, b: &Run) -> Comparison {
    compare(&[Subject::of_run("run 1", a), Subject::of_run("run 2", b)])
}

fn word_of(comparison: &Comparison, name: &str) -> Word {
    let row = comparison
        .rows
        .iter()
        .find(|row| row.jobs[0].as_deref() == Some(name))
        .expect("the row is there");
    row.throughput.ratios[1].expect("a ratio").word
}

#[test]
fn a_run_against_itself_shows_no_evidence_of_anything() {
    let run = fixture::slow_sd_card_run();
    let comparison = two(&run, &run);
    assert_eq!(comparison.rows.len(), run.results.len());
    assert_eq!((comparison.alone.len(), comparison.differences.len()), (0, 0));
    assert!(comparison.doubts.iter().all(|doubt| doubt.is_of_all));
    for row in &comparison.rows {
        assert_eq!(row.jobs[0], row.jobs[1], "its own counterpart");
        for measure in [&row.throughput, &row.p50_ns, &row.p99_ns] {
            if let Some(ratio) = measure.ratios[1] {
                assert!((ratio.figure.value - 1.0).abs() < 1e-12);
                assert!(matches!(ratio.word, Word::NoEvidence | Word::NotJudged));
            }
        }
    }
    assert!(comparison.regressions(0.0).is_empty());
}

#[test]
fn a_clear_change_is_said_and_counts_as_a_regression_beyond_the_tolerance() {
    let before = fixture::slow_sd_card_run();
    let after = scaled(before.clone(), job_names::SEQUENTIAL_READ, 0.7, 0.01);
    let comparison = two(&before, &after);
    assert_eq!(word_of(&comparison, job_names::SEQUENTIAL_READ), Word::Slower);
    assert_eq!(word_of(&comparison, job_names::RANDOM_READ), Word::NoEvidence);
    let found = comparison.regressions(0.2);
    assert_eq!((found.len(), found[0].what), (1, "throughput"));
    assert!(comparison.regressions(0.35).is_empty());
    let back = two(&after, &before);
    assert_eq!(word_of(&back, job_names::SEQUENTIAL_READ), Word::Faster);
    assert!(back.regressions(0.0).is_empty());
}

#[test]
fn what_differs_is_named_in_order_and_doubts_of_one_only() {
    let before = fixture::slow_sd_card_run();
    let mut after = before.clone();
    after.target.access = Access::Buffered;
    after.target.content = "zeros".into();
    after.results[0].doubts.push(Doubt::CpuStarved { share: 0.2 });
    let comparison = two(&before, &after);
    let names: Vec<&str> = comparison.differences.iter().map(|d| d.what.as_str()).collect();
    assert_eq!(names, ["access", "content"]);
    let of_one: Vec<_> = comparison.doubts.iter().filter(|d| !d.is_of_all).collect();
    assert_eq!(of_one.len(), 1);
    assert_eq!(of_one[0].subject, 1);
    assert_eq!(of_one[0].jobs, ["1 MiB sequential reads"]);
    // The jobs are still the same ones, with a remark.
    assert_eq!(comparison.rows.len(), before.results.len());
    assert_eq!(comparison.rows[0].remarks, ["past the page cache against through it"]);
}

#[test]
fn runs_with_different_lanes_say_so() {
    let before = fixture::queue_depth_run();
    let mut after = before.clone();
    for result in after.results.iter_mut().filter(|r| r.engine == "ring") {
        result.lanes = Some(result.queue_depth.min(4));
    }
    let comparison = two(&before, &after);
    let told: Vec<_> = comparison
        .differences
        .iter()
        .map(|difference| (difference.what.as_str(), difference.values.clone()))
        .collect();
    assert_eq!(told, [("lanes", vec![Some("1".into()), Some("4".into())])]);
    assert!(two(&after, &after).differences.is_empty());
    let mut polled = after.clone();
    polled.results[3].polled = true;
    let told = two(&after, &polled).differences;
    assert_eq!(told[0].what, "completions");
    assert_eq!(told[0].values, [Some("by interrupt".into()), Some("polled".into())]);
}

#[test]
fn jobs_are_matched_by_what_they_do_and_bystanders_only_with_their_like() {
    let ours = fixture::slow_sd_card_run();
    let mut theirs = ours.clone();
    theirs.results.retain(|r| r.job == job_names::RANDOM_READ);
    theirs.results[0].job = "randread-4k-qd1".into();
    let comparison = two(&ours, &theirs);
    assert_eq!(comparison.rows.len(), 1);
    assert_eq!(comparison.rows[0].jobs[0].as_deref(), Some(job_names::RANDOM_READ));
    assert_eq!(comparison.alone.len(), ours.results.len() - 1);
    theirs.results[0].queue_depth = 4;
    assert!(two(&ours, &theirs).rows.is_empty());
}

#[test]
fn published_figures_give_a_ratio_without_a_word() {
    let run = fixture::slow_sd_card_run();
    let reference = reference::by_id("pi3-card-f2fs").expect("it is there");
    let comparison = compare(&[reference::subject(reference), Subject::of_run("run 1", &run)]);
    let pairs: Vec<(String, String)> = comparison
        .rows
        .iter()
        .map(|row| {
            let name = |side: usize| row.jobs[side].clone().unwrap_or_default();
            (name(0), name(1))
        })
        .collect();
    let has = |a: &str, b: &str| pairs.contains(&(a.to_string(), b.to_string()));
    assert!(has("random-read-4k", job_names::RANDOM_READ), "{pairs:?}");
    assert!(has("random-write-4k", job_names::RANDOM_WRITE), "{pairs:?}");
    assert!(has("write-512k", job_names::SEQUENTIAL_WRITE), "{pairs:?}");
    assert!(has("read-512k", job_names::SEQUENTIAL_READ), "{pairs:?}");
    assert_eq!(pairs.len(), 4);
    for row in &comparison.rows {
        let ratio = row.throughput.ratios[1].expect("a ratio");
        assert_eq!((ratio.word, ratio.figure.interval), (Word::NotJudged, None));
    }
    assert_eq!(comparison.judged, 0);
}

#[test]
fn fios_json_is_compared_with_a_run_of_ours() {
    let text = r#"{
      "fio version": "fio-3.36", "global options": {"direct": "1", "size": "64m"},
      "jobs": [
        {"jobname": "r", "error": 0, "job options": {"rw": "randread", "bs": "4k", "iodepth": "1"},
         "read": {"io_bytes": 163840000, "total_ios": 40000, "bw_bytes": 8192000, "iops": 2000.0,
                  "runtime": 20000,
                  "iops_mean": 2000.0, "iops_stddev": 100.0, "iops_samples": 40,
                  "clat_ns": {"percentile": {"50.000000": 480000, "99.000000": 900000}}},
         "write": {"io_bytes": 0, "total_ios": 0}},
        {"jobname": "m", "error": 0, "job options": {"rw": "randrw", "bs": "4k", "iodepth": "1"},
         "read": {"io_bytes": 4096, "total_ios": 1, "bw_bytes": 4096},
         "write": {"io_bytes": 4096, "total_ios": 1, "bw_bytes": 4096}},
        {"jobname": "c", "error": 0, "job options": {"rw": "write", "bs": "4k", "fdatasync": "1"},
         "read": {"total_ios": 0},
         "write": {"io_bytes": 409600, "total_ios": 100, "bw_bytes": 81920}}
      ]}"#;
    let value = serde_json::from_str(text).expect("JSON");
    assert!(fio::is_fio(&value));
    let fio = fio::subject("fio.json", &value).expect("fio's");
    assert_eq!(fio.jobs.len(), 4);
    // Halves of a mix are not compared with reads or writes alone.
    assert!(fio.jobs[1].is_shared && fio.jobs[2].is_shared && !fio.jobs[3].is_shared);
    let read = &fio.jobs[0];
    assert_eq!((read.block_bytes, read.queue_depth), (Some(4096), Some(1)));
    let interval = read.throughput.interval.expect("a rough one");
    // Ten times two seconds: 2.262 · 5 % / √10 = 3.58 %.
    assert!(interval.rough && (interval.low / 8_192_000.0 - 0.9642).abs() < 1e-3);
    assert!(fio.jobs[3].commit && fio.jobs[3].p50_ns.is_none());

    let run = Subject::of_run("run 1", &fixture::slow_sd_card_run());
    let comparison = compare(&[fio, run]);
    let matched: Vec<_> = comparison.rows.iter().map(|r| r.jobs[1].clone()).collect();
    assert_eq!(matched, [Some(job_names::RANDOM_READ.into()), Some(job_names::COMMIT.into())]);
    let ratio = comparison.rows[0].throughput.ratios[1].expect("a ratio");
    assert!(ratio.figure.interval.expect("joined").rough);
}

/// A run of a job file against fio's result of the same file: the names say which job is which,
/// whatever other pairs do the same.
#[test]
fn jobs_of_one_job_file_are_paired_by_their_sections() {
    let options = [
        ("fdatasync", "fdatasync"),
        ("fsync", "fsync"),
        ("sync", "sync"),
        ("eighth", "fsync"),
        ("plain", "description"),
    ];
    let value = |name: &str| if name == "eighth" { "8" } else { "1" };
    let entries: Vec<serde_json::Value> = options
        .iter()
        .map(|(name, option)| {
            serde_json::json!({"jobname": name,
                "job options": {"rw": "write", "bs": "4k", *option: value(name)},
                "write": {"io_bytes": 409_600, "io_kbytes": 400, "total_ios": 100,
                    "bw_bytes": 81_920, "runtime": 5000}})
        })
        .collect();
    let fio = serde_json::json!({"fio version": "fio-3.33", "jobs": entries});
    let fio = fio::subject("fio.json", &fio).expect("fio's");
    let mut run = fixture::slow_sd_card_run();
    let model = run.results.iter().find(|r| r.commit).expect("commits").clone();
    run.results = options
        .iter()
        .rev()
        .map(|(name, option)| rubus_vocabulary::result::JobResult {
            job: format!("{name} (2)"),
            commit: *option == "sync",
            access: Some(Access::Buffered),
            ..model.clone()
        })
        .collect();
    run.job_file = Some(rubus_vocabulary::result::JobFile {
        global_options: [("rw", "write"), ("bs", "4k")].map(|(a, b)| (a.into(), b.into())).into(),
        jobs: options
            .iter()
            .map(|(name, option)| rubus_vocabulary::result::JobFileJob {
                name: format!("{name} (2)"),
                section: (*name).into(),
                options: [(option.to_string(), value(name).to_string())].into(),
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    });
    let run = Subject::of_run("run 1", &run);
    for subjects in [[fio.clone(), run.clone()], [run, fio]] {
        let comparison = compare(&subjects);
        assert!(comparison.alone.is_empty(), "{:?}", comparison.alone);
        assert_eq!(comparison.rows.len(), options.len());
        for row in &comparison.rows {
            let name = |place: usize| {
                let name = row.jobs[place].as_deref().expect("a job");
                name.trim_end_matches(" (2)").to_string()
            };
            assert_eq!(name(0), name(1));
        }
    }
}

#[test]
fn machines_are_compared_by_their_facts_alone() {
    let run = fixture::slow_sd_card_run();
    let mut other = run.machine.clone();
    other.mounts.pop();
    let comparison =
        compare(&[Subject::of_machine("a", &run.machine), Subject::of_machine("b", &other)]);
    assert!(comparison.rows.is_empty());
    assert_eq!(comparison.differences.len(), 1, "{:?}", comparison.differences);
    assert_eq!(comparison.differences[0].values[1], None);
}

#[test]
fn a_comparison_survives_json() {
    let run = fixture::slow_sd_card_run();
    let comparison = two(&run, &scaled(run.clone(), job_names::RANDOM_READ, 2.0, 0.02));
    let text = serde_json::to_string(&comparison).expect("JSON");
    let back: Comparison = serde_json::from_str(&text).expect("reads back");
    assert_eq!(back, comparison);
}

#[test]
fn what_was_measured_in_turns_is_compared_by_its_rounds_either_way_round() {
    let [before, mut after] = fixture::runs_in_turns();
    let there = two(&before, &after);
    assert!(there.interleaved);
    // The runs' own intervals of ±14 % would not show it.
    assert_eq!(word_of(&there, job_names::RANDOM_WRITE), Word::Faster);
    let back = two(&after, &before);
    assert!(back.interleaved);
    assert_eq!(word_of(&back, job_names::RANDOM_WRITE), Word::Slower);
    after.started = "2026-11-21T01:02:05Z".into();
    let mut other = before.clone();
    other.started = "2026-01-01T00:00:00Z".into();
    assert!(!two(&other, &after).interleaved);
}

#[test]
fn a_median_between_two_modes_is_not_compared_in_turns_either() {
    let [before, after] = fixture::runs_in_turns();
    let with_modes = |mut run: rubus_vocabulary::result::Run| {
        let mut results = run.results.iter_mut();
        let result =
            results.find(|result| result.job == job_names::RANDOM_WRITE).expect("it is there");
        result.latency_bins = Some(rubus_vocabulary::result::LatencyBins {
            up_to_ns: vec![500_000, 50_000_000],
            operations: vec![50, 50],
        });
        run
    };
    let p50 = |comparison: &Comparison| {
        let mut rows = comparison.rows.iter();
        let row = rows.find(|row| row.jobs[0].as_deref() == Some(job_names::RANDOM_WRITE));
        row.expect("a row").p50_ns.ratios[1]
    };
    assert!(p50(&two(&before, &after)).is_some());
    for comparison in
        [two(&with_modes(before.clone()), &after), two(&before, &with_modes(after.clone()))]
    {
        assert!(comparison.interleaved);
        assert_eq!(p50(&comparison), None);
        assert!(comparison.doubts.iter().any(|doubt| doubt.kind == "two_latency_modes"));
        assert_eq!(word_of(&comparison, job_names::RANDOM_WRITE), Word::Faster);
    }
}

#[test]
fn runs_of_a_virtual_machine_are_allowed_to_differ_more() {
    let before = fixture::slow_sd_card_run();
    let mut after = before.clone();
    for result in &mut after.results {
        result.iops = result.iops.scaled(1.4);
        result.bytes_per_second = result.bytes_per_second.scaled(1.4);
    }
    let words = |comparison: &Comparison| -> Vec<Word> {
        let of = |row: &Row| row.throughput.ratios[1].expect("a ratio").word;
        comparison.rows.iter().map(of).collect()
    };
    let of_board = two(&before, &after);
    assert!(words(&of_board).contains(&Word::Faster), "{of_board:?}");
    assert_eq!(of_board.between_runs, BETWEEN_RUNS);
    // One of the two is enough.
    let mut of_guest = before.clone();
    of_guest.machine.system.virtualization = Fact::known("kvm".into(), "/proc/cpuinfo");
    for comparison in [two(&of_guest, &after), two(&after, &of_guest)] {
        assert_eq!(comparison.between_runs, BETWEEN_RUNS_OF_GUESTS);
        let said = words(&comparison);
        assert!(said.iter().all(|word| *word == Word::NoEvidence), "{said:?}");
    }
}
