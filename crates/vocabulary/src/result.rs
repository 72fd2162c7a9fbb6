//! What was measured: the one object that a run leaves behind.
//!
//! The comments on its fields are the documentation of its JSON form (`docs/reference/bench-json.md`). Fields are
//! only ever added; a reader must ignore those that it does not know.

mod figures;
mod json;

use std::collections::BTreeMap;

pub use self::figures::Figures;
pub use crate::access::{Access, Accesses};
pub use rubus_stats::batches::LatencyIntervals;
pub use rubus_stats::histogram::{Latency, LatencyBins};
pub use rubus_stats::measured::{Ended, Outcome};
pub use rubus_stats::series::Series;
use serde::{Deserialize, Serialize};

use crate::cluster_facts::ClusterFacts;
use crate::doubt::Doubt;
use crate::finding::Finding;
use crate::machine::Machine;
use crate::memory::Memory;
use crate::nas::NasFacts;
use crate::paired::PairedJob;
use crate::processor::ProcessorRun;
use crate::rule_finding::RuleFinding;
use crate::spec::{Direction, Operation, Pattern};
use rubus_stats::estimate::Estimate;

/// One run of a suite on one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "figures::StoredRun")]
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
    /// What the results together say: knees, bends, cliffs and the like, in the order of the suite.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// How the machine was reached, if it was measured from another one with `--on`; absent:
    /// measured here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<RemoteFacts>,
    /// What was asked for, where a job file said what to measure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_file: Option<JobFile>,
    /// The other run, where two were measured in turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<Against>,
    /// The recipes of the changes that were in force, in the order in which they were applied; absent: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plans: Option<Vec<String>>,
    /// What was measured.
    #[serde(flatten)]
    pub figures: Figures,
}

/// The run with which this one was measured in turns, and the rounds of both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Against {
    /// When the other run began, as in its own record.
    pub started: String,
    /// Path of the other run's target.
    pub target: String,
    /// The rounds of each job; index 0 is the other run, the baseline, and index 1 this one.
    pub jobs: Vec<PairedJob>,
}

/// What a job file asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobFile {
    /// The job file, as the user named it.
    pub path: String,
    /// The options of its `[global]` sections.
    pub global_options: BTreeMap<String, String>,
    /// Its jobs, by the names that the results have.
    pub jobs: Vec<JobFileJob>,
    /// Options that are done in another way or have no effect on what is measured, with the
    /// reason.
    pub notes: Vec<String>,
    /// Options that were not supported and ignored on request, with what they would have done.
    pub ignored: Vec<String>,
}

/// One job of a job file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobFileJob {
    /// Name of its results.
    pub name: String,
    /// Name in the job file; several jobs may have the same.
    pub section: String,
    /// Number of its reporting group, from 0.
    pub group: u32,
    /// Whether the jobs of its group are to be reported together.
    pub group_reporting: bool,
    /// Its description, if it has one.
    pub description: Option<String>,
    /// Its own options, as they stand in the file.
    pub options: BTreeMap<String, String>,
}

/// The way to a machine that was measured from another one, and how busy the near end was. All
/// other facts of such a run are those of the machine that was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RemoteFacts {
    /// The machine as the user named it to ssh ("pi@attic"), or its name in a fleet file.
    pub destination: String,
    /// What the ssh program here calls itself ("OpenSSH_9.2p1 …").
    pub ssh_version: Option<String>,
    /// Which program measured there: the file that was copied, or the command that was there.
    pub binary: String,
    /// Milliseconds from here to there and back through the connection: the least of a few.
    pub round_trip_ms: Option<f64>,
    /// Shares of all cores of the machine here, from the start of the run to its end.
    pub local_cpu: Option<CpuShares>,
}

/// What was measured on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TargetFacts {
    /// As the user named it.
    pub named: String,
    /// `directory` (a test file in it is measured), `file`, `device`, `ram`, `network` or `pool`.
    pub kind: TargetKind,
    /// Absolute path of the directory, file or device node.
    pub path: String,
    /// Filesystem type, for a directory or a file ("ext4").
    pub filesystem: Option<String>,
    /// Kernel name of the block device below ("mmcblk0p2"), where there is one.
    pub device: Option<String>,
    /// Bytes of the region that was measured.
    pub region_bytes: u64,
    /// Past the page cache, or through it because the filesystem refuses or ignores direct I/O.
    pub access: Access,
    /// What was written ("incompressible", …).
    pub content: String,
    /// How a network disk was reached and what its server offers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkFacts>,
    /// The link over which a network disk is reached, as far as its rate is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<NetworkLink>,
    /// The Ceph cluster that an RBD image or a pool lies in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterFacts>,
    /// The file server that it is mounted from (NFS, SMB).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nas: Option<NasFacts>,
}

