//! What the watcher's samples say about a job: shares of the processors, doubts, and who is to
//! blame for a stall. Pure functions of what was seen.

use rubus_machine::parse::stat;
use rubus_stats::Histogram;
use rubus_stats::stalls::{self, Episode};
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::result::{CpuShares, Stall, StallCause};
use rubus_vocabulary::spec::Direction;
use rubus_vocabulary::throttling::{PowerEvents, Throttling};

use crate::mailbox::SlowSpan;
use crate::sample::Sample;

/// Shares of waiting or stolen time from which they are worth a doubt.
const STARVED: f64 = 0.05;
/// Busy share of a core from which the processor may be the limit.
const CPU_BOUND: f64 = 0.90;
/// Share of others in the traffic, and bytes, from which they are worth a doubt.
const OTHERS_SHARE: f64 = 0.10;
const OTHERS_BYTES: u64 = 1 << 20;
/// Share of a stall that its cause must explain.
const EXPLAINED: f64 = 0.5;

/// What a job moved and cost, as far as it is needed here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Read or write.
    pub(crate) direction: Direction,
    /// True for commits: the filesystem's own writes dwarf the data then.
    pub(crate) is_commit: bool,
    /// True where the data pass through the page cache, which reads ahead.
    pub(crate) is_buffered: bool,
    /// Bytes that all workers read, warm-up included.
    pub(crate) read_bytes: u64,
    /// Bytes that all workers wrote.
    pub(crate) written_bytes: u64,
    /// What we moved per second on average.
    pub(crate) bytes_per_second: f64,
}

/// Shares of the processors' time between two samples.
pub(crate) fn cpu_shares(first: &Sample, last: &Sample) -> CpuShares {
    stat::shares(&first.cpus, &last.cpus)
}

/// Doubts from the processors: waiting, theft, a full core. `waited` is the share of the time that the
/// measuring threads were ready but did not run; `used` is their [`used_share`].
pub(crate) fn cpu_doubts(shares: &CpuShares, waited: Option<f64>, used: f64) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    if let Some(share) = waited.filter(|&share| share >= STARVED) {
        doubts.push(Doubt::CpuStarved { share });
    }
    if shares.steal >= STARVED {
        doubts.push(Doubt::CpuStolen { share: shares.steal });
    }
    if used >= CPU_BOUND {
        doubts.push(Doubt::CpuBound { share: used.min(1.0) });
    }
    doubts
}

/// How near the measuring threads came to using up the processors: the busiest of them its core, or all
/// of them together all `cores`. `shares` is what each used of one core. Lanes are the limit only when each of
/// them fills its core: as long as one has time left, it waits for the device.
pub(crate) fn used_share(shares: &[f64], cores: usize, lanes: u32) -> f64 {
    let pick: fn(f64, f64) -> f64 = if lanes > 1 { f64::min } else { f64::max };
    let alone = shares.iter().copied().reduce(pick);
    let together: f64 = shares.iter().sum();
    alone.unwrap_or(0.0).max(together / cores.max(1) as f64)
}

/// Doubts from heat and supply between two samples, `samples` being all of that time in order.
pub(crate) fn power_doubts(samples: &[Sample]) -> Vec<Doubt> {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
        return Vec::new();
    };
    let words = samples.iter().filter_map(|sample| sample.throttled.map(Throttling::decode));
    let before = first.throttled.map(Throttling::decode);
    // Without a first word, what a later one remembers may be old.
    let events = words.map(|word| word.events_since(before.unwrap_or(word)));
    let mut events = events.fold(PowerEvents::default(), PowerEvents::or);
    events.undervoltage |= samples.iter().any(|sample| sample.undervoltage == Some(true));
    let counts = last.throttle_events.zip(first.throttle_events);
    let count = counts.map_or(0, |(after, before)| after.saturating_sub(before));
    let counted = (count > 0).then(|| format!("{count} throttling events"));
    let hottest = samples.iter().filter_map(|sample| sample.hottest_millidegrees).max();
    let is_held_down = events.is_clock_held_down() || counted.is_some();
    let hottest = hottest.filter(|_| is_held_down);
    let hottest = hottest.map(|millidegrees| format!("{} °C", millidegrees / 1000));
    events.doubts(counted.into_iter().chain(hottest))
}

/// Bytes that others moved on the device between two samples; absent where the kernel does not
/// count.
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

/// What is known of the slow moments of a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlowMoments<'a> {
    /// Times without any completion.
    pub(crate) gaps: &'a [SlowSpan],
    /// The lengths of further such gaps, for a long job of which only the longest were kept.
    pub(crate) forgotten_gaps: Option<&'a Histogram>,
    /// Operations that took long while others completed.
    pub(crate) operations: &'a [SlowSpan],
    /// The latencies of all operations.
    pub(crate) latencies: &'a Histogram,
    /// The mean time between two completions.
    pub(crate) usual_gap_ns: u64,
    /// True when there is one operation at a time, so that its latency is the gap.
    pub(crate) is_single: bool,
    /// When the job began.
    pub(crate) origin_ns: u64,
    /// When its warm-up ended.
    pub(crate) from_ns: u64,
    /// How long was measured after that.
    pub(crate) window_ns: u64,
}

