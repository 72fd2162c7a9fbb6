//! One logarithmic scale for all drawn ratios of a comparison, 1 in its middle.

use crate::compare::{Comparison, Figure};

/// Ends that read well.
const ENDS: [f64; 11] = [1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 200.0, 1000.0];

/// From 1/end to end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    end: f64,
}

impl Scale {
    /// The smallest scale that holds every ratio of a throughput, and every interval up to four
    /// times its ratio.
    pub fn of(comparison: &Comparison) -> Scale {
        let mut most: f64 = 1.0;
        for row in &comparison.rows {
            for ratio in row.throughput.ratios.iter().flatten() {
                let figure = ratio.figure;
                let mut reach = |value: f64| {
                    let far = value.ln().abs().exp();
                    if far.is_finite() {
                        most = most.max(far);
                    }
                };
                reach(figure.value);
                if let Some(interval) = figure.interval {
                    reach(interval.low.max(figure.value / 4.0));
                    reach(interval.high.min(figure.value * 4.0));
                }
            }
        }
        let end = ENDS.into_iter().find(|end| *end >= most);
        Scale { end: end.unwrap_or(ENDS[ENDS.len() - 1]) }
    }

    /// The upper end; the lower one is 1 over it.
    pub fn end(self) -> f64 {
        self.end
    }

    /// Where a ratio stands: 0 at the lower end, 0.5 for 1, 1 at the upper end; cut at the ends.
    pub fn at(self, ratio: f64) -> f64 {
        if ratio <= 0.0 {
            return 0.0;
        }
        (0.5 + ratio.ln() / (2.0 * self.end.ln())).clamp(0.0, 1.0)
    }

    /// Whether a ratio lies beyond the ends.
    pub fn cuts(self, ratio: f64) -> bool {
        ratio > self.end * 1.000_001 || ratio * self.end < 0.999_999
    }

    /// A line of `columns` (odd) with a mark at the ratio, its interval, and a bar at 1.
    pub(super) fn line(self, figure: &Figure, columns: usize) -> String {
        let column = |ratio: f64| (self.at(ratio) * (columns - 1) as f64).round() as usize;
        let mut cells = vec![' '; columns];
        if let Some(interval) = figure.interval {
            let (from, to) = (column(interval.low), column(interval.high));
            for cell in &mut cells[from..=to] {
                *cell = '─';
            }
            cells[from] = if self.cuts(interval.low) { '◂' } else { '├' };
            cells[to] = if self.cuts(interval.high) { '▸' } else { '┤' };
        }
        let middle = columns / 2;
        if matches!(cells[middle], ' ' | '─') {
            cells[middle] = if cells[middle] == ' ' { '│' } else { '┼' };
        }
        cells[column(figure.value)] = '●';
        cells.into_iter().collect::<String>().trim_end().to_string()
    }

    /// The labels above such lines.
    pub(super) fn labels(self, columns: usize) -> String {
        let middle = columns / 2;
        let left = format!("1/{}", self.end);
        let right = self.end.to_string();
        let mut line = left.clone();
        line.push_str(&" ".repeat(middle.saturating_sub(left.len())));
        line.push('1');
        line.push_str(&" ".repeat(columns.saturating_sub(middle + 1 + right.len())));
        line + &right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Interval;

    #[test]
    fn one_is_in_the_middle_and_halves_are_as_far_as_doubles() {
        let scale = Scale { end: 2.0 };
        assert_eq!((scale.at(1.0), scale.at(2.0), scale.at(0.5)), (0.5, 1.0, 0.0));
        assert!((scale.at(2.0_f64.sqrt()) - 0.75).abs() < 1e-12);
        assert!(scale.cuts(2.1) && scale.cuts(0.4) && !scale.cuts(2.0));
    }

    #[test]
    fn a_line_shows_value_interval_and_what_is_cut() {
        let scale = Scale { end: 2.0 };
        let figure = |value, low, high| Figure {
            value,
            interval: Some(Interval { low, high, rough: false }),
        };
        assert_eq!(scale.labels(21), "1/2       1         2");
        assert_eq!(scale.line(&Figure::bare(1.0), 21), "          ●");
        assert_eq!(scale.line(&Figure::bare(2.0), 21), "          │         ●");
        assert_eq!(scale.line(&figure(1.2, 0.9, 9.0), 21), "        ├─┼──●──────▸");
        assert_eq!(scale.line(&figure(0.5, 0.0, 0.8), 21), "●──────┤  │");
    }
}
