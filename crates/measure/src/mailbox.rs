//! What a worker reports, and the mailbox that it goes through.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rubus_stats::{Batches, Histogram};

/// Length of the slices in which operations are counted: 5 ms. Short enough for a series out of a
/// job whose write budget lasts a tenth of a second; twenty of them make a bin of the statistics.
pub(crate) const SLICE_NS: u64 = 5_000_000;

/// What completed in one slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) operations: u32,
    /// Bytes that they moved.
    pub(crate) bytes: u64,
    /// The longest time without a completion that ended in this slice.
    pub(crate) longest_gap_ns: u64,
}

/// A time without completions, or one operation, that took long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlowSpan {
    /// When it began, on the monotonic clock.
    pub(crate) start_ns: u64,
    /// When it ended.
    pub(crate) end_ns: u64,
    /// True when nothing else completed meanwhile, so that the whole worker stood still.
    pub(crate) is_gap: bool,
    /// How long the worker's thread waited for a processor in that time, at most; absent where the
    /// kernel does not say.
    pub(crate) run_delay_ns: Option<u64>,
}

impl SlowSpan {
    /// How long it lasted.
    pub(crate) fn length_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}

/// Why a worker ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WorkerEnd {
    /// It was told to stop.
    Stopped,
    /// Its budget of operations is spent.
    Spent,
    /// The target failed; the error in words.
    Failed(String),
}

/// What a worker gives when it ends.
#[derive(Clone, Debug)]
pub(crate) struct WorkerReport {
    /// Why it ended.
    pub(crate) end: WorkerEnd,
    /// Latencies after the warm-up.
    pub(crate) histogram: Histogram,
    /// The same by stretches of time.
    pub(crate) batches: Batches,
    /// From when operations were due by a limit to their ends, after the warm-up; absent without a limit.
    pub(crate) responses: Option<Box<Histogram>>,
    /// How many slices from the start were warm-up.
    pub(crate) warm_slices: usize,
    /// Operations that completed, warm-up included.
    pub(crate) operations: u64,
    /// Bytes that they moved.
    pub(crate) bytes: u64,
    /// When the last operation completed.
    pub(crate) last_ns: u64,
    /// Processor time of the worker's thread, in nanoseconds.
    pub(crate) cpu_ns: u64,
    /// How long the thread waited for a processor; absent where the kernel does not say.
    pub(crate) run_delay_ns: Option<u64>,
}

/// What happened in a worker since the mailbox was last emptied.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Slices that are over, in order.
    pub(crate) slices: Vec<Slice>,
    /// Slow spans, in the order in which they ended. A worker may take back the shorter ones of
    /// those that are still in the mailbox.
    pub(crate) slow: Vec<SlowSpan>,
    /// True from the moment the worker can begin.
    pub(crate) ready: bool,
    /// True from the worker's last act on.
    pub(crate) ended: bool,
    /// The worker's last act; taken by the reader of the mailbox.
    pub(crate) report: Option<WorkerReport>,
}

/// Where a worker puts its news and finds its orders.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    stop: AtomicBool,
    /// Until when the worker does nothing of its own will, on the monotonic clock.
    rests_until_ns: AtomicU64,
    news: Mutex<News>,
    changed: Condvar,
}

impl Mailbox {
    /// Tells the worker to end after its current operations.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the worker has been told to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The worker will do nothing until then, because of a limit or a pause.
    pub(crate) fn rest_until(&self, until_ns: u64) {
        self.rests_until_ns.store(until_ns, Ordering::Relaxed);
    }

    /// Until when the worker does nothing of its own will.
    pub(crate) fn rests_until_ns(&self) -> u64 {
        self.rests_until_ns.load(Ordering::Relaxed)
    }

    /// The news, locked. A worker that panicked leaves them as they were, which is still the truth.
    pub(crate) fn news(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the news and wakes all threads that wait for them.
    pub(crate) fn announce(&self, change: impl FnOnce(&mut News)) {
        change(&mut self.news());
        self.changed.notify_all();
    }

    /// The worker's last act.
    pub(crate) fn report(&self, report: WorkerReport) {
        self.announce(|news| {
            news.report = Some(report);
            news.ended = true;
        });
    }

    /// Waits until `done` holds or the time is over; true when it holds.
    pub(crate) fn wait_until(&self, most: Duration, done: impl Fn(&News) -> bool) -> bool {
        let wait = self.changed.wait_timeout_while(self.news(), most, |news| !done(news));
        let (news, _) = wait.unwrap_or_else(PoisonError::into_inner);
        done(&news)
    }
}

/// Slices per bin of the stopping rule: 100 ms.
pub(crate) const SLICES_PER_BIN: usize = 20;
