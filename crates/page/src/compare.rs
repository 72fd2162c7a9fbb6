//! A comparison as one self-contained page: what differs first, then the ratios on one scale, then
//! the figures.

use maud::{Markup, html};
use rubus_runs::compare::{Alone, Comparison, Figure, Measure};
use rubus_verdict::pipes::{Picture, WidthScale};

use super::data::embed_json;
use super::prose::coded;
use super::{contents, headlines, picture, reservation, shell, verdict};
use rubus_draw::style::Tone;
use rubus_runs::text::compare::{
    QUANTITIES, Quantity, Scale, headline, interval, legend, ratio, subject_line, word,
};

/// The page of a comparison.
pub fn render(comparison: &Comparison) -> String {
    let names: Vec<&str> = comparison.subjects.iter().map(|s| s.name.as_str()).collect();
    let title = format!("Comparison of {}", names.join(", "));
    shell(&title, "", header(comparison, &title), main(comparison), embed_json(comparison))
}

fn header(comparison: &Comparison, title: &str) -> Markup {
    html! {
        h1 { (title) }
        @for place in 1..comparison.subjects.len() {
            @if !comparison.rows.is_empty() {
                (headlines(&[headline(comparison, place)], reservation::of_comparison(comparison, place).as_deref(), None))
            }
        }
        (verdict::next_step(&comparison.next))
    }
}

fn main(comparison: &Comparison) -> Markup {
    html! {
        (subjects(comparison))
        (differences(comparison))
        (doubts(comparison))
        @if !comparison.rows.is_empty() {
            (pipes(comparison))
            (drawings(comparison))
            @for quantity in &QUANTITIES { (figures(comparison, quantity)) }
            p class="note" { (legend(comparison)) }
        }
        (alone(comparison))
    }
}

fn subjects(comparison: &Comparison) -> Markup {
    html! {
        section aria-labelledby="compared" {
            h2 id="compared" { "What was compared" }
            dl {
                @for place in 0..comparison.subjects.len() {
                    dt { @if place == 0 { "baseline" } @else { "against" } }
                    dd { (subject_line(comparison, place)) }
                }
            }
        }
    }
}

fn differences(comparison: &Comparison) -> Markup {
    html! {
        section aria-labelledby="differences" {
            h2 id="differences" { "What differs" }
            @if comparison.differences.is_empty() {
                p { "Board, device, settings and versions are the same, as far as known." }
            } @else {
                div class="scroll" role="region" aria-label="Table of differences" tabindex="0" {
                    table {
                        thead { tr {
                            th scope="col" { "what" }
                            @for subject in &comparison.subjects { th scope="col" { (subject.name) } }
                        } }
                        tbody {
                            @for difference in &comparison.differences { tr {
                                th scope="row" { (difference.what) }
                                @for value in &difference.values {
                                    td { (value.as_deref().unwrap_or("–")) }
                                }
                            } }
                        }
                    }
                }
            }
        }
    }
}

/// The pipes of all on one scale.
fn pipes(comparison: &Comparison) -> Markup {
    let pictures = comparison.pictures();
    if pictures.len() < 2 {
        return html! {};
    }
    let each: Vec<&Picture> = pictures.iter().map(|(_, picture)| *picture).collect();
    let scale = WidthScale::of(&each);
    html! {
        section aria-labelledby="pipes" {
            h2 id="pipes" { "The pipes, on one scale" }
            (picture::meaning())
            @for (name, picture) in &pictures {
                h3 { (name) }
                (picture::draw(picture, scale))
            }
        }
    }
}

fn doubts(comparison: &Comparison) -> Markup {
    if comparison.doubts.is_empty() {
        return html! {};
    }
    html! {
        section aria-labelledby="disturbances" {
            h2 id="disturbances" { "What disturbed them" }
            ul class="plain" {
                @for doubt in &comparison.doubts {
                    li {
                        (comparison.subjects[doubt.subject].name)
                        @if !doubt.is_of_all { " only" } ": " (coded(&doubt.what))
                        @if !doubt.jobs.is_empty() {
                            span class="remedy" { (doubt.jobs.join(", ")) }
                        }
                    }
                }
            }
        }
    }
}

