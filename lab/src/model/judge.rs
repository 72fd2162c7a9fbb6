//! How good the predictions are: errors, whether intervals overlap, and whether alternatives come in the right order.

use std::fmt;

use serde::Serialize;

use super::Subject;
use super::case::{Case, Kind, Purpose};

/// Alternatives whose measured rates differ by more than this share must come in the right order.
pub const DIFFERS_BY: f64 = 0.20;
/// Those that differ by less than this are the hard ones among them.
pub const CLOSE: f64 = 0.50;
/// What is aimed at: the median error,
pub const MEDIAN: f64 = 0.10;
/// the 90th percentile of the errors,
pub const NINETIETH: f64 = 0.25;
/// the share of cases whose intervals overlap,
pub const COVERAGE: f64 = 0.95;
/// and the share of pairs in the right order.
pub const IN_ORDER: f64 = 0.95;

/// What of a case is judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// What is composed.
    pub subject: Subject,
    /// What the case is worth.
    pub kind: Kind,
    /// Cases of one subject and group are alternatives.
    pub group: String,
    /// The rate that was predicted.
    pub predicted: f64,
    /// The rate that was measured.
    pub measured: f64,
    /// How far they are apart, as a share of the measured rate.
    pub error: f64,
    /// Whether the intervals of both have a number in common.
    pub overlaps: bool,
    /// Whether nothing was chosen by looking at it.
    pub is_held_out: bool,
    /// Whether something else disturbed it.
    pub is_disturbed: bool,
}

impl From<&Case> for Score {
    fn from(case: &Case) -> Score {
        Score {
            subject: case.forecast.subject,
            kind: case.forecast.kind,
            group: case.forecast.group.clone(),
            predicted: case.forecast.predicted.value,
            measured: case.measured.value,
            error: case.error(),
            overlaps: case.overlaps(),
            is_held_out: case.forecast.purpose == Purpose::HeldOut,
            is_disturbed: case.is_disturbed,
        }
    }
}

/// The errors of some cases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// Number of cases.
    pub cases: usize,
    /// Median of the errors without their signs; 0 without cases.
    pub median: f64,
    /// 90th percentile of them.
    pub ninetieth: f64,
    /// Largest of them.
    pub worst: f64,
    /// Cases whose intervals overlap.
    pub overlapping: usize,
    /// Pairs of alternatives that differ enough.
    pub pairs: usize,
    /// Those of them whose order was predicted.
    pub in_order: usize,
    /// Pairs that differ by more than [`DIFFERS_BY`] and less than [`CLOSE`].
    pub close: usize,
    /// Those of them whose order was predicted.
    pub close_in_order: usize,
}

impl Judgement {
    /// Summarizes the errors of these scores.
    pub fn of<'a>(scores: impl IntoIterator<Item = &'a Score>) -> Judgement {
        let scores: Vec<&Score> = scores.into_iter().collect();
        let mut errors: Vec<f64> = scores.iter().map(|score| score.error.abs()).collect();
        errors.sort_by(f64::total_cmp);
        let (mut pairs, mut in_order) = (0, 0);
        let (mut close, mut close_in_order) = (0, 0);
        for (i, a) in scores.iter().enumerate() {
            for b in &scores[i + 1..] {
                if (a.subject, &a.group) != (b.subject, &b.group) {
                    continue;
                }
                let (slow, fast) = if a.measured < b.measured { (a, b) } else { (b, a) };
                let ratio = fast.measured / slow.measured;
                if ratio <= 1.0 + DIFFERS_BY {
                    continue;
                }
                let is_right = usize::from(fast.predicted > slow.predicted);
                pairs += 1;
                in_order += is_right;
                if ratio < 1.0 + CLOSE {
                    close += 1;
                    close_in_order += is_right;
                }
            }
        }
        Judgement {
            cases: errors.len(),
            median: quantile(&errors, 0.5),
            ninetieth: quantile(&errors, 0.9),
            worst: errors.last().copied().unwrap_or(0.0),
            overlapping: scores.iter().filter(|score| score.overlaps).count(),
            pairs,
            in_order,
            close,
            close_in_order,
        }
    }

    /// Judges cases of every kind.
    pub fn of_cases(cases: &[Case]) -> Judgement {
        let scores: Vec<Score> = cases.iter().map(Score::from).collect();
        Judgement::of(&scores)
    }

    /// The judgement that counts: of composition and blind cases alone. A run that has none of them is judged by all that it has.
    pub fn that_counts(scores: &[Score]) -> Judgement {
        let counting = Judgement::of(scores.iter().filter(|score| score.kind.is_judged()));
        match counting.cases {
            0 => Judgement::of(scores),
            _ => counting,
        }
    }

    /// The share of cases whose intervals overlap; 1 without cases.
    pub fn coverage(&self) -> f64 {
        share(self.overlapping, self.cases)
    }

    /// The aims that are missed, each with what was reached.
    pub fn missed(&self) -> Vec<(Aim, f64)> {
        let in_order = share(self.in_order, self.pairs);
        let aims = [
            (Aim::Median, self.median, self.median <= MEDIAN),
            (Aim::Ninetieth, self.ninetieth, self.ninetieth <= NINETIETH),
            (Aim::Coverage, self.coverage(), self.coverage() >= COVERAGE),
            (Aim::InOrder, in_order, in_order >= IN_ORDER),
        ];
        let missed = aims.into_iter().filter(|(_, _, is_met)| !is_met);
        missed.map(|(aim, reached, _)| (aim, reached)).collect()
    }
}

