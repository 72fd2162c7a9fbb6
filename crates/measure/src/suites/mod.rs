//! The suites, as data, and what they will write. One file per suite.
//!
//! Adding a suite is adding a list of jobs in a file and a line to [`LISTED`]. How a job is run is none
//! of these files' business.

mod block_size;
mod capacity;
mod class;
mod commit;
mod full;
mod journal;
mod queue_depth;
mod quick;
mod ram;
mod record;
mod small_files;
mod stream;
mod sustained;
mod tiobench;

use rubus_vocabulary::machine::{BlockDevice, HopKind};
use rubus_vocabulary::platters::has_platters;
use rubus_vocabulary::spec::{
    Direction, Durability, Job, Operation, Pattern, RunsOn, Suite, SuiteSummary,
};

use crate::error::BenchError;
use crate::measurement::expected_s;

pub use capacity::margin;
pub use quick::MAX_WRITTEN;
pub use ram::ram;

const KIB: u32 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The share of the free space that the test file of a suite may have: a tenth.
pub const SHARE_OF_FREE: u64 = 10;
/// The region below which random access says nothing: 4 MiB.
pub const MIN_REGION: u64 = 4 * MIB;
/// What a job costs besides its own time, in seconds: set-up, warm-up and flush.
const AROUND_JOB_S: f64 = 1.0;

/// What a suite may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// The target, for messages.
    pub path: String,
    /// Free bytes of a directory, or the size of a file or device.
    pub bytes: u64,
    /// Which of the two.
    pub is_free_space: bool,
    /// Size of the test file or region, if the user wants another than the suite's own.
    pub region_bytes: Option<u64>,
    /// What may be written in all, if the user wants another limit than the suite's own.
    pub budget_bytes: Option<u64>,
    /// How many more files a directory's filesystem can hold, where it has a limit.
    pub files: Option<u64>,
    /// The least that a file takes there, in bytes.
    pub cluster_bytes: u64,
    /// Whether all of a device is to be tested and not only a sample, where there is the choice.
    pub is_whole: bool,
    /// How much writing the disk is made for.
    pub endurance: Endurance,
}

/// How much writing a disk is made for, as far as its kind tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Endurance {
    /// A card, a stick, or a disk of which nothing is known.
    #[default]
    Low,
    /// An SSD that is no card or stick, a hard disk.
    High,
}

impl Room {
    /// All of it, with the suite's own limits.
    pub fn new(path: &str, bytes: u64, is_free_space: bool) -> Room {
        Room {
            path: path.into(),
            bytes,
            is_free_space,
            region_bytes: None,
            budget_bytes: None,
            files: None,
            cluster_bytes: 4096,
            is_whole: false,
            endurance: Endurance::default(),
        }
    }
}

impl Endurance {
    /// Of a disk. What may be flash without much behind it counts as that: a card, a stick, a disk of which nothing is known.
    pub fn of(disk: &BlockDevice) -> Endurance {
        let is_on = |kind| disk.path.iter().any(|hop| hop.kind == kind);
        let is_small = disk.mmc.is_some() || disk.removable.get() != Some(false);
        let is_hidden = disk.path.is_empty() || is_on(HopKind::Virtio);
        let is_known = is_on(HopKind::Nvme) || has_platters(disk).is_some();
        if !is_small && !is_hidden && is_known { Endurance::High } else { Endurance::Low }
    }
}

/// A suite as a list shows it.
#[derive(Clone, Copy, Debug)]
pub struct Listed {
    /// What it is called.
    pub name: &'static str,
    /// The question that it answers, in one line.
    pub answers: &'static str,
    /// What it can be run on.
    pub runs_on: RunsOn,
    /// Its jobs on a target.
    make: fn(&Room) -> Result<Suite, BenchError>,
}

