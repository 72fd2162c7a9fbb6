//! What fio reads and writes: job files, and results as JSON.

#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

pub mod command_line;
pub mod job_file;
pub mod json;
