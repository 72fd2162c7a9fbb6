//! The order of a trial: every candidate in rounds against the present value, until all is settled or the time is over.
//!
//! Knows neither clock nor kernel, only a [`Bench`] and a [`Switch`].

use crate::decide::{Effect, LOOKS, Round, Word, judge};
use crate::setting::{Candidate, Work};

/// Which value a setting has in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one from before the trial.
    Present,
    /// The one that is tried.
    Tried,
}

/// What one turn gave.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn {
    /// A rate.
    Rate {
        /// Operations per second.
        per_second: f64,
        /// Operations of the turn.
        operations: u64,
    },
    /// The work cannot be measured here, for this reason.
    Unable(String),
}

/// What ended a trial before its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The user did.
    Stopped,
    /// The disk or its filesystem failed, in words.
    Failed(String),
}

/// Measures.
pub trait Bench {
    /// One turn of a work.
    ///
    /// # Errors
    /// What ends the trial.
    fn turn(&mut self, work: Work) -> Result<Turn, Ended>;
    /// Seconds since the trial began.
    fn elapsed_s(&self) -> f64;
    /// About how long a turn takes, in seconds, with all that is around it.
    fn turn_s(&self, work: Work) -> f64;
    /// Whether a work may write for this many more turns.
    fn may_write(&self, work: Work, turns: usize) -> bool;
}

/// Changes settings.
pub trait Switch {
    /// Gives a candidate's setting one of its values.
    ///
    /// # Errors
    /// Why it does not have it.
    fn switch(&mut self, candidate: &Candidate, side: Side) -> Result<(), String>;
    /// Whether it still has that value.
    ///
    /// # Errors
    /// What has happened to it.
    fn check(&mut self, candidate: &Candidate, side: Side) -> Result<(), String>;
    /// Gives it its value from before the trial.
    fn restore(&mut self, candidate: &Candidate);
}

/// A candidate's effect on a work.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Number of the candidate.
    pub candidate: usize,
    /// What was measured.
    pub work: Work,
    /// The rounds.
    pub rounds: Vec<Round>,
    /// What they say; absent with fewer than two.
    pub effect: Option<Effect>,
    /// The same in a word.
    pub word: Word,
    /// Why it could not be judged.
    pub trouble: Option<String>,
}

/// What a trial gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Each candidate with each of its works.
    pub comparisons: Vec<Comparison>,
    /// What ended it early.
    pub ended: Option<Ended>,
    /// It took all of its time, and something is not settled.
    pub is_out_of_time: bool,
}

/// Tries the candidates for at most `most_s` seconds.
pub fn run(
    candidates: &[Candidate],
    bench: &mut dyn Bench,
    switch: &mut dyn Switch,
    most_s: f64,
) -> Trial {
    let pairs = candidates.iter().enumerate().flat_map(|(candidate, one)| {
        one.works.iter().map(move |&work| Comparison {
            candidate,
            work,
            rounds: Vec::new(),
            effect: None,
            word: Word::NotSettled,
            trouble: None,
        })
    });
    let mut trial = Trial { comparisons: pairs.collect(), ended: None, is_out_of_time: false };
    for look in LOOKS {
        for (number, candidate) in candidates.iter().enumerate() {
            let ended = rounds_to(look, number, candidate, &mut trial, bench, switch, most_s);
            switch.restore(candidate);
            if let Err(ended) = ended {
                trial.ended = Some(ended);
                look_at(number, &mut trial.comparisons);
                return trial;
            }
            look_at(number, &mut trial.comparisons);
        }
    }
    trial
}

