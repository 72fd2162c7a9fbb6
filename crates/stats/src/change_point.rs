//! What happened to a figure over many runs: a step, a spike, a drift, or that it has two modes.
//!
//! A step at a known event is one test. An unexplained step is searched: the maximum over all splits with three runs a side, against the
//! same maximum of shuffled runs, since a split that was searched must not be tested as if it had been given. Every word also needs a
//! size that matters and a distance that the scatter between runs does not explain. The thresholds are calibrated by the simulations in
//! the tests: weekly runs, judged every week for a year.
//!
//! All values are logarithms, so that a difference is a ratio.

use super::rng::Rng;

/// Smaller differences are not told: runs differ by as much for reasons of their own (see [`super::compare::BETWEEN_RUNS`]).
const MIN_SIZE: f64 = super::compare::BETWEEN_RUNS;
/// Runs on either side of a split.
pub const MIN_SIDE: usize = 3;
/// With fewer runs nothing is told but that the last one looks different.
pub const MIN_RUNS: usize = 6;
/// Share of shuffled series that may look as split as the one at hand. Six runs and three have 2.4 % at best.
const MAX_P: f64 = 0.03;
/// The same for a split that was given. Five runs and three have 3.6 % at best.
const MAX_P_OF_EVENT: f64 = 0.05;
const SHUFFLES: u32 = 2000;
/// Distance of two means in standard errors for a searched split, and for a given one.
const MIN_DISTANCE: f64 = 6.5;
const MIN_DISTANCE_OF_EVENT: f64 = 4.0;
/// Smallest change, in multiples of the scatter between single runs: noise that remembers the run before makes means of many runs look exact.
const MIN_SCATTERS: f64 = 5.0;
/// A slope in standard errors.
const MIN_SLOPE: f64 = 8.0;
/// Smallest distance of a spike from its neighbours, in robust standard deviations and in all.
const MIN_SPIKE: f64 = 8.0;
const MIN_SPIKE_SIZE: f64 = 0.25;
/// Smallest distance of two modes in their own standard deviations, and fewest changes between them: a step changes once.
const MIN_MODES_APART: f64 = 7.0;
const MIN_CHANGES: usize = 3;
/// Runs repeat themselves no better than this, whatever a few of them say.
const MIN_SCATTER: f64 = 0.01;
const SEED: u64 = 0x6368_616e_6765;

/// A change in a series of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// From run `at` on it is another level.
    Step {
        /// First run of the new level.
        at: usize,
        /// The new level over the old one.
        ratio: f64,
    },
    /// One run stands apart, and its neighbours agree.
    Spike {
        /// Index of that run.
        at: usize,
        /// It over its neighbours.
        ratio: f64,
    },
    /// It goes one way all the time.
    Drift {
        /// The end over the beginning.
        ratio: f64,
    },
    /// Each run is in one of two modes.
    TwoModes {
        /// The logarithm of the lower mode.
        low: f64,
        /// The logarithm of the higher mode.
        high: f64,
        /// Runs in the lower mode.
        low_runs: usize,
    },
}

/// What happened in a series of runs, in the order of time.
pub fn find(logs: &[f64]) -> Option<Change> {
    if logs.len() < MIN_RUNS || logs.iter().any(|value| !value.is_finite()) {
        return None;
    }
    two_modes(logs).or_else(|| level(logs)).or_else(|| spike(logs))
}

/// A step at a known event: run `at` is the first after it.
pub fn at_event(logs: &[f64], at: usize) -> Option<Change> {
    if at < MIN_SIDE || logs.len() < at + MIN_SIDE {
        return None;
    }
    let split = Split::of(logs, at);
    let is_told = split.size.abs() >= ratio_log(MIN_SIZE)
        && split.distance() >= MIN_DISTANCE_OF_EVENT
        && split.has_medians_of(logs, at)
        && share_of_shuffled(logs, split.distance(), |logs| Split::of(logs, at).distance())
            <= MAX_P_OF_EVENT;
    is_told.then(|| Change::Step { at, ratio: split.size.exp() })
}

