//! A storage path as steps, from the program that asks down to the device.

pub use crate::advice::StageKind as Kind;
use rubus_stats::estimate::Estimate;
use serde::{Deserialize, Serialize};

use crate::cost::{Cost, inverse};

/// What a stage keeps busy. Stages whose resources have the same name share it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    /// What it is called, in words for people: `USB 2 bus`, `sda`, `4 cores`.
    pub name: String,
    /// Operations that are served at the same time, at least 1.
    pub servers: u32,
}

impl Resource {
    /// A resource that serves one operation at a time.
    pub fn one(name: impl Into<String>) -> Resource {
        Resource::many(name, 1)
    }

    /// A resource that serves `servers` operations at the same time (0 counts as 1).
    pub fn many(name: impl Into<String>, servers: u32) -> Resource {
        Resource { name: name.into(), servers: servers.max(1) }
    }
}

/// Work that every operation that comes by has to wait for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// What kind of thing it is.
    pub kind: Kind,
    /// What it keeps busy meanwhile; none for a delay that operations spend side by side, such as the flight time of a
    /// message.
    pub resource: Option<Resource>,
    /// Seconds by size.
    pub cost: Cost,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Step {
    /// Work that an operation waits for.
    Stage(Stage),
    /// Work that goes on while other stages work, as a bus transfers while the device behind it seeks: it keeps its resource busy,
    /// but what a lone operation waits for is in the other stages already.
    Beside(Stage),
    /// Below, an operation has other bytes: compressed ones, or those with what a journal adds.
    Bytes {
        /// Factor by which the bytes change.
        factor: Estimate,
        /// Rounded up to a multiple of this; 0 and 1 round nothing.
        whole_bytes: u32,
    },
    /// Below, the number of operations changes by this factor. The bytes that they carry together stay the same.
    Operations {
        /// How many, greater than 0; less than 1 where several are merged into one.
        factor: Estimate,
    },
    /// The operation is cut into chunks that are spread over the members, which work side by side.
    Stripe(Stripe),
    /// Each operation meets one of these.
    Tiers(Vec<Tier>),
}

/// RAID-0: chunk 1 on the first member, chunk 2 on the next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stripe {
    /// Bytes of a chunk, greater than 0.
    pub chunk_bytes: u32,
    /// What lies below each member; at least one.
    pub members: Vec<Vec<Step>>,
}

/// One of the places that an operation may meet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tier {
    /// Share of the operations, 0 to 1. The shares of all tiers add up to 1.
    pub share: Estimate,
    /// What lies below.
    pub below: Vec<Step>,
}

impl Stage {
    /// A device (or anything else) by two measurements of the same operations: how many it does one at a time, and how many at
    /// the best queue depth, by bytes per operation.
    ///
    /// The resource is busy for 1 / best seconds of each operation; the rest of a lone operation's time is a delay that
    /// others need not wait for. So a device that works on 16 things at once needs no count of its insides.
    pub fn of_pair(
        kind: Kind,
        resource: Resource,
        alone: &[(u64, Estimate)],
        best: &[(u64, Estimate)],
    ) -> Vec<Step> {
        let busy = |&(bytes, iops): &(u64, Estimate)| {
            let seconds = inverse(iops);
            (bytes, seconds.scaled(f64::from(resource.servers)))
        };
        let delays: Vec<(u64, Estimate)> = alone
            .iter()
            .filter_map(|&(bytes, iops)| {
                let (_, busy) = best.iter().map(busy).find(|(other, _)| *other == bytes)?;
                let alone = inverse(iops);
                let left = |seconds: f64| (seconds - busy.value).max(0.0);
                let delay = left(alone.value);
                (delay > 0.0)
                    .then(|| (bytes, Estimate::new(delay, left(alone.low), left(alone.high))))
            })
            .collect();
        let mut steps = vec![Step::Stage(Stage {
            kind,
            cost: Cost::seconds(best.iter().map(busy)),
            resource: Some(resource.clone()),
        })];
        if !delays.is_empty() {
            steps.push(Step::Stage(Stage { kind, resource: None, cost: Cost::seconds(delays) }));
        }
        steps
    }
}
