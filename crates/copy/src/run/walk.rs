//! The walk: directory by directory, names in order, deciding what is to be done with each entry.
//!
//! It runs ahead of the workers by a few windows. Directories are made in the target as they are met, and get their
//! owner, mode and times when everything in them is done.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, PoisonError};

use crate::receipt::{Remark, path_text};
use rubus_host::files::copy_io::{Directory, Failure, Kind, Listed, Meta, Place, Reason};

use super::links::{Identity, Links, identity};
use super::manifest::{DIRECTORY, Earlier, fingerprint};
use super::removal::unlock;
use super::shared::Shared;
use super::trouble::{CopyError, Trouble};
use super::window::{Entry, Pair, What, Window, join};

const WINDOW_ENTRIES: usize = 4096;
/// Bytes of one window; a larger file has one for itself.
const WINDOW_BYTES: u64 = 64 << 20;
/// Entries of a directory that are looked at together, in the order of their inodes.
const LOOK_ENTRIES: usize = 512;
/// Directories on the way down that are kept open; the others are opened again on the way back.
const OPEN_FRAMES: usize = 32;

/// A directory on the way from the root to where the walk is.
struct Frame {
    pair: Option<Arc<Pair>>,
    meta: Meta,
    is_fresh: bool,
    listed: Listed,
    next: usize,
    path_length: usize,
    /// What is known about the entries from `looked_from` on; nothing for directories.
    looked: Vec<Option<Result<Meta, Failure>>>,
    looked_from: usize,
}

/// The walk itself.
pub(super) struct Walker<'a> {
    shared: &'a Shared<'a>,
    root: Arc<Pair>,
    root_meta: Meta,
    target_device: (u32, u32),
    target: Identity,
    /// Whether it is known that what is in the target is a copy of this source.
    is_known: bool,
    stack: Vec<Frame>,
    /// Of the directory that the walk is in.
    path: Vec<u8>,
    earlier: Earlier,
    links: Links,
    window: Window,
    window_bytes: u64,
    max_directories: usize,
    window_directories: usize,
    windows: usize,
}

/// Why an entry of the source could not be entered.
enum NotEntered {
    Trouble(Trouble),
    Elsewhere,
}

impl<'a> Walker<'a> {
    pub(super) fn new(
        shared: &'a Shared<'a>,
        root: Arc<Pair>,
        earlier: Earlier,
        max_directories: usize,
    ) -> Result<Self, Trouble> {
        let root_meta = root.source.look().map_err(Trouble::Source)?;
        let target_meta = root.target.look().map_err(Trouble::Target)?;
        Ok(Walker {
            shared,
            root,
            root_meta,
            target_device: target_meta.device,
            target: identity(&target_meta),
            is_known: earlier.newest().is_some(),
            stack: Vec::new(),
            path: Vec::new(),
            earlier,
            links: Links::default(),
            window: Window::default(),
            window_bytes: 0,
            max_directories,
            window_directories: 0,
            windows: 0,
        })
    }

    /// Walks to the end, handing over window after window.
    pub(super) fn walk(mut self) -> Result<(), CopyError> {
        let listed = self.root.source.list();
        let listed = listed.map_err(|failure| CopyError::Source {
            path: self.shared.source_name.clone(),
            failure,
        })?;
        let root = Arc::clone(&self.root);
        let meta = self.root_meta;
        self.descend(root, meta, listed)?;
        self.window.told.entries.directories += 1;
        while let Some(frame) = self.stack.last() {
            if self.shared.is_stopping() {
                return Ok(());
            }
            if frame.next < frame.listed.len() {
                self.step()?
            } else {
                self.ascend()?
            }
            if self.is_full() {
                self.hand_over();
            }
        }
        self.hand_over();
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.window.entries.len() >= WINDOW_ENTRIES
            || self.window_bytes >= WINDOW_BYTES
            || self.window_directories >= self.max_directories
    }

    fn hand_over(&mut self) {
        let mut window = std::mem::take(&mut self.window);
        window.number = self.windows;
        self.windows += 1;
        self.window_bytes = 0;
        self.window_directories = 0;
        window.arrange(self.shared.disk.is_some());
        self.shared.hand_over(Arc::new(window));
    }

