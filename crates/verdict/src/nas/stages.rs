//! The time of each operation laid out over the stages that it passes.

use rubus_machine::ceiling;
use rubus_machine::rules::nas::is_small_request;
use rubus_vocabulary::job_names;
use rubus_vocabulary::nas::{FileProtocol, NasFacts, NasLink};

use super::{Load, NasStage, StageTime, Times, queueing_s};

const MIB: f64 = 1024.0 * 1024.0;
/// TCP begins each burst with about 14 KB and doubles it with each round trip (RFC 6928): 1 MiB takes up to six more of them.
const SLOW_START_TRIPS: f64 = 6.0;
/// A write and what makes it durable are a request each.
const COMMIT_TRIPS: f64 = 2.0;

/// All stages with their seconds, and what they rest on.
pub(super) struct Shares {
    /// The largest first, none below a hundredth of the whole.
    pub stages: Vec<StageTime>,
    /// The network is concluded from equal rates or from its being a radio, and packets were not seen to queue; or which part of it
    /// is meant cannot be told.
    pub is_indirect: bool,
    /// Reads or writes come near to what the link carries.
    pub is_link_full: bool,
    /// Most of the disk's time is what writes take beyond reads: neither a read of the disk nor a commit shows it.
    pub is_disk_indirect: bool,
    /// What the link carries, in bytes per second, where that is known.
    pub link_bytes_per_second: Option<f64>,
}

/// Why a part of the time is the way beyond the link.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Queue,
    EqualRates,
}

/// Lays the load's time out.
pub(super) fn shares(facts: &NasFacts, times: &Times) -> Shares {
    let link = facts.link.value().and_then(payload);
    let trip_s = round_trip_s(facts, times);
    let link_s = link.map_or(0.0, |rate| MIB / rate);
    let mut seconds = Seconds::default();

    let read = Large::of(times.read_s, trip_s, link_s);
    let write = Large::of(times.write_s, trip_s, link_s);
    for large in [&read, &write] {
        seconds.add(NasStage::Link, Load::LARGE * large.link_s);
        seconds.add(NasStage::RoundTrip, Load::LARGE * large.trips_s);
    }
    // What both directions take beyond that has one cause: a read from the server's memory has no disk in it.
    let common_s = read.rest_s.min(write.rest_s);
    let sign = sign_of_path(facts, times, link, &read, &write);
    let is_radio = facts.link.value().is_some_and(|link| link.kind == "wifi");
    let cause = match (sign, cause_here(facts)) {
        // The kernel does not tell a radio link's rate, and the air is the narrowest place of such a way.
        _ if is_radio => NasStage::Link,
        (Some(Sign::Queue), _) | (Some(Sign::EqualRates), NasStage::ServerWork) => NasStage::Path,
        // What the mount says weighs more than that two rates are equal.
        (_, cause) => cause,
    };
    seconds.add(cause, Load::LARGE * (read.rest_s + common_s));
    let queued = queueing_s(facts, job_names::SEQUENTIAL_WRITE);
    let is_write_queued = queued.is_some_and(|queue_s| is_queue(queue_s, times.write_s));
    let small_rest_s = (times.small_s - trip_s).max(0.0);
    seconds.add(NasStage::RoundTrip, Load::SMALL * trip_s.min(times.small_s));
    seconds.add(NasStage::ServerWork, Load::SMALL * small_rest_s);
    let commit_trips_s = (COMMIT_TRIPS * trip_s).min(times.commit_s);
    seconds.add(NasStage::RoundTrip, Load::COMMITS * commit_trips_s);
    let commit_rest_s = (times.commit_s - commit_trips_s - small_rest_s).max(0.0);
    let cold_s = facts.cold.value().map_or(0.0, |cold| {
        let each_s = |rate: f64| MIB / rate.max(1.0);
        each_s(cold.first_bytes_per_second) - each_s(cold.again_bytes_per_second)
    });
    let shown_s = Load::COMMITS * commit_rest_s + Load::LARGE * cold_s.max(0.0);
    seconds.add(NasStage::ServerDisk, shown_s);

    let beyond = match () {
        () if is_radio => NasStage::Link,
        () if is_write_queued => NasStage::Path,
        () => NasStage::ServerDisk,
    };
    let more_s = (write.rest_s - common_s - durable_s(facts, commit_rest_s)).max(0.0);
    seconds.add(beyond, Load::LARGE * more_s);
    let is_disk_indirect = beyond == NasStage::ServerDisk && Load::LARGE * more_s > shown_s;
    if facts.mount.is_sync {
        let more_s = Load::PIECES * times.commit_s - Load::LARGE * times.write_s;
        seconds.add(NasStage::Sync, more_s.max(0.0));
    }
    if facts.mount.is_uncached {
        seconds.add(NasStage::Uncached, (Load::PIECES - Load::LARGE) * times.small_s);
    }
    Shares {
        stages: seconds.sorted(),
        is_indirect: is_radio || link.is_none() || sign == Some(Sign::EqualRates),
        is_link_full: link.is_some_and(|rate| is_near(rate, times)),
        is_disk_indirect,
        link_bytes_per_second: link,
    }
}

