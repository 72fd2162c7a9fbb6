//! The comparison of two trees, entry by entry and byte by byte.
//!
//! It shares with the copy only the I/O module and the list of what a filesystem keeps for itself: its walk, its
//! notion of sameness and its reading are its own, so that a mistake in the copy is not made twice.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::receipt::{Comparison, Contents, Progress, Remark, Stage, path_text};
use rubus_host::files::copy_io::{Directory, Failure, Flags, Kind, Listed, Meta, Place, Reason};

use super::links::{Identity, identity};
use super::manifest::DIRECTORY;
use super::metadata::is_foreign;
use super::paths::Paths;
use super::read_both::{Job, Reading, read_both};
use super::teller::Teller;
use super::trouble::CopyError;
use super::walk::{IS_MANIFEST, IS_TARGET, is_elsewhere};
use super::window::join;

/// Files whose contents are compared together.
const BATCH_FILES: usize = 256;
/// Bytes of these.
const BATCH_BYTES: u64 = 64 << 20;

/// How two trees are compared.
#[derive(Clone, Debug)]
pub struct CompareOptions {
    /// What is not looked at, in either tree.
    pub excludes: Paths,
    /// How much of the contents is read.
    pub contents: Contents,
    /// Of a sample: about how many bytes, chosen by chance among all.
    pub sample_bytes: u64,
    /// Of a sample: what is read as a whole besides.
    pub wholly: Paths,
    /// Of a sample: the same number chooses the same pieces.
    pub seed: u64,
    /// Threads that read.
    pub workers: usize,
    /// Set by another thread to stop the comparison early.
    pub stop: Option<Arc<AtomicBool>>,
}

impl Default for CompareOptions {
    fn default() -> Self {
        CompareOptions {
            excludes: Paths::default(),
            contents: Contents::Sample,
            sample_bytes: 256 << 20,
            wholly: Paths::default(),
            seed: 1,
            workers: 4,
            stop: None,
        }
    }
}

/// Compares what is in `target` with what should be: `source`. Kind, owner, mode, length, time of change, device
/// numbers, links, hard links, extended attributes, access control lists and flags of every entry, and contents as far
/// as [`CompareOptions::contents`] says, read from the target's device and not from memory. Times of access are not
/// compared, since reading changes them.
///
/// # Errors
/// When one of the roots cannot be read, or it was told to stop.
pub fn compare(
    source: &Path,
    target: &Path,
    options: &CompareOptions,
    tell: &mut dyn FnMut(Progress),
) -> Result<Comparison, CopyError> {
    let from = Directory::open_root(source)
        .map_err(|failure| CopyError::Source { path: source.display().to_string(), failure })?;
    let target_failed = |failure| CopyError::Target { path: target.display().to_string(), failure };
    let to = Directory::open_root(target).map_err(target_failed)?;
    // What is still to be written could not be taken out of memory.
    to.sync_filesystem().map_err(target_failed)?;
    let mut comparing = Comparing {
        options,
        root: from.look().map_err(target_failed)?,
        target: to.look().ok().as_ref().map(identity),
        from,
        to,
        found: Comparison {
            source: source.display().to_string(),
            target: target.display().to_string(),
            contents: options.contents,
            seed: options.seed,
            ..Comparison::default()
        },
        twins: HashMap::new(),
        owners: HashMap::new(),
        opened: None,
        jobs: Vec::new(),
        jobs_bytes: 0,
        share: 0.0,
        teller: Teller::new(Stage::Comparing, (None, None)),
    };
    let (entries, bytes) = comparing.measure(tell)?;
    comparing.found.content_bytes = bytes;
    comparing.share = match options.contents {
        Contents::None => 0.0,
        Contents::Sample => (options.sample_bytes as f64 / bytes.max(1) as f64).min(1.0),
        Contents::All => 1.0,
    };
    comparing.teller = Teller::new(Stage::Comparing, (Some(entries), Some(bytes)));
    comparing.walk(tell)?;
    comparing.found.elapsed_s = comparing.teller.elapsed_s();
    Ok(comparing.found)
}

/// A directory on the way from the root to where the walk is.
struct Level {
    path: Vec<u8>,
    listed: Listed,
    next: usize,
}

type Both = (Arc<Directory>, Arc<Directory>);

struct Comparing<'a> {
    options: &'a CompareOptions,
    from: Directory,
    to: Directory,
    root: Meta,
    target: Option<Identity>,
    found: Comparison,
    /// For files of the source with several names: their number in the target, and names still to come.
    twins: HashMap<Identity, (u64, u32)>,
    /// The other way round.
    owners: HashMap<u64, Identity>,
    opened: Option<(Vec<u8>, Arc<Directory>, Arc<Directory>)>,
    jobs: Vec<Job>,
    jobs_bytes: u64,
    share: f64,
    teller: Teller,
}

