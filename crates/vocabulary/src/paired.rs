//! Ratios of rounds that were measured in turns: baseline, other, other, baseline, and so on.
//!
//! Whatever drifts slowly (heat, a filling cache, a neighbour) hits both halves of a round alike and,
//! since the order alternates, cancels over two rounds. The logarithm of a round's ratio is then an observation of the
//! true one, and Student's t gives the interval of their mean.

use serde::{Deserialize, Serialize};

use rubus_stats::estimate::Estimate;
use rubus_stats::interval::{mean, variance};
use rubus_stats::quantile::{student_t_95, student_upper_tail};

/// The rounds of one job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairedJob {
    /// Name of the job.
    pub job: String,
    /// One entry per round, in the order of measuring. The first of each pair is the other run, the
    /// baseline, the second this one.
    pub rounds: Vec<Round>,
}

/// One round: both measured once, one right after the other. Index 0 is the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Round {
    /// Throughput, of both in the same unit.
    pub throughput: [f64; 2],
    /// Operations.
    pub operations: [u64; 2],
    /// Median latency in nanoseconds.
    pub p50_ns: [Option<u64>; 2],
    /// 99th percentile of the latency in nanoseconds.
    pub p99_ns: [Option<u64>; 2],
}

/// The ratio of the other to the baseline over all rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paired {
    /// With its 95 % interval.
    pub ratio: Estimate,
    /// How probable a ratio as far from 1 is if there is no difference.
    pub chance: f64,
}

/// What a histogram's percentile is worth by itself: wrong by up to 0.8 % on both sides of a ratio.
const PERCENTILE_ERROR: f64 = 0.008;

impl PairedJob {
    /// The same rounds with the two exchanged.
    pub fn turned(&self) -> PairedJob {
        let turn = |round: &Round| {
            let mut turned = *round;
            turned.throughput.reverse();
            turned.operations.reverse();
            turned.p50_ns.reverse();
            turned.p99_ns.reverse();
            turned
        };
        PairedJob { job: self.job.clone(), rounds: self.rounds.iter().map(turn).collect() }
    }

    /// The ratio of the throughputs; nothing with fewer than two rounds or where nothing moved.
    ///
    /// A window may hold one operation more or less than its share, evenly distributed, which adds a variance of
    /// 1/6 operation² per window to whatever the rounds show.
    pub fn throughput(&self) -> Option<Paired> {
        let operations = |side: usize| {
            let squares = self.rounds.iter().map(|round| {
                let count = round.operations[side].max(1) as f64;
                1.0 / (6.0 * count * count)
            });
            squares.sum::<f64>() / self.rounds.len().max(1) as f64
        };
        let logs: Option<Vec<f64>> =
            self.rounds.iter().map(|round| log_ratio(round.throughput.map(Some))).collect();
        of_logs(&logs?, operations(0) + operations(1))
    }

    /// The ratio of the median latencies.
    pub fn p50(&self) -> Option<Paired> {
        self.of_percentile(|round| round.p50_ns)
    }

    /// The ratio of the 99th percentiles; nothing where a round had too few operations for one.
    pub fn p99(&self) -> Option<Paired> {
        self.of_percentile(|round| round.p99_ns)
    }

    fn of_percentile(&self, pick: fn(&Round) -> [Option<u64>; 2]) -> Option<Paired> {
        let logs: Option<Vec<f64>> = self
            .rounds
            .iter()
            .map(|round| log_ratio(pick(round).map(|ns| ns.map(|ns| ns as f64))))
            .collect();
        of_logs(&logs?, 2.0 * PERCENTILE_ERROR * PERCENTILE_ERROR / 3.0)
    }
}

fn log_ratio([baseline, other]: [Option<f64>; 2]) -> Option<f64> {
    let ratio = other? / baseline?;
    (ratio > 0.0 && ratio.is_finite()).then(|| ratio.ln())
}

/// The mean of the logarithms with Student's t, and never surer than the variance `floor` of a
/// single round allows.
fn of_logs(logs: &[f64], floor: f64) -> Option<Paired> {
    let rounds = logs.len() as f64;
    if logs.len() < 2 {
        return None;
    }
    let middle = mean(logs);
    let error = ((variance(logs) + floor) / rounds).sqrt();
    let freedom = rounds - 1.0;
    let half_width = student_t_95(freedom) * error;
    let value = middle.exp();
    Some(Paired {
        ratio: Estimate::new(
            value,
            (middle - half_width).exp().min(value),
            (middle + half_width).exp().max(value),
        ),
        chance: if error > 0.0 {
            2.0 * student_upper_tail(middle.abs() / error, freedom)
        } else {
            f64::from(u8::from(middle == 0.0))
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_stats::Rng;

    fn job(rounds: impl IntoIterator<Item = [f64; 2]>) -> PairedJob {
        PairedJob {
            job: "x".into(),
            rounds: rounds
                .into_iter()
                .map(|throughput| Round {
                    throughput,
                    operations: [1000, 1000],
                    p50_ns: [Some(1000), Some(1100)],
                    p99_ns: [Some(5000), None],
                })
                .collect(),
        }
    }

    #[test]
    fn a_drift_of_both_cancels() {
        // Both fall by 3 % with every half round; the other is a tenth faster.
        let level = |step: i32| 100.0 * 0.97_f64.powi(step);
        let rounds = (0..4).map(|round| {
            let (first, second) = (level(2 * round), level(2 * round + 1));
            match round % 2 {
                0 => [first, 1.1 * second],
                _ => [second, 1.1 * first],
            }
        });
        let ratio = job(rounds).throughput().unwrap().ratio;
        assert!((ratio.value - 1.1).abs() < 1e-9, "{}", ratio.value);
        assert!(ratio.low < 1.1 && 1.1 < ratio.high);
    }

    #[test]
    fn rounds_without_any_spread_are_not_certain() {
        let paired = job([[100.0, 100.01]; 4]).throughput().unwrap();
        assert!(paired.ratio.low < 1.0 && paired.chance > 0.5, "{paired:?}");
        let paired = job([[100.0, 102.0]; 4]).throughput().unwrap();
        assert!(paired.ratio.low > 1.01 && paired.chance < 0.01, "{paired:?}");
    }

    #[test]
    fn a_percentile_that_a_round_lacks_gives_no_ratio() {
        let job = job([[100.0, 100.0]; 4]);
        assert!((job.p50().unwrap().ratio.value - 1.1).abs() < 1e-9);
        assert_eq!(job.p99(), None);
    }

    #[test]
    fn one_round_and_nothing_moved_give_no_ratio() {
        assert_eq!(job([[100.0, 100.0]]).throughput(), None);
        assert_eq!(job([[0.0, 100.0]; 4]).throughput(), None);
    }

    #[test]
    fn the_interval_holds_the_truth_in_95_of_100() {
        let mut rng = Rng::from_seed(9);
        let trials = 2000;
        let mut held = 0;
        for _ in 0..trials {
            let rounds: Vec<[f64; 2]> = (0..6)
                .map(|_| [100.0, 130.0].map(|level: f64| level * (0.05 * rng.normal()).exp()))
                .collect();
            let ratio = job(rounds).throughput().unwrap().ratio;
            held += u32::from(ratio.low <= 1.3 && 1.3 <= ratio.high);
        }
        assert!(held >= trials * 93 / 100, "{held} of {trials}");
    }
}
