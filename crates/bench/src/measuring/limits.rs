//! The suite for a target, within what the user wants of it and what the target has room for.

use rubus_measure::{Target, suites};
use rubus_vocabulary::spec::{Job, Suite};
use rubus_vocabulary::spelling::no_such;
use rubus_vocabulary::units::bytes_iec;

use crate::target::OpenTarget;

/// However fine the wanted precision, a job takes at most this many times its usual time.
const MAX_LONGER: f64 = 25.0;

/// What the user wants of a suite in place of its own limits.
#[derive(Clone, Copy, Debug, Default)]
pub struct SuiteLimits {
    /// Size of the test file or region, in bytes.
    pub region_bytes: Option<u64>,
    /// Bytes that may be written in all.
    pub budget_bytes: Option<u64>,
    /// All of a device, where there is the choice.
    pub is_whole: bool,
}

/// The suite of that name for this target.
///
/// # Errors
/// When there is no such suite (the nearest name is suggested), too little room, or a wanted size
/// that does not fit.
pub fn suite_for(name: &str, target: &OpenTarget, wanted: SuiteLimits) -> anyhow::Result<Suite> {
    // Of memory the user has said how much is to be used, not how much there is.
    let is_free_space = target.target.is_own_file() && !target.is_memory();
    anyhow::ensure!(
        name != "ram" || target.is_memory(),
        "the suite 'ram' is for memory: name a target such as ram:256MiB instead of {}",
        target.identity.path.display()
    );
    anyhow::ensure!(
        name != "small-files" || matches!(target.target, Target::Directory { .. }),
        "the suite 'small-files' makes files: name a directory on the disk instead of {}",
        target.identity.path.display()
    );
    if let Some(size) = wanted.region_bytes {
        fits(size, target, is_free_space)?;
    }
    let path = target.identity.path.display().to_string();
    let mut room = suites::Room {
        region_bytes: wanted.region_bytes,
        budget_bytes: wanted.budget_bytes,
        is_whole: wanted.is_whole,
        endurance: target.endurance,
        ..suites::Room::new(&path, target.room_bytes, is_free_space)
    };
    if let (Target::Directory { .. }, Ok(found)) =
        (&target.target, rustix::fs::statvfs(&target.identity.path))
    {
        // Filesystems that make room for files as they come say 0.
        room.files = Some(found.f_favail).filter(|_| found.f_files > 0);
        room.cluster_bytes = found.f_frsize;
    }
    match suites::by_name(name, &room) {
        Some(suite) => Ok(for_memory(suite?, target)),
        None => anyhow::bail!(
            "{} (`rubus suites` lists them)",
            no_such("suite", name, &suites::names()),
        ),
    }
}

/// Whether a wanted size fits: all of a file or device, nine tenths of what is free for a file of
/// our own.
fn fits(size: u64, target: &OpenTarget, is_free_space: bool) -> anyhow::Result<()> {
    anyhow::ensure!(
        !target.is_memory(),
        "--size does not go with {}, which says how much memory to use",
        target.identity.named
    );
    let most = if is_free_space { target.room_bytes / 10 * 9 } else { target.room_bytes };
    anyhow::ensure!(
        (1 << 20..=most).contains(&size),
        "--size {} does not fit {}: give something from 1 MiB to {}",
        bytes_iec(size),
        target.identity.path.display(),
        bytes_iec(most)
    );
    Ok(())
}

/// The suite without commits where the target is memory, which has nothing to make durable.
fn for_memory(mut suite: Suite, target: &OpenTarget) -> Suite {
    if target.is_memory() {
        suite.jobs.retain(|job| !job.durability.is_each());
    }
    suite
}

/// The suite with another precision than its own: half the width of the 95 % interval as a share of
/// the value. An interval half as wide needs four times the samples, so the time that a job may take
/// grows with the square; what it may write does not, since flash does not grow back.
pub fn with_precision(mut suite: Suite, relative_half_width: f64) -> Suite {
    fn set(job: &mut Job, relative_half_width: f64) -> f64 {
        let finer = (job.stop.relative_half_width / relative_half_width).max(1.0);
        let longer = (finer * finer).min(MAX_LONGER);
        job.stop.relative_half_width = relative_half_width;
        job.stop.max_seconds *= longer;
        for beside in &mut job.beside {
            set(beside, relative_half_width);
        }
        longer
    }
    let mut longest: f64 = 1.0;
    for job in &mut suite.jobs {
        longest = longest.max(set(job, relative_half_width));
    }
    suite.max_seconds = suite.max_seconds.map(|seconds| seconds * longest);
    suite
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_the_precision_may_take_four_times_as_long_and_write_no_more() {
        let usual = suites::quick("here", 1 << 40, true).expect("there is room");
        let finer = with_precision(usual.clone(), 0.05);
        for (usual, finer) in usual.jobs.iter().zip(&finer.jobs) {
            assert_eq!(finer.stop.relative_half_width, 0.05);
            assert_eq!(finer.stop.max_seconds, usual.stop.max_seconds * 4.0);
            assert_eq!(finer.stop.max_bytes, usual.stop.max_bytes);
        }
        assert_eq!(finer.max_seconds, usual.max_seconds.map(|s| s * 4.0));
        let coarser = with_precision(usual.clone(), 0.20);
        assert_eq!(coarser.max_seconds, usual.max_seconds);
        let finest = with_precision(usual.clone(), 0.001);
        assert_eq!(finest.max_seconds, usual.max_seconds.map(|s| s * MAX_LONGER));
    }
}
