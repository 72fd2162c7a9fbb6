//! A window: some thousand entries of the walk that are copied together, in the order in which they lie on the disk.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::receipt::CopyReceipt;
use rubus_host::files::copy_io::{Directory, Kind, Meta};

/// A directory of the source and its counterpart.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) source: Directory,
    pub(super) target: Directory,
    /// Relative to the root; empty for the root itself.
    pub(super) path: Vec<u8>,
    /// Whether this pass made the counterpart, so that nothing can be in it yet.
    pub(super) is_fresh: bool,
}

impl Pair {
    pub(super) fn path_of(&self, name: &OsStr) -> Vec<u8> {
        join(&self.path, name)
    }
}

/// A path with one more name.
pub(super) fn join(path: &[u8], name: &OsStr) -> Vec<u8> {
    let mut joined = Vec::with_capacity(path.len() + 1 + name.len());
    joined.extend_from_slice(path);
    if !path.is_empty() {
        joined.push(b'/');
    }
    joined.extend_from_slice(name.as_encoded_bytes());
    joined
}

/// What is to be done with an entry.
#[derive(Debug)]
pub(super) enum What {
    /// Nothing: it is as the last pass left it.
    Unchanged { kind: Kind, fingerprint: u64 },
    /// To be copied.
    Copy(Box<Meta>),
    /// To be made as one more name of what is at a path.
    Name { meta: Box<Meta>, first: Box<[u8]> },
    /// A directory that was entered.
    Directory { fingerprint: u64 },
}

/// One entry of a window.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) parent: Arc<Pair>,
    pub(super) name: Box<OsStr>,
    pub(super) what: What,
}

/// A finished part of the walk.
#[derive(Debug, Default)]
pub(super) struct Window {
    pub(super) number: usize,
    /// In the order of the walk.
    pub(super) entries: Vec<Entry>,
    /// Which entries are copied together.
    pub(super) batches: Vec<Vec<u32>>,
    next: AtomicUsize,
    /// Directories whose last entry is in this window; the root comes without a name of its own.
    pub(super) finished: Vec<(Arc<Pair>, Meta)>,
    /// What the walk has to tell.
    pub(super) told: CopyReceipt,
    /// Lengths of the files that need not be copied.
    pub(super) unchanged_bytes: u64,
}

/// Files that are not longer are read ahead as a whole, several at once.
pub(super) const SMALL_BYTES: u64 = 1 << 20;
/// How many files are read ahead by one worker at once, and how many when they are read from the disk.
const BATCH_FILES: usize = 16;
const BATCH_FILES_OF_DISK: usize = 128;
const BATCH_BYTES: u64 = 2 << 20;

impl Window {
    /// Puts what is to be copied in the order of the disk: large files, behind the others, by the place of their contents;
    /// small ones, too, if they are read from the disk, else by inode, since filesystems keep what was made together together.
    pub(super) fn arrange(&mut self, has_disk: bool) {
        let mut small = Vec::new();
        let mut large = Vec::new();
        for (index, entry) in self.entries.iter().enumerate() {
            let What::Copy(meta) = &entry.what else {
                continue;
            };
            let is_file = meta.kind == Kind::File && meta.size_bytes > 0;
            if is_file && meta.size_bytes > SMALL_BYTES {
                large.push((place(entry), meta.inode, index as u32))
            } else {
                let place = if is_file && has_disk { place(entry) } else { 0 };
                small.push(((place, meta.inode), meta.size_bytes, index as u32));
            }
        }
        small.sort_unstable();
        large.sort_unstable();
        let most = if has_disk { BATCH_FILES_OF_DISK } else { BATCH_FILES };
        let mut batch = Vec::new();
        let mut batch_bytes = 0;
        for (_, bytes, index) in small {
            if batch.len() >= most || batch_bytes + bytes > BATCH_BYTES {
                self.batches.push(std::mem::take(&mut batch));
                batch_bytes = 0;
            }
            batch.push(index);
            batch_bytes += bytes;
        }
        if !batch.is_empty() {
            self.batches.push(batch);
        }
        self.batches.extend(large.into_iter().map(|(_, _, index)| vec![index]));
    }
}

fn place(entry: &Entry) -> u64 {
    let file = entry.parent.source.read_file(&entry.name);
    file.ok().and_then(|file| file.first_place()).unwrap_or(0)
}

/// The windows that workers take batches from, in order.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    windows: VecDeque<Arc<Window>>,
    is_closed: bool,
    /// Windows that are not finished.
    open: usize,
}

impl Queue {
    /// Adds a window; waits while too many are not finished.
    pub(super) fn push(&self, window: Arc<Window>, max_open: usize) {
        let mut state = self.lock();
        while state.open >= max_open && !state.is_closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.open += 1;
        state.windows.push_back(window);
        self.changed.notify_all();
    }

    /// The next batch; waits for one. Nothing when there will be none any more.
    pub(super) fn take(&self) -> Option<(Arc<Window>, usize)> {
        let mut state = self.lock();
        loop {
            while let Some(window) = state.windows.front() {
                let batch = window.next.fetch_add(1, Ordering::Relaxed);
                if batch < window.batches.len() {
                    return Some((Arc::clone(window), batch));
                }
                state.windows.pop_front();
            }
            if state.is_closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Says that a window is finished.
    pub(super) fn finish_one(&self) {
        let mut state = self.lock();
        state.open = state.open.saturating_sub(1);
        self.changed.notify_all();
    }

    /// Says that no window will come any more.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// As [`Queue::close`], and forgets the batches not taken yet.
    pub(super) fn abandon(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.windows.clear();
        self.changed.notify_all();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // A worker that panicked left nothing half done here.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
