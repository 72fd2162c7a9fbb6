//! Machines that are made up for tests, and what was asked of a machine.

pub mod fake;
pub mod recorder;
pub mod rehearsal;
pub(crate) mod tree;
