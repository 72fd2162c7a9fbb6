//! The work of one job in full: what a lane needs to begin, and the choice among the engines.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rubus_core::spec::{Content, Direction, Durability, Job, Pattern};

/// Which loop does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// One operation at a time in one thread.
    Positional,
    /// io_uring, one thread.
    Ring,
    /// One thread per operation in flight.
    Threads,
}

impl Engine {
    /// The name in results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Engine::Positional => "positional",
            Engine::Ring => "ring",
            Engine::Threads => "threads",
        }
    }
}

/// One job on one open file, down to the last number.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    /// Where the operations go.
    pub(crate) file: Arc<OwnedFd>,
    /// Which loop does them.
    pub(crate) engine: Engine,
    /// Read or write.
    pub(crate) direction: Direction,
    /// In which order.
    pub(crate) pattern: Pattern,
    /// Bytes per operation.
    pub(crate) block_bytes: u32,
    /// Operations in flight, at least 1.
    pub(crate) queue_depth: u32,
    /// When writes are made durable.
    pub(crate) durability: Durability,
    /// Bytes that are visited, from the start of the file.
    pub(crate) region_bytes: u64,
    /// Where appending writes begin; absent when they go round the region instead.
    pub(crate) append_from: Option<u64>,
    /// Writes go through the page cache, so each must wait until the device has it.
    pub(crate) settles: bool,
    /// What is written.
    pub(crate) content: Content,
    /// Seed of offsets and content.
    pub(crate) seed: u64,
    /// Operations that may be issued.
    pub(crate) most_operations: u64,
    /// The warm-up is over after this time or number of operations, whichever comes first.
    pub(crate) warm_up_ns: u64,
    /// See `warm_up_ns`.
    pub(crate) warm_up_operations: u64,
}

impl Work {
    /// How many lanes the work is shared by.
    pub(crate) fn lanes(&self) -> u32 {
        match self.engine {
            Engine::Positional | Engine::Ring => 1,
            // No lane without an operation of its own.
            Engine::Threads => u64::from(self.queue_depth).min(self.most_operations) as u32,
        }
    }

    /// The operations that lane number `lane` may issue.
    pub(crate) fn share_of(&self, operations: u64, lane: u32) -> u64 {
        let lanes = u64::from(self.lanes());
        operations / lanes + u64::from(u64::from(lane) < operations % lanes)
    }

    /// What the operations are called.
    pub(crate) fn is_write(&self) -> bool {
        self.direction == Direction::Write
    }

    /// Whether each operation is made durable.
    pub(crate) fn is_commit(&self) -> bool {
        is_commit_job(self.direction, self.durability)
    }
}

/// Whether each operation of the job is a commit.
pub(crate) fn is_commit(job: &Job) -> bool {
    is_commit_job(job.direction, job.durability)
}

fn is_commit_job(direction: Direction, durability: Durability) -> bool {
    direction == Direction::Write && durability == Durability::EachAppend
}
