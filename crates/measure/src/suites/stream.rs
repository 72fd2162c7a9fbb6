//! One file written and read like `dd` does it: through the page cache, in order, with the final
//! flush counted, once with data that does not compress and once with zeros.

use rubus_vocabulary::spec::{Content, Direction, Job, Pattern, StopSpec, Suite};
use rubus_vocabulary::suite_jobs as name;

use super::{KIB, MIB, Room, limits};
use crate::error::BenchError;

/// A file that fits the page cache of a small board, so that it is the flush that counts.
const WANTED_REGION: u64 = 128 * MIB;
/// A rate whose flush comes at the end has an interval only over several whole passes.
const PASSES: u32 = 8;
/// What is written at most.
const MAX_WRITTEN: u64 = (2 * PASSES as u64 + 1) * WANTED_REGION;

pub(super) fn suite(room: &Room) -> Result<Suite, BenchError> {
    let limits = limits(room, WANTED_REGION, MAX_WRITTEN, 3)?;
    let region = limits.region_bytes;
    let fitting = (limits.budget_bytes - region) / 2 / region.max(1);
    let passes = u32::try_from(fitting).unwrap_or(PASSES).clamp(1, PASSES);
    let job = |name: &str, direction, content| Job {
        stop: StopSpec {
            relative_half_width: 0.10,
            min_seconds: 3.0,
            max_seconds: 60.0,
            min_bytes: region,
            max_bytes: region,
        },
        through_cache: true,
        fresh: direction == Direction::Write,
        passes,
        content,
        ..Job::new(name, direction, Pattern::Sequential, 1024 * KIB, 1)
    };
    Ok(Suite {
        name: "stream".into(),
        region_bytes: region,
        content: Content::Incompressible,
        seed: 1,
        max_seconds: Some(190.0),
        jobs: vec![
            // The zeros first: the reading that follows is of what does not compress.
            job(name::STREAM_ZEROS, Direction::Write, Some(Content::Zeros)),
            job(name::STREAM_WRITE, Direction::Write, Some(Content::Incompressible)),
            job(name::STREAM_READ, Direction::Read, None),
        ],
    })
}
