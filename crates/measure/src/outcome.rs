//! What a job gave: results from the accounts, with what the watcher saw.

use rubus_stats::Histogram;
use rubus_stats::estimate::Estimate;
use rubus_stats::stop::Caveat;
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::result::{Access, JobResult, Outcome, Stall};
use rubus_vocabulary::spec::{Content, Direction, Job};
use rubus_vocabulary::title::shaped_title;

use crate::attribution::{self, Effort, SlowMoments};
use crate::completions::Completions;
use crate::far_end::both_ends;
use crate::general::{READS, WRITES};
use crate::mailbox::WorkerReport;
use crate::measurement::{Failure, Place};
use crate::rig::Rig;
use crate::runner::{Part, Runner, seconds};

use crate::course::is_commit;
use crate::sample::Sample;

/// In less time than this a change of the rate is no drift, in seconds.
const MIN_DRIFT_S: f64 = 1.0;
/// Operations below which even the median stands on little.
const FEW_OPERATIONS: u64 = 30;

/// Makes the results of the runners that have reported.
pub(crate) fn results(
    rig: &mut dyn Rig,
    runners: &[Runner<'_>],
    place: Place,
    (first, last): (&Sample, &Sample),
    flush_ns: &[u64],
    failure: Option<&Failure>,
) -> Vec<JobResult> {
    let samples = rig.samples(first.at_ns, last.at_ns);
    let machine = MachineView {
        first,
        last,
        samples: &samples,
        read_bytes: runners.iter().map(|r| r.moved_bytes(Direction::Read)).sum(),
        written_bytes: runners.iter().map(|r| r.moved_bytes(Direction::Write)).sum(),
        operations: runners.iter().map(Runner::operations).sum(),
    };
    let mut results = Vec::new();
    let accounts = runners.iter().zip(flush_ns).flat_map(|(runner, &flush_ns)| {
        let parts = runner.parts.iter().zip(runner.running.completions());
        parts.map(move |(part, completions)| (runner, part, completions, flush_ns))
    });
    for (runner, part, completions, flush_ns) in accounts {
        // Reads of a mix have nothing to do with the flush.
        let flush_ns = match part.direction {
            Direction::Read => 0,
            Direction::Write => flush_ns,
        };
        let mut result = result(runner, part, completions, &machine, flush_ns);
        let origin_ns = completions.origin_ns;
        result.started_s = seconds(origin_ns.saturating_sub(place.session_start_ns));
        match failure {
            Some(Failure::Target(error)) => {
                result.doubts.push(Doubt::TargetFailed { error: error.clone() })
            }
            Some(Failure::Interrupted) => result.doubts.push(Doubt::Interrupted),
            Some(Failure::Engine(_)) | None => {}
        }
        if failure.is_some() {
            result.outcome = Outcome::Inconclusive;
            result.ended = None;
        }
        results.push(result);
    }
    results
}

/// What the machine did during the job.
struct MachineView<'a> {
    first: &'a Sample,
    last: &'a Sample,
    samples: &'a [Sample],
    read_bytes: u64,
    written_bytes: u64,
    operations: u64,
}

fn result(
    runner: &Runner<'_>,
    part: &Part,
    completions: &Completions,
    machine: &MachineView<'_>,
    flush_ns: u64,
) -> JobResult {
    let (task, job) = (runner.task, runner.task.job);
    let (mut measured, warm_up_ns) = part.judge(task, completions);
    let flush_s = seconds(flush_ns);
    let long_flush = flush_s > 0.5 && flush_s > 0.1 * measured.measured_s;
    measured.include_flush(flush_s);
    measured.allow_for_slow_changes();
    if measured.measured_s < MIN_DRIFT_S {
        measured.caveats.retain(|caveat| !matches!(caveat, Caveat::Drift { .. }));
    }
    let latencies = completions.latencies();
    let effort = Effort {
        direction: part.direction,
        // What a filesystem writes for the sake of a small file dwarfs the file, too.
        is_commit: is_commit(job) || flushes_between(job) || job.operation.is_of_file(),
        is_buffered: task.access == Access::Buffered,
        read_bytes: machine.read_bytes,
        written_bytes: machine.written_bytes,
        bytes_per_second: measured.bytes_per_second.value,
    };
    let cpu = attribution::cpu_shares(machine.first, machine.last);
    let elapsed_ns = machine.last.at_ns.saturating_sub(machine.first.at_ns).max(1);
    let mut doubts = task.doubts.clone();
    doubts.extend(measured.caveats.drain(..).map(Doubt::from));
    let used = if task.work.is_polled() {
        // Polling fills a core whether or not that is the limit.
        0.0
    } else {
        attribution::used_share(
            &used_shares(completions, elapsed_ns),
            cpu.per_core_busy.len(),
            task.work.lanes(),
        )
    };
    let waited = waited_share(completions);
    doubts.extend(attribution::cpu_doubts(&cpu, waited, used));
    doubts.extend(attribution::stopped_doubt(machine.first, machine.last));
    doubts.extend(attribution::power_doubts(machine.samples));
    doubts.extend(attribution::traffic_doubt(machine.first, machine.last, &effort));
    if long_flush {
        doubts.push(Doubt::LongFlush { seconds: flush_s });
    }
    if measured.operations < FEW_OPERATIONS {
        doubts.push(Doubt::FewOperations { operations: measured.operations });
    }
    let sizes = Sizes::of(runner, part, measured.bytes, measured.operations);
    let shape = job.shape.as_deref();
    let used_ns = machine.last.process_ns.saturating_sub(machine.first.process_ns);
    JobResult {
        job: job.name.clone(),
        operation: job.operation,
        direction: part.direction,
        pattern: job.pattern,
        block_bytes: sizes.block_bytes,
        queue_depth: job.queue_depth,
        commit: is_commit(job) && part.direction == Direction::Write,
        access: task.unusual_access,
        content: job.content.map(content_name),
        on: task.on.clone(),
        passes: None,
        title: task.title.clone().or_else(|| shaped_title(job, part.direction)),
        copies: shape.map(|shape| shape.copies).filter(|&copies| copies > 1),
        bytes: sizes.differ.then_some(measured.bytes),
        engine: task.work.engine.name().into(),
        lanes: Some(task.work.lanes()).filter(|&lanes| lanes > 1),
        polled: task.work.is_polled(),
        started_s: 0.0,
        warm_up_s: seconds(warm_up_ns),
        elapsed_s: measured.measured_s,
        operations: measured.operations,
        bytes_per_second: match job.block_bytes {
            // Nothing moves, which is certain.
            0 => Estimate::exact(0.0),
            _ => measured.bytes_per_second,
        },
        iops: measured.iops,
        noise: measured.noise,
        latency_ns: latencies.latency(),
        response_ns: completions.responses().map(|all| all.latency()),
        cpu,
        cpu_ns_per_io: used_ns as f64 / machine.operations.max(1) as f64,
        both_ends: both_ends(
            machine.first,
            machine.last,
            (machine.operations, machine.read_bytes + machine.written_bytes),
        ),
        stalls: stalls(job, completions, &latencies, warm_up_ns, machine.samples, &effort),
        outcome: measured.outcome,
        ended: measured.ended,
        doubts,
        series: Some(measured.series),
        latency_bins: Some(latencies.coarse_bins()),
        latency_intervals: completions.latency_intervals(),
    }
}

