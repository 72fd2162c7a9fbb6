//! A place for the disks of many cuts, which are almost all the same: a filesystem whose files share their blocks.

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context, Result};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::cache::Cache;
use crate::tools;

/// The most that the disks may take.
const BYTES: u64 = 64 << 30;

/// A place in this directory, or in a filesystem of its own in a sparse file there, when files in the directory cannot share their
/// blocks. What is mounted from now on, only this thread and what it starts see, and it goes with them: what clears up after
/// a process that was killed finds directories there and no mounts.
///
/// # Errors
/// When it cannot be made.
pub(super) fn of(directory: &Path) -> Result<Cache> {
    let place = directory.join("images");
    fs::create_dir_all(&place).with_context(|| format!("cannot make {place:?}"))?;
    // SAFETY: only what is mounted is another from now on; the thread shares files and all else as before.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.context("no mounts of its own (root?)")?;
    tools::run(tools::command("mount").args(["--make-rprivate", "/"]))?;
    if !shares_blocks(&place)? {
        mount(&directory.join("images.btrfs"), &place)?;
    }
    Ok(Cache::at(place))
}

fn shares_blocks(place: &Path) -> Result<bool> {
    let room = tempfile::tempdir_in(place)?;
    let file = room.path().join("file");
    fs::write(&file, [1; 1 << 16])?;
    let mut copy = tools::command("cp");
    copy.arg("--reflink=always").arg(&file);
    Ok(copy.arg(room.path().join("copy")).output()?.status.success())
}

fn mount(image: &Path, place: &Path) -> Result<()> {
    let made = File::create(image).and_then(|file| file.set_len(BYTES));
    made.with_context(|| format!("cannot make {image:?}"))?;
    tools::run(tools::command("mkfs.btrfs").args(["-q", "-f"]).arg(image))?;
    let mut mount = tools::command("mount");
    mount.args(["-o", "loop,noatime,nodatasum"]).arg(image);
    tools::run(mount.arg(place))?;
    // It has no name from now on, so that nothing stays when this process is killed.
    fs::remove_file(image).with_context(|| format!("cannot remove {image:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_share_their_blocks_there_wherever_it_is() {
        if !rustix::process::geteuid().is_root() {
            return rubus_fixtures::skipped("power_cuts::pool", "only root can mount");
        }
        let directory = tempfile::tempdir().unwrap();
        let pool = of(directory.path()).unwrap();
        assert!(shares_blocks(pool.root()).unwrap());
        assert!(!directory.path().join("images.btrfs").exists());
        let mounts = fs::read_to_string("/proc/1/mounts").unwrap();
        assert!(!mounts.contains(&*directory.path().to_string_lossy()));
    }
}
