//! A pass from begin to end: the walk, the workers, and the one who finishes window after window.
//!
//! Four kinds of threads. The *walk* runs ahead and makes windows. The *workers* take batches from them. The *syncer*
//! brings the target to stable storage whenever enough was written, so that neither the memory nor a power cut costs
//! more than that. The *finisher* (the caller's thread) takes windows in order when all their batches are done: makes
//! further names of files, gives directories their times, writes the manifest and tells how far it is.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::receipt::{CopyReceipt, Progress, path_text};
use rubus_host::clock;
use rubus_host::files::copy_io::{Disk, Failure, Meta, Place};

use super::CopyOptions;
use super::contents::Ways;
use super::entry::{Copier, count, tell_applied};
use super::links::{Identity, identity};
use super::manifest::{Earlier, Writer, fingerprint};
use super::metadata::apply_metadata;
use super::removal::Bin;
use super::shared::{Done, Event, Shared};
use super::teller::Teller;
use super::trouble::{CopyError, Trouble};
use super::walk::Walker;
use super::window::{Entry, Pair, Queue, What, Window};

/// What an entry costs besides its contents, when dirty memory is reckoned.
const ENTRY_BYTES: u64 = 4 << 10;
/// Without a reason to do it earlier, the target is synced this often.
const SYNC_EVERY_NS: u64 = 20_000_000_000;
/// How often the finisher looks around.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What a pass begins with.
pub(super) struct Beginning {
    pub(super) root: Arc<Pair>,
    pub(super) source_name: String,
    pub(super) target_name: String,
    pub(super) earlier: Earlier,
    pub(super) writer: Writer,
    pub(super) bin: Bin,
    pub(super) workers: usize,
    pub(super) max_directories: usize,
    pub(super) is_one_filesystem: bool,
    pub(super) dirty_limit_bytes: u64,
}

/// Copies, and gives what there is to tell, with the root's own meta that is still to be set.
pub(super) fn run(
    options: &CopyOptions,
    beginning: Beginning,
    teller: &mut Teller,
    tell: &mut dyn FnMut(Progress),
) -> Result<(CopyReceipt, Meta), CopyError> {
    let (events, incoming) = channel();
    let shared = Shared {
        options,
        source_name: beginning.source_name.clone(),
        root: Arc::clone(&beginning.root),
        ways: Ways::new(beginning.is_one_filesystem),
        disk: if options.by_file || beginning.is_one_filesystem {
            None
        } else {
            Disk::below(&beginning.root.source)
        },
        bin: Mutex::new(beginning.bin),
        dirty_limit_bytes: beginning.dirty_limit_bytes,
        queue: Queue::default(),
        events,
        is_stopping: AtomicBool::new(false),
        written_bytes: AtomicU64::new(0),
        synced_bytes: AtomicU64::new(0),
        met_entries: AtomicU64::new(0),
        met_bytes: AtomicU64::new(0),
        has_met_all: AtomicBool::new(false),
    };
    let walker = Walker::new(
        &shared,
        Arc::clone(&beginning.root),
        beginning.earlier,
        beginning.max_directories,
    );
    let walker = walker.map_err(|trouble| trouble.into_error(beginning.source_name.clone()))?;
    let (sync_wishes, wished) = channel();
    std::thread::scope(|threads| {
        threads.spawn(|| walk(&shared, walker));
        for _ in 0..beginning.workers {
            threads.spawn(|| work(&shared));
        }
        let to_sync = &shared;
        threads.spawn(move || sync(to_sync, &wished));
        let mut finisher = Finisher {
            shared: &shared,
            copier: Copier::new(&shared),
            writer: beginning.writer,
            windows: VecDeque::new(),
            moved_firsts: HashMap::new(),
            receipt: CopyReceipt::default(),
            root_meta: None,
            sync_wishes: Some(sync_wishes),
            is_syncing: false,
            wished_bytes: 0,
            last_sync_ns: clock::monotonic_ns(),
            has_walked: false,
            teller,
        };
        let ended = finisher.go(&incoming, tell);
        // The threads end once their results have no receiver.
        shared.stop();
        finisher.sync_wishes = None;
        let ended = ended.map_err(|error| match &error {
            CopyError::Target { path, failure } => CopyError::Target {
                path: format!("{}/{path}", beginning.target_name),
                failure: *failure,
            },
            _ => error,
        });
        ended.map(|root_meta| (finisher.receipt, root_meta))
    })
}

/// Ends the pass when its thread panics; else the finisher would wait for it.
struct Alarm<'a>(&'a Shared<'a>);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

fn walk(shared: &Shared<'_>, walker: Walker<'_>) {
    let _alarm = Alarm(shared);
    let ended = walker.walk();
    shared.has_met_all.store(true, Ordering::Relaxed);
    shared.queue.close();
    let _ = shared.events.send(Event::WalkEnded(ended));
}

