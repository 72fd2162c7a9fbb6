//! The SD Association's classes: application classes by random access, speed classes by writing in
//! order.
//!
//! After the Physical Layer Simplified Specification 9.10: random operations of 4 KiB within 256 MiB
//! (4.16.2.4), writing in units of 4 MiB over 1 GB (4.16.1). The card's state before is not the
//! specification's, so the answer is how the card behaves here.

use rubus_vocabulary::spec::{Content, Direction, Job, Pattern, StopSpec, Suite};
use rubus_vocabulary::suite_jobs as name;

use super::{GIB, KIB, MIB, Room, limits};
use crate::error::BenchError;

/// The range of the random operations.
const WANTED_REGION: u64 = 256 * MIB;
/// The bytes that are written in order.
const IN_ORDER: u64 = GIB;
/// What is written at most.
const MAX_WRITTEN: u64 = 3 * GIB;

/// The suite. A1 is for hosts that send one command after the other, A2 for those that queue them.
pub(super) fn suite(room: &Room) -> Result<Suite, BenchError> {
    use Direction::{Read, Write};
    use Pattern::{Random, Sequential};
    let limits = limits(room, WANTED_REGION, MAX_WRITTEN, 4)?;
    let in_order = IN_ORDER.min(limits.budget_bytes / 2).max(limits.region_bytes);
    let share = (limits.budget_bytes - in_order) / 2;
    let job = |name: &str, direction, depth| Job {
        stop: StopSpec {
            relative_half_width: 0.05,
            min_seconds: 10.0,
            max_seconds: 20.0,
            min_bytes: 0,
            max_bytes: match direction {
                Write => share,
                Read => u64::MAX,
            },
        },
        ..Job::new(name, direction, Random, 4 * KIB, depth)
    };
    let mut writing = Job::new(name::CLASS_WRITE, Write, Sequential, 4096 * KIB, 1);
    // The slowest unit counts, so precision does not end it.
    writing.stop = StopSpec {
        relative_half_width: 0.05,
        min_seconds: 20.0,
        max_seconds: 60.0,
        min_bytes: in_order,
        max_bytes: in_order,
    };
    Ok(Suite {
        name: "class".into(),
        region_bytes: limits.region_bytes,
        content: Content::Incompressible,
        seed: 1,
        max_seconds: Some(180.0),
        jobs: vec![
            writing,
            job(name::CLASS_READ, Read, 1),
            job(name::CLASS_READ_DEEP, Read, 32),
            job(name::CLASS_RANDOM_WRITE, Write, 1),
            job(name::CLASS_RANDOM_WRITE_DEEP, Write, 32),
        ],
    })
}
