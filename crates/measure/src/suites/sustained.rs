//! Writing on and on: how long does the write cache last, what comes after it, what does a rest
//! give back?

use rubus_vocabulary::spec::{Content, Direction, Job, Pattern, StopSpec, Suite};
use rubus_vocabulary::suite_jobs as name;

use super::{GIB, KIB, MIB, Room, limits};
use crate::error::BenchError;

/// What is written at most, the second time included. Give a larger `--budget` for a disk with a
/// large cache.
const MAX_WRITTEN: u64 = 16 * GIB;
/// Each of the two writings ends here whatever comes, in seconds.
const MAX_S: f64 = 600.0;
/// The rest between them, in seconds.
const REST_S: f64 = 30.0;

/// The suite. Its file may be as large as half of what is free, since a cache that is larger than
/// the file might never be left.
pub(super) fn suite(room: &Room) -> Result<Suite, BenchError> {
    let mut room = room.clone();
    let most = room.budget_bytes.unwrap_or(MAX_WRITTEN);
    if room.region_bytes.is_none() {
        let half = if room.is_free_space { room.bytes / 2 } else { room.bytes };
        // Too little for any file is told by the limits below.
        room.region_bytes =
            Some(half.min(most / 2) / MIB * MIB).filter(|region| *region >= 8 * MIB);
    }
    let limits = limits(&room, GIB, MAX_WRITTEN, 2)?;
    let each = limits.budget_bytes / 2;
    let job = |name: &str, rest_before_s| Job {
        stop: StopSpec {
            relative_half_width: 0.05,
            min_seconds: MAX_S,
            max_seconds: MAX_S,
            min_bytes: 0,
            max_bytes: each,
        },
        until_cliff: true,
        rest_before_s,
        // Larger blocks give nothing more, and a throttled control group lets those of 1 MiB that come
        // through io_uring pass at half of its limit (fio's as well; Linux 6.18).
        ..Job::new(name, Direction::Write, Pattern::Sequential, 512 * KIB, 8)
    };
    Ok(Suite {
        name: "sustained".into(),
        region_bytes: limits.region_bytes,
        content: Content::Incompressible,
        seed: 1,
        max_seconds: None,
        jobs: vec![job(name::SUSTAINED, 0.0), job(name::SUSTAINED_AGAIN, REST_S)],
    })
}
