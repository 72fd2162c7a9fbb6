//! Disks that share the work: RAID-0.

use crate::advice::Figures;
use rubus_machine::purpose::What;

use super::{bus, device};
use crate::path::{Step, Stripe};

#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// The kernel's name.
    pub name: String,
    /// Its figures, as seen through its own way.
    pub figures: Figures,
    /// The buses on its way and what they carry. Members name a bus alike where they share it.
    pub buses: Vec<(String, f64)>,
}

/// What one operation of a kind asks of all members.
pub fn steps(members: &[Member], chunk_bytes: u32, what: What, depth: u32) -> Vec<Step> {
    // Each member has its part of what is in flight.
    let each = (depth / members.len().max(1) as u32).max(1);
    let below = |member: &Member| {
        let mut below = if what.is_in_order() {
            // A member gets a part of each operation, and its cost is known by the byte.
            vec![in_order(member, what)]
        } else {
            device::steps(&member.name, &member.figures, what, each)
        };
        let buses = member.buses.iter().map(|(name, usable)| bus(name, *usable));
        below.extend(buses);
        below
    };
    vec![Step::Stripe(Stripe { chunk_bytes, members: members.iter().map(below).collect() })]
}

fn in_order(member: &Member, what: What) -> Step {
    let rate = match what {
        What::SequentialRead => member.figures.sequential_read,
        _ => member.figures.sequential_write,
    };
    Step::Stage(crate::path::Stage {
        kind: crate::path::Kind::Device,
        resource: Some(crate::path::Resource::one(&member.name)),
        cost: crate::cost::Cost::rate(rate),
    })
}
