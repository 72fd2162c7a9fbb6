//! What `rubus bench cpu` measures, and the other programs that it runs.

pub mod crunching;
pub mod openssl;
pub mod ssh;

use std::sync::atomic::AtomicBool;

use rubus_vocabulary::machine::Machine;

use crate::args::BenchCpu;
use crate::progress::Line;

/// What every part needs.
pub struct CpuRun<'a> {
    /// As surveyed before the run.
    pub machine: &'a Machine,
    /// What was asked for.
    pub args: &'a BenchCpu,
    /// Cores that the program may use.
    pub cores: u32,
    /// Set when the user has had enough.
    pub cancel: &'a AtomicBool,
    /// Says on the terminal what is measured now.
    pub line: &'a Line,
}