/// Whether the job makes its writes durable from time to time.
fn flushes_between(job: &Job) -> bool {
    let shape = job.shape.as_deref();
    shape.is_some_and(|shape| shape.flush_every.is_some())
}

/// How large the operations of one account are.
struct Sizes {
    /// Bytes per operation, on average where they differ.
    block_bytes: u32,
    /// Whether the sizes differ.
    differ: bool,
}

impl Sizes {
    fn of(runner: &Runner<'_>, part: &Part, bytes: u64, operations: u64) -> Self {
        let side = match part.direction {
            Direction::Read => READS,
            Direction::Write => WRITES,
        };
        let Some(general) = &runner.task.work.general else {
            return Sizes { block_bytes: runner.task.job.block_bytes, differ: false };
        };
        match general.block_bytes(side) {
            Some(block_bytes) => Sizes { block_bytes, differ: false },
            None => {
                let mean = bytes as f64 / operations.max(1) as f64;
                Sizes { block_bytes: (mean.round() as u32).max(1), differ: true }
            }
        }
    }
}

fn stalls(
    job: &Job,
    completions: &Completions,
    latencies: &Histogram,
    warm_up_ns: u64,
    samples: &[Sample],
    effort: &Effort,
) -> Vec<Stall> {
    let lasted_ns = completions.last_ns().unwrap_or(0).saturating_sub(completions.origin_ns);
    let slow = SlowMoments {
        gaps: completions.gaps().spans(),
        forgotten_gaps: completions.gaps().forgotten(),
        operations: completions.slow_operations(),
        latencies,
        usual_gap_ns: lasted_ns / completions.operations().max(1),
        is_single: job.queue_depth == 1,
        origin_ns: completions.origin_ns,
        from_ns: completions.origin_ns + warm_up_ns,
        window_ns: lasted_ns.saturating_sub(warm_up_ns),
    };
    attribution::stalls(&slow, samples, effort)
}

/// The share of the time that the measuring threads waited for a processor, on average.
fn waited_share(completions: &Completions) -> Option<f64> {
    let mut waited_ns = 0.0;
    let mut lasted_ns = 0.0;
    for report in completions.reports() {
        waited_ns += report.run_delay_ns? as f64;
        lasted_ns += report.last_ns.saturating_sub(completions.origin_ns) as f64;
    }
    (lasted_ns > 0.0).then(|| waited_ns / lasted_ns)
}

/// The share of one core that each of the measuring threads used.
fn used_shares(completions: &Completions, elapsed_ns: u64) -> Vec<f64> {
    let share = |report: &WorkerReport| {
        let lasted_ns = report.last_ns.saturating_sub(completions.origin_ns).max(1);
        report.cpu_ns as f64 / lasted_ns.min(elapsed_ns) as f64
    };
    completions.reports().map(share).collect()
}

/// What is written, in words for a result.
pub(crate) fn content_name(content: Content) -> String {
    match content {
        Content::Incompressible => "incompressible".into(),
        Content::Compressible(percent) => format!("compressible to about {percent} %"),
        Content::Zeros => "zeros".into(),
        Content::Pattern(pattern) => {
            let digits: Vec<String> =
                pattern.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
            format!("the pattern 0x{}", digits.concat())
        }
    }
}
