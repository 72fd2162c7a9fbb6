//! What the verdict says: good for what, the pipes, how it behaves, what disturbed it.

use maud::{Markup, html};
use rubus_verdict::pipes::{Picture, WidthScale};
use rubus_verdict::verdict::{Disturbance, Grade, Pipe, PipeKind, Verdict};
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::result::{JobResult, Outcome, Run};
use rubus_vocabulary::units::{iops, rate_si};

use super::charts::{self, PipeScale};
use super::glued;
use super::jobs::{folded, section};
use super::picture;
use super::prose::coded;
use rubus_draw::next_step;
use rubus_draw::quote::typed;
use rubus_draw::text::capitalized;
use rubus_draw::words;
use rubus_verdict::text::checkup::wanted;
use rubus_verdict::text::disturbances;

/// What to do next, right below the answer.
pub fn next_step(step: &NextStep) -> Markup {
    html! {
        p class="why" {
            b { (next_step::TITLE) }
            @match &step.command {
                Some(command) => { code { (typed(command)) } " (" (coded(&step.words)) ")" }
                None => { (coded(&next_step::sentence(step))) }
            }
        }
    }
}

pub fn good_for(verdict: &Verdict) -> Markup {
    if verdict.good_for.iter().all(|s| s.grade == Grade::Unknown) {
        return html! {};
    }
    html! {
        section aria-labelledby="good-for" {
            h2 id="good-for" { "What it is good for" }
            ul class="purposes" {
                @for suitability in &verdict.good_for {
                    @let word = disturbances::grade(suitability.grade).0;
                    li class=(word) {
                        (suitability.purpose) ": " span class="grade" { (word) }
                        p { (suitability.reason) }
                    }
                }
            }
        }
    }
}

/// The stages with a capacity in bytes per second, buses and operations.
fn way_of(verdict: &Verdict) -> Vec<(&Pipe, f64)> {
    let with_rate = verdict
        .pipes
        .iter()
        .filter_map(|pipe| Some((pipe, pipe.bytes_per_second.filter(|r| r.value > 0.0)?.value)));
    with_rate.collect()
}

fn has_bus(way: &[(&Pipe, f64)]) -> bool {
    way.iter().any(|(pipe, _)| pipe.kind == PipeKind::Bus)
}

/// The buses alone, for runs that the verdict has no measure for.
pub fn way(verdict: &Verdict) -> Markup {
    let way = way_of(verdict);
    if !has_bus(&way) {
        return html! {};
    }
    section("way-to-the-device", "The way to the device", way_there(&way))
}

/// What the device lets through, and the buses before it.
pub fn pipes(run: &Run, verdict: &Verdict) -> Markup {
    let operations: Vec<(&Pipe, f64)> = verdict
        .pipes
        .iter()
        .filter_map(|pipe| Some((pipe, pipe.demand_s.filter(|demand| *demand > 0.0)?)))
        .collect();
    let way = way_of(verdict);
    if operations.is_empty() && !has_bus(&way) {
        return html! {};
    }
    html! {
        section aria-labelledby="pipes" {
            h2 id="pipes" { "The pipes" }
            @if let Some(picture) = Picture::of(run) {
                (picture::meaning())
                (picture::draw(&picture, WidthScale::of(&[&picture])))
            }
            @if !operations.is_empty() {
                div class="scroll" role="region" aria-label="What the device lets through" tabindex="0" {
                    table class="figures" role="table" {
                        caption { span { "What the device lets through, and how long its part of the reference work keeps it busy" } }
                        thead role="rowgroup" { tr role="row" {
                            th scope="col" role="columnheader" { "operation" }
                            th scope="col" role="columnheader" class="n" { "lets through" }
                            th scope="col" role="columnheader" class="n" { "wanted" }
                            th scope="col" role="columnheader" class="n" { "needs" }
                        } }
                        tbody role="rowgroup" {
                            @for (pipe, demand) in &operations {
                                tr role="row" class=[pipe.narrowest.then_some("narrowest")] {
                                    th scope="row" role="rowheader" {
                                        (pipe.name)
                                        @if pipe.narrowest { " " span class="badge" { "narrowest" } }
                                    }
                                    td class="n rate" role="cell" { (lets_through(pipe)) }
                                    td class="n" role="cell" data-label="wanted" { (glued(&wanted(pipe, *demand))) }
                                    td class="n" role="cell" data-label="needs" { (glued(&busy(pipe, *demand))) }
                                }
                            }
                        }
                    }
                }
            }
            (works(verdict))
            @if has_bus(&way) {
                h3 id="way-to-the-device" { "The way to the device" }
                (way_there(&way))
            }
        }
    }
}

