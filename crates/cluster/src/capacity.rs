//! How much fits: raw, after full ratios, after losing the largest failure domain, after padding.

use rubus_stats::estimate::Estimate;
use serde::Serialize;

use crate::design::Design;
use crate::layout::{ALLOCATION_BYTES, FAST_STRIPE_UNIT, LEGACY_STRIPE_UNIT, Layout};
use crate::objects::ObjectShare;

/// Share of raw space from which Ceph warns: `mon_osd_nearfull_ratio` (mon-config-ref).
pub const NEARFULL: f64 = 0.85;
/// Share from which an OSD takes no more data to heal others: `mon_osd_backfillfull_ratio`.
pub const BACKFILLFULL: f64 = 0.90;
/// Share from which the cluster stops taking writes: `mon_osd_full_ratio`.
pub const FULL: f64 = 0.95;

/// How far the fullest OSD stands above the mean at most: the balancer stops at 5 placement groups (`upmap_max_deviation`) of about
/// 100 per OSD (`mon_target_pg_per_osd`).
const FULLEST_ABOVE_MEAN: f64 = 0.05;

/// What BlueStore's own database takes of each disk at most with large objects, share: the upper of the 1 to 2 % that
/// bluestore-config-ref gives for RBD.
const DATABASE_SHARE: f64 = 0.02;

/// How much fits.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Capacity {
    /// All disks together, bytes.
    pub raw_bytes: u64,
    /// Failure domains.
    pub domains: u32,
    /// The largest of them, bytes.
    pub largest_domain_bytes: u64,
    /// Raw bytes that the layout can use: a domain holds at most one chunk of each object.
    pub placeable_bytes: f64,
    /// What a shopping list says: raw times k / (k + m), bytes.
    pub nominal_bytes: f64,
    /// Whether Ceph restores all chunks by itself after losing the largest domain.
    pub heals: bool,
    /// Raw bytes that may be filled.
    pub safe_raw_bytes: f64,
    /// Whether the loss of a domain limits them, rather than the warning at 0.85.
    pub is_limited_by_loss: bool,
    /// Bytes of users that fit safely; the low end is for OSDs as uneven as the balancer leaves them, and BlueStore's database.
    pub usable_bytes: Estimate,
    /// Bytes of users with which Ceph begins to refuse all writes.
    pub full_bytes: f64,
    /// Bytes on disks per byte of the user's objects; 1 + m / k and copies at best.
    pub padded_factor: f64,
    /// Bytes of users that fit safely as objects of their sizes.
    pub usable_padded_bytes: Estimate,
    /// Padding by object size, for the layout.
    pub padding: Vec<Padding>,
}

/// What objects of one size take.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Padding {
    /// Size of the object, bytes.
    pub object_bytes: u64,
    /// Share of the number of objects; absent in the general table.
    pub share: Option<f64>,
    /// Bytes on disks with the layout.
    pub stored_bytes: u64,
    /// Bytes on disks with the other kind of erasure coding, where it is one.
    pub stored_other_bytes: Option<u64>,
}

/// Sizes of the general table.
const USUAL: [u64; 5] = [4 << 10, 16 << 10, 64 << 10, 1 << 20, 4 << 20];

/// Bytes that an object takes on all disks together.
///
/// With stripe unit u, allocation unit a, object size S:
/// - copies: n * ceil(S / a) * a;
/// - legacy: whole stripes, (k + m) * ceil(ceil(S / (k u)) * u / a) * a;
/// - Fast EC: only what is there, sum of ceil(s_i / a) * a over the k data shards, and m times that of the largest shard.
///
/// The published case (4 KiB objects, 4+2, u = 16 KiB) gives 96 KiB and 12 KiB (ceph.io, 2025-11-20).
pub fn stored_bytes(layout: Layout, object_bytes: u64, stripe_unit: u64) -> u64 {
    let allocated = |bytes: u64| bytes.div_ceil(ALLOCATION_BYTES) * ALLOCATION_BYTES;
    match layout {
        Layout::Replica { copies } => u64::from(copies) * allocated(object_bytes),
        Layout::Erasure { data, parity, fast: false } => {
            let stripes = object_bytes.div_ceil(u64::from(data) * stripe_unit);
            u64::from(data + parity) * allocated(stripes * stripe_unit)
        }
        Layout::Erasure { data, parity, fast: true } => {
            let stripe = u64::from(data) * stripe_unit;
            let (whole, rest) = (object_bytes / stripe, object_bytes % stripe);
            let shard = |i: u64| {
                let last = rest.saturating_sub(i * stripe_unit).min(stripe_unit);
                allocated(whole * stripe_unit + last)
            };
            let data_bytes: u64 = (0..u64::from(data)).map(shard).sum();
            // The first shard is never shorter than another.
            data_bytes + u64::from(parity) * shard(0)
        }
    }
}