/// Runs a candidate's open comparisons until each has `look` rounds, or there is no time for two more.
fn rounds_to(
    look: usize,
    number: usize,
    candidate: &Candidate,
    trial: &mut Trial,
    bench: &mut dyn Bench,
    switch: &mut dyn Switch,
    most_s: f64,
) -> Result<(), Ended> {
    loop {
        let open = |one: &Comparison| {
            one.candidate == number
                && one.word == Word::NotSettled
                && one.trouble.is_none()
                && one.rounds.len() < look
        };
        let works: Vec<Work> =
            trial.comparisons.iter().filter(|one| open(one)).map(|one| one.work).collect();
        // Four turns make two rounds: present, tried, tried, present.
        let writing = works.iter().filter(|work| work.writes()).count();
        let works: Vec<Work> =
            works.into_iter().filter(|&work| bench.may_write(work, 4 * writing)).collect();
        if works.is_empty() {
            return Ok(());
        }
        let block_s: f64 = works.iter().map(|&work| 4.0 * bench.turn_s(work)).sum();
        if bench.elapsed_s() + block_s > most_s {
            trial.is_out_of_time = true;
            return Ok(());
        }
        match block(candidate, &works, bench, switch)? {
            Block::Whole(rounds) => {
                for (work, both) in works.iter().zip(rounds) {
                    let own = trial.comparisons.iter_mut();
                    let mut own = own.filter(|one| one.candidate == number && one.work == *work);
                    let Some(one) = own.next() else { continue };
                    match both {
                        Ok(both) => one.rounds.extend(both),
                        Err(why) => one.trouble = Some(why),
                    }
                }
            }
            Block::Spoilt(why) => {
                // What was measured before may have had another value, too.
                for one in trial.comparisons.iter_mut().filter(|one| one.candidate == number) {
                    one.rounds.clear();
                    (one.effect, one.word) = (None, Word::NotSettled);
                    one.trouble = Some(why.clone());
                }
                return Ok(());
            }
        }
    }
}

/// What two rounds of some works came to.
enum Block {
    /// For each work its rounds, or why it cannot be measured.
    Whole(Vec<Result<[Round; 2], String>>),
    /// The setting did not keep its value.
    Spoilt(String),
}

fn block(
    candidate: &Candidate,
    works: &[Work],
    bench: &mut dyn Bench,
    switch: &mut dyn Switch,
) -> Result<Block, Ended> {
    let order = [Side::Present, Side::Tried, Side::Tried, Side::Present];
    let mut turns: Vec<Vec<(f64, u64)>> = vec![Vec::new(); works.len()];
    let mut unable: Vec<Option<String>> = vec![None; works.len()];
    for (place, side) in order.into_iter().enumerate() {
        let is_same_as_before = place > 0 && order[place - 1] == side;
        if !is_same_as_before {
            if let Err(why) = switch.switch(candidate, side) {
                return Ok(Block::Spoilt(why));
            }
        }
        for (index, &work) in works.iter().enumerate() {
            if unable[index].is_some() {
                continue;
            }
            match bench.turn(work)? {
                Turn::Rate { per_second, operations } => {
                    turns[index].push((per_second, operations));
                }
                Turn::Unable(why) => unable[index] = Some(why),
            }
        }
        if let Err(why) = switch.check(candidate, side) {
            return Ok(Block::Spoilt(why));
        }
    }
    let rounds = turns.into_iter().zip(unable).map(|(turns, unable)| match (unable, &turns[..]) {
        (None, &[first, second, third, fourth]) => {
            let round = |present: (f64, u64), tried: (f64, u64)| Round {
                rates: [present.0, tried.0],
                operations: [present.1, tried.1],
            };
            Ok([round(first, second), round(fourth, third)])
        }
        (why, _) => Err(why.unwrap_or_else(|| "a turn is missing".into())),
    });
    Ok(Block::Whole(rounds.collect()))
}

fn look_at(number: usize, comparisons: &mut [Comparison]) {
    let all = comparisons.len();
    for one in comparisons.iter_mut().filter(|one| one.candidate == number) {
        if one.trouble.is_none() && one.word == Word::NotSettled {
            (one.effect, one.word) = judge(&one.rounds, all);
        }
    }
}

/// The candidates that help, the best value of each setting, by their numbers with the work that gains most. One that
/// makes any work slower is none of them.
pub fn winners(candidates: &[Candidate], trial: &Trial) -> Vec<(usize, Work)> {
    let of = |number: usize| trial.comparisons.iter().filter(move |one| one.candidate == number);
    let gain = |one: &Comparison| one.effect.map_or(1.0, |effect| effect.ratio);
    let mut best: Vec<(usize, Work, f64)> = Vec::new();
    for number in 0..candidates.len() {
        if of(number).any(|one| one.word == Word::Hurts || one.trouble.is_some()) {
            continue;
        }
        let helped = of(number).filter(|one| one.word == Word::Helps);
        let Some(most) = helped.max_by(|a, b| gain(a).total_cmp(&gain(b))) else { continue };
        let found = (number, most.work, gain(most));
        let same = |other: &&mut (usize, Work, f64)| {
            candidates[other.0].setting == candidates[number].setting
        };
        match best.iter_mut().find(same) {
            Some(other) if other.2 < found.2 => *other = found,
            Some(_) => {}
            None => best.push(found),
        }
    }
    best.sort_by(|a, b| b.2.total_cmp(&a.2));
    best.into_iter().map(|(number, work, _)| (number, work)).collect()
}
