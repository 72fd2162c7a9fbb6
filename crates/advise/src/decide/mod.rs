//! From a machine's facts to advice: what it could be, what each would give for a purpose, which is best and why.
//!
//! `inventory` says what there is and could be, `buying` what a kind of device would be here, `links` what comes and goes over the
//! network, `weigh` predicts each by paths of stages, `swapping` does the same for set-ups of swap, `striping` for several disks as one,
//! `words` says why, `subjects` looks at single subjects, `questions` at what is not known.

mod buying;
mod inventory;
mod links;
mod network_disk;
mod phrases;
mod place;
mod questions;
mod striping;
mod subjects;
mod swap_costs;
mod swapping;
mod weigh;
mod words;

use crate::advice::{ALIKE, Advice, Candidate, FORMAT, Known, WORTH_A_CHANGE, Wish};
use rubus_machine::purpose::Purpose;
use rubus_vocabulary::machine::{Machine, Origin};

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub machine: &'a Machine,
    /// What was measured on it.
    pub known: &'a Known,
    /// What for.
    pub purpose: Purpose,
    /// What is to be weighed besides what is there.
    pub with: &'a [Wish],
}

/// The advice.
///
/// # Errors
/// When a wish names something that this machine does not have, as a sentence.
pub fn advise(question: &Question<'_>) -> Result<Advice, String> {
    let places = inventory::places(question)?;
    let mut candidates = match question.purpose {
        Purpose::Swap => swapping::candidates(question, &places),
        _ => places
            .iter()
            .map(|place| weigh::candidate(question, place))
            .collect(),
    };
    if question.purpose != Purpose::Swap {
        rank(&mut candidates, question.purpose, |_| 0);
    }
    let to_do = words::to_do(question, &places, &candidates);
    let (subjects, curve) = subjects::all(question, &places, &candidates);
    Ok(Advice {
        format: FORMAT,
        machine: board(question.machine),
        from: match &question.machine.origin {
            Origin::Live => None,
            Origin::Capture { path, .. } => Some(path.clone()),
        },
        purpose: question.purpose,
        unit: links::unit(question),
        because: words::because(question, &places, &candidates),
        command: to_do.command,
        to_do: to_do.sentence,
        subjects,
        curve,
        unknown: questions::unknown(question, &places, &candidates),
        candidates,
    })
}

fn board(machine: &Machine) -> String {
    let model = machine.board.model.text();
    model.unwrap_or("this machine").trim().to_string()
}

/// By time; of those that are alike what needs no other machine first, then the cheaper one, then the one that stands better by
/// something else than time (the smaller number), and what is there already before all that costs as little. What there is now
/// comes before all of them where they are hardly faster, and where it is enough.
fn rank(candidates: &mut [Candidate], purpose: Purpose, standing: impl Fn(&Candidate) -> u8) {
    let step = |candidate: &Candidate| {
        let time = candidate.time_s.value.max(1e-9);
        (time.ln() / ALIKE.ln()).round() as i64
    };
    candidates.sort_by(|a, b| {
        let price = |candidate: &Candidate| {
            let (is_here, is_now) = (candidate.is_here, candidate.is_now);
            (
                candidate.is_network(),
                candidate.euros.1,
                !is_here,
                standing(candidate),
                !is_now,
            )
        };
        (step(a), price(a))
            .cmp(&(step(b), price(b)))
            .then(a.time_s.value.total_cmp(&b.time_s.value))
    });
    let now = candidates.iter().position(|candidate| candidate.is_now);
    if let Some(now) = now {
        let is_alike = candidates[now].time_s.value <= candidates[0].time_s.value * WORTH_A_CHANGE;
        let is_enough = candidates[now].is_enough(purpose);
        let stands_as_well = standing(&candidates[now]) <= standing(&candidates[0]);
        if (is_alike || is_enough) && stands_as_well {
            candidates[..=now].rotate_right(1);
        }
    }
}

#[cfg(test)]
mod tests;
