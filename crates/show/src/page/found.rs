//! What the rules found: dangers and costs told, hints folded.

use maud::{Markup, html};
use rubus_core::finding::of_rules;
use rubus_core::result::Run;
use rubus_core::rules::{RuleFinding, Weight};

use super::jobs::{folded, section};
use crate::findings::rules::counts;

/// The section; nothing where nothing was found.
pub fn draw(run: &Run) -> Markup {
    let found = of_rules(run);
    if found.is_empty() {
        return html! {};
    }
    let (hints, told): (Vec<&RuleFinding>, Vec<&RuleFinding>) = found
        .iter()
        .copied()
        .partition(|finding| finding.weight == Weight::Hint);
    section(
        "found",
        "What to change",
        html! {
            p class="note" {
                (counts(&found)) ", found by rules in the machine's facts and in the figures of this run."
            }
            @if !told.is_empty() { (list(&told)) }
            @if !hints.is_empty() {
                (folded(&match hints.len() { 1 => "1 hint".to_string(), more => format!("{more} hints") }, list(&hints)))
            }
        },
    )
}

fn list(found: &[&RuleFinding]) -> Markup {
    html! { ul class="plain found" { @for finding in found { (item(finding)) } } }
}

fn item(finding: &RuleFinding) -> Markup {
    let word = finding.weight.word();
    html! {
        li {
            span class={ "badge " (word) } { (word) } " "
            strong { (finding.about) } ": " (finding.evidence.trim_end_matches('.')) ". "
            (finding.consequence)
            span class="remedy" {
                (finding.fix)
                @if let Some(command) = &finding.command { " " code { (command) } }
            }
            span class="remedy small" {
                "rule " (finding.rule) "; read from " (finding.read_from) "; source: " (finding.source)
            }
        }
    }
}
