//! A run as one self-contained HTML page: no script, no network, nothing beside it.
//!
//! What the run says first, then what the results together say (each subject in a file of its own), the
//! figures with their intervals, the machine, and how to repeat it. Everything that comes from the
//! machine or the user goes through maud's escaping. Every drawing has its numbers in a table or in
//! words beside it.

#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

pub mod advice;
mod axis;
mod blocks;
mod capacity;
mod charts;
mod classes;
pub mod cluster;
pub mod compare;
mod contents;
mod data;
mod depth;
mod facts;
mod figures;
pub mod fleet;
#[cfg(test)]
mod fleet_tests;
mod found;
pub mod gallery;
mod jobs;
mod latency;
mod picture;
mod plot;
mod prose;
mod ranked;
mod record;
mod reservation;
mod share;
mod time;
mod together;
mod verdict;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use rubus_verdict::verdict::Verdict;
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::hidden_letters::is_hidden;
use rubus_vocabulary::result::{JobResult, Outcome, Run};
use rubus_vocabulary::units::{bytes_iec, percent};

use prose::coded;
use reservation::joined;
use rubus_draw::words;
use rubus_runs::text::run::is_checkup;
use rubus_verdict::text::findings::sentences;

const STYLE: &str = include_str!("style.css");

/// Forbids the page to load anything, so that what it shows is what is in the file.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// The page of a run.
pub fn render(run: &Run, verdict: &Verdict) -> String {
    let title = title_of(run);
    let titled = format!("{title}, {}", words::moment(&run.started));
    shell(
        &titled,
        &run.rubus_version,
        header(run, verdict, &title),
        body(run, verdict),
        data::embed(run, verdict),
    )
}

/// A whole page around what its header and its main part hold, with the data that it was made of. `version`
/// may be empty.
fn shell(title: &str, version: &str, header: Markup, main: Markup, data: Markup) -> String {
    let made_by = format!("rubus {version}");
    let made_by = made_by.trim();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content=(made_by);
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a class="unseen skip" href={ "#" (contents::MAIN) } { "Skip to the results" }
                header { (header) }
                main id=(contents::MAIN) { (contents::placed(&main)) }
                footer {
                    "MB is 10" sup { "6" } " bytes, MiB is 2" sup { "20" }
                    " bytes. Made by " (made_by) "; this page loads nothing and sends nothing."
                }
                (data)
            }
        }
    };
    without_hidden(page.into_string())
}

/// HTML has no notation for control characters, and they would take effect when the page is read in a
/// terminal. Marks that turn the writing direction would do so in a browser, too.
fn without_hidden(page: String) -> String {
    let is_one = |c: char| is_hidden(c) && !matches!(c, '\n' | '\t');
    if page.contains(is_one) { page.replace(is_one, "\u{fffd}") } else { page }
}

/// What the page calls the run.
fn title_of(run: &Run) -> String {
    if is_checkup(run) {
        format!("Checkup of {}", run.place())
    } else {
        format!("{} of {}", run.suite, run.place())
    }
}

fn header(run: &Run, verdict: &Verdict, title: &str) -> Markup {
    let said = if is_checkup(run) || run.results.is_empty() {
        vec![verdict.headline.clone()]
    } else {
        first_of_all(run)
    };
    let reservation = reservation::of_run(run, verdict);
    // Of nothing, the headline has said all.
    let certainty = (!run.results.is_empty()).then(|| verdict.certainty.clone());
    let is_unsettled = |result: &JobResult| result.outcome == Outcome::Inconclusive;
    // Below the answer of a checkup stands what to do; how sure the figures are is among what it says of them.
    let (reservation, certainty) = if is_checkup(run) {
        (reservation, None)
    } else if run.results.iter().any(is_unsettled) {
        (joined([reservation, certainty]), None)
    } else {
        (reservation, certainty)
    };
    html! {
        h1 { (title) }
        p class="what" {
            @if let Some(board) = run.machine.board.model.text() { (board) " · " }
            time datetime=(run.started) { (words::moment(&run.started)) }
            " · took " (glued(&words::span(run.elapsed_s)))
            " · wrote " (glued(&bytes_iec(run.bytes_written)))
        }
        (headlines(&said, reservation.as_deref(), certainty.as_deref()))
        @if is_checkup(run) { (verdict::next_step(&verdict.next)) }
    }
}

