//! The mark that everything carries that this program leaves in the machine when it is killed: its name and the number of its
//! process.

use std::path::Path;

use anyhow::{Context, Result};
use tempfile::TempDir;

const NAME: &str = "rubus-lab-";

/// What the name of something of this process begins with.
pub(super) fn prefix() -> String {
    format!("{NAME}{}-", std::process::id())
}

/// Whether a name has the mark of a process that is no more.
pub(super) fn is_left(name: &str) -> bool {
    let rest = name.strip_prefix(NAME);
    let owner = rest.and_then(|rest| Some(rest.split_once('-')?.0));
    // Without this, a name that begins otherwise after the mark would be looked for in /proc and not be there.
    let is_number = |owner: &&str| !owner.is_empty() && owner.bytes().all(|b| b.is_ascii_digit());
    owner.filter(is_number).is_some_and(|owner| !Path::new("/proc").join(owner).exists())
}

/// A directory of its own with the mark; gone when it is dropped.
///
/// # Errors
/// When there is no place for it.
pub fn directory() -> Result<TempDir> {
    TempDir::with_prefix(prefix()).context("could not make a directory")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No process has a number this high.
    const NOBODY: &str = "4999999999";

    #[test]
    fn only_what_a_dead_process_has_marked_is_left() {
        assert!(is_left(&format!("rubus-lab-{NOBODY}-abc.img")));
        assert!(!is_left(&format!("{}abc.img", prefix())));
        for other in ["rubus-lab-abc.img", "rubus-lab-model-4x", "rubus-lab-", "4999999999-a"] {
            assert!(!is_left(other), "{other}");
        }
        assert!(!is_left(&format!("rubus-lab-{NOBODY}")));
    }
}
