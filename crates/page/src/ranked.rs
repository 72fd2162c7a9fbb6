//! One figure of many runs on one scale: a row for each, with a bar or a dot and its interval.

use maud::{Markup, html};
use rubus_runs::gallery::Shown;
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::units::{iops, rate_si};

use super::axis::{Axis, short_count, short_rate};
use super::latency::labels;
use super::{charts, contents, glued};
use rubus_draw::words;

/// A run's row.
pub(super) struct Bar {
    /// Whose it is.
    pub name: Markup,
    pub shown: Shown,
    /// Drawn in the colour of what is narrow.
    pub is_slow: bool,
}

/// A figure and all its rows.
pub(super) struct Ranking<'a> {
    pub title: &'a str,
    /// Bytes per second, from zero; else operations per second, on a logarithmic scale.
    pub is_in_bytes: bool,
    /// What a reader must know, before the words about the scale.
    pub note: &'a str,
    /// Heading of the names.
    pub of: &'a str,
    /// In the order of the rows.
    pub bars: Vec<Bar>,
}

/// The section; empty without rows.
pub(super) fn section(ranking: &Ranking<'_>) -> Markup {
    if ranking.bars.is_empty() {
        return html! {};
    }
    let id = contents::anchor(ranking.title);
    let axis = axis(ranking);
    let scale = if ranking.is_in_bytes {
        "From zero; the whisker is the 95 % interval."
    } else {
        "The scale is logarithmic; the line is the 95 % interval."
    };
    html! {
        section aria-labelledby=(id) {
            h2 id=(id) { (ranking.title) }
            p class="note" { (ranking.note) (scale) }
            div class="scroll" role="region" aria-label={ "Table: " (ranking.title) } tabindex="0" {
                table class="figures" role="table" {
                    thead role="rowgroup" { tr role="row" {
                        th scope="col" role="columnheader" { (ranking.of) }
                        th scope="col" role="columnheader" class="chart" { (labels(&axis)) }
                        th scope="col" role="columnheader" class="n" { (unit(ranking)) }
                        th scope="col" role="columnheader" class="n" { "±" }
                        th scope="col" role="columnheader" { "outcome" }
                    } }
                    tbody role="rowgroup" {
                        @for bar in &ranking.bars { (row(bar, ranking, &axis)) }
                    }
                }
            }
        }
    }
}

fn unit(ranking: &Ranking<'_>) -> &'static str {
    if ranking.is_in_bytes { "rate" } else { "per second" }
}

fn axis(ranking: &Ranking<'_>) -> Axis {
    let ends = |estimate: Estimate| [estimate.low, estimate.value, estimate.high];
    let values = ranking.bars.iter().flat_map(|bar| ends(bar.shown.rate));
    if ranking.is_in_bytes {
        let most = values.filter(|rate| rate.is_finite()).fold(1.0, f64::max);
        return Axis::linear("", most, short_rate);
    }
    let decades = Axis::log("", values, |value| format!("{}/s", short_count(value)));
    decades.unwrap_or_else(|| Axis::linear("", 1.0, short_count))
}

fn row(bar: &Bar, ranking: &Ranking<'_>, axis: &Axis) -> Markup {
    let rate = bar.shown.rate;
    let (chart, value) = if ranking.is_in_bytes {
        (charts::bar_on(&rate, axis), rate_si(rate.value))
    } else {
        (charts::dot(&rate, axis), iops(rate.value))
    };
    let unsettled = (!bar.shown.is_settled).then_some("unsettled");
    let classes = [unsettled, bar.is_slow.then_some("narrow")];
    let classes: Vec<&str> = classes.into_iter().flatten().collect();
    html! {
        tr role="row" class=[(!classes.is_empty()).then(|| classes.join(" "))] {
            th scope="row" role="rowheader" { (bar.name) }
            td class="chart" role="cell" { (chart) }
            td class="n" role="cell" data-label=(unit(ranking)) { (glued(&value)) }
            td class="n" role="cell" data-label="±" { (words::half_width(&rate)) }
            td class="flag" role="cell" { @if !bar.shown.is_settled { "did not settle" } }
        }
    }
}
