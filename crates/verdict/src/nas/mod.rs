//! What holds a share of a file server back: its link, the way beyond it, the round trip, a mount option, the server's disk, or
//! the server's own work.
//!
//! The yardstick is a load of files, not that of a system: 4 GB read and 4 GB written in large files, and 1,000 small files opened
//! and stored. The time of each measured operation is laid out over the stages that it passes:
//! what the link and a round trip take is known from the link's rate and from connecting; the server's disk is what a write or a commit
//! takes beyond a read of what the server has in memory. What none of them explains is the network beyond the link
//! if packets queued meanwhile, or if both directions meet one ceiling; else it is the server's own work, or not known. The narrowest
//! stage is the one with the most time. All times are those of one request after the other.

mod stages;
mod words;

use rubus_vocabulary::job_names;
use rubus_vocabulary::nas::NasFacts;
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::result::{JobResult, Outcome, Run};
use serde::{Deserialize, Serialize};

use stages::{Shares, shares};
pub use words::stage_name;

/// What may be narrow between a program here and a disk there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NasStage {
    /// The link of this machine, at the rate that it negotiated, or the bus before it.
    Link,
    /// The network beyond it: a switch, a radio, the server's own link.
    Path,
    /// The round trip of each request.
    RoundTrip,
    /// The mount option sync.
    Sync,
    /// Small requests (rsize, wsize).
    SmallRequests,
    /// A mount without a cache.
    Uncached,
    /// Encryption.
    Encryption,
    /// The server's disk.
    ServerDisk,
    /// The server's program and processor, or what nothing here tells apart from them.
    ServerWork,
}

/// How sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Sureness {
    /// Measured, and at least half as much again as any other.
    Sure,
    /// The largest, but another may be as large, or it follows from signs.
    Probable,
    /// What was measured does not settle it.
    NotKnown,
}

/// Seconds of the load that a stage takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StageTime {
    /// Which.
    pub stage: NasStage,
    /// Seconds.
    pub seconds: f64,
}

/// What a run on a share says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NasVerdict {
    /// The narrowest stage; absent where it is not known.
    pub narrow: Option<NasStage>,
    /// How sure that is.
    pub sureness: Sureness,
    /// The answer, in at most 25 words.
    pub headline: String,
    /// What to change.
    pub next: NextStep,
    /// All stages with their seconds, the largest first.
    pub stages: Vec<StageTime>,
    /// What else there is to know: what could not be measured, and which cache a figure includes.
    pub notes: Vec<String>,
}

/// What the seconds of stages are for, as a sentence.
pub const LOAD: &str =
    "Waits: for 4 GB read, 4 GB written, and 1,000 small files opened and stored.";

/// The load by which stages are weighed: numbers of operations. Our choice, for a share of films, photos and documents.
struct Load;

impl Load {
    /// Requests of 1 MiB, each way: 4 GB.
    const LARGE: f64 = 4000.0;
    /// The same as programs write them where nothing gathers their writes: `cp` moves 128 KiB at a time.
    const PIECES: f64 = 8.0 * Load::LARGE;
    /// Small requests: five for each of 1,000 files that is opened, looked at and read.
    const SMALL: f64 = 5000.0;
    /// Commits: one for each of 1,000 files that is stored.
    const COMMITS: f64 = 1000.0;
}

/// Seconds per operation, at queue depth 1.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Times {
    /// 1 MiB read, from the server's memory.
    read_s: f64,
    /// 1 MiB written.
    write_s: f64,
    /// 4 KiB read at random.
    small_s: f64,
    /// 4 KiB written and made durable.
    commit_s: f64,
}

impl Times {
    fn of(run: &Run, facts: &NasFacts) -> Option<Times> {
        let job = |name| run.job(name).filter(|result| result.operations > 0);
        let by_bytes = |name| Some((1 << 20) as f64 / positive(job(name)?.bytes_per_second.value)?);
        let by_count = |name| Some(1.0 / positive(job(name)?.iops.value)?);
        let commit_s = by_count(job_names::COMMIT)?;
        Some(Times {
            read_s: by_bytes(job_names::SEQUENTIAL_READ)?,
            write_s: by_bytes(job_names::SEQUENTIAL_WRITE)?,
            // A very slow share has no time left for this job: the round trip alone is known of it then, which is no longer than
            // a commit.
            small_s: by_count(job_names::RANDOM_READ).unwrap_or_else(|| {
                let trip_s = facts.connect.value().map(|times| times.median_ns as f64 / 1e9);
                trip_s.unwrap_or(commit_s).min(commit_s)
            }),
            commit_s,
        })
    }
}

fn positive(value: f64) -> Option<f64> {
    (value.is_finite() && value > 0.0).then_some(value)
}

/// What a run says of the share that it was made on; nothing where it was made on none, or did not measure what a checkup
/// does.
pub fn verdict(run: &Run) -> Option<NasVerdict> {
    let facts = run.target.nas.as_ref()?;
    let times = Times::of(run, facts)?;
    let found = shares(facts, &times);
    let (narrow, sureness) = narrowest(&found, unsettled(run));
    let known = narrow.filter(|_| sureness != Sureness::NotKnown);
    Some(NasVerdict {
        narrow: known,
        sureness,
        headline: words::headline(known, sureness, facts, &times),
        next: words::next(known, facts, &times),
        notes: words::notes(facts, &found),
        stages: found.stages,
    })
}

/// Whether one of the four figures did not settle.
fn unsettled(run: &Run) -> bool {
    let names = [
        job_names::SEQUENTIAL_READ,
        job_names::SEQUENTIAL_WRITE,
        job_names::RANDOM_READ,
        job_names::COMMIT,
    ];
    let is_open = |result: &JobResult| result.outcome == Outcome::Inconclusive;
    names.iter().filter_map(|name| run.job(name)).any(is_open)
}

/// The largest stage. It is sure where it has half as much again as the next; not known where the server's own work, which holds
/// all that is not explained, is the largest.
fn narrowest(found: &Shares, is_unsettled: bool) -> (Option<NasStage>, Sureness) {
    /// Our choice: operations hold within 10 to 20 % each.
    const CLEARLY: f64 = 1.5;
    let Some(first) = found.stages.first() else {
        return (None, Sureness::NotKnown);
    };
    let second = found.stages.get(1).map_or(0.0, |stage| stage.seconds);
    let is_clear = first.seconds >= CLEARLY * second;
    let is_of_signs = match first.stage {
        NasStage::Path => found.is_indirect,
        // A request waits for the link, and others could use the rest of it.
        NasStage::Link => found.is_indirect || !found.is_link_full,
        NasStage::ServerDisk => found.is_disk_indirect,
        NasStage::RoundTrip
        | NasStage::Sync
        | NasStage::SmallRequests
        | NasStage::Uncached
        | NasStage::Encryption
        | NasStage::ServerWork => false,
    };
    let sureness = match first.stage {
        NasStage::ServerWork => Sureness::NotKnown,
        _ if is_clear && !is_of_signs && !is_unsettled => Sureness::Sure,
        _ => Sureness::Probable,
    };
    (Some(first.stage), sureness)
}

/// Whether the figures of this job were taken while packets queued: how much longer a round trip was, in seconds.
fn queueing_s(facts: &NasFacts, job: &str) -> Option<f64> {
    let idle_ns = facts.connect.value()?.median_ns;
    let loaded = facts.loaded.iter().find(|loaded| loaded.job == job)?;
    Some(loaded.times.median_ns.saturating_sub(idle_ns) as f64 / 1e9)
}

#[cfg(test)]
mod tests;
