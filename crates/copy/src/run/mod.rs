//! The copy of a tree: faithful, in the order of the disk, resumed after an interruption, and brought up to date by a
//! second pass.
//!
//! A pass walks the source in a fixed order (`walk`), copies windows of some thousand entries with several threads
//! (`window`, `stretch`, `entry`, `contents`, `metadata`), and writes a manifest of what is on stable storage (`manifest`).
//! The next pass reads that manifest beside its own walk, and copies what was touched since. An interrupted pass is the
//! same with a manifest that ends early.
//!
//! Memory does not grow with the tree, but for about 60 bytes and a path for each file with several names of which not
//! all were met yet, and about 24 bytes and its name for each entry of the directories between the root and the walk.
//!
//! Nothing outside the target is touched. In it, only names below the target's root are made, replaced and removed,
//! always relative to open directories and never through a link.

pub mod compare;
mod contents;
mod entry;
mod links;
mod manifest;
mod metadata;
mod pass;
mod paths;
mod read_both;
mod removal;
mod shared;
mod stretch;
mod teller;
#[cfg(test)]
mod tests;
mod trouble;
mod walk;
mod window;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::receipt::{CopyReceipt, Progress, Stage};
use rubus_host::files::copy_io::{
    Directory, Failure, Meta, Place, Reason, allow_many_files, memory_bytes, processors,
};
use rubus_host::{Files, Live};
use rubus_vocabulary::checksum::xxh64;

pub use compare::{CompareOptions, compare};
pub use paths::Paths;
pub use trouble::CopyError;

use links::identity;
use manifest::{DIRECTORY, Earlier, Head, Writer};
use metadata::apply_metadata;
use pass::Beginning;
use removal::{Bin, unlock};
use teller::Teller;
use window::Pair;

/// How a tree is copied.
#[derive(Clone, Debug, Default)]
pub struct CopyOptions {
    /// What is left out.
    pub excludes: Paths,
    /// Threads that copy; without a number, what suits the source's device.
    pub workers: Option<usize>,
    /// Whether a finished copy is brought up to date: what was touched since the last pass is copied again, what
    /// vanished is removed, and a file that changes under the copy's hands is tried again.
    pub again: bool,
    /// Whether this is the last pass: the manifest (`.rubus-copy` in the target) is removed at its end.
    pub is_last: bool,
    /// Whether a directory on which another filesystem is mounted is a loss, and not only told of: for a copy that has to
    /// be the whole of what it is made from.
    pub is_whole: bool,
    /// Whether small files are never read from the disk below the filesystem, several at once, but each through the
    /// filesystem. It is slower, and otherwise the same.
    pub by_file: bool,
    /// What may be written and not yet on stable storage, in bytes; without a number, an eighth of the memory, at
    /// most 256 MiB.
    pub dirty_limit_bytes: Option<u64>,
    /// Set by another thread to stop the copy early. The same call resumes it later.
    pub stop: Option<Arc<AtomicBool>>,
}

