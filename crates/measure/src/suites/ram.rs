//! The suite for memory: what the machine can carry when no disk is in the way.

use rubus_vocabulary::job_names;
use rubus_vocabulary::spec::{Content, Direction, Job, Pattern, StopSpec, Suite};

use super::Room;
use crate::error::BenchError;

/// All of the room: the user has said how much memory is to be used.
pub(super) fn suite(room: &Room) -> Result<Suite, BenchError> {
    Ok(ram(room.bytes))
}

/// Sequential and random, reading and writing, in 4 KiB and 1 MiB, each to ±5 % within six
/// seconds. Commits are left out: there is nothing to make durable. `region_bytes` of memory are used.
pub fn ram(region_bytes: u64) -> Suite {
    use Direction::{Read, Write};
    use Pattern::{Random, Sequential};
    let job = |name: &str, direction, pattern, block_bytes| Job {
        stop: StopSpec {
            relative_half_width: 0.05,
            min_seconds: 2.0,
            max_seconds: 6.0,
            min_bytes: 0,
            max_bytes: u64::MAX,
        },
        ..Job::new(name, direction, pattern, block_bytes, 1)
    };
    let mut fill = job(job_names::SEQUENTIAL_WRITE, Write, Sequential, 1 << 20);
    fill.stop.min_bytes = region_bytes;
    Suite {
        name: "ram".into(),
        region_bytes,
        content: Content::Incompressible,
        seed: 1,
        max_seconds: Some(60.0),
        jobs: vec![
            fill,
            job(job_names::SEQUENTIAL_READ, Read, Sequential, 1 << 20),
            job("sequential-write-4k", Write, Sequential, 4 << 10),
            job("sequential-read-4k", Read, Sequential, 4 << 10),
            job("random-write-1m", Write, Random, 1 << 20),
            job("random-read-1m", Read, Random, 1 << 20),
            job(job_names::RANDOM_WRITE, Write, Random, 4 << 10),
            job(job_names::RANDOM_READ, Read, Random, 4 << 10),
        ],
    }
}
