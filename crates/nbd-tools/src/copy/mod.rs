//! Copying a disk: from an export, a file or a device to another of them.
//!
//! What the source says to be zeros is not read, and what reads as zeros is not written. Several connections
//! with many requests each are used where a server promises that all of them see the same data. A copy that
//! was interrupted goes on: its journal ([`journal`]) has what was on stable storage. While it copies, it keeps a
//! digest of every section ([`grid`]); at the end the destination is read back and compared with them.

mod error;
mod export;
pub mod grid;
pub mod journal;
mod rescue;
mod work;
mod worker;
mod zeros;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use rubus_host::block::image::Image;
use rubus_host::clock::monotonic_ns;
use rubus_nbd::server::file_disk::FileDisk;
use rubus_nbd::transport::Transport;
use rubus_nbd::wire::TransmissionFlags;

pub use error::CopyError;
pub use export::{Dial, Export};
use grid::{Grid, Ledger};
use work::{Job, Knowledge};
use worker::{CHECKPOINT_NS, Side, Target, Worker};
pub use zeros::is_all_zero;

/// How often the caller is told how far it is.
const TELL: Duration = Duration::from_millis(200);
/// Maximum number of differing ranges reported.
const MAX_DIFFERENT: usize = 100;

/// Who keeps the journal.
pub trait Keeper: Sync {
    /// Whether something is recorded. Until then a copy that ends well needs no record.
    fn has_begun(&self) -> bool;

    /// These sections are on stable storage at the destination, and have these digests.
    ///
    /// # Errors
    /// When that cannot be written down.
    fn keep(&self, sections: &[(usize, u64)]) -> Result<(), CopyError>;
}

/// One end of a copy.
pub enum End<T> {
    /// A file or a device.
    Image {
        /// The open file or device.
        image: Arc<Image>,
        /// Its path, for people.
        name: String,
    },
    Export(Export<T>),
}

impl<T: Transport + 'static> End<T> {
    /// Its name, for people.
    pub fn name(&self) -> &str {
        match self {
            End::Image { name, .. } => name,
            End::Export(export) => &export.name,
        }
    }

    pub fn size_bytes(&self) -> u64 {
        match self {
            End::Image { image, .. } => image.size_bytes(),
            End::Export(export) => export.offer.size_bytes,
        }
    }

    /// The largest and the least request.
    fn blocks(&self) -> (u64, u32) {
        match self {
            End::Image { .. } => (u64::MAX, 1),
            End::Export(export) => {
                let blocks = export.offer.blocks();
                (u64::from(blocks.max_bytes), export.min_block_bytes())
            }
        }
    }

    /// How many connections to open if `wanted` were requested.
    fn connections(&self, wanted: usize) -> usize {
        match self {
            End::Export(export) if !export.can(TransmissionFlags::CAN_MULTI_CONN) => 1,
            _ => wanted.max(1),
        }
    }

    fn knowledge(&self) -> Knowledge {
        match self {
            End::Image { image, .. } if image.is_device() => Knowledge::Nothing,
            End::Image { image, .. } => Knowledge::File(FileDisk::new(Arc::clone(image))),
            End::Export(export) => match export.offer.allocation {
                Some(_) => Knowledge::Server(export.offer.extended_headers),
                None => Knowledge::Nothing,
            },
        }
    }

    fn side(&self) -> Result<Side<'_, T>, CopyError> {
        Ok(match self {
            End::Image { image, name } => Side::File(image, name),
            End::Export(export) => Side::Wire(Box::new(export.take()?)),
        })
    }

    /// For one more worker; nothing when the server takes no further connection.
    fn another_side(&self, job: &Job<'_>) -> Result<Option<Side<'_, T>>, CopyError> {
        Ok(match self {
            End::Image { image, name } => Some(Side::File(image, name)),
            End::Export(export) => {
                let wired = export.take_another(&|| job.is_over())?;
                wired.map(|wired| Side::Wire(Box::new(wired)))
            }
        })
    }

    fn give_back(&self, side: Side<'_, T>) {
        if let (End::Export(export), Side::Wire(wired)) = (self, side) {
            export.give_back(wired.client);
        }
    }

    /// Whether the end can promise that something is on stable storage.
    pub fn can_flush(&self) -> bool {
        match self {
            End::Image { .. } => true,
            End::Export(export) => export.can(TransmissionFlags::SEND_FLUSH),
        }
    }

    /// Whether another program may have written to it since an earlier run of a copy, without a trace.
    pub fn may_have_changed(&self) -> bool {
        match self {
            End::Image { image, .. } => image.is_device(),
            End::Export(export) => !export.can(TransmissionFlags::READ_ONLY),
        }
    }

    /// Flushes all written data to stable storage.
    ///
    /// # Errors
    /// If the flush fails, or the server is given up after `cancel`.
    pub fn flush(&self, cancel: &AtomicBool) -> Result<(), CopyError> {
        match self {
            End::Image { image, name } => image.sync().map_err(|error| {
                CopyError::NotDurable(format!(
                    "{name} cannot be made durable: {error}; look at the kernel's log (dmesg) and at the disk"
                ))
            }),
            End::Export(export) => export.flush(cancel),
        }
    }

    fn target(&self, is_zero: bool) -> Target {
        match self {
            End::Image { .. } => Target { is_zero, can_zero: true, tells: false, unit_bytes: 1 },
            End::Export(export) => Target {
                is_zero,
                can_zero: export.can(TransmissionFlags::SEND_WRITE_ZEROES),
                tells: export.offer.allocation.is_some(),
                unit_bytes: export.min_block_bytes(),
            },
        }
    }
}

