//! One entry, or a batch of them, from the source to the target.

use std::ffi::OsStr;
use std::sync::PoisonError;

use crate::receipt::{CopyReceipt, Remark, path_text};
use rubus_host::files::copy_io::{
    Directory, Failure, File, Kind, Meta, Place, Reason, wall_clock_s,
};

use super::contents::{BUFFER_BYTES, Poured, pour, pour_parts};
use super::manifest::{NEVER, fingerprint};
use super::metadata::{AppliedMetadata, apply_metadata, prepare};
use super::removal::unlock;
use super::shared::{Done, Shared};
use super::stretch::{Loaded, candidate};
use super::trouble::{CopyError, Trouble};
use super::window::{Entry, Pair, SMALL_BYTES, What};

/// How often a file that keeps changing is copied in a strict pass.
const ATTEMPTS: u32 = 3;

/// A thread's own things.
pub(super) struct Copier<'a> {
    shared: &'a Shared<'a>,
    buffer: Vec<u8>,
    loaded: Loaded,
}

/// An entry whose turn it is.
struct Turn<'a> {
    parent: &'a Pair,
    name: &'a OsStr,
    path: String,
}

/// What was copied, as it was before and after.
struct Moved {
    meta: Meta,
    poured: Poured,
    applied: AppliedMetadata,
    is_gathered: bool,
    has_changed: bool,
}

impl<'a> Copier<'a> {
    pub(super) fn new(shared: &'a Shared<'a>) -> Self {
        Copier { shared, buffer: vec![0; BUFFER_BYTES], loaded: Loaded::default() }
    }

    /// Copies the entries of a batch. All files are opened, and the kernel asked to read them, before the first is
    /// waited for: so the disk sees them all and takes them in its own order.
    pub(super) fn batch(&mut self, entries: &[Entry], batch: &[u32]) -> Result<Done, CopyError> {
        let opened: Vec<_> = batch.iter().map(|&index| open(&entries[index as usize])).collect();
        self.read_ahead(&opened);
        let mut done = Done::default();
        for (slot, (&index, file)) in batch.iter().zip(opened).enumerate() {
            if self.shared.is_stopping() {
                return Err(CopyError::Stopped);
            }
            let entry = &entries[index as usize];
            let What::Copy(meta) = &entry.what else {
                continue;
            };
            let file = file.map(|file| file.map_err(Trouble::Source)).transpose();
            if let Some(print) = self.one(entry, meta, file, Some(slot), &mut done)? {
                done.copied.push((index, print));
            }
        }
        Ok(done)
    }

    /// Reads from the disk what lies side by side; asks the kernel to begin reading the rest.
    fn read_ahead(&mut self, opened: &[Option<Result<File, Failure>>]) {
        self.loaded.clear();
        if opened.len() < 2 {
            return;
        }
        let files = opened.iter().map(|file| file.as_ref()?.as_ref().ok());
        let files: Vec<Option<&File>> = files.collect();
        if let Some(disk) = &self.shared.disk {
            let now_s = wall_clock_s();
            let candidates = files.iter().enumerate();
            let candidates =
                candidates.filter_map(|(slot, file)| candidate(slot, (*file)?, now_s)).collect();
            let file = |slot: usize| files.get(slot).copied().flatten();
            self.loaded.load(disk, candidates, file);
        }
        for (slot, file) in files.iter().enumerate() {
            if let (Some(file), None) = (file, self.loaded.contents(slot)) {
                file.will_need(0, SMALL_BYTES);
            }
        }
    }

