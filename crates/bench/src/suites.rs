//! The suites, as data, and what they will write.
//!
//! Adding a suite is adding a list of jobs here. How a job is run is none of this file's business.

use rubus_core::spec::{Content, Direction, Durability, Job, Pattern, StopSpec, Suite};
// The verdict finds its figures by these names.
use rubus_core::verdict::job as name;

use crate::error::BenchError;

const KIB: u32 = 1 << 10;
const MIB: u64 = 1 << 20;

/// What a suite may write at most, whatever the size of the target: 1 GiB.
pub const MOST_WRITTEN: u64 = 1 << 30;
/// The share of the free space that a suite may use: a tenth.
pub const SHARE_OF_FREE: u64 = 10;
/// The region that is wanted: 256 MiB, beyond the cache of cheap devices.
pub const WANTED_REGION: u64 = 256 * MIB;
/// The region below which random access says nothing: 4 MiB.
pub const LEAST_REGION: u64 = 4 * MIB;

/// The names of all suites.
pub const NAMES: [&str; 1] = ["quick"];

/// The suite of that name for a target with `room_bytes` of free space (a directory), or of
/// that size (a file or a device). `is_free_space` tells which of the two.
///
/// # Errors
/// [`BenchError::NoSpace`] when there is too little room; [`None`] when there is no such suite.
pub fn by_name(
    name: &str,
    path: &str,
    room_bytes: u64,
    is_free_space: bool,
) -> Option<Result<Suite, BenchError>> {
    match name {
        "quick" => Some(quick(path, room_bytes, is_free_space)),
        _ => None,
    }
}

/// What each job of `quick` may write, in parts of the whole; together at most [`PARTS`].
mod part {
    pub(super) const FILL: u64 = 22;
    pub(super) const RANDOM_4K: u64 = 5;
    pub(super) const RANDOM_4K_DEEP: u64 = 9;
    pub(super) const RANDOM_16K: u64 = 8;
    pub(super) const COMMITS: u64 = 4;
    pub(super) const BYSTANDER: u64 = 16;
}
const PARTS: u64 = 64;

/// The suite of the checkup: what a card, a stick or a disk does for its owner, within 90 s on
/// anything that does 10 MB/s and with a bounded wear. See [`by_name`] for the arguments.
///
/// # Errors
/// [`BenchError::NoSpace`] when there is too little room for a meaningful region.
pub fn quick(path: &str, room_bytes: u64, is_free_space: bool) -> Result<Suite, BenchError> {
    let budget = if is_free_space {
        MOST_WRITTEN.min(room_bytes / SHARE_OF_FREE)
    } else {
        MOST_WRITTEN
    };
    let room = if is_free_space { budget } else { room_bytes };
    let region_bytes = WANTED_REGION.min(room).min(budget / 4) / MIB * MIB;
    if region_bytes < LEAST_REGION {
        let needed = if is_free_space {
            LEAST_REGION * 4 * SHARE_OF_FREE
        } else {
            LEAST_REGION
        };
        return Err(BenchError::NoSpace {
            path: path.into(),
            what: if is_free_space {
                "of free space"
            } else {
                "in all"
            },
            available_bytes: room_bytes,
            needed_bytes: needed,
            remedy: if is_free_space {
                "free some space (the test uses a tenth of it at most) or name another directory"
            } else {
                "name a larger target"
            },
        });
    }
    Ok(Suite {
        name: "quick".into(),
        region_bytes,
        content: Content::Incompressible,
        seed: 1,
        max_seconds: Some(85.0),
        jobs: quick_jobs(region_bytes, budget / PARTS),
    })
}