/// A network interface and what it carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NetworkLink {
    /// Name of the interface ("eth0").
    pub interface: String,
    /// What was agreed with the other end of the cable.
    pub bits_per_second: u64,
}

/// How a network block device was reached, and what its server offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NetworkFacts {
    /// Its address, in full and without secrets.
    pub uri: String,
    /// What was connected to: an address with its port, or a socket.
    pub peer: String,
    /// Size of the export.
    pub export_bytes: u64,
    /// The server's words about the export.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How both ends came to terms: `fixed newstyle`, `newstyle` or `oldstyle`.
    pub handshake: String,
    /// Reads were answered with structured replies.
    pub structured_replies: bool,
    /// Encrypted, and with what ("TLS 1.3, …"); absent: in the clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<String>,
    /// The sizes of requests that the server takes.
    pub block_sizes: NetworkBlockSizes,
    /// The server refuses writes.
    pub is_read_only: bool,
    /// The server says that the medium turns.
    pub is_rotational: bool,
    /// What was answered can be made durable.
    pub can_flush: bool,
    /// A write can be durable by itself (FUA); commits are then one request, else a write and a
    /// flush.
    pub can_fua: bool,
    /// Bytes can be given up.
    pub can_trim: bool,
    /// Bytes can be made zeros without sending zeros.
    pub can_write_zeroes: bool,
    /// Several connections see the same data.
    pub can_multi_conn: bool,
    /// Connections that were used at once at most.
    pub connections: u32,
    /// How long connecting took, in nanoseconds: over TCP one round trip of the network, which the
    /// other end's kernel answers.
    pub connect_ns: u64,
    /// How long the smallest reads took, one after the other, before the first job: the network
    /// and the server together. Absent where there was nothing to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip: Option<RoundTrip>,
}

/// The sizes of requests that a server takes, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NetworkBlockSizes {
    /// Offsets and lengths are multiples of this.
    pub least_bytes: u32,
    /// From this on requests are efficient.
    pub preferred_bytes: u32,
    /// A request moves at most this.
    pub most_bytes: u32,
    /// The server said so; else these are the protocol's defaults.
    pub is_stated: bool,
}

/// What small exchanges took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RoundTrip {
    /// Bytes that each read.
    pub read_bytes: u32,
    /// How many there were.
    pub exchanges: u32,
    /// The shortest, in nanoseconds.
    pub least_ns: u64,
    /// The median, in nanoseconds.
    pub median_ns: u64,
}

/// What kind of thing a target is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum TargetKind {
    /// A directory; a nameless file of our own in it was measured.
    Directory,
    /// A file of the user's.
    File,
    /// A block device.
    Device,
    /// Memory: a file without a name and without a disk below.
    Ram,
    /// A network block device, spoken to without the kernel.
    Network,
    /// A pool of a Ceph cluster, in which objects of our own were measured.
    Pool,
}

/// What the measuring itself costs, measured on `/dev/null` before the session.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Calibration {
    /// Processor nanoseconds per operation at queue depth 1.
    pub cpu_ns_per_io_depth_1: f64,
    /// Processor nanoseconds per operation at queue depth 32.
    pub cpu_ns_per_io_depth_32: f64,
    /// Nanoseconds that one reading of the clock takes.
    pub clock_ns: f64,
}

