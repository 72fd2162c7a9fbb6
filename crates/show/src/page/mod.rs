//! A run as one self-contained HTML page: no script, no network, nothing beside it.
//!
//! The verdict first, then what the device is good for, the pipes, the figures with their
//! intervals, the machine, and how to repeat it. Everything that comes from the machine or the
//! user goes through maud's escaping. Every drawing has its numbers in a table or in words beside it.

mod charts;
mod facts;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use rubus_core::result::{JobResult, Outcome, Run};
use rubus_core::units::{bytes_iec, duration_ns, iops, percent, rate_si};
use rubus_core::verdict::{Disturbance, Grade, Pipe, PipeKind, Verdict, job};

use crate::words;
use charts::{LogAxis, PipeScale};

const STYLE: &str = include_str!("style.css");

/// Forbids the page to load anything, so that what it shows is what is in the file.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// The page of a run.
pub fn render(run: &Run, verdict: &Verdict) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content={ "rubus " (run.rubus_version) };
                title { "Checkup of " (run.target.path) ", " (words::moment(&run.started)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (header(run, verdict))
                main {
                    (good_for(verdict))
                    (pipes(verdict))
                    (sentences(verdict))
                    (disturbances(run, verdict))
                    @if !run.results.is_empty() {
                        (throughput(run))
                        (latency(run))
                        (over_time(run))
                    }
                    (facts::machine(run))
                    @if !run.results.is_empty() { (facts::raw(run)) }
                    (facts::repeat(run))
                }
                footer {
                    "MB is 10" sup { "6" } " bytes, MiB is 2" sup { "20" }
                    " bytes. Made by rubus " (run.rubus_version) "; this page loads nothing and sends nothing."
                }
            }
        }
    };
    page.into_string()
}

fn header(run: &Run, verdict: &Verdict) -> Markup {
    html! {
        header {
            h1 { "Checkup of " (run.target.path) }
            p class="what" {
                @if let Some(board) = run.machine.board.model.text() { (board) " · " }
                time datetime=(run.started) { (words::moment(&run.started)) }
                " · took " (words::span(run.elapsed_s))
                " · wrote " (bytes_iec(run.bytes_written))
            }
            p class="headline" { (verdict.headline) }
            p class="certainty" { (verdict.certainty) }
        }
    }
}

fn good_for(verdict: &Verdict) -> Markup {
    if verdict.good_for.iter().all(|s| s.grade == Grade::Unknown) {
        return html! {};
    }
    html! {
        section aria-labelledby="good-for" {
            h2 id="good-for" { "What it is good for" }
            ul class="purposes" {
                @for suitability in &verdict.good_for {
                    @let word = words::grade(suitability.grade).0;
                    li class=(word) {
                        (suitability.purpose) ": " span class="grade" { (word) }
                        p { (suitability.reason) }
                    }
                }
            }
        }
    }
}

fn pipes(verdict: &Verdict) -> Markup {
    let operations: Vec<(&Pipe, f64)> = verdict
        .pipes
        .iter()
        .filter_map(|pipe| Some((pipe, pipe.demand_s.filter(|demand| *demand > 0.0)?)))
        .collect();
    let way: Vec<(&Pipe, f64)> = verdict
        .pipes
        .iter()
        .filter_map(|pipe| Some((pipe, pipe.bytes_per_second.filter(|r| r.value > 0.0)?.value)))
        .collect();
    let has_bus = way.iter().any(|(pipe, _)| pipe.kind == PipeKind::Bus);
    if operations.is_empty() && !has_bus {
        return html! {};
    }
    let capacities: Vec<f64> = operations.iter().map(|(_, demand)| 1.0 / demand).collect();
    let scale = PipeScale::of(&capacities, Some(1.0));
    html! {
        section aria-labelledby="pipes" {
            h2 id="pipes" { "The pipes" }
            @if !operations.is_empty() {
                p class="note" {
                    "Each pipe is as thick as what goes through it, compared with what applications "
                    "want in one second (dashed: just enough)."
                }
                div class="scroll" role="region" aria-labelledby="pipes" tabindex="0" {
                    table {
                        caption { span { "What the device lets through, and how long it needs for one second of application work" } }
                        thead { tr {
                            th scope="col" { "operation" }
                            th scope="col" class="chart" { "pipe" }
                            th scope="col" class="n" { "lets through" }
                            th scope="col" class="n" { "needs" }
                        } }
                        tbody {
                            @for ((pipe, demand), capacity) in operations.iter().zip(&capacities) {
                                tr class=[pipe.narrowest.then_some("narrowest")] {
                                    th scope="row" {
                                        (pipe.name)
                                        @if pipe.narrowest { " " span class="badge" { "narrowest" } }
                                    }
                                    td class="chart" {
                                        (charts::tube(*capacity, scale, pipe.narrowest))
                                        @if scale.cuts(*capacity) { span class="note" { "wider than drawn" } }
                                    }
                                    td class="n rate" { (lets_through(pipe)) }
                                    td class="n" { (words::seconds(*demand)) }
                                }
                            }
                        }
                    }
                }
            }
            @if has_bus { (way_there(&way)) }
        }
    }
}

