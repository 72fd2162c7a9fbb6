//! What a processor does for the pipes that need it: ciphers, ssh, compression, arithmetic.
//!
//! The figures of `rubus bench cpu`. They live in a [`crate::result::Run`] like those of a disk, so that the history and
//! comparisons take them. One file per part; `implementation` says which instructions a library uses where, `kernel`
//! what the kernel has of its own, `watched` what clock, heat and supply did meanwhile, `subject` makes everything comparable.

pub mod algorithm;
pub mod arm_cores;
pub mod ciphers;
pub mod compression;
pub mod implementation;
pub mod linpack;
pub mod peers;
pub mod ssh;
mod subject;
pub mod watched;

use serde::{Deserialize, Serialize};

use crate::doubt::Doubt;
use rubus_stats::estimate::Estimate;

pub use ciphers::Ciphers;
pub use compression::Compression;
pub use linpack::Linpack;
pub use ssh::Ssh;
pub use watched::Watched;

/// Name of the suite in runs of this kind.
pub const SUITE: &str = "cpu";
/// Seconds that each figure takes where the user says nothing else.
pub const USUAL_SECONDS: f64 = 0.3;
/// Less than this says nothing.
pub const MIN_SECONDS: f64 = 0.05;

/// What was measured of a machine's processor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessorRun {
    /// Cores that the program may use.
    pub cores: u32,
    /// Bits of an address in the program that measured: 32 or 64.
    pub pointer_bits: u32,
    /// What the program was built for, such as "aarch64".
    pub architecture: String,
    /// Seconds that each figure was to take at least.
    pub seconds: f64,
    /// Clock, heat and supply meanwhile.
    pub watched: Watched,
    /// Ciphers and checksums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ciphers: Option<Ciphers>,
    /// ssh from this machine to itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh: Option<Ssh>,
    /// How well and how fast it compresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<Compression>,
    /// Solving a dense system of linear equations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linpack: Option<Linpack>,
    /// What could not be measured, with the reason and what to do.
    pub left_out: Vec<LeftOut>,
}

impl ProcessorRun {
    /// Whether everything that it computed was right, as far as that was checked.
    pub fn is_right(&self) -> bool {
        let rows =
            self.compression.iter().flat_map(|part| &part.samples).flat_map(|sample| &sample.rows);
        let is_solved = |linpack: &Linpack| {
            let repeated = linpack.stability.as_ref().map(|seen| &seen.all);
            let mut rated = linpack.on_one_core().chain([&linpack.all]).chain(repeated);
            rated.all(linpack::Rated::is_right)
        };
        rows.map(|row| row.wrong).sum::<u64>() == 0 && self.linpack.iter().all(is_solved)
    }
}

/// A part that was not measured.
pub type LeftOut = crate::left_out::LeftOut<Part>;

/// The parts of the bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Ciphers and checksums, in this program and in the kernel.
    Ciphers,
    /// ssh from this machine to itself.
    Ssh,
    /// Compressing and expanding, as files on btrfs and as pages of swap in memory.
    Compression,
    /// Solving a dense system of linear equations.
    Linpack,
}

impl Part {
    /// All, in the order in which they are measured.
    pub const ALL: [Part; 4] = [Part::Ciphers, Part::Ssh, Part::Compression, Part::Linpack];

    /// As it is called on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Part::Ciphers => "ciphers",
            Part::Ssh => "ssh",
            Part::Compression => "compression",
            Part::Linpack => "linpack",
        }
    }
}

/// A rate, on one core and on all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rates {
    /// By one thread, which the kernel moves as it likes.
    pub one_core: Option<Rate>,
    /// By as many threads as there are cores; absent where there is only one.
    pub all_cores: Option<Rate>,
}

/// How fast something was done by threads that each worked on memory of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rate {
    /// Threads that did it at the same time.
    pub threads: u32,
    /// Of all threads together: bytes per second, or what the figure counts.
    pub per_second: Estimate,
    /// Timed passes of all threads.
    pub passes: u32,
    /// What disturbed it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<Doubt>,
}

/// Share of the time that who works was ready to run and got no processor, from which that is a doubt.
const STARVED: f64 = 0.05;

/// The doubt about a figure whose workers had to wait for a processor for that share of the time.
pub fn starved(share: f64) -> Vec<Doubt> {
    if share >= STARVED { vec![Doubt::CpuStarved { share: share.min(1.0) }] } else { Vec::new() }
}

impl Rates {
    /// How many times as fast all cores are as one.
    pub fn scaling(&self) -> Option<f64> {
        let one = self.one_core.as_ref()?.per_second.value;
        Some(self.all_cores.as_ref()?.per_second.value / one).filter(|times| times.is_finite())
    }

    /// Whether something disturbed either.
    pub fn is_disturbed(&self) -> bool {
        let mut both = [&self.one_core, &self.all_cores].into_iter().flatten();
        both.any(|rate| !rate.doubts.is_empty())
    }
}
