//! The workloads, as data. One file per program: adding one is adding a file and a line to [`LISTED`].

mod camera_recorder;
mod database;
mod etcd;
mod git_server;
mod home_assistant;

use rubus_vocabulary::spec::{
    Direction, Durability, FileNeed, FileStart, FlushEvery, Job, Limit, Pattern, Shape, Sizes,
    StopSpec,
};

use super::{JUDGED, Jobs, Limits, WARM_UP_S, Workload};

const KIB: u32 = 1 << 10;
const MIB: u32 = 1 << 20;
const MS: u64 = 1_000_000;

/// All workloads, in the order in which they are listed.
pub const LISTED: &[Workload] = &[
    etcd::ETCD,
    home_assistant::HOME_ASSISTANT,
    database::DATABASE,
    git_server::GIT_SERVER,
    camera_recorder::CAMERA_RECORDER,
];

/// The names of all workloads.
pub fn names() -> Vec<&'static str> {
    LISTED.iter().map(|workload| workload.name).collect()
}

/// The workload of that name.
pub fn by_name(name: &str) -> Option<&'static Workload> {
    LISTED.iter().find(|workload| workload.name == name)
}

/// Commits appended to a log, of sizes between two bounds, at random times with `per_second` of them on average.
fn log_commits(seconds: f64, per_second: f64, sizes: (u32, u32)) -> Job {
    let shape = Shape {
        sizes: [None, Some(Sizes::Range(sizes.0, sizes.1))],
        unaligned: true,
        ..paced(per_second)
    };
    Job {
        durability: Durability::EachAppend,
        stop: for_all_of(seconds, per_second, sizes.1),
        shape: Some(Box::new(shape)),
        ..Job::new(JUDGED, Direction::Write, Pattern::Sequential, sizes.1, 1)
    }
}

/// Pieces written one behind the other past the page cache, at random times with `per_second` of them on average. Nothing is
/// flushed before the end.
fn direct_writes(seconds: f64, per_second: f64, piece_bytes: u32) -> Job {
    let in_order = Pattern::Sequential;
    Job {
        stop: for_all_of(seconds, per_second, piece_bytes),
        shape: Some(Box::new(paced(per_second))),
        ..Job::new(JUDGED, Direction::Write, in_order, piece_bytes, 1)
    }
}

/// Pages written to random places of the second file, and made durable together after every `pages` pages.
fn page_writes(seconds: f64, per_second: f64, page_bytes: u32, pages: u32) -> Job {
    let job = Job::new("pages", Direction::Write, Pattern::Random, page_bytes, 1);
    cached_writes(job, seconds, per_second, pages)
}

/// Blocks written one behind the other to the second file, and made durable together after every `blocks` blocks.
fn stream_writes(seconds: f64, per_second: f64, block_bytes: u32, blocks: u32) -> Job {
    let in_order = Pattern::Sequential;
    let job = Job::new("stream", Direction::Write, in_order, block_bytes, 1);
    cached_writes(job, seconds, per_second, blocks)
}

/// The job through the page cache on the second file, with `per_second` writes per second and an `fsync` after every
/// `writes` writes.
fn cached_writes(job: Job, seconds: f64, per_second: f64, writes: u32) -> Job {
    let shape = Shape {
        file: Some(1),
        flush_every: Some(FlushEvery { writes, metadata_too: true }),
        ..paced(per_second)
    };
    Job {
        through_cache: true,
        stop: for_all_of(seconds, per_second, job.block_bytes),
        shape: Some(Box::new(shape)),
        ..job
    }
}

/// One after the other at random times, `per_second` per second on average.
fn paced(per_second: f64) -> Shape {
    let limit = Limit { iops: Some(per_second), ..Limit::default() };
    Shape {
        limits: [Limit::default(), limit],
        poisson: true,
        ramp_s: Some(WARM_UP_S),
        time_based: true,
        one_at_a_time: true,
        ..Shape::default()
    }
}

/// Ends after this time. The most bytes are those that were announced; random arrivals exceed their mean.
fn for_all_of(seconds: f64, per_second: f64, most_bytes: u32) -> StopSpec {
    let writes = (seconds + WARM_UP_S) * per_second * 1.1;
    StopSpec {
        relative_half_width: 0.05,
        min_seconds: seconds,
        max_seconds: seconds,
        min_bytes: 0,
        max_bytes: writes as u64 * u64::from(most_bytes),
    }
}

/// A file that has its length before the first job and no contents.
fn hollow(name: &str, region_bytes: u64) -> FileNeed {
    FileNeed { name: name.into(), region_bytes, start: FileStart::Hollow }
}
