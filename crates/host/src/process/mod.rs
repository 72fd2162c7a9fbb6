//! Programs and threads: run, limited, looked at, and what they cost.

pub mod affinity;
pub mod answering;
pub mod child;
pub mod confined;
pub mod ended_tasks;
pub(crate) mod mapped;
pub mod memory_group;
pub mod mlocked;
pub mod openers;
pub mod process_stat;
pub mod programs;
pub mod schedstat;
pub mod signals;
pub mod standard_error;
pub mod starting;
