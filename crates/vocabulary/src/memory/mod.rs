//! What memory does: how fast it is, and how much more than itself it carries with the help of swap.
//!
//! The figures of `rubus bench memory`. They live in a [`crate::result::Run`] like those of a disk, so that the history
//! and comparisons take them. `search` looks for the cliff, `cliff` says where it is and where arithmetic expects it,
//! `subject` makes them comparable; `group`, `ground` and `bounds` say where it may be measured, and how far that may
//! go.

mod carries;
mod subject;

use serde::{Deserialize, Serialize};

use rubus_stats::estimate::Estimate;
use rubus_stats::histogram::Latency;

pub use carries::Carries;

/// Name of the suite in runs of this kind.
pub const SUITE: &str = "memory";
/// A touch of a page is called slow from here on where the user says nothing else.
pub const USUAL_LIMIT_NS: u64 = 5_000_000;
/// Touches of which one may be slow before a working set counts as too large.
pub const TOUCHES_PER_SLOW: u64 = 100;

/// What was measured of a machine's memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Memory {
    /// Cores that the program may use.
    pub cores: u32,
    /// How fast it is read, written and copied in order.
    pub bandwidth: Vec<Bandwidth>,
    /// How long one load waits for another, by the size of what is walked through.
    pub chase: Vec<Chase>,
    /// What happens beyond the size of memory, one entry per set-up of swap.
    pub pressure: Vec<Pressure>,
    /// What could not be measured, with the reason and what to do.
    pub left_out: Vec<LeftOut>,
}

/// A part that was not measured.
pub type LeftOut = crate::left_out::LeftOut<Part>;

/// The parts of the bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Reading, writing and copying in order.
    Bandwidth,
    /// One load after the other.
    Latency,
    /// More than fits.
    Pressure,
}

impl Part {
    /// All, in the order in which they are measured.
    pub const ALL: [Part; 3] = [Part::Bandwidth, Part::Latency, Part::Pressure];

    /// As it is called on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Part::Bandwidth => "bandwidth",
            Part::Latency => "latency",
            Part::Pressure => "pressure",
        }
    }
}

/// What is done with memory in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// Every byte is read into the processor.
    Read,
    /// Every byte is written with the C library's `memset`.
    Write,
    /// One half is copied to the other with the C library's `memcpy`.
    Copy,
}

impl Work {
    /// All, in the order in which they are measured.
    pub const ALL: [Work; 3] = [Work::Read, Work::Write, Work::Copy];

    /// In tables and names.
    pub fn name(self) -> &'static str {
        match self {
            Work::Read => "read",
            Work::Write => "write",
            Work::Copy => "copy",
        }
    }
}

/// The rate of one kind of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bandwidth {
    /// What was done.
    pub work: Work,
    /// Threads that did it at the same time, each on memory of its own.
    pub threads: u32,
    /// Whether those were all cores that the program may use.
    pub all_cores: bool,
    /// Bytes that each thread went through; larger than the caches.
    pub buffer_bytes: u64,
    /// Bytes per second of all threads together. A byte that is copied counts once, though it is read and written.
    pub bytes_per_second: Estimate,
    /// Passes that were timed.
    pub passes: u32,
}

/// The time that a load takes when its address is what the load before it brought.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Chase {
    /// Bytes that are walked through, in lines of 64 in random order.
    pub working_set_bytes: u64,
    /// Nanoseconds per load.
    pub ns: Estimate,
}

/// Which pages are touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Each as often as any other: the worst case, since nothing can be guessed.
    Uniform,
    /// Zipf's law with exponent 0.99: a few often, most seldom, as programs do.
    Zipf,
}

impl Access {
    /// Both, in the order in which they are measured.
    pub const ALL: [Access; 2] = [Access::Uniform, Access::Zipf];

    /// In tables and names.
    pub fn name(self) -> &'static str {
        match self {
            Access::Uniform => "uniform",
            Access::Zipf => "zipf",
        }
    }
}

/// What becomes of pages that do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SetUpKind {
    /// They cannot go anywhere.
    None,
    /// They go to a disk.
    Disk,
    /// They are compressed and stay in memory.
    Zram,
    /// They are compressed and stay in memory until that is too much; then they go to a disk.
    Zswap,
    /// Several areas of different kinds, used in the order of their priorities.
    Mixed,
}

impl SetUpKind {
    /// In tables and names.
    pub fn name(self) -> &'static str {
        match self {
            SetUpKind::None => "none",
            SetUpKind::Disk => "disk",
            SetUpKind::Zram => "zram",
            SetUpKind::Zswap => "zswap",
            SetUpKind::Mixed => "mixed",
        }
    }
}

/// One way to have swap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetUp {
    /// What it is.
    pub kind: SetUpKind,
    /// In words: "zswap (lzo, 20 %) before loop3".
    pub title: String,
    /// It was made for this measurement and removed afterwards; else it is the machine's own.
    pub is_temporary: bool,
    /// Bytes that its areas hold.
    pub swap_bytes: u64,
    /// The most that the compressed pool may take of memory, as a share, where there is such a limit.
    pub pool_share: Option<f64>,
}

/// What the measuring program was held in: a control group, or nothing but the machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Group {
    /// Version of control groups, 1 or 2; absent where the kernel had none, and the whole machine was measured.
    pub version: Option<u32>,
    /// Memory that it stands for: what was 1.0 times. Of a whole machine, what programs could have without swapping at the
    /// begin, less `reserve_bytes`.
    pub memory_bytes: u64,
    /// Memory of the whole machine that was left to others; absent in a group.
    #[serde(default)]
    pub reserve_bytes: Option<u64>,
    /// The kernel counts the memory of the compressed pool to the group. Where it does not, the group's limit was
    /// lowered by as much as the pool grew.
    pub kernel_counts_pool: bool,
    /// How readily the kernel swaps (`vm.swappiness`), where it says.
    pub swappiness: Option<u32>,
}

