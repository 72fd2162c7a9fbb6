//! Whole copies of small trees. What needs root and filesystems of known kind is in the lab.
#![allow(
    clippy::disallowed_methods,
    reason = "tests look at what was made past the door"
)]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rubus_core::copy::CopyReceipt;

use super::*;

struct Ground {
    _directory: tempfile::TempDir,
    from: PathBuf,
    to: PathBuf,
}

impl Ground {
    fn new() -> Self {
        // Every pass waits for stable storage, of which memory has none to wait for.
        let memory = Path::new("/dev/shm");
        let directory = match memory.is_dir() {
            true => tempfile::tempdir_in(memory),
            false => tempfile::tempdir(),
        };
        let directory = directory.unwrap();
        let (from, to) = (directory.path().join("from"), directory.path().join("to"));
        fs::create_dir(&from).unwrap();
        Ground {
            _directory: directory,
            from,
            to,
        }
    }

    fn copy(&self, options: &CopyOptions) -> Result<CopyReceipt, CopyError> {
        copy(&self.from, &self.to, options, &mut |_| {})
    }

    fn first(&self) -> CopyReceipt {
        self.copy(&CopyOptions::default()).unwrap()
    }

    fn again(&self) -> CopyReceipt {
        let options = CopyOptions {
            again: true,
            ..CopyOptions::default()
        };
        self.copy(&options).unwrap()
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.from.join(path), text).unwrap();
    }
}

/// Every path below a directory with what can be seen of it without root.
fn seen(root: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    let mut todo = vec![root.to_path_buf()];
    while let Some(path) = todo.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        let what = match meta.file_type() {
            kind if kind.is_dir() => {
                let entries = fs::read_dir(&path).unwrap().map(|e| e.unwrap().path());
                todo.extend(entries.filter(|path| !path.ends_with(DIRECTORY)));
                String::new()
            }
            kind if kind.is_symlink() => format!("{:?}", fs::read_link(&path).unwrap()),
            _ => format!("{:?}", fs::read(&path).unwrap()),
        };
        let (mode, time) = (meta.mode(), (meta.mtime(), meta.mtime_nsec()));
        let path = path.strip_prefix(root).unwrap();
        let names = if meta.is_dir() { 0 } else { meta.nlink() };
        lines.push(format!("{path:?} {mode:o} {names} {time:?} {what}"));
    }
    lines.sort();
    lines
}

fn assert_same(ground: &Ground) {
    assert_eq!(seen(&ground.from), seen(&ground.to));
}

fn grow_a_tree(ground: &Ground) {
    let from = &ground.from;
    fs::create_dir_all(from.join("etc/deep/er")).unwrap();
    fs::create_dir(from.join("empty")).unwrap();
    ground.write("etc/passwd", "root:x:0:0");
    ground.write("etc/deep/er/file", "here");
    // Between a directory and what is in it, were it not for the order of the walk.
    ground.write("etc.conf", "dot");
    ground.write("etc-conf", "dash");
    fs::write(from.join(OsStr::from_bytes(b"new\nline \xff")), "odd").unwrap();
    fs::write(from.join("x".repeat(255)), "long").unwrap();
    symlink("etc/passwd", from.join("link")).unwrap();
    symlink("/nowhere", from.join("dangling")).unwrap();
    for name in 0..100 {
        fs::hard_link(
            from.join("etc/passwd"),
            from.join(format!("etc/deep/name-{name}")),
        )
        .unwrap();
    }
    fs::set_permissions(from.join("etc.conf"), fs::Permissions::from_mode(0o4750)).unwrap();
    fs::set_permissions(from.join("empty"), fs::Permissions::from_mode(0o1777)).unwrap();
    fs::set_permissions(from.join("etc"), fs::Permissions::from_mode(0o555)).unwrap();
}

#[test]
fn a_tree_arrives_as_it_was() {
    let ground = Ground::new();
    grow_a_tree(&ground);
    let receipt = ground.first();
    assert_same(&ground);
    assert!(receipt.is_complete(), "{receipt:#?}");
    assert_eq!((receipt.hard_links, receipt.entries.links), (100, 2));
    assert_eq!((receipt.entries.directories, receipt.pass), (5, 1));
    assert_eq!(receipt.entries.files, 106);
}

