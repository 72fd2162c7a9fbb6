//! The measuring engine: what to measure becomes a result.
//!
//! A [`Session`] runs a suite (see [`suites`]) on a [`Target`] and tells an [`Observer`] how it goes.
//! From the top: `session` opens the target; `frame` is what any session has around its jobs, and runs one after the
//! other; `scheduler` knows how one job on blocks is run (`tree` and `capacity`: on small files, on stamped blocks), and
//! what it means on the files of the session (`region`); `measure` runs a job and those beside it, `runner` feeds the
//! stopping rule of each, `outcome` makes their results. `workers` are the threads that run the loops of `engine`, or
//! of `general` for jobs of more than one kind; `worker` is their accounting, `mailbox` what they report through,
//! `completions` what they have reported. `rig` is the seam between what decides and what does: below it is this
//! machine (`live`) or, in tests, virtual time. Beside all this, [`nas`] watches the file server of a share.
//!
//! Nothing here prints, except that a share has gone and the program with it. Nothing here knows what a result means:
//! that is the room `verdict`.

mod attribution;
#[cfg(test)]
mod attribution_tests;
mod by_turn;
pub mod calibrate;
mod capacity;
mod completions;
mod course;
mod engine;
mod error;
mod event;
mod far_end;
mod filesystem;
mod frame;
mod general;
mod in_turns;
#[cfg(test)]
mod in_turns_tests;
mod lanes;
mod live;
mod loop_device;
mod mailbox;
pub mod marked_blocks;
mod measure;
mod measurement;
pub mod nas;
mod outcome;
mod page_cache;
mod passes;
mod polling;
mod probe;
mod region;
pub mod remote;
mod rig;
mod ring;
mod runner;
mod sample;
mod scheduler;
mod session;
#[cfg(test)]
mod sim;
#[cfg(test)]
mod sim_checkup_tests;
#[cfg(test)]
mod sim_enough_tests;
#[cfg(test)]
mod sim_shape_tests;
#[cfg(test)]
mod sim_shaped;
#[cfg(test)]
mod sim_suite_tests;
#[cfg(test)]
mod sim_tests;
mod slow;
pub mod suites;
mod target;
mod tree;
mod tree_names;
mod walk;
mod watch;
mod work;
mod worker;
mod workers;
#[cfg(test)]
mod workers_tests;

pub use by_turn::{ByTurn, run_by_turn};
pub use error::BenchError;
pub use event::{Event, Observer, Phase, Progress};
pub use far_end::{FarEnd, Meter};
pub use frame::{MeasuredTarget, Session, SessionOutcome};
pub use in_turns::{TurnsOutcome, for_turns, run_in_turns, turn_seconds};
pub use lanes::Queueing;
pub use session::run;
pub use target::Target;
pub use watch::WatchPaths;
