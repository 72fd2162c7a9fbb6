//! From what a user called a target to a run that is kept and shown.
//!
//! [`target_name`] reads what was typed, `target` opens it with the guard before it, `measuring` lets the engine run, and
//! [`outputs`] brings the run to the terminal, to files, pages and the history. `parts` is the same frame around the
//! processor and memory, and `job_files` around a job file of fio. [`cli`] has the verbs.

#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

pub mod cli;
mod job_files;
mod measuring;
pub mod outputs;
mod parts;
pub mod progress;
mod target;
pub mod target_name;

pub use measuring::Measured;
