//! A tree of small files of our own: where it is, what it is called, and that it goes away.
//!
//! The tree is a directory `.rubus-tree-…` in the target, with directories `<group>-<number>` of at
//! most [`FILES_PER_DIRECTORY`] files each. It is locked while it is in use, so that a later run
//! can tell one that was left behind by a run that was killed, and remove it. Only what has a name
//! that we give is ever removed.

pub(crate) mod rig;
pub(crate) mod session;
mod work;

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use rustix::fs::{AtFlags, FlockOperation, Mode, flock, fstat, mkdirat, unlinkat};
use rustix::io::Errno;

use crate::tree_names::{PREFIX, clear, open_directory, remove_stale};

/// As many as the directories of source trees and packages have at the most, as a rule.
pub(crate) const FILES_PER_DIRECTORY: u32 = 64;

/// The root of the tree; removed with all that is in it when it is dropped.
#[derive(Debug)]
pub(crate) struct Tree {
    parent: OwnedFd,
    name: String,
    root: Arc<OwnedFd>,
}

impl Tree {
    /// Makes an empty tree in a directory, after removing those that were left behind there.
    ///
    /// # Errors
    /// The system's, when it cannot be made.
    pub(crate) fn make(parent: BorrowedFd<'_>) -> Result<Self, Errno> {
        remove_stale(parent);
        let parent = parent.try_clone_to_owned().map_err(|_| Errno::MFILE)?;
        // Another run could take a tree that is not locked yet for one that was left behind.
        for _ in 0..3 {
            let name = format!("{PREFIX}{}-{}", std::process::id(), rubus_host::ticks::now_ns());
            mkdirat(&parent, name.as_str(), Mode::RWXU)?;
            let root = match open_directory(parent.as_fd(), name.as_str()) {
                Err(Errno::NOENT) => continue,
                answer => answer?,
            };
            // A filesystem without locks only loses the clean-up after a kill.
            let _ = flock(&root, FlockOperation::NonBlockingLockExclusive);
            if fstat(&root)?.st_nlink > 0 {
                return Ok(Tree { parent, name, root: Arc::new(root) });
            }
        }
        Err(Errno::BUSY)
    }

    /// The open root.
    pub(crate) fn root(&self) -> &Arc<OwnedFd> {
        &self.root
    }

    /// Removes everything below the root.
    pub(crate) fn clear(&self) {
        clear(self.root.as_fd());
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.clear();
        // If this fails the next run removes it.
        let _ = unlinkat(&self.parent, self.name.as_str(), AtFlags::REMOVEDIR);
    }
}

/// The files of one phase that makes files and of those that use them.
#[derive(Debug)]
pub(crate) struct Group {
    root: Arc<OwnedFd>,
    number: u32,
    directories: Vec<Directory>,
    /// The next directory that a worker may take to fill or to empty it.
    next: AtomicUsize,
}

/// How far a directory has come: its files are those from `gone` to `made`.
#[derive(Debug, Default)]
struct Directory {
    made: AtomicU32,
    gone: AtomicU32,
}

impl Group {
    /// Room for `files` files, none of which exists yet.
    pub(crate) fn new(root: Arc<OwnedFd>, number: u32, files: u64) -> Self {
        let count = files.div_ceil(u64::from(FILES_PER_DIRECTORY));
        Group {
            root,
            number,
            directories: (0..count).map(|_| Directory::default()).collect(),
            next: AtomicUsize::new(0),
        }
    }

    /// The files that exist: directory and number in it, in the order in which they were made.
    pub(crate) fn files(&self) -> Vec<(u32, u32)> {
        let mut files = Vec::new();
        for (directory, state) in (0_u32..).zip(&self.directories) {
            let (gone, made) = (&state.gone, &state.made);
            let range = gone.load(Ordering::Relaxed)..made.load(Ordering::Relaxed);
            files.extend(range.map(|file| (directory, file)));
        }
        files
    }

    /// Lets the workers begin again with the first directory.
    pub(crate) fn rewind(&self) {
        self.next.store(0, Ordering::Relaxed);
    }

