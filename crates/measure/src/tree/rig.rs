//! The rig for a tree of small files: this machine, with files in place of blocks.

use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::fs::{Advice, Mode, OFlags, fadvise, openat, syncfs};

use crate::error::advice;
use crate::live::{LiveRig, patiently};
use crate::page_cache;
use crate::rig::{Choice, Rig, Running};
use crate::sample::Sample;
use crate::tree::Group;
use crate::tree::work::Phase;
use crate::work::{Engine, Work};

/// The final flush of a phase may take this long: what was written may all be in the cache yet.
const FLUSH: Duration = Duration::from_secs(240);
/// Number of files checked for contents in the page cache.
const SAMPLE: usize = 64;

/// This machine with a tree of files.
pub(crate) struct TreeRig {
    live: LiveRig,
    root: Arc<OwnedFd>,
    phase: Option<Phase>,
}

impl TreeRig {
    /// The rig for a tree; nothing runs before the first phase is set.
    pub(crate) fn new(live: LiveRig, root: Arc<OwnedFd>) -> Self {
        TreeRig { live, root, phase: None }
    }

    /// What is to be started next.
    pub(crate) fn set_phase(&mut self, phase: Phase) {
        self.phase = Some(phase);
    }

    /// Waits until everything on the filesystem is on the disk; nothing if `cancel` was set.
    ///
    /// # Errors
    /// In words, when the disk fails or takes too long.
    pub(crate) fn sync(&self, cancel: &AtomicBool) -> Result<Option<u64>, String> {
        self.sync_telling(cancel, &mut |_| {})
    }

    fn sync_telling(
        &self,
        cancel: &AtomicBool,
        tick: &mut dyn FnMut(u64),
    ) -> Result<Option<u64>, String> {
        let root = Arc::clone(&self.root);
        patiently(FLUSH, cancel, tick, move || {
            syncfs(&*root).map_err(|errno| {
                let (error, advice) = (std::io::Error::from(errno), advice(errno));
                format!("{error}{advice}")
            })
        })
    }

    /// Makes the kernel forget the contents of the files, as far as it can be asked to; gives the
    /// share that it still has of a sample, where that can be told.
    pub(crate) fn forget_contents(&self, group: &Group, file_bytes: u32) -> Option<f64> {
        let files = group.files();
        let step = (files.len() / SAMPLE).max(1);
        let (mut shares, mut count) = (0.0, 0.0);
        for (index, &(directory, file)) in files.iter().enumerate() {
            let path = group.path(directory, file);
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOATIME;
            let Ok(open) = openat(&self.root, path.as_c_str(), flags, Mode::empty()) else {
                continue;
            };
            let length = NonZeroU64::new(u64::from(file_bytes));
            let _ = fadvise(&open, 0, length, Advice::DontNeed);
            if index % step == 0 {
                if let Some(share) = page_cache::resident_share(open.as_fd(), file_bytes.into()) {
                    shares += share;
                    count += 1.0;
                }
            }
        }
        (count > 0.0).then(|| shares / count)
    }
}

impl Rig for TreeRig {
    fn now_ns(&self) -> u64 {
        self.live.now_ns()
    }

    fn start(&mut self, _work: &Work) -> Result<Box<dyn Running>, String> {
        match &self.phase {
            Some(phase) => Ok(Box::new(phase.start()?)),
            None => Err("no phase was set; this is a bug".into()),
        }
    }

    fn flush(
        &mut self,
        _work: &Work,
        _most: Duration,
        cancel: &AtomicBool,
        tick: &mut dyn FnMut(u64),
    ) -> Result<Option<u64>, String> {
        self.sync_telling(cancel, tick)
    }

    fn choose_engine(&mut self, work: &Work, _trial: u32) -> Choice {
        let engine = match work.queue_depth {
            1 => Engine::Positional,
            _ => Engine::Threads,
        };
        Choice { engine, doubt: None, bytes_written: 0 }
    }

    fn rest(&mut self, seconds: f64, cancel: &AtomicBool) -> bool {
        self.live.rest(seconds, cancel)
    }

    fn sample(&mut self) -> Sample {
        self.live.sample()
    }

    fn samples(&mut self, from_ns: u64, to_ns: u64) -> Vec<Sample> {
        self.live.samples(from_ns, to_ns)
    }
}