/// What a large write of the run takes to be durable. The NFS client makes each direct write durable before it returns, which the
/// load's files are only once, at their end. Source: Linux, fs/nfs/direct.c, `nfs_direct_write_schedule_iovec`.
pub(super) fn durable_s(facts: &NasFacts, commit_rest_s: f64) -> f64 {
    match facts.mount.protocol {
        FileProtocol::Nfs => commit_rest_s,
        FileProtocol::Smb => 0.0,
    }
}

/// Whether reads or writes come near to a rate, in bytes per second.
pub(super) fn is_near(rate: f64, times: &Times) -> bool {
    const NEAR: f64 = 0.8;
    MIB / times.read_s.min(times.write_s) >= NEAR * rate
}

/// A request of 1 MiB in its parts, in seconds.
struct Large {
    link_s: f64,
    trips_s: f64,
    rest_s: f64,
}

impl Large {
    fn of(time_s: f64, trip_s: f64, link_s: f64) -> Large {
        /// A round trip below this is within one building, where TCP's start costs nothing worth a name.
        const FAR_S: f64 = 2e-3;
        let link_s = link_s.min(time_s);
        let left_s = time_s - link_s;
        let trips = if trip_s >= FAR_S { 1.0 + SLOW_START_TRIPS } else { 1.0 };
        let trips_s = (trips * trip_s).min(left_s);
        Large { link_s, trips_s, rest_s: left_s - trips_s }
    }
}

/// What the link and the bus before it carry.
pub(super) fn payload(link: &NasLink) -> Option<f64> {
    let cable = link.bits_per_second.map(|bits| ceiling::ethernet(bits).bytes_per_second);
    [cable, link.bus_bytes_per_second].into_iter().flatten().reduce(f64::min)
}

/// A small request is never shorter than the round trip.
pub(super) fn round_trip_s(facts: &NasFacts, times: &Times) -> f64 {
    let connect_s = facts.connect.value().map_or(0.0, |times| times.median_ns as f64 / 1e9);
    connect_s.min(times.small_s)
}

/// Whether what the link and the round trip leave unexplained is the way beyond the link.
fn sign_of_path(
    facts: &NasFacts,
    times: &Times,
    link: Option<f64>,
    read: &Large,
    write: &Large,
) -> Option<Sign> {
    let jobs =
        [(job_names::SEQUENTIAL_READ, times.read_s), (job_names::SEQUENTIAL_WRITE, times.write_s)];
    let is_queued = jobs.iter().any(|(job, time_s)| {
        queueing_s(facts, job).is_some_and(|queue_s| is_queue(queue_s, *time_s))
    });
    if is_queued {
        return Some(Sign::Queue);
    }
    // The link itself explains the rest.
    let is_much =
        |large: &Large| large.rest_s > 0.3 * (large.link_s + large.trips_s + large.rest_s);
    if !is_much(read) || !is_much(write) {
        return None;
    }
    let rates = [MIB / (times.read_s - read.trips_s), MIB / (times.write_s - write.trips_s)];
    let is_narrower = |rate: &u64| link.is_none_or(|link| carried(*rate) < 0.9 * link);
    let mut usual = USUAL_RATES.iter().filter(|rate| is_narrower(rate));
    let is_at = |bits: u64| rates.iter().all(|rate| (0.8..1.03).contains(&(rate / carried(bits))));
    usual.any(|bits| is_at(*bits)).then_some(Sign::EqualRates)
}

/// Rates at which links run, in bits per second.
const USUAL_RATES: [u64; 4] = [10_000_000, 100_000_000, 1_000_000_000, 2_500_000_000];

fn carried(bits_per_second: u64) -> f64 {
    ceiling::ethernet(bits_per_second).bytes_per_second
}

/// A queue before a narrow link holds packets for a good part of a request's time; a quiet network's round trip varies by less than
/// a millisecond.
fn is_queue(queue_s: f64, request_s: f64) -> bool {
    queue_s > 1e-3 && queue_s > 0.08 * request_s
}

/// What here makes requests long that travel freely.
fn cause_here(facts: &NasFacts) -> NasStage {
    let sizes = [facts.mount.read_request_bytes, facts.mount.write_request_bytes];
    if sizes.into_iter().flatten().any(is_small_request) {
        NasStage::SmallRequests
    } else if facts.mount.is_encrypted {
        NasStage::Encryption
    } else {
        NasStage::ServerWork
    }
}

#[derive(Default)]
struct Seconds(Vec<StageTime>);

impl Seconds {
    fn add(&mut self, stage: NasStage, seconds: f64) {
        match self.0.iter_mut().find(|known| known.stage == stage) {
            Some(known) => known.seconds += seconds,
            None => self.0.push(StageTime { stage, seconds }),
        }
    }

    fn sorted(mut self) -> Vec<StageTime> {
        let all: f64 = self.0.iter().map(|stage| stage.seconds).sum();
        self.0.retain(|stage| stage.seconds > all / 100.0);
        self.0.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        self.0
    }
}
