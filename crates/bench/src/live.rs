//! The rig of this machine: real threads, the real clock, the watcher.

use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use rubus_core::doubt::Doubt;
use rubus_core::result::TargetKind;
use rubus_core::spec::Pattern;
use rustix::fs::{Advice, fadvise, fdatasync};

use crate::clock::now_ns;
use crate::error::advice;
use crate::harvest::Harvest;
use crate::lanes::Lanes;
use crate::page_cache;
use crate::probe::{self, Verdict};
use crate::rig::{Choice, Rig, Running};
use crate::watch::{Sample, Watcher};
use crate::work::{Engine, Work};

/// This machine.
pub(crate) struct LiveRig {
    watcher: Watcher,
    kind: TargetKind,
    may_use_ring: bool,
    /// What trying io_uring found, for reads and for writes.
    verdicts: [Option<Verdict>; 2],
}

impl LiveRig {
    /// The rig for a target of that kind; `may_use_ring` is false when threads are wanted in
    /// place of io_uring.
    pub(crate) fn new(watcher: Watcher, kind: TargetKind, may_use_ring: bool) -> Self {
        LiveRig {
            watcher,
            kind,
            may_use_ring,
            verdicts: [None, None],
        }
    }
}

impl Rig for LiveRig {
    fn now_ns(&self) -> u64 {
        now_ns()
    }

    fn start(&mut self, work: &Work) -> Result<Box<dyn Running>, String> {
        Ok(Box::new(Lanes::start(work)?))
    }

    fn flush(
        &mut self,
        work: &Work,
        most: Duration,
        cancel: &AtomicBool,
    ) -> Result<Option<u64>, String> {
        let file = work.file.clone();
        let (done, wait) = mpsc::channel();
        // In a thread of its own, since a device that never answers would hold us for ever.
        let spawned = std::thread::Builder::new()
            .name("flush".into())
            .stack_size(256 << 10)
            .spawn(move || {
                let start_ns = now_ns();
                let answer = fdatasync(&file);
                // Nobody may be listening any more.
                let _ = done.send((answer, now_ns() - start_ns));
            });
        spawned.map_err(|error| format!("cannot start a thread for the flush: {error}"))?;
        let deadline_ns = now_ns() + most.as_nanos() as u64;
        loop {
            match wait.recv_timeout(Duration::from_millis(50)) {
                Ok((Ok(()), elapsed_ns)) => return Ok(Some(elapsed_ns)),
                Ok((Err(errno), _)) => {
                    let (error, advice) = (std::io::Error::from(errno), advice(errno));
                    return Err(format!("the final flush failed: {error}{advice}"));
                }
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

    fn choose_engine(&mut self, work: &Work, trial: u32) -> Choice {
        let chosen = |engine, doubt, bytes_written| Choice {
            engine,
            doubt,
            bytes_written,
        };
        if work.queue_depth == 1 {
            return chosen(Engine::Positional, None, 0);
        }
        let because = |reason: String| Some(Doubt::NoRing { reason });
        if !self.may_use_ring {
            return chosen(Engine::Threads, because("threads were asked for".into()), 0);
        }
        if work.settles {
            let reason = "writes through the page cache are waited for one by one".into();
            return chosen(Engine::Threads, because(reason), 0);
        }
        let known = &mut self.verdicts[usize::from(work.is_write())];
        let (verdict, bytes_written) = match known {
            Some(verdict) => (verdict.clone(), 0),
            None => {
                let found = probe::try_ring(work, trial);
                *known = Some(found.verdict.clone());
                (found.verdict, found.bytes_written)
            }
        };
        match verdict {
            Verdict::Good => chosen(Engine::Ring, None, bytes_written),
            Verdict::Punts => chosen(
                Engine::Threads,
                because("the kernel would hand each operation to a thread of its own".into()),
                bytes_written,
            ),
            Verdict::Bad(reason) => chosen(Engine::Threads, because(reason), bytes_written),
        }
    }

    fn settle(&mut self, work: &Work) {
        // Best effort: a filesystem that cannot do it answers from memory, and the check of the
        // cache after the job says so.
        if self.kind != TargetKind::Device {
            let _ = fdatasync(&work.file);
            let length = NonZeroU64::new(work.region_bytes);
            let _ = fadvise(&work.file, 0, length, Advice::DontNeed);
            let order = match work.pattern {
                Pattern::Sequential => Advice::Sequential,
                Pattern::Random => Advice::Random,
            };
            let _ = fadvise(&work.file, 0, None, order);
        }
    }

    fn cached_share(&mut self, work: &Work) -> Option<f64> {
        if self.kind == TargetKind::Device {
            // Other programs may hold pages of a device, which says nothing about our reads.
            return None;
        }
        page_cache::resident_share(work.file.as_fd(), work.region_bytes)
    }

    fn sample(&mut self) -> Sample {
        self.watcher.sample()
    }

    fn samples(&mut self) -> Vec<Sample> {
        self.watcher.samples()
    }
}

impl Running for Lanes {
    fn poll(&mut self, most: Duration) -> bool {
        Lanes::poll(self, most)
    }

    fn stop(&mut self) {
        Lanes::stop(self);
    }

    fn harvest(&self) -> &Harvest {
        Lanes::harvest(self)
    }
}
