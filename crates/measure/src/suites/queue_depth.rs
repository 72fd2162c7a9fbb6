//! Throughput and latency against the number of operations in flight: where is the knee?

use rubus_vocabulary::spec::{Content, Direction, Job, Pattern, StopSpec, Suite};

use super::{GIB, KIB, MIB, Room, limits};
use crate::error::BenchError;

/// The depths of the sweep.
const DEPTHS: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/// The region that is wanted.
const WANTED_REGION: u64 = 256 * MIB;
/// What is written at most. Slow disks write far less in the time that they have.
const MAX_WRITTEN: u64 = 8 * GIB;
const BLOCK_BYTES: u32 = 4 * KIB;

/// The suite: 4 KiB random reads at every depth, then random writes.
pub(super) fn suite(room: &Room) -> Result<Suite, BenchError> {
    let limits = limits(room, WANTED_REGION, MAX_WRITTEN, 2)?;
    let share = (limits.budget_bytes - limits.region_bytes) / DEPTHS.len() as u64;
    let of = |direction: Direction, max_bytes: u64| {
        DEPTHS.map(|depth| Job {
            stop: StopSpec {
                relative_half_width: 0.10,
                min_seconds: 2.5,
                max_seconds: 6.0,
                min_bytes: 0,
                max_bytes,
            },
            ..Job::new(&job_name(direction, depth), direction, Pattern::Random, BLOCK_BYTES, depth)
        })
    };
    let mut jobs = of(Direction::Read, u64::MAX).to_vec();
    jobs.extend(of(Direction::Write, share));
    Ok(Suite {
        name: "queue-depth".into(),
        region_bytes: limits.region_bytes,
        content: Content::Incompressible,
        seed: 1,
        max_seconds: Some(180.0),
        jobs,
    })
}

fn job_name(direction: Direction, depth: u32) -> String {
    match direction {
        Direction::Read => format!("random-read-depth-{depth}"),
        Direction::Write => format!("random-write-depth-{depth}"),
    }
}
