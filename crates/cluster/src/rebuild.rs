//! How long it takes to be whole again after a loss, what clients feel, and the risk meanwhile.

use crate::range::carry;
use rubus_stats::estimate::Estimate;
use serde::Serialize;

use crate::capacity::Capacity;
use crate::ceilings::payload;
use crate::design::Design;
use crate::layout::FailureDomain;
use crate::spec::GROUPS_PER_OSD;

/// Seconds from a failure until Ceph gives the domain up and restores elsewhere: `mon_osd_down_out_interval`.
pub const OUT_AFTER_S: f64 = 600.0;

/// Seconds for which operations on a silent board's placement groups hang: `osd_heartbeat_grace` and a little. A daemon that dies
/// refuses connections and is marked down in about a second (`osd_fast_fail_on_connection_refused`).
pub const HANG_S: f64 = 20.0;

/// Share of a disk's rate that recovery gets beside clients with mClock's profile `balanced`; 0.4 with `high_client_ops`, 0.7 with
/// `high_recovery_ops` (mclock-config-ref). Nothing reserves the ports.
const RECOVERY_SHARE: Estimate = Estimate { value: 0.5, low: 0.4, high: 0.7 };

/// Share of its port that the backfill of one placement group keeps busy: objects are read, sent and acknowledged in small batches, and
/// between two groups both OSDs negotiate. Measured on Ceph 18.2 (docs/how-to/cluster.md).
const STREAM_SHARE: Estimate = Estimate { value: 0.7, low: 0.5, high: 1.0 };

/// Seconds between the backfills of two placement groups: both ends reserve, and the monitors publish a map. Measured as above.
const BETWEEN_GROUPS_S: Estimate = Estimate { value: 0.5, low: 0.0, high: 1.5 };

/// Hours until a board or disk has been replaced by hand where nothing heals by itself: buying, posting, an evening.
/// Assumed.
const REPLACED_AFTER_H: Estimate = Estimate { value: 72.0, low: 12.0, high: 336.0 };

/// Failures of a board with its disk per year: 1.4 % for disks (Backblaze, all drives), the rest for board, bridge, cable, supply. Assumed.
pub const ANNUAL_FAILURES: Estimate = Estimate { value: 0.04, low: 0.015, high: 0.10 };

/// Hours of a year.
pub const YEAR_H: f64 = 8766.0;

/// Being whole again.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rebuild {
    /// Bytes of chunks on the lost domain.
    pub lost_bytes: f64,
    /// Bytes that are read over the network to make them again: k times as many with a code.
    pub read_bytes: f64,
    /// Bytes of chunks restored per second, all disks together.
    pub bytes_per_second: Estimate,
    /// Hours of restoring.
    pub restore_h: Estimate,
    /// Hours before restoring can begin: the out delay, or until the replacement is there.
    pub wait_h: Estimate,
    /// Hours with less than full redundancy: both together.
    pub exposed_h: Estimate,
    /// Probability that the losses which the layout cannot survive come in that time.
    pub loss_in_window: Estimate,
    /// Probability that an unreadable sector turns up while everything is read with no chunk to spare; only with one chunk to spare.
    pub unreadable_in_window: Option<f64>,
    /// Probability of losing data in a year by these failures alone.
    pub loss_per_year: Estimate,
    /// What clients feel, in sentences.
    pub felt: Vec<String>,
}

