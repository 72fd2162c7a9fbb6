//! What the fits of sweeps share: points with an uncertainty on the logarithmic scale, a curve with
//! one free factor and a table of shapes, and intervals by drawing the points again.

use crate::Rng;
use crate::bootstrap::percentile;
use crate::estimate::Estimate;

/// How often the points are drawn again for an interval.
const ROUNDS: usize = 400;
/// No point is trusted more than this (standard deviation of its logarithm), since no device is an
/// exact queue.
const MIN_DEVIATION: f64 = 0.01;
/// What stands for an interval without an end.
const MAX_DEVIATION: f64 = 1.5;
/// The 97.5 % point of the standard normal distribution.
const Z_95: f64 = 1.959_964;

/// A measured rate on the logarithmic scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    /// Logarithm of the value.
    pub(crate) ln: f64,
    /// Standard deviation of the logarithm.
    pub(crate) deviation: f64,
}

impl Point {
    /// The point of an estimate; nothing when there is no positive finite value.
    pub(crate) fn of(estimate: &Estimate) -> Option<Point> {
        if !(estimate.value > 0.0 && estimate.value.is_finite()) {
            return None;
        }
        // Where the low end is 0 or the high end infinite the other one counts for both.
        let below = (estimate.value / estimate.low.max(0.0)).ln();
        let above = (estimate.high / estimate.value).ln();
        let width = match (below.is_finite(), above.is_finite()) {
            (true, true) => (below + above) / 2.0,
            _ => f64::INFINITY,
        };
        Some(Point {
            ln: estimate.value.ln(),
            deviation: (width / Z_95).clamp(MIN_DEVIATION, MAX_DEVIATION),
        })
    }

    fn weight(&self) -> f64 {
        1.0 / (self.deviation * self.deviation)
    }
}

/// A family of curves: for each shape (a row of the table) the logarithm of the curve at each point,
/// up to a free factor.
pub(crate) struct Family {
    /// The shapes, in rows of `along` neighbours, in the order of the parameter that is of interest.
    pub(crate) shapes: Vec<Vec<f64>>,
    /// Length of a row.
    pub(crate) along: usize,
}

/// The best curve of a family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fitted {
    /// Logarithm of the free factor.
    pub(crate) ln_factor: f64,
    /// Row of the shape.
    pub(crate) row: usize,
    /// Place in the row, with a fraction.
    pub(crate) place: f64,
}

impl Family {
    /// The curve with the least squares, each weighted by the point's own uncertainty.
    pub(crate) fn fit(&self, points: &[Point]) -> Fitted {
        let values: Vec<f64> = points.iter().map(|point| point.ln).collect();
        let weights: Vec<f64> = points.iter().map(Point::weight).collect();
        let candidates: Vec<usize> = (0..self.shapes.len()).collect();
        self.best_of(&candidates, &values, &weights)
    }

    /// The best curve among the shapes with these indices, ascending.
    fn best_of(&self, candidates: &[usize], values: &[f64], weights: &[f64]) -> Fitted {
        let judge = |index: usize| misfit(&self.shapes[index], values, weights);
        let best = candidates
            .iter()
            .map(|&index| (index, judge(index)))
            .min_by(|(_, (a, _)), (_, (b, _))| a.total_cmp(b))
            .map_or((0, (0.0, 0.0)), |found| found);
        let (index, (squares, ln_factor)) = best;
        let (row, place) = (index / self.along, index % self.along);
        // Between the neighbours the squares are nearly a parabola.
        let mut shift = 0.0;
        let mut factor = ln_factor;
        if place > 0 && place + 1 < self.along {
            let ((before, factor_before), (after, factor_after)) =
                (judge(index - 1), judge(index + 1));
            let bend = before - 2.0 * squares + after;
            if bend > 0.0 {
                shift = ((before - after) / (2.0 * bend)).clamp(-0.5, 0.5);
                let slope = (factor_after - factor_before) / 2.0;
                factor += shift * slope;
            }
        }
        Fitted { ln_factor: factor, row, place: place as f64 + shift }
    }

    /// The fits of points that are drawn again, each from its own uncertainty. Where the best curve
    /// misses the points by more than that, no curve of the family is quite right, and they are drawn
    /// from as much as it misses them by.
    pub(crate) fn resampled(&self, points: &[Point], best: &Fitted, seed: u64) -> Vec<Fitted> {
        let mut rng = Rng::from_seed(seed);
        let excess = self.excess(points, best);
        let weights: Vec<f64> = points.iter().map(Point::weight).collect();
        let mut values = vec![0.0; points.len()];
        let mut search = Search::new(self, &weights);
        (0..ROUNDS)
            .map(|_| {
                for (value, point) in values.iter_mut().zip(points) {
                    *value = point.ln + excess * point.deviation * rng.normal();
                }
                let candidates = search.candidates(&values);
                self.best_of(candidates, &values, &weights)
            })
            .collect()
    }

