//! The proof that what was applied helps: the values from before, tried against the new ones, are slower.

use rubus_host::Files;

use crate::course::Trial;
use crate::decide::Word;
use crate::live::read;
use crate::report::percent;
use crate::setting::Candidate;

/// What the proof says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Everything that was applied helps.
    pub holds: bool,
    /// A sentence each.
    pub lines: Vec<String>,
}

/// The winners the other way round.
pub fn reversed(chosen: &[&Candidate]) -> Vec<Candidate> {
    let reverse = |one: &&Candidate| Candidate {
        from: one.to.clone(),
        to: one.from.clone(),
        ..(*one).clone()
    };
    chosen.iter().map(reverse).collect()
}

/// Settings that do not have their new value, in words.
pub fn unset(chosen: &[&Candidate], files: &dyn Files) -> Vec<String> {
    let mut words = Vec::new();
    for one in chosen {
        for knob in &one.knobs {
            let path = knob.path.display();
            match read(&knob.path, files) {
                Ok(live) if live == one.to => {}
                Ok(live) => words.push(format!("{path} is {live} instead of {}", one.to)),
                Err(error) => words.push(error.to_string()),
            }
        }
    }
    words
}

/// What a trial of the reversed winners proves.
pub fn of(reversed: &[Candidate], trial: &Trial) -> Proof {
    let mut proof = Proof { holds: trial.ended.is_none(), lines: Vec::new() };
    for (number, one) in reversed.iter().enumerate() {
        let own = || trial.comparisons.iter().filter(|each| each.candidate == number);
        let is_better_before = own().any(|each| each.word == Word::Helps);
        let slower = own().find(|each| each.word == Word::Hurts);
        let new = one.setting.with_value(&one.from);
        let line = match (slower, is_better_before) {
            (Some(each), false) => {
                let lost = each.effect.map_or(0.0, |effect| 1.0 / effect.ratio - 1.0);
                format!("It holds: {new} makes {} {} % faster.", each.work.object(), percent(lost))
            }
            _ => {
                proof.holds = false;
                format!("It does not hold: {new} is not proven to help, measured again.")
            }
        };
        proof.lines.push(line);
    }
    if !proof.holds {
        proof.lines.push(
            "To do: sudo rubus undo, then restart: until then the disk keeps these values".into(),
        );
    }
    proof
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::course::Comparison;
    use crate::decide::Effect;
    use crate::setting::{Risk, Setting, Work};

    fn proven(word: Word) -> Proof {
        let winner = Candidate {
            setting: Setting::ReadAhead,
            from: "128".into(),
            to: "2048".into(),
            knobs: Vec::new(),
            works: vec![Work::LargeRead],
            does: "",
            source: "",
            risk: Risk::None,
            set_by: Vec::new(),
        };
        let reversed = reversed(&[&winner]);
        assert_eq!((reversed[0].from.as_str(), reversed[0].to.as_str()), ("2048", "128"));
        let comparison = Comparison {
            candidate: 0,
            work: Work::LargeRead,
            rounds: Vec::new(),
            effect: Some(Effect { ratio: 0.8, low: 0.78, high: 0.82 }),
            word,
            trouble: None,
        };
        let trial = Trial { comparisons: vec![comparison], ended: None, is_out_of_time: false };
        of(&reversed, &trial)
    }

    #[test]
    fn it_holds_only_where_the_value_from_before_is_slower() {
        let proof = proven(Word::Hurts);
        assert!(proof.holds);
        assert_eq!(
            proof.lines,
            ["It holds: Read-ahead of 2048 KiB makes reading large files 25 % faster."]
        );
        for word in [Word::Helps, Word::NoDifference, Word::NotSettled] {
            let proof = proven(word);
            assert!(!proof.holds && proof.lines.iter().any(|line| line.contains("rubus undo")));
        }
    }
}
