//! The measuring of a processor: how many bytes a second each of its works takes, on one core and on all.

mod ciphers;
mod timed;
mod xts;

pub use ciphers::ciphers;
pub use timed::{Work, rates};
