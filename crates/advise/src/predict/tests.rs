//! Paths whose prediction is known by hand, and what must hold for every path.

use proptest::prelude::*;

use super::*;
use crate::cost::Cost;
use crate::path::{Resource, Stage, Stripe, Tier};

fn exact(value: f64) -> Estimate {
    Estimate::exact(value)
}

fn rate(kind: Kind, resource: Resource, bytes_per_second: f64) -> Step {
    Step::Stage(Stage { kind, resource: Some(resource), cost: Cost::rate(exact(bytes_per_second)) })
}

fn fixed(kind: Kind, resource: Option<Resource>, seconds: f64) -> Step {
    Step::Stage(Stage { kind, resource, cost: Cost::fixed(exact(seconds)) })
}

fn sharp(bytes: u64, depth: u32) -> Operation {
    Operation { bytes, depth, bend: Bend::Known(exact(0.0)) }
}

fn near(found: f64, expected: f64) {
    let distance = (found / expected - 1.0).abs();
    assert!(distance < 1e-9, "{found} is not {expected}");
}

#[test]
fn a_lone_operation_takes_the_sum_and_a_queue_gets_the_narrowest() {
    let path = [
        fixed(Kind::Filesystem, None, 0.001),
        rate(Kind::Bus, Resource::one("bus"), 40e6),
        rate(Kind::Device, Resource::one("disk"), 20e6),
    ];
    let alone = predict(&path, &sharp(1_000_000, 1));
    near(alone.response_s.value, 0.001 + 0.025 + 0.05);
    let deep = predict(&path, &sharp(1_000_000, 32));
    near(deep.bytes_per_second.value, 20e6);
    assert_eq!(deep.pipes[0].name, "disk");
    near(deep.pipes[0].utilisation, 1.0);
    near(deep.pipes[1].utilisation, 0.5);
    near(deep.knee_depth.value, 0.076 / 0.05);
    near(deep.without_narrowest_iops, 40.0);
    assert!(deep.is_sure);
}

#[test]
fn a_bus_beside_a_device_caps_it_and_costs_a_lone_operation_nothing() {
    let device = rate(Kind::Device, Resource::one("disk"), 300e6);
    let Step::Stage(bus) = rate(Kind::Bus, Resource::one("bus"), 35e6) else {
        unreachable!("it is a stage");
    };
    let path = [device.clone(), Step::Beside(bus.clone())];
    let both = predict(&path, &sharp(1 << 20, 4));
    near(both.bytes_per_second.value, 35e6);
    assert_eq!(both.pipes[0].name, "bus");
    // A device that was measured through the bus is as fast as it was measured.
    let slow = rate(Kind::Device, Resource::one("disk"), 30e6);
    let through = predict(&[slow, Step::Beside(bus)], &sharp(1 << 20, 1));
    near(through.bytes_per_second.value, 30e6);
}

#[test]
fn more_sticks_on_one_hub_gain_nothing_and_on_their_own_ports_everything() {
    let stick = |number: u32, bus: &str| {
        vec![
            rate(Kind::Device, Resource::one(format!("stick {number}")), 30e6),
            rate(Kind::Bus, Resource::one(bus), 35e6),
        ]
    };
    let stripe = |members| [Step::Stripe(Stripe { chunk_bytes: 65536, members })];
    let hub = predict(
        &stripe(vec![stick(1, "hub"), stick(2, "hub"), stick(3, "hub")]),
        &sharp(1 << 20, 16),
    );
    near(hub.bytes_per_second.value, 35e6);
    assert_eq!((hub.pipes[0].name.as_str(), hub.pipes[0].kind), ("hub", Kind::Bus));
    let ports =
        predict(&stripe(vec![stick(1, "a"), stick(2, "b"), stick(3, "c")]), &sharp(1 << 20, 16));
    near(ports.bytes_per_second.value, 90e6);
}

#[test]
fn a_small_operation_of_a_stripe_meets_one_member_and_a_large_one_all() {
    let member = |name: &str| {
        vec![
            fixed(Kind::Device, Some(Resource::one(name)), 0.01),
            rate(Kind::Device, Resource::one(name), 10e6),
        ]
    };
    let path =
        [Step::Stripe(Stripe { chunk_bytes: 65536, members: vec![member("a"), member("b")] })];
    let small = predict(&path, &sharp(4096, 1));
    near(small.response_s.value, 0.01 + 4096.0 / 10e6);
    near(predict(&path, &sharp(4096, 32)).iops.value, 2.0 / (0.01 + 4096.0 / 10e6));
    let large = predict(&path, &sharp(1 << 20, 1));
    near(large.response_s.value, 0.01 + (1 << 19) as f64 / 10e6);
}

