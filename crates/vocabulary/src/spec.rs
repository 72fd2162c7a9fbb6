//! What to measure: jobs and the suites made of them.

pub use rubus_stats::stop::StopSpec;
use serde::{Deserialize, Serialize};

/// Whether bytes come from the target or go to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the target.
    Read,
    /// To the target.
    Write,
}

/// In which order the blocks are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// A commit in place: each write is followed by `fdatasync`, and both are one operation. The
    /// writes go where the pattern says and do not make the file longer.
    EachInPlace,
    /// Nothing is flushed: what the page cache took counts as written. Only job files ask for it.
    Never,
}

impl Durability {
    /// Whether each write is a commit.
    pub fn is_each(self) -> bool {
        matches!(self, Durability::EachAppend | Durability::EachInPlace)
    }
}

/// What one operation of a job is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// A block of the target is read or written.
    #[default]
    Block,
    /// A small file is made, written and closed.
    CreateFile,
    /// A small file is made and written, then it and its directory are made durable with `fsync`.
    CreateFileDurably,
    /// The attributes of a small file are asked for.
    StatFile,
    /// A small file is opened, read and closed.
    ReadFile,
    /// A small file is removed.
    DeleteFile,
    /// A block that says where it belongs is written, or read back and looked at.
    Stamp,
    /// The processor works on something in memory; nothing is read or written.
    Compute,
}

impl Operation {
    /// Whether it is the usual one.
    pub fn is_block(&self) -> bool {
        *self == Operation::Block
    }

    /// Whether it is done with a whole small file.
    pub fn is_of_file(self) -> bool {
        !matches!(self, Operation::Block | Operation::Stamp | Operation::Compute)
    }
}

/// One thing to measure on a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Short unique name within the suite, `kebab-case`.
    pub name: String,
    /// What an operation is.
    #[serde(default)]
    pub operation: Operation,
    /// Read or write.
    pub direction: Direction,
    /// Sequential or random.
    pub pattern: Pattern,
    /// Bytes per operation (0 where none are moved); a multiple of the target's logical block unless the target is buffered.
    pub block_bytes: u32,
    /// Operations kept in flight, at least 1.
    pub queue_depth: u32,
    /// When writes are made durable.
    pub durability: Durability,
    /// When to stop.
    pub stop: StopSpec,
    /// Jobs that run on the same target at the same time; all are reported. See [`Job::ends`] for
    /// when they stop. Used for the bystander (a small reader beside a writer) and for the parallel
    /// jobs of a job file.
    pub beside: Vec<Job>,
    /// When the jobs beside this one stop.
    pub ends: Ends,
    /// Through the page cache, deliberately: reads begin with a cold cache and profit from
    /// read-ahead, writes are not waited for one by one, and what is left in the cache is paid for
    /// by the flush at the end.
    pub through_cache: bool,
    /// What is written by this job, where it differs from the suite's.
    pub content: Option<Content>,
    /// The file is emptied before the job, so that the writes allocate. Of no effect on a device.
    pub fresh: bool,
    /// Seconds of rest before the job begins, in which nothing is sent to the target. Of a job
    /// beside another, and of one with others beside it that do not end with it: seconds from the
    /// start of the group to its own start.
    pub rest_before_s: f64,
    /// How often the job is repeated at most (0 and 1 mean once, judged by its own course). A job whose flush at the
    /// end is paid for by the whole region has one rate per pass, so it is repeated until the rates of at least three
    /// passes agree. Each pass ends with its flush and moves at most `stop.max_bytes`; `stop.max_seconds` holds for all
    /// of them together.
    #[serde(default)]
    pub passes: u32,
    /// A sequential write that ends early when it has fallen off a cliff and settled below. All of it
    /// counts, from its first byte on.
    #[serde(default)]
    pub until_cliff: bool,
    /// The kernel's caches of the whole machine are emptied before a job on small files, which only
    /// root can do and all other programs feel.
    #[serde(default)]
    pub drop_caches: bool,
    /// What only job files ask for; a job with a shape is run by the general engine.
    pub shape: Option<Box<Shape>>,
}

/// When the jobs beside a job stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ends {
    /// All stop when the first stops.
    #[default]
    WithTheFirst,
    /// Each stops by its own rule; the last one ends the group.
    EachByItself,
    /// All stop when any of them stops.
    WithAny,
}

