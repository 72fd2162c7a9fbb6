//! The measuring engine: what to measure becomes a result.
//!
//! A [`Session`] runs a suite (see [`suites`]) on a [`Target`] and tells an [`Observer`] how it goes.
//! From the top: `session` opens and calibrates, `conductor` runs job after job, `tasks` says what a job
//! means on the files of the session (`ground`), `measure` runs a job and those beside it, `runner`
//! feeds the stopping rule of each, `outcome` makes their results. `lanes` are the threads that run the
//! loops of `engine`, or of `general` for jobs of more than one kind; `lane` is their accounting,
//! `harvest` what they report. `rig` is the seam between what decides and what does: below
//! it is this machine (`live`) or, in tests, virtual time.
//!
//! Nothing here prints, and nothing here knows what a result means.

mod arena;
mod blame;
#[cfg(test)]
mod blame_tests;
pub mod calibrate;
mod capacity;
mod clock;
pub mod compression;
mod conductor;
mod course;
mod engine;
mod error;
mod event;
mod far_end;
mod filesystem;
mod general;
mod ground;
mod harvest;
mod in_turns;
#[cfg(test)]
mod in_turns_tests;
mod lane;
mod lanes;
#[cfg(test)]
mod lanes_tests;
mod live;
mod loop_device;
mod measure;
pub mod memory;
mod outcome;
mod page_cache;
mod passes;
mod probe;
pub mod processor;
pub mod remote;
mod rig;
mod ring;
mod runner;
mod schedstat;
mod session;
#[cfg(test)]
mod sim;
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
mod tasks;
mod tree;
mod walk;
mod watch;
mod work;

pub use error::BenchError;
pub use event::{Event, Observer, Phase, Progress};
pub use far_end::{FarEnd, Meter};
pub use in_turns::{TurnsOutcome, for_turns, run_in_turns, turn_seconds};
pub use session::{Session, SessionOutcome, run};
pub use target::Target;
pub use watch::WatchPaths;
