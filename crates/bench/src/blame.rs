//! What the watcher's samples say about a job: shares of the processors, doubts, and who is to
//! blame for a stall. Pure functions of what was seen.

use rubus_core::doubt::Doubt;
use rubus_core::result::{CpuShares, Stall, StallCause};
use rubus_core::spec::Direction;
use rubus_core::stats::Histogram;
use rubus_core::stats::stalls::{self, Episode};

use crate::lane::SlowSpan;
use crate::watch::Sample;

/// Shares of waiting or stolen time from which they are worth a doubt.
const STARVED: f64 = 0.05;
/// Busy share of a core from which the processor may be the limit.
const CPU_BOUND: f64 = 0.90;
/// Share of others in the traffic, and bytes, from which they are worth a doubt.
const OTHERS_SHARE: f64 = 0.10;
const OTHERS_BYTES: u64 = 1 << 20;
/// Share of a stall that its cause must explain.
const EXPLAINED: f64 = 0.5;

/// The firmware's bits for what is the case now, and the ones that remember it since boot.
mod bit {
    pub(super) const UNDERVOLTAGE: u32 = 1;
    pub(super) const CAPPED: u32 = 1 << 1;
    pub(super) const THROTTLED: u32 = 1 << 2;
    pub(super) const SOFT_LIMIT: u32 = 1 << 3;
    pub(super) const REMEMBERED: u32 = 16;
}

/// What a job moved and cost, as far as it is needed here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Read or write.
    pub(crate) direction: Direction,
    /// True for commits: the filesystem's own writes dwarf the data then.
    pub(crate) is_commit: bool,
    /// True where the data pass through the page cache, which reads ahead.
    pub(crate) is_buffered: bool,
    /// Bytes that all lanes read, warm-up included.
    pub(crate) read_bytes: u64,
    /// Bytes that all lanes wrote.
    pub(crate) written_bytes: u64,
    /// What we moved per second on average.
    pub(crate) bytes_per_second: f64,
}

/// Shares of the processors' time between two samples.
pub(crate) fn cpu_shares(first: &Sample, last: &Sample) -> CpuShares {
    let mut cores = last
        .cpus
        .iter()
        .zip(&first.cpus)
        .map(|(last, first)| last.since(first));
    let Some(all) = cores.next() else {
        return CpuShares::default();
    };
    let total = all.total().max(1) as f64;
    let share = |ticks: u64| ticks as f64 / total;
    CpuShares {
        user: share(all.user),
        system: share(all.system),
        irq: share(all.irq),
        softirq: share(all.softirq),
        iowait: share(all.iowait),
        steal: share(all.steal),
        per_core_busy: cores
            .map(|core| {
                let busy = core.total() - core.idle - core.iowait;
                busy as f64 / core.total().max(1) as f64
            })
            .collect(),
    }
}

/// Doubts from the processors: waiting, theft, a full core. `waited` is the share of the time that the
/// measuring threads were ready but did not run; `used` the share of one core that the busiest of
/// them used.
pub(crate) fn cpu_doubts(shares: &CpuShares, waited: Option<f64>, used: f64) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    if let Some(share) = waited.filter(|&share| share >= STARVED) {
        doubts.push(Doubt::CpuStarved { share });
    }
    if shares.steal >= STARVED {
        doubts.push(Doubt::CpuStolen {
            share: shares.steal,
        });
    }
    if used >= CPU_BOUND {
        doubts.push(Doubt::CpuBound {
            share: used.min(1.0),
        });
    }
    doubts
}

/// Doubts from heat and supply between two samples, `samples` being all of that time in order.
pub(crate) fn power_doubts(samples: &[Sample]) -> Vec<Doubt> {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
        return Vec::new();
    };
    let now = samples
        .iter()
        .filter_map(|s| s.throttled)
        .fold(0, |all, bits| all | bits);
    let remembered = match (first.throttled, last.throttled) {
        (Some(before), Some(after)) => (after & !before) >> bit::REMEMBERED,
        _ => 0,
    };
    let bits = (now | remembered) & 0xf;
    let low_voltage = samples
        .iter()
        .any(|sample| sample.undervoltage == Some(true));
    let mut doubts = Vec::new();
    if bits & bit::UNDERVOLTAGE != 0 || low_voltage {
        doubts.push(Doubt::Undervoltage);
    }
    let mut what = Vec::new();
    for (mask, words) in [
        (bit::THROTTLED, "throttled"),
        (bit::CAPPED, "frequency capped"),
        (bit::SOFT_LIMIT, "soft temperature limit"),
    ] {
        if bits & mask != 0 {
            what.push(words.to_string());
        }
    }
    let events = last.throttle_events.zip(first.throttle_events);
    match events.map(|(after, before)| after.saturating_sub(before)) {
        Some(count) if count > 0 => what.push(format!("{count} throttling events")),
        _ => {}
    }
    if !what.is_empty() {
        doubts.push(Doubt::Throttled {
            what: what.join(", "),
        });
    }
    doubts
}

