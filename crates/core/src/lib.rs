//! All knowledge, no hands.
//!
//! What a machine is, what to measure, what was measured, how sure that is, and what it means.
//! Nothing here opens a file, reads a clock, draws a random number that was not seeded by the
//! caller, or runs a thread: every function is a pure function of its arguments, so everything
//! that decides can be tested without root and without a device.
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

pub mod advice;
pub mod application_class;
pub mod basis;
pub mod boot;
pub mod callers;
pub mod capacity;
pub mod ceiling;
pub mod certificates;
pub mod checksum;
pub mod compare;
pub mod compression;
pub mod copy;
pub mod disk;
pub mod disk_copy;
pub mod doubt;
pub mod elf;
pub mod escapes;
pub mod fact;
pub mod figure;
pub mod finding;
#[doc(hidden)]
pub mod fixture;
pub mod heat;
pub mod history;
pub mod images;
pub mod job_file;
pub mod left_out;
pub mod machine;
pub mod memory;
pub mod parse;
pub mod pipes;
pub mod plan;
pub mod platters;
pub mod processor;
pub mod purpose;
pub mod recipe;
pub mod reference;
pub mod remote;
pub mod result;
pub mod revision;
pub mod rules;
pub mod sd;
pub mod signature;
pub mod spec;
pub mod spelling;
pub mod title;
pub mod together;
pub mod units;
pub mod usb_ids;
pub mod verdict;
pub mod watch;
pub mod zswap;

// The ground floor, at the names that it has here.
pub use rubus_stats as stats;
pub use rubus_stats::{estimate, propagation as interval, queueing};
