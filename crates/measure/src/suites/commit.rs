//! How long until a small write is safe: commits back to back, and the lone ones of a logger.

use rubus_vocabulary::spec::{
    Content, Direction, Durability, Job, Limit, Pattern, Shape, StopSpec, Suite,
};
use rubus_vocabulary::suite_jobs as name;

use super::{KIB, MIB, Room, limits};
use crate::error::BenchError;

const WANTED_REGION: u64 = 64 * MIB;
/// What is written at most.
const MAX_WRITTEN: u64 = 512 * MIB;
/// Entries of the logger, one per second.
const ENTRIES: u32 = 60;

pub(super) fn suite(room: &Room) -> Result<Suite, BenchError> {
    let limits = limits(room, WANTED_REGION, MAX_WRITTEN, 2)?;
    let share = (limits.budget_bytes - limits.region_bytes) / 4;
    let commits = |name: &str, durability, pattern| Job {
        durability,
        stop: StopSpec {
            relative_half_width: 0.05,
            min_seconds: 10.0,
            max_seconds: 20.0,
            min_bytes: 0,
            max_bytes: share,
        },
        ..Job::new(name, Direction::Write, pattern, 4 * KIB, 1)
    };
    let mut logger = commits(name::COMMIT_LOGGER, Durability::EachAppend, Pattern::Sequential);
    // Runs for its whole time: it is the latencies that are wanted, the rate is given.
    logger.stop.min_seconds = f64::from(ENTRIES);
    logger.stop.max_seconds = f64::from(ENTRIES);
    logger.shape = Some(Box::new(Shape {
        limits: [Limit::default(), Limit { iops: Some(1.0), ..Limit::default() }],
        ramp_s: Some(0.0),
        time_based: true,
        ..Shape::default()
    }));
    Ok(Suite {
        name: "commit".into(),
        region_bytes: limits.region_bytes,
        content: Content::Incompressible,
        seed: 1,
        max_seconds: None,
        jobs: vec![
            commits(name::COMMIT_APPEND, Durability::EachAppend, Pattern::Sequential),
            commits(name::COMMIT_IN_PLACE, Durability::EachInPlace, Pattern::Random),
            logger,
        ],
    })
}