/// How to copy.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Connections to each server that promises multi-conn, and threads.
    pub connections: usize,
    /// Requests in flight on each.
    pub depth: usize,
    /// The destination reads as zeros where this copy did not write.
    pub target_is_zero: bool,
    /// Digests are kept, for the journal or for comparing.
    pub has_digests: bool,
    /// What the source's disk does not give is left out, and is in the ledger at the end.
    pub skips_unreadable: bool,
}

/// How the bytes are cut for these two ends.
///
/// # Errors
/// When the source does not fit.
pub fn cut<T: Transport + 'static>(
    source: &End<T>,
    target: &End<T>,
    request_bytes: u64,
) -> Result<Grid, CopyError> {
    let size = source.size_bytes();
    let trouble = |text: String| Err(CopyError::Trouble(text));
    if size > target.size_bytes() {
        return trouble(format!(
            "{} has {} bytes and {} only {}: it does not fit; choose a larger destination",
            source.name(),
            size,
            target.name(),
            target.size_bytes()
        ));
    }
    let ((most_from, least_from), (most_to, least_to)) = (source.blocks(), target.blocks());
    let grid = Grid::new(size, request_bytes.min(most_from).min(most_to));
    for (end, least) in [(source, least_from), (target, least_to)] {
        let least = u64::from(least);
        if grid.cell_bytes < least || size % least.max(1) != 0 {
            return trouble(format!(
                "{} takes requests of multiples of {least} bytes, which {size} bytes cannot be cut into for both ends",
                end.name()
            ));
        }
    }
    Ok(grid)
}

/// How far a pass is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Reading back what was written.
    pub is_verifying: bool,
    /// Bytes that are done, holes too.
    pub done_bytes: u64,
    /// Bytes to copy in all.
    pub size_bytes: u64,
    /// Since the pass began.
    pub elapsed_s: f64,
    /// Bytes that were done before it began.
    pub before_bytes: u64,
}

/// Copies what the ledger says is left, and flushes; gives how many connections were used to each end. What
/// was flushed is told to the keeper, also when the copy fails; if it ends well and the keeper has recorded nothing so
/// far, it stays in the ledger.
///
/// # Errors
/// If either end fails, the data do not reach stable storage, or the copy is cancelled.
pub fn copy<T: Transport + 'static>(
    source: &End<T>,
    target: &End<T>,
    (grid, ledger): (Grid, &Ledger),
    options: &Options,
    keeper: Option<&dyn Keeper>,
    cancel: &AtomicBool,
    tell: &mut dyn FnMut(Progress),
) -> Result<usize, CopyError> {
    let keeper = keeper.filter(|_| target.can_flush());
    let pass = Pass {
        source,
        target: Some(target),
        grid,
        options,
        keeper,
        was_lost: AtomicBool::new(false),
        target_hangs: AtomicBool::new(false),
        was_left: AtomicBool::new(false),
    };
    let copied = pass.run(ledger, cancel, tell).and_then(|connections| {
        let began_ns = monotonic_ns();
        let before_bytes = ledger.done_bytes();
        let mut tell = || tell(pass.progress(ledger, (began_ns, before_bytes)));
        rescue::rescue(source, target, (grid, ledger), cancel, &mut tell)?;
        Ok(connections)
    });
    // A system tells of a lost write once; the next flush would succeed.
    // A server that hangs would not answer a flush, either.
    if pass.was_lost.load(Ordering::Relaxed) || pass.target_hangs.load(Ordering::Relaxed) {
        return copied;
    }
    let keeper = keeper.filter(|keeper| copied.is_err() || keeper.has_begun());
    let kept = match keeper {
        Some(keeper) => flush_and_keep(target, keeper, &ledger.take_finished(), cancel),
        None => target.flush(cancel),
    };
    copied.and_then(|connections| kept.map(|()| connections))
}

