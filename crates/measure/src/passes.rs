//! One result out of several passes of a job.

use rubus_stats::estimate::Estimate;
use rubus_stats::{Histogram, passes};
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::result::{BothEnds, CpuShares, JobResult, Outcome, Series};
use rubus_vocabulary::spec::Job;

use crate::measurement::Measurement;

/// Operations below which even the median stands on little.
const FEW_OPERATIONS: u64 = 30;

/// A pass and when it was.
#[derive(Debug)]
pub(crate) struct Pass {
    /// Seconds from the start of the job.
    pub(crate) started_s: f64,
    /// Seconds that it took, its flush included.
    pub(crate) lasted_s: f64,
    /// What was measured, of one job.
    pub(crate) measurement: Measurement,
}

impl Pass {
    fn operations(&self) -> u64 {
        self.measurement.whole.iter().map(Histogram::count).sum()
    }

    /// Bytes that it moved.
    pub(crate) fn bytes(&self, job: &Job) -> u64 {
        self.operations() * u64::from(job.block_bytes)
    }

    /// Operations per second of all passes.
    pub(crate) fn rate(passes: &[Pass]) -> Option<Estimate> {
        let timed = passes.iter().map(|pass| (pass.operations(), pass.lasted_s));
        passes::rate(&timed.collect::<Vec<_>>())
    }
}

/// What the passes of a job are to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Repetitions of the same: what differs between them is the uncertainty.
    Repetitions,
    /// Pieces of one course, each with an interval of its own.
    Pieces,
}

/// The passes of a job as one measurement. One that failed is in it, with its failure.
pub(crate) fn join(job: &Job, kind: Kind, mut passes: Vec<Pass>) -> Measurement {
    let mut joined = Measurement {
        results: Vec::new(),
        lasted_ns: 0,
        handed_out: Vec::new(),
        whole: Vec::new(),
        bytes_written: passes.iter().map(|p| p.measurement.bytes_written).sum(),
        covered_bytes: 0,
        failure: passes.iter_mut().find_map(|p| p.measurement.failure.take()),
    };
    let rate = match kind {
        Kind::Repetitions => Pass::rate(&passes),
        Kind::Pieces => rate_of_pieces(&passes),
    };
    let mut latencies = Histogram::new();
    for histogram in passes.iter().flat_map(|pass| &pass.measurement.whole) {
        latencies.merge(histogram);
    }
    let firsts = passes.iter().find_map(|p| p.measurement.results.first());
    if let (Some(first), Some(rate)) = (firsts.cloned(), rate) {
        let failed = joined.failure.is_some();
        let mut result = result(job, first, &passes, rate, &latencies, failed);
        if kind == Kind::Pieces {
            result.series = series(&passes);
            result.elapsed_s = results(&passes).map(|result| result.elapsed_s).sum();
        }
        joined.results.push(result);
    }
    joined
}

fn results(passes: &[Pass]) -> impl Iterator<Item = &JobResult> {
    let firsts = passes.iter().map(|pass| pass.measurement.results.first());
    firsts.flatten()
}

/// The rate of a course in pieces, each counting as long as it took. That the pieces are independent is
/// not made use of: the interval is rather too wide.
fn rate_of_pieces(passes: &[Pass]) -> Option<Estimate> {
    let all_s: f64 = results(passes).map(|result| result.elapsed_s).sum();
    let (mut value, mut low, mut high) = (0.0, 0.0, 0.0);
    for result in results(passes).filter(|result| result.elapsed_s > 0.0) {
        let weight = result.elapsed_s / all_s;
        value += result.iops.value * weight;
        low += result.iops.low * weight;
        high += result.iops.high * weight;
    }
    (all_s > 0.0).then(|| Estimate::new(value, low.min(value), high.max(value)))
}

/// The course of all pieces, in so few bins that a page can hold them.
fn series(passes: &[Pass]) -> Option<Series> {
    const MAX_BINS: usize = 2000;
    let all: Option<Vec<&Series>> = results(passes).map(|r| r.series.as_ref()).collect();
    let all = all?;
    let bin_s = all.first()?.bin_s;
    // A last piece may be so short that it was judged by shorter bins.
    let equal = all.iter().filter(|series| series.bin_s == bin_s);
    let bytes: Vec<u64> = equal.flat_map(|series| series.bytes.iter().copied()).collect();
    let factor = bytes.len().div_ceil(MAX_BINS).max(1);
    Some(Series {
        bin_s: bin_s * factor as f64,
        bytes: bytes.chunks(factor).map(|bins| bins.iter().sum()).collect(),
    })
}

