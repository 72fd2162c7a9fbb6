//! The rig for stamped blocks: this machine, with a worker that checks what it reads.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::capacity::files::Files;
use crate::capacity::worker::Task;
use crate::error::advice;
use crate::live::{LiveRig, patiently};
use crate::rig::{Choice, Rig, Running};
use crate::sample::Sample;
use crate::work::{Engine, Work};

/// What a cheap card has taken into its cache may take it minutes to write.
const FLUSH: Duration = Duration::from_secs(240);

/// This machine with a target that is tested for its size.
pub(crate) struct StampRig {
    live: LiveRig,
    files: Arc<Files>,
    task: Option<Task>,
}

impl StampRig {
    /// The rig for a target; nothing runs before the first task is set.
    pub(crate) fn new(live: LiveRig, files: Arc<Files>) -> Self {
        StampRig { live, files, task: None }
    }

    /// What is to be started next.
    pub(crate) fn set_task(&mut self, task: Task) {
        self.task = Some(task);
    }
}

impl Rig for StampRig {
    fn now_ns(&self) -> u64 {
        self.live.now_ns()
    }

    fn start(&mut self, _work: &Work) -> Result<Box<dyn Running>, String> {
        match &self.task {
            Some(task) => Ok(Box::new(task.start()?)),
            None => Err("no task was set; this is a bug".into()),
        }
    }

    fn flush(
        &mut self,
        _work: &Work,
        _most: Duration,
        cancel: &AtomicBool,
        tick: &mut dyn FnMut(u64),
    ) -> Result<Option<u64>, String> {
        let files = Arc::clone(&self.files);
        patiently(FLUSH, cancel, tick, move || {
            files.sync().map_err(|errno| {
                let (error, advice) = (std::io::Error::from(errno), advice(errno));
                format!("{error}{advice}")
            })
        })
    }

    fn choose_engine(&mut self, _work: &Work, _trial: u32) -> Choice {
        Choice { engine: Engine::Positional, doubt: None, bytes_written: 0 }
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
