//! The order of candidates: by time as far as their ranges tell them apart; of those that are alike by what they cost and risk.
//!
//! That two ranges overlap is no equivalence: a may be like b and b like c, and a surely faster than c. So candidates are put
//! into tiers, like the strata of an interval order: the first tier is all than which none is surely faster, the next is
//! all of the rest than which none of the rest is, and so on. Within a tier every pair is alike, and what is surely slower is
//! always in a later one.

use std::cmp::Ordering;

use crate::advice::{ALIKE, Candidate, WORTH_A_CHANGE};
use rubus_machine::purpose::Purpose;
use rubus_stats::estimate::Estimate;

/// Whether one takes less time even where it is slow and the other fast, and by more than is worth a word.
fn is_surely_faster(one: &Estimate, other: &Estimate) -> bool {
    one.high * ALIKE < other.low
}

/// The tier of each, 0 the fastest.
fn tiers(times: &[Estimate]) -> Vec<u32> {
    let mut tiers: Vec<Option<u32>> = vec![None; times.len()];
    for tier in 0.. {
        let open: Vec<usize> = (0..times.len()).filter(|at| tiers[*at].is_none()).collect();
        if open.is_empty() {
            break;
        }
        for at in &open {
            let is_beaten = |other: &usize| is_surely_faster(&times[*other], &times[*at]);
            if !open.iter().any(is_beaten) {
                tiers[*at] = Some(tier);
            }
        }
    }
    tiers.into_iter().flatten().collect()
}

/// Sorts by tier; within one, what needs no other machine comes first, then the cheaper one, then what stands better (the
/// smaller number), then the one whose risks are milder, then the one whose worst case is shorter: a wide range has a long one.
/// What has to be bought, and may be no faster than what there is now, comes after all that is not so: being alike goes no further than a
/// pair, and the cheapest of a tier may be like what the dearer one surely beats.
///
/// What there is now comes before all where it is enough, or where a change is not worth it: where the first is surely faster,
/// but by less than a fifth; where both are alike, and the worst case would not get shorter by a fifth.
pub(super) fn rank(
    candidates: &mut [Candidate],
    purpose: Purpose,
    standing: impl Fn(&Candidate) -> u8,
) {
    let times: Vec<Estimate> = candidates.iter().map(|c| c.time_s).collect();
    for (candidate, tier) in candidates.iter_mut().zip(tiers(&times)) {
        candidate.tier = tier;
    }
    let now_s = candidates.iter().find(|candidate| candidate.is_now).map(|now| now.time_s);
    let may_buy_nothing = |candidate: &Candidate| {
        candidate.is_bought() && now_s.is_some_and(|now| !is_surely_faster(&candidate.time_s, &now))
    };
    candidates.sort_by(|a, b| compare(a, b, (&may_buy_nothing, &standing)));
    let Some(now) = candidates.iter().position(|candidate| candidate.is_now) else {
        return;
    };
    let (here, first) = (&candidates[now], &candidates[0]);
    let stands_as_well = standing(here) <= standing(first);
    if stands_as_well && (here.is_enough(purpose) || !is_worth_a_change(here, first)) {
        candidates[..=now].rotate_right(1);
    }
}

fn compare(
    a: &Candidate,
    b: &Candidate,
    (may_buy_nothing, standing): (impl Fn(&Candidate) -> bool, impl Fn(&Candidate) -> u8),
) -> Ordering {
    let cost =
        |c: &Candidate| (may_buy_nothing(c), c.is_network(), c.euros.1, standing(c), c.worst_risk);
    (a.tier, cost(a))
        .cmp(&(b.tier, cost(b)))
        .then(a.time_s.high.total_cmp(&b.time_s.high))
        .then(b.is_now.cmp(&a.is_now))
        .then(a.time_s.value.total_cmp(&b.time_s.value))
        .then_with(|| a.name.cmp(&b.name))
}

fn is_worth_a_change(now: &Candidate, to: &Candidate) -> bool {
    if now.tier == to.tier {
        now.time_s.high > to.time_s.high * WORTH_A_CHANGE
    } else {
        now.time_s.value > to.time_s.value * WORTH_A_CHANGE
    }
}
