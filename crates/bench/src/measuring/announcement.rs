//! What a suite is going to write to a target, said before anything is written.

use rubus_measure::{nas, suites};
use rubus_vocabulary::spec::{Operation, Suite};
use rubus_vocabulary::units::{bytes_iec, percent};

use crate::target::OpenTarget;

/// Says what is going to be written before anything is.
pub fn announce(suite: &Suite, target: &OpenTarget) -> String {
    let place = target.identity.path.display();
    if target.is_memory() {
        return format!(
            "Measuring memory: uses {} of it and touches no disk. What this gives is the speed of the kernel's \
             way to a file and of this machine's memory copies, which no disk here can exceed.",
            bytes_iec(suite.region_bytes)
        );
    }
    if suite.jobs.iter().any(|job| job.operation.is_of_file()) {
        return announce_files(suite, target);
    }
    if suite.jobs.iter().any(|job| job.operation == Operation::Stamp) {
        return announce_stamps(suite, target);
    }
    let writes = suites::plan_writes(suite, target.target.is_own_file());
    if writes == 0 {
        return format!("Measuring {place}: only reads, nothing is written.");
    }
    let at_most = bytes_iec(writes);
    if target.target.is_own_file() {
        let share = suite.region_bytes as f64 / target.room_bytes.max(1) as f64;
        return format!(
            "Measuring the disk under {place}: writes {at_most} at most, to a nameless file of {} ({} of \
             what is free) that is gone at the end.{}",
            bytes_iec(suite.region_bytes),
            percent(share),
            what_a_share_adds(suite, target)
        );
    }
    format!(
        "Measuring {place}: writes {at_most} at most over its first {}; WHAT IS THERE IS LOST.",
        bytes_iec(suite.region_bytes)
    )
}

/// What is done beside the jobs on a share of a file server.
fn what_a_share_adds(suite: &Suite, target: &OpenTarget) -> String {
    if nas::reads_a_file(suite, &target.target, target.identity.share.as_ref()) {
        format!(
            " Before that it reads up to {} of an existing file there, twice.",
            bytes_iec(nas::MAX_READ_BYTES)
        )
    } else {
        String::new()
    }
}

/// The same for a tree of small files.
fn announce_files(suite: &Suite, target: &OpenTarget) -> String {
    let sizes = suite.jobs.iter().map(|job| u64::from(job.block_bytes));
    let file_bytes = sizes.max().unwrap_or(0).max(1);
    let files = suite.region_bytes / file_bytes;
    let free = rustix::fs::statvfs(&target.identity.path).ok();
    let of_files = free
        .filter(|found| found.f_files > 0 && found.f_favail > 0)
        .map(|found| {
            format!(
                " ({} of the files that it can still hold)",
                percent(files as f64 / found.f_favail as f64)
            )
        })
        .unwrap_or_default();
    format!(
        "Measuring the disk under {}: makes and removes small files, at most {files} of {} at a time{of_files}, which \
         take {} ({} of what is free), and writes {} at most in all. They are in a directory .rubus-tree-… of its own, \
         which is removed at the end, or by the next run if this one is killed.",
        target.identity.path.display(),
        bytes_iec(file_bytes),
        bytes_iec(suite.region_bytes),
        percent(suite.region_bytes as f64 / target.room_bytes.max(1) as f64),
        bytes_iec(suites::plan_writes(suite, true))
    )
}

/// The same for blocks that say where they belong.
fn announce_stamps(suite: &Suite, target: &OpenTarget) -> String {
    let place = target.identity.path.display();
    let writes = suites::plan_writes(suite, false);
    if writes == 0 {
        return format!(
            "Looking on {place} for what the run with seed {} has written: only reads, nothing is written.",
            suite.seed
        );
    }
    let again = format!("seed {}", suite.seed);
    if target.target.is_own_file() {
        let left = target.room_bytes.saturating_sub(writes);
        return format!(
            "Filling the disk under {place}: writes {} ({} of what is free) to nameless files, reads them back and \
             removes them; {} stay free meanwhile. ({again})",
            bytes_iec(writes),
            percent(writes as f64 / target.room_bytes.max(1) as f64),
            bytes_iec(left)
        );
    }
    let how = if writes < suite.region_bytes {
        format!("writes a sample of {} all over its", bytes_iec(writes))
    } else {
        "writes all of its".into()
    };
    format!(
        "Testing the capacity of {place}: {how} {} and reads it back; WHAT IS THERE IS LOST. ({again})",
        bytes_iec(suite.region_bytes)
    )
}