/// The ratios of the throughput, one table per subject, all with the same scale.
fn drawings(comparison: &Comparison) -> Markup {
    let scale = Scale::of(comparison);
    html! {
        section aria-labelledby="throughput-ratios" {
            h2 id="throughput-ratios" { "Throughput, as a ratio to " (comparison.subjects[0].name) }
            p class="note" {
                "Every bar begins at 1 and has the same logarithmic scale, from 1/" (scale.end()) " to "
                (scale.end()) "; the line is the 95\u{a0}% interval."
            }
            @for place in 1..comparison.subjects.len() {
                div class="scroll" role="region" aria-label={ "Ratios of " (comparison.subjects[place].name) } tabindex="0" {
                    table class="figures ratios" role="table" {
                        caption { span { (comparison.subjects[place].name) } }
                        thead role="rowgroup" { tr role="row" {
                            th scope="col" role="columnheader" { "job" }
                            th scope="col" role="columnheader" class="chart" { (ends(scale)) }
                            th scope="col" role="columnheader" class="n" { "ratio" }
                            th scope="col" role="columnheader" class="n" { "95 %" }
                            th scope="col" role="columnheader" { "it is" }
                        } }
                        tbody role="rowgroup" {
                            @for row in &comparison.rows {
                                @if let Some(ratio) = row.throughput.ratios[place] {
                                    (drawing(&row.title, ratio.figure, word(ratio.word), scale))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The ends and the middle of the scale, for the head of the column.
fn ends(scale: Scale) -> Markup {
    let end = scale.end();
    html! {
        span class="unseen" { "drawing" }
        div class="axis" aria-hidden="true" {
            @for (at, words) in [("0", format!("1/{end}")), ("50%", "1".into()), ("100%", end.to_string())] {
                span style={ "left:" (at) } { (words) }
            }
        }
    }
}

fn drawing(title: &str, figure: Figure, (said, tone): (&str, Tone), scale: Scale) -> Markup {
    html! {
        tr role="row" class=(class_of(tone)) {
            th scope="row" role="rowheader" { (title) }
            td class="chart" role="cell" { (bar(figure, scale)) }
            td class="n" role="cell" data-label="ratio" { (ratio(figure.value)) }
            td class="n" role="cell" data-label="95 %" { (interval(&figure)) }
            td class="said" role="cell" { span class={ "word " (class_of(tone)) } { (said) } }
        }
    }
}

fn class_of(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "faster",
        Tone::Bad => "slower",
        _ => "unsure",
    }
}

/// A bar from 1 to the ratio, with its interval as a line. Decoration: the numbers stand beside it.
fn bar(figure: Figure, scale: Scale) -> Markup {
    let x = |ratio: f64| scale.at(ratio) * 100.0;
    let n = |value: f64| format!("{value:.2}");
    let at = x(figure.value);
    let (from, to) = (at.min(50.0), at.max(50.0));
    html! {
        svg class="row" viewBox="0 0 100 20" preserveAspectRatio="none" aria-hidden="true" focusable="false" {
            rect class="bar" x=(n(from)) y="4" width=(n((to - from).max(0.4))) height="12" {}
            line class="one" x1="50" y1="0" x2="50" y2="20" {}
            @if let Some(interval) = figure.interval {
                @let (low, high) = (n(x(interval.low)), n(x(interval.high)));
                path class="ratio" d={ "M" (low) " 10H" (high)
                    @if !scale.cuts(interval.low) { "M" (low) " 6V14" }
                    @if !scale.cuts(interval.high) { "M" (high) " 6V14" } } {}
            }
        }
    }
}

fn figures(comparison: &Comparison, quantity: &Quantity) -> Markup {
    let of = quantity.of;
    let some = |measure: &Measure| measure.ratios.iter().any(Option::is_some);
    let rows: Vec<_> = comparison.rows.iter().filter(|row| some(of(row))).collect();
    if rows.is_empty() {
        return html! {};
    }
    let id = contents::anchor(quantity.title);
    html! {
        section aria-labelledby=(id) {
            h2 id=(id) { (quantity.title) }
            div class="scroll" role="region" aria-label={ (quantity.title) " of each job" } tabindex="0" {
                table {
                    thead { tr {
                        th scope="col" { "job" }
                        @for subject in &comparison.subjects {
                            th scope="col" class="n" { (subject.name) }
                        }
                        @for subject in &comparison.subjects[1..] {
                            th scope="col" { "ratio of " (subject.name) }
                        }
                    } }
                    tbody {
                        @for row in rows { tr {
                            @let measure = of(row);
                            th scope="row" { (row.title) }
                            @for figure in &measure.figures {
                                td class="n" {
                                    @match figure { Some(f) => { ((quantity.words)(row, f.value)) } None => { "–" } }
                                }
                            }
                            @for ratio_of in &measure.ratios[1..] {
                                td {
                                    @if let Some(ratio_of) = ratio_of {
                                        @let (said, tone) = word(ratio_of.word);
                                        (ratio(ratio_of.figure.value)) " "
                                        @if ratio_of.figure.interval.is_some() {
                                            "(" (interval(&ratio_of.figure)) ") "
                                        }
                                        span class={ "word " (class_of(tone)) } { (said) }
                                    } @else { "–" }
                                }
                            }
                        } }
                    }
                }
            }
        }
    }
}

fn alone(comparison: &Comparison) -> Markup {
    if comparison.alone.is_empty() {
        return html! {};
    }
    html! {
        section aria-labelledby="without-counterpart" {
            h2 id="without-counterpart" { "Without a counterpart" }
            dl {
                @for (place, subject) in comparison.subjects.iter().enumerate() {
                    @let titles: Vec<&str> = comparison.alone.iter()
                        .filter(|Alone { subject, .. }| *subject == place)
                        .map(|alone| alone.title.as_str()).collect();
                    @if !titles.is_empty() { dt { (subject.name) } dd { (titles.join(", ")) } }
                }
            }
        }
    }
}