#[test]
fn a_second_pass_copies_what_was_touched_and_removes_what_vanished() {
    let ground = Ground::new();
    grow_a_tree(&ground);
    ground.first();
    let receipt = ground.again();
    assert_eq!(receipt.unchanged, 108, "{receipt:#?}");
    assert_eq!(
        (receipt.deleted, receipt.copied_bytes, receipt.pass),
        (0, 0, 2)
    );

    let from = &ground.from;
    ground.write("etc.conf", "changed");
    fs::remove_file(from.join("etc-conf")).unwrap();
    fs::remove_dir_all(from.join("etc/deep/er")).unwrap();
    // A file becomes a directory and the other way round.
    fs::remove_file(from.join("link")).unwrap();
    fs::create_dir(from.join("link")).unwrap();
    ground.write("link/inside", "x");
    fs::remove_dir(from.join("empty")).unwrap();
    ground.write("empty", "full now");
    // One of a hundred names becomes a file of its own with the same contents.
    fs::remove_file(from.join("etc/deep/name-7")).unwrap();
    ground.write("etc/deep/name-7", "root:x:0:0");
    let receipt = ground.again();
    assert_same(&ground);
    assert_eq!(receipt.deleted, 3);
    assert_eq!(receipt.pass, 3);
    assert_eq!(ground.again().copied_bytes, 0);
}

#[test]
fn the_last_pass_leaves_nothing_of_its_own() {
    let ground = Ground::new();
    grow_a_tree(&ground);
    let options = CopyOptions {
        is_last: true,
        ..CopyOptions::default()
    };
    ground.copy(&options).unwrap();
    assert!(!ground.to.join(DIRECTORY).exists());
    assert_same(&ground);
}