/// Makes durable what was written, and has the sections recorded that were done before that.
fn flush_and_keep<T: Transport + 'static>(
    target: &End<T>,
    keeper: &dyn Keeper,
    finished: &[(usize, u64)],
    cancel: &AtomicBool,
) -> Result<(), CopyError> {
    target.flush(cancel)?;
    keeper.keep(finished)
}

/// Reads the destination back; gives the places that are not what was copied: from where, to where.
///
/// # Errors
/// If the destination cannot be read, or the comparison is cancelled.
pub fn compare<T: Transport + 'static>(
    target: &End<T>,
    (grid, ledger): (Grid, &Ledger),
    options: &Options,
    cancel: &AtomicBool,
    tell: &mut dyn FnMut(Progress),
) -> Result<Vec<(u64, u64)>, CopyError> {
    let found = Ledger::new(grid);
    let pass = Pass {
        source: target,
        target: None,
        grid,
        options,
        keeper: None,
        was_lost: AtomicBool::new(false),
        target_hangs: AtomicBool::new(false),
        was_left: AtomicBool::new(false),
    };
    pass.run(&found, cancel, tell)?;
    let differ = |number: &usize| found.digest(*number) != ledger.digest(*number);
    let sections = (0..grid.sections()).filter(differ);
    let mut places: Vec<(u64, u64)> = Vec::new();
    for (from, to) in sections.map(|number| grid.section(number)) {
        let count = places.len();
        match places.last_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ if count == MAX_DIFFERENT => break,
            _ => places.push((from, to)),
        }
    }
    Ok(places)
}

/// Reads what an earlier run has copied from the source again, and has the sections copied once more that are
/// not what they were. Gives how many bytes these are.
///
/// # Errors
/// If the source cannot be read, or the check is cancelled.
pub fn recheck<T: Transport + 'static>(
    source: &End<T>,
    (grid, ledger): (Grid, &Ledger),
    options: &Options,
    cancel: &AtomicBool,
    tell: &mut dyn FnMut(Progress),
) -> Result<u64, CopyError> {
    let found = Ledger::new(grid);
    let (done, left): (Vec<_>, Vec<_>) =
        (0..grid.sections()).partition(|number| ledger.is_done(*number));
    for number in left {
        found.is_done_already(number, 0);
    }
    let pass = Pass {
        source,
        target: None,
        grid,
        options,
        keeper: None,
        was_lost: AtomicBool::new(false),
        target_hangs: AtomicBool::new(false),
        was_left: AtomicBool::new(false),
    };
    pass.run(&found, cancel, tell)?;
    let before = ledger.done_bytes();
    for number in done {
        if found.digest(number) != ledger.digest(number) {
            ledger.is_left_again(number);
        }
    }
    Ok(before - ledger.done_bytes())
}

/// What a worker has of both ends.
type Sides<'a, T> = (Side<'a, T>, Side<'a, T>);

/// One pass over all bytes, with or without a destination.
struct Pass<'a, T> {
    source: &'a End<T>,
    target: Option<&'a End<T>>,
    grid: Grid,
    options: &'a Options,
    keeper: Option<&'a dyn Keeper>,
    /// A flush failed.
    was_lost: AtomicBool,
    /// The destination hung when the copy was cancelled.
    target_hangs: AtomicBool,
    /// What was in flight on a connection was not waited for.
    was_left: AtomicBool,
}

