//! Advice as a page: the answer, the current pipe and the best one to scale, what each candidate gives, single subjects, compression
//! by link.

use maud::{Markup, html};
use rubus_advise::advice::picture::of_candidate;
use rubus_advise::advice::{
    ALIKE, Advice, Basis, Candidate, Curve, LEGEND, UNSETTLED, WORTH_A_CHANGE,
};
use rubus_machine::purpose::{Purpose, What};
use rubus_verdict::pipes::{Picture, WidthScale};
use rubus_vocabulary::units::{iops, percent, rate_si};

use super::charts::{self, PipeScale};
use super::jobs::{folded, section};
use super::prose::{coded, risk};
use super::{data, glued, headlines, picture, reservation, shell, verdict};
use rubus_advise::text::{
    FIRST, PAYS, REFUSED, is_mended_by, is_recommended, measurement, obstacles,
};
use rubus_draw::quote::typed;
use rubus_draw::words;

/// The page. `version` is this program's.
pub fn render(advice: &Advice, version: &str) -> String {
    let title = format!("Advice for {}: {}", advice.purpose.words(), advice.machine);
    let (headline, why) = advice.because.split_at(advice.because.len().min(1));
    let header = html! {
        h1 { (title) }
        @if let Some(from) = &advice.from { p class="what" { "from " (from) } }
        (headlines(headline, reservation::of_advice(advice).as_deref(), None))
        (verdict::next_step(&advice.next))
        @for sentence in why { p class="why" { (coded(sentence)) } }
    };
    let main = html! {
        (to_do(advice))
        (pipes(advice))
        (candidates(advice))
        (subjects(advice))
        @if let Some(curve) = &advice.curve { (compression(curve)) }
        (unknown(advice))
    };
    shell(&title, version, header, main, data::embed_json(advice))
}

fn to_do(advice: &Advice) -> Markup {
    let change = advice.candidates.first().filter(|best| !best.is_now);
    let risks = change.map_or(&[][..], |best| &best.risks);
    // A risk stands alone, with its label, also where the sentence has it.
    let mut sentence = advice.to_do.clone().unwrap_or_default();
    for risk in risks {
        sentence = sentence.replace(risk.as_str(), "");
    }
    // Without a command it is the next step, below the answer; of what stays there is no more to do than that step.
    let is_told = advice.next.command.is_none() || change.is_none();
    let sentence = if is_told { "" } else { sentence.trim() };
    // What the next step takes away is in no way of the plan behind it.
    let left = advice.obstacles.iter().filter(|obstacle| !is_mended_by(&advice.next, obstacle));
    let left: Vec<String> = left.cloned().collect();
    if sentence.is_empty() && risks.is_empty() && left.is_empty() {
        return html! {};
    }
    section(
        "to-do",
        "Before you do it",
        html! {
            @if let Some(before) = obstacles(&left) { p { (REFUSED) ": " (coded(&before)) } }
            @if !sentence.is_empty() { p { (coded(sentence)) } }
            @for sentence in risks { (risk(sentence)) }
        },
    )
}

/// Now against the best, stage by stage, on one scale.
fn pipes(advice: &Advice) -> Markup {
    let drawn: Vec<(&str, &Candidate, Picture)> = shown(advice)
        .into_iter()
        .filter_map(|(title, candidate)| Some((title, candidate, of_candidate(candidate)?)))
        .collect();
    if drawn.is_empty() {
        return html! {};
    }
    let pictures: Vec<&Picture> = drawn.iter().map(|(_, _, picture)| picture).collect();
    let scale = WidthScale::of(&pictures);
    section(
        "pipes",
        "The pipes, on one scale",
        html! {
            p class="note" {
                "What work passes on its way from the program to the disk. Each stage is as thick as what it lets \
                 through of the work that takes most of the time there, compared with what one second needs of it (dashed: just \
                 enough)."
            }
            @for (title, candidate, drawing) in &drawn {
                h3 { (title) ": " (candidate.title().0) @if let Some(what) = candidate.title().1 { ", " (what) } }
                p class="note" { (most_of_the_time(advice.purpose, candidate)) }
                (picture::draw(drawing, scale))
            }
        },
    )
}

/// The candidates whose pipes are drawn, each with what it is.
fn shown(advice: &Advice) -> Vec<(&'static str, &Candidate)> {
    let Some(best) = advice.candidates.first() else {
        return Vec::new();
    };
    match advice.now() {
        Some(_) if best.is_now => vec![("Now, and kept", best)],
        Some(now) => vec![("Now", now), ("Recommended", best)],
        None => vec![("Recommended", best)],
    }
}