/// Copies a directory with all that is in it on the same filesystem; subvolumes of btrfs become directories. The target
/// must not exist, be an empty directory, or hold an interrupted copy of the same source, which is resumed; for another
/// pass over a finished copy see [`CopyOptions::again`]. `tell` is called a few times a second, in the caller's thread.
///
/// What cannot be read is told of in the receipt ([`CopyReceipt::has_losses`]), and the copy goes on.
///
/// # Errors
/// When the target is not as said above or lies within the source or around it, when the source's root cannot be read,
/// when the target is full or fails, or when the copy was told to stop.
pub fn copy(
    source: &Path,
    target: &Path,
    options: &CopyOptions,
    tell: &mut dyn FnMut(Progress),
) -> Result<CopyReceipt, CopyError> {
    let live = Live::new();
    let source_name = source.display().to_string();
    let target_name = target.display().to_string();
    let source_failed = |failure| CopyError::Source { path: source_name.clone(), failure };
    let target_failed = |failure| CopyError::Target { path: target_name.clone(), failure };
    let from = Directory::open_root(source).map_err(source_failed)?;
    let source_meta = from.look().map_err(source_failed)?;
    let (to, made) = open_target(target).map_err(target_failed)?;
    let target_meta = to.look().map_err(target_failed)?;
    if let Err(refused) = keep_apart(&from, &source_meta, &to, &target_meta) {
        if let Some((parent, name)) = made {
            // It is empty: nothing was begun.
            let _ = parent.remove_directory(&name);
        }
        return Err(refused);
    }

    let (own, earlier, is_fresh) =
        look_back(&to, options, &target_name).map_err(|trouble| match trouble {
            Ok(failure) => target_failed(failure),
            Err(refused) => CopyError::Refused(refused),
        })?;
    let real = live.real_path(source).unwrap_or_else(|_| source.into());
    let path_sum = xxh64(real.as_os_str().as_bytes(), 0);
    let newest = earlier.newest();
    let head = head(newest, &source_meta, path_sum, options, &target_name)?;
    let is_resumed = newest.is_some_and(|(_, is_complete)| !is_complete);
    let writer = Writer::new(&own, &earlier.next_name(), &head).map_err(target_failed)?;
    own.sync().map_err(target_failed)?;
    let stale = earlier.names.clone();
    let mut bin = Bin::new(own.again().map_err(target_failed)?).map_err(target_failed)?;
    bin.empty().map_err(target_failed)?;

    let mut teller = Teller::new(Stage::Copying, teller::expected(&from, &source_meta));
    let workers =
        options.workers.unwrap_or_else(|| workers_for(&live, source_meta.device)).clamp(1, 64);
    let root = Arc::new(Pair { source: from, target: to, path: Vec::new(), is_fresh });
    let beginning = Beginning {
        root: Arc::clone(&root),
        source_name: source_name.clone(),
        target_name: target_name.clone(),
        earlier,
        writer,
        bin,
        workers,
        max_directories: max_directories(workers),
        is_one_filesystem: may_share(&source_meta, &target_meta, &root),
        dirty_limit_bytes: options.dirty_limit_bytes.unwrap_or_else(dirty_limit).max(1 << 20),
    };
    let (mut receipt, root_meta) = pass::run(options, beginning, &mut teller, tell)?;
    clean_up(&root, &own, &stale, options.is_last).map_err(target_failed)?;
    drop(own);
    let places = (Place::Directory(&root.source), Place::Directory(&root.target));
    let applied = apply_metadata(places.0, places.1, &root_meta);
    let applied = applied.map_err(|trouble| trouble.into_error(target_name.clone()))?;
    entry::tell_applied("", applied, &mut receipt);
    root.target.sync_filesystem().map_err(target_failed)?;
    receipt.source = source_name;
    receipt.target = target_name.clone();
    receipt.pass = head.pass;
    receipt.is_resumed = is_resumed;
    receipt.elapsed_s = teller.elapsed_s();
    receipt.workers = workers;
    Ok(receipt)
}

/// Where a directory was made, and its name.
type Made = (Directory, OsString);

/// Opens the root of the target, making it if it does not exist.
fn open_target(target: &Path) -> Result<(Directory, Option<Made>), Failure> {
    match Directory::open_root(target) {
        Err(failure) if failure.reason() == Reason::Gone => {
            let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else {
                return Err(failure);
            };
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            let parent = Directory::open_root(parent)?;
            parent.make_directory(name)?;
            let opened = parent.open(name)?;
            Ok((opened, Some((parent, name.to_owned()))))
        }
        other => other.map(|opened| (opened, None)),
    }
}

/// Neither may lie in the other, on one filesystem: the copy would copy itself. Goes up from each, which no link and no
/// second mount can hide.
fn keep_apart(
    source: &Directory,
    source_meta: &Meta,
    target: &Directory,
    target_meta: &Meta,
) -> Result<(), CopyError> {
    let refused = |what: &str| Err(CopyError::Refused(what.to_string()));
    if identity(source_meta) == identity(target_meta) {
        return refused("the source and the target are the same directory");
    }
    if lies_in(target, source_meta) {
        return refused(
            "the target lies within the source; take one outside it, or on another filesystem",
        );
    }
    if lies_in(source, target_meta) {
        return refused("the source lies within the target; take a target elsewhere");
    }
    Ok(())
}

fn lies_in(inner: &Directory, outer: &Meta) -> bool {
    let (Ok(mut at), Ok(own)) = (inner.again(), inner.look()) else {
        return false;
    };
    let mut last = None;
    while let (Ok(meta), Ok(above)) = (at.look(), at.open(OsStr::new(".."))) {
        if identity(&meta) == identity(outer) {
            return true;
        }
        // What is mounted within a directory is no part of it.
        if walk::is_elsewhere(&meta, &own) {
            return false;
        }
        // The root is above itself.
        if last == Some(identity(&meta)) {
            return false;
        }
        last = Some(identity(&meta));
        at = above;
    }
    false
}

/// The copy's own directory, what earlier passes left in it, and whether the target was empty.
type LookedBack = (Directory, Earlier, bool);