    /// A directory that no other worker has taken.
    fn take(&self) -> Option<u32> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        (index < self.directories.len()).then_some(index as u32)
    }

    fn directory(&self, number: u32) -> &Directory {
        &self.directories[number as usize]
    }

    fn directory_name(&self, number: u32) -> Name {
        let mut name = Name::default();
        name.push_number(self.number);
        name.push(b'-');
        name.push_number(number);
        name
    }

    /// The path of a file from the root.
    fn path(&self, directory: u32, file: u32) -> Name {
        let mut path = self.directory_name(directory);
        path.push(b'/');
        path.push_file(file);
        path
    }
}

/// A name of ours, without an allocation: two numbers of at most ten digits and four more letters.
#[derive(Clone, Copy, Debug)]
struct Name {
    bytes: [u8; 40],
    length: usize,
}

impl Default for Name {
    fn default() -> Self {
        Name { bytes: [0; 40], length: 0 }
    }
}

impl Name {
    fn of_file(file: u32) -> Name {
        let mut name = Name::default();
        name.push_file(file);
        name
    }

    fn push(&mut self, byte: u8) {
        self.bytes[self.length] = byte;
        self.length += 1;
    }

    fn push_file(&mut self, file: u32) {
        self.push(b'f');
        self.push_number(file);
    }

    fn push_number(&mut self, number: u32) {
        if number >= 10 {
            self.push_number(number / 10);
        }
        self.push(b'0' + (number % 10) as u8);
    }

    fn as_c_str(&self) -> &CStr {
        // Three numbers and the letters between them leave at least one zero at the end.
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;
    use crate::tree_names::{is_directory_name, is_file_name};

    #[test]
    fn names_are_told_from_those_of_others() {
        let mut root = Name::default();
        root.push_number(u32::MAX);
        assert_eq!(root.as_c_str().to_str(), Ok("4294967295"));
        assert_eq!(Name::of_file(0).as_c_str().to_str(), Ok("f0"));
        for ours in ["0-0", "3-1023"] {
            assert!(is_directory_name(ours), "{ours}");
        }
        for other in ["", "-", "1-", "-1", "a-1", "1-2-3", "12", ".", ".."] {
            assert!(!is_directory_name(other), "{other}");
        }
        assert!(is_file_name("f63"));
        for other in ["", "f", "fx", "63", "f1~"] {
            assert!(!is_file_name(other), "{other}");
        }
    }

    #[test]
    fn a_tree_that_nobody_holds_is_removed_but_nothing_that_is_not_ours() {
        let here = tempfile::tempdir().expect("a directory");
        let left = here.path().join(".rubus-tree-1-2");
        fs::create_dir_all(left.join("0-0")).expect("a tree");
        File::create(left.join("0-0/f0")).expect("a file");
        let foreign = here.path().join(".rubus-tree-3-4");
        fs::create_dir_all(foreign.join("0-0")).expect("a tree");
        File::create(foreign.join("0-0/letter")).expect("a file");
        let open = File::open(here.path()).expect("the directory");
        let held = Tree::make(open.as_fd()).expect("a tree");
        assert!(!left.exists());
        assert!(foreign.join("0-0/letter").exists());
        let second = Tree::make(open.as_fd()).expect("another beside it");
        assert_eq!(fs::read_dir(here.path()).expect("it").count(), 3);
        drop((held, second));
        assert_eq!(fs::read_dir(here.path()).expect("it").count(), 1);
    }

    /// 37 MB stayed until small files were measured again.
    #[test]
    fn whatever_is_measured_in_a_directory_removes_a_tree_that_was_left_there() {
        use crate::target::{Opened, Target};
        let here = tempfile::tempdir().expect("a directory");
        let left = here.path().join(".rubus-tree-1-2");
        fs::create_dir_all(left.join("0-0")).expect("a tree");
        File::create(left.join("0-0/f0")).expect("a file");
        let target = Target::Directory { path: here.path().into() };
        let opened = Opened::new(target).expect("a target");
        assert!(!left.exists());
        drop(opened);
    }
}
