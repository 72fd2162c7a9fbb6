//! The rig of this machine: real threads, the real clock, the watcher.

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::result::TargetKind;
use rubus_vocabulary::spec::{FileStart, Pattern};
use rustix::fs::{
    Advice, FallocateFlags, Mode, OFlags, fadvise, fallocate, fcntl_getfl, fcntl_setfl, fdatasync,
    ftruncate, open,
};
use rustix::io::Errno;

use crate::completions::Completions;
use crate::error::advice;
use crate::lanes::Queueing;
use crate::page_cache;
use crate::probe::{self, Verdict};
use crate::remote::Connections;
use crate::rig::{Choice, Rig, Running};
use crate::sample::Sample;
use crate::watch::Watcher;
use crate::work::{Engine, Work};
use crate::workers::Workers;
use rubus_host::ticks::now_ns;

/// Work and clock of this machine.
pub(crate) struct LiveRig {
    watcher: Watcher,
    kind: TargetKind,
    queueing: Queueing,
    /// Reading in order is not announced to the kernel.
    has_default_read_ahead: bool,
    /// What trying io_uring found, for each open file, for reads and for writes, polled or not.
    verdicts: HashMap<(RawFd, bool, bool), Verdict>,
}

impl LiveRig {
    /// The rig for a target of that kind, with how deep queues are to be kept full.
    pub(crate) fn new(watcher: Watcher, kind: TargetKind, queueing: Queueing) -> Self {
        let verdicts = HashMap::new();
        LiveRig { watcher, kind, queueing, has_default_read_ahead: false, verdicts }
    }

    /// What keeps a queue full: a ring where it can, else threads.
    fn choose_queue(&mut self, work: &Work, trial: u32, polled: bool) -> Choice {
        let chosen = |engine, doubt, bytes_written| Choice { engine, doubt, bytes_written };
        let because = |reason: String| Some(Doubt::NoRing { reason });
        if work.one_at_a_time {
            // Asked for, so nothing to doubt.
            return chosen(Engine::Threads, None, 0);
        }
        if work.is_commit() {
            let reason = "each commit waits for its own flush".into();
            return chosen(Engine::Threads, because(reason), 0);
        }
        if !self.queueing.may_use_ring {
            return chosen(Engine::Threads, because("threads were asked for".into()), 0);
        }
        if work.settles {
            let reason = "writes through the page cache are waited for one by one".into();
            return chosen(Engine::Threads, because(reason), 0);
        }
        let key = (work.file.as_raw_fd(), work.is_write(), polled);
        let (verdict, bytes_written) = match self.verdicts.get(&key) {
            Some(verdict) => (verdict.clone(), 0),
            None => {
                let found = probe::try_ring(work, trial, polled);
                self.verdicts.insert(key, found.verdict.clone());
                (found.verdict, found.bytes_written)
            }
        };
        let lanes = self.queueing.lanes;
        match verdict {
            // Who asks for polling wants no other way.
            Verdict::Punts if polled => chosen(Engine::Ring { lanes, polled }, None, bytes_written),
            Verdict::Good => chosen(Engine::Ring { lanes, polled }, None, bytes_written),
            Verdict::Punts => chosen(
                Engine::Threads,
                because("the kernel would hand each operation to a thread of its own".into()),
                bytes_written,
            ),
            Verdict::Bad(reason) => chosen(Engine::Threads, because(reason), bytes_written),
        }
    }
}

impl Rig for LiveRig {
    fn now_ns(&self) -> u64 {
        now_ns()
    }

    fn start(&mut self, work: &Work) -> Result<Box<dyn Running>, String> {
        Ok(Box::new(Workers::start(work)?))
    }

    fn flush(
        &mut self,
        work: &Work,
        most: Duration,
        cancel: &AtomicBool,
        tick: &mut dyn FnMut(u64),
    ) -> Result<Option<u64>, String> {
        let files = work.files();
        patiently(most, cancel, tick, move || {
            files.iter().try_for_each(fdatasync).map_err(|errno| {
                let (error, advice) = (std::io::Error::from(errno), advice(errno));
                format!("{error}{advice}")
            })
        })
    }

