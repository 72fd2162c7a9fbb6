//! Files behind loop devices and servers: in memory where there is room, so that the truth of a device
//! is what limits it, not the disk of the machine.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::NamedTempFile;

use super::mark;

/// A sparse file of this size, in memory where that has room, that is deleted when it is dropped.
///
/// # Errors
/// When no directory takes such a file.
pub(super) fn sparse(size_bytes: u64) -> Result<NamedTempFile> {
    sparse_in(&directory(size_bytes), size_bytes)
}

/// A sparse file of this size on a disk.
///
/// # Errors
/// When it cannot be made.
pub(super) fn sparse_on_disk(size_bytes: u64) -> Result<NamedTempFile> {
    sparse_in(Path::new(ON_DISK), size_bytes)
}

/// A file of this size on a disk with all its room taken: for what may be written when there is no memory to take room.
///
/// # Errors
/// When it cannot be made, or the filesystem cannot take room ahead.
pub(super) fn whole_on_disk(size_bytes: u64) -> Result<NamedTempFile> {
    let file = sparse_on_disk(size_bytes)?;
    rustix::fs::fallocate(file.as_file(), rustix::fs::FallocateFlags::empty(), 0, size_bytes)
        .with_context(|| format!("could not take {size_bytes} bytes in {ON_DISK}"))?;
    Ok(file)
}

/// Unlike `/tmp` this is meant to survive a restart, and so is on a disk.
const ON_DISK: &str = "/var/tmp";
const IN_MEMORY: &str = "/dev/shm";

/// Where such files are.
pub(super) fn directories() -> [PathBuf; 2] {
    [IN_MEMORY, ON_DISK].map(PathBuf::from)
}

fn sparse_in(directory: &Path, size_bytes: u64) -> Result<NamedTempFile> {
    let file = tempfile::Builder::new()
        .prefix(&mark::prefix())
        .suffix(".img")
        .tempfile_in(directory)
        .with_context(|| format!("could not make a file in {}", directory.display()))?;
    file.as_file()
        .set_len(size_bytes)
        .with_context(|| format!("could not give {} its size", file.path().display()))?;
    Ok(file)
}

/// `/dev/shm` when twice the size fits into it and into free memory, else a disk.
fn directory(size_bytes: u64) -> PathBuf {
    let memory = Path::new(IN_MEMORY);
    let room = rustix::fs::statvfs(memory).map_or(0, |stat| stat.f_bavail * stat.f_frsize);
    let wanted = size_bytes.saturating_mul(2);
    if room >= wanted && available_memory_bytes() >= wanted {
        memory.to_path_buf()
    } else {
        PathBuf::from(ON_DISK)
    }
}

fn available_memory_bytes() -> u64 {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .and_then(|rest| rest.trim().strip_suffix("kB"))
        .and_then(|kib| kib.trim().parse::<u64>().ok())
        .map_or(0, |kib| kib * 1024)
}