/// What the stages are drawn for, and what comes through them.
fn most_of_the_time(purpose: Purpose, candidate: &Candidate) -> String {
    let Some(most) = candidate.largest() else {
        return String::new();
    };
    let basis = candidate.basis.of(most.what, most.in_flight);
    let rate = if most.what.is_in_order() {
        rate_si(most.per_second.value)
    } else {
        format!("{} /s", iops(most.per_second.value))
    };
    let flight = match (most.what.is_in_order(), most.in_flight) {
        (true, _) => String::new(),
        (false, 1) => ", one at a time".into(),
        (false, many) => format!(", {many} at a time"),
    };
    // What waits for one answer after the other fills no pipe.
    let waits = candidate.pipes.first().filter(|pipe| pipe.utilisation < FULL).map(|pipe| {
        let busy = percent(pipe.utilisation);
        format!("; each waits for its answer, so {} is busy {busy} of the time", pipe.name)
    });
    format!(
        "Most of its time, {} of {}, goes to {}{flight}: {}{}.",
        glued(&basis.figure(&words::seconds(most.seconds.value))),
        glued(&candidate.basis.time_s.figure(&words::seconds(candidate.time_s.value))),
        match (purpose, most.what) {
            (Purpose::Swap, What::RandomRead) => "pages in",
            (Purpose::Swap, What::RandomWrite) => "pages out",
            (_, what) => what.words(),
        },
        glued(&basis.figure(&rate)),
        waits.unwrap_or_default()
    )
}

/// A pipe that is this busy is the limit.
const FULL: f64 = 0.9;

/// Before and after and all that lies between, on one scale: a pipe is as thick as the work that goes through it in a second.
fn candidates(advice: &Advice) -> Markup {
    if advice.candidates.is_empty() {
        return html! {};
    }
    let capacities: Vec<f64> =
        advice.candidates.iter().map(|candidate| 1.0 / candidate.time_s.value.max(1e-6)).collect();
    let scale = PipeScale::of(&capacities, Some(1.0));
    let mut by_time: Vec<(&Candidate, f64)> =
        advice.candidates.iter().zip(capacities.iter().copied()).collect();
    by_time.sort_by(|a, b| a.0.time_s.value.total_cmp(&b.0.time_s.value));
    section(
        "candidates",
        "What it could be",
        html! {
            p class="note" {
                "Each pipe is as thick as the work that goes through it in a second (dashed: just enough). "
                "Time for " (advice.unit) ". " (LEGEND) "; " (UNSETTLED) "."
            }
            p class="note" { (order(advice.purpose)) }
            div class="scroll" role="region" aria-label="Table of candidates" tabindex="0" {
                table class="figures slim" role="table" {
                    caption { span { "What each candidate lets through, and what it is expected to give" } }
                    thead role="rowgroup" { tr role="row" {
                        th scope="col" role="columnheader" { "candidate" }
                        th scope="col" role="columnheader" class="chart words" { "pipe" }
                        th scope="col" role="columnheader" class="n" { "takes" }
                        @for title in titles(advice.purpose) {
                            th scope="col" role="columnheader" class="n" { (title) }
                        }
                        th scope="col" role="columnheader" class="n" { "costs" }
                    } }
                    tbody role="rowgroup" {
                        @for (candidate, capacity) in by_time {
                            (row(advice, candidate, capacity, scale))
                        }
                    }
                }
            }
            (sources(advice))
        },
    )
}

/// By what they are ranked, as docs/explanation/advise.md has it at length.
fn order(purpose: Purpose) -> String {
    format!(
        "The fastest stands first. Recommended is what is surely faster, its range of times {} below the other's. Of those that are \
         alike, what has to be bought and may be no faster than now comes last. Of the rest comes first what needs no other machine, \
         then what costs less, then what risks less, then what has the shorter worst case. What there is now comes before all that is not \
         {WORTH_A_CHANGE} times as fast, and before all else where it takes less than {}, which is enough.",
        percent(ALIKE - 1.0),
        glued(&words::seconds(purpose.enough_s()))
    )
}

/// Where each candidate's figures come from, out of the way of the figures.
fn sources(advice: &Advice) -> Markup {
    html! {
        (folded("Where the figures come from", html! {
            ul {
                @for candidate in &advice.candidates {
                    li { b { (candidate.label()) } ": " (coded(&candidate.source)) }
                }
            }
        }))
    }
}

fn titles(purpose: Purpose) -> [&'static str; 4] {
    match purpose {
        Purpose::Swap => ["pages in", "pages out", "carries", "processor"],
        _ => ["in order", "random reads", "random writes", "commits"],
    }
}