    /// By how much the points miss the best curve beyond their own uncertainty, at least 1.
    fn excess(&self, points: &[Point], best: &Fitted) -> f64 {
        /// Parameters of a curve: the factor and the place; the row is hardly one.
        const PARAMETERS: usize = 2;
        let values: Vec<f64> = points.iter().map(|point| point.ln).collect();
        let weights: Vec<f64> = points.iter().map(Point::weight).collect();
        let index = best.row * self.along + (best.place.round() as usize).min(self.along - 1);
        let (squares, _) = misfit(&self.shapes[index], &values, &weights);
        let freedom = points.len().saturating_sub(PARAMETERS).max(1);
        (squares / freedom as f64).sqrt().max(1.0)
    }
}

/// Finds quickly which shapes can be the best for many sets of values with the same weights.
///
/// With the factor that suits it best, the weighted squares of a shape s for values v are those of v around their own mean, plus
/// Σ w c² - 2 Σ w c v, where c is s around its mean: what depends on the shape alone is computed once.
struct Search {
    /// w c, shape after shape.
    weighted: Vec<f64>,
    /// Σ w c² of each shape.
    squares: Vec<f64>,
    /// Points of a shape.
    points: usize,
    scores: Vec<f64>,
    candidates: Vec<usize>,
}

impl Search {
    fn new(family: &Family, weights: &[f64]) -> Search {
        let total: f64 = weights.iter().sum();
        let mut weighted = Vec::with_capacity(family.shapes.len() * weights.len());
        let mut squares = Vec::with_capacity(family.shapes.len());
        for shape in &family.shapes {
            let mean = shape.iter().zip(weights).map(|(s, w)| s * w).sum::<f64>() / total;
            let around = || shape.iter().zip(weights).map(|(s, w)| (s - mean, w));
            squares.push(around().map(|(c, w)| w * c * c).sum());
            weighted.extend(around().map(|(c, w)| w * c));
        }
        Search {
            weighted,
            squares,
            points: weights.len(),
            scores: Vec::new(),
            candidates: Vec::new(),
        }
    }

    /// The shapes whose squares are the least but for what rounding may have done.
    fn candidates(&mut self, values: &[f64]) -> &[usize] {
        let shapes = self.weighted.chunks_exact(self.points.max(1));
        self.scores.clear();
        self.scores.extend(shapes.zip(&self.squares).map(|(shape, squares)| {
            squares - 2.0 * shape.iter().zip(values).map(|(c, v)| c * v).sum::<f64>()
        }));
        let least = self.scores.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.squares.iter().copied().fold(0.0, f64::max);
        // Sums of some ten terms of this size, each exact to 1e-16 of it.
        let slack = 1e-12 * (most + least.abs());
        self.candidates.clear();
        let scores = self.scores.iter().enumerate();
        self.candidates
            .extend(scores.filter_map(|(index, score)| (*score <= least + slack).then_some(index)));
        &self.candidates
    }
}

/// Weighted squares of the distances from a shape with the best factor, and that factor.
fn misfit(shape: &[f64], values: &[f64], weights: &[f64]) -> (f64, f64) {
    let (mut sum, mut total) = (0.0, 0.0);
    for i in 0..shape.len() {
        sum += weights[i] * (values[i] - shape[i]);
        total += weights[i];
    }
    let factor = sum / total;
    let mut squares = 0.0;
    for i in 0..shape.len() {
        let distance = values[i] - shape[i] - factor;
        squares += weights[i] * distance * distance;
    }
    (squares, factor)
}

/// The middle 95 % of resampled values around the fitted one.
pub(crate) fn interval(value: f64, mut values: Vec<f64>) -> Estimate {
    let low = percentile(&mut values, 0.025);
    let high = percentile(&mut values, 0.975);
    Estimate::new(value, low.min(value), high.max(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quick_search_finds_what_the_whole_search_finds() {
        let depths = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0_f64];
        // The first place of every row is the same shape: ties must fall as in the whole search.
        let shape = |row: i32, place: usize| {
            let knee = (place as f64 * 0.04).exp();
            let curve = |&depth: &f64| (depth.powi(-row) + knee.powi(-row) - 1.0).max(1e-3).ln();
            depths.iter().map(curve).collect()
        };
        let shapes = (1..5).flat_map(|row| (0..50).map(move |place| (row, place)));
        let family =
            Family { shapes: shapes.map(|(row, place)| shape(row, place)).collect(), along: 50 };
        let weights = [1e4, 400.0, 90.0, 1.0, 2500.0, 0.5];
        let all: Vec<usize> = (0..family.shapes.len()).collect();
        let mut rng = Rng::from_seed(7);
        let mut search = Search::new(&family, &weights);
        for round in 0..300 {
            let base = &family.shapes[round % all.len()];
            let noise = [0.0, 0.02, 1.0][round % 3];
            let values: Vec<f64> = base.iter().map(|s| s + 9.0 + noise * rng.normal()).collect();
            let quick = family.best_of(search.candidates(&values), &values, &weights);
            assert_eq!(quick, family.best_of(&all, &values, &weights), "{round}");
        }
    }
}
