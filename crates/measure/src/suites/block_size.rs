//! Throughput against the size of the operations: where does the curve bend?

use rubus_vocabulary::spec::{Content, Direction, Durability, Job, Pattern, StopSpec, Suite};

use super::{GIB, KIB, MIB, Room, limits};
use crate::error::BenchError;

/// The sizes of the sweep, from a line of a log to more than any device takes at once.
const SIZES: [u32; 10] =
    [64, 256, KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, 1024 * KIB, 4096 * KIB, 16384 * KIB];
/// The least size that is tried past the page cache; a target that takes larger units only leaves
/// it out.
const MIN_DIRECT: u32 = KIB;
/// From here on a size counts as large and has a larger part of the budget.
const LARGE: u32 = 256 * KIB;
const WANTED_REGION: u64 = 256 * MIB;
/// What is written at most. Slow disks write far less in the time that they have.
const MAX_WRITTEN: u64 = 8 * GIB;

/// The suite: direct reads and direct writes in order, then writes through the page cache of which
/// each is made durable.
pub(super) fn suite(room: &Room) -> Result<Suite, BenchError> {
    let limits = limits(room, WANTED_REGION, MAX_WRITTEN, 2)?;
    let budget = limits.budget_bytes - limits.region_bytes;
    let direct = SIZES.iter().filter(|size| **size >= MIN_DIRECT);
    let fitting = |size: &&u32| u64::from(**size) <= limits.region_bytes;
    let mut jobs = Vec::new();
    for &size in direct.clone().filter(fitting) {
        jobs.push(job(&format!("direct-read-{}", label(size)), Direction::Read, size));
    }
    for &size in direct.filter(fitting) {
        let name = format!("direct-write-{}", label(size));
        jobs.push(job(&name, Direction::Write, size));
    }
    for &size in SIZES.iter().filter(fitting) {
        let name = format!("commit-{}", label(size));
        let mut commit = job(&name, Direction::Write, size);
        commit.through_cache = true;
        commit.durability = Durability::EachInPlace;
        jobs.push(commit);
    }
    let parts: u64 = jobs.iter().map(parts).sum();
    for job in &mut jobs {
        if job.direction == Direction::Write {
            job.stop.max_bytes = budget / parts.max(1) * self::parts(job);
        }
    }
    // A small budget has no room for the largest.
    jobs.retain(|job| job.stop.max_bytes >= u64::from(job.block_bytes));
    Ok(Suite {
        name: "block-size".into(),
        region_bytes: limits.region_bytes,
        content: Content::Incompressible,
        seed: 1,
        max_seconds: Some(200.0),
        jobs,
    })
}

/// The part of the budget that a job has.
fn parts(job: &Job) -> u64 {
    match job.direction {
        Direction::Read => 0,
        Direction::Write if job.block_bytes >= LARGE => 4,
        Direction::Write => 1,
    }
}

fn job(name: &str, direction: Direction, block_bytes: u32) -> Job {
    Job {
        stop: StopSpec {
            relative_half_width: 0.10,
            min_seconds: 2.5,
            max_seconds: 5.0,
            min_bytes: 0,
            max_bytes: u64::MAX,
        },
        ..Job::new(name, direction, Pattern::Sequential, block_bytes, 1)
    }
}

/// A size in the name of a job: `64b`, `4k`, `16m`.
fn label(bytes: u32) -> String {
    match bytes {
        b if b >= 1 << 20 => format!("{}m", b >> 20),
        b if b >= 1 << 10 => format!("{}k", b >> 10),
        b => format!("{b}b"),
    }
}