/// "8.5 min (7.2 min to 10 min)".
fn busy(pipe: &Pipe, demand_s: f64) -> String {
    let range = pipe.demand_range();
    let range = range.map(|(low_s, high_s)| format!(" ({})", words::between(low_s, high_s)));
    words::roughly(demand_s) + &range.unwrap_or_default()
}

/// How long each piece of the reference work keeps the device busy.
fn works(verdict: &Verdict) -> Markup {
    if verdict.works.is_empty() {
        return html! {};
    }
    html! {
        div class="scroll" role="region" aria-label="The pieces of the reference work" tabindex="0" {
            table class="figures" role="table" {
                caption { span { "How long each piece of the reference work keeps the device busy" } }
                thead role="rowgroup" { tr role="row" {
                    th scope="col" role="columnheader" { "work" }
                    th scope="col" role="columnheader" class="n" { "busy" }
                    th scope="col" role="columnheader" { "mostly with" }
                } }
                tbody role="rowgroup" {
                    @for piece in &verdict.works {
                        tr role="row" {
                            th scope="row" role="rowheader" { (piece.work) }
                            td class="n" role="cell" data-label="busy" {
                                (glued(&words::roughly(piece.busy_s.value)))
                                " (" (words::between(piece.busy_s.low, piece.busy_s.high)) ")"
                            }
                            td role="cell" data-label="mostly with" { (piece.mostly) }
                        }
                    }
                }
            }
        }
    }
}

/// The buses in the order in which bytes pass them, and what arrived at their end.
fn way_there(way: &[(&Pipe, f64)]) -> Markup {
    let rates: Vec<f64> = way.iter().map(|(_, rate)| *rate).collect();
    let scale = PipeScale::of(&rates, None);
    html! {
        div class="scroll" role="region" aria-label="What each bus carries" tabindex="0" {
            table class="figures" role="table" {
                caption { span { "What each bus usually carries, and what was measured at its end" } }
                thead role="rowgroup" { tr role="row" {
                    th scope="col" role="columnheader" { "bus or operation" }
                    th scope="col" role="columnheader" class="chart words" { "pipe" }
                    th scope="col" role="columnheader" class="n" { "bytes per second" }
                } }
                tbody role="rowgroup" {
                    @for (pipe, rate) in way {
                        tr role="row" {
                            th scope="row" role="rowheader" class="wrap" { (pipe.name) span class="remedy" { (pipe.note) } }
                            td class="chart" role="cell" {
                                (charts::tube(*rate, scale, false))
                                @if scale.cuts(*rate) { span class="note" { "wider than drawn" } }
                            }
                            td class="n rate" role="cell" {
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

/// What else there is to say.
pub fn sentences(sentences: &[String]) -> Markup {
    if sentences.is_empty() {
        return html! {};
    }
    html! {
        section aria-labelledby="behaviour" {
            h2 id="behaviour" { "How it behaves" }
            ul class="plain" { @for sentence in sentences { li { (coded(sentence)) } } }
        }
    }
}

pub fn disturbances(run: &Run, verdict: &Verdict) -> Markup {
    let imprecise: Vec<&JobResult> =
        run.results.iter().filter(|result| result.outcome != Outcome::Converged).collect();
    html! {
        section aria-labelledby="disturbances" {
            h2 id="disturbances" { "What disturbed it" }
            @if verdict.disturbances.is_empty() { p { "Nothing that could be watched." } }
            @else {
                ul class="plain" {
                    @for group in disturbances::disturbance_groups(run, verdict) { (disturbance_item(run, &group)) }
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

/// Number of disturbances of one kind shown at once; the others are folded.
const TOLD: usize = 3;

/// Disturbances of one kind, with their remedy once.
fn disturbance_item(run: &Run, group: &[&Disturbance]) -> Markup {
    // One more is told rather than folded.
    let (told, more) =
        if group.len() > TOLD + 1 { group.split_at(TOLD) } else { (group, &[] as &[&Disturbance]) };
    html! {
        li {
            @for disturbance in told { (what_happened(run, disturbance)) }
            @if !more.is_empty() {
                (folded(&format!("{} more like it", more.len()), html! {
                    @for disturbance in more { (what_happened(run, disturbance)) }
                }))
            }
            @if let Some(first) = group.first() {
                span class="remedy" { (coded(&capitalized(&first.remedy))) "." }
            }
        }
    }
}

/// One disturbance with the jobs that it concerns.
fn what_happened(run: &Run, disturbance: &Disturbance) -> Markup {
    let titles: Vec<String> =
        disturbance.jobs.iter().map(|name| words::job_title_by_name(run, name)).collect();
    html! {
        div {
            (coded(&capitalized(&disturbance.what)))
            @if !titles.is_empty() { " (" (titles.join(", ")) ")" }
            "."
        }
    }
}
