//! The SD Association's classes against what was measured.
//!
//! Thresholds and conditions from the Physical Layer Simplified Specification, version 9.10:
//! application classes in sections 3.11 and 4.16 (random operations of 4 KiB within 256 MiB, 10 MB/s
//! written in units of 4 MiB; A2 with the card's command queue in use), video speed classes in
//! 4.13.4.3.1 (the slowest unit of a few dozen MB counts, not the mean); Speed Class 2 to 10 and
//! UHS 1 and 3 ask for the same number of MB/s under similar conditions. The state of the card before
//! is the specification's only in a laboratory, so the answer is how it behaves here.

use super::{Finding, SpeedClass, Threshold, job};
use crate::application_class::{A1, A2, ApplicationClass, Met, all, met};
use crate::estimate::Estimate;
use crate::result::{JobResult, Run, StallCause};

/// The classes for writing in order, with their bytes per second. C10 and V10 ask for what U1 does.
const SPEED_CLASSES: [(&str, f64); 7] = [
    ("C4", 4e6),
    ("V6 (C6)", 6e6),
    ("U1 (V10, C10)", 10e6),
    ("V30 (U3)", 30e6),
    ("V60", 60e6),
    ("V90", 90e6),
    ("C2", 2e6),
];

const IOPS: &str = "IOPS";
const BYTES_PER_SECOND: &str = "bytes per second";

/// The classes of a run of the suite `class`.
pub(super) fn of(run: &Run) -> Vec<Finding> {
    let Some(writing) = run.job(job::CLASS_WRITE) else {
        return Vec::new();
    };
    let one_at_a_time = [job::CLASS_READ, job::CLASS_RANDOM_WRITE];
    let queued = [job::CLASS_READ_DEEP, job::CLASS_RANDOM_WRITE_DEEP];
    let mut classes = Vec::new();
    classes.extend(application_class(run, &A1, one_at_a_time, writing));
    classes.extend(application_class(run, &A2, queued, writing));
    let mut speeds = SPEED_CLASSES;
    speeds.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    classes.extend(
        speeds
            .iter()
            .map(|(name, rate)| speed_class(name, *rate, writing)),
    );
    classes.into_iter().map(Finding::SpeedClass).collect()
}

fn application_class(
    run: &Run,
    class: &ApplicationClass,
    [reads, writes]: [&str; 2],
    writing: &JobResult,
) -> Option<SpeedClass> {
    let random = |what: &str, name: &str, least| {
        Some(Threshold {
            what: what.into(),
            job: name.into(),
            least,
            unit: IOPS.into(),
            measured: run.job(name)?.iops,
        })
    };
    Some(judged(
        class.name,
        vec![
            random("random reads", reads, class.read_iops)?,
            random("random writes", writes, class.write_iops)?,
            in_order(class.sequential_bytes_per_second, writing),
        ],
    ))
}

fn speed_class(name: &str, rate: f64, writing: &JobResult) -> SpeedClass {
    let mut thresholds = vec![in_order(rate, writing)];
    if let Some(measured) = slowest_second(writing) {
        thresholds.push(Threshold {
            what: "the slowest second of it".into(),
            measured,
            ..in_order(rate, writing)
        });
    }
    judged(name, thresholds)
}

fn in_order(least: f64, writing: &JobResult) -> Threshold {
    Threshold {
        what: "writing in order".into(),
        job: writing.job.clone(),
        least,
        unit: BYTES_PER_SECOND.into(),
        measured: writing.bytes_per_second,
    }
}

/// The least bytes in any second of the job. Where something other than the device held it up, the
/// device itself may be faster.
fn slowest_second(writing: &JobResult) -> Option<Estimate> {
    let series = writing.series.as_ref()?;
    let bins = (1.0 / series.bin_s).round().max(1.0) as usize;
    let seconds = series.bytes.windows(bins);
    let least = seconds.map(|second| second.iter().sum::<u64>()).min()?;
    let value = least as f64 / (bins as f64 * series.bin_s);
    // Operations that happen to end in the next second are not lost.
    let block = f64::from(writing.block_bytes);
    let is_blameless = writing
        .stalls
        .iter()
        .any(|stall| stall.cause != StallCause::Device);
    let high = match is_blameless {
        true => f64::INFINITY,
        false => value + block,
    };
    Some(Estimate::new(value, value, high))
}

