//! A machine's counters at one moment.

use serde::{Deserialize, Serialize};

use super::diskstats::DiskCounters;
use super::memory::{Events, Memory, Pressure, Zram};
use super::net_dev::LinkCounters;
use super::programs::Programs;
use rubus_machine::parse::stat::CpuTimes;

pub use rubus_vocabulary::heat::{Clock, Heat, Zone};

/// Everything that is read once in every interval. What could not be read is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sample {
    /// The date, RFC 3339, UTC.
    pub at: String,
    /// The clock that only runs forward and stands while the machine sleeps, in nanoseconds.
    pub monotonic_ns: u64,
    /// The clock that runs while the machine sleeps, too, from its start on.
    pub since_boot_ns: u64,
    /// Processor times: all cores together, then each that is online.
    #[serde(default)]
    pub cpus: Vec<CpuTimes>,
    /// Whole disks and everything else that is a block device and no partition, as far as it was ever used.
    #[serde(default)]
    pub disks: Vec<DiskCounters>,
    /// Network links.
    #[serde(default)]
    pub links: Vec<LinkCounters>,
    /// What the memory is used for; absent where /proc/meminfo cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// What the memory management did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Events>,
    /// Time that tasks waited for processor, memory and disks, where the kernel counts it.
    #[serde(default)]
    pub pressure: Pressure,
    /// zswap's own counters; only root sees them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zswap: Option<Zswap>,
    /// zram devices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zrams: Vec<Zram>,
    /// Heat, clock, supply.
    #[serde(default)]
    pub heat: Heat,
    /// Which programs make the disks work, in those samples in which all processes were walked over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub programs: Option<Programs>,
    /// Network disks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbd: Option<Nbd>,
}

/// zswap's counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Zswap {
    /// Memory that the pool takes.
    pub pool_bytes: u64,
    /// Pages that are in the pool now.
    pub stored_pages: u64,
    /// Pages that were refused, for whatever reason.
    pub refused_pages: u64,
    /// Pages that went from the pool to the disk.
    pub written_back_pages: u64,
    /// Times that the pool was full.
    pub pool_full: u64,
}

/// Network disks, of both sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Nbd {
    /// Exports of others that are devices here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attached: Vec<Attached>,
    /// The server that was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<NbdServer>,
}

/// An export of another machine that is a device here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Attached {
    /// Kernel name: "nbd0".
    pub device: String,
    /// Address of the export.
    pub address: String,
    /// Connections that work.
    pub alive: usize,
    /// Connections that there are to be.
    pub connections: usize,
    /// How often a connection was replaced.
    pub replaced: u32,
    /// What stands in the way, while something does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// A server of network disks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NbdServer {
    /// Where it tells its status.
    pub place: String,
    /// Why there is nothing of it, when there is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Cores that it keeps busy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_share: Option<f64>,
    /// Who is connected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<NbdClient>,
}

/// A client of a server of network disks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NbdClient {
    /// Who it is, as far as the server knows.
    pub caller: String,
    /// What it has.
    pub export: String,
    /// Bytes per second that it reads.
    pub read_bytes_per_second: f64,
    /// Bytes per second that it writes.
    pub written_bytes_per_second: f64,
    /// Its requests per second, of all kinds.
    pub requests_per_second: f64,
    /// Half of its requests took no longer, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_us: Option<u64>,
    /// 99 % of its requests took no longer, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_us: Option<u64>,
}
