//! What to measure: jobs and the suites made of them.

use serde::{Deserialize, Serialize};

/// Whether bytes come from the target or go to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the target.
    Read,
    /// To the target.
    Write,
}

/// In which order the blocks are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Ascending from the start of the region, and again from the start at its end.
    Sequential,
    /// Uniform over the region, aligned to the block size, from the session's seed.
    Random,
}

/// When a write has to be durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// One flush at the end of the job, whose time counts.
    AtEnd,
    /// A *commit*: each write is followed by `fdatasync`, and both are one operation. The writes
    /// extend the file, as a log does, so that the filesystem's metadata is written too.
    EachAppend,
}

/// When a job has been measured long enough.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StopSpec {
    /// Wanted half-width of the 95 % interval as a share of the value: 0.10 is ±10 %.
    pub relative_half_width: f64,
    /// Never stop on precision before this many seconds of measuring.
    pub min_seconds: f64,
    /// Stop here whatever the precision ("capped" or "inconclusive").
    pub max_seconds: f64,
    /// Never stop on precision before this many bytes have moved.
    pub min_bytes: u64,
    /// Stop when this many bytes have moved; for writes this is the wear budget.
    pub max_bytes: u64,
}

/// One thing to measure on a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Short unique name within the suite, `kebab-case`.
    pub name: String,
    /// Read or write.
    pub direction: Direction,
    /// Sequential or random.
    pub pattern: Pattern,
    /// Bytes per operation; a multiple of the target's logical block unless the target is buffered.
    pub block_bytes: u32,
    /// Operations kept in flight, at least 1.
    pub queue_depth: u32,
    /// When writes are made durable.
    pub durability: Durability,
    /// When to stop.
    pub stop: StopSpec,
    /// A second job that runs on the same target all the while; both are reported. It stops when
    /// this job stops. Used for the bystander: a small reader beside a writer.
    pub beside: Option<Box<Job>>,
}

/// What the written blocks contain.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// Every block differs and does not compress: the default, since filesystems and controllers
    /// that compress must not flatter the result.
    Incompressible,
    /// Blocks that compress to about this percentage of their size (1 to 99), by repeating bytes.
    Compressible(u8),
    /// All zeros.
    Zeros,
}

/// A named list of jobs with everything needed to repeat them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Suite {
    /// `quick`, …
    pub name: String,
    /// Size of the test file or of the region on a device. A file is filled before the first read.
    pub region_bytes: u64,
    /// What is written.
    pub content: Content,
    /// Seed of every random choice.
    pub seed: u64,
    /// The whole suite takes no longer than this, in seconds: late jobs get less time, the last ones
    /// possibly none. Only an operation that the device does not finish can exceed it.
    #[serde(default)]
    pub max_seconds: Option<f64>,
    /// In the order in which they run.
    pub jobs: Vec<Job>,
}
