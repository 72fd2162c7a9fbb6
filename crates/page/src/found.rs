//! What the rules found: dangers and costs told, hints folded.

use maud::{Markup, html};
use rubus_machine::rules::{RuleFinding, Weight};
use rubus_vocabulary::result::Run;

use super::jobs::{folded, section};
use super::prose::coded;
use rubus_machine::rules_text::counts;

/// The section; nothing where nothing was found.
pub fn draw(run: &Run) -> Markup {
    let found = run.rule_findings();
    if found.is_empty() {
        return html! {};
    }
    let (hints, told): (Vec<&RuleFinding>, Vec<&RuleFinding>) =
        found.iter().copied().partition(|finding| finding.weight == Weight::Hint);
    section(
        "what-to-change",
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
            strong { (finding.about) } ": " (coded(finding.evidence.trim_end_matches('.'))) ". "
            (coded(&finding.consequence))
            span class="remedy" {
                (coded(&finding.fix))
                @if let Some(command) = &finding.command { " " code class="command" { (command) } }
            }
            span class="remedy small" {
                "rule " (finding.rule) "; read from " (finding.read_from) "; source: " (coded(&finding.source))
            }
        }
    }
}
