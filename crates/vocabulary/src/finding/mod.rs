//! What a run says beyond its single figures: the knee of a queue-depth sweep, the bend of a block-size
//! sweep, the cliff of a sustained write, a capacity that is not there; and what the rules find in its
//! figures and on its machine.
//!
//! A finding is a plain value that is stored with the run. What computes it, says it and draws it is in the rooms above.

use serde::{Deserialize, Serialize};

use crate::rule_finding::RuleFinding;
use crate::spec::{Direction, Pattern};
use rubus_stats::estimate::Estimate;

/// Something that the results of a run say together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Finding {
    /// The knee of a queue-depth sweep.
    Knee(Knee),
    /// Where a block-size sweep bends.
    Bend(Bend),
    /// A sustained write that fell, or did not.
    Cliff(Cliff),
    /// What a speed class asks for and what was measured.
    SpeedClass(SpeedClass),
    /// How a filesystem that compresses treated zeros and random data.
    Compression(Compression),
    /// Whether a target is as big as it says.
    Capacity(Capacity),
    /// Whether targets share a pipe.
    SharedPipe(SharedPipe),
    /// What a rule found in the figures or on the machine.
    Rule(RuleFinding),
}

/// The knee of a queue-depth sweep: where the line of lone operations meets the ceiling. A
/// soft curve is at half of its ceiling there; `enough_depth` says how many in flight are enough.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Knee {
    /// Read or write.
    pub direction: Direction,
    /// Sequential or random.
    pub pattern: Pattern,
    /// Bytes per operation.
    pub block_bytes: u32,
    /// The jobs of the sweep, by name, with ascending queue depth.
    pub jobs: Vec<String>,
    /// Latency of one lone operation, in nanoseconds: N operations per this is the rising asymptote.
    pub service_ns: Estimate,
    /// Operations per second that are never exceeded: the flat asymptote.
    pub ceiling_iops: Estimate,
    /// Where the asymptotes meet (N* of operational analysis): `service_ns` × `ceiling_iops`.
    pub depth: Estimate,
    /// How much more the best depth gives than depth 1.
    pub gain: Estimate,
    /// The sweep reached the flat part, so that the ceiling was seen and not only extrapolated.
    pub is_reached: bool,
    /// How softly the curve turns from one asymptote into the other: 0 is sharply, as with servers
    /// that share one queue, 1 as in a balanced network; absent: as one station behind a delay.
    #[serde(default)]
    pub softness: Option<f64>,
    /// The smallest measured depth that reaches 90 % of the most that was measured, whatever curve fits; absent where throughput
    /// still rises at the deepest queue, where the points are too uncertain, and in older runs.
    #[serde(default)]
    pub enough_depth: Option<u32>,
    /// More depth gives nothing: the target, or the bridge in front of it, takes one operation at a time.
    pub is_one_at_a_time: bool,
    /// The processor limited a deep point (doubt `cpu_bound`): the ceiling may be its own, and says
    /// nothing about the device.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cpu_bound: bool,
    /// Completions were polled for at the ceiling, so a core was busy all the time: whether it or the device is the limit
    /// cannot be told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_polled: bool,
    /// Of the points that the processor limited or that were polled: how many lanes (io_uring rings, each with a thread of its own) served
    /// them, if the machine has cores for more; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lanes_at_limit: Option<u32>,
    /// Largest distance of a measured point from the fitted curve, as a share of it.
    pub misfit: f64,
}

/// Where the throughput of a block-size sweep bends: t(b) = setup + b / rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bend {
    /// Read or write.
    pub direction: Direction,
    /// The jobs of the sweep, by name, with ascending block size.
    pub jobs: Vec<String>,
    /// Whether they went past the page cache.
    pub is_direct: bool,
    /// What an operation costs whatever its size, in nanoseconds.
    pub setup_ns: Estimate,
    /// Bytes per second of very large operations.
    pub bytes_per_second: Estimate,
    /// The size from which on the rate counts for more than the set-up: their product, in bytes.
    pub block_bytes: Estimate,
    /// Largest distance of a measured point from the fitted curve, as a share of it.
    pub misfit: f64,
}