#[test]
fn what_is_excluded_stays_out_and_is_not_removed() {
    let ground = Ground::new();
    grow_a_tree(&ground);
    let options = |again| CopyOptions {
        excludes: Paths::new(&["/etc/*", "/link"]).unwrap(),
        again,
        ..CopyOptions::default()
    };
    ground.copy(&options(false)).unwrap();
    assert!(!ground.to.join("link").exists());
    let mode = fs::metadata(ground.to.join("etc")).unwrap().mode();
    assert_eq!(mode & 0o7777, 0o555);
    assert_eq!(fs::read_dir(ground.to.join("etc")).unwrap().count(), 0);
    fs::set_permissions(ground.to.join("etc"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(ground.to.join("etc/fstab"), "of the target").unwrap();
    ground.copy(&options(true)).unwrap();
    assert!(ground.to.join("etc/fstab").exists());
}

#[test]
fn holes_stay_holes() {
    let ground = Ground::new();
    let file = fs::File::create(ground.from.join("sparse")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"middle", 5 << 20).unwrap();
    file.set_len(32 << 20).unwrap();
    drop(file);
    let receipt = ground.first();
    let meta = fs::metadata(ground.to.join("sparse")).unwrap();
    assert_eq!(meta.len(), 32 << 20);
    assert!(meta.blocks() * 512 < 1 << 20, "{} blocks", meta.blocks());
    assert_same(&ground);
    assert!(receipt.hole_bytes > 31 << 20 || receipt.shared_bytes == 32 << 20);
}

#[test]
fn a_path_longer_than_the_kernel_takes_is_copied_and_removed() {
    let ground = Ground::new();
    let name = "d".repeat(200);
    let mut at = Directory::open_root(&ground.from).unwrap();
    for _ in 0..60 {
        at.make_directory(OsStr::new(&name)).unwrap();
        at = at.open(OsStr::new(&name)).unwrap();
    }
    drop(at.make_file(OsStr::new("bottom")).unwrap());
    let receipt = ground.first();
    assert!(receipt.is_complete(), "{receipt:#?}");
    let path = vec![name.as_str(); 60].join("/");
    let to = Directory::open_root(&ground.to).unwrap();
    let bottom = to.open_beneath(path.as_bytes()).unwrap();
    assert!(bottom.look_at(OsStr::new("bottom")).is_ok());
    assert_eq!(ground.again().unchanged, 1);
    // The other way to remove it would be a path.
    let mut bin = Bin::new(to.open(OsStr::new(DIRECTORY)).unwrap()).unwrap();
    assert_eq!(bin.remove(&to, OsStr::new(&name)).unwrap(), 61);
    let from = Directory::open_root(&ground.from).unwrap();
    fs::create_dir(ground.from.join("bin")).unwrap();
    let mut bin = Bin::new(from.open(OsStr::new("bin")).unwrap()).unwrap();
    bin.remove(&from, OsStr::new(&name)).unwrap();
}

#[test]
fn a_stopped_copy_is_gone_on_with() {
    let ground = Ground::new();
    for directory in 0..10 {
        fs::create_dir(ground.from.join(format!("{directory}"))).unwrap();
        for file in 0..1000 {
            ground.write(&format!("{directory}/{file}"), "some text");
        }
    }
    let stop = Arc::new(AtomicBool::new(false));
    let options = CopyOptions {
        stop: Some(Arc::clone(&stop)),
        dirty_limit_bytes: Some(1 << 20),
        ..CopyOptions::default()
    };
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(ground.copy(&options), Err(CopyError::Stopped));
    stop.store(false, std::sync::atomic::Ordering::Relaxed);
    let receipt = ground.copy(&options).unwrap();
    assert!(receipt.is_resumed && receipt.pass == 1, "{receipt:#?}");
    assert_same(&ground);
}

#[test]
fn wrong_targets_are_refused() {
    let ground = Ground::new();
    grow_a_tree(&ground);
    let refused = |from: &Path, to: &Path, again| {
        let options = CopyOptions {
            again,
            ..CopyOptions::default()
        };
        match copy(from, to, &options, &mut |_| {}) {
            Err(CopyError::Refused(why)) => why,
            other => panic!("{other:?}"),
        }
    };
    let (from, to) = (&ground.from, &ground.to);
    assert!(refused(from, from, false).contains("same directory"));
    assert!(refused(from, &from.join("empty"), false).contains("within the source"));
    assert!(refused(&from.join("empty"), from, false).contains("within the target"));
    fs::create_dir(to).unwrap();
    assert!(refused(from, to, true).contains("leave --again out"));
    fs::write(to.join("mine"), "").unwrap();
    assert!(refused(from, to, false).contains("not empty"));
    fs::remove_file(to.join("mine")).unwrap();
    ground.first();
    assert!(refused(from, to, false).contains("--again"));
    let other = Ground::new();
    assert!(refused(&other.from, to, true).contains("another source"));
}

#[test]
fn a_refused_target_is_not_left_behind() {
    let ground = Ground::new();
    let inside = ground.from.join("new");
    let refused = copy(&ground.from, &inside, &CopyOptions::default(), &mut |_| {});
    assert!(matches!(refused, Err(CopyError::Refused(_))), "{refused:?}");
    assert!(!inside.exists());
    fs::create_dir(&inside).unwrap();
    let refused = copy(&ground.from, &inside, &CopyOptions::default(), &mut |_| {});
    assert!(matches!(refused, Err(CopyError::Refused(_))), "{refused:?}");
    assert!(inside.exists(), "what was there stays");
}

#[test]
fn the_manifest_of_an_earlier_copy_is_left_out_and_named() {
    let ground = Ground::new();
    ground.write("a", "x");
    fs::create_dir(ground.from.join(".rubus-copy")).unwrap();
    ground.write(".rubus-copy/manifest-1", "of another copy");
    let receipt = ground.first();
    let told = |skipped: &[rubus_core::copy::Remark]| {
        skipped
            .iter()
            .any(|remark| remark.path.contains(".rubus-copy"))
    };
    assert!(told(&receipt.skipped.examples), "{receipt:?}");
    let options = CompareOptions::default();
    let compared = compare(&ground.from, &ground.to, &options, &mut |_| {}).unwrap();
    assert!(told(&compared.skipped.examples), "{compared:?}");
}

#[test]
fn a_copy_goes_on_over_an_emptied_manifest_and_removes_nothing() {
    let ground = Ground::new();
    fs::create_dir(ground.from.join("d")).unwrap();
    ground.write("d/a", "one");
    ground.first();
    let manifests = fs::read_dir(ground.to.join(".rubus-copy")).unwrap();
    for manifest in manifests.flatten() {
        fs::write(manifest.path(), "").unwrap();
    }
    // Nothing tells any more whose copy it is.
    fs::write(ground.to.join("d/only here"), "").unwrap();
    ground.write("d/a", "two");
    ground.again();
    assert_eq!(fs::read(ground.to.join("d/a")).unwrap(), b"two");
    assert!(ground.to.join("d/only here").exists());
    ground.again();
    assert!(!ground.to.join("d/only here").exists());
}
