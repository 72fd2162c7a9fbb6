//! From ratios to words, with a correction for the number of words.

use serde::{Deserialize, Serialize};

use super::{Measure, Ratio, Row};
use rubus_stats::estimate::Estimate;
use rubus_stats::quantile::{student_t_95, student_upper_tail};
use rubus_vocabulary::paired;

/// What a ratio says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// Faster than the baseline.
    Faster,
    /// Slower than the baseline.
    Slower,
    /// The data do not show a difference; there may be one that is smaller than they can show.
    NoEvidence,
    /// There is no interval to judge by.
    NotJudged,
}

/// The share of comparisons without any difference in which a word may be said nevertheless.
const MAX_WRONG: f64 = 0.05;

/// The intervals of runs come from ten batches, so their tails are those of Student's t with nine
/// degrees of freedom.
const FREEDOM: f64 = 9.0;

/// How probable a ratio as far from 1 is if the true ratio is 1, from a 95 % interval: below 0.05
/// exactly when the interval does not hold 1.
pub(super) fn chance(ratio: Estimate) -> f64 {
    let distance = ratio.value.ln();
    // Towards 1, since that is the side which decides.
    let reach = if distance >= 0.0 {
        (ratio.value / ratio.low.max(0.0)).ln()
    } else {
        (ratio.high / ratio.value).ln()
    };
    if distance == 0.0 || reach.is_infinite() || reach.is_nan() {
        return 1.0;
    }
    if reach <= 0.0 {
        return 0.0;
    }
    2.0 * student_upper_tail(student_t_95(FREEDOM) * distance.abs() / reach, FREEDOM)
}

/// Gives every ratio its word and says how many could be judged.
///
/// Holm's procedure (Scandinavian Journal of Statistics 6, 1979) over everything that is judged at
/// once: the smallest of m chances must be below 0.05 / m, the next below 0.05 / (m − 1), and so on until one is
/// not. In a comparison of equals, the probability of even one wrong "faster" or "slower" is then at most 5 %,
/// whatever the figures have to do with one another. In turns it is the weighted form of it: a chance
/// is divided by its weight, and m is the sum of the weights that are left.
pub(super) fn judge_all(rows: &mut [Row], in_turns: bool) -> usize {
    let (max_wrong, weight_of_rate) =
        if in_turns { (paired::MAX_WRONG, paired::WEIGHT_OF_RATE) } else { (MAX_WRONG, 1.0) };
    let weight = |more_is_faster: bool| if more_is_faster { weight_of_rate } else { 1.0 };
    // The chance over its weight, and the weight.
    let mut tests: Vec<(f64, f64)> = rows
        .iter_mut()
        .flat_map(ratios)
        .filter_map(|(ratio, is_rate)| Some((ratio.chance? / weight(is_rate), weight(is_rate))))
        .collect();
    tests.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut left: f64 = tests.iter().map(|(_, weight)| weight).sum();
    let mut limit = f64::NEG_INFINITY;
    for (chance, weight) in &tests {
        if *chance > max_wrong / left {
            break;
        }
        limit = *chance;
        left -= weight;
    }
    for (ratio, more_is_faster) in rows.iter_mut().flat_map(ratios) {
        ratio.word = match ratio.chance {
            None => Word::NotJudged,
            Some(chance) if chance / weight(more_is_faster) > limit => Word::NoEvidence,
            Some(_) if (ratio.figure.value > 1.0) == more_is_faster => Word::Faster,
            Some(_) => Word::Slower,
        };
    }
    tests.len()
}