/// All suites, in the order in which they are listed.
pub const LISTED: &[Listed] = &[
    Listed {
        name: "quick",
        answers: "Which pipe is the narrowest? (the checkup)",
        runs_on: RunsOn::Anything,
        make: quick::suite,
    },
    Listed {
        name: "full",
        answers: "The same and more, to ±5 %",
        runs_on: RunsOn::Anything,
        make: full::suite,
    },
    Listed {
        name: "queue-depth",
        answers: "How many requests in flight pay off? (the knee)",
        runs_on: RunsOn::Anything,
        make: queue_depth::suite,
    },
    Listed {
        name: "block-size",
        answers: "From which block size does bandwidth dominate?",
        runs_on: RunsOn::Anything,
        make: block_size::suite,
    },
    Listed {
        name: "record",
        answers: "The iozone table: 4 KiB, 512 KiB, 16 MiB records",
        runs_on: RunsOn::Anything,
        make: record::suite,
    },
    Listed {
        name: "tiobench",
        answers: "Four threads at once: write, random write, read, random read",
        runs_on: RunsOn::Anything,
        make: tiobench::suite,
    },
    Listed {
        name: "stream",
        answers: "What does dd conv=fsync show, for random data and zeros?",
        runs_on: RunsOn::Anything,
        make: stream::suite,
    },
    Listed {
        name: "commit",
        answers: "How long until a small write is safe? (databases, loggers)",
        runs_on: RunsOn::Anything,
        make: commit::suite,
    },
    Listed {
        name: "journal",
        answers: "How fast does it take a system log? (systemd-journald, syslog)",
        runs_on: RunsOn::Anything,
        make: journal::suite,
    },
    Listed {
        name: "sustained",
        answers: "How long does the write cache last, and what follows?",
        runs_on: RunsOn::Anything,
        make: sustained::suite,
    },
    Listed {
        name: "class",
        answers: "Which SD speed class does it behave like?",
        runs_on: RunsOn::Anything,
        make: class::suite,
    },
    Listed {
        name: "small-files",
        answers: "What do small files cost: create, stat, read, delete?",
        runs_on: RunsOn::Directory,
        make: small_files::suite,
    },
    Listed {
        name: "capacity",
        answers: "Is it as big as it claims? (a device: a sample, or --full)",
        runs_on: RunsOn::Anything,
        make: capacity::suite,
    },
    Listed {
        name: "ram",
        answers: "What is the upper limit for any disk here? (on ram:SIZE)",
        runs_on: RunsOn::Memory,
        make: ram::suite,
    },
];

/// The names of all suites.
pub fn names() -> Vec<&'static str> {
    LISTED.iter().map(|listed| listed.name).collect()
}

/// The suite of that name for a target.
///
/// # Errors
/// [`BenchError::NoSpace`] when there is too little room; [`None`] when there is no such suite.
pub fn by_name(name: &str, room: &Room) -> Option<Result<Suite, BenchError>> {
    let listed = LISTED.iter().find(|listed| listed.name == name)?;
    Some((listed.make)(room))
}

/// The suite of the checkup; see [`by_name`].
///
/// # Errors
/// [`BenchError::NoSpace`] when there is too little room for a meaningful region.
pub fn quick(path: &str, room_bytes: u64, is_free_space: bool) -> Result<Suite, BenchError> {
    quick::suite(&Room::new(path, room_bytes, is_free_space))
}

impl Listed {
    /// What it is and what it costs on a large target, with its own limits.
    pub fn summary(&self) -> Option<SuiteSummary> {
        let is_own_file = matches!(self.runs_on, RunsOn::Anything | RunsOn::Directory);
        // A suite that writes everywhere is listed with what it does to a card.
        let (bytes, is_own_file) = match self.name {
            "capacity" => (64_000_000_000, false),
            _ => (1 << 50, is_own_file),
        };
        let suite = (self.make)(&Room::new("", bytes, is_own_file)).ok()?;
        let mut cost = Cost::of(&suite, is_own_file);
        if self.runs_on == RunsOn::Memory {
            cost.writes_bytes = 0;
        }
        Some(SuiteSummary {
            name: self.name.into(),
            answers: self.answers.into(),
            writes_bytes: cost.writes_bytes,
            about_s: cost.about_s.round(),
            most_s: cost.most_s.round(),
            runs_on: self.runs_on,
        })
    }
}

/// What a suite costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Bytes that it writes at most.
    pub writes_bytes: u64,
    /// About how long it takes, in seconds, on a target that is neither very fast nor very slow.
    pub about_s: f64,
    /// How long it takes at most, in seconds.
    pub most_s: f64,
}

impl Cost {
    /// The cost of a suite, on a file of our own or on something else.
    pub fn of(suite: &Suite, is_own_file: bool) -> Cost {
        /// What a usual disk writes while a file is filled, in bytes per second.
        const FILLS_AT: f64 = 40e6;
        let (mut about_s, mut most_s) = (0.0, 0.0);
        for job in &suite.jobs {
            let stop = &job.stop;
            about_s += AROUND_JOB_S + job.rest_before_s;
            most_s += AROUND_JOB_S + job.rest_before_s + stop.max_seconds;
            about_s += if job.until_cliff {
                stop.max_seconds.min(stop.max_bytes as f64 / FILLS_AT)
            } else if job.operation == Operation::Stamp {
                // Nothing is repeated and nothing ends early: its least is what a usual device takes.
                stop.min_seconds
            } else {
                expected_s(stop.min_seconds, stop.max_seconds)
            };
        }
        let fills = unfilled_bytes(suite, is_own_file) as f64;
        about_s += fills / FILLS_AT;
        most_s += fills / FILLS_AT * 4.0;
        let most_s = suite.max_seconds.unwrap_or(most_s);
        Cost { writes_bytes: plan_writes(suite, is_own_file), about_s: about_s.min(most_s), most_s }
    }
}

