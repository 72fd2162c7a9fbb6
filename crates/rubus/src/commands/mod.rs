//! One file per verb.

pub mod against;
pub mod attach;
pub mod before_after;
pub mod bench;
pub mod certificates;
pub mod change;
pub mod checkup;
pub mod compare;
pub mod completions;
pub mod compression;
pub mod copy;
pub mod history;
pub mod image;
pub mod job_file;
pub mod manual;
pub mod nbd;
mod nbd_clones;
pub mod nbd_copy;
mod nbd_info;
pub mod serve;
pub mod status;
pub mod suites;
pub mod survey;
pub mod together;
mod trial;
pub mod verify;
pub mod zswap;
