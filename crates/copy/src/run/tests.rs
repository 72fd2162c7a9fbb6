//! Whole copies of small trees. What needs root and filesystems of known kind is in the lab.
#![allow(clippy::disallowed_methods, reason = "tests look at what was made past the I/O module")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::receipt::CopyReceipt;

use super::*;

struct Fixture {
    _directory: tempfile::TempDir,
    from: PathBuf,
    to: PathBuf,
}

impl Fixture {
    fn new() -> Self {
        // Every pass waits for stable storage, of which memory has none to wait for.
        let memory = Path::new("/dev/shm");
        let directory =
            if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let directory = directory.unwrap();
        let (from, to) = (directory.path().join("from"), directory.path().join("to"));
        fs::create_dir(&from).unwrap();
        Fixture { _directory: directory, from, to }
    }

    fn copy(&self, options: &CopyOptions) -> Result<CopyReceipt, CopyError> {
        copy(&self.from, &self.to, options, &mut |_| {})
    }

    fn first(&self) -> CopyReceipt {
        self.copy(&CopyOptions::default()).unwrap()
    }

    fn again(&self) -> CopyReceipt {
        let options = CopyOptions { again: true, ..CopyOptions::default() };
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

fn assert_same(fixture: &Fixture) {
    assert_eq!(seen(&fixture.from), seen(&fixture.to));
}

fn grow_a_tree(fixture: &Fixture) {
    let from = &fixture.from;
    fs::create_dir_all(from.join("etc/deep/er")).unwrap();
    fs::create_dir(from.join("empty")).unwrap();
    fixture.write("etc/passwd", "root:x:0:0");
    fixture.write("etc/deep/er/file", "here");
    // Between a directory and what is in it, were it not for the order of the walk.
    fixture.write("etc.conf", "dot");
    fixture.write("etc-conf", "dash");
    fs::write(from.join(OsStr::from_bytes(b"new\nline \xff")), "odd").unwrap();
    fs::write(from.join("x".repeat(255)), "long").unwrap();
    symlink("etc/passwd", from.join("link")).unwrap();
    symlink("/nowhere", from.join("dangling")).unwrap();
    for name in 0..100 {
        fs::hard_link(from.join("etc/passwd"), from.join(format!("etc/deep/name-{name}"))).unwrap();
    }
    fs::set_permissions(from.join("etc.conf"), fs::Permissions::from_mode(0o4750)).unwrap();
    fs::set_permissions(from.join("empty"), fs::Permissions::from_mode(0o1777)).unwrap();
    fs::set_permissions(from.join("etc"), fs::Permissions::from_mode(0o555)).unwrap();
}

#[test]
fn a_tree_arrives_as_it_was() {
    let fixture = Fixture::new();
    grow_a_tree(&fixture);
    let receipt = fixture.first();
    assert_same(&fixture);
    assert!(receipt.is_complete(), "{receipt:#?}");
    assert_eq!((receipt.hard_links, receipt.entries.links), (100, 2));
    assert_eq!((receipt.entries.directories, receipt.pass), (5, 1));
    assert_eq!(receipt.entries.files, 106);
}

#[test]
fn a_second_pass_copies_what_was_touched_and_removes_what_vanished() {
    let fixture = Fixture::new();
    grow_a_tree(&fixture);
    fixture.first();
    let receipt = fixture.again();
    assert_eq!(receipt.unchanged, 108, "{receipt:#?}");
    assert_eq!((receipt.deleted, receipt.copied_bytes, receipt.pass), (0, 0, 2));

    let from = &fixture.from;
    fixture.write("etc.conf", "changed");
    fs::remove_file(from.join("etc-conf")).unwrap();
    fs::remove_dir_all(from.join("etc/deep/er")).unwrap();
    // A file becomes a directory and the other way round.
    fs::remove_file(from.join("link")).unwrap();
    fs::create_dir(from.join("link")).unwrap();
    fixture.write("link/inside", "x");
    fs::remove_dir(from.join("empty")).unwrap();
    fixture.write("empty", "full now");
    // One of a hundred names becomes a file of its own with the same contents.
    fs::remove_file(from.join("etc/deep/name-7")).unwrap();
    fixture.write("etc/deep/name-7", "root:x:0:0");
    let receipt = fixture.again();
    assert_same(&fixture);
    assert_eq!(receipt.deleted, 3);
    assert_eq!(receipt.pass, 3);
    assert_eq!(fixture.again().copied_bytes, 0);
}

#[test]
fn the_last_pass_leaves_nothing_of_its_own() {
    let fixture = Fixture::new();
    grow_a_tree(&fixture);
    let options = CopyOptions { is_last: true, ..CopyOptions::default() };
    fixture.copy(&options).unwrap();
    assert!(!fixture.to.join(DIRECTORY).exists());
    assert_same(&fixture);
}

#[test]
fn what_is_excluded_stays_out_and_is_not_removed() {
    let fixture = Fixture::new();
    grow_a_tree(&fixture);
    let options = |again| CopyOptions {
        excludes: Paths::new(&["/etc/*", "/link"]).unwrap(),
        again,
        ..CopyOptions::default()
    };
    fixture.copy(&options(false)).unwrap();
    assert!(!fixture.to.join("link").exists());
    let mode = fs::metadata(fixture.to.join("etc")).unwrap().mode();
    assert_eq!(mode & 0o7777, 0o555);
    assert_eq!(fs::read_dir(fixture.to.join("etc")).unwrap().count(), 0);
    fs::set_permissions(fixture.to.join("etc"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(fixture.to.join("etc/fstab"), "of the target").unwrap();
    fixture.copy(&options(true)).unwrap();
    assert!(fixture.to.join("etc/fstab").exists());
}

#[test]
fn holes_stay_holes() {
    let fixture = Fixture::new();
    let file = fs::File::create(fixture.from.join("sparse")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"middle", 5 << 20).unwrap();
    file.set_len(32 << 20).unwrap();
    drop(file);
    let receipt = fixture.first();
    let meta = fs::metadata(fixture.to.join("sparse")).unwrap();
    assert_eq!(meta.len(), 32 << 20);
    assert!(meta.blocks() * 512 < 1 << 20, "{} blocks", meta.blocks());
    assert_same(&fixture);
    assert!(receipt.hole_bytes > 31 << 20 || receipt.shared_bytes == 32 << 20);
}

#[test]
fn a_path_longer_than_the_kernel_takes_is_copied_and_removed() {
    let fixture = Fixture::new();
    let name = "d".repeat(200);
    let mut at = Directory::open_root(&fixture.from).unwrap();
    for _ in 0..60 {
        at.make_directory(OsStr::new(&name)).unwrap();
        at = at.open(OsStr::new(&name)).unwrap();
    }
    drop(at.make_file(OsStr::new("bottom")).unwrap());
    let receipt = fixture.first();
    assert!(receipt.is_complete(), "{receipt:#?}");
    let path = vec![name.as_str(); 60].join("/");
    let to = Directory::open_root(&fixture.to).unwrap();
    let bottom = to.open_beneath(path.as_bytes()).unwrap();
    assert!(bottom.look_at(OsStr::new("bottom")).is_ok());
    assert_eq!(fixture.again().unchanged, 1);
    // The other way to remove it would be a path.
    let mut bin = Bin::new(to.open(OsStr::new(DIRECTORY)).unwrap()).unwrap();
    assert_eq!(bin.remove(&to, OsStr::new(&name)).unwrap(), 61);
    let from = Directory::open_root(&fixture.from).unwrap();
    fs::create_dir(fixture.from.join("bin")).unwrap();
    let mut bin = Bin::new(from.open(OsStr::new("bin")).unwrap()).unwrap();
    bin.remove(&from, OsStr::new(&name)).unwrap();
}

#[test]
fn a_stopped_copy_is_gone_on_with() {
    let fixture = Fixture::new();
    for directory in 0..10 {
        fs::create_dir(fixture.from.join(format!("{directory}"))).unwrap();
        for file in 0..1000 {
            fixture.write(&format!("{directory}/{file}"), "some text");
        }
    }
    let stop = Arc::new(AtomicBool::new(false));
    let options = CopyOptions {
        stop: Some(Arc::clone(&stop)),
        dirty_limit_bytes: Some(1 << 20),
        ..CopyOptions::default()
    };
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(fixture.copy(&options), Err(CopyError::Stopped));
    stop.store(false, std::sync::atomic::Ordering::Relaxed);
    let receipt = fixture.copy(&options).unwrap();
    assert!(receipt.is_resumed && receipt.pass == 1, "{receipt:#?}");
    assert_same(&fixture);
}

#[test]
fn wrong_targets_are_refused() {
    let fixture = Fixture::new();
    grow_a_tree(&fixture);
    let refused = |from: &Path, to: &Path, again| {
        let options = CopyOptions { again, ..CopyOptions::default() };
        match copy(from, to, &options, &mut |_| {}) {
            Err(CopyError::Refused(why)) => why,
            other => panic!("{other:?}"),
        }
    };
    let (from, to) = (&fixture.from, &fixture.to);
    assert!(refused(from, from, false).contains("same directory"));
    assert!(refused(from, &from.join("empty"), false).contains("within the source"));
    assert!(refused(&from.join("empty"), from, false).contains("within the target"));
    fs::create_dir(to).unwrap();
    assert!(refused(from, to, true).contains("leave --again out"));
    fs::write(to.join("mine"), "").unwrap();
    assert!(refused(from, to, false).contains("not empty"));
    fs::remove_file(to.join("mine")).unwrap();
    fixture.first();
    assert!(refused(from, to, false).contains("--again"));
    let other = Fixture::new();
    assert!(refused(&other.from, to, true).contains("another source"));
}

#[test]
fn a_refused_target_is_not_left_behind() {
    let fixture = Fixture::new();
    let inside = fixture.from.join("new");
    let refused = copy(&fixture.from, &inside, &CopyOptions::default(), &mut |_| {});
    assert!(matches!(refused, Err(CopyError::Refused(_))), "{refused:?}");
    assert!(!inside.exists());
    fs::create_dir(&inside).unwrap();
    let refused = copy(&fixture.from, &inside, &CopyOptions::default(), &mut |_| {});
    assert!(matches!(refused, Err(CopyError::Refused(_))), "{refused:?}");
    assert!(inside.exists(), "what was there stays");
}

#[test]
fn the_manifest_of_an_earlier_copy_is_left_out_and_named() {
    let fixture = Fixture::new();
    fixture.write("a", "x");
    fs::create_dir(fixture.from.join(".rubus-copy")).unwrap();
    fixture.write(".rubus-copy/manifest-1", "of another copy");
    let receipt = fixture.first();
    let told = |skipped: &[crate::receipt::Remark]| {
        skipped.iter().any(|remark| remark.path.contains(".rubus-copy"))
    };
    assert!(told(&receipt.skipped.examples), "{receipt:?}");
    let options = CompareOptions::default();
    let compared = compare(&fixture.from, &fixture.to, &options, &mut |_| {}).unwrap();
    assert!(told(&compared.skipped.examples), "{compared:?}");
}

#[test]
fn a_copy_goes_on_over_an_emptied_manifest_and_removes_nothing() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.from.join("d")).unwrap();
    fixture.write("d/a", "one");
    fixture.first();
    let manifests = fs::read_dir(fixture.to.join(".rubus-copy")).unwrap();
    for manifest in manifests.flatten() {
        fs::write(manifest.path(), "").unwrap();
    }
    // Nothing tells any more whose copy it is.
    fs::write(fixture.to.join("d/only here"), "").unwrap();
    fixture.write("d/a", "two");
    fixture.again();
    assert_eq!(fs::read(fixture.to.join("d/a")).unwrap(), b"two");
    assert!(fixture.to.join("d/only here").exists());
    fixture.again();
    assert!(!fixture.to.join("d/only here").exists());
}