    fn choose_engine(&mut self, work: &Work, trial: u32) -> Choice {
        if work.is_mapped {
            return Choice { engine: Engine::Mapped, doubt: None, bytes_written: 0 };
        }
        let polled = self.queueing.polled && work.may_be_polled();
        let is_lone = work.queue_depth == 1 && !polled;
        let positional =
            |bytes_written| Choice { engine: Engine::Positional, doubt: None, bytes_written };
        if is_lone && !self.queueing.ring_for_one {
            return positional(0);
        }
        let queued = self.choose_queue(work, trial, polled);
        match queued.engine {
            // One at a time needs no threads.
            Engine::Threads if is_lone => positional(queued.bytes_written),
            _ => queued,
        }
    }

    fn settle(&mut self, work: &Work) {
        // Best effort: a filesystem that cannot do it answers from memory, and the check of the
        // cache after the job says so.
        let is_device = self.kind == TargetKind::Device;
        if is_device && !work.is_buffered {
            return;
        }
        let order = match work.pattern {
            // Each way the kernel takes the disk's present setting over to the open file.
            Pattern::Sequential if self.has_default_read_ahead => Advice::Normal,
            Pattern::Sequential => Advice::Sequential,
            Pattern::Random => Advice::Random,
        };
        for file in work.files() {
            let _ = fdatasync(&file);
            let length = NonZeroU64::new(work.region_bytes);
            let _ = fadvise(&file, 0, length, Advice::DontNeed);
            let _ = fadvise(&file, 0, None, order);
        }
    }

    fn use_default_read_ahead(&mut self) {
        self.has_default_read_ahead = true;
    }

    fn cached_share(&mut self, work: &Work) -> Option<f64> {
        if self.kind == TargetKind::Device {
            // Other programs may hold pages of a device, which says nothing about our reads.
            return None;
        }
        page_cache::resident_share(work.file.as_fd(), work.region_bytes)
    }

    fn set_direct(&mut self, work: &Work, on: bool) -> Result<(), String> {
        let flags = fcntl_getfl(&work.file);
        let set = flags.and_then(|flags| {
            let wanted =
                if on { flags.union(OFlags::DIRECT) } else { flags.difference(OFlags::DIRECT) };
            fcntl_setfl(&work.file, wanted)
        });
        set.map_err(|errno| {
            let error = std::io::Error::from(errno);
            format!("cannot turn direct I/O on or off: {error}")
        })
    }

    fn rest(&mut self, seconds: f64, cancel: &AtomicBool) -> bool {
        const STEP_NS: u64 = 50_000_000;
        let end_ns = now_ns() + (seconds * 1e9) as u64;
        while !cancel.load(Ordering::Relaxed) {
            let left_ns = end_ns.saturating_sub(now_ns());
            if left_ns == 0 {
                return true;
            }
            std::thread::sleep(Duration::from_nanos(left_ns.min(STEP_NS)));
        }
        false
    }

    fn reopen(&mut self, file: &OwnedFd, may_write: bool) -> Option<OwnedFd> {
        let way = if may_write { OFlags::RDWR } else { OFlags::RDONLY };
        // The kernel's link to the open file leads there even if it has no name.
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        open(link.as_str(), way | OFlags::CLOEXEC, Mode::empty()).ok()
    }

    fn extend(&mut self, file: &OwnedFd, bytes: u64, start: FileStart) -> Result<(), String> {
        let extended = match start {
            FileStart::Reserved => fallocate(file, FallocateFlags::empty(), 0, bytes),
            FileStart::Hollow | FileStart::Filled => ftruncate(file, bytes),
        };
        let done = match extended {
            // A filesystem that cannot reserve can still be written to.
            Err(Errno::OPNOTSUPP) => ftruncate(file, bytes),
            answer => answer,
        };
        done.map_err(|errno| {
            let (error, advice) = (std::io::Error::from(errno), advice(errno));
            format!("cannot make the test file {bytes} bytes long: {error}{advice}")
        })
    }

    fn empty(&mut self, file: &OwnedFd) -> Result<(), String> {
        let emptied = ftruncate(file, 0).and_then(|()| fdatasync(file));
        emptied.map_err(|errno| {
            let error = std::io::Error::from(errno);
            format!("cannot empty the test file: {error}")
        })
    }

    fn sample(&mut self) -> Sample {
        self.watcher.sample()
    }