/// The buses in the order in which bytes pass them, and what arrived at their end.
fn way_there(way: &[(&Pipe, f64)]) -> Markup {
    let rates: Vec<f64> = way.iter().map(|(_, rate)| *rate).collect();
    let scale = PipeScale::of(&rates, None);
    html! {
        h3 id="way" { "The way to the device" }
        div class="scroll" role="region" aria-labelledby="way" tabindex="0" {
            table {
                caption { span { "What each bus usually carries, and what was measured at its end" } }
                thead { tr {
                    th scope="col" { "bus or operation" }
                    th scope="col" class="chart" { "pipe" }
                    th scope="col" class="n" { "bytes per second" }
                } }
                tbody {
                    @for (pipe, rate) in way {
                        tr {
                            th scope="row" class="wrap" { (pipe.name) span class="remedy" { (pipe.note) } }
                            td class="chart" {
                                (charts::tube(*rate, scale, false))
                                @if scale.cuts(*rate) { span class="note" { "wider than drawn" } }
                            }
                            td class="n rate" {
                                @if pipe.measured { (lets_through(pipe)) }
                                @else { "about " (glued(&rate_si(*rate))) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The capacity and its interval, each kept on one line.
fn lets_through(pipe: &Pipe) -> Markup {
    let (rate, estimate) = match (&pipe.bytes_per_second, &pipe.operations_per_second) {
        (Some(rate), _) => (rate_si(rate.value), rate),
        (None, Some(rate)) => (format!("{} /s", iops(rate.value)), rate),
        (None, None) => return html! { "–" },
    };
    html! { (glued(&rate)) " " (glued(&words::plus_minus(estimate))) }
}

/// A figure whose number and unit may not be torn apart at a line's end.
fn glued(figure: &str) -> String {
    figure.replace(' ', "\u{a0}")
}

fn sentences(verdict: &Verdict) -> Markup {
    if verdict.sentences.is_empty() {
        return html! {};
    }
    html! {
        section aria-labelledby="behaves" {
            h2 id="behaves" { "How it behaves" }
            ul class="plain" { @for sentence in &verdict.sentences { li { (sentence) } } }
        }
    }
}

fn disturbances(run: &Run, verdict: &Verdict) -> Markup {
    let imprecise: Vec<&JobResult> = run
        .results
        .iter()
        .filter(|result| result.outcome != Outcome::Converged)
        .collect();
    html! {
        section aria-labelledby="disturbed" {
            h2 id="disturbed" { "What disturbed it" }
            @if verdict.disturbances.is_empty() { p { "Nothing that could be watched." } }
            @else {
                ul class="plain" {
                    @for group in words::disturbance_groups(run, verdict) { (disturbance_item(run, &group)) }
                    @if !imprecise.is_empty() {
                        li {
                            "Not as precise as wanted: "
                            @for (i, result) in imprecise.iter().enumerate() {
                                @if i > 0 { ", " }
                                (words::job_title(result)) " (" (glued(&words::plus_minus(&result.iops))) ")"
                            }
                            "."
                            span class="remedy" { "Measure longer, or when the machine and the device are quiet." }
                        }
                    }
                }
            }
        }
    }
}

/// Disturbances of one kind, with their remedy once.
fn disturbance_item(run: &Run, group: &[&Disturbance]) -> Markup {
    html! {
        li {
            @for disturbance in group {
                @let titles: Vec<String> =
                    disturbance.jobs.iter().map(|name| words::job_title_by_name(run, name)).collect();
                div {
                    (capitalised(&disturbance.what))
                    @if !titles.is_empty() { " (" (titles.join(", ")) ")" }
                    "."
                }
            }
            @if let Some(first) = group.first() {
                span class="remedy" { (capitalised(&first.remedy)) "." }
            }
        }
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// Jobs whose figure is a rate of bytes; the others are told in operations.
fn in_bytes(result: &JobResult) -> bool {
    matches!(
        result.job.as_str(),
        job::SEQUENTIAL_READ | job::SEQUENTIAL_WRITE | job::BYSTANDER_WRITE
    ) || result.block_bytes >= 1 << 18
}

fn throughput(run: &Run) -> Markup {
    let (bytes, operations): (Vec<&JobResult>, Vec<&JobResult>) =
        run.results.iter().partition(|result| in_bytes(result));
    let most = bytes
        .iter()
        .flat_map(|r| [r.bytes_per_second.value, r.bytes_per_second.high])
        .filter(|rate| rate.is_finite())
        .fold(1.0, f64::max);
    let axis = LogAxis::of(
        operations
            .iter()
            .flat_map(|r| [r.iops.low, r.iops.value, r.iops.high]),
    )
    .unwrap_or(LogAxis::ONE_DECADE);
    html! {
        section aria-labelledby="throughput" {
            h2 id="throughput" { "Throughput" }
            p class="note" { "With 95 % intervals: the true rate lies within the whisker in 95 of 100 runs." }
            @if !bytes.is_empty() {
                (rates(&bytes, "Large blocks, on one scale from zero", &html! { "rate" }, |result| {
                    charts::bar(&result.bytes_per_second, most)
                }))
            }
            @if !operations.is_empty() {
                (rates(&operations, "Small blocks, operations per second on a logarithmic scale",
                    &axis.labels(|decade| format!("{}/s", short(decade))),
                    |result| charts::dot(&result.iops, axis)))
            }
        }
    }
}

/// 10, 100, 1 k, 10 k …, without needless digits.
fn short(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{} M", v / 1e6),
        v if v >= 1e3 => format!("{} k", v / 1e3),
        v => v.to_string(),
    }
}

fn rates(
    results: &[&JobResult],
    caption: &str,
    axis: &Markup,
    chart: impl Fn(&JobResult) -> Markup,
) -> Markup {
    html! {
        div class="scroll" role="region" aria-label=(caption) tabindex="0" {
            table class="figures" {
                caption { span { (caption) } }
                thead { tr {
                    th scope="col" { "job" }
                    th scope="col" class="chart" { (axis) }
                    th scope="col" class="n" { "MB/s or kB/s" }
                    th scope="col" class="n" { "per second" }
                    th scope="col" class="n" { "±" }
                    th scope="col" { "outcome" }
                } }
                tbody { @for result in results { (rate_row(result, chart(result))) } }
            }
        }
    }
}

fn rate_row(result: &JobResult, chart: Markup) -> Markup {
    let unsettled = result.outcome == Outcome::Inconclusive;
    html! {
        tr class=[unsettled.then_some("unsettled")] {
            th scope="row" { (words::job_title(result)) }
            td class="chart" { (chart) }
            td class="n" { (rate_si(result.bytes_per_second.value)) }
            td class="n" { (iops(result.iops.value)) }
            td class="n" { (words::plus_minus(&result.iops)) }
            td class="flag" {
                @if result.outcome != Outcome::Converged { (words::outcome(result.outcome)) }
            }
        }
    }
}

fn latency(run: &Run) -> Markup {
    let times = run.results.iter().flat_map(|r| {
        let l = r.latency_ns;
        [l.p50, l.p90, l.p99, l.p99_9, l.max]
            .into_iter()
            .flatten()
            .map(|ns| ns as f64)
    });
    let Some(axis) = LogAxis::of(times) else {
        return html! {};
    };
    let cell = |ns: Option<u64>| ns.map_or("–".to_string(), duration_ns);
    html! {
        section aria-labelledby="latency" {
            h2 id="latency" { "Latency" }
            p class="note" {
                "How long single operations took. p50: half of them took no longer; p99: 99 of 100. "
                "A dash: too few operations to say. The last mark is the longest."
            }
            div class="scroll" role="region" aria-labelledby="latency" tabindex="0" {
                table class="figures" {
                    caption { span { "Percentiles of the latency, drawn on a logarithmic scale" } }
                    thead { tr {
                        th scope="col" { "job" }
                        th scope="col" class="chart" { (axis.labels(whole_duration)) }
                        @for title in ["p50", "p90", "p99", "p99.9", "longest"] {
                            th scope="col" class="n" { (title) }
                        }
                    } }
                    tbody {
                        @for result in &run.results {
                            @let l = &result.latency_ns;
                            tr {
                                th scope="row" { (words::job_title(result)) }
                                td class="chart" { (charts::percentiles(l, axis)) }
                                @for ns in [l.p50, l.p90, l.p99, l.p99_9, l.max] {
                                    td class="n" { (cell(ns)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// "100 µs", "1 ms", "10 s" for a decade.
fn whole_duration(ns: f64) -> String {
    match ns {
        v if v >= 1e9 => format!("{} s", v / 1e9),
        v if v >= 1e6 => format!("{} ms", v / 1e6),
        v if v >= 1e3 => format!("{} µs", v / 1e3),
        v => format!("{v} ns"),
    }
}

fn over_time(run: &Run) -> Markup {
    let curves: Vec<_> = run
        .results
        .iter()
        .filter_map(|r| Some((r, r.series.as_ref()?)))
        .collect();
    if curves.is_empty() {
        return html! {};
    }
    html! {
        section aria-labelledby="over-time" {
            h2 id="over-time" { "Over time" }
            p class="note" {
                "Each with its own scale; dashed the mean. Bands are stalls: times in which (nearly) nothing moved."
            }
            div class="many" {
                @for (i, (result, series)) in curves.iter().enumerate() {
                    figure {
                        figcaption {
                            (words::job_title(result)) ": " (glued(&rate_si(result.bytes_per_second.value))) " "
                            (glued(&words::plus_minus(&result.bytes_per_second)))
                            @for stall in &result.stalls { span class="note" {
                                "stalled at " (format!("{:.1} s", stall.start_s)) " for "
                                (duration_ns((stall.length_ms * 1e6) as u64)) ": "
                                (words::stall_cause(stall.cause))
                            } }
                        }
                        (charts::series(result, series, &format!("curve-{i}")))
                    }
                }
            }
        }
    }
}

/// Percent of a share for a table cell.
fn share(value: f64) -> String {
    percent(value)
}

#[cfg(test)]
mod tests;
