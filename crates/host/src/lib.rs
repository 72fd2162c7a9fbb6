//! All hands, no knowledge: the only door to files, block devices, programs, mounts and clocks.
//!
//! Nothing here knows what a Raspberry Pi, a swap policy or a confidence interval is.

pub mod blockdev;
pub mod capture;
pub mod clock;
pub mod fake;
pub mod files;
pub mod live;
mod mailbox;
pub mod programs;
pub mod recorder;
mod tree;

pub use files::{Files, ReadError, Space};
pub use live::Live;
