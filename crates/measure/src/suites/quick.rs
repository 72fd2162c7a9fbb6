//! The suite of the checkup.

use rubus_vocabulary::spec::{Content, Direction, Durability, Job, Pattern, StopSpec, Suite};
// The verdict finds its figures by these names.
use rubus_vocabulary::job_names;

use super::{Endurance, KIB, MIB, MIN_REGION, Room, SHARE_OF_FREE, too_small};
use crate::error::BenchError;

/// What the suite may write at most, whatever the size of the target: 1 GiB.
pub const MAX_WRITTEN: u64 = 1 << 30;
/// The same on a disk that is made for writing: what a fast one needs to be written to for seconds. 4 GiB.
pub(super) const MAX_WRITTEN_HIGH: u64 = 4 << 30;
/// The region that is wanted: 256 MiB, beyond the cache of cheap devices.
const WANTED_REGION: u64 = 256 * MIB;

/// What each job of `quick` may write, in parts of the whole; together at most [`PARTS`].
mod part {
    pub(super) const FILL: u64 = 22;
    pub(super) const RANDOM_4K: u64 = 5;
    pub(super) const RANDOM_4K_DEEP: u64 = 9;
    pub(super) const RANDOM_16K: u64 = 8;
    pub(super) const COMMITS: u64 = 4;
    pub(super) const BYSTANDER: u64 = 16;
}
const PARTS: u64 = 64;

/// What a job may take at most, in seconds, as far as the time for all allows.
const MAX_JOB_S: f64 = 9.0;
/// The same beside a writer, where the reader completes little.
const MAX_BYSTANDER_S: f64 = 14.0;

/// The suite of the checkup: what a card, a stick or a disk does for its owner, within 90 s on
/// anything that does 10 MB/s and with a bounded wear. All that it writes is at most a tenth of what
/// is free.
///
/// # Errors
/// [`BenchError::NoSpace`] when there is too little room for a meaningful region.
pub(super) fn suite(room: &Room) -> Result<Suite, BenchError> {
    let tenth = if room.is_free_space { room.bytes / SHARE_OF_FREE } else { u64::MAX };
    let budget = room
        .budget_bytes
        .unwrap_or(max_written(room.endurance).min(tenth))
        .max(room.region_bytes.unwrap_or(0));
    let own = if room.is_free_space { budget } else { room.bytes };
    let region_bytes = match room.region_bytes {
        Some(wanted) => wanted,
        None => WANTED_REGION.min(own).min(budget / 4) / MIB * MIB,
    };
    if region_bytes < MIN_REGION {
        return Err(too_small(room, 4));
    }
    Ok(Suite {
        name: "quick".into(),
        region_bytes,
        content: Content::Incompressible,
        seed: 1,
        max_seconds: Some(85.0),
        jobs: quick_jobs(region_bytes, budget / PARTS),
    })
}

fn max_written(endurance: Endurance) -> u64 {
    match endurance {
        Endurance::Low => MAX_WRITTEN,
        Endurance::High => MAX_WRITTEN_HIGH,
    }
}

fn quick_jobs(region_bytes: u64, part_bytes: u64) -> Vec<Job> {
    use Direction::{Read, Write};
    use Pattern::{Random, Sequential};
    let job = |name: &str, direction, pattern, block_bytes, queue_depth, parts: u64| Job {
        stop: StopSpec {
            relative_half_width: 0.10,
            min_seconds: 3.0,
            max_seconds: MAX_JOB_S,
            min_bytes: 0,
            max_bytes: match direction {
                Read => u64::MAX,
                Write => (parts * part_bytes).max(u64::from(block_bytes)),
            },
        },
        ..Job::new(name, direction, pattern, block_bytes, queue_depth)
    };
    let mut fill = job(job_names::SEQUENTIAL_WRITE, Write, Sequential, 1024 * KIB, 1, part::FILL);
    // This one fills the file: precision alone does not end it, and it may take longer.
    fill.stop.min_bytes = region_bytes;
    fill.stop.max_bytes = fill.stop.max_bytes.max(region_bytes);
    fill.stop.max_seconds = 20.0;
    let mut commits = job(job_names::COMMIT, Write, Sequential, 4 * KIB, 1, part::COMMITS);
    commits.durability = Durability::EachAppend;
    let mut loaded =
        job(job_names::BYSTANDER_WRITE, Write, Sequential, 1024 * KIB, 4, part::BYSTANDER);
    loaded.stop.max_seconds = MAX_BYSTANDER_S;
    loaded.beside = vec![job(job_names::BYSTANDER_READ, Read, Random, 4 * KIB, 1, 0)];
    vec![
        fill,
        job(job_names::SEQUENTIAL_READ, Read, Sequential, 1024 * KIB, 1, 0),
        job(job_names::RANDOM_READ, Read, Random, 4 * KIB, 1, 0),
        job(job_names::RANDOM_READ_DEEP, Read, Random, 4 * KIB, 32, 0),
        job(job_names::RANDOM_WRITE, Write, Random, 4 * KIB, 1, part::RANDOM_4K),
        job(job_names::RANDOM_WRITE_DEEP, Write, Random, 4 * KIB, 32, part::RANDOM_4K_DEEP),
        job(job_names::RANDOM_WRITE_16K, Write, Random, 16 * KIB, 1, part::RANDOM_16K),
        commits,
        loaded,
    ]
}