/// How a sustained write went on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cliff {
    /// The job.
    pub job: String,
    /// Bytes per second before the cliff; of the whole where there was none.
    pub burst_bytes_per_second: Estimate,
    /// Bytes after which the rate fell; absent where it did not within what was written.
    pub burst_bytes: Option<Estimate>,
    /// Bytes per second after the cliff.
    pub sustained_bytes_per_second: Option<Estimate>,
    /// Bytes that were written in all.
    pub written_bytes: u64,
    /// After the rest: seconds of rest, and bytes that went at the burst rate again.
    pub recovery: Option<Recovery>,
}

/// What a rest gave back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recovery {
    /// Seconds of rest.
    pub rest_s: f64,
    /// Bytes that went at the burst rate after it.
    pub burst_bytes: u64,
    /// Their share of the first burst, 0 to 1.
    pub share: f64,
}

/// A speed class, its thresholds, and what was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpeedClass {
    /// "A1", "V30", "U3", …
    pub class: String,
    /// Its thresholds with the measured values.
    pub thresholds: Vec<Threshold>,
    /// True when every threshold is met by the whole interval, false when one is missed by the
    /// whole interval, absent when the intervals do not decide.
    pub is_met: Option<bool>,
}

/// One threshold of a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Threshold {
    /// What is asked for ("random read").
    pub what: String,
    /// The job that measured it.
    pub job: String,
    /// The least value, in `unit`.
    pub least: f64,
    /// `IOPS` or `bytes per second`.
    pub unit: String,
    /// What was measured, in `unit`.
    pub measured: Estimate,
}

/// Zeros against random data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Compression {
    /// Bytes per second with data that does not compress.
    pub incompressible_bytes_per_second: Estimate,
    /// Bytes per second with zeros.
    pub zeros_bytes_per_second: Estimate,
    /// Zeros over random, with its interval.
    pub ratio: Estimate,
}

/// Whether a target is as big as it says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Capacity {
    /// Only a sample all over it was tried.
    #[serde(default)]
    pub is_sample: bool,
    /// Bytes that it says it has (of a directory: its free space).
    pub announced_bytes: u64,
    /// Bytes that were written and read back.
    pub tested_bytes: u64,
    /// Bytes that came back as they were written.
    pub good_bytes: u64,
    /// Bytes that came back as another place's (a device that wraps around).
    pub overwritten_bytes: u64,
    /// Bytes that came back as something that was never written.
    pub corrupted_bytes: u64,
    /// Bytes that could not be read or written.
    #[serde(default)]
    pub unreadable_bytes: u64,
    /// Offset of the first byte that did not come back.
    pub first_bad_offset: Option<u64>,
    /// Offset of the last block that came back as it was written.
    #[serde(default)]
    pub last_good_offset: Option<u64>,
    /// The size at which it seems to wrap around, where that can be told.
    pub wraps_at_bytes: Option<u64>,
}

impl Finding {
    /// Whether it is the answer "no" to what was asked: bytes are missing.
    pub fn is_bad_news(&self) -> bool {
        match self {
            Finding::Capacity(capacity) => capacity.is_short(),
            _ => false,
        }
    }
}

impl Capacity {
    /// Whether something did not come back as it was written.
    pub fn is_short(&self) -> bool {
        self.good_bytes < self.tested_bytes
    }
}

/// Targets measured alone and all together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SharedPipe {
    /// The targets.
    pub targets: Vec<String>,
    /// The job that was run.
    pub job: String,
    /// Bytes per second of each alone.
    pub alone: Vec<Estimate>,
    /// Bytes per second of each while all ran.
    pub together: Vec<Estimate>,
    /// Sum of the rates together over the sum of the rates alone: 1 is independent.
    pub share: Estimate,
    /// True when the whole interval says that they share, false when it says that they do not.
    pub is_shared: Option<bool>,
    /// The bus or controller that they have in common, as far as the machine's facts tell.
    pub suspect: Option<String>,
}