/// Opens the copy's own directory in the target, and what earlier passes left in it; makes it in an empty target.
/// Fails with a failure, or with words.
fn look_back(
    target: &Directory,
    options: &CopyOptions,
    target_name: &str,
) -> Result<LookedBack, Result<Failure, String>> {
    let own_name = OsStr::new(DIRECTORY);
    let listed = target.list().map_err(Ok)?;
    if listed.has(own_name) {
        let own = target.open(own_name).map_err(Ok)?;
        let is_ours = own.look().map_err(Ok)?.mode & 0o077 == 0;
        let earlier = Earlier::open(&own).map_err(Ok)?;
        if !is_ours {
            return Err(Err(format!(
                "{target_name}/{DIRECTORY} may be changed by others; look at it, or take an empty target"
            )));
        }
        return Ok((own, earlier, false));
    }
    if options.again {
        return Err(Err(format!(
            "{target_name} holds no copy that could be brought up to date; leave --again out to make one"
        )));
    }
    let names = (0..listed.len()).filter_map(|i| listed.get(i));
    let others = names.filter(|(name, _)| *name != "lost+found").count();
    if others > 0 {
        return Err(Err(format!(
            "{target_name} is not empty ({others} entries), and was not made by a copy; take an empty directory"
        )));
    }
    unlock(Place::Directory(target)).map_err(Ok)?;
    target.make_directory(own_name).map_err(Ok)?;
    let own = target.open(own_name).map_err(Ok)?;
    target.sync().map_err(Ok)?;
    Ok((own, Earlier::default(), true))
}

/// What the new manifest says about its source; refuses when the earlier ones do not fit.
fn head(
    newest: Option<(Head, bool)>,
    source: &Meta,
    path_sum: u64,
    options: &CopyOptions,
    target_name: &str,
) -> Result<Head, CopyError> {
    let head = |pass| Head { pass, root_inode: source.inode, path_sum };
    let Some((old, is_complete)) = newest else {
        return Ok(head(1));
    };
    if (old.root_inode, old.path_sum) != (source.inode, path_sum) {
        return Err(CopyError::Refused(format!(
            "{target_name} holds a copy of another source; take an empty directory"
        )));
    }
    match (is_complete, options.again) {
        (true, false) => Err(CopyError::Refused(format!(
            "{target_name} holds a finished copy of this source; --again brings it up to date"
        ))),
        (true, true) => Ok(head(old.pass + 1)),
        (false, _) => Ok(head(old.pass)),
    }
}

/// Removes the manifests that the newest one replaces, and that one too if no pass is to follow.
fn clean_up(
    root: &Pair,
    own: &Directory,
    stale: &[std::ffi::OsString],
    is_last: bool,
) -> Result<(), Failure> {
    for name in stale {
        own.remove(name)?;
    }
    if !is_last {
        return own.sync();
    }
    let listed = own.list()?;
    for (name, _) in (0..listed.len()).filter_map(|i| listed.get(i)) {
        own.remove(name)?;
    }
    root.target.remove_directory(OsStr::new(DIRECTORY))?;
    root.target.sync()
}

/// Whether contents may be shared or copied within the kernel: one device, or two subvolumes of one btrfs, which have
/// different numbers.
fn may_share(source: &Meta, target: &Meta, root: &Pair) -> bool {
    const BTRFS: u64 = 0x9123_683e;
    let is_btrfs = |directory: &Directory| directory.filesystem().is_ok_and(|f| f.magic == BTRFS);
    source.device == target.device || (is_btrfs(&root.source) && is_btrfs(&root.target))
}

/// Directories that one window may hold open, on both sides, when some windows are open at once.
fn max_directories(workers: usize) -> usize {
    let files = allow_many_files();
    let others = 64 + 40 * workers as u64;
    let share = files.saturating_sub(others) / 2 / (shared::OPEN_WINDOWS as u64 + 2);
    share.clamp(8, 1024) as usize
}

fn dirty_limit() -> u64 {
    (memory_bytes() / 8).min(256 << 20)
}

/// Threads that suit a device: a card or a rotating disk without a queue gains from two, so that one can write while the
/// other reads; what takes many requests at once gains from more.
fn workers_for(files: &dyn Files, device: (u32, u32)) -> usize {
    let base = format!("/sys/dev/block/{}:{}", device.0, device.1);
    let read = |name: &str| {
        let own = files.text(Path::new(&format!("{base}/{name}")));
        own.or_else(|_| files.text(Path::new(&format!("{base}/../{name}"))))
    };
    let is_rotating = read("queue/rotational").is_ok_and(|text| text == "1");
    let is_card =
        read("device/type").is_ok_and(|text| ["SD", "SDcombo", "MMC"].contains(&text.as_str()));
    let has_queue = read("device/cmdq_en").is_ok_and(|text| text == "1");
    if is_rotating || (is_card && !has_queue) { 2 } else { (2 * processors()).clamp(4, 8) }
}
