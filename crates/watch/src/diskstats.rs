//! `/proc/diskstats`: what every block device did since the start.

use serde::{Deserialize, Serialize};

use super::numbers::{lines, number, words};

/// Bytes of a sector in the kernel's counters, whatever the device's own are.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// Counters of one block device, as the kernel keeps them (Documentation/admin-guide/iostats.rst).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskCounters {
    /// Kernel name: "mmcblk0".
    pub name: String,
    /// Reads that came to their end.
    #[serde(default)]
    pub reads: u64,
    /// Read, in sectors of 512 bytes, whatever the device's own are.
    #[serde(default)]
    pub read_sectors: u64,
    /// Time that reads took, all added up, in milliseconds; 32 bits.
    #[serde(default)]
    pub read_ms: u64,
    /// Writes that came to their end.
    #[serde(default)]
    pub writes: u64,
    /// Written, in sectors of 512 bytes.
    #[serde(default)]
    pub written_sectors: u64,
    /// Time that writes took, all added up, in milliseconds; 32 bits.
    #[serde(default)]
    pub write_ms: u64,
    /// Requests that the device has now.
    #[serde(default)]
    pub in_flight: u64,
    /// Time in which it had at least one request, in milliseconds; 32 bits.
    #[serde(default)]
    pub busy_ms: u64,
    /// Time that all requests were in flight, added up, in milliseconds; 32 bits.
    #[serde(default)]
    pub in_flight_ms: u64,
    /// Discards that came to their end (4.18).
    #[serde(default)]
    pub discards: u64,
    /// Discarded, in sectors of 512 bytes (4.18).
    #[serde(default)]
    pub discarded_sectors: u64,
    /// Flushes of the device's cache that came to their end (5.5).
    #[serde(default)]
    pub flushes: u64,
    /// Time that flushes took, all added up, in milliseconds; 32 bits (5.5).
    #[serde(default)]
    pub flush_ms: u64,
}

impl DiskCounters {
    /// Whether it ever did anything, or does now.
    pub fn is_used(&self) -> bool {
        self.reads > 0 || self.writes > 0 || self.in_flight > 0
    }
}

/// No device has this many requests in flight.
const MAX_IN_FLIGHT: u64 = i32::MAX as u64;

/// A number; 0 for one below.
fn counted(word: &[u8]) -> Option<u64> {
    match word.strip_prefix(b"-") {
        Some(digits) => number(digits).map(|_| 0),
        None => number(word),
    }
}

/// The devices in the kernel's order: the name as it stands there, and a way to the counters. A line that is not one of
/// at least 14 fields with numbers is left out: the last one may be cut off.
pub fn parse_diskstats(text: &[u8]) -> impl Iterator<Item = (&str, DiskCounters)> {
    lines(text).filter_map(|line| {
        let mut words = words(line).skip(2);
        let name = std::str::from_utf8(words.next()?).ok()?;
        let mut fields = [0_u64; 17];
        let mut count = 0;
        for (field, word) in fields.iter_mut().zip(words) {
            *field = counted(word)?;
            count += 1;
        }
        let counters = DiskCounters {
            name: String::new(),
            reads: fields[0],
            read_sectors: fields[2],
            read_ms: fields[3],
            writes: fields[4],
            written_sectors: fields[6],
            write_ms: fields[7],
            // Some kernels count it once too often down: -1, which may stand there without its sign.
            in_flight: if fields[8] > MAX_IN_FLIGHT { 0 } else { fields[8] },
            busy_ms: fields[9],
            in_flight_ms: fields[10],
            discards: fields[11],
            discarded_sectors: fields[13],
            flushes: fields[15],
            flush_ms: fields[16],
        };
        (count >= 11).then_some((name, counters))
    })
}
