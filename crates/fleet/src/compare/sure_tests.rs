//! Simulated fleets, measured twice: how often boards that did not change are named, and whether
//! those that did are.

use super::*;
use rubus_stats::compare::{BETWEEN_RUNS, between_runs, ratio};
use rubus_stats::quantile::student_t_95;
use rubus_stats::rng::Rng;

/// Figures of each board.
const FIGURES: usize = 5;
/// Batches less one from which a run makes its intervals.
const FREEDOM: usize = 9;

#[derive(Clone, Copy, Debug)]
struct Fleet {
    boards: usize,
    /// Standard deviation of the drift from run to run, of the ratio's logarithm.
    drift: f64,
    /// Standard error of each run's figure, as a share.
    error: f64,
    /// The first boards became slower by this factor.
    slow: usize,
    slower: f64,
}

/// What a run says of a figure: its intervals come from few batches, as real ones do.
fn measured(truth: f64, error: f64, rng: &mut Rng) -> Estimate {
    let squares: f64 = (0..FREEDOM).map(|_| rng.normal().powi(2)).sum();
    let seen = error * (squares / FREEDOM as f64).sqrt();
    let half_width = student_t_95(FREEDOM as f64) * seen;
    let value = truth * (error * rng.normal()).exp();
    Estimate::new(value, value * (-half_width).exp(), value * half_width.exp())
}

impl Fleet {
    /// The ratios of each figure as a comparison of two runs gives them.
    fn draw(&self, rng: &mut Rng) -> Vec<Vec<Estimate>> {
        let board = |number: usize, rng: &mut Rng| {
            let slower = if number < self.slow { self.slower } else { 1.0 };
            let before = measured(1000.0, self.error, rng);
            let drift = (self.drift * rng.normal()).exp();
            let after = measured(1000.0 * drift / slower, self.error, rng);
            between_runs(ratio(after, before).expect("both are positive"), BETWEEN_RUNS)
        };
        let series = |_| (0..self.boards).map(|number| board(number, rng)).collect();
        (0..FIGURES).map(series).collect()
    }

    /// The numbers of the boards that are named.
    fn named(&self, rng: &mut Rng) -> Vec<usize> {
        let all = self.draw(rng);
        let comparisons = FIGURES * self.boards;
        let mut named: Vec<usize> = Vec::new();
        for series in &all {
            let ratios = widened(series, comparisons).into_iter().enumerate();
            let sure = ratios.filter(|(_, ratio)| ratio.low > 1.0 || ratio.high < 1.0);
            named.extend(sure.map(|(number, _)| number));
        }
        named.sort_unstable();
        named.dedup();
        named
    }

    /// In which share of comparisons a board is named that did not change.
    fn wrong(&self, trials: usize, rng: &mut Rng) -> f64 {
        let is_wrong = |_: &usize| self.named(rng).iter().any(|board| *board >= self.slow);
        (0..trials).filter(is_wrong).count() as f64 / trials as f64
    }
}

/// The 10 % between runs as what they are defined as: what 95 % of ratios stay within.
fn as_reach() -> f64 {
    BETWEEN_RUNS.ln_1p() / Z_95
}

/// The 10 % between runs as a standard deviation: about twice as much.
fn as_deviation() -> f64 {
    BETWEEN_RUNS.ln_1p()
}

const SIZES: [usize; 5] = [3, 6, 10, 20, 60];

#[test]
fn if_nothing_changed_a_board_is_named_in_at_most_a_twentieth_of_comparisons() {
    let mut rng = Rng::from_seed(22);
    for boards in SIZES {
        for drift in [0.0, as_reach()] {
            for error in [0.005, 0.03, 0.07] {
                let fleet = Fleet { boards, drift, error, slow: 0, slower: 1.0 };
                let share = fleet.wrong((1800 / boards).max(100), &mut rng);
                assert!(share <= WRONG_FLEETS, "{fleet:?}: {share}");
            }
        }
    }
}

