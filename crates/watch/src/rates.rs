//! What a disk and a link did between two moments.

use serde::{Deserialize, Serialize};

/// A disk between two moments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskLook {
    /// Kernel name.
    pub name: String,
    /// Requests that it has now.
    pub in_flight: u64,
    /// What it did; absent for a disk that was not there before, or was taken out and put in again.
    pub rates: Option<DiskRates>,
}

/// What a disk did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskRates {
    /// Bytes that were read per second.
    pub read_bytes_per_second: f64,
    /// Bytes that were written per second.
    pub written_bytes_per_second: f64,
    /// Reads per second that came to their end.
    pub reads_per_second: f64,
    /// Writes per second that came to their end.
    pub writes_per_second: f64,
    /// Discards (trims) per second that came to their end.
    pub discards_per_second: f64,
    /// Flushes per second of the device's cache.
    pub flushes_per_second: f64,
    /// Requests in flight, on average over the time.
    pub queue: f64,
    /// Time that a read took on average, in milliseconds; absent without reads.
    pub read_ms: Option<f64>,
    /// Time that a write took on average, in milliseconds; absent without writes.
    pub write_ms: Option<f64>,
    /// Time that a flush took on average, in milliseconds; absent without flushes.
    pub flush_ms: Option<f64>,
    /// Share of the time in which it had at least one request, 0 to 1. A disk that takes several at once can do more when
    /// this is 1.
    pub busy: f64,
}

/// A network link between two moments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkRates {
    /// "eth0".
    pub name: String,
    /// Bytes that came per second.
    pub received_bytes_per_second: f64,
    /// Bytes that went per second.
    pub sent_bytes_per_second: f64,
}
