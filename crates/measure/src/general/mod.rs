//! The general engine: jobs of more than one kind of operation, size or pace.
//!
//! A `Plan` is what a job means on its files, a `Script` yields its operations one by one, a `Baton`
//! hands them to the threads of a job, a `Ledger` keeps the accounts of reads and writes apart,
//! and the loops in `blocking` and `queued` do the work. Jobs without a shape are run by the lean
//! loops of `engine`, which know all this at compile time.

mod baton;
mod blocking;
mod checks;
mod ledger;
mod places;
mod plan;
mod queued;
mod script;
#[cfg(test)]
mod script_tests;
mod work;

pub(crate) use baton::{Baton, Exclusive};
pub(crate) use blocking::{Hands, run as run_blocking};
pub(crate) use checks::{Checks, unit_of};
pub(crate) use ledger::Ledger;
pub(crate) use places::Places;
pub(crate) use plan::{Plan, READS, WRITES};
pub(crate) use queued::{Queue, run as run_queued};
#[cfg(test)]
pub(crate) use script::{Operation, Script, Step};
pub(crate) use work::{Copy, General};
