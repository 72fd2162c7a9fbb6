//! `/proc/PID/io`: which programs make the disks work.

use serde::{Deserialize, Serialize};

use super::groups::UnitDisk;
use super::numbers::{lines, number};

/// Bytes that a program moved, or had moved since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes that a device read for it.
    pub read_bytes: u64,
    /// Bytes that a device wrote for it, or will: counted in whole pages when they become dirty, and at once where they go
    /// past the page cache.
    pub written_bytes: u64,
    /// Of `written_bytes`, its own or another program's: bytes that it deleted before they were written.
    pub cancelled_bytes: u64,
}

impl Traffic {
    /// What was added since `earlier`; none if any of the counters was set back.
    pub fn since(self, earlier: Traffic) -> Option<Traffic> {
        Some(Traffic {
            read_bytes: self.read_bytes.checked_sub(earlier.read_bytes)?,
            written_bytes: self.written_bytes.checked_sub(earlier.written_bytes)?,
            cancelled_bytes: self.cancelled_bytes.checked_sub(earlier.cancelled_bytes)?,
        })
    }

    /// The sum of both.
    #[must_use]
    pub fn and(self, other: Traffic) -> Traffic {
        Traffic {
            read_bytes: self.read_bytes.saturating_add(other.read_bytes),
            written_bytes: self.written_bytes.saturating_add(other.written_bytes),
            cancelled_bytes: self.cancelled_bytes.saturating_add(other.cancelled_bytes),
        }
    }

    /// Whether it is nothing at all.
    pub fn is_nothing(self) -> bool {
        self == Traffic::default()
    }
}

/// Counters of one process since its start, those of the children included that it waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramCounters {
    /// Process id.
    pub pid: u32,
    /// What the kernel counted.
    pub traffic: Traffic,
}

/// Reads `/proc/PID/io` (proc_pid_io(5)).
pub fn parse_process_io(pid: u32, text: &[u8]) -> Option<ProgramCounters> {
    let value = |name: &[u8]| {
        let line = lines(text).find_map(|line| line.strip_prefix(name));
        number(line?)
    };
    let traffic = Traffic {
        read_bytes: value(b"read_bytes:")?,
        written_bytes: value(b"write_bytes:")?,
        cancelled_bytes: value(b"cancelled_write_bytes:")?,
    };
    Some(ProgramCounters { pid, traffic })
}

/// The parent's process number in `/proc/PID/stat` (proc_pid_stat(5)), whose second field, the name in brackets, may have
/// blanks and brackets of its own.
pub fn parse_parent(text: &[u8]) -> Option<u32> {
    let end = text.iter().rposition(|&byte| byte == b')')?;
    let parent = super::numbers::words(&text[end + 1..]).nth(1)?;
    u32::try_from(number(parent)?).ok()
}

/// One program's share of the disks' work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgramIo {
    /// Process number.
    pub pid: u32,
    /// Its name, as far as the kernel keeps it (15 bytes).
    pub name: String,
    /// Bytes per second that it had a device read.
    pub read_bytes_per_second: f64,
    /// Bytes per second that it had written, or made ready to be.
    pub written_bytes_per_second: f64,
}

/// What the processes of one name in one unit had written between two walks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Written {
    /// The program's name, as far as the kernel keeps it (15 bytes; more for its own threads).
    pub program: String,
    /// Its unit, as systemd names it ("cron.service"), "kernel" for the kernel's threads, or "" outside all units.
    pub unit: String,
    /// Bytes that it had written, or made ready to be.
    pub written_bytes: u64,
    /// Bytes that it deleted before they were written, its own or another program's.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cancelled_bytes: u64,
    /// Directories in which it had files open for writing at the end of that time, the likeliest first (what a program
    /// opened itself before what it was given); only of those that wrote most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<String>,
}

fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

/// What a walk over all processes found, compared with the walk before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Programs {
    /// Seconds between the two walks.
    pub seconds: f64,
    /// Processes that could be looked at.
    pub seen: u32,
    /// Processes that only root may look at.
    pub hidden: u32,
    /// Those that moved most, the busiest first.
    pub busiest: Vec<ProgramIo>,
    /// All that wrote, in no order; only in a recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writers: Option<Vec<Written>>,
    /// Which disks units wrote to, in no order; only in a recording, and only where systemd lets the kernel count it
    /// (`IOAccounting=`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit_disks: Option<Vec<UnitDisk>>,
}
