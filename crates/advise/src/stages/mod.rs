//! Builders of stages: from figures that were measured or are usual to the steps of a path.
//!
//! One file per kind of stage. Each says what its numbers are and where they come from; a number that is only usual has
//! the interval in which others were seen.

pub mod cipher;
pub mod compression;
pub mod device;
pub mod network;
pub mod raid;
pub mod swap;

use rubus_stats::estimate::Estimate;

use crate::cost::Cost;
use crate::path::{Kind, Resource, Stage, Step};

/// A bus with this bandwidth, used while the device behind it works.
pub fn bus(name: &str, bytes_per_second: f64) -> Step {
    Step::Beside(Stage {
        kind: Kind::Bus,
        resource: Some(Resource::one(name)),
        cost: Cost::rate(usable(bytes_per_second)),
    })
}

/// What a bus carries in practice is a rule of thumb, and within a tenth of the truth.
pub fn usable(bytes_per_second: f64) -> Estimate {
    Estimate::new(bytes_per_second, bytes_per_second * 0.9, bytes_per_second * 1.05)
}

/// What the processor's cores are called as a resource.
pub const PROCESSOR: &str = "the processor";

#[cfg(test)]
mod tests;