    /// Copies one entry; gives its fingerprint if it is in the target now.
    pub(super) fn one(
        &mut self,
        entry: &Entry,
        meta: &Meta,
        file: Result<Option<File>, Trouble>,
        slot: Option<usize>,
        done: &mut Done,
    ) -> Result<Option<u64>, CopyError> {
        let turn = Turn {
            parent: &entry.parent,
            name: &entry.name,
            path: path_text(&entry.parent.path_of(&entry.name)),
        };
        done.entries += 1;
        done.bytes += meta.size_bytes;
        let moved = match file {
            Ok(Some(file)) => self.file(&turn, file, slot),
            Ok(None) => self.other(&turn, meta),
            Err(trouble) => Err(trouble),
        };
        match moved {
            Ok(moved) => Ok(Some(tell(&turn.path, moved, &mut done.told))),
            Err(trouble) if trouble.is_fatal() => Err(trouble.into_error(turn.path)),
            Err(trouble) => {
                if trouble.is_gone() {
                    done.told.vanished.add(turn.path)
                } else {
                    done.told.lost.add(Remark { path: turn.path, what: trouble.words() })
                }
                Ok(None)
            }
        }
    }

    fn file(
        &mut self,
        turn: &Turn<'_>,
        source: File,
        slot: Option<usize>,
    ) -> Result<Moved, Trouble> {
        let mut attempt = 1;
        loop {
            // What was read beforehand does for the first attempt only.
            let slot = slot.filter(|_| attempt == 1);
            let moved = self.file_once(turn, &source, slot)?;
            let is_enough = !self.shared.options.again || attempt >= ATTEMPTS;
            if !moved.has_changed || is_enough {
                return Ok(moved);
            }
            attempt += 1;
            self.clear(&turn.parent.target, turn.name)?;
        }
    }

    fn file_once(
        &mut self,
        turn: &Turn<'_>,
        source: &File,
        slot: Option<usize>,
    ) -> Result<Moved, Trouble> {
        let meta = source.look().map_err(Trouble::Source)?;
        self.make_way(turn)?;
        if meta.kind != Kind::File {
            // Something else took its place since it was listed; the next pass sees it.
            return self.other(turn, &meta);
        }
        let target = turn.parent.target.make_file(turn.name);
        let target = target.map_err(Trouble::Target)?;
        let filled = self.fill(source, &target, &meta, slot);
        if filled.as_ref().is_err_and(|trouble| !trouble.is_fatal()) {
            // Half a file under its name would be worse than none.
            self.clear(&turn.parent.target, turn.name)?;
        }
        filled
    }

    fn fill(
        &mut self,
        source: &File,
        target: &File,
        meta: &Meta,
        slot: Option<usize>,
    ) -> Result<Moved, Trouble> {
        let mut early = AppliedMetadata::default();
        prepare(Place::File(source), Place::File(target), &mut early);
        let ways = &self.shared.ways;
        let read = slot.and_then(|slot| self.loaded.contents(slot));
        // What was read is of the file as it was then.
        let read = read.filter(|(then, _)| then.changed == meta.changed);
        let is_gathered = read.is_some();
        let poured = match read {
            Some((_, parts)) => pour_parts(&parts, target, meta.size_bytes)?,
            None => pour(source, target, meta, ways, &mut self.buffer)?,
        };
        let mut applied = apply_metadata(Place::File(source), Place::File(target), meta)?;
        applied.skipped.append(&mut early.skipped);
        applied.is_flagged |= early.is_flagged;
        let after = source.look().map_err(Trouble::Source)?;
        Ok(Moved {
            meta: *meta,
            poured,
            applied,
            is_gathered,
            has_changed: (after.size_bytes, after.modified, after.changed)
                != (meta.size_bytes, meta.modified, meta.changed),
        })
    }

    /// A link, a device, a pipe or a socket.
    fn other(&mut self, turn: &Turn<'_>, meta: &Meta) -> Result<Moved, Trouble> {
        self.make_way(turn)?;
        let (from, to) = (&turn.parent.source, &turn.parent.target);
        match meta.kind {
            Kind::Link => {
                let text = from.read_link(turn.name).map_err(Trouble::Source)?;
                to.make_link(turn.name, &text).map_err(Trouble::Target)?;
            }
            _ => to.make_node(turn.name, meta).map_err(Trouble::Target)?,
        }
        let source = Place::Entry(from, turn.name);
        let applied = apply_metadata(source, Place::Entry(to, turn.name), meta)?;
        let after = from.look_at(turn.name).map_err(Trouble::Source)?;
        Ok(Moved {
            meta: *meta,
            poured: Poured::default(),
            applied,
            is_gathered: false,
            has_changed: (after.inode, after.changed) != (meta.inode, meta.changed),
        })
    }

