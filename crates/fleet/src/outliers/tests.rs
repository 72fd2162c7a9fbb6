//! Simulated fleets: how often boards that are alike are named, and whether slow ones are.

use super::*;
use rubus_stats::rng::Rng;

/// Figures of each board.
const FIGURES: usize = 5;

struct Fleet {
    boards: usize,
    /// Standard deviation between boards, on the logarithms.
    spread: f64,
    /// Half width of each figure's own interval, as a share.
    half_width: f64,
    /// The first boards are slower by this factor.
    slow: usize,
    slower: f64,
}

impl Fleet {
    fn draw(&self, rng: &mut Rng) -> Vec<Vec<Sample>> {
        let figure = |subject: usize, rng: &mut Rng| {
            let noise = self.spread * rng.normal() + self.half_width / Z_95 * rng.normal();
            let slower = if subject < self.slow { self.slower } else { 1.0 };
            let value = 1000.0 * noise.exp() / slower;
            let (low, high) = (value / (1.0 + self.half_width), value * (1.0 + self.half_width));
            Sample { subject, value: Estimate::new(value, low, high) }
        };
        (0..FIGURES)
            .map(|_| (0..self.boards).map(|subject| figure(subject, rng)).collect())
            .collect()
    }
}

/// Boards that are alike, and those that differ by twice the allowance between runs.
#[test]
fn among_boards_that_are_alike_one_is_named_in_at_most_a_twentieth_of_fleets() {
    const TRIALS: usize = 600;
    let mut rng = Rng::from_seed(22);
    for boards in [3, 6, 20, 60] {
        for (times, half_width) in [(0.0, 0.15), (1.0, 0.02), (2.0, 0.02), (2.0, 0.15)] {
            let fleet =
                Fleet { boards, spread: allowance() * times, half_width, slow: 0, slower: 1.0 };
            let named = |_: &usize| !find(&fleet.draw(&mut rng)).apart.is_empty();
            let wrong = (0..TRIALS).filter(named).count();
            let share = wrong as f64 / TRIALS as f64;
            assert!(
                share <= WRONG_FLEETS,
                "{boards} boards, {times} times the allowance, ±{half_width}: {share}"
            );
        }
    }
}

#[test]
fn boards_that_are_twice_slower_are_named_and_no_others() {
    const TRIALS: usize = 200;
    let mut rng = Rng::from_seed(20);
    for (boards, slow) in [(3, 1), (5, 1), (20, 1), (20, 2), (200, 20)] {
        let fleet = Fleet { boards, spread: allowance(), half_width: 0.1, slow, slower: 2.0 };
        let (mut named, mut wrong) = (0, 0);
        for _ in 0..TRIALS / boards.div_ceil(20) {
            let found = find(&fleet.draw(&mut rng));
            let mut subjects: Vec<_> = found.apart.iter().map(|one| one.subject).collect();
            subjects.sort_unstable();
            subjects.dedup();
            named += subjects.iter().filter(|subject| **subject < slow).count();
            wrong += usize::from(subjects.iter().any(|subject| *subject >= slow));
        }
        let fleets = TRIALS / boards.div_ceil(20);
        let all = slow * fleets;
        assert!(named * 100 >= all * 90, "{boards} boards: {named} of {all}");
        assert!(wrong * 20 <= fleets, "{boards} boards: {wrong} of {fleets}");
    }
}

fn series(values: &[f64]) -> Vec<Sample> {
    let sample = |(subject, value): (usize, &f64)| Sample {
        subject,
        value: Estimate::new(*value, value * 0.97, value * 1.03),
    };
    values.iter().enumerate().map(sample).collect()
}

#[test]
fn the_evidence_is_the_ratio_with_its_widened_interval() {
    let found = find(&[series(&[100.0, 102.0, 98.0, 50.0, 101.0])]);
    let [slow] = &found.apart[..] else {
        panic!("{found:?}");
    };
    assert_eq!((found.comparisons, slow.subject, slow.series), (5, 3, 0));
    assert!((slow.median - 100.0).abs() < 1e-9 && (slow.ratio.value - 0.5).abs() < 1e-9);
    assert!(slow.ratio.low > 0.3 && slow.ratio.high < 0.8, "{slow:?}");
    assert!((found.level() - 0.99).abs() < 1e-12);
}

#[test]
fn more_comparisons_widen_every_interval() {
    let alone = find(&[series(&[100.0, 102.0, 98.0, 50.0, 101.0])]);
    let alike: Vec<f64> = (0..20).map(|at| 100.0 + f64::from(at % 3)).collect();
    let many = find(&[series(&[100.0, 102.0, 98.0, 50.0, 101.0]), series(&alike)]);
    assert_eq!(many.comparisons, 25);
    assert!(many.apart[0].ratio.high > alone.apart[0].ratio.high);
}

#[test]
fn a_fast_board_is_named_too_and_a_vague_figure_is_not() {
    let mut all = series(&[100.0, 102.0, 98.0, 300.0, 30.0]);
    all[4].value = Estimate::new(30.0, 0.0, f64::INFINITY);
    let found = find(&[all]);
    let subjects: Vec<_> = found.apart.iter().map(|one| one.subject).collect();
    assert_eq!(subjects, [3]);
}

#[test]
fn two_boards_and_figures_that_are_none_are_not_compared() {
    assert_eq!(find(&[series(&[100.0, 1.0])]), Found::default());
    let mut all = series(&[100.0, 100.0, 100.0]);
    all[2].value = Estimate::exact(0.0);
    assert_eq!(find(&[all, Vec::new()]).comparisons, 0);
}