/// What happened under one set-up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pressure {
    /// Where pages go that do not fit.
    pub set_up: SetUp,
    /// Where it was measured.
    pub group: Group,
    /// Percent to which the pages compress, as they were made.
    pub content_percent: u32,
    /// Bytes of pages over bytes of the pool at its fullest, as the kernel counted; absent without a pool.
    pub measured_ratio: Option<f64>,
    /// A touch that took longer is slow.
    pub limit_ns: u64,
    /// What was measured, in the order of measuring.
    pub rungs: Vec<Rung>,
    /// How much memory carries, by access.
    pub carries: Vec<Carries>,
    /// Bytes that went to swap devices meanwhile.
    pub written_bytes: u64,
    /// The most that might.
    pub budget_bytes: u64,
    /// What limits what the figures say, as sentences without full stops.
    pub remarks: Vec<String>,
}

/// One size of the working set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rung {
    /// Size of the working set over the memory of the group.
    pub overcommit: f64,
    /// Bytes of the working set.
    pub working_set_bytes: u64,
    /// Seconds until all of it had been written once since the rung before (or the start).
    pub grown_s: f64,
    /// Bytes of the compressed pool after that, above what it had before the start.
    pub pool_bytes: u64,
    /// Bytes of the pages in the pool, when expanded, above what it had before the start.
    pub stored_bytes: u64,
    /// What touching it was like, once per access.
    pub phases: Vec<Phase>,
    /// Why it did not come to all of that.
    pub ended_by: Option<End>,
}

/// Why a working set was not possible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum End {
    /// The kernel ended the program since neither memory nor swap was left, or the pool took all of the memory.
    OutOfMemory,
    /// The same, and the swap was full.
    SwapFull,
    /// What may be written was written.
    Budget,
    /// It took too long.
    TooSlow,
    /// The user wanted no more.
    Interrupted,
    /// The machine itself was not to be trusted with more, where nothing but that could end it.
    Unsafe {
        /// In words.
        why: String,
    },
    /// Something else.
    Failed {
        /// In words.
        why: String,
    },
}

impl End {
    /// Whether it says something about memory: a larger working set would have ended in the same way.
    pub fn is_answer(&self) -> bool {
        matches!(self, End::OutOfMemory | End::SwapFull | End::TooSlow)
    }

    /// The reason as a phrase for people.
    pub fn words(&self) -> String {
        match self {
            End::OutOfMemory => "out of memory".into(),
            End::SwapFull => "swap is full".into(),
            End::Budget => "the limit of what may be written was reached".into(),
            End::TooSlow => "too slow to be filled".into(),
            End::Interrupted => "interrupted".into(),
            End::Unsafe { why } | End::Failed { why } => why.clone(),
        }
    }
}

/// Touches of single pages, one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Phase {
    /// Which pages were touched.
    pub access: Access,
    /// Share of the touches that wrote.
    pub write_share: f64,
    /// How many there were.
    pub touches: u64,
    /// Seconds that all took together.
    pub elapsed_s: f64,
    /// How long each took, in nanoseconds.
    pub latency_ns: Latency,
    /// The mean of those that read, in nanoseconds.
    pub read_mean_ns: Option<f64>,
    /// The mean of those that wrote, in nanoseconds.
    pub write_mean_ns: Option<f64>,
    /// Touches that took longer than the limit.
    pub slow: u64,
    /// Touches that the kernel had to read from swap for (major faults), as it counted them.
    pub major_faults: u64,
    /// What the kernel counted meanwhile.
    pub counters: Counters,
}

impl Phase {
    /// Touches per second.
    pub fn rate(&self) -> f64 {
        if self.elapsed_s > 0.0 { self.touches as f64 / self.elapsed_s } else { 0.0 }
    }

    /// Whether more than one touch in [`TOUCHES_PER_SLOW`] was slow.
    pub fn is_beyond(&self) -> bool {
        self.slow.saturating_mul(TOUCHES_PER_SLOW) > self.touches
    }
}

/// What the kernel counted, of the whole machine; absent where it does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counters {
    /// Pages read from swap devices.
    pub swapped_in: Option<u64>,
    /// Pages written to swap devices, those that zswap wrote back included.
    pub swapped_out: Option<u64>,
    /// Pages given back by zswap.
    pub zswap_in: Option<u64>,
    /// Pages taken in by zswap.
    pub zswap_out: Option<u64>,
    /// Pages that zswap wrote back to a disk.
    pub zswap_written_back: Option<u64>,
    /// Pages that zswap refused, for whatever reason.
    pub zswap_refused: Option<u64>,
    /// Microseconds in which some program waited for memory.
    pub waited_some_us: Option<u64>,
    /// Microseconds in which every program that had something to do waited for memory.
    pub waited_full_us: Option<u64>,
}

impl Counters {
    /// What was counted from `earlier` to this.
    pub fn since(&self, earlier: &Counters) -> Counters {
        let less = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Counters {
            swapped_in: less(self.swapped_in, earlier.swapped_in),
            swapped_out: less(self.swapped_out, earlier.swapped_out),
            zswap_in: less(self.zswap_in, earlier.zswap_in),
            zswap_out: less(self.zswap_out, earlier.zswap_out),
            zswap_written_back: less(self.zswap_written_back, earlier.zswap_written_back),
            zswap_refused: less(self.zswap_refused, earlier.zswap_refused),
            waited_some_us: less(self.waited_some_us, earlier.waited_some_us),
            waited_full_us: less(self.waited_full_us, earlier.waited_full_us),
        }
    }
}
