//! What the rounds of a comparison are worth: pure.
//!
//! A round is one turn with the present value and one with the other, right after each other, in alternating order. The
//! logarithm of its ratio is an observation of the true one; Student's t gives the interval of their mean. The chance of
//! an error is shared by all comparisons and by all times at which one is looked at, so that of a hundred machines on
//! which nothing has an effect, at most five are told that something has. Stalls spoil a round now and then, so the mean
//! is trimmed (Yuen 1974): an eighth of the rounds at either end counts for the spread only.

use rubus_stats::interval::{mean, variance};
use rubus_stats::quantile::student_t;
use serde::Serialize;

/// The chance that a trial says anything wrong: less than the twentieth that is promised, since the noise of disks is not
/// Student's.
const CHANCE: f64 = 0.03;
/// With fewer rounds nothing is settled: by their signs alone, six can just tell chance apart.
pub const MIN_ROUNDS: usize = 6;
/// When a comparison is looked at, in rounds; all even, so that drifts cancel.
pub const LOOKS: [usize; 4] = [MIN_ROUNDS, 12, 24, 48];
/// The share of the chance that each look may use: most is kept for the small effects, which are seen late.
const SHARES: [f64; LOOKS.len()] = [0.1, 0.2, 0.3, 0.4];
/// Of this many rounds one is trimmed at either end.
const TRIMMED: usize = 8;
/// An effect that is surely smaller than this is none.
const NONE: f64 = 0.03;

/// One round of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// Operations per second: with the present value, and with the other.
    pub rates: [f64; 2],
    /// Operations of each.
    pub operations: [u64; 2],
}

/// What a comparison says of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// It is faster.
    Helps,
    /// It is slower.
    Hurts,
    /// If there is a difference, it is smaller than 3 %.
    NoDifference,
    /// More rounds are needed.
    NotSettled,
}

/// The ratio of the other value to the present one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Effect {
    /// 1.18 is 18 % faster.
    pub ratio: f64,
    /// Lower end of its interval, with all comparisons allowed for.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What the rounds say, if the trial makes this many comparisons.
pub fn judge(rounds: &[Round], comparisons: usize) -> (Option<Effect>, Word) {
    let logs: Option<Vec<f64>> = rounds.iter().map(log_ratio).collect();
    let Some(logs) = logs.filter(|logs| logs.len() >= 2) else {
        return (None, Word::NotSettled);
    };
    let look = LOOKS.iter().position(|&look| logs.len() <= look).unwrap_or(LOOKS.len() - 1);
    let chance = CHANCE * SHARES[look] / comparisons.max(1) as f64;
    // A turn may hold one operation more or less than its share: a variance of a sixth of one.
    let counted = |side: usize| {
        let squares = rounds.iter().map(|round| {
            let operations = round.operations[side].max(1) as f64;
            1.0 / (6.0 * operations * operations)
        });
        squares.sum::<f64>() / rounds.len() as f64
    };
    let (middle, error, freedom) = trimmed(logs, counted(0) + counted(1));
    let half = student_t(1.0 - chance / 2.0, freedom) * error;
    let effect =
        Effect { ratio: middle.exp(), low: (middle - half).exp(), high: (middle + half).exp() };
    (Some(effect), word(&effect, rounds.len()))
}

/// The trimmed mean, its standard error with the variance `floor` of a round added, and the degrees of freedom.
fn trimmed(mut logs: Vec<f64>, floor: f64) -> (f64, f64, f64) {
    logs.sort_by(f64::total_cmp);
    let (all, cut) = (logs.len(), logs.len() / TRIMMED);
    let kept = all - 2 * cut;
    let middle = mean(&logs[cut..all - cut]);
    let (low, high) = (logs[cut], logs[all - cut - 1]);
    for log in &mut logs {
        *log = log.clamp(low, high);
    }
    let squares = (variance(&logs) + floor) * (all - 1) as f64;
    let error = (squares / (kept * (kept - 1)) as f64).sqrt();
    (middle, error, (kept - 1) as f64)
}

fn log_ratio(round: &Round) -> Option<f64> {
    let ratio = round.rates[1] / round.rates[0];
    (ratio > 0.0 && ratio.is_finite()).then(|| ratio.ln())
}

fn word(effect: &Effect, rounds: usize) -> Word {
    if rounds < MIN_ROUNDS {
        Word::NotSettled
    } else if effect.largest_difference() <= NONE {
        Word::NoDifference
    } else if effect.low > 1.0 {
        Word::Helps
    } else if effect.high < 1.0 {
        Word::Hurts
    } else {
        Word::NotSettled
    }
}

impl Effect {
    /// The largest difference from none that the interval allows.
    pub fn largest_difference(&self) -> f64 {
        (self.high - 1.0).max(1.0 - self.low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(ratios: &[f64]) -> Vec<Round> {
        let round = |ratio: &f64| Round { rates: [1000.0, 1000.0 * ratio], operations: [1000; 2] };
        ratios.iter().map(round).collect()
    }

    #[test]
    fn fewer_than_six_rounds_settle_nothing() {
        let steady = [1.5, 1.5, 1.5, 1.5, 1.5, 1.5];
        for count in 0..6 {
            assert_eq!(judge(&rounds(&steady[..count]), 1).1, Word::NotSettled, "{count}");
        }
        assert_eq!(judge(&rounds(&steady), 1).1, Word::Helps);
    }

    #[test]
    fn the_words_are_those_of_the_interval() {
        let said = |ratios: &[f64], comparisons| judge(&rounds(ratios), comparisons).1;
        assert_eq!(said(&[1.2, 1.19, 1.21, 1.2, 1.22, 1.18], 10), Word::Helps);
        assert_eq!(said(&[0.8, 0.81, 0.79, 0.8, 0.82, 0.78], 10), Word::Hurts);
        assert_eq!(said(&[1.0, 1.001, 0.999, 1.0, 1.002, 0.998], 10), Word::NoDifference);
        assert_eq!(said(&[1.0, 1.2, 0.8, 1.1, 0.9, 1.3], 10), Word::NotSettled);
    }

    #[test]
    fn more_comparisons_need_more_evidence() {
        let ratios = [1.05, 1.08, 1.03, 1.06, 1.09, 1.05];
        let width = |comparisons| {
            let effect = judge(&rounds(&ratios), comparisons).0.unwrap();
            effect.high - effect.low
        };
        assert!(width(20) > 1.5 * width(1), "{} {}", width(20), width(1));
    }

    #[test]
    fn a_turn_in_which_nothing_moved_settles_nothing() {
        let mut with_hole = rounds(&[1.2; 6]);
        with_hole[2].rates[1] = 0.0;
        assert_eq!(judge(&with_hole, 1), (None, Word::NotSettled));
    }
}
