//! `/proc/PID/io`: which programs make the disks work.

use serde::{Deserialize, Serialize};

use super::counters::advance;
use super::numbers::{lines, number};

/// Counters of one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramCounters {
    /// Process number.
    pub pid: u32,
    /// Bytes that it had a device read.
    pub read_bytes: u64,
    /// Bytes that it had written to a device, or will have: counted when a page becomes dirty.
    pub written_bytes: u64,
}

/// Reads `/proc/PID/io` (proc_pid_io(5)).
pub fn parse_process_io(pid: u32, text: &[u8]) -> Option<ProgramCounters> {
    let value = |name: &[u8]| {
        let line = lines(text).find_map(|line| line.strip_prefix(name));
        number(line?)
    };
    Some(ProgramCounters {
        pid,
        read_bytes: value(b"read_bytes:")?,
        written_bytes: value(b"write_bytes:")?,
    })
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
}

/// The processes that moved most between two walks: process number, bytes read, bytes written. Both must be in the order
/// of process numbers. A process that is new, or whose number was given again, counts from its start.
pub fn busiest(
    before: &[ProgramCounters],
    now: &[ProgramCounters],
    most: usize,
) -> Vec<(u32, u64, u64)> {
    let mut moved: Vec<(u32, u64, u64)> = now
        .iter()
        .filter_map(|program| {
            let found = before.binary_search_by_key(&program.pid, |earlier| earlier.pid);
            let earlier = found.ok().map(|at| before[at]);
            let earlier = earlier.filter(|earlier| {
                earlier.read_bytes <= program.read_bytes
                    && earlier.written_bytes <= program.written_bytes
            });
            let earlier = earlier.unwrap_or_default();
            let read = advance(earlier.read_bytes, program.read_bytes)?;
            let written = advance(earlier.written_bytes, program.written_bytes)?;
            (read > 0 || written > 0).then_some((program.pid, read, written))
        })
        .collect();
    moved.sort_by_key(|&(pid, read, written)| {
        (std::cmp::Reverse(read.saturating_add(written)), pid)
    });
    moved.truncate(most);
    moved
}
