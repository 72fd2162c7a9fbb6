//! What one operation asks of each resource: the demands of operational analysis, D = V · S.

use std::collections::BTreeMap;

use rubus_stats::estimate::Estimate;
use rubus_stats::queueing::mean_value::Station;

use crate::path::{Kind, Step, Stripe, Tier};

/// What an operation asks of one resource.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Demand {
    /// Seconds that it is busy for each operation at the top of the path.
    pub seconds: f64,
    /// Operations that it serves at the same time.
    pub servers: u32,
    /// The kind of the stage that asks the most of it, and how many seconds that one asks.
    most: (Kind, f64),
}

impl Demand {
    /// What kind of stage asks the most of the resource.
    pub fn kind(&self) -> Kind {
        self.most.0
    }

    /// Seconds per operation of which no queue can get rid: 1 / this is the capacity.
    pub fn min_s(&self) -> f64 {
        self.station().min_s()
    }

    /// As a place where operations queue.
    pub fn station(&self) -> Station {
        Station { seconds: self.seconds, servers: f64::from(self.servers) }
    }
}

/// What one operation at the top of a path asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Demands {
    /// By the resource's name.
    pub by_resource: BTreeMap<String, Demand>,
    /// Seconds that a lone operation takes.
    pub alone_s: f64,
}

impl Demands {
    fn add(&mut self, name: &str, servers: u32, kind: Kind, seconds: f64) {
        let demand = self.by_resource.entry(name.into()).or_insert(Demand {
            seconds: 0.0,
            servers,
            most: (kind, 0.0),
        });
        demand.seconds += seconds;
        demand.servers = demand.servers.max(servers);
        if seconds > demand.most.1 {
            demand.most = (kind, seconds);
        }
    }

    /// Adds what other operations ask, `times` of them for each of these. The time of a lone operation is not touched.
    fn add_all(&mut self, others: &Demands, times: f64) {
        for (name, other) in &others.by_resource {
            self.add(name, other.servers, other.kind(), other.seconds * times);
        }
    }
}

/// The demands of an operation of `bytes` on a path. `pick` chooses the number that stands for an estimate.
pub(crate) fn of(path: &[Step], bytes: f64, pick: &mut dyn FnMut(&Estimate) -> f64) -> Demands {
    let mut bytes = bytes;
    // How many operations there are here for each one at the top.
    let mut operations = 1.0;
    let mut demands = Demands::default();
    for step in path {
        match step {
            Step::Stage(stage) => {
                let seconds = pick(&stage.cost.at(bytes)) * operations;
                demands.alone_s += seconds;
                if let Some(resource) = &stage.resource {
                    demands.add(&resource.name, resource.servers, stage.kind, seconds);
                }
            }
            Step::Beside(stage) => {
                let seconds = pick(&stage.cost.at(bytes)) * operations;
                if let Some(resource) = &stage.resource {
                    demands.add(&resource.name, resource.servers, stage.kind, seconds);
                }
            }
            Step::Bytes { factor, whole_bytes } => {
                let whole = f64::from((*whole_bytes).max(1));
                bytes = (bytes * pick(factor)).max(1.0);
                if *whole_bytes > 1 {
                    bytes = (bytes / whole).ceil() * whole;
                }
            }
            Step::Operations { factor } => {
                let factor = pick(factor);
                operations *= factor;
                bytes /= factor;
            }
            Step::Stripe(stripe) => {
                let striped = of_stripe(stripe, bytes, pick);
                demands.add_all(&striped, operations);
                demands.alone_s += striped.alone_s * operations;
            }
            Step::Tiers(tiers) => {
                let mixed = of_tiers(tiers, bytes, pick);
                demands.add_all(&mixed, operations);
                demands.alone_s += mixed.alone_s * operations;
            }
        }
    }
    demands
}

/// An operation touches as many members as it has chunks, at most all; neighbouring chunks of one member reach it as one
/// operation. The parts go on side by side, so a lone operation takes as long as the slowest part, or as what the parts need of a
/// resource that they share.
fn of_stripe(stripe: &Stripe, bytes: f64, pick: &mut dyn FnMut(&Estimate) -> f64) -> Demands {
    let members = stripe.members.len().max(1) as f64;
    let chunks = (bytes / f64::from(stripe.chunk_bytes.max(1))).ceil().max(1.0);
    let touched = chunks.min(members);
    let mut demands = Demands::default();
    let mut slowest_s: f64 = 0.0;
    for member in &stripe.members {
        let part = of(member, bytes / touched, pick);
        demands.add_all(&part, touched / members);
        slowest_s = slowest_s.max(part.alone_s);
    }
    let shared_s = demands.by_resource.values().map(Demand::min_s);
    demands.alone_s = shared_s.fold(slowest_s, f64::max);
    demands
}

fn of_tiers(tiers: &[Tier], bytes: f64, pick: &mut dyn FnMut(&Estimate) -> f64) -> Demands {
    let mut demands = Demands::default();
    for tier in tiers {
        let share = pick(&tier.share).clamp(0.0, 1.0);
        let below = of(&tier.below, bytes, pick);
        demands.add_all(&below, share);
        demands.alone_s += below.alone_s * share;
    }
    demands
}
