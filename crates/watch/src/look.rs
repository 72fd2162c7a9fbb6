//! What happened between two samples: rates, queues, waits, shares.

use serde::{Deserialize, Serialize};

use super::counters::advance;
use super::diskstats::{DiskCounters, SECTOR_BYTES};
use super::memory::{Memory, Stall};
use super::net_dev::LinkCounters;
use super::pipes::{Pipe, PipeUse};
use super::programs::Programs;
use super::rates::{DiskLook, DiskRates, LinkRates};
use super::sample::{Heat, Nbd, Sample, Zswap};
use rubus_machine::parse::stat;
use rubus_vocabulary::machine::Throttling;
use rubus_vocabulary::result::CpuShares;

/// Below this the two clocks differ because they are not read in the same instant.
const MIN_SLEEP_S: f64 = 0.1;

/// A machine between two moments. What cannot be said is absent, never zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Look {
    /// The date of the second moment, RFC 3339, UTC.
    pub at: String,
    /// Time between them in which the machine was awake; all rates are over it.
    pub seconds: f64,
    /// Time between them in which the machine slept.
    pub slept_seconds: f64,
    /// Time since the machine was started, sleep included.
    pub up_seconds: f64,
    /// Where the processors' time went.
    pub cpu: Option<CpuShares>,
    /// Disks, in the kernel's order.
    pub disks: Vec<DiskLook>,
    /// Disks that were there at the first moment and are no longer.
    pub vanished: Vec<String>,
    /// Network links.
    pub links: Vec<LinkRates>,
    /// Memory at the second moment.
    pub memory: Option<Memory>,
    /// Swap traffic.
    pub swap: Option<SwapRates>,
    /// Shares of the time in which tasks stood still.
    pub pressure: PressureShares,
    /// What zswap holds.
    pub zswap: Option<ZswapLook>,
    /// zram devices at the second moment.
    pub zrams: Vec<super::memory::Zram>,
    /// Heat, clock and supply at the second moment.
    pub heat: Heat,
    /// The throttling bits in words.
    pub throttling: Option<Throttling>,
    /// How much of what they can carry the pipes carried.
    pub pipes: Vec<PipeUse>,
    /// Which programs made the disks work, as of the last walk over all processes.
    pub programs: Option<Programs>,
    /// Network disks.
    pub nbd: Option<Nbd>,
}

/// Swap traffic, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SwapRates {
    /// Pages read from swap devices, zram among them.
    pub pages_in_per_second: f64,
    /// Pages written to swap devices.
    pub pages_out_per_second: f64,
    /// Pages that zswap gave back.
    pub zswap_in_per_second: Option<f64>,
    /// Pages that zswap took.
    pub zswap_out_per_second: Option<f64>,
    /// Pages that went from zswap to the disk.
    pub zswap_written_back_per_second: Option<f64>,
    /// Times per second that a program had to wait for a page from a disk.
    pub major_faults_per_second: f64,
    /// Programs that were killed for lack of memory between the two moments.
    pub oom_kills: Option<u64>,
}

/// Shares of the time in which at least one task (some), or all that had something to do (full), stood still for want of
/// a resource; 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PressureShares {
    /// For the processor.
    pub cpu_some: Option<f64>,
    /// For memory.
    pub memory_some: Option<f64>,
    /// For memory, all.
    pub memory_full: Option<f64>,
    /// For I/O.
    pub io_some: Option<f64>,
    /// For I/O, all.
    pub io_full: Option<f64>,
}

/// What zswap holds, and what only root is told.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ZswapLook {
    /// Memory that the pool takes.
    pub pool_bytes: u64,
    /// Bytes of the pages in it, when expanded.
    pub stored_bytes: u64,
    /// Its own counters since the start.
    pub counters: Option<Zswap>,
}

impl Look {
    /// What two samples of one machine say; `page_bytes` is the size of its pages. If the second is not later, there are no
    /// rates.
    pub fn between(before: &Sample, now: &Sample, pipes: &[Pipe], page_bytes: u64) -> Look {
        let ns = |later: u64, earlier: u64| later.saturating_sub(earlier) as f64 / 1e9;
        let seconds = ns(now.monotonic_ns, before.monotonic_ns);
        let with_sleep = ns(now.since_boot_ns, before.since_boot_ns);
        let slept = Some(with_sleep - seconds).filter(|slept| *slept > MIN_SLEEP_S);
        let time = Time { seconds };
        let disks: Vec<DiskLook> = now
            .disks
            .iter()
            .map(|disk| time.disk(before.disks.iter().find(|b| b.name == disk.name), disk))
            .collect();
        let links: Vec<LinkRates> = now
            .links
            .iter()
            .filter_map(|link| time.link(before.links.iter().find(|b| b.name == link.name)?, link))
            .collect();
        let is_gone = |name: &str| !now.disks.iter().any(|disk| disk.name == name);
        Look {
            at: now.at.clone(),
            seconds,
            slept_seconds: slept.unwrap_or(0.0),
            up_seconds: now.since_boot_ns as f64 / 1e9,
            cpu: processors(before, now),
            vanished: before
                .disks
                .iter()
                .filter(|disk| is_gone(&disk.name))
                .map(|disk| disk.name.clone())
                .collect(),
            pipes: pipes.iter().filter_map(|pipe| pipe.used(&disks, &links)).collect(),
            disks,
            links,
            memory: now.memory,
            swap: time.swap(before, now),
            pressure: time.pressure(before, now),
            zswap: zswap(now, page_bytes),
            zrams: now.zrams.clone(),
            heat: now.heat.clone(),
            throttling: now.heat.throttled.map(Throttling::decode),
            programs: now.programs.clone(),
            nbd: now.nbd.clone(),
        }
    }
}

