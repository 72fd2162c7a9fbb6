//! Recorded runs of the tool (Ceph 18.2.7) become results.

use super::*;
use crate::rados::jobs;
use rubus_vocabulary::result::Ended;

const WRITE: &str = include_str!("write.txt");
const READ: &str = include_str!("rand.txt");

/// Feeds lines until it is enough; how many were read.
fn fed(course: &mut Course, text: &str) -> usize {
    let lines = text.lines().enumerate();
    let mut enough = lines.filter(|(_, line)| course.take(line));
    enough.next().map_or(text.lines().count(), |(i, _)| i + 1)
}

fn job(index: usize, max_bytes: u64, precision: f64) -> ObjectJob {
    let mut job = jobs(Some(precision), 1 << 40)[index].clone();
    job.stop.max_bytes = max_bytes;
    job
}

#[test]
fn a_recorded_run_gives_the_rate_of_its_tool_and_an_interval() {
    let mut course = Course::new(job(0, u64::MAX, 0.01));
    fed(&mut course, WRITE);
    let result = course.result(Around::default());
    // From the end of the first second on: 447 less 11 objects in 24 s.
    assert_eq!((result.operations, result.elapsed_s, result.warm_up_s), (436, 24.0, 1.0));
    let rate = result.bytes_per_second;
    assert!((rate.value / (436.0 / 24.0 * 4_194_304.0) - 1.0).abs() < 1e-9);
    // The tool's own mean.
    let tools = 72.7992 * 1_048_576.0;
    assert!(rate.low < tools && tools < rate.high, "{rate:?}");
    assert!(rate.relative_half_width() < 0.25, "{rate:?}");
    let series = result.series.expect("a series");
    assert_eq!((series.bin_s, series.bytes.len()), (1.0, 24));
    assert_eq!(result.stalls, []);
    let latency = result.latency_ns;
    assert_eq!(
        (latency.min, latency.max, latency.p50),
        (Some(165_821_000), Some(1_985_170_000), None)
    );
    assert!((latency.mean.expect("a mean") - 873_755_000.0).abs() < 1.0);
}

#[test]
fn precision_and_the_budget_end_a_job_before_the_tool_does() {
    let mut course = Course::new(job(1, u64::MAX, 0.30));
    let lines = fed(&mut course, READ);
    let result = course.result(Around::default());
    assert!(lines < 20, "{lines} lines were read");
    assert_eq!(result.ended, Some(Ended::Precise));
    assert_eq!(result.latency_ns.max, None);
    let mut course = Course::new(job(0, 100 << 22, 0.01));
    fed(&mut course, WRITE);
    assert_eq!(course.bytes(), 102 << 22);
    assert_eq!(course.result(Around::default()).ended, Some(Ended::Bytes));
}

#[test]
fn what_does_nothing_for_long_is_a_stall_and_a_missing_row_is_none() {
    let row = |second: u64, finished: u64| {
        format!("{second} 16 {} {finished} 70.1 72 0.9 0.8", finished + 16)
    };
    let mut course = Course::new(job(0, u64::MAX, 0.01));
    for second in 0..=12 {
        course.take(&row(second, second * 10));
    }
    for second in 13..=22 {
        course.take(&row(second, 120));
    }
    // Row 23 is missing.
    course.take(&row(24, 140));
    let result = course.result(Around::default());
    assert_eq!((result.operations, result.elapsed_s), (130, 23.0));
    let [stall] = &result.stalls[..] else {
        panic!("{:?}", result.stalls);
    };
    assert!((stall.start_s - 12.0).abs() <= 1.0 && stall.length_ms >= 10_000.0, "{stall:?}");
}

#[test]
fn a_run_that_the_user_ended_says_so() {
    let mut course = Course::new(job(0, u64::MAX, 0.01));
    course.take("    0       0         0         0         0         0           -           0");
    let result = course.result(Around { is_interrupted: true, ..Around::default() });
    assert!(result.doubts.contains(&Doubt::Interrupted));
    assert_eq!((result.operations, result.outcome), (0, Outcome::Inconclusive));
}
