//! Statistics of measured series: what the hot loop records, and how sure the result is.
//!
//! The way of a number: the loop records each latency in a [`Histogram`] and counts completions in
//! [`series::Bin`]s of [`series::BIN_NS`]; a [`stop::StopRule`] is fed bin by bin and says when
//! enough has been measured; [`stop::StopRule::finish`] gives the estimates. Stalls, drift and
//! comparisons are judged afterwards from the same bins.
//!
//! Nothing here does I/O, reads a clock or draws a random number without a seed. What the rule
//! does, why, and how often its intervals hold the truth is written in `docs/explanation/statistics.md`.
#![warn(missing_docs)]
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

pub mod batches;
pub mod bend;
pub mod bootstrap;
pub mod change_point;
pub mod cliff;
pub mod compare;
pub mod drift;
pub mod enough;
pub mod estimate;
mod fit;
pub mod histogram;
pub mod interval;
pub mod knee;
pub mod measured;
pub mod passes;
pub mod propagation;
pub mod quantile;
pub mod queueing;
pub mod record;
pub mod rng;
pub mod series;
pub mod stalls;
pub mod stop;
pub mod window;

pub use batches::Batches;
pub use histogram::Histogram;
pub use measured::Measured;
pub use rng::Rng;
pub use series::{Bin, Binner};
pub use stop::{Decision, StopRule};
