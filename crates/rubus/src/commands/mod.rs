//! One file per verb.

pub mod advise;
pub mod against;
pub mod against_binary;
pub mod bench;
mod bench_objects;
pub mod bench_options;
pub mod boot;
pub mod change;
pub mod checkup;
pub mod cluster;
pub mod completions;
pub mod cpu;
pub mod enough;
pub mod explain;
pub mod job_file;
pub mod manual;
pub mod memory;
pub mod nbd;
pub mod pages;
pub mod suites;
pub mod survey;
pub mod together;
pub mod tune;
