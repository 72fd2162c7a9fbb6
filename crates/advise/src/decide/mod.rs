//! From a machine's facts to advice: what it could be, what each would give for a purpose, which is best and why.
//!
//! `inventory` says what there is and could be, `buying` what a kind of device would be here, `links` what comes and goes over the
//! network, `weigh` predicts each by paths of stages, `swapping` does the same for set-ups of swap, `striping` for several disks as one,
//! `order` ranks them, `words` says why, `subjects` looks at single subjects, `questions` at what is not known.

mod buying;
mod inventory;
mod links;
mod network_disk;
mod order;
mod phrases;
mod place;
mod questions;
mod risk;
mod striping;
mod subjects;
mod swap_costs;
mod swapping;
mod weigh;
mod words;

use crate::advice::{Advice, FORMAT, Known, Wish};
use rubus_draw::quote::typed;
use rubus_machine::purpose::Purpose;
use rubus_vocabulary::machine::{Machine, Origin};
use rubus_vocabulary::next_step::NextStep;

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub machine: &'a Machine,
    /// What was measured on it.
    pub known: &'a Known,
    /// What the machine is for.
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
        _ => places.iter().map(|place| weigh::candidate(question, place)).collect(),
    };
    if question.purpose != Purpose::Swap {
        order::rank(&mut candidates, question.purpose, |_| 0);
    }
    let to_do = words::to_do(question, &places, &candidates);
    let (subjects, curve) = subjects::all(question, &places, &candidates);
    let mut advice = Advice {
        next: NextStep::default(),
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
        obstacles: Vec::new(),
        to_do: to_do.sentence,
        subjects,
        curve,
        unknown: questions::unknown(question, &places, &candidates),
        candidates,
    };
    if let Some(manager) = &question.machine.system.container {
        leave_to_the_host(&mut advice, manager);
    }
    let step = advice.next_step();
    advice.next = if advice.from.is_some() { step.on_that_machine() } else { step };
    Ok(advice)
}

/// In a container the kernel and the disks are the host's: no command that plans a change can be accepted here.
fn leave_to_the_host(advice: &mut Advice, manager: &str) {
    let plans = |sentence: &String| sentence.contains("`rubus ");
    let there = match (advice.command.take(), &advice.to_do) {
        (Some(command), Some(besides)) => Some(format!("`{}`. {besides}", typed(&command))),
        (Some(command), None) => Some(format!("`{}`", typed(&command))),
        (None, sentence) => sentence.clone().filter(plans),
    };
    if let Some(there) = there {
        advice.to_do = Some(format!("This is a container ({manager}). On its host: {there}"));
    }
    advice.subjects.iter_mut().for_each(|subject| subject.command = None);
}

fn board(machine: &Machine) -> String {
    let model = machine.board.model.text();
    model.unwrap_or("this machine").trim().to_string()
}

#[cfg(test)]
mod tests;
