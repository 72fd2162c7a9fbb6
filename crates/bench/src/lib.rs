//! The measuring engine: what to measure becomes a result.
//!
//! A [`Session`] runs a suite (see [`suites`]) on a [`Target`] and tells an [`Observer`] how it goes.
//! From the top: `session` opens and calibrates, `conductor` runs job after job, `measure` feeds
//! one job's stopping rule and makes its result, `lanes` are the threads that run the loops of
//! `engine`, `lane` is their accounting. `rig` is the seam between what decides and what does: below
//! it is this machine (`live`) or, in tests, virtual time.
//!
//! Nothing here prints, and nothing here knows what a result means.

mod arena;
mod blame;
#[cfg(test)]
mod blame_tests;
pub mod calibrate;
mod clock;
mod conductor;
mod engine;
mod error;
mod event;
mod filesystem;
mod harvest;
mod lane;
mod lanes;
#[cfg(test)]
mod lanes_tests;
mod live;
mod measure;
mod page_cache;
mod probe;
mod rig;
mod ring;
mod schedstat;
mod session;
#[cfg(test)]
mod sim;
#[cfg(test)]
mod sim_tests;
pub mod suites;
mod target;
mod walk;
mod watch;
mod work;

pub use error::BenchError;
pub use event::{Event, Observer, Phase, Progress};
pub use session::{Session, SessionOutcome, run};
pub use target::Target;
pub use watch::WatchPaths;
