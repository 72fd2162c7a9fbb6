//! All hands, no knowledge: the only door to files, block devices, programs, mounts and clocks.
//!
//! Nothing here knows what a Raspberry Pi, a swap policy or a confidence interval is.

#![warn(missing_docs)]

pub mod block;
pub mod capture;
pub mod clock;
pub mod files;
pub mod live;
pub mod net;
pub mod process;
pub mod shareable;
pub mod simulated;
pub mod ticks;

pub use files::hands::{Hands, Twin, WriteError};
pub use files::{Files, ReadError, Space};
pub use live::Live;
