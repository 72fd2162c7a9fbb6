//! Closed forms of paths that have one, and what must hold of every path.

use proptest::prelude::*;

use super::*;

fn near(found: f64, expected: f64) {
    let distance = (found / expected - 1.0).abs();
    assert!(distance < 1e-9, "{found} is not {expected}");
}

fn last(delay_s: f64, stations: &[Station], depth: u32) -> f64 {
    let rates = rates(delay_s, stations, depth);
    *rates.last().expect("a path that takes time")
}

/// Machines that break after `delay_s` and `servers` who repair one each in `seconds`: shares of time by broken machines, from the
/// equations of a birth-death process.
fn repaired(delay_s: f64, seconds: f64, servers: u32, machines: u32) -> f64 {
    let mut shares = vec![1.0];
    for broken in 1..=machines {
        let breaking = f64::from(machines - broken + 1) / delay_s;
        let mending = f64::from(broken.min(servers)) / seconds;
        shares.push(shares[broken as usize - 1] * breaking / mending);
    }
    let all: f64 = shares.iter().sum();
    let busy = shares.iter().zip(0_u32..);
    let busy = busy.map(|(share, broken)| share * f64::from(broken.min(servers)));
    busy.sum::<f64>() / all / seconds
}

#[test]
fn equal_stations_are_a_balanced_network() {
    // X(N) = N / (D (N + K - 1)).
    for stations in [1_u32, 2, 5] {
        let path = vec![Station::one(0.002); stations as usize];
        for depth in [1, 2, 7, 64] {
            let n = f64::from(depth);
            let expected = n / (0.002 * (n + f64::from(stations) - 1.0));
            near(last(0.0, &path, depth), expected);
        }
    }
}

#[test]
fn a_station_behind_a_delay_is_the_machine_repairman() {
    for (servers, machines) in [(1, 1), (1, 12), (3, 12), (3, 2), (16, 40), (8, 256)] {
        let station = Station { seconds: 0.005, servers: f64::from(servers) };
        near(last(0.011, &[station], machines), repaired(0.011, 0.005, servers, machines));
    }
}

#[test]
fn two_unequal_stations_are_a_queue_with_little_room() {
    // M/M/1/N: the second station is idle a share (1 - r) / (1 - r^(N+1)) of the time, r by the demands.
    let (first, second) = (0.004_f64, 0.003_f64);
    for depth in [1, 3, 20] {
        let r = second / first;
        let idle = (1.0 - r) / (1.0 - r.powi(depth as i32 + 1));
        let path = [Station::one(first), Station::one(second)];
        near(last(0.0, &path, depth), (1.0 - idle) / second);
    }
}

#[test]
fn a_station_for_all_is_a_delay() {
    let wide = Station { seconds: 0.03, servers: 64.0 };
    let path = [Station::one(0.002), Station::one(0.001)];
    let with_it = [path[0], wide, path[1]];
    for depth in [1, 9, 64] {
        near(last(0.0, &with_it, depth), last(0.03, &path, depth));
    }
    // With nothing else there, each gets its own server.
    near(last(0.0, &[wide], 10), 10.0 / 0.03);
}

#[test]
fn many_servers_and_a_deep_queue_keep_their_digits() {
    // Here the recursion by shares of idle servers would be off by more than it says.
    let path = [
        Station { seconds: 0.005, servers: 16.0 },
        Station { seconds: 0.002, servers: 8.0 },
        Station::one(0.0001),
    ];
    let found = rates(0.0, &path, 300);
    assert!(found.windows(2).all(|pair| pair[0] <= pair[1] * (1.0 + 1e-12)));
    let full = 16.0 / 0.005;
    let deepest = found[299];
    assert!(deepest <= full * (1.0 + 1e-12) && deepest > full * 0.999_999, "{deepest}");
}

#[test]
fn what_takes_no_time_or_for_ever_has_no_rates() {
    assert!(rates(0.0, &[], 4).is_empty());
    assert!(rates(0.0, &[Station::one(0.0)], 4).is_empty());
    assert!(rates(0.1, &[Station::one(f64::INFINITY)], 4).is_empty());
    near(last(0.1, &[Station::one(0.0)], 4), 40.0);
}

fn station() -> impl Strategy<Value = Station> {
    (1e-6..1e-1_f64, prop_oneof![Just(1.0), 1.0..9.0_f64])
        .prop_map(|(seconds, servers)| Station { seconds, servers })
}

fn delay() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 1e-6..1.0_f64]
}

proptest! {
    #[test]
    fn the_bounds_hold(
        path in proptest::collection::vec(station(), 1..6), delay_s in delay(), depth in 1_u32..80,
    ) {
        let response = f64::from(depth) / last(delay_s, &path, depth);
        let Bounds { min_s, max_s } = bounds(delay_s, &path, depth);
        prop_assert!(response >= min_s * (1.0 - 1e-9), "{response} {min_s}");
        prop_assert!(response <= max_s * (1.0 + 1e-9), "{response} {max_s}");
    }

    #[test]
    fn one_more_in_flight_is_never_slower_and_never_beyond_the_narrowest(
        path in proptest::collection::vec(station(), 1..6), delay_s in delay(),
    ) {
        let rates = rates(delay_s, &path, 60);
        let alone_s = delay_s + path.iter().map(|one| one.seconds).sum::<f64>();
        prop_assert!((rates[0] * alone_s - 1.0).abs() < 1e-9);
        let most = 1.0 / path.iter().map(Station::min_s).fold(0.0, f64::max);
        prop_assert!(rates.windows(2).all(|pair| pair[0] <= pair[1] * (1.0 + 1e-9)));
        prop_assert!(rates.iter().all(|rate| *rate <= most * (1.0 + 1e-9)));
    }

    #[test]
    fn less_work_or_more_servers_are_never_slower(
        path in proptest::collection::vec(station(), 1..5), delay_s in delay(), depth in 1_u32..60,
        which in 0_usize..5, less in 0.01..1.0_f64,
    ) {
        let before = last(delay_s, &path, depth);
        let which = which % path.len();
        let mut quicker = path.clone();
        quicker[which].seconds *= less;
        prop_assert!(last(delay_s, &quicker, depth) >= before * (1.0 - 1e-9));
        let mut wider = path.clone();
        wider[which].servers += 1.0;
        prop_assert!(last(delay_s, &wider, depth) >= before * (1.0 - 1e-9));
        prop_assert!(last(delay_s * less, &path, depth) >= before * (1.0 - 1e-9));
    }

    /// Both ways of computing must agree where both can: many servers that are one.
    #[test]
    fn the_order_of_stations_does_not_count(
        path in proptest::collection::vec(station(), 2..5), delay_s in delay(), depth in 1_u32..40,
    ) {
        let mut turned = path.clone();
        turned.reverse();
        near(last(delay_s, &turned, depth), last(delay_s, &path, depth));
        let single: Vec<Station> = path.iter().map(|one| Station::one(one.seconds)).collect();
        let by_arrivals = last(delay_s, &single, depth);
        let alone = vec![1.0 / single[0].seconds; depth as usize];
        let two_at_a_time = single[1..].iter().fold(alone, |rates, one| with(&rates, one));
        if delay_s == 0.0 {
            near(two_at_a_time[depth as usize - 1], by_arrivals);
        }
    }
}
