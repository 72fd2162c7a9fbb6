//! What a tree of small files costs: the work of package managers, checkouts and mail boxes.

use rubus_vocabulary::spec::{
    Content, Direction, Durability, Job, Operation, Pattern, StopSpec, Suite,
};

use super::{KIB, MIB, Room, SHARE_OF_FREE, too_small};
use crate::error::BenchError;

/// Size of a file.
const FILE: u32 = 4 * KIB;
/// All files that exist at a time are no more than this: 96 Ki of them.
const MAX: u64 = 384 * MIB;
/// Maximum number of passes of creating and deleting, with new files each time.
const PASSES: u32 = 6;
/// Minimum number of files per pass for a result: 256.
const MIN_FILES: u64 = 256;
/// Workers of the phases with several.
const WORKERS: u32 = 4;
/// Files that are made durably, by one worker or several: 8192 at most.
const MAX_DURABLE: u64 = 32 * MIB;

/// Create, look at, read and delete, alone and with four at once, then create durably.
pub(super) fn suite(room: &Room) -> Result<Suite, BenchError> {
    let max_files = room.files.map_or(u64::MAX, |files| files / SHARE_OF_FREE);
    // A file takes at least one cluster.
    let per_file = u64::from(FILE).max(room.cluster_bytes);
    let wanted = room.region_bytes.unwrap_or(MAX.min(room.bytes / SHARE_OF_FREE));
    let budget = room.budget_bytes.map_or(u64::MAX, |bytes| bytes / 3);
    let most = max_files.min(wanted.min(budget) / per_file);
    let per_pass = most / u64::from(PASSES) / 64 * 64;
    if per_pass < MIN_FILES {
        if room.files.is_some_and(|_| max_files < wanted / per_file) {
            return Err(BenchError::Target {
                path: room.path.clone(),
                reason: format!(
                    "it can hold only {} more files, and the test may make a tenth of them; name \
                     another directory",
                    room.files.unwrap_or(0)
                ),
            });
        }
        return Err(too_small(room, u64::from(PASSES)));
    }
    let pass_bytes = per_pass * u64::from(FILE);
    Ok(Suite {
        name: "small-files".into(),
        region_bytes: pass_bytes * u64::from(PASSES),
        content: Content::Incompressible,
        seed: 1,
        max_seconds: Some(240.0),
        jobs: jobs(pass_bytes),
    })
}

fn jobs(pass_bytes: u64) -> Vec<Job> {
    let durable_bytes = pass_bytes.min(MAX_DURABLE);
    vec![
        passes("create", Operation::CreateFile, 1, pass_bytes),
        look("stat", Operation::StatFile, 1),
        look("stat-4", Operation::StatFile, WORKERS),
        look("read", Operation::ReadFile, 1),
        look("read-4", Operation::ReadFile, WORKERS),
        passes("delete", Operation::DeleteFile, 1, u64::MAX),
        passes("create-4", Operation::CreateFile, WORKERS, pass_bytes),
        passes("delete-4", Operation::DeleteFile, WORKERS, u64::MAX),
        durable("create-durably", 1, durable_bytes),
        durable("create-durably-4", WORKERS, durable_bytes),
    ]
}

fn job(name: &str, operation: Operation, workers: u32, max_bytes: u64) -> Job {
    use Operation::{CreateFile, CreateFileDurably, ReadFile};
    let (direction, pattern) = match operation {
        Operation::StatFile | ReadFile => (Direction::Read, Pattern::Random),
        _ => (Direction::Write, Pattern::Sequential),
    };
    let block_bytes = match operation {
        CreateFile | CreateFileDurably | ReadFile => FILE,
        _ => 0,
    };
    Job {
        operation,
        stop: StopSpec {
            relative_half_width: 0.10,
            min_seconds: 2.0,
            max_seconds: 7.0,
            min_bytes: 0,
            max_bytes,
        },
        ..Job::new(name, direction, pattern, block_bytes, workers)
    }
}

/// Files are made and removed in memory; what it costs shows when they are flushed, so that only
/// whole passes can be timed.
fn passes(name: &str, operation: Operation, workers: u32, pass_bytes: u64) -> Job {
    let mut job = job(name, operation, workers, pass_bytes);
    job.passes = PASSES;
    job.stop.max_seconds = 25.0;
    job
}

fn look(name: &str, operation: Operation, workers: u32) -> Job {
    job(name, operation, workers, u64::MAX)
}

fn durable(name: &str, workers: u32, max_bytes: u64) -> Job {
    let mut job = job(name, Operation::CreateFileDurably, workers, max_bytes);
    job.durability = Durability::EachInPlace;
    job
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suites::plan_writes;

    #[test]
    fn never_more_than_a_tenth_of_the_space_or_of_the_files() {
        for bytes in [100 * MIB, 1 << 30, 1 << 50] {
            for files in [None, Some(100_000), Some(1 << 40)] {
                let room = Room { files, ..Room::new("/x", bytes, true) };
                let suite = suite(&room).expect("there is room");
                let count = suite.region_bytes / u64::from(FILE);
                assert!(suite.region_bytes <= bytes / SHARE_OF_FREE);
                assert!(files.is_none_or(|files| count <= files / SHARE_OF_FREE));
                assert!(suite.region_bytes <= MAX);
            }
        }
    }

    #[test]
    fn large_clusters_are_reckoned_with() {
        let room = Room { cluster_bytes: 128 << 10, ..Room::new("/x", 10 << 30, true) };
        let suite = suite(&room).expect("there is room");
        assert!(suite.region_bytes / u64::from(FILE) * (128 << 10) <= MAX);
    }

    #[test]
    fn a_budget_holds_for_all_that_is_written() {
        let room = Room { budget_bytes: Some(60 * MIB), ..Room::new("/x", 1 << 50, true) };
        let suite = suite(&room).expect("there is room");
        assert!(plan_writes(&suite, true) <= 60 * MIB);
    }

    #[test]
    fn too_few_files_are_said_to_be_the_reason() {
        let room = Room { files: Some(900), ..Room::new("/x", 1 << 50, true) };
        let error = suite(&room).expect_err("no room").to_string();
        assert!(error.contains("only 900 more files"), "{error}");
        assert!(suite(&Room::new("/x", 1 << 20, true)).is_err());
    }
}
