//! The order of candidates, on made-up times.

use super::*;
use crate::decide::order::rank;
use crate::device_classes::Severity;
use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, proptest};

fn one(name: &str, time_s: (f64, f64, f64), euros: u32) -> Candidate {
    let mut first = crate::fixture::advice().candidates.swap_remove(0);
    first.name = name.into();
    first.time_s = Estimate::new(time_s.0, time_s.1, time_s.2);
    first.euros = (euros / 2, euros);
    (first.is_now, first.is_here) = (false, euros == 0);
    first.worst_risk = None;
    first
}

fn names(mut candidates: Vec<Candidate>) -> Vec<String> {
    rank(&mut candidates, Purpose::Desktop, |_| 0);
    let names = candidates.into_iter().map(|candidate| candidate.name);
    names.collect()
}

/// In bins of 10 % that are fixed, 1.04 and 1.06 s fell apart and the dearer one won.
#[test]
fn no_edge_of_a_bin_parts_times_that_are_alike() {
    for at in [0.3, 0.97, 1.0, 1.04, 1.05, 1.1, 7.3] {
        let cheap = one("cheap", (at * 1.02, at * 0.99, at * 1.05), 10);
        let dear = one("dear", (at, at * 0.97, at * 1.03), 90);
        assert_eq!(names(vec![dear, cheap]), ["cheap", "dear"], "{at}");
    }
}

#[test]
fn a_wide_range_does_not_win_by_its_middle() {
    let narrow = one("narrow", (2.5, 2.3, 2.7), 0);
    let wide = one("wide", (1.5, 0.1, 40.0), 0);
    assert_eq!(names(vec![wide, narrow]), ["narrow", "wide"]);
}

#[test]
fn of_alike_ones_the_price_counts_then_the_risk_then_the_worst_case() {
    let of = |name, euros, worst_risk, high| Candidate {
        worst_risk,
        ..one(name, (1.0, 0.5, high), euros)
    };
    let all = vec![
        of("slower", 0, Some(Severity::Effort), 1.6),
        of("fails", 0, Some(Severity::Failure), 1.2),
        of("bought", 30, None, 1.1),
        of("wears", 0, Some(Severity::Degradation), 1.2),
        of("copied", 0, Some(Severity::Effort), 1.2),
        of("safe", 0, None, 2.0),
    ];
    let expected = ["safe", "copied", "slower", "wears", "fails", "bought"];
    assert_eq!(names(all), expected);
}

/// The cheaper one is like the dearer one, and like what there is now, which the dearer one surely beats.
#[test]
fn what_may_be_no_faster_than_now_is_not_bought() {
    let now = Candidate { is_now: true, ..one("now", (7.5, 4.3, 24.5), 0) };
    let cheap = one("cheap", (2.8, 2.1, 6.9), 20);
    let dear = one("dear", (1.6, 1.3, 3.2), 50);
    let all = vec![now.clone(), cheap.clone(), dear];
    assert_eq!(names(all), ["dear", "cheap", "now"]);
    // Where nothing surely beats it, what is there stays.
    assert_eq!(names(vec![cheap, now]), ["now", "cheap"]);
}

/// What is there now stays unless a change is surely a fifth faster, or holds a worst case that is a fifth shorter.
#[test]
fn what_is_there_stays_where_others_may_be_as_slow() {
    let now = |high| Candidate {
        is_now: true,
        worst_risk: Some(Severity::Degradation),
        ..one("now", (6.0, 3.0, high), 0)
    };
    let wide = || one("wide", (2.0, 1.0, 27.0), 0);
    assert_eq!(names(vec![wide(), now(19.0)]), ["now", "wide"]);
    assert_eq!(names(vec![wide(), now(60.0)]), ["wide", "now"]);
    let faster = one("faster", (1.0, 0.9, 1.2), 0);
    assert_eq!(names(vec![now(19.0), faster]), ["faster", "now"]);
}

