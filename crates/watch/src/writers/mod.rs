//! Who wrote to the disks over a long time: an account over the samples of a recording.
//!
//! The kernel counts for each program what it makes ready to be written, and for each disk what it writes. Between the two
//! are what filesystems add (journal, metadata, whole blocks), swap, and what still is in memory or was deleted before.

mod account;
mod next;
#[cfg(test)]
mod sim_tests;
pub mod text;

use serde::Serialize;

use rubus_stats::estimate::Estimate;
use rubus_vocabulary::rule_finding::RuleFinding;

use crate::wear::{Wear, YearsLeft};

pub use account::{Account, NoWriters};

/// The name of the unit that the kernel's threads are shown as.
pub const KERNEL: &str = "kernel";

/// Who wrote how much between two moments.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// The machine, for people: board and kernel.
    pub machine: String,
    /// The first moment, RFC 3339, UTC.
    pub from: String,
    /// The last moment, RFC 3339, UTC.
    pub to: String,
    /// Time between them in which the machine was awake.
    pub seconds: f64,
    /// Time between them in which it slept.
    pub slept_seconds: f64,
    /// Disks that wrote something, the one that wrote most first. Devices that pass on to others (loop, device mapper, md)
    /// and memory (zram) are left out.
    pub disks: Vec<DiskWritten>,
    /// How many disks the kernel lists, also those that wrote nothing; with none, what reached a disk is not known.
    pub disks_seen: usize,
    /// Bytes that these disks wrote.
    pub disks_written_bytes: u64,
    /// Bytes that programs had written, without what was deleted before and without the kernel's threads.
    pub programs_written_bytes: u64,
    /// Bytes that went from memory to swap on disks; null where the kernel does not count it.
    pub swap_written_bytes: Option<u64>,
    /// By how much more waited in memory to be written at the end than at the beginning; negative: less.
    pub waiting_bytes: i64,
    /// What the disks wrote beyond what programs and swap gave them: journal, metadata, copies. Negative: less reached the
    /// disks, because of compression, of files that are not on these disks, or of what was overwritten in memory.
    pub added_bytes: i64,
    /// Bytes that all disks write in a day at this rate, with a 95 % interval from the whole hours; absent below 24 of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_day: Option<Estimate>,
    /// How worn the disks were at the beginning, as they say themselves, and how long they last.
    pub wear: Vec<DiskWear>,
    /// What follows from that at once: disks that fail or are worn out; dangers first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<RuleFinding>,
    /// By unit, the one that wrote most first. The kernel's threads are the unit "kernel"; "" is outside all units.
    pub units: Vec<UnitWritten>,
    /// Most processes at one time that only root may look at.
    pub hidden: u32,
    /// By hour of the clock, UTC, the first and last mostly not whole.
    pub hours: Vec<HourWritten>,
}

/// How worn a disk is, and how long it lasts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskWear {
    /// What it says itself.
    #[serde(flatten)]
    pub wear: Wear,
    /// Bytes that it writes in a day at this rate, with a 95 % interval from the whole hours; absent below 24 of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_day: Option<Estimate>,
    /// How long it lasts at this rate; absent without one, and where the disk says too little.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub years_left: Option<YearsLeft>,
}

/// What a disk wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskWritten {
    /// Kernel name: "mmcblk0".
    pub name: String,
    /// What it is, for people; absent for one that came later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// Bytes written.
    pub written_bytes: u64,
    /// Writes that came to their end.
    pub writes: u64,
    /// Flushes of its cache.
    pub flushes: u64,
}

/// What a unit's programs had written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnitWritten {
    /// As systemd names it: "cron.service"; "kernel", or "" outside all units.
    pub unit: String,
    /// Bytes that its programs had written.
    pub written_bytes: u64,
    /// Bytes that they deleted before they were written.
    pub cancelled_bytes: u64,
    /// Its programs, the one that wrote most first.
    pub programs: Vec<ProgramWritten>,
    /// The disks that it wrote to, the one that it wrote most to first; absent where the kernel did not count it. The sum may
    /// differ from `written_bytes`, since it is counted when it reaches a disk.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<UnitDiskWritten>,
}

/// What a unit wrote to a disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnitDiskWritten {
    /// Kernel name: "mmcblk0".
    pub disk: String,
    /// Bytes that reached it.
    pub written_bytes: u64,
}

/// What the processes of one name had written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgramWritten {
    /// Its name, as far as the kernel keeps it (15 bytes).
    pub program: String,
    /// Bytes that they had written.
    pub written_bytes: u64,
    /// Bytes that they deleted before they were written.
    pub cancelled_bytes: u64,
    /// Directories in which they had files open for writing, the likeliest first: what a program opened itself counts
    /// before what it was given, and more the more was written meanwhile.
    pub places: Vec<String>,
}

/// What was written within an hour of the clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HourWritten {
    /// Its beginning, RFC 3339, UTC.
    pub from: String,
    /// Time of it that was watched and in which the machine was awake.
    pub seconds: f64,
    /// Bytes that the disks wrote.
    pub disks_written_bytes: u64,
    /// The unit whose programs had most written; absent if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most: Option<MostWritten>,
}

/// Who had most written within an hour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MostWritten {
    /// The unit; "" outside all units.
    pub unit: String,
    /// Bytes that its programs had written.
    pub written_bytes: u64,
}