    fn samples(&mut self, from_ns: u64, to_ns: u64) -> Vec<Sample> {
        self.watcher.samples(from_ns, to_ns)
    }
}

/// A flush in a thread of its own, since a device that never answers would hold us for ever. Gives
/// how long it took in nanoseconds, or nothing if `cancel` was set meanwhile.
pub(crate) fn patiently(
    most: Duration,
    cancel: &AtomicBool,
    tick: &mut dyn FnMut(u64),
    flush: impl FnOnce() -> Result<(), String> + Send + 'static,
) -> Result<Option<u64>, String> {
    let (done, wait) = mpsc::channel();
    let spawned =
        std::thread::Builder::new().name("flush".into()).stack_size(256 << 10).spawn(move || {
            let start_ns = now_ns();
            let answer = flush();
            // The receiver may be gone.
            let _ = done.send((answer, now_ns() - start_ns));
        });
    spawned.map_err(|error| format!("cannot start a thread for the flush: {error}"))?;
    const TICK_NS: u64 = 200_000_000;
    let deadline_ns = now_ns() + most.as_nanos() as u64;
    let mut next_tick_ns = now_ns() + TICK_NS;
    loop {
        if now_ns() >= next_tick_ns {
            next_tick_ns += TICK_NS;
            tick(now_ns());
        }
        match wait.recv_timeout(Duration::from_millis(50)) {
            Ok((Ok(()), elapsed_ns)) => return Ok(Some(elapsed_ns)),
            Ok((Err(error), _)) => return Err(format!("the final flush failed: {error}")),
            Err(RecvTimeoutError::Disconnected) => {
                return Err("the thread of the final flush broke off; this is a bug".into());
            }
            Err(RecvTimeoutError::Timeout) if cancel.load(Ordering::Relaxed) => {
                return Ok(None);
            }
            Err(RecvTimeoutError::Timeout) if now_ns() >= deadline_ns => {
                let seconds = most.as_secs();
                return Err(format!("the final flush took more than {seconds} s"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// This machine, with a network disk as the target: there is no file to be prepared, flushed or
/// looked for in the page cache.
pub(crate) struct RemoteRig {
    live: LiveRig,
    remote: Arc<Connections>,
}

impl RemoteRig {
    /// The rig for that network disk.
    pub(crate) fn new(live: LiveRig, remote: Arc<Connections>) -> Self {
        RemoteRig { live, remote }
    }
}

impl Rig for RemoteRig {
    fn now_ns(&self) -> u64 {
        self.live.now_ns()
    }

    fn start(&mut self, work: &Work) -> Result<Box<dyn Running>, String> {
        self.live.start(work)
    }

    fn flush(
        &mut self,
        _work: &Work,
        most: Duration,
        cancel: &AtomicBool,
        tick: &mut dyn FnMut(u64),
    ) -> Result<Option<u64>, String> {
        let remote = Arc::clone(&self.remote);
        patiently(most, cancel, tick, move || remote.flush())
    }

    fn choose_engine(&mut self, _work: &Work, _trial: u32) -> Choice {
        Choice { engine: Engine::Wire, doubt: None, bytes_written: 0 }
    }

    fn rest(&mut self, seconds: f64, cancel: &AtomicBool) -> bool {
        self.live.rest(seconds, cancel)
    }

    fn extend(&mut self, _file: &OwnedFd, _bytes: u64, _start: FileStart) -> Result<(), String> {
        Err("a network disk has the size that it has".into())
    }

    fn empty(&mut self, _file: &OwnedFd) -> Result<(), String> {
        Err("a network disk has no file that could be emptied".into())
    }

    fn sample(&mut self) -> Sample {
        self.live.sample()
    }

    fn samples(&mut self, from_ns: u64, to_ns: u64) -> Vec<Sample> {
        self.live.samples(from_ns, to_ns)
    }
}

impl Running for Workers {
    fn poll(&mut self, most: Duration) -> bool {
        Workers::poll(self, most)
    }

    fn stop(&mut self) {
        Workers::stop(self);
    }

    fn completions(&self) -> &[Completions] {
        Workers::completions(self)
    }

    fn completions_mut(&mut self) -> &mut [Completions] {
        Workers::completions_mut(self)
    }

    fn handed_out(&self) -> Vec<u64> {
        Workers::handed_out(self)
    }
}
