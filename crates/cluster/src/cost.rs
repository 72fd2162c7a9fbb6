//! What it costs: the shopping list, what it forgot, power over the years, per usable TB.

use crate::range::carry;
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::basis::Basis;
use serde::Serialize;

use crate::capacity::Capacity;
use crate::design::Design;
use crate::rebuild::{ANNUAL_FAILURES, YEAR_H};

/// A line of the bill.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Item {
    /// What is paid for.
    pub what: String,
    /// How many.
    pub count: f64,
    /// For one, euros.
    pub each: f64,
    /// Given or assumed.
    pub basis: Basis,
}

impl Item {
    /// For all of them, euros.
    pub fn total(&self) -> f64 {
        self.count * self.each
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cost {
    /// Boards, disks, power supply: what a shopping list has.
    pub listed: Vec<Item>,
    /// Sum of that, euros.
    pub listed_total: f64,
    /// That per TB of raw times k / (k + m): what a shopping list says of it.
    pub listed_per_nominal_tb: f64,
    /// What it takes besides.
    pub forgotten: Vec<Item>,
    /// Power while it runs, watts.
    pub watts: Estimate,
    /// Energy over the years, euros.
    pub energy: Estimate,
    /// How the price of energy is known.
    pub energy_basis: Basis,
    /// Disks and boards that fail over the years, euros.
    pub failures: Estimate,
    /// Everything over the years, euros.
    pub total: Estimate,
    /// That per TB that is usable.
    pub total_per_usable_tb: Estimate,
    /// Watts per TB that is usable.
    pub watts_per_usable_tb: Estimate,
    /// Time that energy and failures are counted over.
    pub years: f64,
}

/// Prices of small things, euros. Assumed.
const SWITCH_5: f64 = 20.0;
const SWITCH_8: f64 = 28.0;
const SWITCH_MORE_PER_PORT: f64 = 5.0;
const CABLE: f64 = 3.0;
const BRIDGE: f64 = 12.0;
const BOOT_CARD: f64 = 9.0;
const CASE: f64 = 12.0;
/// Watts of a small gigabit switch. Assumed.
const SWITCH_WATTS: Estimate = Estimate { value: 4.0, low: 2.0, high: 8.0 };
/// Watts of a disk under load, SSD and hard disk. Assumed.
const SSD_WATTS: Estimate = Estimate { value: 2.0, low: 1.0, high: 4.0 };
const HDD_WATTS: Estimate = Estimate { value: 6.5, low: 5.0, high: 9.0 };
/// Euros per TB of disk when no price was given. Assumed.
const DISK_PER_TB: f64 = 80.0;

/// What a design that was checked costs.
pub fn cost(design: &Design, capacity: &Capacity) -> Cost {
    let listed = listed(design);
    let forgotten = forgotten(design, capacity);
    let sum = |items: &[Item]| items.iter().map(Item::total).sum::<f64>();
    let listed_total = sum(&listed);
    let once = listed_total + sum(&forgotten);
    let prices = &design.prices;
    let watts = watts(design);
    let energy = watts.scaled(YEAR_H / 1000.0 * prices.years * prices.energy);
    let replaced: f64 = design.groups.iter().map(|g| price_of_board_with_disks(design, g)).sum();
    let failures = ANNUAL_FAILURES.scaled(prices.years * replaced);
    let total = carry(|pick| once + pick(&energy) + pick(&failures));
    let usable_tb = capacity.usable_padded_bytes.scaled(1e-12);
    Cost {
        listed,
        listed_total,
        listed_per_nominal_tb: listed_total / (capacity.nominal_bytes / 1e12),
        forgotten,
        watts,
        energy,
        energy_basis: if prices.is_energy_given { Basis::Published } else { Basis::Assumed },
        failures,
        total,
        total_per_usable_tb: carry(|pick| pick(&total) / pick(&usable_tb)),
        watts_per_usable_tb: carry(|pick| pick(&watts) / pick(&usable_tb)),
        years: prices.years,
    }
}

fn basis(given: Option<f64>) -> Basis {
    match given {
        // Given by the user: as good as a price list.
        Some(_) => Basis::Published,
        None => Basis::Assumed,
    }
}

fn disk_price(design: &Design, bytes: u64) -> f64 {
    let by_size = || (bytes as f64 / 1e12 * DISK_PER_TB).round();
    design.prices.disk.unwrap_or_else(by_size)
}

fn price_of_board_with_disks(design: &Design, group: &crate::design::Group) -> f64 {
    let board = design.prices.node.unwrap_or(group.board.price);
    let disks = f64::from(group.disks) * disk_price(design, group.disk.bytes);
    f64::from(group.count) * (board + disks)
}

fn listed(design: &Design) -> Vec<Item> {
    let mut items = Vec::new();
    for group in &design.groups {
        items.push(Item {
            what: group.board.name.clone(),
            count: group.count.into(),
            each: design.prices.node.unwrap_or(group.board.price),
            basis: basis(design.prices.node),
        });
        items.push(Item {
            what: format!(
                "{}, {}",
                group.disk.media.name(),
                rubus_vocabulary::units::bytes_si(group.disk.bytes)
            ),
            count: (group.count * group.disks).into(),
            each: disk_price(design, group.disk.bytes),
            basis: basis(design.prices.disk),
        });
    }
    match design.prices.power {
        Some(each) => {
            items.push(Item { what: "power".into(), count: 1.0, each, basis: Basis::Published })
        }
        None => {
            for group in design.groups.iter().filter(|group| group.board.supply_price > 0.0) {
                items.push(Item {
                    what: "power supply of its own".into(),
                    count: group.count.into(),
                    each: group.board.supply_price,
                    basis: Basis::Assumed,
                });
            }
        }
    }
    items
}

fn forgotten(design: &Design, capacity: &Capacity) -> Vec<Item> {
    let boards = design.boards();
    let mut items = Vec::new();
    let mut push = |what: &str, count: u32, each: f64| {
        if count > 0 && each > 0.0 {
            items.push(Item {
                what: what.into(),
                count: count.into(),
                each,
                basis: Basis::Assumed,
            });
        }
    };
    // One port for the clients.
    let ports = boards + 1;
    match ports {
        ..=5 => push("switch, 5 ports", 1, SWITCH_5),
        6..=8 => push("switch, 8 ports", 1, SWITCH_8),
        _ => push("switch, per port", ports, SWITCH_MORE_PER_PORT),
    }
    push("network cable", ports, CABLE);
    let of = |is: &dyn Fn(&crate::design::Group) -> bool, disks: bool| -> u32 {
        let chosen = design.groups.iter().filter(|group| is(group));
        chosen.map(|g| g.count * if disks { g.disks } else { 1 }).sum()
    };
    push("USB to SATA bridge", of(&|g| g.board.bus.is_usb(), true), BRIDGE);
    push("boot card", of(&|g| g.board.is_arm, false), BOOT_CARD);
    push("case with cooling", of(&|g| g.board.is_arm, false), CASE);
    if let Some(given) = design.prices.power {
        // A supply per board is what its maker asks for; a shared one has to be strong enough for all at once.
        let own: f64 =
            design.groups.iter().map(|g| f64::from(g.count) * g.board.supply_price).sum();
        if own > given {
            push("power supplies, what one per board costs more", 1, own - given);
        }
    }
    if !capacity.heals {
        let spare = design.weakest(|group| {
            -price_of_board_with_disks(design, group) / f64::from(group.count.max(1))
        });
        if let Some(group) = spare {
            let each = price_of_board_with_disks(design, group) / f64::from(group.count.max(1));
            push("spare board with disk: nothing heals without", 1, each);
        }
    }
    items
}

/// Watts of everything at work.
fn watts(design: &Design) -> Estimate {
    carry(|pick| {
        let mut sum = pick(&SWITCH_WATTS);
        for group in &design.groups {
            let disk = match group.disk.media {
                crate::disks::Media::Hdd => pick(&HDD_WATTS),
                _ => pick(&SSD_WATTS),
            };
            sum +=
                f64::from(group.count) * (pick(&group.board.watts) + f64::from(group.disks) * disk);
        }
        sum
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::capacity;
    use crate::wishes::Wishes;

    fn fourth_document() -> (Design, Capacity) {
        let wishes = Wishes {
            nodes: Some(4),
            disk: Some("1TB".into()),
            ec: Some("3+1".into()),
            node_price: Some(100.0),
            disk_price: Some(100.0),
            power_price: Some(25.0),
            ..Wishes::default()
        };
        let design = wishes.design(None).unwrap();
        let capacity = capacity(&design);
        (design, capacity)
    }

    #[test]
    fn the_fourth_document_comes_out_exactly_then_what_it_forgot() {
        let (design, capacity) = fourth_document();
        let found = cost(&design, &capacity);
        assert_eq!(found.listed_total, 825.0);
        assert_eq!(capacity.nominal_bytes, 3e12);
        assert_eq!(found.listed_per_nominal_tb, 275.0);
        assert!(found.total.low > 825.0 + 200.0);
        assert!(found.total_per_usable_tb.low > 275.0 * 1.5);
        let names: Vec<&str> = found.forgotten.iter().map(|item| item.what.as_str()).collect();
        for name in ["switch, 5 ports", "network cable", "USB to SATA bridge", "boot card"] {
            assert!(names.contains(&name), "{name} in {names:?}");
        }
    }
}