impl<T: Transport + 'static> Pass<'_, T> {
    fn run(
        &self,
        ledger: &Ledger,
        cancel: &AtomicBool,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<usize, CopyError> {
        let (wanted, depth) = (self.options.connections, self.options.depth.max(1));
        let of_target = self.target.map_or(wanted, |end| end.connections(wanted));
        let pieces = self.grid.size_bytes.div_ceil(self.grid.piece_bytes).max(1);
        let workers = self.source.connections(wanted).min(of_target);
        let workers = workers.min(usize::try_from(pieces).unwrap_or(workers));
        let ahead = (2 * workers * depth) as u64 * self.grid.piece_bytes;
        let knowledge = self.source.knowledge();
        let mut job = Job::new(ledger, self.grid, knowledge, self.options.has_digests, ahead);
        let about = self.target.map_or(Target::NONE, |end| end.target(self.options.target_is_zero));
        if !about.can_zero {
            job.zeros_are_written();
        }
        job.skips = self.options.skips_unreadable && self.target.is_some();
        let job = &job;
        let (began_ns, before_bytes) = (monotonic_ns(), ledger.done_bytes());
        let mut is_cancelled = false;
        let mut first = Some(self.first_sides()?);
        let used = AtomicUsize::new(0);
        let used = &used;
        std::thread::scope(|scope| {
            let (sender, ended) = channel();
            for number in 0..workers {
                let sender = sender.clone();
                let sides = first.take();
                scope.spawn(move || {
                    self.work(job, about, depth, (number == 0, sides), used);
                    // Who listens waits for all of them.
                    let _ = sender.send(());
                });
            }
            drop(sender);
            let mut checkpoint_ns = began_ns;
            loop {
                match ended.recv_timeout(TELL) {
                    Ok(()) => continue,
                    Err(RecvTimeoutError::Disconnected) => break,
                    Err(RecvTimeoutError::Timeout) => {}
                }
                if cancel.load(Ordering::Relaxed) {
                    is_cancelled = true;
                    job.cancel();
                }
                tell(self.progress(ledger, (began_ns, before_bytes)));
                if monotonic_ns() - checkpoint_ns >= CHECKPOINT_NS {
                    if let Err(why) = self.checkpoint(ledger, cancel) {
                        self.failed(job, why);
                    }
                    // A flush that takes long is not followed by the next one at once.
                    checkpoint_ns = monotonic_ns();
                }
            }
        });
        match job.take_trouble() {
            // Servers that lose a connection with requests in flight may close the others.
            Some(_) if is_cancelled && self.was_left.load(Ordering::Relaxed) => {
                Err(CopyError::Interrupted)
            }
            Some(why) => Err(why),
            None if is_cancelled => Err(CopyError::Interrupted),
            None => Ok(used.load(Ordering::Relaxed)),
        }
    }

    /// Progress of a pass that began at `began_ns` with `before_bytes` done.
    fn progress(&self, ledger: &Ledger, (began_ns, before_bytes): (u64, u64)) -> Progress {
        Progress {
            is_verifying: self.target.is_none(),
            done_bytes: ledger.done_bytes(),
            size_bytes: self.grid.size_bytes,
            elapsed_s: (monotonic_ns() - began_ns) as f64 / 1e9,
            before_bytes,
        }
    }

    fn failed(&self, job: &Job<'_>, why: CopyError) {
        if matches!(why, CopyError::NotDurable(_)) {
            self.was_lost.store(true, Ordering::Relaxed);
        }
        job.fail(why);
    }

    fn work(
        &self,
        job: &Job<'_>,
        about: Target,
        depth: usize,
        (is_first, sides): (bool, Option<Sides<'_, T>>),
        used: &AtomicUsize,
    ) {
        let sides = match sides {
            Some(sides) => sides,
            None => match self.more_sides(job) {
                Ok(Some(sides)) => sides,
                // The others do all of it.
                Ok(None) => return,
                Err(why) => return self.failed(job, why),
            },
        };
        used.fetch_add(1, Ordering::Relaxed);
        let mut worker = self.worker(job, sides, about, depth, is_first);
        if let Err(why) = worker.run() {
            // Told before its connections are closed: a server that then ends for all (nbdkit 1.32 does, with requests in flight)
            // would give the other workers another reason, and theirs might count.
            return self.failed(job, why);
        }
        if worker.target_hangs() {
            self.target_hangs.store(true, Ordering::Relaxed);
        }
        if worker.is_left() {
            self.was_left.store(true, Ordering::Relaxed);
            return;
        }
        let (source, target) = (worker.source, worker.target);
        self.source.give_back(source);
        if let Some(end) = self.target {
            end.give_back(target);
        }
    }

    fn first_sides(&self) -> Result<Sides<'_, T>, CopyError> {
        let source = self.source.side()?;
        let target = match self.target {
            None => Side::Nowhere,
            Some(end) => end.side()?,
        };
        Ok((source, target))
    }

    fn more_sides(&self, job: &Job<'_>) -> Result<Option<Sides<'_, T>>, CopyError> {
        let Some(source) = self.source.another_side(job)? else {
            return Ok(None);
        };
        let target = match self.target {
            None => Some(Side::Nowhere),
            Some(end) => end.another_side(job)?,
        };
        match target {
            Some(target) => Ok(Some((source, target))),
            None => {
                self.source.give_back(source);
                Ok(None)
            }
        }
    }

    fn worker<'w>(
        &'w self,
        job: &'w Job<'w>,
        sides: Sides<'w, T>,
        about: Target,
        depth: usize,
        is_first: bool,
    ) -> Worker<'w, T> {
        // What was flushed on one connection is so on all; a file is flushed by who waits.
        let is_export = matches!(self.target, Some(End::Export(_)));
        let keeper = self.keeper.filter(|_| is_first && is_export);
        Worker::new(job, sides, about, depth, keeper)
    }