fn result(
    job: &Job,
    first: JobResult,
    passes: &[Pass],
    rate: Estimate,
    latencies: &Histogram,
    failed: bool,
) -> JobResult {
    let results: Vec<(&Pass, &JobResult)> =
        passes.iter().filter_map(|pass| Some((pass, pass.measurement.results.first()?))).collect();
    let operations = passes.iter().map(Pass::operations).sum::<u64>();
    let reached = rate.relative_half_width();
    let wanted = job.stop.relative_half_width;
    let mut doubts: Vec<Doubt> = Vec::new();
    for doubt in results.iter().flat_map(|(_, result)| &result.doubts) {
        // What disturbed every pass, each a little differently, disturbed the job once.
        let is_known = doubts.iter().any(|known| known.is_like(doubt));
        if is_of_the_whole(doubt) && !is_known {
            doubts.push(doubt.clone());
        }
    }
    if reached > wanted {
        doubts.insert(0, Doubt::NotPrecise { reached, wanted });
    }
    if operations < FEW_OPERATIONS {
        doubts.push(Doubt::FewOperations { operations });
    }
    let shifted = results.iter().flat_map(|(pass, result)| {
        let shift = move |stall: &rubus_vocabulary::result::Stall| {
            rubus_vocabulary::result::Stall { start_s: stall.start_s + pass.started_s, ..*stall }
        };
        result.stalls.iter().map(shift)
    });
    let cpu_ns = results.iter().map(|(_, r)| r.cpu_ns_per_io * r.operations as f64);
    JobResult {
        elapsed_s: passes.iter().map(|pass| pass.lasted_s).sum(),
        operations,
        bytes_per_second: match job.block_bytes {
            // An unbounded rate of nothing is no number.
            0 => Estimate::exact(0.0),
            bytes => rate.scaled(f64::from(bytes)),
        },
        iops: rate,
        noise: None,
        latency_ns: latencies.latency(),
        // Passes have no limits.
        response_ns: None,
        cpu: mean_shares(&results),
        cpu_ns_per_io: cpu_ns.sum::<f64>() / operations.max(1) as f64,
        both_ends: BothEnds::sum(results.iter().filter_map(|(_, r)| r.both_ends.clone())),
        stalls: shifted.collect(),
        outcome: if failed { Outcome::Inconclusive } else { Outcome::of_width(reached, wanted) },
        ended: None,
        doubts,
        series: None,
        latency_bins: Some(latencies.coarse_bins()),
        latency_intervals: None,
        ..first
    }
}

/// Whether a doubt of one pass concerns the job: those about its course do not, since it is judged
/// by its passes.
fn is_of_the_whole(doubt: &Doubt) -> bool {
    !matches!(
        doubt,
        Doubt::NotPrecise { .. }
            | Doubt::Drift { .. }
            | Doubt::FewOperations { .. }
            | Doubt::LongFlush { .. }
    )
}

/// The shares of the processors, each pass counting as long as it took.
fn mean_shares(results: &[(&Pass, &JobResult)]) -> CpuShares {
    let all_s: f64 = results.iter().map(|(pass, _)| pass.lasted_s).sum();
    let mut mean = CpuShares::default();
    for (pass, result) in results {
        let (weight, cpu) = (pass.lasted_s / all_s.max(f64::MIN_POSITIVE), &result.cpu);
        mean.user += cpu.user * weight;
        mean.system += cpu.system * weight;
        mean.irq += cpu.irq * weight;
        mean.softirq += cpu.softirq * weight;
        mean.iowait += cpu.iowait * weight;
        mean.steal += cpu.steal * weight;
        mean.per_core_busy.resize(cpu.per_core_busy.len(), 0.0);
        for (core, busy) in mean.per_core_busy.iter_mut().zip(&cpu.per_core_busy) {
            *core += busy * weight;
        }
    }
    mean
}
