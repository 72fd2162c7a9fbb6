//! How long operations took: the distribution of each job on one logarithmic axis, with its
//! percentiles.

use maud::{Markup, html};
use rubus_vocabulary::result::{JobResult, LatencyBins};
use rubus_vocabulary::units::duration_ns;

use super::axis::{Axis, short_duration};
use super::jobs::{Named, folded, section};
use super::plot::n;

/// From this number of jobs on, the table is folded.
const MANY: usize = 24;
/// Width of a column of drawings, on the narrowest screen as in the narrowest table, in pixels.
const COLUMN_PX: f64 = 230.0;
/// Columns of a distribution: about as fine as the bins of a histogram over four decades.
const COLUMNS: usize = 90;
/// Height of the drawing in its own units; the uppermost are for the marks.
const HEIGHT: f64 = 40.0;
const ABOVE: f64 = 6.0;

/// The section; nothing where no latency is known.
pub fn draw(jobs: &[Named]) -> Markup {
    let times = jobs.iter().flat_map(|named| {
        let l = named.result.latency_ns;
        let shortest = named.result.latency_bins.as_ref().and_then(|b| b.up_to_ns.first().copied());
        [l.min, shortest, l.p50, l.p90, l.p99, l.p99_9, l.max]
            .into_iter()
            .flatten()
            .map(|ns| ns as f64)
    });
    let Some(axis) = Axis::log("time of one operation, logarithmic", times, short_duration) else {
        return html! {};
    };
    let table = table(jobs, &axis);
    section(
        "latency",
        "Latency",
        html! {
            p class="note" {
                "How long single operations took, all on one logarithmic scale: the higher, the more of them. "
                "p50: half of them took no longer; p99: 99 of 100. A dash: too few operations to say. The marks, "
                "from the thick one on: p50, p90, p99, p99.9, and the longest."
            }
            @if jobs.len() > MANY { (folded(&format!("The latency of all {} jobs", jobs.len()), table)) }
            @else { (table) }
        },
    )
}