fn row(advice: &Advice, candidate: &Candidate, capacity: f64, scale: PipeScale) -> Markup {
    let purpose = advice.purpose;
    let figures = &candidate.figures;
    let basis = &candidate.basis;
    let per_second = |basis: Basis, value: f64| basis.figure(&format!("{} /s", iops(value)));
    let cells = match purpose {
        Purpose::Swap => [
            per_second(basis.random_read, figures.random_read.value),
            per_second(basis.random_write, figures.random_write.value),
            candidate.swap.map_or("?".into(), |swap| {
                basis.carries.figure(&format!("{:.2} × memory", swap.carries.value))
            }),
            basis.cpu_share.figure(&percent(candidate.cpu_share.value)),
        ],
        _ => [
            basis.sequential_read.figure(&rate_si(figures.sequential_read.value)),
            per_second(basis.random_read, figures.random_read.value),
            per_second(basis.random_write, figures.random_write.value),
            per_second(basis.commits, figures.commits.value),
        ],
    };
    let narrowest = candidate.pipes.first();
    html! {
        tr role="row" class=[candidate.is_now.then_some("narrowest")] {
            th scope="row" role="rowheader" class="wrap" {
                @let (label, what) = candidate.title();
                (label)
                @if candidate.is_now { " " span class="badge" { "now" } }
                @if is_recommended(advice, candidate) { " " span class="badge" { "recommended" } }
                @if let Some(what) = what { span class="remedy" { (what) } }
                @if let (Some(pipe), Some(most)) = (narrowest, candidate.largest()) {
                    span class="remedy" {
                        "narrowest: " (pipe.name) " at " (most.what.words())
                        @if let Some(deep) = most.deep() { ", " (basis.of(most.what, most.in_flight).figure(&deep)) }
                    }
                }
            }
            td class="chart" role="cell" {
                (charts::tube(capacity, scale, candidate.is_now))
                @if scale.cuts(capacity) { span class="note" { "wider than drawn" } }
            }
            td class="n rate" role="cell" data-label="takes" {
                (glued(&basis.time_s.figure(&words::seconds(candidate.time_s.value)))) " "
                span class="remedy" {
                    @if candidate.time_s.is_known() {
                        (glued(&words::seconds(candidate.time_s.low))) " "
                        (glued(&format!("to {}", words::seconds(candidate.time_s.high))))
                    } @else { "not known within a factor of 10" }
                }
            }
            @for (title, cell) in titles(purpose).iter().zip(cells) {
                td class="n" role="cell" data-label=(title) { (glued(&cell)) }
            }
            td class="n" role="cell" data-label="costs" {
                @if candidate.euros == (0, 0) { "–" }
                @else { (glued(&basis.euros.figure(&format!("{} to {}", candidate.euros.0, candidate.euros.1)))) " EUR" }
            }
        }
    }
}

fn subjects(advice: &Advice) -> Markup {
    if advice.subjects.is_empty() {
        return html! {};
    }
    section(
        "other-advice",
        "Other advice",
        html! {
            ul {
                @for subject in &advice.subjects {
                    li {
                        b { (subject.name) } ": " (coded(&subject.advice))
                        @if let Some(before) = obstacles(&subject.obstacles) {
                            span class="remedy" { (FIRST) ": " (coded(&before)) }
                        }
                        @if let Some(command) = &subject.command { span class="remedy" { code { (typed(command)) } } }
                    }
                }
            }
        },
    )
}

/// A table, since the numbers are what is looked for: the row of one's link, and the best in it.
fn compression(curve: &Curve) -> Markup {
    let Some(first) = curve.points.first() else {
        return html! {};
    };
    section(
        "compression",
        "Compression by link",
        html! {
            p class="note" {
                (coded(&curve.source)) "; " (curve.cores) " cores; bytes of files written per second, and below up to which link each method pays: \
                for writing, for reading, and as this purpose does both." }
            div class="scroll" role="region" aria-label="Rates of each method by link" tabindex="0" {
                table role="table" {
                    thead role="rowgroup" { tr role="row" {
                        th scope="col" role="columnheader" { "link" }
                        @for rated in &first.writes { th scope="col" role="columnheader" class="n" { (rated.method) } }
                        th scope="col" role="columnheader" { "best" }
                    } }
                    tbody role="rowgroup" {
                        @for point in &curve.points {
                            tr role="row" {
                                th scope="row" role="rowheader" { (glued(&rate_si(point.link_bytes_per_second))) }
                                @for rated in &point.writes {
                                    td class="n" role="cell" {
                                        @let rate = rate_si(rated.bytes_per_second.value);
                                        @let rate = if rated.method == "none" { rate } else { curve.basis.figure(&rate) };
                                        @let rate = glued(&rate);
                                        @if rated.method == point.best { b { (rate) } } @else { (rate) }
                                    }
                                }
                                td role="cell" { (point.best) }
                            }
                        }
                        @for (title, of) in PAYS {
                            tr role="row" {
                                th scope="row" role="rowheader" { (title) }
                                td role="cell" {}
                                @for pays in &curve.break_even {
                                    td class="n" role="cell" {
                                        @match of(pays) {
                                            Some(link) => { (glued(&curve.basis.figure(&rate_si(link)))) }
                                            None => { "–" }
                                        }
                                    }
                                }
                                td role="cell" {}
                            }
                        }
                    }
                }
            }
        },
    )
}

fn unknown(advice: &Advice) -> Markup {
    if advice.unknown.is_empty() {
        return html! {};
    }
    section(
        "not-known",
        "What is not known",
        html! {
            ul {
                @for unknown in &advice.unknown {
                    li {
                        (coded(&unknown.what))
                        @if let Some(measurement) = measurement(unknown) {
                            span class="remedy" { code { (measurement) } }
                        }
                    }
                }
            }
        },
    )
}