/// How much longer than a stall an operation must take that is slow while others complete.
const OVERTAKEN: u64 = 3;
/// Stalls that are listed at most: the longest.
const MAX_STALLS: usize = 200;

/// The stalls of a job: which of its slow moments are far beyond the rest, and whose fault each is.
pub(crate) fn stalls(slow: &SlowMoments<'_>, samples: &[Sample], effort: &Effort) -> Vec<Stall> {
    let of_latency_ns = stalls::threshold_ns(slow.latencies);
    let of_gap_ns = if slow.is_single {
        of_latency_ns
    } else {
        stalls::MIN_NS.max(slow.usual_gap_ns.saturating_mul(10))
    };
    let mut found = stalls::find_among(
        &slow.episodes(slow.gaps),
        slow.forgotten_gaps,
        of_gap_ns,
        slow.window_ns,
    );
    let mut overtaken = slow.episodes(slow.operations);
    overtaken.retain(|episode| episode.length_ns >= of_latency_ns.saturating_mul(OVERTAKEN));
    overtaken.sort_unstable_by_key(|episode| std::cmp::Reverse(episode.length_ns));
    for episode in overtaken {
        // Neighbours in the queue suffer together; the longest speaks for them.
        if !found.iter().any(|other| overlap(other, &episode)) {
            found.push(episode);
        }
    }
    found.sort_unstable_by_key(|episode| std::cmp::Reverse(episode.length_ns));
    found.truncate(MAX_STALLS);
    found.sort_unstable_by_key(|episode| episode.start_ns);
    let stall = |episode: &Episode| Stall {
        start_s: episode.start_s(),
        length_ms: episode.length_ms(),
        cause: cause(episode, slow, samples, effort),
    };
    found.iter().map(stall).collect()
}

impl SlowMoments<'_> {
    /// The spans as episodes of the job, without what lies in the warm-up.
    fn episodes(&self, spans: &[SlowSpan]) -> Vec<Episode> {
        let after = spans.iter().filter(|span| span.end_ns > self.from_ns);
        after
            .map(|span| {
                let start_ns = span.start_ns.max(self.from_ns);
                Episode {
                    start_ns: start_ns.saturating_sub(self.origin_ns),
                    length_ns: span.end_ns - start_ns,
                }
            })
            .collect()
    }
}

/// Whether two episodes share at least half of the shorter one.
fn overlap(a: &Episode, b: &Episode) -> bool {
    let shared_ns = a.end_ns().min(b.end_ns()).saturating_sub(a.start_ns.max(b.start_ns));
    2 * shared_ns >= a.length_ns.min(b.length_ns)
}

fn cause(
    episode: &Episode,
    slow: &SlowMoments<'_>,
    samples: &[Sample],
    effort: &Effort,
) -> StallCause {
    let start_ns = slow.origin_ns + episode.start_ns;
    let end_ns = slow.origin_ns + episode.end_ns();
    let explained = |by_ns: u64| by_ns as f64 >= episode.length_ns as f64 * EXPLAINED;
    let spans = slow.gaps.iter().chain(slow.operations);
    let within = spans.filter(|span| span.start_ns < end_ns && span.end_ns > start_ns);
    // Of several spans the one that covers most of the stall knows best.
    let covers_ns = |span: &&SlowSpan| span.end_ns.min(end_ns) - span.start_ns.max(start_ns);
    let witness = within.max_by_key(covers_ns);
    if witness.and_then(|span| span.run_delay_ns).is_some_and(explained) {
        return StallCause::CpuStarvation;
    }
    let Some((first, last)) = around(start_ns, end_ns, samples) else {
        return StallCause::Device;
    };
    if explained(stopped_ns(&samples[first], &samples[last])) {
        return StallCause::Stopped;
    }
    if explained(stolen_ns(&samples[first], &samples[last])) {
        return StallCause::CpuStarvation;
    }
    if !power_doubts(&samples[first..=last]).is_empty() {
        return StallCause::Throttling;
    }
    // While we stood still hardly any of the traffic was ours, so nothing is taken off for us but
    // what passed between the samples and the ends of the stall.
    let idle = Effort { read_bytes: 0, written_bytes: 0, ..*effort };
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
    let first = samples.iter().rposition(|sample| sample.at_ns <= start_ns)?;
    let last = samples.iter().position(|sample| sample.at_ns >= end_ns)?;
    (first < last).then_some((first, last))
}

/// How long the program itself was stopped between two samples.
fn stopped_ns(first: &Sample, last: &Sample) -> u64 {
    last.stopped_ns.saturating_sub(first.stopped_ns)
}

/// The doubt about a program that was stopped while it measured.
pub(crate) fn stopped_doubt(first: &Sample, last: &Sample) -> Option<Doubt> {
    let stopped_ns = stopped_ns(first, last);
    (stopped_ns > 0).then(|| Doubt::Stopped { seconds: stopped_ns as f64 / 1e9 })
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