/// After the loss of the largest domain of a design that was checked.
///
/// Heals: T = 600 s + X / [(n - 1) min(q W, e s P / k)], with X the lost chunks, q recovery's share of a disk, W a board's write rate, P
/// its port, s the share of it that one placement group's backfill keeps busy, and e = d (n - 1) / ((d + 1) (n - 1) - 1) how many of the
/// n - 1 boards with d disks each work: an OSD takes one backfill as the source and one as the target (`osd_max_backfills` 1), and waits
/// where the other end is taken. That is a closed network of d (n - 1) backfills over n - 1 boards, as in [`crate::ceilings`].
/// Does not: the replacement takes everything, X / min(q W, s P, (n - 1) P / k), and the wait is for a person.
/// To both, half a second for each placement group, e (n - 1) of them side by side or one after the other.
/// Risk in the window: at least m of the other n - 1 domains fail, p = 1 - exp(-AFR T / 8766 h) each; with m = 1 this is
/// 1 - exp(-(n - 1) AFR T / 8766 h).
pub fn rebuild(design: &Design, capacity: &Capacity) -> Rebuild {
    let layout = design.layout;
    let (k, n) = (f64::from(layout.data()), f64::from(capacity.domains));
    let share_of_largest =
        capacity.largest_domain_bytes as f64 / (capacity.raw_bytes as f64).max(1.0);
    let lost_bytes = capacity.safe_raw_bytes * design.filled * share_of_largest;
    let weakest = design.weakest(|group| {
        group.disk.figures.write_bytes_per_second.value.min(group.board.bus.bytes_per_second())
    });
    let (disks, bus, port, write) = match weakest {
        Some(group) => (
            match design.domain {
                FailureDomain::Host => f64::from(group.disks.max(1)),
                FailureDomain::Osd => 1.0,
            },
            group.board.bus.bytes_per_second(),
            payload(group.board.link_bits),
            group.disk.figures.write_bytes_per_second,
        ),
        None => (1.0, 1.0, 1.0, Estimate::exact(1.0)),
    };
    let bytes_per_second = carry(|pick| {
        let domain = (pick(&write) * disks).min(bus);
        let on_disk = pick(&RECOVERY_SHARE) * domain;
        let stream = pick(&STREAM_SHARE) * port;
        let left = n - 1.0;
        if capacity.heals {
            left * on_disk.min(at_work(left * disks, left) * stream / k)
        } else {
            on_disk.min(stream).min(left * port / k)
        }
    });
    let side_by_side =
        if capacity.heals { (n - 1.0) * at_work((n - 1.0) * disks, n - 1.0) } else { 1.0 };
    let groups = GROUPS_PER_OSD * disks;
    let restore_h = carry(|pick| {
        let between_s = groups * pick(&BETWEEN_GROUPS_S) / side_by_side;
        (lost_bytes / pick(&bytes_per_second) + between_s) / 3600.0
    });
    let wait_h =
        if capacity.heals { Estimate::exact(OUT_AFTER_S / 3600.0) } else { REPLACED_AFTER_H };
    let exposed_h = carry(|pick| pick(&wait_h) + pick(&restore_h));
    let spare = layout.survives();
    let loss_in_window = carry(|pick| {
        let p = -(-pick(&ANNUAL_FAILURES) * pick(&exposed_h) / YEAR_H).exp_m1();
        at_least(spare, capacity.domains.saturating_sub(1), p)
    });
    let media = weakest.map(|group| group.disk.media).unwrap_or_default();
    let unreadable_in_window =
        (spare == 1).then(|| -(-lost_bytes * k * 8.0 * media.unreadable_per_bit()).exp_m1());
    let loss_per_year = carry(|pick| {
        let first = n * pick(&ANNUAL_FAILURES);
        let then = pick(&loss_in_window);
        let either = then + unreadable_in_window.unwrap_or(0.0) * (1.0 - then);
        -(-first * either).exp_m1()
    });
    Rebuild {
        lost_bytes,
        read_bytes: lost_bytes * k,
        bytes_per_second,
        restore_h,
        wait_h,
        exposed_h,
        loss_in_window: capped(loss_in_window),
        unreadable_in_window,
        loss_per_year: capped(loss_per_year),
        felt: felt(design, capacity),
    }
}

/// Share of the boards that work while each of `backfills` backfills is at a random one of them.
fn at_work(backfills: f64, boards: f64) -> f64 {
    backfills / (backfills + boards - 1.0)
}

/// A probability is 1 at most, also where the law of propagation goes beyond.
fn capped(estimate: Estimate) -> Estimate {
    Estimate::new(estimate.value.min(1.0), estimate.low.min(1.0), estimate.high.min(1.0))
}

/// Probability that at least `spare` of `others` fail, each with probability `p`: the upper tail of the binomial distribution, summed
/// from the small end so that 1e-12 stays 1e-12.
fn at_least(spare: u32, others: u32, p: f64) -> f64 {
    if spare == 0 {
        return 1.0;
    }
    let term = |i: u32| {
        let ways: f64 = (0..i).map(|j| f64::from(others - j) / f64::from(j + 1)).product();
        ways * p.powi(i as i32) * (1.0 - p).powi((others - i) as i32)
    };
    (spare..=others).rev().map(term).sum::<f64>().clamp(0.0, 1.0)
}