    fn checkpoint(&self, ledger: &Ledger, cancel: &AtomicBool) -> Result<(), CopyError> {
        match (self.keeper, self.target) {
            (Some(keeper), Some(target @ End::Image { .. })) => match &ledger.take_finished()[..] {
                [] => Ok(()),
                finished => flush_and_keep(target, keeper, finished, cancel),
            },
            _ => Ok(()),
        }
    }
}

impl Target {
    /// There is none.
    const NONE: Target = Target { is_zero: true, can_zero: true, tells: false, unit_bytes: 1 };
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Files of its own.
mod tests {
    use rubus_host::net::Stream;
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn what_was_written_to_the_source_since_an_earlier_run_is_copied_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("source");
        let bytes: Vec<u8> = (0..24 << 20).map(|at: u32| (at / 4096) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let end = |path: &std::path::Path, writable| End::<Stream>::Image {
            image: Arc::new(Image::open(path, writable).unwrap()),
            name: path.display().to_string(),
        };
        let source = end(&path, false);
        let to = directory.path().join("target");
        std::fs::write(&to, vec![0; bytes.len()]).unwrap();
        let target = end(&to, true);
        let grid = cut(&source, &target, 256 << 10).unwrap();
        assert!(grid.sections() >= 3, "{grid:?}");
        let options = Options {
            connections: 2,
            depth: 4,
            target_is_zero: true,
            has_digests: true,
            skips_unreadable: false,
        };
        let (cancel, mut tell) = (AtomicBool::new(false), |_: Progress| {});
        let earlier = Ledger::new(grid);
        let book = (grid, &earlier);
        copy(&source, &target, book, &options, None, &cancel, &mut tell).unwrap();

        // The last section was not done at the interruption. Part of the first was overwritten since.
        let ledger = Ledger::new(grid);
        let last = grid.sections() - 1;
        for number in 0..last {
            ledger.is_done_already(number, earlier.digest(number));
        }
        let book = (grid, &ledger);
        let again = || recheck(&source, book, &options, &cancel, &mut |_| {}).unwrap();
        assert_eq!(again(), 0);
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(&[0xee; 4096], 8192).unwrap();
        let (from, to_byte) = grid.section(0);
        assert_eq!(again(), to_byte - from);
        assert!(!ledger.is_done(0) && ledger.is_done(1) && !ledger.is_done(last));
        copy(&source, &target, book, &options, None, &cancel, &mut tell).unwrap();
        assert!(std::fs::read(&to).unwrap() == std::fs::read(&path).unwrap());
        let different = compare(&target, book, &options, &cancel, &mut tell).unwrap();
        assert_eq!(different, []);
    }
}