impl Comparing<'_> {
    /// Entries and bytes of the source, so that a sample can be a share of them.
    fn measure(&mut self, tell: &mut dyn FnMut(Progress)) -> Result<(u64, u64), CopyError> {
        let (mut entries, mut bytes) = (0, 0);
        let mut todo = vec![Vec::new()];
        while let Some(path) = todo.pop() {
            self.may_go_on()?;
            let Ok(directory) = self.from.open_beneath(&path) else {
                continue;
            };
            let listed = directory.list().unwrap_or_default();
            for (name, kind) in (0..listed.len()).filter_map(|i| listed.get(i)) {
                let whole = join(&path, name);
                if self.is_excluded(&whole) {
                    continue;
                }
                entries += 1;
                match kind {
                    // Mounts cannot be opened on this way.
                    Kind::Directory => todo.push(whole),
                    Kind::File | Kind::Unknown => {
                        bytes += directory.look_at(name).map_or(0, |meta| meta.size_bytes);
                    }
                    _ => {}
                }
            }
            self.teller.tell(None, tell);
        }
        Ok((entries, bytes))
    }

    fn may_go_on(&self) -> Result<(), CopyError> {
        let stop = self.options.stop.as_ref();
        if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            Err(CopyError::Stopped)
        } else {
            Ok(())
        }
    }

    fn is_excluded(&self, path: &[u8]) -> bool {
        path == DIRECTORY.as_bytes() || self.options.excludes.cover(path)
    }

    fn walk(&mut self, tell: &mut dyn FnMut(Progress)) -> Result<(), CopyError> {
        let mut stack = Vec::new();
        self.found.entries.directories += 1;
        let whole = (Place::Directory(&self.from), Place::Directory(&self.to));
        let metas = (self.from.look(), self.to.look());
        let mut differences = Vec::new();
        if let (Ok(meta), Ok(there)) = metas {
            differences = compare_meta(&meta, &there);
            differences.extend(compare_dress(whole.0, whole.1));
        }
        self.differ_in(b"", differences);
        if self.from.look_at(OsStr::new(DIRECTORY)).is_ok() {
            self.found
                .skipped
                .add(Remark { path: DIRECTORY.to_string(), what: IS_MANIFEST.to_string() });
        }
        self.enter(Vec::new(), &mut stack);
        while let Some(level) = stack.last_mut() {
            self.may_go_on()?;
            let index = level.next;
            level.next += 1;
            let Some((name, _)) = level.listed.get(index) else {
                stack.pop();
                continue;
            };
            let name = name.to_owned();
            let path = join(&level.path, &name);
            let parent = level.path.clone();
            if self.is_excluded(&path) {
                continue;
            }
            if self.entry(&parent, &name, &path) == Some(Kind::Directory) {
                self.enter(path, &mut stack);
            }
            if self.jobs.len() >= BATCH_FILES || self.jobs_bytes >= BATCH_BYTES {
                self.read(tell)?;
            }
            self.teller.add(1, 0);
            self.teller.tell(None, tell);
        }
        self.read(tell)
    }

    /// Lists a directory on both sides, and notes what only the target has.
    fn enter(&mut self, path: Vec<u8>, stack: &mut Vec<Level>) {
        let listed = self.from.open_beneath(&path).and_then(|at| at.list());
        let listed = match listed {
            Ok(listed) => listed,
            Err(failure) => return self.unreadable(&path, "the source", failure),
        };
        match self.to.open_beneath(&path).and_then(|at| at.list()) {
            Ok(there) => {
                for (name, _) in (0..there.len()).filter_map(|i| there.get(i)) {
                    let whole = join(&path, name);
                    let is_own = path.is_empty() && name == "lost+found";
                    if !listed.has(name) && !is_own && !self.is_excluded(&whole) {
                        self.differ(&whole, "is not in the source");
                    }
                }
            }
            Err(failure) => return self.unreadable(&path, "the target", failure),
        }
        stack.push(Level { path, listed, next: 0 });
    }

    /// Compares one entry but for its contents; gives its kind if it is to be gone into.
    fn entry(&mut self, parent: &[u8], name: &OsStr, path: &[u8]) -> Option<Kind> {
        let (from, to) = match self.both(parent) {
            Ok(both) => both,
            Err((side, failure)) => {
                self.unreadable(path, side, failure);
                return None;
            }
        };
        let (from, to) = (&*from, &*to);
        let meta = match from.look_at(name) {
            Ok(meta) => meta,
            Err(failure) => {
                self.unreadable(path, "the source", failure);
                return None;
            }
        };
        if meta.kind == Kind::Directory && Some(identity(&meta)) == self.target {
            self.found.skipped.add(Remark { path: path_text(path), what: IS_TARGET.to_string() });
            return None;
        }
        if self.is_elsewhere(&meta) {
            self.found.skipped.add(Remark {
                path: path_text(path),
                what: "is on another filesystem".to_string(),
            });
            return None;
        }
        let there = match to.look_at(name) {
            Ok(there) => there,
            Err(failure) if failure.reason() == Reason::Gone => {
                self.differ(path, "is missing in the target");
                return None;
            }
            Err(failure) => {
                self.unreadable(path, "the target", failure);
                return None;
            }
        };
        self.count(meta.kind);
        if meta.kind != there.kind {
            let what = format!("is a {} and not a {}", word(there.kind), word(meta.kind));
            self.differ(path, &what);
            return None;
        }
        let mut differences = compare_meta(&meta, &there);
        differences.extend(self.compare_names(&meta, &there));
        differences.extend(compare_inside(from, to, name, &meta));
        self.differ_in(path, differences);
        if meta.kind == Kind::File {
            self.want_contents(path, &meta, &there);
        }
        Some(meta.kind)
    }

    /// A directory on both sides; most entries are in the same one as the entry before.
    fn both(&mut self, path: &[u8]) -> Result<Both, (&'static str, Failure)> {
        if let Some((last, from, to)) = &self.opened {
            if last == path {
                return Ok((Arc::clone(from), Arc::clone(to)));
            }
        }
        let from = self.from.open_beneath(path);
        let to = self.to.open_beneath(path);
        let from = Arc::new(from.map_err(|failure| ("the source", failure))?);
        let to = Arc::new(to.map_err(|failure| ("the target", failure))?);
        self.opened = Some((path.to_vec(), Arc::clone(&from), Arc::clone(&to)));
        Ok((from, to))
    }

    fn is_elsewhere(&self, meta: &Meta) -> bool {
        let is_elsewhere = is_elsewhere(meta, &self.root);
        is_elsewhere && (meta.kind == Kind::Directory || meta.device != self.root.device)
    }

    fn count(&mut self, kind: Kind) {
        let entries = &mut self.found.entries;
        match kind {
            Kind::File => entries.files += 1,
            Kind::Directory => entries.directories += 1,
            Kind::Link => entries.links += 1,
            _ => entries.nodes += 1,
        }
    }

    /// Names of one file in the source must be names of one file in the target, and of no other.
    fn compare_names(&mut self, meta: &Meta, there: &Meta) -> Option<String> {
        if meta.kind == Kind::Directory || (meta.names == 1 && there.names == 1) {
            return None;
        }
        if meta.names == 1 {
            return Some(format!("has {} names and not 1", there.names));
        }
        let owner = *self.owners.entry(there.inode).or_insert(identity(meta));
        let (twin, left) = self.twins.entry(identity(meta)).or_insert((there.inode, meta.names));
        *left = left.saturating_sub(1);
        let is_one = *twin == there.inode && owner == identity(meta);
        if *left == 0 {
            let twin = *twin;
            self.twins.remove(&identity(meta));
            self.owners.remove(&twin);
        }
        (!is_one).then(|| "is not a name of the same file as in the source".to_string())
    }

    fn want_contents(&mut self, path: &[u8], meta: &Meta, there: &Meta) {
        let is_wanted = self.options.contents != Contents::None;
        if !is_wanted || meta.size_bytes != there.size_bytes {
            return;
        }
        let is_whole = self.share >= 1.0 || self.options.wholly.cover(path);
        let reading = if is_whole {
            Reading::Whole
        } else {
            Reading::Sample { share: self.share, seed: self.options.seed }
        };
        self.jobs_bytes += meta.size_bytes;
        self.jobs.push(Job {
            path: path.to_vec(),
            bytes: meta.size_bytes,
            has_holes: meta.allocated_bytes < meta.size_bytes,
            reading,
        });
    }

    /// Compares the contents that are waiting for it.
    fn read(&mut self, tell: &mut dyn FnMut(Progress)) -> Result<(), CopyError> {
        let jobs = std::mem::take(&mut self.jobs);
        let bytes = std::mem::take(&mut self.jobs_bytes);
        let workers = self.options.workers.clamp(1, 64);
        let stop = self.options.stop.as_deref();
        let read = read_both(&self.from, &self.to, &jobs, workers, stop);
        self.found.compared_bytes += read.bytes;
        self.found.differences.join(read.differences);
        self.teller.add(0, bytes);
        self.teller.tell(None, tell);
        Ok(())
    }

    fn differ(&mut self, path: &[u8], what: &str) {
        self.found.differences.add(Remark { path: path_text(path), what: what.to_string() });
    }

    fn differ_in(&mut self, path: &[u8], differences: Vec<String>) {
        for what in differences {
            self.differ(path, &what);
        }
    }

    /// What cannot be read cannot be said to be the same.
    fn unreadable(&mut self, path: &[u8], side: &str, failure: Failure) {
        self.differ(path, &format!("cannot be compared, {side}: {failure}"));
    }
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "file",
        Kind::Directory => "directory",
        Kind::Link => "symbolic link",
        Kind::Block => "block device",
        Kind::Character => "character device",
        Kind::Fifo => "named pipe",
        Kind::Socket => "socket",
        Kind::Unknown => "thing of unknown kind",
    }
}