fn table(jobs: &[Named], axis: &Axis) -> Markup {
    let cell = |ns: Option<u64>| ns.map_or("–".to_string(), duration_ns);
    let columns = ["p50", "p90", "p99", "p99.9", "longest"];
    html! {
        div class="scroll" role="region" aria-label="Latency of each job" tabindex="0" {
            table class="figures" role="table" {
                caption { span { "Distribution and percentiles of the latency" } }
                thead role="rowgroup" { tr role="row" {
                    th scope="col" role="columnheader" { "job" }
                    th scope="col" role="columnheader" class="chart" { (labels(axis)) }
                    @for title in columns { th scope="col" role="columnheader" class="n" { (title) } }
                } }
                tbody role="rowgroup" {
                    @for named in jobs {
                        @let l = &named.result.latency_ns;
                        tr role="row" {
                            th scope="row" role="rowheader" { (named.title) }
                            td class="chart" role="cell" { (distribution(named.result, axis)) }
                            @for (title, ns) in columns.iter().zip([l.p50, l.p90, l.p99, l.p99_9, l.max]) {
                                td class="n" role="cell" data-label=(title) { (cell(ns)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The labels of an axis for the head of a column of drawings.
pub fn labels(axis: &Axis) -> Markup {
    html! {
        span class="unseen" { "drawing" }
        div class="axis" aria-hidden="true" {
            @for tick in axis.labels_within(COLUMN_PX) {
                span style={ "left:" (n(tick.at * 100.0)) "%" } { (tick.label) }
            }
        }
    }
}

/// One distribution with its marks. Decoration: the numbers stand beside it.
fn distribution(result: &JobResult, axis: &Axis) -> Markup {
    let l = &result.latency_ns;
    let x = |ns: u64| n(axis.at(ns as f64) * 100.0);
    let marks = [l.p90, l.p99, l.p99_9];
    html! {
        svg class="row distribution" viewBox="0 0 100 40" preserveAspectRatio="none" aria-hidden="true" focusable="false" {
            @for tick in &axis.ticks {
                @let at = n(tick.at * 100.0);
                line class="grid" x1=(at) x2=(at) y1="0" y2="40" {}
            }
            @if let Some(bins) = &result.latency_bins {
                path class="below" d=(outline(&heights(bins, axis))) {}
            }
            line class="grid" x1="0" x2="100" y1="40" y2="40" {}
            @if let (Some(from), Some(to)) = (l.p50, l.max) {
                line class="span" x1=(x(from)) x2=(x(to)) y1="40" y2="40" {}
            }
            @for ns in marks.into_iter().flatten() {
                line class="tick" x1=(x(ns)) x2=(x(ns)) y1="24" y2="40" {}
            }
            @if let Some(max) = l.max {
                line class="tick max" x1=(x(max)) x2=(x(max)) y1="28" y2="40" {}
            }
            @if let Some(median) = l.p50 {
                line class="tick median" x1=(x(median)) x2=(x(median)) y1="4" y2="40" {}
            }
        }
    }
}

/// Operations per column of the drawing as shares of the fullest column.
fn heights(bins: &LatencyBins, axis: &Axis) -> Vec<f64> {
    let mut columns = vec![0.0; COLUMNS];
    let mut before: Option<u64> = None;
    for (up_to, operations) in bins.up_to_ns.iter().zip(&bins.operations) {
        // Where bins were left out the lower end is about a tenth below.
        let least = (*up_to as f64 / 1.1) as u64;
        let from = before.map_or(least, |end| end.max(least));
        before = Some(*up_to);
        let ends = [from, *up_to].map(|ns| axis.at(ns as f64) * COLUMNS as f64);
        let first = (ends[0].floor() as usize).min(COLUMNS - 1);
        let last = (ends[1].ceil() as usize).clamp(first + 1, COLUMNS);
        // A bin is spread over the columns that it reaches into.
        let width = (ends[1] - ends[0]).max(1e-9);
        for (i, column) in columns.iter_mut().enumerate().take(last).skip(first) {
            let (left, right) = (i as f64, i as f64 + 1.0);
            let part = (ends[1].min(right) - ends[0].max(left)).max(0.0) / width;
            *column += *operations as f64 * if last - first == 1 { 1.0 } else { part };
        }
    }
    let most = columns.iter().copied().fold(0.0, f64::max);
    if most > 0.0 {
        columns.iter_mut().for_each(|column| *column /= most);
    }
    columns
}

/// The outline of the columns, a step for each; what is there at all is at least a hair high.
fn outline(heights: &[f64]) -> String {
    let step = 100.0 / heights.len().max(1) as f64;
    let mut d = String::from("M0 40");
    for (i, height) in heights.iter().enumerate() {
        let height = if *height > 0.0 { (height * (HEIGHT - ABOVE)).max(1.2) } else { 0.0 };
        let y = n(HEIGHT - height);
        d.push_str(&format!("L{} {y}", n(i as f64 * step)));
        d.push_str(&format!("L{} {y}", n((i + 1) as f64 * step)));
    }
    d.push_str("L100 40Z");
    d
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis() -> Axis {
        Axis::log("", [1e3, 1e6], short_duration).expect("positive values")
    }

    #[test]
    fn every_operation_is_in_a_column() {
        let bins =
            LatencyBins { up_to_ns: vec![10_000, 11_000, 500_000], operations: vec![50, 100, 1] };
        let heights = heights(&bins, &axis());
        assert_eq!(heights.len(), COLUMNS);
        assert!(heights.contains(&1.0));
        let sum: f64 = heights.iter().sum();
        let single = heights[COLUMNS / 2..].iter().sum::<f64>() / sum;
        assert!((single - 1.0 / 151.0).abs() < 1e-6, "{single} of all");
    }

    #[test]
    fn a_single_operation_is_still_seen() {
        let d = outline(&[1.0, 0.0, 0.000_01]);
        assert!(d.contains("L66.67 38.8"), "{d}");
        assert!(d.contains("L33.33 40"), "{d}");
    }
}
