//! What was measured: the one object that a run leaves behind.
//!
//! Its JSON form is documented in `docs/bench-json.md` and checked against it by a test. Fields are
//! only ever added; a reader must ignore those that it does not know.

use serde::{Deserialize, Serialize};

use crate::doubt::Doubt;
use crate::estimate::Estimate;
use crate::machine::Machine;
use crate::spec::{Direction, Pattern};

/// One run of a suite on one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Version of the program that measured.
    pub rubus_version: String,
    /// The machine, as surveyed before the run.
    pub machine: Machine,
    /// What was measured on.
    pub target: TargetFacts,
    /// Name of the suite.
    pub suite: String,
    /// Seed of every random choice, to repeat the run.
    pub seed: u64,
    /// When the run began, RFC 3339, UTC.
    pub started: String,
    /// How long the whole run took, in seconds, preparation included.
    pub elapsed_s: f64,
    /// Bytes written to the target by the whole run, preparation included.
    pub bytes_written: u64,
    /// What the engine itself costs on this machine.
    pub calibration: Option<Calibration>,
    /// One entry per job, in the order in which they ran; a job with a bystander gives two.
    pub results: Vec<JobResult>,
    /// Doubts about the run as a whole.
    pub doubts: Vec<Doubt>,
}

/// What was measured on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetFacts {
    /// As the user named it.
    pub named: String,
    /// `directory`, `file` or `device`.
    pub kind: TargetKind,
    /// Absolute path of the directory, file or device node.
    pub path: String,
    /// Filesystem type, for a directory or a file ("ext4").
    pub filesystem: Option<String>,
    /// Kernel name of the block device below ("mmcblk0p2"), where there is one.
    pub device: Option<String>,
    /// Bytes of the region that was measured.
    pub region_bytes: u64,
    /// How the target was opened.
    pub access: Access,
    /// What was written ("incompressible", …).
    pub content: String,
}

/// What kind of thing a target is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetKind {
    /// A directory; a nameless file of our own in it was measured.
    Directory,
    /// A file of the user's.
    File,
    /// A block device.
    Device,
}

/// How a target was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// `O_DIRECT`: past the page cache.
    Direct,
    /// Through the page cache, because the filesystem refuses anything else.
    Buffered,
}

/// What the measuring itself costs, measured on `/dev/null` before the session.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Processor nanoseconds per operation at queue depth 1.
    pub cpu_ns_per_io_depth_1: f64,
    /// Processor nanoseconds per operation at queue depth 32.
    pub cpu_ns_per_io_depth_32: f64,
    /// Nanoseconds that one reading of the clock takes.
    pub clock_ns: f64,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The wanted precision was reached.
    Converged,
    /// A cap came first, with an interval that still says something (at most ±25 %).
    Capped,
    /// A cap came first and the interval is too wide to build on, or the job was cut short.
    Inconclusive,
}

/// What one job gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobResult {
    /// Name of the job in its suite.
    pub job: String,
    /// Read or write.
    pub direction: Direction,
    /// Sequential or random.
    pub pattern: Pattern,
    /// Bytes per operation.
    pub block_bytes: u32,
    /// Operations kept in flight.
    pub queue_depth: u32,
    /// True where each operation is a commit: a write made durable with `fdatasync`.
    #[serde(default)]
    pub commit: bool,
    /// Which engine ran: `positional`, `ring`, `threads`.
    pub engine: String,
    /// Seconds from the run's `started` to the start of this job, from which its stalls count.
    #[serde(default)]
    pub started_s: f64,
    /// Seconds of measuring, warm-up excluded, final flush included.
    pub elapsed_s: f64,
    /// Operations measured.
    pub operations: u64,
    /// Bytes per second.
    pub bytes_per_second: Estimate,
    /// Operations per second.
    pub iops: Estimate,
    /// Latency of the operations, in nanoseconds.
    pub latency_ns: Latency,
    /// Shares of all cores during the job.
    pub cpu: CpuShares,
    /// Processor time of this process per operation, in nanoseconds.
    pub cpu_ns_per_io: f64,
    /// Stalls, in the order in which they began.
    pub stalls: Vec<Stall>,
    /// How the job ended.
    pub outcome: Outcome,
    /// What disturbed it.
    pub doubts: Vec<Doubt>,
    /// Throughput in bins, for the curve over time.
    #[serde(default)]
    pub series: Option<Series>,
}

/// Percentiles of the latency, in nanoseconds. A percentile for which there were too few
/// operations is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Median.
    pub p50: Option<u64>,
    /// 90th percentile; from 10 operations on.
    pub p90: Option<u64>,
    /// 99th percentile; from 300 operations on.
    pub p99: Option<u64>,
    /// 99.9th percentile; from 3000 operations on.
    pub p99_9: Option<u64>,
    /// The longest.
    pub max: Option<u64>,
}

/// Shares of the time of all cores: 1.0 is every core all the time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuShares {
    /// In programs.
    pub user: f64,
    /// In the kernel.
    pub system: f64,
    /// In interrupts.
    pub irq: f64,
    /// In deferred interrupt work.
    pub softirq: f64,
    /// Idle while I/O was outstanding.
    pub iowait: f64,
    /// Taken by the hypervisor.
    #[serde(default)]
    pub steal: f64,
    /// Busy share (everything but idle and iowait) of each core.
    #[serde(default)]
    pub per_core_busy: Vec<f64>,
}

/// A time in which the target did (nearly) nothing, far beyond its usual latency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// Seconds from the start of the job.
    pub start_s: f64,
    /// How long it lasted.
    pub length_ms: f64,
    /// Who is to blame, as far as it can be told.
    pub cause: StallCause,
}

/// Who is to blame for a stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StallCause {
    /// The device or its path: nothing else explains it.
    Device,
    /// The measuring thread was runnable but got no processor, or the hypervisor took it away.
    CpuStarvation,
    /// The clock was throttled or the voltage low in that moment.
    Throttling,
    /// Other programs kept the same device busy in that moment.
    OtherWriters,
}

/// A measured series in equal bins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Length of a bin in seconds.
    pub bin_s: f64,
    /// Bytes moved in each bin, warm-up excluded.
    pub bytes: Vec<u64>,
}

impl Run {
    /// The result of a job by its name.
    pub fn job(&self, name: &str) -> Option<&JobResult> {
        self.results.iter().find(|result| result.job == name)
    }
}
