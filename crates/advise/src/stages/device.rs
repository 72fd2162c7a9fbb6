//! A disk, a card or a stick by its figures, which are as seen through its bus.

use crate::advice::Figures;
use rubus_machine::purpose::What;
use rubus_stats::estimate::Estimate;

use crate::cost::Cost;
use crate::path::{Kind, Resource, Stage, Step};

const SMALL_BYTES: u64 = 4096;
const LARGE_BYTES: u64 = 1 << 20;

/// Operations in flight of the figures that are called deep.
const DEEP: u32 = 32;

/// What one operation asks of a device at this queue depth. At depths 1 and 32 it is exactly the figure, so that other
/// figures do not widen its interval. In between, small operations overlap as far as both figures say. Large sequential
/// ones do not: their rate is the same at every depth.
pub fn steps(name: &str, figures: &Figures, what: What, depth: u32) -> Vec<Step> {
    let resource = Resource::one(name);
    let (alone, deep, in_order) = match what {
        What::Commit => {
            return vec![Step::Stage(Stage {
                kind: Kind::Device,
                resource: Some(resource),
                cost: Cost::seconds([(SMALL_BYTES, seconds(figures.commits))]),
            })];
        }
        What::RandomRead | What::SequentialRead => {
            (figures.random_read, figures.random_read_deep, figures.sequential_read)
        }
        What::RandomWrite | What::SequentialWrite => {
            (figures.random_write, figures.random_write_deep, figures.sequential_write)
        }
    };
    let large = in_order.scaled(1.0 / LARGE_BYTES as f64);
    // A queue that was measured to give less gives nothing.
    let deep = at_least(deep, alone);
    let lone = |bytes: u64, rate: Estimate| {
        vec![Step::Stage(Stage {
            kind: Kind::Device,
            resource: Some(resource.clone()),
            cost: Cost::seconds([(bytes, seconds(rate))]),
        })]
    };
    match depth {
        _ if what.is_in_order() => lone(LARGE_BYTES, large),
        1 => lone(SMALL_BYTES, alone),
        DEEP.. => lone(SMALL_BYTES, deep),
        _ => {
            Stage::of_pair(Kind::Device, resource, &[(SMALL_BYTES, alone)], &[(SMALL_BYTES, deep)])
        }
    }
}

/// One over a rate.
pub(super) fn seconds(rate: Estimate) -> Estimate {
    crate::cost::inverse(rate)
}

fn at_least(one: Estimate, other: Estimate) -> Estimate {
    Estimate::new(one.value.max(other.value), one.low.max(other.low), one.high.max(other.high))
}