/// The suite without the jobs that write, for a target whose contents must stay.
pub fn only_reads(suite: &Suite) -> Suite {
    let mut suite = suite.clone();
    // Small files that were not made cannot be read.
    suite.jobs.retain(|job| !writes(job) && !job.operation.is_of_file());
    suite
}

/// Whether the job, or the one beside it, writes.
pub fn writes(job: &Job) -> bool {
    let mixed = job.shape.as_ref().and_then(|shape| shape.read_percent);
    job.direction == Direction::Write || mixed.is_some() || job.beside.iter().any(writes)
}

/// How many bytes the suite writes to the target at most: the write budgets of its jobs, and the
/// filling of the file where no job does that.
pub fn plan_writes(suite: &Suite, is_own_file: bool) -> u64 {
    let mut bytes = unfilled_bytes(suite, is_own_file);
    let mut jobs: Vec<&Job> = suite.jobs.iter().collect();
    while let Some(job) = jobs.pop() {
        // What moves no bytes writes none, whatever its limit.
        if writes(job) && job.block_bytes > 0 {
            let passes = u64::from(job.passes.max(1));
            bytes = bytes.saturating_add(job.stop.max_bytes.saturating_mul(passes));
        }
        jobs.extend(&job.beside);
    }
    bytes
}

/// How many bytes are written at most to fill a file of our own where its jobs do not: before the
/// first job, and after a job that emptied the file and was cut short.
fn unfilled_bytes(suite: &Suite, is_own_file: bool) -> u64 {
    if !is_own_file {
        return 0;
    }
    let emptied = suite.jobs.iter().enumerate().filter(|(index, job)| {
        let more = &suite.jobs[index + 1..];
        job.fresh && more.first().is_some_and(|next| !next.fresh)
    });
    let first = suite.jobs.first();
    let first = first.is_some_and(|job| job.operation.is_block() && !fills(suite, job));
    (emptied.count() as u64 + u64::from(first)) * suite.region_bytes
}

/// Whether the job writes the whole region from its start, so that running it first fills the file.
pub(crate) fn fills(suite: &Suite, job: &Job) -> bool {
    job.direction == Direction::Write
        && job.pattern == Pattern::Sequential
        && job.durability == Durability::AtEnd
        && job.shape.is_none()
        && job.stop.max_bytes >= suite.region_bytes
}

/// Region and write budget of a suite that is not bound to a tenth of the free space in all that it
/// writes, only in the size of its file.
struct Limits {
    region_bytes: u64,
    budget_bytes: u64,
}

/// What a suite gets that wants a region of `wanted_bytes` and writes `max_bytes` at most (half of
/// what is free, if that is less), in which the region fits at least `times`. A region wanted by the
/// user is taken as it is, with the budget grown to hold it.
fn limits(
    room: &Room,
    wanted_bytes: u64,
    max_bytes: u64,
    times: u64,
) -> Result<Limits, BenchError> {
    let file = if room.is_free_space { room.bytes / SHARE_OF_FREE } else { room.bytes };
    let spare = if room.is_free_space { room.bytes / 2 } else { u64::MAX };
    let own = room.budget_bytes.unwrap_or(max_bytes.min(spare));
    let region_bytes = match room.region_bytes {
        Some(bytes) => bytes,
        None => wanted_bytes.min(file).min(own / times) / MIB * MIB,
    };
    if region_bytes < MIN_REGION {
        return Err(too_small(room, times));
    }
    Ok(Limits { region_bytes, budget_bytes: own.max(times.saturating_mul(region_bytes)) })
}

/// The error of a suite whose budget must hold `times` times its smallest region.
fn too_small(room: &Room, times: u64) -> BenchError {
    let (what, needed_bytes, remedy) = match (room.budget_bytes, room.is_free_space) {
        (Some(_), _) => {
            ("to write", MIN_REGION * times, "allow more with --budget or leave it out")
        }
        (None, true) => (
            "of free space",
            MIN_REGION * SHARE_OF_FREE.max(2 * times),
            "free some space (the test file is a tenth of it at most) or name another directory",
        ),
        (None, false) => ("in all", MIN_REGION, "name a larger target"),
    };
    BenchError::NoSpace {
        path: room.path.clone(),
        what,
        available_bytes: room.budget_bytes.unwrap_or(room.bytes),
        needed_bytes,
        remedy,
    }
}

#[cfg(test)]
mod tests;
