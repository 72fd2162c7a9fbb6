//! A disk without room loses nothing that was promised.

use rubus_fixtures::skipped;

use super::*;

/// A tiny filesystem of our own, unmounted at the end whatever happens.
struct TinyFilesystem(PathBuf);

impl TinyFilesystem {
    /// Mounts one, or says why that cannot be tried here.
    fn mount_or_say(at: &Path, bytes: u32) -> Option<Self> {
        if !am_root() {
            skipped("a full disk", "only root can mount a small filesystem");
            return None;
        }
        let mounted = Self::mount(at, bytes);
        if mounted.is_none() {
            skipped("a full disk", "this system does not let root mount a tmpfs");
        }
        mounted
    }

    fn mount(at: &Path, bytes: u32) -> Option<Self> {
        std::fs::create_dir(at).unwrap();
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "rubus-store-test"])
            .arg(at)
            .status();
        status.is_ok_and(|s| s.success()).then(|| TinyFilesystem(at.into()))
    }
}

impl Drop for TinyFilesystem {
    fn drop(&mut self) {
        // A failure shows as a directory that cannot be removed; nothing better to do in a drop.
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn root_a_full_disk_loses_nothing_that_was_promised() {
    let (directory, _) = scratch();
    let Some(tiny) = TinyFilesystem::mount_or_say(&directory.path().join("tiny"), 1 << 20) else {
        return;
    };
    let path = tiny.0.join("history.db");
    let mut history = History::open(&path).unwrap();
    let mut added = Vec::new();
    let error = loop {
        assert!(added.len() < 1000, "a disk of 1 MiB took 1000 runs");
        match history.add(&run(added.len() as u64), "") {
            Ok(id) => added.push(id),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    assert!(added.len() > 2, "only {} runs fitted", added.len());
    assert_eq!(history.count().unwrap() as usize, added.len());
    drop(history);
    let history = History::open(&path).unwrap();
    for (seed, id) in added.iter().enumerate() {
        assert_eq!(history.get(*id).unwrap().run.seed, seed as u64);
    }
}

#[test]
fn root_a_disk_full_from_the_start_is_named() {
    let (directory, _) = scratch();
    let Some(tiny) = TinyFilesystem::mount_or_say(&directory.path().join("tiny"), 64 << 10) else {
        return;
    };
    let filler = vec![1_u8; 1 << 20];
    // Writes until it is full; that it fails at the end is the point.
    let _ = std::fs::write(tiny.0.join("filler"), &filler);
    let error = refused(&tiny.0.join("history.db"));
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
}

/// Looking needs no space, and who looks has not lost a run.
#[test]
fn root_a_full_disk_can_still_be_read() {
    let (directory, _) = scratch();
    let Some(tiny) = TinyFilesystem::mount_or_say(&directory.path().join("tiny"), 1 << 20) else {
        return;
    };
    let path = tiny.0.join("history.db");
    let mut history = History::open(&path).unwrap();
    let id = history.add(&run(1), "").unwrap();
    drop(history);
    // Writes until it is full; that it fails at the end is the point.
    let _ = std::fs::write(tiny.0.join("filler"), vec![1_u8; 2 << 20]);
    let mut history = History::open(&path).unwrap();
    assert_eq!(history.list(10, 0).unwrap().len(), 1);
    assert_eq!(history.get(id).unwrap().run.seed, 1);
    let mut out = Vec::new();
    assert_eq!(history.export(None, false, &mut out).unwrap().runs, 1);
    let error = loop {
        if let Err(error) = history.add(&run(2), "") {
            break error;
        }
    };
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    let words = error.to_string();
    assert!(!words.contains("this run"), "who reads adds no run: {words}");
}
