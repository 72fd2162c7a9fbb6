//! One file per verb.

pub mod advise;
pub mod against;
pub mod against_binary;
pub mod attach;
pub mod before_after;
pub mod bench;
pub mod bench_options;
pub mod change;
pub mod checkup;
pub mod cluster;
pub mod compare;
pub mod completions;
pub mod compression;
pub mod copy;
pub mod cpu;
mod fallen_back;
pub mod gallery;
pub mod history;
pub mod image;
pub mod job_file;
mod lost;
pub mod manual;
pub mod memory;
pub mod nbd;
mod nbd_clones;
pub mod nbd_copy;
#[path = "../../../../crates/nbd/src/info.rs"]
mod nbd_info;
mod plans;
pub mod serve;
pub mod share;
pub mod status;
pub mod suites;
pub mod survey;
pub mod together;
mod trial;
pub mod verify;
#[path = "../../../../crates/watch/src/live/view.rs"]
pub mod watch;
pub mod zswap;
