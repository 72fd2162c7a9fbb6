//! `/proc/meminfo`, `/proc/vmstat`, `/proc/pressure/*` and `mm_stat` of zram.

use rubus_machine::parse::meminfo;
use serde::{Deserialize, Serialize};

use super::numbers::{lines, number, words};

/// Memory at one moment (proc_meminfo(5)); what this kernel does not tell is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Memory {
    /// What the kernel manages.
    pub total_bytes: u64,
    /// What programs can have without swapping (3.14).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_bytes: Option<u64>,
    /// Used for nothing.
    pub free_bytes: u64,
    /// Page cache and buffers.
    pub cached_bytes: u64,
    /// Written by programs, not yet on a device.
    pub dirty_bytes: u64,
    /// On the way to a device now.
    pub writeback_bytes: u64,
    /// Size of all swap areas.
    pub swap_bytes: u64,
    /// Not used of these.
    pub swap_free_bytes: u64,
    /// Memory that zswap's pool takes (5.19).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zswap_bytes: Option<u64>,
    /// Bytes of the pages in zswap's pool, when expanded (5.19).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zswapped_bytes: Option<u64>,
}

/// Reads `/proc/meminfo`; none if it does not even say how much there is.
pub fn parse_meminfo(text: &[u8]) -> Option<Memory> {
    let mut memory = Memory::default();
    for (name, bytes) in meminfo::sizes(text) {
        match name {
            "MemTotal" => memory.total_bytes = bytes,
            "MemFree" => memory.free_bytes = bytes,
            "MemAvailable" => memory.available_bytes = Some(bytes),
            "Buffers" | "Cached" => {
                memory.cached_bytes = memory.cached_bytes.saturating_add(bytes);
            }
            "Dirty" => memory.dirty_bytes = bytes,
            "Writeback" => memory.writeback_bytes = bytes,
            "SwapTotal" => memory.swap_bytes = bytes,
            "SwapFree" => memory.swap_free_bytes = bytes,
            "Zswap" => memory.zswap_bytes = Some(bytes),
            "Zswapped" => memory.zswapped_bytes = Some(bytes),
            _ => {}
        }
    }
    (memory.total_bytes > 0).then_some(memory)
}

/// What the memory management did since the start, in pages or times; what this kernel does not count is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Events {
    /// Pages read from swap devices, zram among them.
    pub swapped_in: u64,
    /// Pages written to swap devices.
    pub swapped_out: u64,
    /// Times that a program had to wait for a page from a disk.
    pub major_faults: u64,
    /// Pages that zswap gave back (5.19).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zswap_in: Option<u64>,
    /// Pages that zswap took (5.19).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zswap_out: Option<u64>,
    /// Pages that went from zswap to the disk (6.8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zswap_written_back: Option<u64>,
    /// Programs that were killed for lack of memory (4.13).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oom_kills: Option<u64>,
}

/// Reads `/proc/vmstat`; none if it does not know of swap and faults.
pub fn parse_vmstat(text: &[u8]) -> Option<Events> {
    let mut events = Events::default();
    let mut found = 0;
    for line in lines(text) {
        // Most lines are of no interest here; all that are begin with one of three letters.
        if !matches!(line.first(), Some(b'p' | b'z' | b'o')) {
            continue;
        }
        let mut words = words(line);
        let (Some(name), Some(value)) = (words.next(), words.next().and_then(number)) else {
            continue;
        };
        let known = match name {
            b"pswpin" => &mut events.swapped_in,
            b"pswpout" => &mut events.swapped_out,
            b"pgmajfault" => &mut events.major_faults,
            b"zswpin" => events.zswap_in.insert(0),
            b"zswpout" => events.zswap_out.insert(0),
            b"zswpwb" => events.zswap_written_back.insert(0),
            b"oom_kill" => events.oom_kills.insert(0),
            _ => continue,
        };
        *known = value;
        found += 1;
    }
    (found > 0).then_some(events)
}

/// For how long tasks stood still for want of a resource since the start, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stall {
    /// At least one task did.
    pub some_us: u64,
    /// All that had something to do did; the kernel does not say it of the processor before 5.13.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_us: Option<u64>,
}

/// Pressure stall information; absent where the kernel does not have it, or has it switched off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pressure {
    /// For the processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Stall>,
    /// For memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Stall>,
    /// For I/O.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io: Option<Stall>,
}

/// Reads one file of `/proc/pressure` (Documentation/accounting/psi.rst).
pub fn parse_pressure(text: &[u8]) -> Option<Stall> {
    let total = |kind: &[u8]| {
        let line = lines(text).find(|line| line.starts_with(kind))?;
        words(line).find_map(|word| number(word.strip_prefix(b"total=")?))
    };
    Some(Stall { some_us: total(b"some ")?, full_us: total(b"full ") })
}

/// What a zram device holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Zram {
    /// "zram0".
    pub name: String,
    /// Bytes of the pages in it, when expanded.
    pub stored_bytes: u64,
    /// The same compressed.
    pub compressed_bytes: u64,
    /// Memory that all of it takes.
    pub memory_bytes: u64,
}

/// Reads `/sys/block/zramN/mm_stat` (Documentation/admin-guide/blockdev/zram.rst); the name is left empty.
pub fn parse_mm_stat(text: &[u8]) -> Option<Zram> {
    let mut numbers = words(text).map(number);
    let mut next = || numbers.next().flatten();
    Some(Zram {
        name: String::new(),
        stored_bytes: next()?,
        compressed_bytes: next()?,
        memory_bytes: next()?,
    })
}
