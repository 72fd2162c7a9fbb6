//! The measuring of a processor: how many bytes a second each of its works takes, on one core and on all.

pub mod ciphers;
pub mod compression;
mod kernel;
pub mod linpack;
pub mod ssh;
mod timed;
mod xts;

pub use ciphers::{ciphers, one_core};
pub use compression::{CompressionPlan, Data, compression};
pub use kernel::kernel_ciphers;
pub use linpack::{LinpackPlan, linpack};
pub use ssh::{Programs, ssh};
pub use timed::{Work, rates};