#[test]
fn compression_widens_the_link_and_narrows_the_processor() {
    let path = |ratio, compress| {
        [
            rate(Kind::Compression, Resource::many("4 cores", 4), compress),
            Step::Bytes { factor: exact(ratio), whole_bytes: 4096 },
            rate(Kind::Device, Resource::one("card"), 20e6),
        ]
    };
    // Half the bytes, and cores that do 4 × 25 MB/s: twice the card.
    near(predict(&path(0.5, 25e6), &sharp(131_072, 64)).bytes_per_second.value, 40e6);
    // Zeros: one sector of 32 is left, and now the cores are the pipe.
    let zeros = predict(&path(0.001, 25e6), &sharp(131_072, 64));
    near(zeros.bytes_per_second.value, 100e6);
    assert_eq!(zeros.pipes[0].kind, Kind::Compression);
}

#[test]
fn a_cipher_and_compression_share_the_cores() {
    let cores = Resource::many("2 cores", 2);
    let path = [rate(Kind::Compression, cores.clone(), 100e6), rate(Kind::Cipher, cores, 50e6)];
    let deep = predict(&path, &sharp(4096, 64));
    near(deep.bytes_per_second.value, 2.0 / (1.0 / 100e6 + 1.0 / 50e6));
    assert_eq!((deep.pipes.len(), deep.pipes[0].kind), (1, Kind::Cipher));
}

#[test]
fn tiers_cost_their_shares() {
    let tier = |share, seconds| Tier {
        share: exact(share),
        below: vec![fixed(
            Kind::Swap,
            Some(Resource::one(format!("tier of {seconds} s"))),
            seconds,
        )],
    };
    let path = [Step::Tiers(vec![tier(0.9, 20e-6), tier(0.1, 10e-3)])];
    near(predict(&path, &sharp(4096, 1)).response_s.value, 0.9 * 20e-6 + 0.1 * 10e-3);
}

#[test]
fn a_device_is_known_by_its_lone_and_its_best_rate() {
    let path = Stage::of_pair(
        Kind::Device,
        Resource::one("card"),
        &[(4096, exact(1000.0))],
        &[(4096, exact(4000.0))],
    );
    for (depth, iops) in [(1, 1000.0), (2, 2000.0), (4, 4000.0), (32, 4000.0)] {
        near(predict(&path, &sharp(4096, depth)).iops.value, iops);
    }
    // A card that gains nothing from a queue has no delay beside its work.
    let one_at_a_time = Stage::of_pair(
        Kind::Device,
        Resource::one("card"),
        &[(4096, exact(1000.0))],
        &[(4096, exact(1000.0))],
    );
    assert_eq!(one_at_a_time.len(), 1);
}

#[test]
fn an_uncertain_stage_makes_an_uncertain_prediction() {
    let path = [Step::Stage(Stage {
        kind: Kind::Device,
        resource: Some(Resource::one("disk")),
        cost: Cost::rate(Estimate::new(20e6, 18e6, 22e6)),
    })];
    let deep = predict(&path, &sharp(1_000_000, 32)).iops;
    near(deep.low, 18.0);
    near(deep.high, 22.0);
    let two = predict(
        &[path[0].clone(), rate(Kind::Bus, Resource::one("bus"), 21e6)],
        &sharp(1_000_000, 32),
    );
    assert!(!two.is_sure, "the disk may be as wide as the bus");
}

#[test]
fn a_balanced_network_bends_as_mean_value_analysis_says() {
    // R(N) = D (N + K - 1) for K equal stations with queues of their own.
    let path: Vec<Step> = (0..4)
        .map(|n| fixed(Kind::Device, Some(Resource::one(format!("station {n}"))), 0.001))
        .collect();
    for bend in [Bend::Stations, Bend::Known(exact(1.0))] {
        for depth in [1, 2, 8, 64] {
            let operation = Operation { bytes: 1, depth, bend };
            near(predict(&path, &operation).response_s.value, 0.001 * f64::from(depth + 3));
        }
    }
}

