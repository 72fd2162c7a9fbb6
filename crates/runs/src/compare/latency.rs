//! Intervals of the median and the 99th percentile of a job's latency.
//!
//! They are taken while a job runs, from how the share of operations below the quantile varies over time (see
//! `batches` in the crate `rubus-stats`). A run that was recorded without them has none: neither its rate nor the distribution of all its
//! operations says how sure a quantile is.

use rubus_stats::estimate::Estimate;
use rubus_vocabulary::figure::{Figure, Interval};
use rubus_vocabulary::result::{JobResult, LatencyIntervals};

/// What the recorded percentiles are worth by themselves: the histogram is wrong by up to 0.8 %.
const MIN: f64 = 0.01;

/// The median with its interval.
pub fn p50(result: &JobResult) -> Option<Figure> {
    let recorded_ns = result.latency_ns.p50?;
    figure(recorded_ns, interval(result, |of| of.p50_ns))
}

/// The 99th percentile with its interval.
pub fn p99(result: &JobResult) -> Option<Figure> {
    let recorded_ns = result.latency_ns.p99?;
    figure(recorded_ns, interval(result, |of| of.p99_ns))
}

fn interval(
    result: &JobResult,
    of: impl Fn(&LatencyIntervals) -> Option<Estimate>,
) -> Option<Estimate> {
    result.latency_intervals.as_ref().and_then(of)
}

fn figure(recorded_ns: u64, interval: Option<Estimate>) -> Option<Figure> {
    if recorded_ns == 0 {
        return None;
    }
    let value = recorded_ns as f64;
    Some(Figure {
        value,
        interval: interval.map(|interval| Interval {
            low: interval.low.min(value * (1.0 - MIN)),
            high: interval.high.max(value * (1.0 + MIN)),
            rough: false,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;
    use rubus_vocabulary::job_names;

    #[test]
    fn a_quantile_has_the_interval_that_was_taken_while_it_was_measured() {
        let run = fixture::slow_sd_card_run();
        let mut result = run.job(job_names::RANDOM_READ).unwrap().clone();
        result.latency_intervals = Some(LatencyIntervals {
            p99_at_most_ns: None,
            p50_ns: Some(Estimate::new(591_000.0, 400_000.0, 592_000.0)),
            p99_ns: None,
        });
        let with = p50(&result).unwrap().interval.unwrap();
        assert_eq!((with.low, with.high), (400_000.0, 595_900.0));
        assert_eq!(p99(&result).unwrap().interval, None);
    }

    #[test]
    fn a_run_without_intervals_is_not_judged_by_its_rate() {
        let run = fixture::slow_sd_card_run();
        let mut result = run.job(job_names::RANDOM_READ).unwrap().clone();
        result.latency_intervals = None;
        assert_eq!(p50(&result), Some(Figure::bare(590_000.0)));
        result.latency_ns.p99 = None;
        assert_eq!(p99(&result), None);
    }
}