impl Job {
    /// A plain job: direct, with the flush of writes at its end, that stops at ±10 % after 3 to 7
    /// seconds. `name` is unique within its suite.
    pub fn new(
        name: &str,
        direction: Direction,
        pattern: Pattern,
        block_bytes: u32,
        queue_depth: u32,
    ) -> Job {
        Job {
            name: name.into(),
            operation: Operation::Block,
            direction,
            pattern,
            block_bytes,
            queue_depth,
            durability: Durability::AtEnd,
            stop: StopSpec {
                relative_half_width: 0.10,
                min_seconds: 3.0,
                max_seconds: 7.0,
                min_bytes: 0,
                max_bytes: u64::MAX,
            },
            beside: Vec::new(),
            ends: Ends::WithTheFirst,
            through_cache: false,
            content: None,
            fresh: false,
            rest_before_s: 0.0,
            passes: 0,
            until_cliff: false,
            drop_caches: false,
            shape: None,
        }
    }
}

/// What a job may ask for beyond one kind of operation of one size: the vocabulary of job files.
///
/// Everything is optional; [`Shape::default`] asks for nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Share of the operations that read, in percent, of a mix; absent where the job's direction
    /// says it all.
    pub read_percent: Option<u8>,
    /// Share of the operations that go to random places, in percent, the others follow the one
    /// before; absent where the job's pattern says it all. Reads, then writes.
    pub random_percent: [Option<u8>; 2],
    /// Sizes of reads and of writes, where they are not all the job's block size.
    pub sizes: [Option<Sizes>; 2],
    /// Sizes from a range are multiples of the smallest, unless this is set.
    pub unaligned: bool,
    /// Where random operations go.
    pub distribution: Distribution,
    /// Random operations visit every block once before any is visited again.
    pub visits_once: bool,
    /// Where the region begins on the target, in bytes.
    pub offset_bytes: u64,
    /// Length of the region from there; absent: to the end of the suite's region.
    pub span_bytes: Option<u64>,
    /// Limits of reads and of writes.
    pub limits: [Limit; 2],
    /// A pause after a number of operations.
    pub think: Option<Think>,
    /// A flush after a number of writes, besides what [`Job::durability`] says.
    pub flush_every: Option<FlushEvery>,
    /// What is written can be checked, and what is read is: each 4 KiB at most carry a header with where
    /// they belong and the sum of their bytes. After a job that writes, everything that it has written
    /// is read back.
    pub verify: Option<Verify>,
    /// With [`Shape::verify`]: what was written is not read back.
    pub skips_read_back: bool,
    /// Number of copies of the job that run at the same time, each with its own seed (0 and 1 mean one).
    pub copies: u32,
    /// Each copy works `copy_offset_bytes` beyond the one before.
    pub copy_offset_bytes: u64,
    /// Number of equal parts into which the region is divided, visited in [`Shape::file_order`] (0 and 1 mean one): the
    /// many small files of a job file within one file.
    pub files: u32,
    /// File of this job, by its number in the session's list of files; absent: the target itself.
    pub file: Option<u32>,
    /// Further files of this job, by number; offset and span hold in each of them, and they are
    /// visited in [`Shape::file_order`].
    pub more_files: Vec<u32>,
    /// By how much the file number grows from each copy to the next (0: all copies work on the same file).
    pub file_step: u32,
    /// In which order several files are visited.
    pub file_order: FileOrder,
    /// Operations on one file before the next is chosen (0 and 1 mean each time).
    pub operations_per_file: u32,
    /// Bytes that sequential operations skip after each one; negative: they go that far back from where they ended, so
    /// that minus twice the block size goes backwards.
    pub stride_bytes: i64,
    /// Sequential operations before the next random place (0 and 1 mean every operation is at a random place).
    pub run_length: u32,
    /// Random offsets of reads and of writes are multiples of this, where it is not the block size.
    pub align_bytes: [Option<u32>; 2],
    /// Random operations fall into these zones, which lie one after the other and together are the
    /// whole region; empty: [`Shape::distribution`] holds.
    pub zones: Vec<Zone>,
    /// The job ends after this number of operations.
    pub max_operations: Option<u64>,
    /// Limited operations come at random times with the limit as their mean rate (a Poisson
    /// process) instead of evenly.
    pub poisson: bool,
    /// Seconds at the start that do not count, in place of the engine's own warm-up; they come on top
    /// of `stop.max_seconds`.
    pub ramp_s: Option<f64>,
    /// Runs for its whole time, whatever the precision, and goes round the region again and again;
    /// without it the job ends when its region has been covered once, or earlier for its precision
    /// where `stop` lets it. `stop.max_bytes` holds in any case, for all copies together.
    pub time_based: bool,
    /// Keep the queue full with threads or with one operation at a time, whatever the engine would
    /// choose.
    pub one_at_a_time: bool,
    /// Operations copy from and to a shared mapping of the file instead of calling the kernel, one at a
    /// time; a flush is `msync`.
    pub is_mapped: bool,
    /// Each time the region begins again, what the page cache holds of it is dropped.
    #[serde(default)]
    pub drops_cache: bool,
}