/// A network disk: the way there and back, a server of four threads, and its disk that takes one at a time.
#[test]
fn a_delay_a_server_and_its_disk_queue_as_in_the_literature() {
    let path = [
        fixed(Kind::Network, None, 0.004),
        fixed(Kind::Server, Some(Resource::many("server", 4)), 0.002),
        fixed(Kind::Device, Some(Resource::one("disk")), 0.001),
    ];
    let at = |depth| {
        let bend = Bend::Stations;
        predict(&path, &Operation { bytes: 4096, depth, bend })
    };
    near(at(1).iops.value, 1.0 / 0.007);
    // Two in flight: the second is at the disk a seventh of the time, and both fit into the server.
    near(at(2).response_s.value, 0.007 + 0.001 / 7.0);
    near(at(1000).iops.value, 1000.0);
    assert_eq!(at(1000).pipes[0].name, "disk");
    // Even work would never wait before the knee; the interval holds that, and what balanced jobs wait.
    let middle = at(7);
    near(middle.iops.high, 1000.0);
    assert!(middle.iops.low < middle.iops.value && middle.iops.value < 950.0);
}

#[test]
fn members_of_a_stripe_are_hit_by_chance() {
    let member = |name: &str| vec![fixed(Kind::Device, Some(Resource::one(name)), 0.01)];
    let path =
        [Step::Stripe(Stripe { chunk_bytes: 65536, members: ["a", "b", "c"].map(member).into() })];
    // Small reads: N / (N + K - 1) of what three disks do. Large ones meet all members, which keep in step.
    for depth in [1, 3, 16] {
        let at = |bytes| {
            let bend = Bend::Stations;
            predict(&path, &Operation { bytes, depth, bend }).iops.value
        };
        near(at(4096), 300.0 * f64::from(depth) / f64::from(depth + 2));
        near(at(1 << 20), 100.0);
    }
}

/// The interval of a cost and the interval of the prediction: throughput only falls as a demand grows.
#[test]
fn the_ends_of_a_cost_are_the_ends_of_the_prediction() {
    let path = |seconds: Estimate| {
        [
            fixed(Kind::Network, None, 0.001),
            Step::Stage(Stage {
                kind: Kind::Server,
                resource: Some(Resource::many("server", 2)),
                cost: Cost::fixed(seconds),
            }),
        ]
    };
    let at = |seconds| {
        let bend = Bend::Known(exact(0.3));
        let operation = Operation { bytes: 1, depth: 3, bend };
        predict(&path(seconds), &operation).iops
    };
    let all = at(Estimate::new(0.002, 0.001, 0.004));
    near(all.low, at(exact(0.004)).value);
    near(all.high, at(exact(0.001)).value);
}

fn bend() -> impl Strategy<Value = Bend> {
    prop_oneof![Just(Bend::Stations), (0.0..1.0_f64).prop_map(Bend::measured)]
}

proptest! {
    #[test]
    fn every_prediction_lies_within_the_bounds(
        costs in proptest::collection::vec((1e-6..1e-1_f64, 1u32..8, any::<bool>()), 1..6),
        depth in 1u32..100,
        bend in bend(),
    ) {
        let path: Vec<Step> = costs
            .iter()
            .enumerate()
            .map(|(n, &(seconds, servers, is_delay))| {
                let resource = (!is_delay).then(|| Resource::many(format!("{n}"), servers));
                fixed(Kind::Device, resource, seconds)
            })
            .collect();
        let operation = Operation { bytes: 4096, depth, bend };
        let found = predict(&path, &operation);
        let alone: f64 = costs.iter().map(|cost| cost.0).sum();
        let most = costs
            .iter()
            .filter(|cost| !cost.2)
            .map(|cost| cost.0 / f64::from(cost.1))
            .fold(0.0, f64::max);
        let depth = f64::from(depth);
        let response = found.response_s.value;
        prop_assert!(response >= alone.max(depth * most) * (1.0 - 1e-9));
        prop_assert!(response <= (alone + (depth - 1.0) * most) * (1.0 + 1e-9));
        prop_assert!(found.iops.low <= found.iops.value && found.iops.value <= found.iops.high);
        for pipe in &found.pipes {
            prop_assert!((0.0..=1.0).contains(&pipe.utilisation));
            prop_assert!(pipe.capacity_iops.value * (1.0 + 1e-9) >= found.iops.value);
        }
        prop_assert!(found.without_narrowest_iops >= found.iops.value * (1.0 - 1e-9));
    }

    #[test]
    fn more_in_flight_is_never_slower(seconds in 1e-6..1e-2_f64, delay in 0.0..1e-1_f64, bend in bend()) {
        let path = [
            fixed(Kind::Device, Some(Resource::one("disk")), seconds),
            fixed(Kind::Network, None, delay),
        ];
        let mut before = 0.0;
        for depth in [1, 2, 3, 5, 8, 16, 64] {
            let operation = Operation { bytes: 4096, depth, bend };
            let iops = predict(&path, &operation).iops.value;
            prop_assert!(iops >= before * (1.0 - 1e-9));
            before = iops;
        }
    }
}
