//! Ratios of rounds that were measured in turns: baseline, other, other, baseline, and so on.
//!
//! Whatever drifts slowly (heat, a filling cache, a neighbour) hits both halves of a round alike and,
//! since the order alternates, cancels over two rounds. The logarithm of a round's ratio is then an observation of the
//! true one, and Student's t gives the interval of their mean.

use serde::{Deserialize, Serialize};

use rubus_stats::estimate::Estimate;
use rubus_stats::interval::{mean, variance};
use rubus_stats::quantile::{student_t, student_t_95, student_upper_tail};

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
    /// Standard error of the ratio's logarithm.
    error: f64,
    /// Degrees of freedom of that error.
    freedom: f64,
}

impl Paired {
    /// Whether a true difference of `share` (above 0; 0.1 is a tenth) would be found in nine of ten such measurements, where a word
    /// needs a chance below `limit`. Only the spread counts, not the ratio: measuring until this is true is not measuring until chance
    /// has made a difference.
    pub fn would_show(&self, share: f64, limit: f64) -> bool {
        let needed = student_t(1.0 - limit / 2.0, self.freedom) + student_t(0.9, self.freedom);
        needed * self.error <= share.ln_1p()
    }
}

/// The share of comparisons of equals in turns in which a word may be said nevertheless. The time goes to the jobs whose rounds differ
/// most, so those that seem calm by chance get less of it: a simulation with this limit keeps within the twentieth that is promised.
pub const MAX_WRONG: f64 = 0.04;
/// How much of the chance of a wrong word a rate gets in turns, where a latency gets 1: of a rate and two latencies, 0.8. The
/// rounds are as many as the rates need.
pub const WEIGHT_OF_RATE: f64 = 8.0;

/// The chance below which a rate gets a word at first, where this many (at least one) are judged together with two latencies each.
pub fn limit_of_rate(rates: usize) -> f64 {
    MAX_WRONG * WEIGHT_OF_RATE / ((WEIGHT_OF_RATE + 2.0) * rates.max(1) as f64)
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

/// Of this many rounds one is trimmed at either end.
const TRIMMED: usize = 8;

/// The mean of the logarithms with Student's t, and never surer than the variance `floor` of a
/// single round allows. A stall or a busy processor spoils a round now and then, so an eighth of the rounds at either end counts for
/// the spread only (the trimmed t of Yuen, Biometrika 61, 1974).
fn of_logs(logs: &[f64], floor: f64) -> Option<Paired> {
    let all = logs.len();
    if all < 2 {
        return None;
    }
    let mut sorted = logs.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = all / TRIMMED;
    let kept = all - 2 * cut;
    let middle = mean(&sorted[cut..all - cut]);
    let (lowest, highest) = (sorted[cut], sorted[all - cut - 1]);
    for log in &mut sorted {
        *log = log.clamp(lowest, highest);
    }
    let squares = (variance(&sorted) + floor) * (all - 1) as f64;
    let error = (squares / (kept * (kept - 1)) as f64).sqrt();
    let freedom = (kept - 1) as f64;
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
        error,
        freedom,
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

    #[test]
    fn one_spoiled_round_of_eight_hides_no_difference() {
        let mut rounds = [[100.0, 110.0]; 8];
        for (place, round) in rounds.iter_mut().enumerate() {
            round[1] += [0.6, -0.6][place % 2];
        }
        rounds[5][1] = 60.0;
        let paired = job(rounds).throughput().unwrap();
        assert!(
            paired.chance < 0.001 && (paired.ratio.value / 1.1 - 1.0).abs() < 0.01,
            "{paired:?}"
        );
    }

    #[test]
    fn what_would_be_shown_follows_from_the_spread_alone() {
        let rounds = |level: f64, by: f64| {
            let each = (0..6).map(move |place| [100.0, level * (1.0 + [by, -by][place % 2])]);
            job(each).throughput().unwrap()
        };
        for level in [100.0, 130.0] {
            assert!(rounds(level, 0.02).would_show(0.1, 0.004));
            assert!(!rounds(level, 0.06).would_show(0.1, 0.004));
            assert!(rounds(level, 0.06).would_show(0.5, 0.004));
        }
    }

    #[test]
    fn what_would_be_shown_is_found_in_nine_of_ten() {
        const LIMIT: f64 = 0.004;
        let mut rng = Rng::from_seed(4);
        let (mut promised, mut found) = (0, 0);
        for _ in 0..2000 {
            let rounds: Vec<[f64; 2]> = (0..8)
                .map(|_| [100.0, 110.0].map(|level: f64| level * (0.024 * rng.normal()).exp()))
                .collect();
            let paired = job(rounds).throughput().unwrap();
            if paired.would_show(0.1, LIMIT) {
                promised += 1;
                found += u32::from(paired.chance < LIMIT);
            }
        }
        assert!(promised > 200, "{promised}");
        assert!(found >= promised * 88 / 100, "{found} of {promised}");
    }
}
