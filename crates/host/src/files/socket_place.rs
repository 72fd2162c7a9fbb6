//! A directory for the socket of a server, which goes with this program even if that is killed: the next run removes what a
//! killed one left.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock, open, unlinkat};
use tempfile::TempDir;

/// The one file in each.
const SOCKET: &str = "socket";

/// A directory of this run's own.
#[derive(Debug)]
pub struct SocketPlace {
    directory: TempDir,
    /// The lock on it ends with this process, however that ends.
    _lock: File,
}

impl SocketPlace {
    /// Makes one where this machine keeps temporary files, and removes those whose owner is gone. The `prefix` is how all of
    /// a kind are called, before what makes each unique.
    ///
    /// # Errors
    /// When none can be made there.
    pub fn new(prefix: &str) -> io::Result<SocketPlace> {
        SocketPlace::new_in(&std::env::temp_dir(), prefix)
    }

    fn new_in(base: &Path, prefix: &str) -> io::Result<SocketPlace> {
        remove_orphans(base, prefix);
        loop {
            let directory = tempfile::Builder::new().prefix(prefix).tempdir_in(base)?;
            let lock = File::open(directory.path())?;
            // Another run may take it for an orphan before it is locked.
            let is_locked = flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
            if is_locked && is_same(&lock, directory.path()) {
                let _lock = lock;
                return Ok(SocketPlace { directory, _lock });
            }
        }
    }

    /// Where the server is to listen.
    pub fn socket(&self) -> PathBuf {
        self.directory.path().join(SOCKET)
    }
}

fn is_same(open: &File, path: &Path) -> bool {
    match (open.metadata(), fs::symlink_metadata(path)) {
        (Ok(open), Ok(there)) => (open.dev(), open.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

/// Removes the directories of this user that no living process has locked. One with anything else than a socket in it stays.
fn remove_orphans(base: &Path, prefix: &str) {
    let own = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(prefix)
            && entry.metadata().is_ok_and(|facts| facts.uid() == own);
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        let Ok(directory) = open(entry.path(), flags, Mode::empty()) else {
            continue;
        };
        if is_ours && flock(&directory, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = unlinkat(&directory, SOCKET, AtFlags::empty());
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_run_left_is_removed_by_the_next_and_what_is_in_use_stays() {
        let base = tempfile::tempdir().expect("a directory");
        let at = |name: &str| base.path().join(name);
        for name in ["rubus-rbd-killed", "rubus-rbd-foreign", "other"] {
            fs::create_dir(at(name)).expect("a directory");
            fs::write(at(name).join(SOCKET), "").expect("a socket");
        }
        fs::write(at("rubus-rbd-foreign").join("letter"), "").expect("a file");
        fs::create_dir(at("rubus-rbd-early")).expect("a directory");
        let running = SocketPlace::new_in(base.path(), "rubus-rbd-").expect("a place");
        fs::write(running.socket(), "").expect("a socket");
        let next = SocketPlace::new_in(base.path(), "rubus-rbd-").expect("a place");
        assert!(running.socket().exists() && next.socket() != running.socket());
        for gone in ["rubus-rbd-killed", "rubus-rbd-early"] {
            assert!(!at(gone).exists(), "{gone}");
        }
        assert!(at("rubus-rbd-foreign").join("letter").exists());
        assert!(at("other").join(SOCKET).exists());
        let socket = running.socket();
        drop(running);
        assert!(!socket.parent().expect("a directory").exists());
    }
}
