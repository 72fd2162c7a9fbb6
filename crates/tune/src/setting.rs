//! A setting that is tried, and the works that can see it.

use serde::Serialize;

use crate::live::Knob;

/// What is measured, as people do it. Each is a job of the trial's suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Large files read in order, through the page cache.
    LargeRead,
    /// 4 KiB at random places, one at a time, past the page cache.
    SmallRead,
    /// 4 KiB at random places, 32 in flight.
    DeepRead,
    /// 4 KiB read and written at random places, 16 in flight; the reads count.
    MixedRead,
    /// 4 KiB written and flushed, one at a time.
    Commit,
}

impl Work {
    /// All of them, in the order of the suite.
    pub const ALL: [Work; 5] =
        [Work::LargeRead, Work::SmallRead, Work::DeepRead, Work::MixedRead, Work::Commit];

    /// Short name for tables.
    pub fn title(self) -> &'static str {
        match self {
            Work::LargeRead => "large files read",
            Work::SmallRead => "small reads",
            Work::DeepRead => "many small reads",
            Work::MixedRead => "reads among writes",
            Work::Commit => "commits",
        }
    }

    /// As what a setting makes faster or slower.
    pub fn object(self) -> &'static str {
        match self {
            Work::LargeRead => "reading large files",
            Work::SmallRead => "small reads one at a time",
            Work::DeepRead => "many small reads at once",
            Work::MixedRead => "reads among writes",
            Work::Commit => "commits",
        }
    }

    /// Whether it writes to the disk.
    pub fn writes(self) -> bool {
        match self {
            Work::LargeRead | Work::SmallRead | Work::DeepRead => false,
            Work::MixedRead | Work::Commit => true,
        }
    }
}

/// What a setting may cost besides speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Risk {
    /// Nothing that is known.
    None,
    /// Other requests may wait longer.
    Latency,
    /// More heat and power.
    Heat,
}

/// Which setting it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Setting {
    /// Read-ahead of the disk, in KiB.
    ReadAhead,
    /// I/O scheduler of the disk.
    Scheduler,
    /// Requests that the kernel queues for the disk.
    Requests,
    /// Governor of the processor's clock.
    Governor,
}

impl Setting {
    /// Its name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Setting::ReadAhead => "read-ahead",
            Setting::Scheduler => "scheduler",
            Setting::Requests => "queued requests",
            Setting::Governor => "governor",
        }
    }

    /// A value of it, in words, at the start of a sentence.
    pub fn with_value(self, value: &str) -> String {
        match self {
            Setting::ReadAhead => format!("Read-ahead of {value} KiB"),
            Setting::Scheduler => format!("Scheduler {value}"),
            Setting::Requests => format!("A queue of {value} requests"),
            Setting::Governor => format!("Governor {value}"),
        }
    }

    /// Its unit, for tables.
    pub fn unit(self) -> &'static str {
        match self {
            Setting::ReadAhead => " KiB",
            Setting::Scheduler | Setting::Requests | Setting::Governor => "",
        }
    }
}

/// A value of a setting that is worth trying.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Which setting.
    pub setting: Setting,
    /// Present value.
    pub from: String,
    /// Value to try.
    pub to: String,
    /// Files of the kernel that hold it.
    pub knobs: Vec<Knob>,
    /// Works that can see it.
    pub works: Vec<Work>,
    /// What it does, in a clause.
    pub does: &'static str,
    /// Where that is written.
    pub source: &'static str,
    /// What it may cost besides speed.
    pub risk: Risk,
    /// Files of this machine that set it already.
    pub set_by: Vec<String>,
}

/// A setting that is not tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotTried {
    /// Which.
    pub setting: String,
    /// Why not, and what to do instead.
    pub why: String,
}
