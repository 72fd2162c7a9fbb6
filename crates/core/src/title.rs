//! Jobs in plain words, for sentences and tables.

use crate::result::JobResult;
use crate::spec::{Direction, Durability, Job, Pattern};
use crate::units::bytes_iec;
use crate::verdict::job;

/// A measured job in plain words, at most 25 columns: "4 KiB random reads ×32".
pub fn job_title(result: &JobResult) -> String {
    title(
        &result.job,
        result.direction,
        if result.commit {
            None
        } else {
            Some(result.pattern)
        },
        result.block_bytes,
        result.queue_depth,
    )
}

/// A job that is still to be measured, in the same words.
pub fn spec_title(job: &Job) -> String {
    let commit = job.durability == Durability::EachAppend;
    title(
        &job.name,
        job.direction,
        if commit { None } else { Some(job.pattern) },
        job.block_bytes,
        job.queue_depth,
    )
}

/// `pattern` is `None` for commits.
fn title(
    name: &str,
    direction: Direction,
    pattern: Option<Pattern>,
    block_bytes: u32,
    queue_depth: u32,
) -> String {
    let block = block(block_bytes);
    match name {
        job::BYSTANDER_READ => return format!("{block} reads while writing"),
        job::BYSTANDER_WRITE => return "the writing meanwhile".into(),
        _ => {}
    }
    let verb = match direction {
        Direction::Read => "reads",
        Direction::Write => "writes",
    };
    let mut title = match pattern {
        None => format!("{block} commits"),
        Some(Pattern::Sequential) => format!("{block} sequential {verb}"),
        Some(Pattern::Random) => format!("{block} random {verb}"),
    };
    if queue_depth > 1 {
        title.push_str(&format!(" ×{queue_depth}"));
    }
    title
}

/// A block size without needless digits: "4 KiB", "1 MiB".
pub fn block(bytes: u32) -> String {
    match bytes {
        b if b >= 1 << 20 && b % (1 << 20) == 0 => format!("{} MiB", b >> 20),
        b if b >= 1 << 10 && b % (1 << 10) == 0 => format!("{} KiB", b >> 10),
        b => bytes_iec(b.into()),
    }
}
