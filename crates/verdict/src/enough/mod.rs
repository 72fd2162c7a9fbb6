//! Is the storage fast enough for a program? The program's own pattern of commits, measured, and an answer from their tail.
//!
//! Each program is a [`Workload`] in a file of `workloads`: how it writes, and the limits that it sets. `judge` answers from
//! what was measured, `text` words it. `docs/how-to/fast-enough.md` says where the limits come from.

pub mod evidence;
pub mod judge;
pub mod text;
mod workloads;

use std::ops::RangeInclusive;

use rubus_vocabulary::spec::{Content, FileNeed, Job, Suite};

pub use evidence::Evidence;
pub use judge::{Answer, Judgement, Question, judge};
pub use workloads::{LISTED, by_name, names};

/// How long a measurement takes unless the user says otherwise, in seconds.
pub const USUAL_S: f64 = 60.0;
/// How long it may take, in seconds.
pub const SECONDS: RangeInclusive<f64> = 10.0..=3600.0;
/// Seconds at the start that do not count.
const WARM_UP_S: f64 = 1.0;

/// A program that waits for its storage.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it is called in a sentence ("etcd").
    pub title: &'static str,
    /// How it writes, in a few words.
    pub writes: &'static str,
    /// What its storage has to keep.
    pub limits: Limits,
    /// What a stall beyond the limit does, after "a stall of 1 s or longer".
    pub stall_means: &'static str,
    /// Where the limits come from.
    pub source: &'static str,
    /// Makes the jobs, for a duration in seconds. The one named [`JUDGED`] is judged.
    make: fn(f64) -> Jobs,
}

/// The limits of a workload, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// 99 % of the commits shall take no longer.
    pub good_ns: u64,
    /// When 99 % of the commits take longer than `good_ns` and no longer than this, the storage is at the edge.
    pub edge_ns: u64,
    /// A single wait of this length is too long.
    pub stall_ns: u64,
    /// Commits per second that come whether the storage keeps up or not; none where the program waits for it.
    pub keeps_pace: Option<f64>,
}

/// Name of the job whose commits are judged.
pub const JUDGED: &str = "commits";

/// The jobs of a workload, and the files that they work on.
struct Jobs {
    jobs: Vec<Job>,
    needs: Vec<FileNeed>,
}

/// What is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The suite with the jobs to run.
    pub suite: Suite,
    /// The files that the jobs work on.
    pub needs: Vec<FileNeed>,
}

impl Workload {
    /// Its pattern for a duration of `seconds`.
    pub fn measurement(&self, seconds: f64) -> Measurement {
        let Jobs { jobs, needs } = (self.make)(seconds);
        let region_bytes = needs.iter().map(|need| need.region_bytes).max();
        Measurement {
            suite: Suite {
                name: format!("enough-{}", self.name),
                region_bytes: region_bytes.unwrap_or(0),
                content: Content::Incompressible,
                seed: 1,
                max_seconds: None,
                jobs,
            },
            needs,
        }
    }
}
