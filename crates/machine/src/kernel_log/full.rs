//! Lines about what is full: it refuses writes, and no disk is at fault.

use super::Told;
use super::line::is_start;

/// A filesystem of btrfs that is full aborts and becomes read-only; that is no damage.
pub(super) fn full_filesystems(lines: &[Told<'_>]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut is_full = false;
    for (at, told) in lines.iter().enumerate() {
        let message: &str = &told.line.message;
        if !message.starts_with("BTRFS") {
            continue;
        }
        if message.contains("errno=-") {
            is_full = message.contains("errno=-28");
        }
        let is_its = message.contains("errno=-28") || message.contains("forced readonly");
        if is_full && is_its && told.trouble.is_some() {
            found.push(at);
        }
    }
    found
}

/// A thin pool of LVM that is full fails what its volumes write; what they have is not damaged.
/// Source: Linux, drivers/md/dm-thin.c, `notify_of_pool_mode_change`.
pub(super) fn full_pools(lines: &[Told<'_>]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut is_full = false;
    for (at, told) in lines.iter().enumerate() {
        let message: &str = &told.line.message;
        let mode = message
            .strip_prefix("device-mapper: thin: ")
            .and_then(|rest| rest.split_once(": switching pool to "));
        if is_start(message) {
            is_full = false;
        } else if let Some((_, mode)) = mode {
            is_full = mode.starts_with("out-of-data-space");
        } else if is_full && told.trouble.as_ref().is_some_and(|(_, part)| part.starts_with("dm-"))
        {
            found.push(at);
        }
    }
    found
}
