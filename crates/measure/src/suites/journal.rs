//! What a system log does to a disk: entries appended to a file and made durable, and small writes all over it, as its
//! index needs them.
//!
//! systemd-journald syncs at once after a critical message and otherwise every five minutes (journald.conf(5),
//! `SyncIntervalSec=`). Here every write is synced: the most that a log can ask of the disk, measured in a minute.

use rubus_vocabulary::job_names as name;
use rubus_vocabulary::spec::{Content, Direction, Durability, Job, Pattern, StopSpec, Suite};

use super::{KIB, MIB, Room, limits};
use crate::error::BenchError;

const WANTED_REGION: u64 = 64 * MIB;
/// What is written at most.
const MAX_WRITTEN: u64 = 1024 * MIB;
/// What one sync makes durable, with the job's share of the budget in eighths: a few lines, a burst, and what a busy
/// second leaves.
const APPENDS: [(&str, u32, u64); 3] =
    [(name::COMMIT, 4 * KIB, 1), ("commit-16k", 16 * KIB, 2), ("commit-64k", 64 * KIB, 4)];
/// The share of the small writes, in eighths.
const INDEX_EIGHTHS: u64 = 1;

pub(super) fn suite(room: &Room) -> Result<Suite, BenchError> {
    let limits = limits(room, WANTED_REGION, MAX_WRITTEN, 2)?;
    let eighth = (limits.budget_bytes - limits.region_bytes) / 8;
    let job = |name: &str, pattern, block_bytes, eighths| Job {
        stop: StopSpec {
            relative_half_width: 0.05,
            min_seconds: 8.0,
            max_seconds: 20.0,
            min_bytes: 0,
            max_bytes: eighths * eighth,
        },
        ..Job::new(name, Direction::Write, pattern, block_bytes, 1)
    };
    let appends = APPENDS.iter().map(|&(name, block_bytes, eighths)| Job {
        durability: Durability::EachAppend,
        ..job(name, Pattern::Sequential, block_bytes, eighths)
    });
    let mut jobs: Vec<Job> = appends.collect();
    jobs.push(job(name::RANDOM_WRITE, Pattern::Random, 4 * KIB, INDEX_EIGHTHS));
    Ok(Suite {
        name: "journal".into(),
        region_bytes: limits.region_bytes,
        content: Content::Incompressible,
        seed: 1,
        max_seconds: None,
        jobs,
    })
}
