//! What a session needs from the world: a clock, work that runs, and a watcher.
//!
//! The live rig is in `live`, one with virtual time in `sim`; the session cannot tell them apart.

use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::spec::FileStart;

use crate::completions::Completions;
use crate::sample::Sample;
use crate::work::Work;

/// The world as a session sees it. What concerns one open file has an empty answer here, for rigs
/// whose target is none.
pub(crate) trait Rig {
    /// Nanoseconds of a clock that never goes back.
    fn now_ns(&self) -> u64;

    /// Starts the work.
    ///
    /// # Errors
    /// In words, when it cannot begin.
    fn start(&mut self, work: &Work) -> Result<Box<dyn Running>, String>;

    /// Makes what was written durable; gives how long that took in nanoseconds, or nothing if
    /// `cancel` was set meanwhile. Calls `tick` with the time now and then.
    ///
    /// # Errors
    /// In words, when the target fails or does not answer within `most`.
    fn flush(
        &mut self,
        work: &Work,
        most: Duration,
        cancel: &AtomicBool,
        tick: &mut dyn FnMut(u64),
    ) -> Result<Option<u64>, String>;

    /// Which engine suits the work, in place of io_uring if that is of no use here; with the doubt
    /// that goes with it. Trying it out may take `trial` operations, at least one.
    fn choose_engine(&mut self, work: &Work, trial: u32) -> Choice;

    /// Puts the target in the state that the work is to find: nothing of it in memory where that can
    /// be arranged.
    fn settle(&mut self, _work: &Work) {}

    /// From now on reads through the page cache get the read-ahead that programs get by default, not the doubled one of a
    /// program that announces sequential reading.
    fn use_default_read_ahead(&mut self) {}

    /// The share of the region that lies in the page cache; absent where that cannot be told.
    fn cached_share(&mut self, _work: &Work) -> Option<f64> {
        None
    }

    /// Turns the way past the page cache on or off.
    ///
    /// # Errors
    /// In words, when the kernel refuses it.
    fn set_direct(&mut self, _work: &Work, _on: bool) -> Result<(), String> {
        Ok(())
    }

    /// Lets the time pass; false when `cancel` was set meanwhile.
    fn rest(&mut self, seconds: f64, cancel: &AtomicBool) -> bool;

    /// Opens a file that is open once more, through the page cache; absent where that cannot be.
    fn reopen(&mut self, _file: &OwnedFd, _may_write: bool) -> Option<OwnedFd> {
        None
    }

    /// Sets the length of a file of our own, and reserves its space if that is wanted.
    ///
    /// # Errors
    /// In words, when the filesystem refuses it.
    fn extend(&mut self, _file: &OwnedFd, _bytes: u64, _start: FileStart) -> Result<(), String> {
        Ok(())
    }

    /// Empties a file of our own.
    ///
    /// # Errors
    /// In words, when the filesystem refuses it.
    fn empty(&mut self, _file: &OwnedFd) -> Result<(), String> {
        Ok(())
    }

    /// Looks at the machine now.
    fn sample(&mut self) -> Sample;

    /// What was seen of the machine between two moments, in order. What was seen before the first is
    /// forgotten.
    fn samples(&mut self, from_ns: u64, to_ns: u64) -> Vec<Sample>;
}

/// The engine for some work.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Choice {
    pub(crate) engine: crate::work::Engine,
    /// Why it is not the usual one.
    pub(crate) doubt: Option<Doubt>,
    /// Bytes that trying it out wrote to the target.
    pub(crate) bytes_written: u64,
}

/// Work that runs.
pub(crate) trait Running {
    /// Lets it run until it has ended, at most `most`, and gathers what is new; true when it has
    /// ended.
    fn poll(&mut self, most: Duration) -> bool;

    /// Tells it to end after its current operations.
    fn stop(&mut self);

    /// What has been gathered: one account, or two of a mix, reads first.
    fn completions(&self) -> &[Completions];

    /// The same, for taking bins out.
    fn completions_mut(&mut self) -> &mut [Completions];

    /// How many operations the scripts of a shaped job have handed out, for each copy.
    fn handed_out(&self) -> Vec<u64> {
        Vec::new()
    }

    /// When it began or will begin, on the rig's clock.
    fn origin_ns(&self) -> u64 {
        self.completions().first().map_or(0, |completions| completions.origin_ns)
    }
}