fn compare_meta(meta: &Meta, there: &Meta) -> Vec<String> {
    let mut differences = Vec::new();
    let mut differ = |what: String| differences.push(what);
    let has_mode = meta.kind != Kind::Link;
    if has_mode && meta.mode != there.mode {
        differ(format!("has mode {:04o} and not {:04o}", there.mode, meta.mode));
    }
    if (meta.owner, meta.group) != (there.owner, there.group) {
        differ(format!(
            "belongs to {}:{} and not to {}:{}",
            there.owner, there.group, meta.owner, meta.group
        ));
    }
    let has_length = matches!(meta.kind, Kind::File | Kind::Link);
    if has_length && meta.size_bytes != there.size_bytes {
        differ(format!("has {} bytes and not {}", there.size_bytes, meta.size_bytes));
    }
    if meta.modified != there.modified && !is_placeholder(meta) {
        let time = |m: &Meta| format!("{}.{:09}", m.modified.seconds, m.modified.nanoseconds);
        differ(format!("is of {} and not of {}", time(there), time(meta)));
    }
    let is_device = matches!(meta.kind, Kind::Block | Kind::Character);
    if is_device && meta.stands_for != there.stands_for {
        let (a, b) = (there.stands_for, meta.stands_for);
        differ(format!("is device {}:{} and not {}:{}", a.0, a.1, b.0, b.1));
    }
    differences
}

