//! Steps of a path from what was measured.

use rubus_advise::{Bend, Cost, Kind, Operation, Resource, Stage, Step};
use rubus_stats::estimate::Estimate;

use super::rig::Measured;

/// A stage that only has a bandwidth, in bytes per second.
pub(super) fn rate(kind: Kind, name: &str, bytes_per_second: Estimate) -> Step {
    Step::Stage(Stage {
        kind,
        resource: Some(Resource::one(name)),
        cost: Cost::rate(bytes_per_second),
    })
}

/// A stage that takes `seconds` of one of `servers` parallel servers.
pub(super) fn fixed(kind: Kind, name: &str, servers: u32, seconds: Estimate) -> Step {
    Step::Stage(Stage {
        kind,
        resource: Some(Resource::many(name, servers)),
        cost: Cost::fixed(seconds),
    })
}

/// A stage that goes on while others do, so that a lone operation does not wait for it.
pub(super) fn beside(step: Step) -> Step {
    match step {
        Step::Stage(stage) => Step::Beside(stage),
        other => other,
    }
}

/// A stage that serves one at a time, by what it did alone at each size.
pub(super) fn of_sizes(kind: Kind, name: &str, found: &[Measured]) -> Stage {
    Stage { kind, resource: Some(Resource::one(name)), cost: Cost::measured(&by_size(found)) }
}

/// A stage by what it did one at a time and at the best depth that was measured, by size.
pub(super) fn of_pair<'a>(
    kind: Kind,
    name: &str,
    alone: impl IntoIterator<Item = &'a Measured>,
    best: impl IntoIterator<Item = &'a Measured>,
) -> Vec<Step> {
    let by_size = |found: &Measured| (found.block_bytes, found.iops);
    let alone: Vec<_> = alone.into_iter().map(by_size).collect();
    let best: Vec<_> = best.into_iter().map(by_size).collect();
    Stage::of_pair(kind, Resource::one(name), &alone, &best)
}

/// A server that answers in rounds, from what it did with one in flight and with many. With N in flight it does N / (L + (N - 1) M): the
/// bound of a balanced network, where each operation waits for all others. L comes from one, M from many.
pub(super) fn of_rounds(name: &str, one: &Measured, many: &Measured) -> Vec<Step> {
    let depth = f64::from(many.depth);
    let lone_s = |iops: f64| 1.0 / iops;
    let each_s = |iops: f64| ((depth / iops - lone_s(one.iops.value)) / (depth - 1.0)).max(0.0);
    let across = |seconds: &dyn Fn(f64) -> f64, iops: &Estimate| {
        Estimate::new(seconds(iops.value), seconds(iops.high), seconds(iops.low))
    };
    let each = across(&each_s, &many.iops);
    let rest = across(&|iops| (lone_s(iops) - each.value).max(0.0), &one.iops);
    vec![
        fixed(Kind::Server, name, 1, each),
        Step::Stage(Stage { kind: Kind::Server, resource: None, cost: Cost::fixed(rest) }),
    ]
}

/// The one with the most operations per second.
pub(super) fn best(found: &[Measured]) -> Option<&Measured> {
    let most = |a: &&Measured, b: &&Measured| a.iops.value.total_cmp(&b.iops.value);
    found.iter().max_by(most)
}

/// Operations per second by size.
pub(super) fn by_size(found: &[Measured]) -> Vec<(u64, Estimate)> {
    found.iter().map(|one| (one.block_bytes, one.iops)).collect()
}

/// Seconds by size that an operation of the first takes longer than one of the second.
pub(super) fn longer(of: &[Measured], than: &[Measured]) -> Cost {
    let (longer, shorter) = (Cost::measured(&by_size(of)), Cost::measured(&by_size(than)));
    let at = |one: &Measured| {
        let bytes = one.block_bytes as f64;
        (one.block_bytes, less(longer.at(bytes), shorter.at(bytes)))
    };
    Cost::seconds(of.iter().map(at))
}

/// A difference that is not below nothing. Its interval holds the differences of all numbers in both.
pub(super) fn less(from: Estimate, what: Estimate) -> Estimate {
    let left = |from: f64, what: f64| (from - what).max(0.0);
    Estimate::new(
        left(from.value, what.value),
        left(from.low, what.high),
        left(from.high, what.low),
    )
}

/// `depth` operations in flight of `bytes` each; the knee bends as the path's stations have it.
pub(super) fn operation(bytes: u64, depth: u32) -> Operation {
    Operation { bytes, depth, bend: Bend::Stations }
}

/// The same, of a path whose work takes the same time every time: it follows the sharp lines.
pub(super) fn even(bytes: u64, depth: u32) -> Operation {
    Operation { bytes, depth, bend: Bend::Known(Estimate::new(0.0, 0.0, 0.2)) }
}

/// 4 KiB, 64 KiB, 1 MiB.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 20 && bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        _ if bytes % 1024 == 0 => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

/// Each of these sizes at each of these depths.
pub(super) fn pairs(sizes: &[u64], depths: &[u32]) -> impl Iterator<Item = (u64, u32)> {
    let at = move |&bytes: &u64| depths.iter().map(move |&depth| (bytes, depth));
    sizes.iter().flat_map(at)
}

/// What the job of such a pair is called.
pub(super) fn name(bytes: u64, depth: u32) -> String {
    format!("{bytes} at {depth}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_no_longer_takes_nothing() {
        let wide = Estimate::new(5.0, 4.0, 6.0);
        assert_eq!(less(Estimate::exact(4.5), wide), Estimate::new(0.0, 0.0, 0.5));
        assert_eq!(less(wide, Estimate::new(3.0, 2.0, 3.5)), Estimate::new(2.0, 0.5, 4.0));
    }
}