/// The middle of a wide range may be faster than what stays; that is said, and with which reservation.
#[test]
fn what_stays_is_not_called_the_best_where_another_may_be_faster() {
    let now = Candidate { is_now: true, ..one("now", (6.0, 3.0, 19.0), 0) };
    let mut all = vec![one("wide", (2.0, 1.0, 27.0), 0), now];
    rank(&mut all, Purpose::Desktop, |_| 0);
    let machine = fixture::pi3_with_usb_ssd();
    let question = Question {
        machine: &machine,
        known: &Known::default(),
        purpose: Purpose::Desktop,
        with: &[],
    };
    let said = words::because(&question, &[], &all);
    assert_eq!(
        said[0],
        "Keep now (SSD on USB 2 Samsung Portable T5): wide is probably faster, but its worst case is no shorter."
    );
    let expected = "now takes 6.0 s (3.0 s to 19 s) for one second of this work; wide would take 2.0 s (not known within a factor \
                    of 10): measure before you decide.";
    assert_eq!(said[1], expected);
    let to_do = words::to_do(&question, &[], &all).sentence;
    let to_do = to_do.expect("a thing to do");
    assert_eq!(to_do, "Nothing until it is measured.");
    // Another purpose, for which the same place has the shorter worst case, moves: the words tell why.
    let mut moves = all.clone();
    moves[0].time_s = Estimate::new(6.0, 3.0, 60.0);
    moves[1].time_s = Estimate::new(2.0, 0.2, 27.0);
    rank(&mut moves, Purpose::Desktop, |_| 0);
    let said = &words::because(&question, &[], &moves)[0];
    assert!(
        said.contains("probably faster for a desktop, and its worst case is shorter"),
        "{said}"
    );
    // Where none is likely to be faster, the present one is the best.
    all[1].time_s = Estimate::new(5.5, 1.0, 27.0);
    let said = &words::because(&question, &[], &all)[0];
    assert!(said.contains("nothing that was weighed is worth a change"), "{said}");
}

/// A network disk ranks first only where it is surely faster; its server listens to one network only.
#[test]
fn a_disk_that_is_to_be_served_is_opened_to_one_network_alone() {
    let mut machine = fixture::pi3_with_usb_ssd();
    machine.block_devices.retain(|disk| disk.name == "sda");
    let slow = |rate: f64| Some(Estimate::new(rate, rate * 0.95, rate * 1.05));
    let disk = MeasuredDisk {
        random_read: slow(20.0),
        random_read_deep: slow(20.0),
        random_write: slow(10.0),
        random_write_deep: slow(10.0),
        sequential_read: slow(1e6),
        sequential_write: slow(0.5e6),
        commits: slow(1.0),
        ..MeasuredDisk::default()
    };
    let known = Known { disks: [("sda".to_string(), disk)].into(), ..Known::default() };
    for purpose in [Purpose::Desktop, Purpose::Server, Purpose::Logger] {
        let advice = ask(&machine, &known, purpose, &[]);
        assert_eq!(advice.candidates[0].name, "nbd");
        let to_do = advice.to_do.expect("a server is needed");
        let command = to_do.split("`rubus serve").nth(1).expect("a command");
        let command = command.split('`').next().unwrap_or_default();
        assert!(command.contains(" --allow NETWORK"), "{to_do}");
        assert!(!to_do.contains("`rubus attach"), "{to_do}");
    }
}

fn candidates() -> impl Strategy<Value = Vec<Candidate>> {
    let time = (0.01..10.0_f64, 1.0..20.0_f64, 1.0..20.0_f64);
    let risk = prop::sample::select(vec![
        None,
        Some(Severity::Effort),
        Some(Severity::Degradation),
        Some(Severity::Failure),
    ]);
    let one_of_it = (time, 0..3_u32, risk, any::<bool>());
    prop::collection::vec(one_of_it, 1..8).prop_map(|all| {
        let each = all.into_iter().enumerate();
        let each = each.map(|(number, ((value, below, above), euros, risk, is_net))| {
            let name = if is_net { format!("nbd://{number}") } else { format!("disk{number}") };
            Candidate {
                worst_risk: risk,
                ..one(&name, (value, value / below, value * above), euros * 20)
            }
        });
        each.collect()
    })
}

proptest! {
    /// One order, however the candidates are given: only a total order is that.
    #[test]
    fn the_order_is_total(all in candidates(), turns in 0..8_usize) {
        let mut turned = all.clone();
        turned.rotate_left(turns % all.len());
        prop_assert_eq!(names(all.clone()), names(turned.clone()));
        turned.reverse();
        prop_assert_eq!(names(all), names(turned));
    }

    /// A candidate that is surely slower never comes first.
    #[test]
    fn what_is_surely_faster_comes_first(mut all in candidates()) {
        rank(&mut all, Purpose::Desktop, |_| 0);
        for (place, before) in all.iter().enumerate() {
            for after in &all[place + 1..] {
                prop_assert!(before.time_s.low <= after.time_s.high * ALIKE);
                prop_assert!(before.tier <= after.tier);
            }
        }
    }

    /// All of a tier are alike, pair by pair, and in the order of what they cost.
    #[test]
    fn alike_is_every_pair_of_a_tier(mut all in candidates()) {
        rank(&mut all, Purpose::Desktop, |_| 0);
        for a in &all {
            for b in all.iter().filter(|b| b.tier == a.tier) {
                prop_assert!(a.time_s.low <= b.time_s.high * ALIKE);
            }
        }
        for pair in all.windows(2).filter(|pair| pair[0].tier == pair[1].tier) {
            let cost = |c: &Candidate| (c.is_network(), c.euros.1, c.worst_risk);
            prop_assert!(cost(&pair[0]) <= cost(&pair[1]));
        }
    }
}