/// Whether it is what a snapshot of btrfs has in place of a subvolume: an empty directory with the number 2, whose times are those
/// of the moment at which it is looked at.
fn is_placeholder(meta: &Meta) -> bool {
    meta.kind == Kind::Directory && (meta.inode, meta.names) == (2, 1)
}

/// Attributes, flags, and where a link points.
fn compare_inside(from: &Directory, to: &Directory, name: &OsStr, meta: &Meta) -> Vec<String> {
    let failed = |failure: Failure| vec![format!("cannot be compared: {failure}")];
    match meta.kind {
        Kind::File => match (from.read_file(name), to.read_file(name)) {
            (Ok(a), Ok(b)) => compare_dress(Place::File(&a), Place::File(&b)),
            (Err(failure), _) | (_, Err(failure)) => failed(failure),
        },
        Kind::Directory => match (from.open(name), to.open(name)) {
            (Ok(a), Ok(b)) => compare_dress(Place::Directory(&a), Place::Directory(&b)),
            (Err(failure), _) | (_, Err(failure)) => failed(failure),
        },
        _ => {
            let mut differences = compare_dress(Place::Entry(from, name), Place::Entry(to, name));
            if meta.kind == Kind::Link && from.read_link(name).ok() != to.read_link(name).ok() {
                differences.push("points elsewhere".to_string());
            }
            differences
        }
    }
}

fn compare_dress(source: Place<'_>, target: Place<'_>) -> Vec<String> {
    let mut differences = Vec::new();
    let (ours, theirs) = (attributes(source), attributes(target));
    for (name, value) in &ours {
        let text = path_text(name.as_bytes());
        match theirs.iter().find(|(other, _)| other == name) {
            None => differences.push(format!("lacks the attribute {text}")),
            Some((_, other)) if other != value => {
                differences.push(format!("has another value of the attribute {text}"));
            }
            Some(_) => {}
        }
    }
    for (name, _) in &theirs {
        let is_label = name.as_bytes().starts_with(b"security.selinux");
        if !is_label && !ours.iter().any(|(other, _)| other == name) {
            let text = path_text(name.as_bytes());
            differences.push(format!("has the attribute {text}, which the source has not"));
        }
    }
    let kept = |place: Place<'_>| place.flags().unwrap_or_default().and(Flags::KEPT);
    let (ours, theirs) = (kept(source), kept(target));
    if ours != theirs {
        differences.push(format!(
            "has the flags '{}' and not '{}'",
            theirs.letters(),
            ours.letters()
        ));
    }
    differences
}

type Attribute = (OsString, Option<Vec<u8>>);

fn attributes(place: Place<'_>) -> Vec<Attribute> {
    let names = place.attributes().unwrap_or_default();
    let wanted = names.into_iter().filter(|name| !is_foreign(name));
    wanted
        .map(|name| {
            let value = place.attribute(&name).ok();
            (name, value)
        })
        .collect()
}
