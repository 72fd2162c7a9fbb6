//! Sentences of suites whose results speak for themselves: small files, memory; and how to look
//! again at a device that was tested for its size.

use rubus_vocabulary::finding::Finding;
use rubus_vocabulary::result::{JobResult, Run, TargetKind};
use rubus_vocabulary::spec::{Operation, Pattern};
use rubus_vocabulary::units::{duration_ns, iops, rate_si};

use rubus_draw::words::{block, plus_minus};

/// What there is to say of the run, if it is one of these.
pub(super) fn sentences(run: &Run) -> Vec<String> {
    [small_files(run), memory(run), look_again(run)].into_iter().flatten().collect()
}

/// What a person waits for: a thousand files made, read and deleted, and as a package manager makes
/// them.
fn small_files(run: &Run) -> Option<String> {
    let first = run.results.iter().find(|r| r.operation.is_of_file())?;
    let of = |operation: Operation| {
        let alone = |result: &&JobResult| result.operation == operation && result.queue_depth == 1;
        let found = run.results.iter().find(alone);
        found.filter(|result| result.iops.value > 0.0)
    };
    let thousand = |result: &JobResult| {
        format!("{} ({})", duration_ns((1e12 / result.iops.value) as u64), plus_minus(&result.iops))
    };
    let mut parts = Vec::new();
    for (operation, verb) in [
        (Operation::CreateFile, "making"),
        (Operation::ReadFile, "reading"),
        (Operation::DeleteFile, "deleting"),
        (Operation::CreateFileDurably, "making them durably one by one, as package managers do,"),
    ] {
        if let Some(result) = of(operation) {
            parts.push(format!("{verb} takes {}", thousand(result)));
        }
    }
    let size = block(first.block_bytes.max(1));
    let last = parts.pop()?;
    let text = if parts.is_empty() { last } else { format!("{}, {last}", parts.join(", ")) };
    Some(format!("Of a thousand files of {size}, {text}."))
}

/// What no disk here can exceed.
fn memory(run: &Run) -> Option<String> {
    if run.target.kind != TargetKind::Ram {
        return None;
    }
    let best = |pattern| {
        let fits = move |result: &&JobResult| result.pattern == pattern;
        let results = run.results.iter().filter(fits);
        results.max_by(|a, b| f64::total_cmp(&a.iops.value, &b.iops.value))
    };
    let row = run
        .results
        .iter()
        .max_by(|a, b| f64::total_cmp(&a.bytes_per_second.value, &b.bytes_per_second.value))?;
    let random = match best(Pattern::Random) {
        Some(result) => format!(
            " and {} random operations of {} per second",
            iops(result.iops.value),
            block(result.block_bytes)
        ),
        None => String::new(),
    };
    Some(format!(
        "No disk here can look faster than memory does: {}{random} are what this machine's kernel and memory carry.",
        rate_si(row.bytes_per_second.value)
    ))
}

/// A device that keeps what it was given only while it has power is found after pulling it out.
fn look_again(run: &Run) -> Option<String> {
    let is_capacity = |finding: &Finding| match finding {
        Finding::Capacity(capacity) => !capacity.is_short(),
        _ => false,
    };
    let stays = matches!(run.target.kind, TargetKind::Device | TargetKind::File);
    if !stays || run.bytes_written == 0 || !run.findings.iter().any(is_capacity) {
        return None;
    }
    let scattered = |result: &JobResult| result.pattern == Pattern::Random;
    let whole = if run.results.iter().any(scattered) { "" } else { " --full" };
    Some(format!(
        "To be sure that no cache answered, unplug it, plug it in again and read once more: rubus bench {} --suite \
         capacity{whole} --read-only --seed {} (and --size or --budget as before)",
        run.target.named, run.seed
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;
    use rubus_vocabulary::result::TargetKind;

    #[test]
    fn a_thousand_files_are_told_in_seconds() {
        let mut run = fixture::slow_sd_card_run();
        run.results.truncate(3);
        let operations =
            [Operation::CreateFile, Operation::DeleteFile, Operation::CreateFileDurably];
        for (result, operation) in run.results.iter_mut().zip(operations) {
            result.operation = operation;
            result.queue_depth = 1;
            result.block_bytes = 4096;
        }
        insta::assert_snapshot!(sentences(&run).join("\n"), @"Of a thousand files of 4 KiB, making takes 46.4 s (±1.0 %), deleting takes 92.0 s (±6.0 %), making them durably one by one, as package managers do, takes 622 ms (±2.0 %).");
    }

    #[test]
    fn memory_is_told_as_a_limit() {
        let mut run = fixture::slow_sd_card_run();
        run.target.kind = TargetKind::Ram;
        insta::assert_snapshot!(sentences(&run).join("\n"), @"No disk here can look faster than memory does: 22.6 MB/s and 1799 random operations of 4 KiB per second are what this machine's kernel and memory carry.");
    }

    #[test]
    fn a_device_can_be_looked_at_again_a_directory_cannot() {
        let mut run = fixture::capacity_run();
        assert!(sentences(&run).is_empty());
        if let Some(Finding::Capacity(capacity)) = run.findings.first_mut() {
            capacity.good_bytes = capacity.tested_bytes;
        }
        run.target.kind = TargetKind::Device;
        run.target.named = "/dev/sda".into();
        insta::assert_snapshot!(sentences(&run).join("\n"), @"To be sure that no cache answered, unplug it, plug it in again and read once more: rubus bench /dev/sda --suite capacity --full --read-only --seed 1592590338 (and --size or --budget as before)");
        run.target.kind = TargetKind::Directory;
        assert!(sentences(&run).is_empty());
    }
}