/// What one job gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobResult {
    /// Name of the job in its suite.
    pub job: String,
    /// What it is called, where a job file says it; absent: it is called after what it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The operation, if not a block: `create_file`, `create_file_durably`, `stat_file`,
    /// `read_file`, `delete_file`, `stamp`.
    #[serde(default, skip_serializing_if = "Operation::is_block")]
    pub operation: Operation,
    /// Read or write.
    pub direction: Direction,
    /// Sequential or random.
    pub pattern: Pattern,
    /// Bytes per operation; 0 where none are moved.
    pub block_bytes: u32,
    /// Operations kept in flight.
    pub queue_depth: u32,
    /// True where each operation is a commit: a write made durable with `fdatasync`.
    #[serde(default)]
    pub commit: bool,
    /// How this job reached the target, where a suite mixes ways; else the target's `access` holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// What was written by this job, where it differs from the run's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// What this job ran on, where the run has several targets or files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Number of copies of the job that ran at the same time and are reported together; absent: one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<u32>,
    /// How often the job was repeated as a whole, each time with its flush; the intervals are those of the passes'
    /// rates. Absent: it was judged by its own course.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<u32>,
    /// Which engine ran: `positional` calls, the `ring` (io_uring), `threads` (one per operation in
    /// flight), `nbd` (the program's own connection to a network disk), or Ceph's `rados bench`
    /// (`rados`).
    pub engine: String,
    /// Number of io_uring rings that shared the queue, each in a thread of its own; absent: at most one, as in older
    /// runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lanes: Option<u32>,
    /// Completions were polled for, so a core was busy whether it worked or waited.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub polled: bool,
    /// Seconds from the run's `started` to the start of this job, from which its stalls count.
    #[serde(default)]
    pub started_s: f64,
    /// Seconds of it that were warm-up: the series begins after them. 0 in older runs.
    #[serde(default, skip_serializing_if = "is_nought")]
    pub warm_up_s: f64,
    /// Seconds of measuring, warm-up excluded, final flush included.
    pub elapsed_s: f64,
    /// Operations measured.
    pub operations: u64,
    /// Bytes that they moved, where operations differ in size; absent: operations times block size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Bytes per second.
    pub bytes_per_second: Estimate,
    /// Operations per second.
    pub iops: Estimate,
    /// How far the interval of `iops` reaches by the noise alone, as a share of it; the rest of the interval is for stalls and
    /// slow changes. Absent in older runs, in jobs of several passes, and where too little was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<f64>,
    /// Latency of the operations, in nanoseconds; a percentile for which there were too few
    /// operations is `null`.
    pub latency_ns: Latency,
    /// Of a job with a rate limit: from the moment an operation was due by its limit to its end, in nanoseconds, so
    /// that what a stall held up counts with all of its waiting; absent without a limit and in older runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_ns: Option<Latency>,
    /// Shares of the time of all cores during the job: 1 is every core all the time.
    pub cpu: CpuShares,
    /// Processor time of this process per operation, in nanoseconds.
    pub cpu_ns_per_io: f64,
    /// Processor time at both ends of a network disk, with `--server-status`: between two samples
    /// right before and right after the job, so it includes warm-up, flush and jobs beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub both_ends: Option<BothEnds>,
    /// Times in which the target did (nearly) nothing, far beyond its usual latency, in the order
    /// in which they began.
    pub stalls: Vec<Stall>,
    /// How precise it became: as wanted; wider, at most ±25 %; too uncertain to rely on.
    pub outcome: Outcome,
    /// Why the stopping rule ended it: the interval stayed narrow enough, its seconds were over,
    /// its bytes were moved. Absent where something else ended it (a job file's own end, a failure,
    /// several passes) and in older runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// What disturbed it.
    pub doubts: Vec<Doubt>,
    /// Throughput in bins, for the curve over time.
    #[serde(default)]
    pub series: Option<Series>,
    /// The distribution of the latencies.
    #[serde(default)]
    pub latency_bins: Option<LatencyBins>,
    /// The intervals of the median and the 99th percentile; absent in older runs and in jobs of several passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_intervals: Option<LatencyIntervals>,
}

/// Whether it goes without saying.
fn is_nought(seconds: &f64) -> bool {
    *seconds == 0.0
}

/// Shares of the time of all cores: 1.0 is every core all the time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// What both ends of a network disk spent between two looks, right before a job and right after it:
/// warm-up, flush and jobs beside it included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BothEnds {
    /// Seconds between the looks.
    pub seconds: f64,
    /// Requests that were completed.
    pub operations: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Whose time is counted at this end: the measuring process with its own connection, or the
    /// whole machine, whose kernel has the connection.
    pub client_is: ClientEnd,
    /// This end.
    pub client: EndCost,
    /// Whose time is counted at the other end: `rubus serve`, which reports it; the server's whole
    /// machine; or all its processes of that name.
    #[serde(default)]
    pub server_is: ServerEnd,
    /// The server's end.
    pub server: EndCost,
}

/// Processor time at one end of a network disk.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndCost {
    /// Processor seconds, in programs and in the kernel.
    pub cpu_s: f64,
    /// The same per GiB moved; absent if nothing moved.
    pub cpu_s_per_gib: Option<f64>,
    /// The same per million requests; absent without requests.
    pub cpu_s_per_million: Option<f64>,
}

/// What the processor time at the near end of a network disk is that of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ClientEnd {
    /// The measuring process, which speaks to the server itself.
    Process,
    /// The whole machine: the kernel speaks to the server, in threads and interrupts that belong to
    /// no process.
    Machine,
}

