//! Reading a part of an existing file twice past this machine's cache: what the second pass saves is what lies behind the
//! cache of who serves it. Nothing is written.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Advice, OFlags, fadvise};

use crate::clock;
use crate::files::full_read::full_read;

/// Bytes of a request.
const REQUEST_BYTES: usize = 1 << 20;
/// What direct I/O wants of memory.
const ALIGNMENT: usize = 4096;
/// How far the tree is looked through for a file.
const MAX_ENTRIES: usize = 2000;
const MAX_DEPTH: usize = 3;
const SEARCH: Duration = Duration::from_secs(3);

/// Two passes over the same bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoPasses {
    /// Bytes of each.
    pub bytes: u64,
    /// Seconds of the first.
    pub first_s: f64,
    /// Seconds of the second.
    pub again_s: f64,
}

/// The largest file below a directory of at least that size that this user may read, as far as a few seconds and
/// a few directories show it.
pub fn large_file(directory: &Path, min_bytes: u64) -> Option<PathBuf> {
    let end_ns = clock::monotonic_ns() + SEARCH.as_nanos() as u64;
    let mut waiting = vec![(directory.to_path_buf(), 0)];
    let mut seen = 0;
    let mut best: Option<(u64, PathBuf)> = None;
    while let Some((directory, depth)) = waiting.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MAX_ENTRIES || clock::monotonic_ns() > end_ns {
                return best.map(|(_, path)| path);
            }
            // Links are not followed: they may lead elsewhere.
            let Ok(found) = entry.metadata() else {
                continue;
            };
            if found.is_dir() && depth < MAX_DEPTH {
                waiting.insert(0, (entry.path(), depth + 1));
            }
            let is_better = best.as_ref().is_none_or(|(bytes, _)| found.len() > *bytes);
            if found.is_file() && found.len() >= min_bytes && is_better {
                best = Some((found.len(), entry.path()));
            }
        }
    }
    best.map(|(_, path)| path)
}

/// Reads the same part of a file twice: at most `max_bytes`, and at most as long as `max_first` in the first pass. `place`,
/// from 0 to 1, is where in the file it begins.
///
/// # Errors
/// When it cannot be read past the cache, or is shorter than one request.
pub fn read_twice(
    path: &Path,
    place: f64,
    max_bytes: u64,
    max_first: Duration,
) -> std::io::Result<TwoPasses> {
    let file = open(path)?;
    let requests = file.metadata()?.len() / REQUEST_BYTES as u64;
    let wanted = (max_bytes / REQUEST_BYTES as u64).min(requests);
    if wanted == 0 {
        return Err(std::io::Error::other("the file is shorter than a request"));
    }
    let first = ((requests - wanted) as f64 * place.clamp(0.0, 1.0)) as u64 * REQUEST_BYTES as u64;
    let mut memory = vec![0; REQUEST_BYTES + ALIGNMENT];
    let at = memory.as_ptr().align_offset(ALIGNMENT);
    let buffer = &mut memory[at..at + REQUEST_BYTES];
    let (read, first_s) = pass(&file, first, wanted, max_first, buffer)?;
    // The second may take as long as it needs, which is bounded by the bytes.
    let (again, again_s) = pass(&file, first, read, max_first * 4, buffer)?;
    let share = again as f64 / read.max(1) as f64;
    Ok(TwoPasses {
        bytes: read * REQUEST_BYTES as u64,
        first_s,
        again_s: if share > 0.0 { again_s / share } else { again_s },
    })
}

/// Past the cache where the filesystem does that; else what is cached is dropped before each pass.
fn open(path: &Path) -> std::io::Result<File> {
    let direct = OFlags::DIRECT.bits() as i32;
    let direct = std::fs::OpenOptions::new().read(true).custom_flags(direct).open(path);
    direct.or_else(|_| File::open(path))
}

/// Requests read, and the seconds that took.
fn pass(
    file: &File,
    first: u64,
    requests: u64,
    limit: Duration,
    buffer: &mut [u8],
) -> std::io::Result<(u64, f64)> {
    // Best effort: with direct I/O there is nothing to drop.
    let _ = fadvise(file, 0, None, Advice::DontNeed);
    let start_ns = clock::monotonic_ns();
    let mut done = 0;
    while done < requests {
        let offset = first + done * REQUEST_BYTES as u64;
        full_read(file.as_fd(), buffer, offset).map_err(|failed| failed.errno)?;
        done += 1;
        if clock::monotonic_ns() - start_ns > limit.as_nanos() as u64 {
            break;
        }
    }
    Ok((done, (clock::monotonic_ns() - start_ns) as f64 / 1e9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_file_is_found_and_read_twice() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        std::fs::create_dir(at("films")).unwrap();
        std::fs::write(at("small"), vec![1; 100]).unwrap();
        std::fs::write(at("films/one"), vec![1; 3 << 20]).unwrap();
        std::fs::write(at("two"), vec![1; 2 << 20]).unwrap();
        let found = large_file(top.path(), 1 << 20).unwrap();
        assert_eq!(found, at("films/one"));
        let passes = read_twice(&found, 0.5, 2 << 20, Duration::from_secs(60)).unwrap();
        assert_eq!(passes.bytes, 2 << 20);
        assert!(passes.first_s > 0.0 && passes.again_s > 0.0);
        assert!(large_file(top.path(), 1 << 30).is_none());
        assert!(read_twice(&at("small"), 0.0, 1 << 20, Duration::from_secs(60)).is_err());
    }
}
