//! The SD Association's classes against what was measured.
//!
//! Thresholds and conditions from the Physical Layer Simplified Specification, version 9.10:
//! application classes in sections 3.11 and 4.16 (random operations of 4 KiB within 256 MiB, 10 MB/s
//! written in units of 4 MiB; A2 with the card's command queue in use), video speed classes in
//! 4.13.4.3.1 (the slowest unit of a few dozen MB counts, not the mean); Speed Class 2 to 10 and
//! UHS 1 and 3 ask for the same number of MB/s under similar conditions. The state of the card before
//! is the specification's only in a laboratory, so the answer is how it behaves here.

use rubus_stats::estimate::Estimate;
use rubus_vocabulary::application_class::{A1, A2, ApplicationClass, Met, all, met};
use rubus_vocabulary::finding::{Finding, SpeedClass, Threshold};
use rubus_vocabulary::result::{JobResult, Run, StallCause};
use rubus_vocabulary::suite_jobs as job;

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

/// The largest allocation unit of a card, in bytes.
const UNIT: u64 = 64 << 20;

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
    classes.extend(application_class(run, &A2, queued, writing).map(|class| {
        let is_missed = class.is_met == Some(false) && !queues(run);
        SpeedClass {
            // What A2 asks of a card with commands queued cannot be seen where none are.
            is_met: class.is_met.filter(|_| !is_missed),
            ..class
        }
    }));
    let mut speeds = SPEED_CLASSES;
    speeds.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    classes.extend(speeds.iter().map(|(name, rate)| speed_class(name, *rate, writing)));
    classes.into_iter().map(Finding::SpeedClass).collect()
}

/// Whether many requests in flight gave more reads than one: host and card queue commands.
fn queues(run: &Run) -> bool {
    let iops = |name: &str| run.job(name).map(|result| result.iops);
    match (iops(job::CLASS_READ), iops(job::CLASS_READ_DEEP)) {
        (Some(one), Some(many)) => many.value > 1.25 * one.value,
        _ => false,
    }
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
    let threshold = match slowest_unit(writing) {
        Some(measured) => Threshold {
            what: "the slowest unit written in order".into(),
            measured,
            ..in_order(rate, writing)
        },
        None => in_order(rate, writing),
    };
    judged(name, vec![threshold])
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

/// The rate of the slowest unit of up to 64 MiB, the largest allocation unit, and between which ends it is known.
///
/// Time for fixed bytes, not bytes in a fixed time: a second holds whole writes only, so a steady card of 2 MB/s seems to stand
/// still for seconds between writes of 4 MiB. A unit is not slower than if each of its writes took as long as the longest did, and the
/// slowest is not faster than the mean; a stretch of the series is known within a bin at both ends. Where something other than
/// the device held it up, the device itself may be faster.
fn slowest_unit(writing: &JobResult) -> Option<Estimate> {
    let series = writing.series.as_ref()?;
    let latency = &writing.latency_ns;
    if writing.queue_depth != 1 || writing.block_bytes == 0 {
        return None;
    }
    let of = |ns: f64| f64::from(writing.block_bytes) / (ns / 1e9);
    let mean = of(latency.mean?);
    // The mean is known from the histogram, to 0.8 %.
    let (mut low, mut high) = (of(latency.max? as f64), 1.008 * mean);
    let stretch = longest_stretch(&series.bytes);
    if let Some(bins) = stretch {
        let seconds = |bins: f64| bins.max(1e-9) * series.bin_s;
        low = low.max(UNIT as f64 / seconds(bins as f64 + 1.0));
        high = high.min(UNIT as f64 / seconds(bins as f64 - 2.0));
    }
    let is_blameless = writing.stalls.iter().any(|stall| stall.cause != StallCause::Device);
    let value = match stretch {
        Some(bins) => (UNIT as f64 / (bins as f64 * series.bin_s)).clamp(low.min(high), high),
        None => mean,
    };
    Some(Estimate::new(value, low.min(value), if is_blameless { f64::INFINITY } else { high }))
}

/// The largest number of bins, from any starting bin, until a whole unit is written; `None` if that never happens.
fn longest_stretch(bytes: &[u64]) -> Option<usize> {
    let (mut longest, mut end, mut sum) = (None, 0, 0);
    for start in 0..bytes.len() {
        while sum < UNIT && end < bytes.len() {
            sum += bytes[end];
            end += 1;
        }
        if sum < UNIT {
            break;
        }
        longest = longest.max(Some(end - start));
        sum -= bytes[start];
    }
    longest
}

fn judged(class: &str, thresholds: Vec<Threshold>) -> SpeedClass {
    let answers: Vec<Met> =
        thresholds.iter().map(|threshold| met(&threshold.measured, threshold.least)).collect();
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
    use rubus_fixtures as fixture;
    use rubus_vocabulary::result::{Latency, Series, Stall};

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
            queue_depth: 1,
            latency_ns: every_write_takes(f64::from(1 << 20) / in_order),
            stalls: vec![],
            series: Some(Series { bin_s: 0.1, bytes: vec![(in_order / 10.0) as u64; 300] }),
            ..plain
        });
        run
    }

    fn every_write_takes(seconds: f64) -> Latency {
        let ns = seconds * 1e9;
        Latency { max: Some(ns.round() as u64), mean: Some(ns), ..Latency::default() }
    }

    /// A card that writes 4 MiB after 4 MiB at this rate and never stops, for up to 60 s or 1 GiB.
    fn steady_writing(rate: f64) -> Run {
        let mut run = run([2000.0, 700.0, 3900.0, 2500.0], rate);
        let writing = run.results.last_mut().unwrap();
        let block = f64::from(4 << 20);
        let seconds = (f64::from(1 << 30) / rate).min(60.0);
        let mut bytes = vec![0; (seconds / 0.1) as usize];
        for write in 1.. {
            match bytes.get_mut((f64::from(write) * block / rate / 0.1) as usize) {
                Some(bin) => *bin += 4 << 20,
                None => break,
            }
        }
        writing.block_bytes = 4 << 20;
        writing.latency_ns = every_write_takes(block / rate);
        writing.series = Some(Series { bin_s: 0.1, bytes });
        run
    }

    #[test]
    fn a_steady_card_is_judged_right_just_above_and_just_below_each_speed_class() {
        for (name, rate) in SPEED_CLASSES {
            assert_eq!(answer(&steady_writing(1.02 * rate), name), Some(true), "{name}");
            assert_eq!(answer(&steady_writing(0.98 * rate), name), Some(false), "{name}");
        }
    }

    #[test]
    fn a2_is_undecided_where_nothing_queues_commands() {
        assert_eq!(answer(&run([2000.0, 700.0, 2100.0, 700.0], 32e6), "A2"), None);
        assert_eq!(answer(&run([2000.0, 700.0, 3000.0, 700.0], 32e6), "A2"), Some(false));
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
        writing.latency_ns.max = Some(830_000_000);
        assert_eq!(answer(&run, "V30 (U3)"), Some(false));
        assert_eq!(answer(&run, "A1"), Some(true));
        run.results.last_mut().unwrap().stalls =
            vec![Stall { start_s: 10.5, length_ms: 800.0, cause: StallCause::OtherWriters }];
        assert_eq!(answer(&run, "V30 (U3)"), None);
    }

    #[test]
    fn other_suites_say_nothing_of_classes() {
        assert_eq!(of(&fixture::slow_sd_card_run()), []);
    }
}