    /// Continues with the next entry of the current directory.
    fn step(&mut self) -> Result<(), CopyError> {
        let pair = self.present()?;
        let Some(frame) = self.stack.last_mut() else {
            return Ok(());
        };
        let index = frame.next;
        frame.next += 1;
        let Some((name, kind)) = frame.listed.get(index) else {
            return Ok(());
        };
        let name = name.to_owned();
        if self.stack.len() == 1 && name == DIRECTORY {
            self.skip(name.as_bytes(), IS_MANIFEST);
            return Ok(());
        }
        let path = join(&self.path, &name);
        if self.shared.options.excludes.cover(&path) {
            return Ok(());
        }
        if kind == Kind::Directory {
            return self.enter(&pair, &name, path);
        }
        match self.look(index, &pair) {
            Ok(meta) if meta.kind == Kind::Directory => self.enter(&pair, &name, path),
            Ok(meta) => self.decide(&pair, name, &path, meta),
            Err(failure) => self.not_copied(&path, Trouble::Source(failure)),
        }
    }

    /// The present directory, opened again if it was closed on the way down.
    fn present(&mut self) -> Result<Arc<Pair>, CopyError> {
        let path = &self.path;
        let Some(frame) = self.stack.last_mut() else {
            return Ok(Arc::clone(&self.root));
        };
        if let Some(pair) = &frame.pair {
            return Ok(Arc::clone(pair));
        }
        let target = self.root.target.open_beneath(path);
        let target =
            target.map_err(|failure| CopyError::Target { path: path_text(path), failure })?;
        let source = self.root.source.open_beneath(path).and_then(|source| {
            let is_same = source.look()?.inode == frame.meta.inode;
            Ok(is_same.then_some(source))
        });
        let source = match source {
            Ok(Some(source)) => source,
            // It was moved or removed while the walk was below it: what is left of it has vanished. Its counterpart
            // stands in, so that it gets its times; the next pass mends the rest.
            _ => {
                self.window.told.vanished.add(path_text(path));
                frame.next = frame.listed.len();
                target
                    .again()
                    .map_err(|failure| CopyError::Target { path: path_text(path), failure })?
            }
        };
        self.window_directories += 1;
        let pair = Arc::new(Pair { source, target, path: path.clone(), is_fresh: frame.is_fresh });
        frame.pair = Some(Arc::clone(&pair));
        Ok(pair)
    }

    /// What is known about an entry that is no directory. Looks at its neighbours as well, in the order of inodes.
    fn look(&mut self, index: usize, pair: &Pair) -> Result<Meta, Failure> {
        let Some(frame) = self.stack.last_mut() else {
            return pair.source.look();
        };
        let is_looked = |frame: &Frame| {
            (frame.looked_from..frame.looked_from + frame.looked.len()).contains(&index)
        };
        if !is_looked(frame) {
            let end = (index + LOOK_ENTRIES).min(frame.listed.len());
            let mut order: Vec<usize> = (index..end).collect();
            order.sort_unstable_by_key(|&i| frame.listed.inode(i));
            frame.looked = vec![None; end - index];
            frame.looked_from = index;
            let excludes = &self.shared.options.excludes;
            for i in order {
                let Some((name, kind)) = frame.listed.get(i) else {
                    continue;
                };
                let is_wanted = kind != Kind::Directory && !excludes.cover(&join(&self.path, name));
                if is_wanted {
                    frame.looked[i - index] = Some(pair.source.look_at(name));
                }
            }
        }
        match frame.looked[index - frame.looked_from].take() {
            Some(looked) => looked,
            None => {
                let name = frame.listed.get(index).map(|(name, _)| name.to_owned());
                pair.source.look_at(&name.unwrap_or_default())
            }
        }
    }

