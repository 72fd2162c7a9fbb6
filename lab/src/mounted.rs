//! What is mounted on a board, as its kernel says it. Programs that look it up were seen to fail on an emulated processor.

use std::time::Duration;

use anyhow::{Context, Result};

use crate::session::Session;

const SOON: Duration = Duration::from_secs(300);

/// A filesystem that is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mounted {
    /// Its device, or what stands in for one.
    pub source: String,
    /// Its type, such as `btrfs`.
    pub kind: String,
    /// How it is mounted.
    pub options: Vec<String>,
}

/// What is mounted at `point` on a board, a path without spaces.
///
/// # Errors
/// When nothing is, or the board does not answer.
pub fn at(board: &mut Session, point: &str) -> Result<Mounted> {
    let mounts = board.must("cat /proc/mounts", "root", SOON)?;
    uppermost(&mounts, point)
        .with_context(|| format!("nothing is mounted at {point} on the board:\n{mounts}"))
}

/// The last one hides those before it.
fn uppermost(mounts: &str, point: &str) -> Option<Mounted> {
    let mut lines = mounts.lines().map(|line| line.split(' ').collect());
    let words: Vec<&str> = lines.rfind(|words: &Vec<_>| words.get(1) == Some(&point))?;
    let options = words.get(3)?.split(',').map(String::from);
    Some(Mounted { source: words[0].into(), kind: words[2].into(), options: options.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_mount_of_a_place_is_what_is_seen_there() {
        let mounts =
            "rootfs / rootfs rw 0 0\nproc /proc proc rw 0 0\n/dev/sda2 / btrfs rw,subvol=/@ 0 0\n";
        let root = uppermost(mounts, "/").unwrap();
        assert_eq!((&*root.source, &*root.kind), ("/dev/sda2", "btrfs"));
        assert_eq!(root.options, ["rw", "subvol=/@"]);
        assert_eq!(uppermost(mounts, "/mnt"), None);
    }
}
