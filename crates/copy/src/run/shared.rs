//! What the threads of a pass know together, and what they tell its finisher.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::receipt::CopyReceipt;
use rubus_host::clock;
use rubus_host::files::copy_io::{Disk, Failure};

use super::CopyOptions;
use super::contents::Ways;
use super::removal::Bin;
use super::trouble::CopyError;
use super::window::{Pair, Queue, Window};

/// What became of a batch.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// Entries that are in the target now, with their fingerprints.
    pub(super) copied: Vec<(u32, u64)>,
    pub(super) told: CopyReceipt,
    /// Lengths of the files.
    pub(super) bytes: u64,
    pub(super) entries: u64,
}

/// Windows that are not finished at the same time.
pub(super) const OPEN_WINDOWS: usize = 3;

/// What all threads know.
pub(super) struct Shared<'a> {
    pub(super) options: &'a CopyOptions,
    pub(super) source_name: String,
    pub(super) root: Arc<Pair>,
    pub(super) ways: Ways,
    pub(super) disk: Option<Disk>,
    pub(super) bin: Mutex<Bin>,
    pub(super) dirty_limit_bytes: u64,
    pub(super) queue: Queue,
    pub(super) events: Sender<Event>,
    pub(super) is_stopping: AtomicBool,
    pub(super) written_bytes: AtomicU64,
    pub(super) synced_bytes: AtomicU64,
    pub(super) met_entries: AtomicU64,
    pub(super) met_bytes: AtomicU64,
    pub(super) has_met_all: AtomicBool,
}

pub(super) enum Event {
    Window(Arc<Window>),
    Batch(usize, Box<Result<Done, CopyError>>),
    WalkEnded(Result<(), CopyError>),
    /// Everything up to this place in the manifest, and this many bytes, are on stable storage.
    Synced(u64, u64, Result<(), Failure>),
}

impl<'a> Shared<'a> {
    pub(super) fn is_stopping(&self) -> bool {
        let is_wanted = || {
            let stop = self.options.stop.as_ref();
            stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
        };
        self.is_stopping.load(Ordering::Relaxed) || is_wanted()
    }

    /// Counts what the walk met.
    pub(super) fn met(&self, entries: u64, bytes: u64) {
        self.met_entries.fetch_add(entries, Ordering::Relaxed);
        self.met_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Gives a window to the workers and to the finisher.
    pub(super) fn hand_over(&self, window: Arc<Window>) {
        // The finisher hears of it before any batch of it can be done. It is there as long as the walk is.
        let _ = self.events.send(Event::Window(Arc::clone(&window)));
        self.queue.push(window, OPEN_WINDOWS);
    }

    pub(super) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.queue.abandon();
    }

    /// Waits while too much is not on stable storage yet.
    pub(super) fn wait_for_the_device(&self) {
        let dirty = || {
            let written = self.written_bytes.load(Ordering::Relaxed);
            written.saturating_sub(self.synced_bytes.load(Ordering::Relaxed))
        };
        while dirty() > self.dirty_limit_bytes && !self.is_stopping() {
            clock::sleep(Duration::from_millis(5));
        }
    }
}
