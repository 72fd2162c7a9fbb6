//! A thorough checkup: the questions of `quick`, to ±5 %, with more sizes and depths and a mix.

use rubus_vocabulary::job_names;
use rubus_vocabulary::spec::{
    Content, Direction, Durability, Job, Pattern, Shape, StopSpec, Suite,
};

use super::{GIB, KIB, Room, limits};
use crate::error::BenchError;

/// The region that is wanted: beyond the cache of most devices.
const WANTED_REGION: u64 = GIB;
/// What is written at most: enough for eleven seconds of the fastest disks on small boards.
const MAX_WRITTEN: u64 = 48 * GIB;
/// Number of parts into which the writing jobs divide the budget.
const PARTS: u64 = 32;

/// ±5 %, which takes eleven seconds on a quiet disk.
fn precisely(max_bytes: u64) -> StopSpec {
    StopSpec {
        relative_half_width: 0.05,
        min_seconds: 10.0,
        max_seconds: 20.0,
        min_bytes: 0,
        max_bytes,
    }
}

pub(super) fn suite(room: &Room) -> Result<Suite, BenchError> {
    let limits = limits(room, WANTED_REGION, MAX_WRITTEN, 3)?;
    let part = (limits.budget_bytes - limits.region_bytes) / PARTS;
    Ok(Suite {
        name: "full".into(),
        region_bytes: limits.region_bytes,
        content: Content::Incompressible,
        seed: 1,
        max_seconds: Some(480.0),
        jobs: jobs(limits.region_bytes, part),
    })
}

fn jobs(region_bytes: u64, part: u64) -> Vec<Job> {
    use Direction::{Read, Write};
    use Pattern::{Random, Sequential};
    const MIB: u32 = 1024 * KIB;
    let reads = |name: &str, pattern, block_bytes, depth| Job {
        stop: precisely(u64::MAX),
        ..Job::new(name, Read, pattern, block_bytes, depth)
    };
    let writes = |name: &str, pattern, block_bytes, depth, parts: u64| Job {
        stop: precisely((parts * part).max(u64::from(block_bytes))),
        ..Job::new(name, Write, pattern, block_bytes, depth)
    };
    let mut fill = writes(job_names::SEQUENTIAL_WRITE, Sequential, MIB, 1, 6);
    fill.stop.max_bytes += region_bytes;
    fill.stop.min_bytes = region_bytes;
    fill.stop.max_seconds = 60.0;
    let mut commits = writes(job_names::COMMIT, Sequential, 4 * KIB, 1, 1);
    commits.durability = Durability::EachAppend;
    let mut mixed = writes("mixed-70-30", Random, 4 * KIB, 32, 2);
    mixed.direction = Read;
    mixed.shape =
        Some(Box::new(Shape { read_percent: Some(70), time_based: true, ..Shape::default() }));
    let mut loaded = writes(job_names::BYSTANDER_WRITE, Sequential, MIB, 4, 6);
    loaded.beside = vec![reads(job_names::BYSTANDER_READ, Random, 4 * KIB, 1)];
    vec![
        fill,
        reads(job_names::SEQUENTIAL_READ, Sequential, MIB, 1),
        reads("sequential-read-128k", Sequential, 128 * KIB, 1),
        reads(job_names::RANDOM_READ, Random, 4 * KIB, 1),
        reads("random-read-4", Random, 4 * KIB, 4),
        reads(job_names::RANDOM_READ_DEEP, Random, 4 * KIB, 32),
        reads("random-read-64k", Random, 64 * KIB, 1),
        writes("sequential-write-128k", Sequential, 128 * KIB, 1, 5),
        writes(job_names::RANDOM_WRITE, Random, 4 * KIB, 1, 1),
        writes("random-write-4", Random, 4 * KIB, 4, 2),
        writes(job_names::RANDOM_WRITE_DEEP, Random, 4 * KIB, 32, 3),
        writes(job_names::RANDOM_WRITE_16K, Random, 16 * KIB, 1, 2),
        writes("random-write-64k", Random, 64 * KIB, 1, 4),
        mixed,
        commits,
        loaded,
    ]
}
