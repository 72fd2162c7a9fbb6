//! Several short measurements of one job as one result.

use std::collections::BTreeMap;

use crate::doubt::Doubt;
use crate::result::{BothEnds, CpuShares, JobResult, Latency, LatencyBins, Outcome, Series, Stall};
use rubus_stats::estimate::Estimate;
use rubus_stats::interval::{mean, variance};
use rubus_stats::quantile::student_t_95;

/// The turns of one job, in the order in which they ran, as one result; nothing without any.
///
/// A rate is the mean over the turns with the interval of Student's t, since turns lie far apart and are
/// nearly independent; at least one operation more or less per turn is allowed for. A percentile is
/// the median of the turns' percentiles. `wanted` is the half width at which the job has converged.
pub fn merge(turns: &[JobResult], wanted: f64) -> Option<JobResult> {
    let mut merged = turns.first()?.clone();
    merged.elapsed_s = turns.iter().map(|turn| turn.elapsed_s).sum();
    merged.operations = turns.iter().map(|turn| turn.operations).sum();
    if turns.iter().any(|turn| turn.bytes.is_some()) {
        merged.bytes = Some(turns.iter().map(JobResult::moved_bytes).sum());
    }
    let fewest = turns.iter().map(|turn| turn.operations).min().unwrap_or(0);
    let quantum = 1.0 / (6.0 * (fewest.max(1) as f64).powi(2));
    let rate = |of: fn(&JobResult) -> &Estimate| {
        let values: Vec<f64> = turns.iter().map(|turn| of(turn).value).collect();
        rate_of(&values, quantum)
    };
    merged.bytes_per_second = rate(|turn| &turn.bytes_per_second);
    merged.iops = rate(|turn| &turn.iops);
    merged.noise = None;
    merged.latency_ns = latency(turns, |turn| turn.latency_ns);
    let has_responses = turns.iter().all(|turn| turn.response_ns.is_some());
    merged.response_ns =
        has_responses.then(|| latency(turns, |turn| turn.response_ns.unwrap_or_default()));
    merged.cpu = cpu(turns);
    let weighed: f64 = turns.iter().map(|turn| turn.cpu_ns_per_io * turn.operations as f64).sum();
    merged.cpu_ns_per_io = weighed / merged.operations.max(1) as f64;
    merged.both_ends = BothEnds::sum(turns.iter().filter_map(|turn| turn.both_ends.clone()));
    merged.stalls = stalls(turns);
    merged.series = series(turns);
    merged.latency_bins = bins(turns);
    // The turns are compared with those of the other run; by themselves they are too few.
    merged.latency_intervals = None;
    let reached = merged.iops.relative_half_width();
    merged.outcome = Outcome::of_width(reached, wanted);
    merged.ended = None;
    merged.doubts = doubts(turns);
    if merged.outcome != Outcome::Converged {
        merged.doubts.push(Doubt::NotPrecise { reached, wanted });
    }
    Some(merged)
}

fn rate_of(values: &[f64], quantum: f64) -> Estimate {
    let value = mean(values);
    let n = values.len() as f64;
    if values.len() < 2 || value <= 0.0 {
        return Estimate::new(value.max(0.0), 0.0, f64::INFINITY);
    }
    let relative = (variance(values) / (value * value) + quantum) / n;
    let half_width = student_t_95(n - 1.0) * relative.sqrt();
    // A rate cannot be negative but has no upper limit: linear below, on the logarithms above.
    Estimate::new(value, value * (1.0 - half_width).max(0.0), value * half_width.exp())
}

