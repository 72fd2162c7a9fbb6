//! Four programs at once, each in its own part of the file, one job after the other: what fio's
//! example `tiobench-example.fio` asks for (4 KiB, direct, four copies of each job, 60 s at most).

use rubus_vocabulary::spec::{Content, Direction, Job, Pattern, Shape, StopSpec, Suite};

use super::{GIB, KIB, Room, limits};
use crate::error::BenchError;

/// Copies of each job.
const COPIES: u32 = 4;
/// The parts of the copies together: 512 MiB each, as in the example.
const WANTED_REGION: u64 = 2 * GIB;
/// What is written at most: the region filled, and twice again.
const MAX_WRITTEN: u64 = 8 * GIB;
/// As in the example; a job that is certain earlier ends earlier.
const MAX_S: f64 = 60.0;

pub(super) fn suite(room: &Room) -> Result<Suite, BenchError> {
    use Direction::{Read, Write};
    use Pattern::{Random, Sequential};
    let limits = limits(room, WANTED_REGION, MAX_WRITTEN, 3)?;
    let part = limits.region_bytes / u64::from(COPIES) / 4096 * 4096;
    let budget = (limits.budget_bytes - limits.region_bytes) / 2;
    let job = |name: &str, direction, pattern| Job {
        stop: StopSpec {
            relative_half_width: 0.05,
            min_seconds: 10.0,
            max_seconds: MAX_S,
            min_bytes: 0,
            max_bytes: match direction {
                Write => budget,
                Read => u64::MAX,
            },
        },
        shape: Some(Box::new(Shape {
            copies: COPIES,
            copy_offset_bytes: part,
            span_bytes: Some(part),
            time_based: true,
            ..Shape::default()
        })),
        ..Job::new(name, direction, pattern, 4 * KIB, 1)
    };
    Ok(Suite {
        name: "tiobench".into(),
        region_bytes: limits.region_bytes,
        content: Content::Incompressible,
        seed: 1,
        max_seconds: None,
        jobs: vec![
            job("sequential-write", Write, Sequential),
            job("random-write", Write, Random),
            job("sequential-read", Read, Sequential),
            job("random-read", Read, Random),
        ],
    })
}
