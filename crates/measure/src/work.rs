//! The work of one job in full: what a worker needs to begin, and the choice among the engines.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rubus_vocabulary::spec::{Content, Direction, Durability, Pattern};

use crate::course::is_commit_job;
use crate::general::{General, READS, WRITES};
use crate::lanes::share;
use crate::remote::Connections;

/// Which loop does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// One operation at a time in one thread.
    Positional,
    /// io_uring: several rings, each in a thread of its own with a share of the depth.
    Ring {
        /// Maximum number of rings; see [`Work::lanes`].
        lanes: u32,
        /// Completions are polled for.
        polled: bool,
    },
    /// One thread per operation in flight.
    Threads,
    /// One copy at a time from or to a mapping of the file, in one thread.
    Mapped,
    /// A connection of our own to a network disk, one thread for each.
    Wire,
}

impl Engine {
    /// The name in results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Engine::Positional => "positional",
            Engine::Ring { .. } => "ring",
            Engine::Threads => "threads",
            Engine::Mapped => "mmap",
            Engine::Wire => "nbd",
        }
    }
}

/// One job on one open file, down to the last number.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    /// Where the operations go, unless that is a network disk.
    pub(crate) file: Arc<OwnedFd>,
    /// The network disk where the operations go.
    pub(crate) remote: Option<Arc<Connections>>,
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
    /// The operations pass through the page cache.
    pub(crate) is_buffered: bool,
    /// Threads are wanted, whatever else would suit.
    pub(crate) one_at_a_time: bool,
    /// Files are mapped, whatever else would suit.
    pub(crate) is_mapped: bool,
    /// Where trying out io_uring may write; nowhere if absent.
    pub(crate) trial_from: Option<u64>,
    /// What is written.
    pub(crate) content: Content,
    /// Seed of offsets and content.
    pub(crate) seed: u64,
    /// Operations that may be issued.
    pub(crate) max_operations: u64,
    /// The warm-up is over after this time or number of operations, whichever comes first.
    pub(crate) warm_up_ns: u64,
    /// See `warm_up_ns`.
    pub(crate) warm_up_operations: u64,
    /// How long after the others of its group it begins.
    pub(crate) delay_ns: u64,
    /// What a shaped job does, in place of direction, pattern, block size, region and number of
    /// operations above.
    pub(crate) general: Option<Arc<General>>,
}

impl Work {
    /// How many workers the work is shared by.
    pub(crate) fn workers(&self) -> u32 {
        if let Some(general) = &self.general {
            return general.copies.len() as u32 * self.workers_per_copy();
        }
        match self.engine {
            Engine::Positional | Engine::Mapped => 1,
            // No worker without an operation of its own.
            Engine::Ring { lanes, .. } => self.at_most_one_each(lanes),
            Engine::Threads => u64::from(self.queue_depth).min(self.max_operations) as u32,
            Engine::Wire => {
                self.at_most_one_each(self.remote.as_ref().map_or(1, |remote| remote.wanted()))
            }
        }
    }

    /// How many workers each copy of a shaped job is shared by.
    pub(crate) fn workers_per_copy(&self) -> u32 {
        match self.engine {
            Engine::Positional | Engine::Mapped | Engine::Ring { .. } | Engine::Wire => 1,
            Engine::Threads => self.queue_depth,
        }
    }

    /// All files that the operations go to, each once.
    pub(crate) fn files(&self) -> Vec<Arc<OwnedFd>> {
        let Some(general) = &self.general else {
            return vec![Arc::clone(&self.file)];
        };
        let mut files: Vec<Arc<OwnedFd>> = Vec::new();
        for file in general.copies.iter().flat_map(|copy| &copy.files) {
            if !files.iter().any(|known| Arc::ptr_eq(known, file)) {
                files.push(Arc::clone(file));
            }
        }
        files
    }

    /// The directions that have an account of their own, in order.
    pub(crate) fn sides(&self) -> Vec<Direction> {
        match &self.general {
            None => vec![self.direction],
            Some(general) => [(READS, Direction::Read), (WRITES, Direction::Write)]
                .into_iter()
                .filter(|&(side, _)| general.has(side))
                .map(|(_, direction)| direction)
                .collect(),
        }
    }

    /// The operations that worker number `worker` may issue.
    pub(crate) fn share_of(&self, operations: u64, worker: u32) -> u64 {
        share(operations, self.workers(), worker)
    }

    /// The operations that worker number `worker` keeps in flight.
    pub(crate) fn depth_of(&self, worker: u32) -> u32 {
        self.share_of(u64::from(self.queue_depth), worker) as u32
    }

    /// How many rings share the queue of one copy of the job; 1 where none does.
    pub(crate) fn lanes(&self) -> u32 {
        match (self.engine, &self.general) {
            (Engine::Ring { .. }, None) => self.workers(),
            _ => 1,
        }
    }

    /// Whether completions are polled for: then a thread is busy all the time, whatever it waits for.
    pub(crate) fn is_polled(&self) -> bool {
        matches!(self.engine, Engine::Ring { polled: true, .. })
    }

    /// Whether completions could be polled for: of plain operations past the page cache.
    pub(crate) fn may_be_polled(&self) -> bool {
        self.general.is_none() && !self.is_commit() && !self.is_buffered && !self.settles
    }

    /// At most `wanted` workers, none without an operation of its own.
    fn at_most_one_each(&self, wanted: u32) -> u32 {
        let most = u64::from(self.queue_depth).min(self.max_operations);
        u64::from(wanted).min(most).max(1) as u32
    }

    /// Whether there are writes among the operations.
    pub(crate) fn is_write(&self) -> bool {
        match &self.general {
            Some(general) => general.has(WRITES),
            None => self.direction == Direction::Write,
        }
    }

    /// Whether each operation is made durable.
    pub(crate) fn is_commit(&self) -> bool {
        is_commit_job(self.direction, self.durability)
    }
}