fn felt(design: &Design, capacity: &Capacity) -> Vec<String> {
    let k = design.layout.data();
    let mut felt = vec![format!(
        "A board that goes silent stalls the I/O of its placement groups for about {HANG_S:.0} s; a daemon that dies, about 1 s."
    )];
    if k > 1 {
        felt.push(format!(
            "Until then every read of a missing chunk reads {k} others and decodes them."
        ));
    }
    felt.push(if capacity.heals {
        "While Ceph restores, clients keep about half of each disk (mClock profile balanced). Nothing keeps a share of the \
                 ports for them: where the network binds, they share it with recovery."
            .to_string()
    } else {
        "After the replacement, clients keep about half of each disk while its chunks are restored.".to_string()
    });
    felt
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::capacity::capacity;
    use crate::wishes::Wishes;

    fn of(layout: &str, nodes: u32) -> Rebuild {
        let wishes = Wishes { nodes: Some(nodes), disk: Some("1TB".into()), ..Wishes::default() };
        let design = wishes.with_layout(layout).design(None).unwrap();
        rebuild(&design, &capacity(&design))
    }

    #[test]
    fn the_window_of_a_cluster_that_heals_is_hours_and_of_one_that_does_not_days() {
        let (heals, waits) = (of("3x", 4), of("3+1", 4));
        assert!((0.3..12.0).contains(&heals.exposed_h.value), "{heals:?}");
        assert!(waits.exposed_h.value > 72.0);
        assert!(waits.loss_per_year.value > 50.0 * heals.loss_per_year.value);
        assert_eq!(heals.unreadable_in_window, None);
        assert!(waits.unreadable_in_window.is_some());
    }

    #[test]
    fn with_one_spare_the_risk_is_the_exponential_formula() {
        let p = -(-0.04f64 * 100.0 / YEAR_H).exp_m1();
        let formula = -(-3.0f64 * 0.04 * 100.0 / YEAR_H).exp_m1();
        assert!((at_least(1, 3, p) - formula).abs() < 1e-12);
        assert_eq!(at_least(2, 1, 0.5), 0.0);
    }

    /// Each OSD sends one placement group at a time to another by chance, takes one at a time, and keeps its place in the queue there.
    #[test]
    fn osds_that_wait_for_one_another_work_as_often_as_the_formula_says() {
        use rubus_stats::Rng;
        for osds in [4_usize, 11, 40] {
            let mut chance = Rng::stream(3, osds as u64);
            let mut queues = vec![std::collections::VecDeque::new(); osds];
            let mut send = |queues: &mut Vec<std::collections::VecDeque<usize>>, from: usize| {
                let to = (from + 1 + chance.below(osds as u64 - 1) as usize) % osds;
                queues[to].push_back(from);
            };
            for from in 0..osds {
                send(&mut queues, from);
            }
            // All groups are of one size: a round is the time of one.
            const ROUNDS: usize = 5000;
            let mut worked = 0;
            for _ in 0..ROUNDS {
                let ended: Vec<usize> =
                    queues.iter_mut().filter_map(|queue| queue.pop_front()).collect();
                worked += ended.len();
                for from in ended {
                    send(&mut queues, from);
                }
            }
            let found = worked as f64 / (ROUNDS * osds) as f64;
            let formula = at_work(osds as f64, osds as f64);
            assert!((found / formula - 1.0).abs() < 0.25, "{osds}: {found} {formula}");
        }
    }

    #[test]
    fn a_slow_port_and_not_the_disk_sets_the_time() {
        let wishes = Wishes {
            nodes: Some(5),
            disk: Some("1TB".into()),
            link: Some("100Mbit".into()),
            ..Wishes::default()
        };
        let design = wishes.with_layout("3x").design(None).unwrap();
        let found = rebuild(&design, &capacity(&design)).bytes_per_second;
        let port = payload(100_000_000);
        assert!((found.value / (4.0 * 4.0 / 7.0 * 0.7 * port) - 1.0).abs() < 1e-9, "{found:?}");
    }

    proptest! {
        #[test]
        fn risks_are_probabilities_and_intervals_are_ordered(
            nodes in 3u32..20, layout in prop::sample::select(vec!["3x", "2x", "2+1"]),
        ) {
            let found = of(layout, nodes);
            for e in [found.loss_in_window, found.loss_per_year, found.exposed_h, found.restore_h, found.bytes_per_second] {
                prop_assert!(0.0 <= e.low && e.low <= e.value && e.value <= e.high);
            }
            prop_assert!(found.loss_per_year.high <= 1.0);
        }

        #[test]
        fn more_spare_is_never_riskier(others in 1u32..30, p in 0.0f64..1.0) {
            for spare in 1..others {
                prop_assert!(at_least(spare + 1, others, p) <= at_least(spare, others, p) + 1e-12);
            }
        }
    }
}