/// Bytes that others moved on the device between two samples; absent where nobody counts.
///
/// Reads beyond ours are others', unless the page cache reads ahead for us. Of writes a filesystem
/// adds some of its own to ours: a quarter and 1 MiB are granted, to commits any number.
pub(crate) fn others_bytes(first: &Sample, last: &Sample, effort: &Effort) -> Option<u64> {
    let (before, after) = (first.traffic?, last.traffic?);
    let read = after.read_bytes.saturating_sub(before.read_bytes);
    let written = after.written_bytes.saturating_sub(before.written_bytes);
    let read_by_others = if effort.is_buffered && effort.direction == Direction::Read {
        0
    } else {
        read.saturating_sub(effort.read_bytes)
    };
    let written_by_others = if effort.is_commit {
        0
    } else {
        let granted = effort.written_bytes / 4 + OTHERS_BYTES;
        written.saturating_sub(effort.written_bytes.saturating_add(granted))
    };
    Some(read_by_others + written_by_others)
}

/// The doubt about the traffic of others, if there was enough of it.
pub(crate) fn traffic_doubt(first: &Sample, last: &Sample, effort: &Effort) -> Option<Doubt> {
    let bytes = others_bytes(first, last, effort)?;
    let ours = effort.read_bytes + effort.written_bytes;
    let share = bytes as f64 / (bytes + ours).max(1) as f64;
    (bytes >= OTHERS_BYTES && share >= OTHERS_SHARE).then_some(Doubt::OtherTraffic { bytes, share })
}

/// The stalls of a job: which of its slow spans are far beyond the rest, and whose fault each is.
///
/// `origin_ns` is when the job began and `from_ns` when its warm-up ended.
pub(crate) fn stalls(
    slow: &[SlowSpan],
    latencies: &Histogram,
    origin_ns: u64,
    from_ns: u64,
    samples: &[Sample],
    effort: &Effort,
) -> Vec<Stall> {
    let candidates: Vec<Episode> = slow
        .iter()
        .filter(|span| span.end_ns > from_ns)
        .map(|span| Episode {
            start_ns: span.start_ns.max(from_ns).saturating_sub(origin_ns),
            length_ns: span.end_ns - span.start_ns.max(from_ns),
        })
        .collect();
    let found = stalls::find(&candidates, stalls::threshold_ns(latencies));
    found
        .iter()
        .map(|episode| Stall {
            start_s: episode.start_s(),
            length_ms: episode.length_ms(),
            cause: cause(
                origin_ns + episode.start_ns,
                origin_ns + episode.end_ns(),
                slow,
                samples,
                effort,
            ),
        })
        .collect()
}

fn cause(
    start_ns: u64,
    end_ns: u64,
    slow: &[SlowSpan],
    samples: &[Sample],
    effort: &Effort,
) -> StallCause {
    let enough_ns = ((end_ns - start_ns) as f64 * EXPLAINED) as u64;
    let within = slow
        .iter()
        .filter(|span| span.start_ns < end_ns && span.end_ns > start_ns);
    let waited_ns = within.filter_map(|span| span.run_delay_ns).max();
    if waited_ns.is_some_and(|waited_ns| waited_ns >= enough_ns) {
        return StallCause::CpuStarvation;
    }
    let Some((first, last)) = around(start_ns, end_ns, samples) else {
        return StallCause::Device;
    };
    if stolen_ns(&samples[first], &samples[last]) >= enough_ns {
        return StallCause::CpuStarvation;
    }
    if !power_doubts(&samples[first..=last]).is_empty() {
        return StallCause::Throttling;
    }
    // While we stood still hardly any of the traffic was ours, so nothing is taken off for us but
    // what passed between the samples and the ends of the stall.
    let idle = Effort {
        read_bytes: 0,
        written_bytes: 0,
        ..*effort
    };
    let span_ns = samples[last].at_ns - samples[first].at_ns;
    let outside_s = span_ns.saturating_sub(end_ns - start_ns) as f64 / 1e9;
    let ours = effort.bytes_per_second * outside_s;
    match others_bytes(&samples[first], &samples[last], &idle) {
        Some(bytes) if bytes >= OTHERS_BYTES && bytes as f64 > 2.0 * ours => {
            StallCause::OtherWriters
        }
        _ => StallCause::Device,
    }
}

/// The samples that enclose a stretch of time, by their indices.
fn around(start_ns: u64, end_ns: u64, samples: &[Sample]) -> Option<(usize, usize)> {
    let first = samples
        .iter()
        .rposition(|sample| sample.at_ns <= start_ns)?;
    let last = samples.iter().position(|sample| sample.at_ns >= end_ns)?;
    (first < last).then_some((first, last))
}

/// How much processor time the hypervisor took between two samples, on the core that lost most.
fn stolen_ns(first: &Sample, last: &Sample) -> u64 {
    let cores = last.cpus.iter().zip(&first.cpus).skip(1);
    let worst = cores
        .map(|(last, first)| {
            let core = last.since(first);
            core.steal as f64 / core.total().max(1) as f64
        })
        .fold(0.0, f64::max);
    (worst * (last.at_ns - first.at_ns) as f64) as u64
}