/// The stripe unit that a layout has by default.
pub fn stripe_unit(layout: Layout) -> u64 {
    if layout.is_fast() { FAST_STRIPE_UNIT } else { LEGACY_STRIPE_UNIT }
}

/// Raw bytes that can hold chunks when each object puts `width` chunks on different domains: `width` times the largest T with
/// sum of min(c_i, T) >= width * T. All of them when the domains are alike; 0 with fewer domains than `width`.
pub fn placeable(domains: &[u64], width: u32) -> f64 {
    let width = width as usize;
    if domains.len() < width || width == 0 {
        return 0.0;
    }
    let mut sorted = domains.to_vec();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    // The largest `held` domains hold a chunk of every object; the others share the rest.
    for held in 0..width {
        let rest: f64 = sorted[held..].iter().map(|bytes| *bytes as f64).sum();
        let level = rest / (width - held) as f64;
        if sorted[held] as f64 <= level {
            return width as f64 * level;
        }
    }
    // Not reached: with held = width - 1 the rest contains its own largest.
    0.0
}

/// How much fits into a design that was checked.
///
/// Safe raw = min(0.85 R, 0.90 (R - R_f)), the second term only where the layout can be whole without the largest domain R_f: then
/// its data must find room below `backfillfull` (mon-config-ref). Usable = safe * k / (k + m).
pub fn capacity(design: &Design) -> Capacity {
    let layout = design.layout;
    let domains = design.domains();
    let largest = domains.iter().copied().max().unwrap_or(0);
    let mut left = domains.clone();
    if let Some(at) = left.iter().position(|bytes| *bytes == largest) {
        left.remove(at);
    }
    let placeable_bytes = placeable(&domains, layout.width());
    let heals = left.len() >= layout.width() as usize;
    let warned = NEARFULL * placeable_bytes;
    let after_loss = BACKFILLFULL * placeable(&left, layout.width());
    let is_limited_by_loss = heals && after_loss < warned;
    let safe_raw_bytes = if is_limited_by_loss { after_loss } else { warned };
    let usable = safe_raw_bytes / layout.factor();
    let low = usable / (1.0 + FULLEST_ABOVE_MEAN) * (1.0 - DATABASE_SHARE);
    let usable_bytes = Estimate::new(usable, low, usable);
    let padded_factor = padded_factor(layout, &design.objects);
    let raw_bytes = domains.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
    Capacity {
        raw_bytes,
        domains: domains.len() as u32,
        largest_domain_bytes: largest,
        placeable_bytes,
        nominal_bytes: raw_bytes as f64 / layout.factor(),
        heals,
        safe_raw_bytes,
        is_limited_by_loss,
        usable_bytes,
        full_bytes: FULL * placeable_bytes / layout.factor(),
        padded_factor,
        usable_padded_bytes: usable_bytes.scaled(layout.factor() / padded_factor),
        padding: padding(layout, &design.objects),
    }
}

/// Bytes on disks per byte of objects of these sizes, weighted by their number.
pub fn padded_factor(layout: Layout, objects: &[ObjectShare]) -> f64 {
    let unit = stripe_unit(layout);
    let of = |what: &dyn Fn(u64) -> u64| -> f64 {
        objects.iter().map(|o| o.share * what(o.bytes) as f64).sum()
    };
    let bytes = of(&|bytes| bytes);
    if bytes <= 0.0 {
        return layout.factor();
    }
    of(&|bytes| stored_bytes(layout, bytes, unit)) / bytes
}