/// What happens if boards drift twice as far as is allowed for: the fleet's own ratios show it, from
/// six boards on. Of three boards they cannot.
#[test]
fn twice_the_drift_is_seen_in_fleets_of_six_boards_and_not_in_fleets_of_three() {
    let mut rng = Rng::from_seed(23);
    let mut share = |boards| {
        let fleet = Fleet { boards, drift: as_deviation(), error: 0.01, slow: 0, slower: 1.0 };
        fleet.wrong(6000 / boards, &mut rng)
    };
    for boards in [6, 10, 20, 60] {
        let share = share(boards);
        assert!(share <= WRONG_FLEETS, "{boards} boards: {share}");
    }
    let few = share(3);
    assert!((0.03..0.12).contains(&few), "{few}");
}

#[test]
fn a_board_that_became_twice_slower_is_named_and_no_other() {
    let mut rng = Rng::from_seed(24);
    for boards in SIZES {
        for slow in [1, boards / 2, boards] {
            let fleet = Fleet { boards, drift: as_reach(), error: 0.044, slow, slower: 2.0 };
            let trials = (600 / boards).max(30);
            let (mut named, mut wrong) = (0, 0);
            for _ in 0..trials {
                let found = fleet.named(&mut rng);
                named += found.iter().filter(|board| **board < slow).count();
                wrong += usize::from(found.iter().any(|board| *board >= slow));
            }
            let all = slow * trials;
            assert!(named * 100 >= all * 90, "{fleet:?}: {named} of {all}");
            assert!(wrong * 20 <= trials, "{fleet:?}: {wrong} of {trials}");
        }
    }
}

/// In which share of fleets one of the figures is called changed.
fn overall_wrong(fleet: Fleet, trials: usize, rng: &mut Rng) -> f64 {
    let is_wrong = |_: &usize| {
        let all = fleet.draw(rng);
        let ratios = all.iter().filter_map(|series| overall(series, FIGURES));
        ratios.into_iter().any(|one| one.low > 1.0 || one.high < 1.0)
    };
    (0..trials).filter(is_wrong).count() as f64 / trials as f64
}

#[test]
fn a_fleet_that_did_not_change_is_called_changed_in_at_most_a_twentieth_of_comparisons() {
    let mut rng = Rng::from_seed(25);
    for boards in SIZES {
        for drift in [0.0, as_reach(), as_deviation()] {
            let fleet = Fleet { boards, drift, error: 0.03, slow: 0, slower: 1.0 };
            let share = overall_wrong(fleet, (1800 / boards).max(400), &mut rng);
            assert!(share <= WRONG_FLEETS, "{fleet:?}: {share}");
        }
    }
}

#[test]
fn a_change_of_a_whole_fleet_is_seen_that_no_board_shows() {
    let mut rng = Rng::from_seed(26);
    let fleet = Fleet { boards: 20, drift: as_reach(), error: 0.02, slow: 20, slower: 1.1 };
    let all = fleet.draw(&mut rng);
    for series in &all {
        let whole = overall(series, FIGURES).expect("there are enough boards");
        assert!(whole.high < 1.0 && whole.low > 0.8, "{whole:?}");
        let of_boards = widened(series, 100);
        let sure = of_boards.iter().filter(|one| one.high < 1.0).count();
        assert!(sure <= 4, "{sure}");
    }
    assert_eq!(overall(&all[0][..2], FIGURES), None);
}

#[test]
fn the_drift_that_a_fleet_shows_widens_every_interval_up_to_a_limit() {
    let ratios = |spread: f64| -> Vec<Estimate> {
        let one = |at: i32| Estimate::exact((f64::from(at - 4) * spread).exp());
        (0..9).map(|at| between_runs(one(at), BETWEEN_RUNS)).collect()
    };
    let reach = |spread: f64| {
        let middle = widened(&ratios(spread), 9)[4];
        (middle.high / middle.value).ln()
    };
    assert!(reach(0.04) > 1.1 * reach(0.0));
    assert!((reach(1.0) / reach(0.0) - MAX_DRIFT).abs() < 1e-3);
}

#[test]
fn an_unbounded_interval_stays_unbounded() {
    let vague = Estimate::new(1.0, 0.0, f64::INFINITY);
    let found = widened(&[vague, vague, vague], 3)[0];
    assert_eq!((found.low, found.high), (0.0, f64::INFINITY));
    let whole = overall(&[vague, vague, vague], 1).expect("three boards");
    assert_eq!((whole.low, whole.high), (0.0, f64::INFINITY));
}