fn processors(before: &Sample, now: &Sample) -> Option<CpuShares> {
    let (first, last) = (before.cpus.first()?, now.cpus.first()?);
    if last.since(first).total() == 0 {
        return None;
    }
    let mut shares = stat::shares(&before.cpus, &now.cpus);
    // A core that came or went shifts all behind it.
    if before.cpus.len() != now.cpus.len() {
        shares.per_core_busy.clear();
    }
    Some(shares)
}

fn zswap(now: &Sample, page_bytes: u64) -> Option<ZswapLook> {
    let memory = now.memory.unwrap_or_default();
    let told = memory.zswap_bytes.zip(memory.zswapped_bytes);
    let counted = || {
        let counters = now.zswap?;
        let stored = counters.stored_pages.saturating_mul(page_bytes);
        Some((counters.pool_bytes, stored))
    };
    let (pool_bytes, stored_bytes) = told.or_else(counted)?;
    Some(ZswapLook { pool_bytes, stored_bytes, counters: now.zswap })
}

/// The time between the two moments.
struct Time {
    seconds: f64,
}

impl Time {
    fn rate(&self, before: u64, now: u64) -> Option<f64> {
        let steps = advance(before, now)?;
        (self.seconds > 0.0).then(|| steps as f64 / self.seconds)
    }

    fn disk(&self, before: Option<&DiskCounters>, now: &DiskCounters) -> DiskLook {
        DiskLook {
            name: now.name.clone(),
            in_flight: now.in_flight,
            rates: before.and_then(|before| self.disk_rates(before, now)),
        }
    }

    fn disk_rates(&self, before: &DiskCounters, now: &DiskCounters) -> Option<DiskRates> {
        let rate = |field: fn(&DiskCounters) -> u64| self.rate(field(before), field(now));
        // Counted in milliseconds, so a thousandth of it is a share of the time.
        let share = |field: fn(&DiskCounters) -> u64| Some(rate(field)? / 1000.0);
        let reads = rate(|disk| disk.reads)?;
        let writes = rate(|disk| disk.writes)?;
        let flushes = rate(|disk| disk.flushes)?;
        let each = |ms_per_second: f64, per_second: f64| {
            (per_second > 0.0).then(|| ms_per_second / per_second)
        };
        Some(DiskRates {
            read_bytes_per_second: rate(|disk| disk.read_sectors)? * SECTOR_BYTES as f64,
            written_bytes_per_second: rate(|disk| disk.written_sectors)? * SECTOR_BYTES as f64,
            reads_per_second: reads,
            writes_per_second: writes,
            discards_per_second: rate(|disk| disk.discards)?,
            flushes_per_second: flushes,
            queue: share(|disk| disk.in_flight_ms)?,
            read_ms: each(rate(|disk| disk.read_ms)?, reads),
            write_ms: each(rate(|disk| disk.write_ms)?, writes),
            flush_ms: each(rate(|disk| disk.flush_ms)?, flushes),
            // The kernel counts in ticks of its own, so that a little more than all of the time can come out.
            busy: share(|disk| disk.busy_ms)?.min(1.0),
        })
    }

    fn link(&self, before: &LinkCounters, now: &LinkCounters) -> Option<LinkRates> {
        Some(LinkRates {
            name: now.name.clone(),
            received_bytes_per_second: self.rate(before.received_bytes, now.received_bytes)?,
            sent_bytes_per_second: self.rate(before.sent_bytes, now.sent_bytes)?,
        })
    }

    fn swap(&self, before: &Sample, now: &Sample) -> Option<SwapRates> {
        let (before, now) = (before.events?, now.events?);
        let both = |before: Option<u64>, now: Option<u64>| {
            before.zip(now).and_then(|(b, n)| self.rate(b, n))
        };
        Some(SwapRates {
            pages_in_per_second: self.rate(before.swapped_in, now.swapped_in)?,
            pages_out_per_second: self.rate(before.swapped_out, now.swapped_out)?,
            zswap_in_per_second: both(before.zswap_in, now.zswap_in),
            zswap_out_per_second: both(before.zswap_out, now.zswap_out),
            zswap_written_back_per_second: both(before.zswap_written_back, now.zswap_written_back),
            major_faults_per_second: self.rate(before.major_faults, now.major_faults)?,
            oom_kills: before
                .oom_kills
                .zip(now.oom_kills)
                .and_then(|(before, now)| advance(before, now)),
        })
    }

    fn pressure(&self, before: &Sample, now: &Sample) -> PressureShares {
        let (before, now) = (before.pressure, now.pressure);
        // The kernel brings its sums up to date every two seconds or when it is asked; a look may get some of the time
        // before it.
        let share = |before: u64, now: u64| Some((self.rate(before, now)? / 1e6).min(1.0));
        let some = |before: Option<Stall>, now: Option<Stall>| share(before?.some_us, now?.some_us);
        let full =
            |before: Option<Stall>, now: Option<Stall>| share(before?.full_us?, now?.full_us?);
        PressureShares {
            cpu_some: some(before.cpu, now.cpu),
            memory_some: some(before.memory, now.memory),
            memory_full: full(before.memory, now.memory),
            io_some: some(before.io, now.io),
            io_full: full(before.io, now.io),
        }
    }
}
