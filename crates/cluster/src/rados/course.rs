//! The course of a job: its rows become bins of a second, and these a result.

use rubus_stats::series::Bin;
use rubus_stats::stop::{Decision, StopRule};
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::result::{CpuShares, JobResult, Latency, Outcome, Stall, StallCause};
use rubus_vocabulary::spec::Operation;

use super::output::{Row, Summary};
use super::{IN_FLIGHT, OBJECT_BYTES, ObjectJob};

/// Between two rows, in seconds.
const BIN_S: f64 = 1.0;
const SECOND_NS: u64 = 1_000_000_000;

/// A job that is measured.
#[derive(Clone, Debug)]
pub struct Course {
    job: ObjectJob,
    rule: StopRule,
    decision: Decision,
    last: Option<Row>,
    /// Seconds since an operation last completed.
    silent_s: u64,
    summary: Summary,
}

/// What is added to a result of the machine that measured.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// Seconds from the start of the run.
    pub started_s: f64,
    /// The processors here meanwhile.
    pub cpu: CpuShares,
    /// Processor seconds of the tool.
    pub tool_cpu_s: f64,
    /// The job was ended by the user.
    pub is_interrupted: bool,
}

impl Course {
    /// A job that begins.
    pub fn new(job: ObjectJob) -> Course {
        Course {
            rule: StopRule::new(job.stop, BIN_S),
            job,
            decision: Decision::Continue,
            last: None,
            silent_s: 0,
            summary: Summary::default(),
        }
    }

    /// Takes in a line, and says whether the job has been measured long enough.
    pub fn take(&mut self, line: &str) -> bool {
        match Row::parse(line) {
            Some(row) => self.take_row(row),
            None => self.summary.add(line),
        }
        self.decision != Decision::Continue
    }

    fn take_row(&mut self, row: Row) {
        let before = self.last.map_or((0, 0), |last| (last.second, last.finished));
        // At the end of a run fewer are in flight.
        let is_ending = before.0 as f64 >= self.job.stop.max_seconds;
        if self.decision != Decision::Continue || is_ending || row.second <= before.0 {
            self.last.get_or_insert(row);
            return;
        }
        // A busy machine may print one row for two seconds.
        let seconds = row.second - before.0;
        let all = row.finished.saturating_sub(before.1);
        for second in 0..seconds {
            let share = |second: u64| all * second / seconds;
            self.push(share(second + 1) - share(second));
        }
        self.last = Some(row);
    }

    fn push(&mut self, ops: u64) {
        let longest_gap_ns = match ops {
            0 => 0,
            ops => self.silent_s * SECOND_NS + SECOND_NS / ops,
        };
        self.silent_s = if ops == 0 { self.silent_s + 1 } else { 0 };
        self.decision =
            self.rule.push(Bin { ops, bytes: ops * u64::from(OBJECT_BYTES), longest_gap_ns });
    }

    /// What is shown while it runs.
    pub fn words(&self) -> String {
        let rate = self.rule.bytes_per_second().value;
        format!("{}: {:.1} MB/s after {:.0} s", self.job.title(), rate / 1e6, self.rule.elapsed_s())
    }

    /// Bytes that the job moved, warm-up included.
    pub fn bytes(&self) -> u64 {
        self.rule.bytes()
    }

    /// What it gave.
    pub fn result(&self, around: Around) -> JobResult {
        let mut measured = self.rule.finish();
        measured.allow_for_slow_changes();
        let mut doubts: Vec<Doubt> = measured.caveats.drain(..).map(Doubt::from).collect();
        if around.is_interrupted {
            doubts.push(Doubt::Interrupted);
        }
        let stalls = measured.stalls.iter().map(|stall| Stall {
            start_s: stall.start_s(),
            length_ms: stall.length_ms(),
            cause: StallCause::Device,
        });
        JobResult {
            job: self.job.name.into(),
            title: Some(self.job.title().into()),
            operation: Operation::Block,
            direction: self.job.direction,
            pattern: self.job.pattern(),
            block_bytes: OBJECT_BYTES,
            queue_depth: IN_FLIGHT,
            commit: false,
            access: None,
            content: None,
            on: None,
            copies: None,
            passes: None,
            engine: "rados".into(),
            lanes: None,
            polled: false,
            started_s: around.started_s,
            warm_up_s: measured.warm_up_s,
            elapsed_s: measured.measured_s,
            operations: measured.operations,
            bytes: None,
            bytes_per_second: measured.bytes_per_second,
            iops: measured.iops,
            noise: measured.noise,
            latency_ns: self.latency(),
            response_ns: None,
            cpu: around.cpu,
            cpu_ns_per_io: around.tool_cpu_s * 1e9 / (self.rule.operations() as f64).max(1.0),
            both_ends: None,
            stalls: stalls.collect(),
            outcome: if around.is_interrupted { Outcome::Inconclusive } else { measured.outcome },
            ended: measured.ended.filter(|_| !around.is_interrupted),
            doubts,
            series: Some(measured.series),
            latency_bins: None,
            latency_intervals: None,
        }
    }

    /// The tool says no percentiles, and all but the mean only at its own end.
    fn latency(&self) -> Latency {
        let ns = |seconds: f64| seconds * 1e9;
        let whole = |seconds: Option<f64>| seconds.map(|seconds| ns(seconds) as u64);
        Latency {
            mean: self.last.and_then(|row| row.mean_latency_s).map(ns),
            stddev: self.summary.latency_stddev_s.map(ns),
            max: whole(self.summary.latency_max_s),
            min: whole(self.summary.latency_min_s),
            ..Latency::default()
        }
    }
}

#[cfg(test)]
mod tests;
