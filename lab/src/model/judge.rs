//! How good the predictions are: errors, and whether alternatives come in the right order.

use std::fmt;

use serde::Serialize;

use super::case::Case;

/// Alternatives whose measured rates differ by more than this share must come in the right order.
pub const DIFFERS_BY: f64 = 0.20;
/// Those that differ by less than this are the hard ones among them.
pub const CLOSE: f64 = 0.50;
/// What is aimed at: the median error,
pub const MEDIAN: f64 = 0.10;
/// the 90th percentile of the errors,
pub const NINETIETH: f64 = 0.25;
/// and the share of pairs in the right order.
pub const IN_ORDER: f64 = 0.95;

/// The errors of some cases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// Cases.
    pub cases: usize,
    /// Median of the errors without their signs; 0 without cases.
    pub median: f64,
    /// 90th percentile of them.
    pub ninetieth: f64,
    /// The largest.
    pub worst: f64,
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
    /// Judges cases.
    pub fn of<'a>(cases: impl IntoIterator<Item = &'a Case>) -> Judgement {
        let cases: Vec<&Case> = cases.into_iter().collect();
        let mut errors: Vec<f64> = cases.iter().map(|case| case.error().abs()).collect();
        errors.sort_by(f64::total_cmp);
        let (mut pairs, mut in_order) = (0, 0);
        let (mut close, mut close_in_order) = (0, 0);
        for (i, a) in cases.iter().enumerate() {
            for b in &cases[i + 1..] {
                if (a.kind, &a.group) != (b.kind, &b.group) {
                    continue;
                }
                let (slow, fast) = match a.measured.value < b.measured.value {
                    true => (a, b),
                    false => (b, a),
                };
                let ratio = fast.measured.value / slow.measured.value;
                if ratio <= 1.0 + DIFFERS_BY {
                    continue;
                }
                let is_right = usize::from(fast.predicted.value > slow.predicted.value);
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
            pairs,
            in_order,
            close,
            close_in_order,
        }
    }

    /// Whether everything is as good as it should be.
    pub fn is_good(&self) -> bool {
        self.median <= MEDIAN
            && self.ninetieth <= NINETIETH
            && self.in_order as f64 >= IN_ORDER * self.pairs as f64
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} cases, error {:.1} % (median), {:.1} % (90th percentile), {:.1} % (worst), {} of {} pairs in order",
            self.cases,
            self.median * 100.0,
            self.ninetieth * 100.0,
            self.worst * 100.0,
            self.in_order,
            self.pairs
        )
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
mod tests {
    use super::*;
    use crate::model::Kind;
    use crate::model::case::{Purpose, Unit};
    use rubus_vocabulary::estimate::Estimate;

    fn case(group: &str, predicted: f64, measured: f64) -> Case {
        Case {
            kind: Kind::Sizes,
            name: String::new(),
            group: group.into(),
            purpose: Purpose::HeldOut,
            unit: Unit::Iops,
            predicted: Estimate::exact(predicted),
            measured: Estimate::exact(measured),
            narrowest: String::new(),
            starved: 0.0,
            again: 0,
            is_disturbed: false,
            note: None,
        }
    }

    #[test]
    fn errors_have_no_sign_and_pairs_stay_in_their_group() {
        let cases = [
            case("a", 110.0, 100.0),
            case("a", 180.0, 200.0),
            // Too near to the first to be judged.
            case("a", 105.0, 110.0),
            // Slower in truth, faster by the model; and another group.
            case("a", 190.0, 150.0),
            case("b", 1.0, 1000.0),
        ];
        let judged = Judgement::of(&cases[..4]);
        assert_eq!((judged.pairs, judged.in_order), (5, 4));
        assert_eq!((judged.close, judged.close_in_order), (2, 1));
        assert!((judged.worst - 0.2667).abs() < 1e-3, "{judged}");
        assert!((judged.median - 0.1).abs() < 1e-9, "{judged}");
        let all = Judgement::of(&cases);
        assert_eq!(all.pairs, 5);
        assert!(!all.is_good());
    }

    #[test]
    fn quantiles_lie_between_their_neighbours() {
        assert_eq!(quantile(&[], 0.5), 0.0);
        assert_eq!(quantile(&[1.0, 3.0], 0.5), 2.0);
        assert_eq!(quantile(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], 0.9), 4.5);
    }
}
