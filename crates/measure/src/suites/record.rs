//! The table that iozone prints: three record sizes, six operations, a fresh file for each size,
//! flushes included.

use rubus_vocabulary::spec::{Content, Direction, Job, Pattern, StopSpec, Suite};
use rubus_vocabulary::suite_jobs as name;

use super::{MIB, Room, limits};
use crate::error::BenchError;

/// The file of the tables on the web: `iozone -s 100M`.
const WANTED_REGION: u64 = 100 * MIB;
/// A small file can be written often: a fast disk is done with it before anything is certain.
const PASSES: u32 = 8;
/// What is written at most.
const MAX_WRITTEN: u64 = 6000 * MIB;

/// The suite, in iozone's order.
pub(super) fn suite(room: &Room) -> Result<Suite, BenchError> {
    use Direction::{Read, Write};
    use Pattern::{Random, Sequential};
    let limits = limits(room, WANTED_REGION, MAX_WRITTEN, 12)?;
    let region = limits.region_bytes;
    let sizes = name::RECORD_SIZES;
    let sizes = sizes.iter().filter(|size| u64::from(**size) <= region);
    // For each size: the first write in passes, the rest of the file where they were cut short, a
    // write again and one in random order.
    let share = limits.budget_bytes / sizes.clone().count().max(1) as u64;
    let fitting = (share / region.max(1)).saturating_sub(3) / 2;
    let passes = u32::try_from(fitting).unwrap_or(PASSES).clamp(1, PASSES);
    let rest = share.saturating_sub(u64::from(passes + 1) * region);
    let again = (rest / 2).max(region);
    let mut jobs = Vec::new();
    for &size in sizes {
        let job = |operation: &str, direction, pattern| Job {
            stop: StopSpec {
                relative_half_width: 0.10,
                min_seconds: 2.5,
                max_seconds: 6.0,
                min_bytes: 0,
                max_bytes: match direction {
                    Write => again,
                    Read => u64::MAX,
                },
            },
            ..Job::new(&name::record(operation, size), direction, pattern, size, 1)
        };
        let mut first = job(name::RECORD_OPERATIONS[0], Write, Sequential);
        first.fresh = true;
        first.passes = passes;
        first.stop.min_bytes = region;
        first.stop.max_bytes = region;
        first.stop.max_seconds = 10.0;
        jobs.push(first);
        jobs.push(job(name::RECORD_OPERATIONS[1], Write, Sequential));
        jobs.push(job(name::RECORD_OPERATIONS[2], Read, Sequential));
        jobs.push(job(name::RECORD_OPERATIONS[3], Read, Sequential));
        jobs.push(job(name::RECORD_OPERATIONS[4], Read, Random));
        jobs.push(job(name::RECORD_OPERATIONS[5], Write, Random));
    }
    Ok(Suite {
        name: "record".into(),
        region_bytes: region,
        content: Content::Incompressible,
        seed: 1,
        max_seconds: Some(240.0),
        jobs,
    })
}