/// The last run over those before it, if it is further from them than they are from each other, and by more than the half-width of its
/// own interval (a logarithm): what a few more runs have to decide.
pub fn looks_different(logs: &[f64], half_width: f64) -> Option<f64> {
    let (last, before) = logs.split_last()?;
    if before.is_empty() {
        return None;
    }
    let low = before.iter().copied().fold(f64::INFINITY, f64::min);
    let high = before.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let distance = (low - last).max(last - high);
    let is_apart = distance >= 2.0 * ratio_log(MIN_SIZE) && distance > half_width + (high - low);
    is_apart.then(|| (last - median(before)).exp())
}

fn ratio_log(share: f64) -> f64 {
    share.ln_1p()
}

/// A step or a drift, whichever explains the series better.
fn level(logs: &[f64]) -> Option<Change> {
    let at = best_split(logs)?;
    let split = Split::of(logs, at);
    let line = Line::of(logs);
    if line.left_over < split.left_over {
        let total = line.slope * (logs.len() - 1) as f64;
        let is_told = total.abs() >= ratio_log(MIN_SIZE).max(MIN_SCATTERS * line.scatter)
            && line.distance() >= MIN_SLOPE;
        return is_told.then(|| Change::Drift { ratio: total.exp() });
    }
    let is_told = split.size.abs() >= ratio_log(MIN_SIZE).max(MIN_SCATTERS * split.scatter)
        && split.distance() >= MIN_DISTANCE
        && split.has_medians_of(logs, at)
        && share_of_shuffled(logs, split.distance(), max_distance) <= MAX_P;
    is_told.then(|| Change::Step { at, ratio: split.size.exp() })
}

fn splits(count: usize) -> std::ops::RangeInclusive<usize> {
    MIN_SIDE..=count.saturating_sub(MIN_SIDE)
}

fn best_split(logs: &[f64]) -> Option<usize> {
    let by_distance = |a: &usize, b: &usize| {
        Split::of(logs, *a).distance().total_cmp(&Split::of(logs, *b).distance())
    };
    splits(logs.len()).max_by(by_distance)
}

fn max_distance(logs: &[f64]) -> f64 {
    splits(logs.len()).map(|at| Split::of(logs, at).distance()).fold(0.0, f64::max)
}

/// Share of shuffled series whose statistic reaches the one at hand, the series itself among them.
fn share_of_shuffled(logs: &[f64], reached: f64, statistic: impl Fn(&[f64]) -> f64) -> f64 {
    let mut rng = Rng::from_seed(SEED);
    let mut shuffled = logs.to_vec();
    let mut count = 0_u32;
    for _ in 0..SHUFFLES {
        rng.shuffle(&mut shuffled);
        // The order of additions may cost the last bits.
        if statistic(&shuffled) >= reached * (1.0 - 1e-9) {
            count += 1;
        }
    }
    f64::from(count + 1) / f64::from(SHUFFLES + 1)
}

/// A series cut in two.
struct Split {
    /// The second mean less the first.
    size: f64,
    /// Standard error of that.
    error: f64,
    /// Standard deviation of the runs around their means.
    scatter: f64,
    /// Sum of squares around the two means.
    left_over: f64,
}

impl Split {
    fn of(logs: &[f64], at: usize) -> Split {
        let (before, after) = logs.split_at(at);
        let (a, b) = (mean(before), mean(after));
        let left_over = squares(before, a) + squares(after, b);
        let scatter = (left_over / (logs.len() - 2) as f64).sqrt().max(MIN_SCATTER);
        let shares = 1.0 / before.len() as f64 + 1.0 / after.len() as f64;
        let size = b - a;
        Split { size, error: scatter * shares.sqrt(), scatter, left_over }
    }