/// Something that is aimed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// Half of the errors are no larger.
    Median,
    /// Nine in ten of the errors are no larger.
    Ninetieth,
    /// Share of intervals that overlap.
    Coverage,
    /// Share of pairs in the right order.
    InOrder,
}

impl Aim {
    /// The aim's name in a report.
    pub fn name(self) -> &'static str {
        match self {
            Aim::Median => "the median error",
            Aim::Ninetieth => "the 90th percentile",
            Aim::Coverage => "the coverage",
            Aim::InOrder => "the share of pairs in order",
        }
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} cases, error {:.1} % (median), {:.1} % (90th percentile), {:.1} % (worst), intervals of {} overlap, {} of {} pairs in order",
            self.cases,
            self.median * 100.0,
            self.ninetieth * 100.0,
            self.worst * 100.0,
            self.overlapping,
            self.in_order,
            self.pairs
        )
    }
}

fn share(part: usize, whole: usize) -> f64 {
    match whole {
        0 => 1.0,
        _ => part as f64 / whole as f64,
    }
}

/// The smallest that at least this share does not exceed; of two in the middle the mean.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    if sorted.is_empty() {
        return 0.0;
    }
    let at = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    below + (above - below) * at.fract()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::model) fn score(kind: Kind, predicted: f64, measured: f64) -> Score {
        Score {
            subject: Subject::Sizes,
            kind,
            group: "a".into(),
            predicted,
            measured,
            error: predicted / measured - 1.0,
            overlaps: true,
            is_held_out: true,
            is_disturbed: false,
        }
    }

    fn of_group(group: &str, predicted: f64, measured: f64) -> Score {
        Score { group: group.into(), ..score(Kind::Blind, predicted, measured) }
    }

    #[test]
    fn errors_have_no_sign_and_pairs_stay_in_their_group() {
        let scores = [
            of_group("a", 110.0, 100.0),
            of_group("a", 180.0, 200.0),
            // Too near to the first to be judged.
            of_group("a", 105.0, 110.0),
            // Slower in truth, faster by the model; and another group.
            of_group("a", 190.0, 150.0),
            of_group("b", 1.0, 1000.0),
        ];
        let judged = Judgement::of(&scores[..4]);
        assert_eq!((judged.pairs, judged.in_order), (5, 4));
        assert_eq!((judged.close, judged.close_in_order), (2, 1));
        assert!((judged.worst - 0.2667).abs() < 1e-3, "{judged}");
        assert!((judged.median - 0.1).abs() < 1e-9, "{judged}");
        assert_eq!(judged.missed().last().map(|(aim, _)| *aim), Some(Aim::InOrder));
        assert_eq!(Judgement::of(&scores).pairs, 5);
    }

    #[test]
    fn each_aim_can_be_missed_alone() {
        let good = Judgement {
            cases: 100,
            median: MEDIAN,
            ninetieth: NINETIETH,
            worst: 3.0,
            overlapping: 95,
            pairs: 20,
            in_order: 19,
            close: 1,
            close_in_order: 0,
        };
        assert_eq!(good.missed(), []);
        let median = 0.11;
        assert_eq!(Judgement { median, ..good }.missed(), [(Aim::Median, 0.11)]);
        let ninetieth = 0.26;
        let missed = Judgement { ninetieth, ..good }.missed();
        assert_eq!(missed, [(Aim::Ninetieth, 0.26)]);
        let overlapping = 94;
        let missed = Judgement { overlapping, ..good }.missed();
        assert_eq!(missed, [(Aim::Coverage, 0.94)]);
        let in_order = 18;
        let missed = Judgement { in_order, ..good }.missed();
        assert_eq!(missed, [(Aim::InOrder, 0.9)]);
    }

    #[test]
    fn identities_cannot_hide_what_is_blind() {
        let mut scores = vec![score(Kind::Identity, 100.0, 100.0); 50];
        scores.extend(vec![score(Kind::Interpolation, 100.0, 100.0); 50]);
        scores.push(score(Kind::Blind, 150.0, 100.0));
        scores.push(score(Kind::Composition, 101.0, 100.0));
        let judged = Judgement::that_counts(&scores);
        assert_eq!(judged.cases, 2);
        assert_eq!(judged.worst, 0.5);
        // A run of identities alone is judged, too.
        assert_eq!(Judgement::that_counts(&scores[..60]).cases, 60);
    }

    #[test]
    fn quantiles_lie_between_their_neighbours() {
        assert_eq!(quantile(&[], 0.5), 0.0);
        assert_eq!(quantile(&[1.0, 3.0], 0.5), 2.0);
        assert_eq!(quantile(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], 0.9), 4.5);
    }
}