/// What the processor time at the far end of a network disk is that of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ServerEnd {
    /// The process of `rubus serve`, as it says itself.
    #[default]
    Process,
    /// All processes of a program of this name, as their machine says.
    Program(String),
    /// The whole machine, as it says itself.
    Machine,
}

impl BothEnds {
    /// Both ends with what a GiB and a million requests cost. `operations` requests moved `bytes` in `seconds`; the
    /// client and the server spent `client_s` and `server_s` seconds of processor time.
    pub fn new(
        seconds: f64,
        (operations, bytes): (u64, u64),
        (client_is, server_is): (ClientEnd, ServerEnd),
        [client_s, server_s]: [f64; 2],
    ) -> BothEnds {
        let end = |cpu_s: f64| EndCost {
            cpu_s,
            cpu_s_per_gib: (bytes > 0).then(|| cpu_s / (bytes as f64 / f64::from(1 << 30))),
            cpu_s_per_million: (operations > 0).then(|| cpu_s / (operations as f64 / 1e6)),
        };
        BothEnds {
            seconds,
            operations,
            bytes,
            client_is,
            client: end(client_s),
            server_is,
            server: end(server_s),
        }
    }

    /// Several stretches of the same job as one; nothing without any.
    pub fn sum(parts: impl IntoIterator<Item = BothEnds>) -> Option<BothEnds> {
        parts.into_iter().reduce(|all, part| {
            BothEnds::new(
                all.seconds + part.seconds,
                (all.operations + part.operations, all.bytes + part.bytes),
                (part.client_is, part.server_is),
                [all.client.cpu_s + part.client.cpu_s, all.server.cpu_s + part.server.cpu_s],
            )
        })
    }
}

/// A time in which the target did (nearly) nothing, far beyond its usual latency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// The program itself was stopped (Ctrl-Z, SIGSTOP, a frozen control group).
    Stopped,
}

impl JobResult {
    /// Bytes moved by the measured operations.
    pub fn moved_bytes(&self) -> u64 {
        self.bytes.unwrap_or(self.operations * u64::from(self.block_bytes))
    }

    /// Whether the processor was the limit, so that its rate says nothing about the device.
    pub fn is_cpu_bound(&self) -> bool {
        let is_bound = |doubt: &Doubt| matches!(doubt, Doubt::CpuBound { .. });
        self.doubts.iter().any(is_bound)
    }
}

impl Run {
    /// How many lanes (io_uring rings, each with a thread of its own) served a result's queue, if this machine has
    /// cores for more; absent where no ring did.
    pub fn lanes_below_cores(&self, result: &JobResult) -> Option<u32> {
        let lanes = (result.engine == "ring").then(|| result.lanes.unwrap_or(1))?;
        let cores = self.machine.cpu.cores.get();
        cores.is_none_or(|cores| cores > lanes).then_some(lanes)
    }

    /// How its jobs reached the target.
    pub fn accesses(&self) -> Accesses {
        let mut all = self.results.iter().map(|result| self.access_of(result));
        let first = all.next().unwrap_or(self.target.access);
        if all.all(|access| access == first) { Accesses::All(first) } else { Accesses::Both }
    }

    /// How a job of this run reached the target.
    pub fn access_of(&self, result: &JobResult) -> Access {
        result.access.unwrap_or(self.target.access)
    }

    /// The figures of memory, of a run that is of it.
    pub fn memory(&self) -> Option<&Memory> {
        match &self.figures {
            Figures::Memory(memory) => Some(memory),
            Figures::Disk | Figures::Processor(_) => None,
        }
    }

    /// The figures of the processor, of a run that is of it.
    pub fn processor(&self) -> Option<&ProcessorRun> {
        match &self.figures {
            Figures::Processor(processor) => Some(processor.as_ref()),
            Figures::Disk | Figures::Memory(_) => None,
        }
    }

    /// What the rules found, of all findings.
    pub fn rule_findings(&self) -> Vec<&RuleFinding> {
        let found = self.findings.iter().filter_map(|finding| match finding {
            Finding::Rule(found) => Some(found),
            _ => None,
        });
        found.collect()
    }

    /// Where it was measured, with the machine where that was not the one before the user:
    /// "/home/pi", "pi@attic:/home/pi".
    pub fn place(&self) -> String {
        let path = &self.target.path;
        match &self.on {
            None => path.clone(),
            Some(on) => format!("{}:{path}", on.destination),
        }
    }

    /// The result of a job by its name.
    pub fn job(&self, name: &str) -> Option<&JobResult> {
        self.results.iter().find(|result| result.job == name)
    }
}
