//! What must be as before: files in a directory, loop devices.

use std::collections::BTreeSet;
use std::path::Path;

/// The names of all entries below a directory, hidden ones included.
pub fn entries(directory: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![directory.to_path_buf()];
    while let Some(next) = waiting.pop() {
        for entry in std::fs::read_dir(&next).expect("the directory can be listed").flatten() {
            let path = entry.path();
            found.insert(path.strip_prefix(directory).unwrap_or(&path).display().to_string());
            if path.is_dir() && !path.is_symlink() {
                waiting.push(path);
            }
        }
    }
    found
}

/// Bytes that are used on the filesystem of a directory: a nameless file that is still open shows
/// here and nowhere else.
pub fn used_bytes(directory: &Path) -> u64 {
    let stat = rustix::fs::statvfs(directory).expect("the filesystem tells its size");
    (stat.f_blocks - stat.f_bfree) * stat.f_frsize
}
