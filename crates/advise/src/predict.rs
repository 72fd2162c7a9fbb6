//! What a path gives at a queue depth, and which pipe of it is the narrowest.

use rubus_stats::estimate::Estimate;
use rubus_stats::propagation::carry;
pub use rubus_stats::queueing::Bend;
use rubus_stats::queueing::mean_value::Station;
use serde::{Deserialize, Serialize};

use crate::demand::{self, Demand, Demands};
use crate::path::{Kind, Step};

/// What is asked of a path.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// Bytes at the top of the path, at least 1.
    pub bytes: u64,
    /// Operations in flight, at least 1.
    pub depth: u32,
    /// How the curve goes round the knee: by the path's stations, or as it was measured.
    pub bend: Bend,
}

/// What a resource does when the path carries what was predicted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pipe {
    /// Name of the resource.
    pub name: String,
    /// What kind of stage asks the most of it.
    pub kind: Kind,
    /// Operations per second that it would let through alone.
    pub capacity_iops: Estimate,
    /// How busy it is, 0 to 1.
    pub utilisation: f64,
    /// Share of a lone operation's time that is spent here, 0 to 1.
    pub share_of_time: f64,
}

/// What a path gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Operations per second at the top of the path.
    pub iops: Estimate,
    /// Bytes per second at the top of the path.
    pub bytes_per_second: Estimate,
    /// Seconds of an operation, waiting included.
    pub response_s: Estimate,
    /// N*: with more operations in flight than this they only wait.
    pub knee_depth: Estimate,
    /// The resources, the narrowest first.
    pub pipes: Vec<Pipe>,
    /// Operations per second at this depth if the narrowest pipe were as wide as can be: what its widening can bring at most.
    pub without_narrowest_iops: f64,
    /// False when another pipe may be as narrow, going by the intervals.
    pub is_sure: bool,
}

/// Predicts what `path` gives for `operation`.
///
/// Each resource is a station with a queue of its own, that serves as many at once as it has servers; what a lone operation spends
/// elsewhere is a delay. What they give together at this depth is said by mean value analysis, unless the operation brings a bend that
/// was measured or is known ([`Bend`]). The analysis is done again with each end of each cost's interval: what a path gives only falls
/// as any of its costs grows.
///
/// # Panics
/// If the path asks no time at all: that is a programming error.
pub fn predict(path: &[Step], operation: &Operation) -> Prediction {
    let bytes = operation.bytes.max(1) as f64;
    let depth = operation.depth.max(1);
    let best = demand::of(path, bytes, &mut |estimate| estimate.value);
    assert!(best.alone_s > 0.0, "a path without a stage");
    let response_s = carry(|pick| {
        let demands = demand::of(path, bytes, pick);
        demands.response_s(operation.bend, depth, pick)
    });
    let iops = carry(|pick| {
        let demands = demand::of(path, bytes, pick);
        f64::from(depth) / demands.response_s(operation.bend, depth, pick)
    });
    let pipes = pipes(path, bytes, &best, iops.value);
    let is_sure = match pipes.as_slice() {
        [narrowest, next, ..] => narrowest.capacity_iops.high < next.capacity_iops.low,
        _ => true,
    };
    Prediction {
        iops,
        bytes_per_second: iops.scaled(bytes),
        response_s,
        knee_depth: carry(|pick| {
            let demands = demand::of(path, bytes, pick);
            (demands.alone_s / demands.largest_s().max(f64::MIN_POSITIVE)).max(1.0)
        }),
        without_narrowest_iops: without_narrowest(&best, &pipes, depth, operation.bend),
        pipes,
        is_sure,
    }
}

impl Demands {
    /// M: what the narrowest resource is busy for each operation.
    fn largest_s(&self) -> f64 {
        let all = self.by_resource.values().map(Demand::min_s);
        all.fold(0.0, f64::max)
    }

    /// R(N): seconds of an operation with N = `depth` in flight.
    fn response_s(&self, bend: Bend, depth: u32, pick: &mut dyn FnMut(&Estimate) -> f64) -> f64 {
        let stations: Vec<Station> = self.by_resource.values().map(Demand::station).collect();
        bend.response_s(self.alone_s, &stations, depth, pick)
    }
}

fn pipes(path: &[Step], bytes: f64, best: &Demands, iops: f64) -> Vec<Pipe> {
    let mut pipes: Vec<Pipe> = best
        .by_resource
        .iter()
        .filter(|(_, demand)| demand.seconds > 0.0)
        .map(|(name, demand)| Pipe {
            name: name.clone(),
            kind: demand.kind(),
            capacity_iops: carry(|pick| {
                1.0 / demand::of(path, bytes, pick).by_resource[name].min_s()
            }),
            utilisation: (iops * demand.min_s()).min(1.0),
            share_of_time: (demand.seconds / best.alone_s).min(1.0),
        })
        .collect();
    pipes.sort_by(|a, b| a.capacity_iops.value.total_cmp(&b.capacity_iops.value));
    pipes
}

fn without_narrowest(best: &Demands, pipes: &[Pipe], depth: u32, bend: Bend) -> f64 {
    let mut others = best.clone();
    if let Some(gone) = pipes.first().and_then(|pipe| others.by_resource.remove(&pipe.name)) {
        others.alone_s = (others.alone_s - gone.seconds).max(0.0);
    }
    let response = others.response_s(bend, depth, &mut |estimate| estimate.value);
    if response > 0.0 { f64::from(depth) / response } else { f64::INFINITY }
}

#[cfg(test)]
mod tests;