/// The ratios of a row, each with whether more is faster, which it is of rates alone.
fn ratios(row: &mut Row) -> impl Iterator<Item = (&mut Ratio, bool)> {
    fn of(measure: &mut Measure, more: bool) -> impl Iterator<Item = (&mut Ratio, bool)> {
        measure.ratios.iter_mut().flatten().map(move |r| (r, more))
    }
    of(&mut row.throughput, true)
        .chain(of(&mut row.p50_ns, false))
        .chain(of(&mut row.p99_ns, false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_stats::Rng;

    #[test]
    fn the_chance_is_below_5_percent_when_the_interval_leaves_1_out() {
        let chance = |value, low, high| chance(Estimate::new(value, low, high));
        assert!(chance(1.2, 1.001, 1.4) < 0.05);
        assert!(chance(1.2, 0.999, 1.4) > 0.05);
        assert!(chance(0.8, 0.6, 0.999) < 0.05);
        assert!(chance(0.8, 0.6, 1.001) > 0.05);
        assert!((chance(1.2, 1.0, 1.5) - 0.05).abs() < 1e-9);
        assert_eq!(chance(1.0, 0.5, 2.0), 1.0);
        assert_eq!(chance(3.0, 0.0, f64::INFINITY), 1.0);
        assert_eq!(chance(3.0, 3.0, 3.0), 0.0);
    }

    fn row(ratios: &[Estimate]) -> Row {
        let ratio = |estimate: &Estimate| {
            Some(Ratio {
                figure: super::super::Figure::of(*estimate),
                word: Word::NotJudged,
                chance: Some(chance(*estimate)),
            })
        };
        Row {
            title: "x".into(),
            jobs: Vec::new(),
            unit: super::super::Unit::BytesPerSecond,
            throughput: Measure { figures: Vec::new(), ratios: ratios.iter().map(ratio).collect() },
            p50_ns: Measure::default(),
            p99_ns: Measure::default(),
            remarks: Vec::new(),
        }
    }

    fn words(row: &Row) -> Vec<Word> {
        let ratios = row.throughput.ratios.iter();
        ratios.map(|ratio| ratio.unwrap().word).collect()
    }

    #[test]
    fn what_would_do_alone_does_not_do_among_many() {
        let just = Estimate::new(1.2, 1.01, 1.43);
        let far = Estimate::new(0.5, 0.49, 0.51);
        let mut alone = [row(&[just])];
        assert_eq!(judge_all(&mut alone, false), 1);
        assert_eq!(words(&alone[0]), [Word::Faster]);
        let unclear = Estimate::new(1.1, 0.9, 1.35);
        let mut many = [row(&[just, far, unclear, unclear, unclear, unclear])];
        assert_eq!(judge_all(&mut many, false), 6);
        assert_eq!(words(&many[0])[..3], [Word::NoEvidence, Word::Slower, Word::NoEvidence]);
    }

    #[test]
    fn in_turns_a_rate_needs_less_evidence_than_a_latency() {
        // With a rate and nine latencies: 0.04 · 8 / 17 for the rate, 0.04 / 17 for a latency.
        let measures = |chance: f64, of_latency: f64| {
            let one = |chance| Ratio { chance: Some(chance), ..row_of_one() };
            let mut row = row(&[]);
            row.throughput.ratios = vec![Some(one(chance))];
            row.p50_ns.ratios = vec![Some(one(of_latency)); 9];
            let mut rows = [row];
            assert_eq!(judge_all(&mut rows, true), 10);
            let [row] = &rows;
            [row.throughput.ratios[0].unwrap().word, row.p50_ns.ratios[0].unwrap().word]
        };
        assert_eq!(measures(0.018, 0.5), [Word::Faster, Word::NoEvidence]);
        assert_eq!(measures(0.02, 0.5), [Word::NoEvidence, Word::NoEvidence]);
        assert_eq!(measures(0.5, 0.003), [Word::NoEvidence, Word::NoEvidence]);
        assert_eq!(measures(0.5, 0.002), [Word::NoEvidence, Word::Slower]);
    }

    fn row_of_one() -> Ratio {
        row(&[Estimate::new(1.2, 1.1, 1.3)]).throughput.ratios[0].unwrap()
    }

    #[test]
    fn equals_are_called_different_in_at_most_5_of_100_comparisons() {
        let mut rng = Rng::from_seed(3);
        let trials = 2000;
        let mut wrong = 0;
        for _ in 0..trials {
            // Ten jobs, each the ratio of means of ten normal batches.
            let ratios: Vec<Estimate> = (0..10)
                .map(|_| {
                    let batches: Vec<f64> = (0..10).map(|_| 0.1 * rng.normal()).collect();
                    let mean = rubus_stats::interval::mean(&batches);
                    let error = (rubus_stats::interval::variance(&batches) / 10.0).sqrt();
                    let half = student_t_95(9.0) * error;
                    Estimate::new(mean.exp(), (mean - half).exp(), (mean + half).exp())
                })
                .collect();
            let mut rows = [row(&ratios)];
            judge_all(&mut rows, false);
            wrong += u32::from(words(&rows[0]).iter().any(|w| *w != Word::NoEvidence));
        }
        assert!(wrong <= trials * 6 / 100, "{wrong} of {trials}");
        assert!(wrong >= trials * 3 / 100, "{wrong}: the test has no power");
    }
}