    /// Removes what an earlier pass left under that name.
    fn make_way(&self, turn: &Turn<'_>) -> Result<(), Trouble> {
        if turn.parent.is_fresh { Ok(()) } else { self.clear(&turn.parent.target, turn.name) }
    }

    fn clear(&self, from: &Directory, name: &OsStr) -> Result<(), Trouble> {
        let bin = &self.shared.bin;
        let mut bin = bin.lock().unwrap_or_else(PoisonError::into_inner);
        bin.remove(from, name).map_err(Trouble::Target)?;
        Ok(())
    }

    /// Makes one more name of what is at a path of the target.
    pub(super) fn name(&self, entry: &Entry, first: &[u8]) -> Result<(), Trouble> {
        let turn = Turn { parent: &entry.parent, name: &entry.name, path: String::new() };
        self.make_way(&turn)?;
        let (parent, name) = match first.iter().rposition(|&byte| byte == b'/') {
            Some(slash) => (&first[..slash], &first[slash + 1..]),
            None => (&[][..], first),
        };
        let parent = self.shared.root.target.open_beneath(parent);
        let parent = parent.map_err(Trouble::Target)?;
        let name = std::os::unix::ffi::OsStrExt::from_bytes(name);
        let make = || entry.parent.target.make_name(&entry.name, &parent, name);
        let made = match make() {
            Err(failure) if failure.reason() == Reason::Denied => unlocked(&parent, name, make),
            made => made,
        };
        made.map_err(Trouble::Target)
    }
}

/// Does something with a file whose flags forbid it, and puts the flags back.
fn unlocked(
    parent: &Directory,
    name: &OsStr,
    act: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let file = parent.read_file(name)?;
    let place = Place::File(&file);
    let flags = place.flags()?;
    unlock(place)?;
    let acted = act();
    place.set_flags(flags)?;
    acted
}

/// Opens an entry that is a file.
fn open(entry: &Entry) -> Option<Result<File, Failure>> {
    match &entry.what {
        What::Copy(meta) if meta.kind == Kind::File => {
            Some(entry.parent.source.read_file(&entry.name))
        }
        _ => None,
    }
}

/// Counts what was done; gives the fingerprint for the manifest.
fn tell(path: &str, moved: Moved, told: &mut CopyReceipt) -> u64 {
    count(moved.meta.kind, told);
    told.copied_bytes += moved.poured.copied;
    told.shared_bytes += moved.poured.shared;
    told.hole_bytes += moved.poured.holes;
    told.gathered += u64::from(moved.is_gathered);
    let has_lost = !moved.applied.lost.is_empty();
    tell_applied(path, moved.applied, told);
    if moved.has_changed {
        told.changed.add(path.to_string());
    }
    if moved.has_changed || has_lost { NEVER } else { fingerprint(&moved.meta) }
}

/// Counts an entry by its kind.
pub(super) fn count(kind: Kind, told: &mut CopyReceipt) {
    match kind {
        Kind::File => told.entries.files += 1,
        Kind::Link => told.entries.links += 1,
        _ => told.entries.nodes += 1,
    }
}

/// Tells what was done to an entry besides its contents.
pub(super) fn tell_applied(path: &str, applied: AppliedMetadata, told: &mut CopyReceipt) {
    told.attributes += applied.attributes;
    told.flagged += u64::from(applied.is_flagged);
    let remark = |what: String| Remark { path: path.to_string(), what };
    for what in applied.skipped {
        told.skipped.add(remark(what));
    }
    for what in applied.lost {
        told.lost.add(remark(what));
    }
}