/// Headlines; the last carries how sure all this is.
fn headlines(said: &[String], reservation: Option<&str>, certainty: Option<&str>) -> Markup {
    let sure = [("reservation", reservation), ("certainty", certainty)];
    let sure: Vec<(&str, &str)> =
        sure.into_iter().filter_map(|(class, text)| Some((class, text?))).collect();
    let how_sure = |first: &str| {
        html! {
            @for (i, (class, text)) in sure.iter().enumerate() {
                (if i == 0 { first } else { " " })
                span class=(class) { (coded(text)) }
            }
        }
    };
    html! {
        @for (i, sentence) in said.iter().enumerate() {
            p class="headline" {
                (coded(sentence))
                @if i + 1 == said.len() { (how_sure(" ")) }
            }
        }
        @if said.is_empty() && !sure.is_empty() { p { (how_sure("")) } }
    }
}

/// Maximum length of a headline; the rest of a longer sentence stands in its section.
const HEADLINE_LETTERS: usize = 250;

/// What a run of a suite with a question of its own says first: what cut it short, then the answers.
fn first_of_all(run: &Run) -> Vec<String> {
    let cut_short =
        |doubt: &&Doubt| matches!(doubt, Doubt::Interrupted | Doubt::TargetFailed { .. });
    let mut said: Vec<String> = run
        .doubts
        .iter()
        .filter(cut_short)
        .map(|doubt| format!("Cut short: {}.", doubt.what()))
        .collect();
    said.extend(answers(run));
    said
}

/// The findings, of long ones only the beginning.
fn answers(run: &Run) -> Vec<String> {
    sentences(run).iter().map(|text| shortened(text)).collect()
}

/// As many whole sentences as a headline takes, at least one.
fn shortened(text: &str) -> String {
    let mut end = 0;
    for (at, _) in text.match_indices(". ") {
        if end == 0 || at < HEADLINE_LETTERS {
            end = at + 1;
        }
    }
    if end == 0 || text.len() <= HEADLINE_LETTERS {
        text.to_string()
    } else {
        text[..end].to_string()
    }
}

fn body(run: &Run, verdict: &Verdict) -> Markup {
    let jobs = jobs::named(run);
    let depths = depth::sweeps(run);
    let blocks = blocks::sweeps(run);
    let record = record::Table::of(run);
    let over_time = time::drawn_with_cliffs(run);
    let swept = depths
        .iter()
        .flat_map(|sweep| &sweep.results)
        .chain(blocks.iter().flat_map(|sweep| &sweep.results));
    let mut drawn: Vec<&str> = swept.map(|result: &&JobResult| result.job.as_str()).collect();
    if record.is_some() {
        drawn.extend(run.results.iter().map(|result| result.job.as_str()));
    }
    let checkup = is_checkup(run);
    html! {
        @if checkup {
            (verdict::good_for(verdict))
            @match &verdict.nas {
                Some(nas) => (share::stages(nas)),
                None => (verdict::pipes(run, verdict)),
            }
            (verdict::sentences(&behaviour(run, verdict)))
            (found::draw(run))
        }
        @if !depths.is_empty() { (depth::draw(&depths)) }
        @if !blocks.is_empty() { (blocks::draw(&blocks)) }
        @if let Some(record) = &record { (record.draw()) }
        (time::sustained(run, &jobs))
        (classes::draw(run))
        (capacity::draw(run))
        (together::draw(run))
        (verdict::disturbances(run, verdict))
        (figures::draw(&jobs, &drawn))
        (latency::draw(&jobs))
        (time::draw(&jobs, &over_time))
        @if !checkup { (verdict::way(verdict)) (found::draw(run)) }
        (facts::machine(run))
        @if !run.results.is_empty() { (facts::raw(&jobs)) }
        (facts::repeat(run))
    }
}

/// What else there is to say of a checkup, and how sure its figures are.
fn behaviour(run: &Run, verdict: &Verdict) -> Vec<String> {
    let certainty = (!run.results.is_empty()).then(|| verdict.certainty.clone());
    verdict.sentences.iter().cloned().chain(answers(run)).chain(certainty).collect()
}

/// A finding beside its drawing, where the top of the page has only the beginning of it.
fn unless_on_top(sentence: &str) -> Markup {
    html! { @if shortened(sentence) != sentence { p { (coded(sentence)) } } }
}

/// A figure whose number and unit may not be torn apart at a line's end.
fn glued(figure: &str) -> String {
    figure.replace(' ', "\u{a0}")
}

/// Percent of a share for a table cell.
fn share(value: f64) -> String {
    percent(value)
}

#[cfg(test)]
mod compare_tests;
#[cfg(test)]
mod tests;