    fn distance(&self) -> f64 {
        self.size.abs() / self.error
    }

    /// Whether the medians say the same within a factor of two: a few far runs make no step.
    fn has_medians_of(&self, logs: &[f64], at: usize) -> bool {
        let (before, after) = logs.split_at(at);
        (median(after) - median(before)) / self.size > 0.5
    }
}

/// A straight line through a series.
struct Line {
    slope: f64,
    error: f64,
    scatter: f64,
    left_over: f64,
}

impl Line {
    fn of(logs: &[f64]) -> Line {
        let count = logs.len() as f64;
        let (middle, level) = ((count - 1.0) / 2.0, mean(logs));
        let place = |at: usize| at as f64 - middle;
        let spread: f64 = (0..logs.len()).map(|at| place(at).powi(2)).sum();
        let slope =
            logs.iter().enumerate().map(|(at, value)| place(at) * (value - level)).sum::<f64>()
                / spread;
        let rest = |(at, value): (usize, &f64)| (value - level - slope * place(at)).powi(2);
        let left_over: f64 = logs.iter().enumerate().map(rest).sum();
        let scatter = (left_over / (count - 2.0)).sqrt().max(MIN_SCATTER);
        Line { slope, error: scatter / spread.sqrt(), scatter, left_over }
    }

    fn distance(&self) -> f64 {
        self.slope.abs() / self.error
    }
}

/// The run that stands furthest from its four neighbours, which have to agree, with a run after it.
fn spike(logs: &[f64]) -> Option<Change> {
    let spread = 1.4826 * median(&distances_to_median(logs));
    let spread = spread.max(MIN_SCATTER);
    let far = (1..logs.len() - 1).filter_map(|at| {
        let from = at.saturating_sub(2);
        let to = (at + 3).min(logs.len());
        let around: Vec<f64> =
            (from..to).filter(|other| *other != at).map(|other| logs[other]).collect();
        let distance = logs[at] - median(&around);
        let widest = around.iter().map(|value| (value - median(&around)).abs()).fold(0.0, f64::max);
        let is_far = distance.abs() >= MIN_SPIKE * spread
            && distance.abs() >= ratio_log(MIN_SPIKE_SIZE)
            && widest <= distance.abs() / 2.0;
        is_far.then_some((at, distance))
    });
    let (at, distance) = far.max_by(|(_, a), (_, b)| a.abs().total_cmp(&b.abs()))?;
    Some(Change::Spike { at, ratio: distance.exp() })
}

fn two_modes(logs: &[f64]) -> Option<Change> {
    let mut sorted = logs.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let gap = |at: &usize| sorted[*at] - sorted[*at - 1];
    let at = splits(sorted.len()).max_by(|a, b| gap(a).total_cmp(&gap(b)))?;
    let (below, above) = sorted.split_at(at);
    let (low, high) = (mean(below), mean(above));
    let within = ((squares(below, low) + squares(above, high)) / (sorted.len() - 2) as f64).sqrt();
    let is_high = |value: &f64| *value > sorted[at - 1];
    let changes = logs.windows(2).filter(|pair| is_high(&pair[0]) != is_high(&pair[1])).count();
    let is_told = high - low >= ratio_log(2.0 * MIN_SIZE)
        && high - low >= MIN_MODES_APART * within.max(MIN_SCATTER)
        && gap(&at) >= (high - low) / 2.0
        && changes >= MIN_CHANGES;
    is_told.then_some(Change::TwoModes { low, high, low_runs: below.len() })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn squares(values: &[f64], around: f64) -> f64 {
    values.iter().map(|value| (value - around).powi(2)).sum()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[half] } else { (sorted[half - 1] + sorted[half]) / 2.0 }
}

fn distances_to_median(values: &[f64]) -> Vec<f64> {
    let middle = median(values);
    values.iter().map(|value| (value - middle).abs()).collect()
}

#[cfg(test)]
mod tests;