fn padding(layout: Layout, objects: &[ObjectShare]) -> Vec<Padding> {
    let row = |object_bytes: u64, share: Option<f64>| {
        let other = match layout {
            Layout::Replica { .. } => None,
            Layout::Erasure { data, parity, fast } => {
                Some(Layout::Erasure { data, parity, fast: !fast })
            }
        };
        Padding {
            object_bytes,
            share,
            stored_bytes: stored_bytes(layout, object_bytes, stripe_unit(layout)),
            stored_other_bytes: other.map(|o| stored_bytes(o, object_bytes, stripe_unit(o))),
        }
    };
    match objects {
        [] => USUAL.iter().map(|bytes| row(*bytes, None)).collect(),
        _ => objects.iter().map(|o| row(o.bytes, Some(o.share))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wishes::Wishes;

    fn design(layout: &str, nodes: u32) -> Design {
        let wishes = Wishes { nodes: Some(nodes), disk: Some("1TB".into()), ..Wishes::default() };
        let mut design = wishes.with_layout(layout).design(None).expect("a design");
        design.objects.clear();
        design
    }

    #[test]
    fn four_disks_of_1_tb_hold_what_the_full_ratios_leave() {
        let usable =
            |layout| (capacity(&design(layout, 4)).usable_bytes.value / 1e10).round() / 100.0;
        assert_eq!(usable("3+1"), 2.55);
        assert_eq!(usable("2+2"), 1.70);
        assert_eq!(usable("2+1"), 1.80);
        assert_eq!(usable("3x"), 0.90);
        assert!(!capacity(&design("3+1", 4)).heals);
        assert!(!capacity(&design("2+2", 4)).heals);
        assert!(capacity(&design("2+1", 4)).heals);
        assert!(capacity(&design("3x", 4)).heals);
    }

    #[test]
    fn padding_gives_the_published_case() {
        let code = |fast| Layout::erasure("4+2", fast).unwrap();
        assert_eq!(stored_bytes(code(false), 4096, 16384), 96 << 10);
        assert_eq!(stored_bytes(code(true), 4096, 16384), 12 << 10);
        // Whole stripes take the same either way.
        assert_eq!(stored_bytes(code(false), 4 << 20, 16384), 6 << 20);
        assert_eq!(stored_bytes(code(true), 4 << 20, 16384), 6 << 20);
        assert_eq!(stored_bytes(Layout::Replica { copies: 3 }, 1, 4096), 12288);
    }

    #[test]
    fn a_domain_that_is_larger_than_the_others_together_is_not_used_up() {
        assert_eq!(placeable(&[10, 10, 10, 10], 3), 40.0);
        assert_eq!(placeable(&[100, 10, 10], 3), 30.0);
        assert_eq!(placeable(&[100, 10, 10], 2), 40.0);
        assert_eq!(placeable(&[10, 10], 3), 0.0);
    }

    fn any_layout() -> impl Strategy<Value = Layout> {
        prop_oneof![
            (2u32..5).prop_map(|copies| Layout::Replica { copies }),
            (2u32..7, 1u32..4, any::<bool>()).prop_map(|(data, parity, fast)| Layout::Erasure {
                data,
                parity,
                fast
            }),
        ]
    }

    fn with(layout: Layout, sizes: &[u64]) -> Design {
        let mut made = design("3x", 3);
        let group = made.groups[0].clone();
        made.layout = layout;
        made.groups = sizes
            .iter()
            .map(|bytes| {
                let mut group = group.clone();
                group.count = 1;
                group.disk.bytes = *bytes;
                group
            })
            .collect();
        made
    }

    proptest! {
        #[test]
        fn more_disk_never_holds_less_and_nothing_holds_more_than_raw(
            layout in any_layout(),
            sizes in prop::collection::vec(1u64..10_000_000_000_000, 2..14),
            grown in 0usize..14,
            more in 1u64..5_000_000_000_000,
        ) {
            let before = capacity(&with(layout, &sizes));
            let mut larger = sizes.clone();
            let at = grown % larger.len();
            larger[at] += more;
            let after = capacity(&with(layout, &larger));
            let slack = 1.0 + 1e-9;
            prop_assert!(before.usable_bytes.value <= after.usable_bytes.value * slack);
            prop_assert!(before.placeable_bytes <= before.raw_bytes as f64 * slack);
            prop_assert!(before.safe_raw_bytes <= NEARFULL * before.raw_bytes as f64 * slack);
            prop_assert!(before.usable_padded_bytes.value <= before.usable_bytes.value * slack);
        }

        #[test]
        fn too_few_domains_are_refused_and_enough_are_taken(layout in any_layout(), boards in 1usize..14) {
            let made = with(layout, &vec![1_000_000_000_000; boards]);
            let mut made = made;
            made.release = crate::release::Release::new(21, 2, 0);
            prop_assert_eq!(made.check().is_ok(), boards as u32 >= layout.width());
        }

        #[test]
        fn an_object_takes_at_least_its_bytes_and_fast_takes_no_more_than_legacy(
            data in 2u32..9, parity in 1u32..5, bytes in 1u64..20_000_000,
        ) {
            let code = |fast| Layout::Erasure { data, parity, fast };
            let (legacy, fast) = (stored_bytes(code(false), bytes, 16384), stored_bytes(code(true), bytes, 16384));
            prop_assert!(fast >= bytes + u64::from(parity) * bytes.div_ceil(u64::from(data)));
            prop_assert!(fast <= legacy);
        }
    }
}