fn judged(class: &str, thresholds: Vec<Threshold>) -> SpeedClass {
    let answers: Vec<Met> = thresholds
        .iter()
        .map(|threshold| met(&threshold.measured, threshold.least))
        .collect();
    SpeedClass {
        class: class.into(),
        thresholds,
        is_met: match all(&answers) {
            Met::Yes => Some(true),
            Met::No => Some(false),
            Met::Inconclusive => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::result::{Series, Stall};

    /// A run of the suite `class` with these figures: read and write IOPS one at a time and queued, and
    /// bytes per second in order, all known to ±5 %.
    fn run(iops: [f64; 4], in_order: f64) -> Run {
        let mut run = fixture::slow_sd_card_run();
        let plain = run.results[0].clone();
        let names = [
            job::CLASS_READ,
            job::CLASS_RANDOM_WRITE,
            job::CLASS_READ_DEEP,
            job::CLASS_RANDOM_WRITE_DEEP,
        ];
        let known = |value: f64| Estimate::new(value, value * 0.95, value * 1.05);
        run.results = names
            .iter()
            .zip(iops)
            .map(|(name, iops)| JobResult {
                job: (*name).into(),
                iops: known(iops),
                ..plain.clone()
            })
            .collect();
        run.results.push(JobResult {
            job: job::CLASS_WRITE.into(),
            bytes_per_second: known(in_order),
            block_bytes: 1 << 20,
            stalls: vec![],
            series: Some(Series {
                bin_s: 0.1,
                bytes: vec![(in_order / 10.0) as u64; 300],
            }),
            ..plain
        });
        run
    }

    fn answers(run: &Run) -> Vec<(String, Option<bool>)> {
        of(run)
            .into_iter()
            .map(|finding| match finding {
                Finding::SpeedClass(class) => (class.class, class.is_met),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    fn answer(run: &Run, class: &str) -> Option<bool> {
        let answers = answers(run);
        let found = answers.iter().find(|(name, _)| name == class);
        found.unwrap_or_else(|| panic!("{class} in {answers:?}")).1
    }

    #[test]
    fn each_class_is_judged_by_its_own_thresholds() {
        let run = run([2000.0, 700.0, 3900.0, 2500.0], 32e6);
        assert_eq!(answer(&run, "A1"), Some(true));
        // 3900 ± 5 % does not decide about 4000.
        assert_eq!(answer(&run, "A2"), None);
        assert_eq!(answer(&run, "V6 (C6)"), Some(true));
        assert_eq!(answer(&run, "V30 (U3)"), Some(true));
        assert_eq!(answer(&run, "V60"), Some(false));
        let names: Vec<String> = answers(&run).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names[..3], ["A1", "A2", "C2"]);
    }

    #[test]
    fn a_slow_second_fails_a_speed_class_unless_the_device_is_not_to_blame() {
        let mut run = run([2000.0, 700.0, 3900.0, 2500.0], 32e6);
        let writing = run.results.last_mut().unwrap();
        writing.series.as_mut().unwrap().bytes[100..108].fill(0);
        assert_eq!(answer(&run, "V30 (U3)"), Some(false));
        assert_eq!(answer(&run, "A1"), Some(true));
        run.results.last_mut().unwrap().stalls = vec![Stall {
            start_s: 10.5,
            length_ms: 800.0,
            cause: StallCause::OtherWriters,
        }];
        assert_eq!(answer(&run, "V30 (U3)"), None);
    }

    #[test]
    fn other_suites_say_nothing_of_classes() {
        assert_eq!(of(&fixture::slow_sd_card_run()), []);
    }
}