fn latency(turns: &[JobResult], which: fn(&JobResult) -> Latency) -> Latency {
    let middle = |of: fn(&Latency) -> Option<u64>| -> Option<u64> {
        let values: Option<Vec<u64>> = turns.iter().map(|turn| of(&which(turn))).collect();
        let mut values = values?;
        values.sort_unstable();
        let (below, above) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        Some(below.midpoint(above))
    };
    let weighed = |of: &dyn Fn(&Latency) -> Option<f64>| -> Option<f64> {
        let mut sum = 0.0;
        let mut weight = 0.0;
        for turn in turns {
            sum += of(&which(turn))? * turn.operations as f64;
            weight += turn.operations as f64;
        }
        (weight > 0.0).then(|| sum / weight)
    };
    let average = weighed(&|latency| latency.mean);
    // The variance of all is the mean of the squares less the square of the mean.
    let squares = weighed(&|latency| Some(latency.stddev?.powi(2) + latency.mean?.powi(2)));
    let spread = squares
        .zip(average)
        .map(|(squares, average)| (squares - average * average).max(0.0).sqrt());
    Latency {
        p50: middle(|latency| latency.p50),
        p90: middle(|latency| latency.p90),
        p99: middle(|latency| latency.p99),
        p99_9: middle(|latency| latency.p99_9),
        max: turns.iter().filter_map(|turn| which(turn).max).max(),
        min: turns.iter().filter_map(|turn| which(turn).min).min(),
        mean: average,
        stddev: spread,
    }
}

fn cpu(turns: &[JobResult]) -> CpuShares {
    let share = |of: fn(&CpuShares) -> f64| {
        let values: Vec<f64> = turns.iter().map(|turn| of(&turn.cpu)).collect();
        mean(&values)
    };
    let cores = turns.iter().map(|turn| turn.cpu.per_core_busy.len());
    let busy = |core: usize| {
        let values: Vec<f64> = turns.iter().map(|turn| turn.cpu.per_core_busy[core]).collect();
        mean(&values)
    };
    CpuShares {
        user: share(|cpu| cpu.user),
        system: share(|cpu| cpu.system),
        irq: share(|cpu| cpu.irq),
        softirq: share(|cpu| cpu.softirq),
        iowait: share(|cpu| cpu.iowait),
        steal: share(|cpu| cpu.steal),
        per_core_busy: (0..cores.min().unwrap_or(0)).map(busy).collect(),
    }
}

/// All stalls, counted from the start of the first turn.
fn stalls(turns: &[JobResult]) -> Vec<Stall> {
    let start_s = turns.first().map_or(0.0, |turn| turn.started_s);
    let of_turn = |turn: &JobResult| -> Vec<Stall> {
        let shift_s = turn.started_s - start_s;
        let shifted =
            turn.stalls.iter().map(|stall| Stall { start_s: stall.start_s + shift_s, ..*stall });
        shifted.collect()
    };
    turns.iter().flat_map(of_turn).collect()
}

/// The series of the turns one behind the other, if all have bins of the same length.
fn series(turns: &[JobResult]) -> Option<Series> {
    let bin_s = turns.first()?.series.as_ref()?.bin_s;
    let mut bytes = Vec::new();
    for turn in turns {
        let series = turn.series.as_ref().filter(|series| series.bin_s == bin_s)?;
        bytes.extend(&series.bytes);
    }
    Some(Series { bin_s, bytes })
}

fn bins(turns: &[JobResult]) -> Option<LatencyBins> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for turn in turns {
        let bins = turn.latency_bins.as_ref()?;
        for (end, count) in bins.up_to_ns.iter().zip(&bins.operations) {
            *counts.entry(*end).or_default() += count;
        }
    }
    Some(LatencyBins {
        up_to_ns: counts.keys().copied().collect(),
        operations: counts.values().copied().collect(),
    })
}

/// Every doubt once; how precise a single turn was does not matter.
fn doubts(turns: &[JobResult]) -> Vec<Doubt> {
    let mut all: Vec<Doubt> = Vec::new();
    for doubt in turns.iter().flat_map(|turn| &turn.doubts) {
        let about_one_turn = matches!(
            doubt,
            Doubt::NotPrecise { .. } | Doubt::FewOperations { .. } | Doubt::Drift { .. }
        );
        let known = all.iter().any(|known| known.is_like(doubt));
        if !about_one_turn && !known {
            all.push(doubt.clone());
        }
    }
    all
}
