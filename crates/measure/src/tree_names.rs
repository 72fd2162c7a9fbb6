//! What trees of small files are called, and that those which a killed run left behind go away.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags, flock, openat, unlinkat};
use rustix::io::Errno;

/// How the root of a tree begins.
pub(crate) const PREFIX: &str = ".rubus-tree-";

pub(crate) fn open_directory(
    at: BorrowedFd<'_>,
    name: impl rustix::path::Arg,
) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(at, name, flags, Mode::empty())
}

/// Removes the trees left behind by killed runs: those without a lock.
pub(crate) fn remove_stale(parent: BorrowedFd<'_>) {
    for name in names(parent, |name| name.starts_with(PREFIX)) {
        let Ok(root) = open_directory(parent, name.as_c_str()) else {
            continue;
        };
        if flock(&root, FlockOperation::NonBlockingLockExclusive).is_ok() {
            clear(root.as_fd());
            let _ = unlinkat(parent, name.as_c_str(), AtFlags::REMOVEDIR);
        }
    }
}

/// The names in a directory that `wanted` likes. They are collected first: what a directory lists
/// while it is changed is up to the filesystem.
fn names(directory: BorrowedFd<'_>, wanted: impl Fn(&str) -> bool) -> Vec<CString> {
    let Ok(entries) = Dir::read_from(directory) else {
        return Vec::new();
    };
    entries
        .flatten()
        .map(|entry| entry.file_name().to_owned())
        .filter(|name| name.to_str().is_ok_and(&wanted))
        .collect()
}

/// Removes what has a name of ours below the root of a tree.
pub(crate) fn clear(root: BorrowedFd<'_>) {
    for directory in names(root, is_directory_name) {
        if let Ok(open) = open_directory(root, directory.as_c_str()) {
            for file in names(open.as_fd(), is_file_name) {
                let _ = unlinkat(&open, file.as_c_str(), AtFlags::empty());
            }
        }
        let _ = unlinkat(root, directory.as_c_str(), AtFlags::REMOVEDIR);
    }
}

pub(crate) fn is_directory_name(name: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    name.split_once('-').is_some_and(|(group, number)| digits(group) && digits(number))
}

pub(crate) fn is_file_name(name: &str) -> bool {
    let digits = name.strip_prefix('f').unwrap_or("");
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}
