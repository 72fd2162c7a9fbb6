//! What a session needs from the world: a clock, work that runs, and somebody who watches.
//!
//! The live rig is in `live`, one with virtual time in `sim`; the session cannot tell them apart.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rubus_core::doubt::Doubt;

use crate::harvest::Harvest;
use crate::watch::Sample;
use crate::work::Work;

/// The world as a session sees it.
pub(crate) trait Rig {
    /// Nanoseconds of a clock that never goes back.
    fn now_ns(&self) -> u64;

    /// Starts the work.
    ///
    /// # Errors
    /// In words, when it cannot begin.
    fn start(&mut self, work: &Work) -> Result<Box<dyn Running>, String>;

    /// Makes what was written durable; gives how long that took in nanoseconds, or nothing if
    /// `cancel` was set meanwhile.
    ///
    /// # Errors
    /// In words, when the target fails or does not answer within `most`.
    fn flush(
        &mut self,
        work: &Work,
        most: Duration,
        cancel: &AtomicBool,
    ) -> Result<Option<u64>, String>;

    /// Which engine suits the work, in place of io_uring if that is of no use here; with the doubt
    /// that goes with it. Trying it out may take `trial` operations, at least one.
    fn choose_engine(&mut self, work: &Work, trial: u32) -> Choice;

    /// Puts the target in the state that the work is to find: nothing of it in memory where that can
    /// be arranged.
    fn settle(&mut self, work: &Work);

    /// The share of the region that lies in the page cache; absent where that cannot be told.
    fn cached_share(&mut self, work: &Work) -> Option<f64>;

    /// Looks at the machine now.
    fn sample(&mut self) -> Sample;

    /// What was seen of the machine since the session began, in order.
    fn samples(&mut self) -> Vec<Sample>;
}

/// The engine for some work.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Choice {
    /// The engine.
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

    /// What has been gathered.
    fn harvest(&self) -> &Harvest;
}