fn work(shared: &Shared<'_>) {
    let _alarm = Alarm(shared);
    let mut copier = Copier::new(shared);
    while let Some((window, batch)) = shared.queue.take() {
        let done = copier.batch(&window.entries, &window.batches[batch]);
        if let Ok(done) = &done {
            let bytes = done.told.copied_bytes + done.entries * ENTRY_BYTES;
            shared.written_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        let has_failed = done.is_err();
        let _ = shared.events.send(Event::Batch(window.number, Box::new(done)));
        if has_failed {
            return;
        }
        shared.wait_for_the_device();
    }
}

fn sync(shared: &Shared<'_>, wished: &Receiver<(u64, u64)>) {
    let _alarm = Alarm(shared);
    while let Ok((place, bytes)) = wished.recv() {
        let synced = shared.root.target.sync_filesystem();
        let _ = shared.events.send(Event::Synced(place, bytes, synced));
    }
}

/// A window that is being copied.
struct Open {
    window: Arc<Window>,
    /// Batches that are not done.
    left: usize,
    fingerprints: Vec<Option<u64>>,
}

struct Finisher<'a, 'b> {
    shared: &'a Shared<'a>,
    copier: Copier<'a>,
    writer: Writer,
    windows: VecDeque<Open>,
    /// Files with several names whose first name could not be copied: the name that took its place.
    moved_firsts: HashMap<Identity, Box<[u8]>>,
    receipt: CopyReceipt,
    root_meta: Option<Meta>,
    sync_wishes: Option<Sender<(u64, u64)>>,
    is_syncing: bool,
    wished_bytes: u64,
    last_sync_ns: u64,
    has_walked: bool,
    teller: &'b mut Teller,
}

impl Finisher<'_, '_> {
    fn go(
        &mut self,
        incoming: &Receiver<Event>,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Meta, CopyError> {
        loop {
            match incoming.recv_timeout(LOOK_EVERY) {
                Ok(event) => match self.hear(event) {
                    Err(CopyError::Stopped) => return Err(self.keep_what_is_done(incoming)),
                    heard => heard?,
                },
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(CopyError::Stopped),
            }
            while self.windows.front().is_some_and(|open| open.left == 0) {
                if let Some(open) = self.windows.pop_front() {
                    self.finish(open)?;
                }
            }
            if self.shared.is_stopping() {
                return Err(self.keep_what_is_done(incoming));
            }
            self.wish_for_sync();
            let met = self.shared.has_met_all.load(Ordering::Relaxed).then(|| {
                let entries = self.shared.met_entries.load(Ordering::Relaxed);
                (entries, self.shared.met_bytes.load(Ordering::Relaxed))
            });
            self.teller.tell(met, tell);
            if self.has_walked && self.windows.is_empty() && !self.is_syncing {
                return self.settle(tell);
            }
        }
    }

    fn hear(&mut self, event: Event) -> Result<(), CopyError> {
        match event {
            Event::Window(window) => {
                self.windows.push_back(Open {
                    left: window.batches.len(),
                    fingerprints: vec![None; window.entries.len()],
                    window,
                });
            }
            Event::Batch(number, done) => {
                let done = (*done)?;
                self.teller.add(done.entries, done.bytes);
                let open = self.windows.iter_mut().find(|w| w.window.number == number);
                if let Some(open) = open {
                    open.left -= 1;
                    for (index, print) in done.copied {
                        open.fingerprints[index as usize] = Some(print);
                    }
                }
                self.receipt.absorb(done.told);
            }
            Event::WalkEnded(ended) => {
                ended?;
                self.has_walked = true;
            }
            Event::Synced(place, bytes, synced) => {
                synced.map_err(|failure| self.stop_at(failure))?;
                self.is_syncing = false;
                self.last_sync_ns = clock::monotonic_ns();
                self.shared.synced_bytes.store(bytes, Ordering::Relaxed);
                let marked = self.writer.mark_durable(place);
                marked.map_err(|failure| self.stop_at(failure))?;
            }
        }
        Ok(())
    }

    /// Finishes a window whose batches are done.
    fn finish(&mut self, mut open: Open) -> Result<(), CopyError> {
        let window = Arc::clone(&open.window);
        self.receipt.absorb(window.told.clone());
        for (index, entry) in window.entries.iter().enumerate() {
            match &entry.what {
                What::Copy(_) => {}
                What::Directory { fingerprint } => {
                    self.teller.add(1, 0);
                    open.fingerprints[index] = Some(*fingerprint);
                }
                What::Unchanged { kind, fingerprint } => {
                    self.teller.add(1, 0);
                    open.fingerprints[index] = Some(*fingerprint);
                    count(*kind, &mut self.receipt);
                    self.receipt.unchanged += 1;
                }
                What::Name { meta, first } => {
                    self.teller.add(1, meta.size_bytes);
                    open.fingerprints[index] = self.name(entry, meta, first)?;
                }
            }
        }
        self.teller.add(0, window.unchanged_bytes);
        for (pair, meta) in &window.finished {
            self.apply_directory_metadata(pair, meta)?;
        }
        self.note(&window, &open.fingerprints);
        let flushed = self.writer.flush();
        flushed.map_err(|failure| self.stop_at(failure))?;
        self.shared.queue.finish_one();
        Ok(())
    }

    /// Writes into the manifest what is in the target now.
    fn note(&mut self, window: &Window, fingerprints: &[Option<u64>]) {
        for (entry, print) in window.entries.iter().zip(fingerprints) {
            let Some(print) = print else { continue };
            match entry.what {
                What::Directory { .. } => self.writer.add(&entry.parent.path, *print),
                _ => self.writer.add(&entry.parent.path_of(&entry.name), *print),
            }
        }
    }

    /// One more name of a file; where its first name could not be copied, the file itself.
    fn name(&mut self, entry: &Entry, meta: &Meta, first: &[u8]) -> Result<Option<u64>, CopyError> {
        let path = entry.parent.path_of(&entry.name);
        let first = self.moved_firsts.get(&identity(meta)).map_or(first, |f| f);
        match self.copier.name(entry, first) {
            Ok(()) => {
                count(meta.kind, &mut self.receipt);
                self.receipt.hard_links += 1;
                return Ok(Some(fingerprint(meta)));
            }
            Err(trouble) if trouble.is_fatal() => {
                return Err(trouble.into_error(path_text(&path)));
            }
            Err(_) => {}
        }
        let file = match meta.kind {
            rubus_host::files::copy_io::Kind::File => {
                let file = entry.parent.source.read_file(&entry.name);
                file.map(Some).map_err(Trouble::Source)
            }
            _ => Ok(None),
        };
        let mut done = Done::default();
        let print = self.copier.one(entry, meta, file, None, &mut done)?;
        self.receipt.absorb(done.told);
        if print.is_some() {
            self.moved_firsts.insert(identity(meta), path.into());
        }
        Ok(print)
    }

    /// Gives a directory its owner, mode, attributes, times and flags; the root gets them at the very end.
    fn apply_directory_metadata(&mut self, pair: &Pair, meta: &Meta) -> Result<(), CopyError> {
        if pair.path.is_empty() {
            self.root_meta = Some(*meta);
            return Ok(());
        }
        let path = path_text(&pair.path);
        let source = Place::Directory(&pair.source);
        match apply_metadata(source, Place::Directory(&pair.target), meta) {
            Ok(applied) => tell_applied(&path, applied, &mut self.receipt),
            Err(trouble) if trouble.is_gone() => self.receipt.vanished.add(path.clone()),
            Err(trouble) => return Err(trouble.into_error(path)),
        }
        let has_changed = pair.source.look().is_ok_and(|now| now.modified != meta.modified);
        if has_changed {
            self.receipt.changed.add(path);
        }
        Ok(())
    }

    fn wish_for_sync(&mut self) {
        let written = self.shared.written_bytes.load(Ordering::Relaxed);
        let is_much = written - self.wished_bytes >= self.shared.dirty_limit_bytes / 2;
        let is_late = clock::monotonic_ns() - self.last_sync_ns > SYNC_EVERY_NS;
        if self.is_syncing || written == self.wished_bytes || !(is_much || is_late) {
            return;
        }
        if let Some(wishes) = &self.sync_wishes {
            self.is_syncing = wishes.send((self.writer.place(), written)).is_ok();
            self.wished_bytes = written;
        }
    }

    /// The end of the walk: everything to stable storage.
    fn settle(&mut self, tell: &mut dyn FnMut(Progress)) -> Result<Meta, CopyError> {
        self.teller.settle(tell);
        self.make_durable().map_err(|failure| self.stop_at(failure))?;
        let marked = self.writer.mark_complete();
        marked.map_err(|failure| self.stop_at(failure))?;
        // The walk always leaves the root last.
        self.root_meta.ok_or(CopyError::Stopped)
    }

    /// Before an early end, so that the next attempt need not do it again. Windows that are not finished count as far
    /// as they are: what is not in the manifest is copied again, and directories get their times in any case.
    fn keep_what_is_done(&mut self, incoming: &Receiver<Event>) -> CopyError {
        while let Ok(event) = incoming.try_recv() {
            // What failed is not noted.
            let _ = self.hear(event);
        }
        for mut open in std::mem::take(&mut self.windows) {
            let window = Arc::clone(&open.window);
            for (entry, print) in window.entries.iter().zip(&mut open.fingerprints) {
                if let What::Unchanged { fingerprint, .. } = entry.what {
                    *print = Some(fingerprint);
                }
            }
            self.note(&window, &open.fingerprints);
        }
        // A failure here costs time only.
        let _ = self.make_durable();
        CopyError::Stopped
    }

    fn make_durable(&mut self) -> Result<(), Failure> {
        self.writer.flush()?;
        let place = self.writer.place();
        self.shared.root.target.sync_filesystem()?;
        self.writer.mark_durable(place)
    }

    fn stop_at(&self, failure: Failure) -> CopyError {
        CopyError::Target { path: String::new(), failure }
    }
}