    /// Decides about an entry that is no directory.
    fn decide(
        &mut self,
        parent: &Arc<Pair>,
        name: OsString,
        path: &[u8],
        meta: Meta,
    ) -> Result<(), CopyError> {
        if is_elsewhere(&meta, &self.root_meta) && meta.device != self.root_meta.device {
            self.skip(path, "is on another filesystem");
            return Ok(());
        }
        let found = self.find(path)?;
        let print = fingerprint(&meta);
        let in_target = if found == Some(print) { parent.target.look_at(&name).ok() } else { None };
        let in_target = in_target.filter(|there| looks_like(there, &meta));
        let first = if meta.names > 1 {
            let inode = in_target.map(|there| there.inode);
            self.links.meet(identity(&meta), meta.names, path, inode)
        } else {
            None
        };
        let is_unchanged = match (&first, in_target) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(first), Some(there)) => first.inode == Some(there.inode),
        };
        self.window_bytes +=
            if is_unchanged { 0 } else { meta.size_bytes.min(meta.allocated_bytes) };
        if is_unchanged {
            self.window.unchanged_bytes += meta.size_bytes;
        }
        let what = match first {
            _ if is_unchanged => What::Unchanged { kind: meta.kind, fingerprint: print },
            Some(first) => What::Name { meta: Box::new(meta), first: first.path },
            None => What::Copy(Box::new(meta)),
        };
        self.shared.met(1, meta.size_bytes);
        self.window.entries.push(Entry {
            parent: Arc::clone(parent),
            name: name.into_boxed_os_str(),
            what,
        });
        Ok(())
    }

    fn find(&mut self, path: &[u8]) -> Result<Option<u64>, CopyError> {
        self.earlier.find(path).map_err(|failure| CopyError::Target {
            path: format!("{DIRECTORY} (the manifest of the last pass)"),
            failure,
        })
    }

    /// Enters a directory: makes its counterpart, and goes on in it.
    fn enter(&mut self, parent: &Pair, name: &OsStr, path: Vec<u8>) -> Result<(), CopyError> {
        self.shared.met(1, 0);
        let opened = parent.source.open(name).and_then(|source| {
            let meta = source.look()?;
            Ok((source, meta))
        });
        let (source, meta) = match opened {
            Ok(opened) => opened,
            Err(failure) => return self.not_copied(&path, Trouble::Source(failure)),
        };
        if identity(&meta) == self.target {
            self.skip(&path, IS_TARGET);
            return Ok(());
        }
        let (target, is_fresh) = match self.counterpart(parent, name) {
            Ok(made) => made,
            Err(NotEntered::Elsewhere) => {
                self.skip(&path, "another filesystem is mounted at its place in the target");
                return Ok(());
            }
            Err(NotEntered::Trouble(trouble)) => return self.not_copied(&path, trouble),
        };
        // So that a file with this very path, in an earlier pass, is passed by.
        self.find(&path)?;
        let listed = if is_elsewhere(&meta, &self.root_meta) {
            let what = "another filesystem is mounted here; only the empty directory was made";
            if self.shared.options.is_whole {
                self.window.told.lost.add(Remark { path: path_text(&path), what: what.to_string() })
            } else {
                self.skip(&path, what)
            }
            Listed::default()
        } else {
            match source.list() {
                Ok(listed) => {
                    if !is_fresh {
                        self.remove_vanished(&target, &path, &listed)?;
                    }
                    listed
                }
                Err(failure) => {
                    self.not_copied(&path, Trouble::Source(failure))?;
                    Listed::default()
                }
            }
        };
        self.window.told.entries.directories += 1;
        let pair = Arc::new(Pair { source, target, path, is_fresh });
        self.window_directories += 1;
        self.descend(pair, meta, listed)
    }

    fn descend(&mut self, pair: Arc<Pair>, meta: Meta, listed: Listed) -> Result<(), CopyError> {
        if !pair.path.is_empty() {
            self.window.entries.push(Entry {
                parent: Arc::clone(&pair),
                name: OsStr::new("").into(),
                what: What::Directory { fingerprint: fingerprint(&meta) },
            });
        } else if !pair.is_fresh {
            self.remove_vanished(&pair.target, b"", &listed)?;
        }
        self.path.clone_from(&pair.path);
        let depth = self.stack.len();
        if depth > OPEN_FRAMES {
            self.stack[depth - OPEN_FRAMES].pair = None;
        }
        self.stack.push(Frame {
            is_fresh: pair.is_fresh,
            path_length: self.path.len(),
            pair: Some(pair),
            meta,
            listed,
            next: 0,
            looked: Vec::new(),
            looked_from: 0,
        });
        Ok(())
    }

    /// Leaves a directory of which every entry was met.
    fn ascend(&mut self) -> Result<(), CopyError> {
        let pair = self.present()?;
        let Some(frame) = self.stack.pop() else {
            return Ok(());
        };
        self.window.finished.push((pair, frame.meta));
        let length = self.stack.last().map_or(0, |above| above.path_length);
        self.path.truncate(length);
        Ok(())
    }

    /// Makes the directory in the target, or takes the one that an earlier pass made.
    fn counterpart(&self, parent: &Pair, name: &OsStr) -> Result<(Directory, bool), NotEntered> {
        let trouble = |failure| NotEntered::Trouble(Trouble::Target(failure));
        let is_fresh = match parent.target.make_directory(name) {
            Ok(()) => true,
            Err(failure) if failure.reason() == Reason::Exists && !parent.is_fresh => false,
            Err(failure) => return Err(trouble(failure)),
        };
        if is_fresh {
            return Ok((parent.target.open(name).map_err(trouble)?, true));
        }
        let there = parent.target.look_at(name).map_err(trouble)?;
        if there.kind != Kind::Directory {
            self.remove(&parent.target, name).map_err(trouble)?;
            parent.target.make_directory(name).map_err(trouble)?;
            return Ok((parent.target.open(name).map_err(trouble)?, true));
        }
        if there.device != self.target_device {
            return Err(NotEntered::Elsewhere);
        }
        let opened = parent.target.open(name).map_err(trouble)?;
        unlock(Place::Directory(&opened)).map_err(trouble)?;
        Ok((opened, false))
    }

    /// Removes from the target what the source does not have (any more).
    fn remove_vanished(
        &mut self,
        target: &Directory,
        path: &[u8],
        in_source: &Listed,
    ) -> Result<(), CopyError> {
        if !self.is_known {
            return Ok(());
        }
        let stop = |path: &[u8], failure| CopyError::Target { path: path_text(path), failure };
        let listed = target.list().map_err(|failure| stop(path, failure))?;
        for (name, _) in (0..listed.len()).filter_map(|i| listed.get(i)) {
            let whole = join(path, name);
            // The second belongs to the target's filesystem, and was there before the copy.
            let is_ours = path.is_empty() && (name == DIRECTORY || name == "lost+found");
            if in_source.has(name) || is_ours || self.shared.options.excludes.cover(&whole) {
                continue;
            }
            let device = target.look_at(name).map(|meta| meta.device);
            if device.is_ok_and(|device| device != self.target_device) {
                self.skip(&whole, "is another filesystem in the target, and stays");
                continue;
            }
            let removed = self.remove(target, name);
            self.window.told.deleted += removed.map_err(|failure| stop(&whole, failure))?;
        }
        Ok(())
    }

    fn remove(&self, from: &Directory, name: &OsStr) -> Result<u64, Failure> {
        let bin = &self.shared.bin;
        bin.lock().unwrap_or_else(PoisonError::into_inner).remove(from, name)
    }

    /// Notes what became of an entry that cannot be copied; ends the walk if nothing more can be.
    fn not_copied(&mut self, path: &[u8], trouble: Trouble) -> Result<(), CopyError> {
        let path = path_text(path);
        if trouble.is_fatal() {
            return Err(trouble.into_error(path));
        }
        let is_replaced =
            matches!(&trouble, Trouble::Source(failure) if failure.reason() == Reason::OtherKind);
        if trouble.is_gone() || is_replaced {
            self.window.told.vanished.add(path)
        } else {
            self.window.told.lost.add(Remark { path, what: trouble.words() })
        }
        Ok(())
    }

    fn skip(&mut self, path: &[u8], what: &str) {
        self.window.told.skipped.add(Remark { path: path_text(path), what: what.to_string() });
    }
}

/// Said of the target where it is found within the source, through a second mount.
pub(super) const IS_TARGET: &str = "is the target of this copy";
/// Said of what an earlier copy left at the top of the source.
pub(super) const IS_MANIFEST: &str =
    "is the manifest of an earlier copy, and not a part of what was copied";

/// Whether an entry is not on the filesystem of the root. A subvolume of btrfs has a device number of its own, and is a part of
/// the mount that it is reached through.
pub(super) fn is_elsewhere(meta: &Meta, root: &Meta) -> bool {
    if meta.mount != 0 && root.mount != 0 {
        meta.mount != root.mount
    } else {
        meta.device != root.device
    }
}

/// Whether what is in the target can be the copy of an entry.
fn looks_like(there: &Meta, meta: &Meta) -> bool {
    let has_length = matches!(meta.kind, Kind::File | Kind::Link);
    there.kind == meta.kind
        && (!has_length || there.size_bytes == meta.size_bytes)
        && there.modified == meta.modified
        && (there.owner, there.group) == (meta.owner, meta.group)
        && (meta.kind == Kind::Link || there.mode == meta.mode)
}
