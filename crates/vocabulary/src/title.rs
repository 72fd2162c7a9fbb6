//! Jobs in plain words, for sentences and tables.

use crate::job_names;
use crate::result::JobResult;
use crate::spec::{Direction, Job, Operation, Pattern};
use crate::units::block;

/// A measured job in plain words, at most 25 columns: "4 KiB random reads ×32".
pub fn job_title(result: &JobResult) -> String {
    if let Some(title) = &result.title {
        return shortened(title);
    }
    title(
        &result.job,
        result.operation,
        result.direction,
        if result.commit { None } else { Some(result.pattern) },
        result.block_bytes,
        result.queue_depth,
    )
}

/// A job that is still to be measured, in the same words.
pub fn spec_title(job: &Job) -> String {
    if job.shape.is_some() && job.operation.is_block() {
        return shortened(&job.name);
    }
    let commit = job.durability.is_each();
    title(
        &job.name,
        job.operation,
        job.direction,
        if commit { None } else { Some(job.pattern) },
        job.block_bytes,
        job.queue_depth,
    )
}

/// What a result of a job with a shape is called: its name in the job file, with its direction where it
/// has both.
pub fn shaped_title(job: &Job, direction: Direction) -> Option<String> {
    let shape = job.shape.as_ref().filter(|_| job.operation.is_block())?;
    let mixes = shape.read_percent.is_some_and(|percent| (1..100).contains(&percent));
    Some(match (mixes, direction) {
        (false, _) => job.name.clone(),
        (true, Direction::Read) => format!("{}: reads", job.name),
        (true, Direction::Write) => format!("{}: writes", job.name),
    })
}

/// At most 25 columns of a job's name; its end says more than its middle.
fn shortened(name: &str) -> String {
    const MAX: usize = 25;
    let all: Vec<char> = name.chars().collect();
    if all.len() <= MAX {
        return name.into();
    }
    let (start, end) = (&all[..MAX - 11], &all[all.len() - 10..]);
    start.iter().chain(['…'].iter()).chain(end).collect()
}

/// `pattern` is `None` for commits.
fn title(
    name: &str,
    operation: Operation,
    direction: Direction,
    pattern: Option<Pattern>,
    block_bytes: u32,
    queue_depth: u32,
) -> String {
    let block = block(block_bytes);
    match name {
        job_names::BYSTANDER_READ => return format!("{block} reads while writing"),
        job_names::BYSTANDER_WRITE => return "1 MiB background writes".into(),
        _ => {}
    }
    let verb = match direction {
        Direction::Read => "reads",
        Direction::Write => "writes",
    };
    let mut title = match (operation, pattern) {
        (Operation::CreateFile, _) => "creating files".into(),
        (Operation::CreateFileDurably, _) => "creating, each fsynced".into(),
        (Operation::StatFile, _) => "file attributes".into(),
        (Operation::ReadFile, _) => "reading files".into(),
        (Operation::DeleteFile, _) => "deleting files".into(),
        (Operation::Compute, _) => name.into(),
        (Operation::Stamp, Some(Pattern::Random)) => match direction {
            Direction::Write => "stamps all over".into(),
            Direction::Read => "read back all over".into(),
        },
        (Operation::Stamp, _) => match direction {
            Direction::Write => "stamps in a row".into(),
            Direction::Read => "read back in a row".into(),
        },
        (Operation::Block, None) => format!("{block} commits"),
        (Operation::Block, Some(Pattern::Sequential)) => format!("{block} sequential {verb}"),
        (Operation::Block, Some(Pattern::Random)) => format!("{block} random {verb}"),
    };
    if queue_depth > 1 {
        title.push_str(&format!(" ×{queue_depth}"));
    }
    title
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_keeps_its_start_and_end() {
        assert_eq!(shortened("random reads"), "random reads");
        let long = shortened("a-name-that-somebody-made-very-long: writes");
        assert_eq!(long, "a-name-that-so…ng: writes");
        assert_eq!(long.chars().count(), 25);
    }
}
