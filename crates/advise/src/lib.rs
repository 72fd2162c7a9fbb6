//! The pipe model: what a storage path gives, from what its stages were measured to give alone.
//!
//! A path is a list of steps ([`Step`]): stages that take time, places where the bytes become others (compression),
//! members that share the work (RAID-0) or of which each operation meets one (the tiers of swap). Each stage keeps a
//! resource busy; stages that name the same resource share it, as all disks behind one USB 2 port do. [`predict()`]
//! composes them by the laws of operational analysis, by mean value analysis where several operations are in flight, and
//! says the throughput, the response time and the narrowest pipe at any queue depth, each with an interval.
//!
//! Sources: Denning and Buzen, *The Operational Analysis of Queueing Network Models*, ACM Computing Surveys 10(3),
//! 1978; Reiser and Lavenberg, *Mean-Value Analysis of Closed Multichain Queueing Networks*, JACM 27(2), 1980;
//! Lazowska, Zahorjan, Graham and Sevcik, *Quantitative System Performance*, 1984, chapters 3 and 5; Zahorjan, Sevcik,
//! Eager and Galler, *Balanced Job Bound Analysis of Queueing Networks*, CACM 25(2), 1982.
#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

pub mod advice;
mod cost;
pub mod decide;
mod demand;
pub mod device_classes;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
mod path;
pub mod predict;
pub mod seeds;
pub mod stages;
pub mod text;
pub mod wish;

pub use cost::Cost;
pub use path::{Kind, Resource, Stage, Step, Stripe, Tier};
pub use predict::{Bend, Operation, Pipe, Prediction, predict};