/// In which order several files are visited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileOrder {
    /// One after the other, and again from the first.
    #[default]
    RoundRobin,
    /// Any, all with the same chance.
    Random,
    /// The next one when all of one file has been covered.
    Sequential,
}

/// A part of a region with its share of the operations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Zone {
    /// Share of the operations, in percent; those of all zones add up to 100.
    pub operations_percent: f64,
    /// Share of the region, in percent; those of all zones add up to 100.
    pub region_percent: f64,
}

/// One of the files of a session whose jobs work on several: what has to be there before the first
/// job. Its place in the session's list is the number in [`Shape::file`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileNeed {
    /// Its name in messages and results.
    pub name: String,
    /// Bytes of it that jobs work on. A file of our own gets this size.
    pub region_bytes: u64,
    /// What a file of our own holds before the first job. What exists already stays as it is.
    pub start: FileStart,
}

/// What a file of our own holds before the first job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileStart {
    /// Its length and nothing else: every block is allocated when it is written.
    Hollow,
    /// Space is reserved (`fallocate`), nothing is written.
    Reserved,
    /// Everything is written once.
    Filled,
}

/// Sizes of operations, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sizes {
    /// Uniform between the two, both included.
    Range(u32, u32),
    /// Each size with its share in percent; they add up to 100.
    Split(Vec<(u32, u8)>),
}

/// Where random operations go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// A uniform distribution over the region.
    #[default]
    Uniform,
    /// Zipf's law with this exponent, above 0 and not 1.
    Zipf(f64),
    /// Pareto's law with this parameter, above 0 and below 1.
    Pareto(f64),
    /// A normal distribution around the middle, with this deviation in percent of the region.
    Normal(f64),
}

/// What a job may do at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// Bytes per second.
    pub bytes_per_second: Option<f64>,
    /// Operations per second.
    pub iops: Option<f64>,
}

impl Limit {
    /// Whether it limits anything.
    pub fn is_any(&self) -> bool {
        self.iops.is_some() || self.bytes_per_second.is_some()
    }
}

/// A pause between operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Think {
    /// Length of the pause, in microseconds.
    pub microseconds: u64,
    /// Operations between two pauses, at least 1.
    pub every: u32,
    /// Microseconds of the pause that are spent computing; the rest is spent sleeping.
    pub spin_microseconds: u64,
}

/// A flush after a number of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlushEvery {
    /// Writes between two flushes, at least 1.
    pub writes: u32,
    /// `fsync` instead of `fdatasync`.
    pub metadata_too: bool,
}

/// Checks of what is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verify {
    /// CRC-32C (Castagnoli), as in iSCSI.
    Crc32c,
    /// 64-bit xxHash.
    Xxhash,
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
    /// Blocks of zeros.
    Zeros,
    /// These bytes again and again, in every block from its beginning.
    Pattern(BytePattern),
}

impl Content {
    /// Whether every block differs from every other one.
    pub fn differs(self) -> bool {
        match self {
            Content::Incompressible | Content::Compressible(_) => true,
            Content::Zeros | Content::Pattern(_) => false,
        }
    }
}

/// A few bytes that are written again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BytePattern {
    bytes: [u8; BytePattern::MAX],
    length: u8,
}

impl BytePattern {
    /// The longest, in bytes.
    pub const MAX: usize = 16;

    /// Of 1 to [`BytePattern::MAX`] bytes.
    pub fn new(bytes: &[u8]) -> Option<BytePattern> {
        let length = u8::try_from(bytes.len()).ok()?;
        let mut all = [0; BytePattern::MAX];
        all.get_mut(..bytes.len()).filter(|part| !part.is_empty())?.copy_from_slice(bytes);
        Some(BytePattern { bytes: all, length })
    }

    /// The bytes to repeat, 1 to [`BytePattern::MAX`].
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length).clamp(1, BytePattern::MAX)]
    }
}

/// A named list of jobs with everything needed to repeat them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Suite {
    /// Name of the suite, such as `quick`.
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

/// A suite as `rubus suites` lists it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SuiteSummary {
    /// What it is called.
    pub name: String,
    /// The question that it answers.
    pub answers: String,
    /// Bytes that it writes at most, on a target with plenty of room.
    pub writes_bytes: u64,
    /// About how long it takes, in seconds.
    pub about_s: f64,
    /// How long it takes at most, in seconds.
    pub most_s: f64,
    /// What it can be run on.
    pub runs_on: RunsOn,
}

/// What a suite can be run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RunsOn {
    /// A directory, a file or a block device.
    Anything,
    /// A directory only.
    Directory,
    /// A block device only, whose loss was confirmed.
    Device,
    /// Memory only: nothing is written to any disk.
    Memory,
}
