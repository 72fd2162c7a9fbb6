//! Rates of jobs as bars or points with their intervals, those that are compared on one scale.

use maud::{Markup, html};
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::result::{JobResult, Outcome};
use rubus_vocabulary::units::{iops, rate_si};

use super::axis::{Axis, short_count, short_rate};
use super::charts;
use super::glued;
use super::jobs::{Named, section};
use super::latency::labels;
use rubus_draw::words;

/// Blocks from here on are told in bytes; smaller ones in operations.
const LARGE: u32 = 1 << 18;

/// The section of all jobs that have no drawing of their own.
pub fn draw(jobs: &[Named], drawn_elsewhere: &[&str]) -> Markup {
    let shown = jobs.iter().filter(|named| !drawn_elsewhere.contains(&named.result.job.as_str()));
    let (bytes, operations): (Vec<&Named>, Vec<&Named>) = shown.partition(|n| in_bytes(n.result));
    if bytes.is_empty() && operations.is_empty() {
        return html! {};
    }
    let ends = |estimate: &Estimate| [estimate.low, estimate.value, estimate.high];
    let rates = bytes.iter().flat_map(|n| ends(&n.result.bytes_per_second));
    let most = rates.filter(|rate| rate.is_finite()).fold(1.0, f64::max);
    let from_zero = Axis::linear("", most, short_rate);
    let counts = operations.iter().flat_map(|n| ends(&n.result.iops));
    let decades = Axis::log("", counts, |v| format!("{}/s", short_count(v)));
    section(
        "throughput",
        "Throughput",
        html! {
            p class="note" { "With 95\u{a0}% intervals: the true rate lies within the whisker in 95 of 100 runs." }
            @if !bytes.is_empty() {
                (table(&bytes, "Large blocks, on one scale from zero", &from_zero, |result| {
                    charts::bar_on(&result.bytes_per_second, &from_zero)
                }))
            }
            @if !operations.is_empty() {
                @let decades = decades.unwrap_or_else(|| Axis::linear("", 1.0, short_count));
                (table(&operations, "Operations per second, on one logarithmic scale", &decades, |result| {
                    charts::dot(&result.iops, &decades)
                }))
            }
        },
    )
}

/// Jobs whose figure is a rate of bytes; the others are told in operations.
fn in_bytes(result: &JobResult) -> bool {
    result.block_bytes >= LARGE && !result.operation.is_of_file()
}

fn table(
    jobs: &[&Named],
    caption: &str,
    axis: &Axis,
    chart: impl Fn(&JobResult) -> Markup,
) -> Markup {
    html! {
        div class="scroll" role="region" aria-label=(caption) tabindex="0" {
            table class="figures" role="table" {
                caption { span { (caption) } }
                thead role="rowgroup" { tr role="row" {
                    th scope="col" role="columnheader" { "job" }
                    th scope="col" role="columnheader" class="chart" { (labels(axis)) }
                    th scope="col" role="columnheader" class="n" { "rate" }
                    th scope="col" role="columnheader" class="n" { "per second" }
                    th scope="col" role="columnheader" class="n" { "±" }
                    th scope="col" role="columnheader" { "outcome" }
                } }
                tbody role="rowgroup" { @for named in jobs { (row(named, chart(named.result))) } }
            }
        }
    }
}

fn row(named: &Named, chart: Markup) -> Markup {
    let result = named.result;
    let unsettled = result.outcome == Outcome::Inconclusive;
    let moves = result.bytes_per_second.value > 0.0 || result.block_bytes > 0;
    html! {
        tr role="row" class=[unsettled.then_some("unsettled")] {
            th scope="row" role="rowheader" { (named.title) }
            td class="chart" role="cell" { (chart) }
            td class="n" role="cell" data-label="rate" {
                @if moves { (glued(&rate_si(result.bytes_per_second.value))) } @else { "–" }
            }
            td class="n" role="cell" data-label="per second" { (glued(&iops(result.iops.value))) }
            td class="n" role="cell" data-label="±" { (words::half_width(&result.iops)) }
            td class="flag" role="cell" {
                @if result.outcome != Outcome::Converged { (words::outcome(result.outcome)) }
            }
        }
    }
}
