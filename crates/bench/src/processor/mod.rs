//! The measuring of a processor: how many bytes a second each of its works takes, on one core and on all.

mod ciphers;
mod compression;
mod linpack;
mod timed;
mod xts;

pub use ciphers::ciphers;
pub use compression::{CompressionPlan, Data, compression};
pub use linpack::{LinpackPlan, kernel, linpack};
pub use timed::{Work, rates};
