//! One figure that is compared, wherever it comes from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::access::Access;
use crate::doubt::Doubt;
use crate::figure::{Figure, Unit};
use crate::spec::{Direction, Operation, Pattern};

/// One job of a subject. What the source does not say is absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubjectJob {
    /// Its name there.
    pub name: String,
    /// The section of a job file that it comes from, where there is one: copies and jobs of one
    /// name have names of their own, but one section.
    pub section: Option<String>,
    /// What it does, in words.
    pub title: String,
    /// Read or write.
    pub direction: Direction,
    /// Sequential or random.
    pub pattern: Pattern,
    /// Bytes per operation.
    pub block_bytes: Option<u32>,
    /// Operations kept in flight, by one copy.
    pub queue_depth: Option<u32>,
    /// Copies that ran at the same time and are reported together.
    pub copies: u32,
    /// Whether each operation is a commit.
    pub commit: bool,
    /// When what is written is made durable, where the source says it; absent for reads.
    pub sync: Option<WriteSync>,
    /// How the target was opened.
    pub access: Option<Access>,
    /// What was written, where the source says it for this job.
    pub content: Option<String>,
    /// The target of this job, of a run with several.
    pub on: Option<String>,
    /// Something else ran on the target at the same time: the other half of a mix, or the writing
    /// beside a small reader.
    pub is_shared: bool,
    /// Other jobs that ran at the same time and have figures of their own; absent where that is not known.
    #[serde(default)]
    pub beside: Option<u32>,
    /// What an operation was.
    pub operation: Operation,
    /// Whether the figures are of one direction, of both together, or of discards.
    pub scope: Scope,
    /// Options of fio that change what it does and that nothing else here says, by their names; absent where nothing
    /// tells which there were.
    #[serde(default)]
    pub stated: Option<BTreeMap<String, String>>,
    /// Throughput, in the unit that `unit` says.
    pub throughput: Figure,
    /// What the throughput counts.
    pub unit: Unit,
    /// Median latency in nanoseconds.
    pub p50_ns: Option<Figure>,
    /// The latency in nanoseconds that 99 % of the operations did not exceed.
    pub p99_ns: Option<Figure>,
    /// Doubts about this job.
    pub doubts: Vec<SubjectDoubt>,
}

/// When writes are made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteSync {
    /// Not while the job runs.
    Never,
    /// A flush after this number of writes.
    Flush {
        /// At least 1.
        writes: u32,
        /// `fsync` instead of `fdatasync`.
        metadata_too: bool,
    },
    /// The file is opened so that each write returns when it is durable.
    Open {
        /// `O_SYNC` instead of `O_DSYNC`.
        metadata_too: bool,
    },
}

impl WriteSync {
    /// Whether each write is durable before the next.
    pub fn is_each(self) -> bool {
        match self {
            WriteSync::Never => false,
            WriteSync::Flush { writes, .. } => writes == 1,
            WriteSync::Open { .. } => true,
        }
    }

    /// Whether the metadata is made durable as well.
    pub fn metadata_too(self) -> bool {
        match self {
            WriteSync::Never => false,
            WriteSync::Flush { metadata_too, .. } | WriteSync::Open { metadata_too } => {
                metadata_too
            }
        }
    }
}

/// What the figures of a job count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Reads or writes, as the direction says.
    #[default]
    OneDirection,
    /// Reads and writes together.
    BothDirections,
    /// Discards of blocks.
    Discards,
}

impl SubjectJob {
    /// One that is matched by its name alone, since it reads and writes no device.
    pub fn computed(title: String, throughput: Figure, unit: Unit) -> SubjectJob {
        SubjectJob {
            name: title.to_lowercase().replace(' ', "-"),
            section: None,
            title,
            direction: Direction::Read,
            pattern: Pattern::Sequential,
            block_bytes: None,
            queue_depth: None,
            copies: 1,
            commit: false,
            sync: None,
            access: None,
            content: None,
            on: None,
            is_shared: false,
            beside: None,
            operation: Operation::Compute,
            scope: Scope::OneDirection,
            stated: None,
            throughput,
            unit,
            p50_ns: None,
            p99_ns: None,
            doubts: Vec::new(),
        }
    }
}

/// A doubt of a subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubjectDoubt {
    /// Its kind, as in the JSON of a run: "other_traffic".
    pub kind: String,
    /// In words, with its figures.
    pub what: String,
}

impl SubjectDoubt {
    /// Of a doubt of a run.
    pub fn of(doubt: &Doubt) -> Self {
        let value = serde_json::to_value(doubt).unwrap_or_default();
        SubjectDoubt {
            kind: value["kind"].as_str().unwrap_or("other").to_string(),
            what: doubt.what(),
        }
    }
}