fn quick_jobs(region_bytes: u64, part_bytes: u64) -> Vec<Job> {
    use Direction::{Read, Write};
    use Pattern::{Random, Sequential};
    let job = |name: &str, direction, pattern, block_bytes, queue_depth, parts: u64| Job {
        name: name.into(),
        direction,
        pattern,
        block_bytes,
        queue_depth,
        durability: Durability::AtEnd,
        stop: StopSpec {
            relative_half_width: 0.10,
            min_seconds: 3.0,
            max_seconds: 7.0,
            min_bytes: 0,
            max_bytes: match direction {
                Read => u64::MAX,
                Write => (parts * part_bytes).max(u64::from(block_bytes)),
            },
        },
        beside: None,
    };
    let mut fill = job(
        name::SEQUENTIAL_WRITE,
        Write,
        Sequential,
        1024 * KIB,
        1,
        part::FILL,
    );
    // This one fills the file: precision alone does not end it, and it may take longer.
    fill.stop.min_bytes = region_bytes;
    fill.stop.max_bytes = fill.stop.max_bytes.max(region_bytes);
    fill.stop.max_seconds = 20.0;
    let mut commits = job(name::COMMIT, Write, Sequential, 4 * KIB, 1, part::COMMITS);
    commits.durability = Durability::EachAppend;
    let mut loaded = job(
        name::BYSTANDER_WRITE,
        Write,
        Sequential,
        1024 * KIB,
        4,
        part::BYSTANDER,
    );
    loaded.beside = Some(Box::new(job(
        name::BYSTANDER_READ,
        Read,
        Random,
        4 * KIB,
        1,
        0,
    )));
    vec![
        fill,
        job(name::SEQUENTIAL_READ, Read, Sequential, 1024 * KIB, 1, 0),
        job(name::RANDOM_READ, Read, Random, 4 * KIB, 1, 0),
        job(name::RANDOM_READ_DEEP, Read, Random, 4 * KIB, 32, 0),
        job(
            name::RANDOM_WRITE,
            Write,
            Random,
            4 * KIB,
            1,
            part::RANDOM_4K,
        ),
        job(
            name::RANDOM_WRITE_DEEP,
            Write,
            Random,
            4 * KIB,
            32,
            part::RANDOM_4K_DEEP,
        ),
        job(
            name::RANDOM_WRITE_16K,
            Write,
            Random,
            16 * KIB,
            1,
            part::RANDOM_16K,
        ),
        commits,
        loaded,
    ]
}

/// The suite without the jobs that write, for a target whose contents must stay.
pub fn only_reads(suite: &Suite) -> Suite {
    let mut suite = suite.clone();
    suite.jobs.retain(|job| !writes(job));
    suite
}

/// Whether the job, or the one beside it, writes.
pub fn writes(job: &Job) -> bool {
    job.direction == Direction::Write || job.beside.as_deref().is_some_and(writes)
}

/// How many bytes the suite writes to the target at most: the write budgets of its jobs, and the
/// filling of the file where no job does that.
pub fn plan_writes(suite: &Suite, is_own_file: bool) -> u64 {
    let mut bytes = 0_u64;
    let mut jobs: Vec<&Job> = suite.jobs.iter().collect();
    while let Some(job) = jobs.pop() {
        if job.direction == Direction::Write {
            bytes = bytes.saturating_add(job.stop.max_bytes);
        }
        jobs.extend(job.beside.as_deref());
    }
    if is_own_file && !suite.jobs.first().is_some_and(|job| fills(suite, job)) {
        bytes = bytes.saturating_add(suite.region_bytes);
    }
    bytes
}

/// Whether the job writes the whole region from its start, so that running it first fills the file.
pub(crate) fn fills(suite: &Suite, job: &Job) -> bool {
    job.direction == Direction::Write
        && job.pattern == Pattern::Sequential
        && job.durability == Durability::AtEnd
        && job.stop.max_bytes >= suite.region_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_never_plans_more_than_a_gibibyte_or_a_tenth() {
        for room in [160 * MIB, 500 * MIB, 3 << 30, 10 << 30, 1 << 50] {
            let suite = quick("/x", room, true).unwrap();
            let planned = plan_writes(&suite, true);
            assert!(planned <= MOST_WRITTEN, "{planned} of {room}");
            assert!(planned <= room / SHARE_OF_FREE, "{planned} of {room}");
            assert!(suite.region_bytes >= LEAST_REGION);
        }
        let suite = quick("/x", 1 << 50, true).unwrap();
        assert_eq!(suite.region_bytes, WANTED_REGION);
    }

    #[test]
    fn a_small_device_is_used_whole_a_tiny_one_refused() {
        let suite = quick("/dev/x", 16 * MIB, false).unwrap();
        assert_eq!(suite.region_bytes, 16 * MIB);
        let error = quick("/dev/x", MIB, false).unwrap_err().to_string();
        assert!(error.contains("1.00 MiB in all"), "{error}");
        let error = quick("/home", 100 * MIB, true).unwrap_err().to_string();
        assert!(error.contains("100 MiB of free space"), "{error}");
    }

    #[test]
    fn names_within_a_suite_are_unique() {
        let suite = quick("/x", 1 << 40, true).unwrap();
        let mut names: Vec<&str> = Vec::new();
        for job in &suite.jobs {
            names.push(&job.name);
            names.extend(job.beside.as_deref().map(|job| job.name.as_str()));
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn a_suite_of_reads_must_fill_the_file_first() {
        let suite = only_reads(&quick("/x", 1 << 40, true).unwrap());
        assert_eq!(suite.jobs.len(), 3);
        assert_eq!(plan_writes(&suite, true), suite.region_bytes);
        assert_eq!(plan_writes(&suite, false), 0);
    }

    #[test]
    fn every_listed_name_is_a_suite() {
        for name in NAMES {
            assert!(by_name(name, "/x", 1 << 40, true).is_some());
        }
        assert!(by_name("quik", "/x", 1 << 40, true).is_none());
    }
}
