//! What all rooms speak of.
//!
//! What a machine is, what to measure, what was measured and how sure that is.
//! Nothing here opens a file, reads a clock, draws a random number that was not seeded by the
//! caller, or runs a thread: every function is a pure function of its arguments, so everything
//! that decides can be tested without root and without a device.
#![warn(missing_docs)]
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

pub mod access;
pub mod application_class;
pub mod basis;
pub mod check;
pub mod checked_json;
pub mod checksum;
pub mod cluster_facts;
pub mod compression_speed;
pub mod doubt;
pub mod escapes;
pub mod fact;
pub mod figure;
pub mod finding;
pub mod heat;
pub mod hidden_letters;
pub mod job_names;
pub mod kernel_log;
pub mod left_out;
pub mod machine;
pub mod memory;
pub mod merge;
pub mod mount_entry;
pub mod nas;
pub mod next_step;
pub mod paired;
pub mod platters;
pub mod processor;
pub mod published;
pub mod refused;
pub mod result;
pub mod rule_finding;
pub mod spec;
pub mod spelling;
pub mod spread;
pub mod subject_job;
pub mod suite_jobs;
pub mod throttling;
pub mod title;
pub mod units;
pub mod utf_16;
pub mod verb;
