//! Many runs on one page: what each was measured on, then each figure on one scale, the fastest first.

use maud::{Markup, html};
use rubus_runs::gallery::{Entry, Quantity, answer, fastest_first};
use rubus_runs::text::gallery::next;

use super::ranked::{self, Bar};
use super::{data, headlines, shell, verdict};

/// The page of a gallery. `version` is that of the program that makes it.
pub fn render(entries: &[Entry], version: &str) -> String {
    let title = match entries.len() {
        1 => "1 run in comparison".to_string(),
        count => format!("{count} runs in comparison"),
    };
    shell(&title, version, header(&title, entries), main(entries), data::embed_json(entries))
}

fn header(title: &str, entries: &[Entry]) -> Markup {
    html! {
        h1 { "Gallery: " (title) }
        (headlines(&[answer(entries)], None, None))
        (verdict::next_step(&next(entries)))
        p class="certainty" {
            "Each run is one measurement of one device, and its 95 % intervals hold for that measurement; for another day allow 10 % more. "
            "Where two intervals overlap, the order of the two is not certain."
        }
    }
}

fn main(entries: &[Entry]) -> Markup {
    html! {
        (runs(entries))
        @for quantity in Quantity::ALL { (figure(entries, quantity)) }
    }
}

fn runs(entries: &[Entry]) -> Markup {
    html! {
        section aria-labelledby="runs" {
            h2 id="runs" { "What was measured" }
            div class="scroll" role="region" aria-label="Table of runs" tabindex="0" {
                table {
                    thead { tr {
                        th scope="col" { "board" }
                        th scope="col" { "disk" }
                        th scope="col" { "connected by" }
                        th scope="col" { "filesystem" }
                        th scope="col" { "measured" }
                        th scope="col" { "suite" }
                        th scope="col" class="n" { "doubts" }
                    } }
                    tbody {
                        @for entry in entries { tr {
                            th scope="row" class="wrap" {
                                (entry.board)
                                @if let Some(label) = &entry.label { span class="remedy" { (label) } }
                            }
                            td { (entry.disk) }
                            td { @if entry.link.is_empty() { "–" } @else { (entry.link) } }
                            td { (entry.filesystem.as_deref().unwrap_or("whole device")) }
                            td { time datetime=(entry.started) { (day(&entry.started)) } }
                            td { (entry.suite) span class="remedy" { "rubus " (entry.rubus_version) } }
                            td class="n" { (entry.doubts) }
                        } }
                    }
                }
            }
        }
    }
}

/// The day of a moment, with hyphens at which no line ends.
fn day(rfc3339: &str) -> String {
    let day = rfc3339.split('T').next().unwrap_or(rfc3339);
    day.replace('-', "\u{2011}")
}

/// One figure of all that have it.
fn figure(entries: &[Entry], quantity: Quantity) -> Markup {
    let mut sorted = entries.to_vec();
    fastest_first(&mut sorted, quantity);
    let bars = sorted.iter().filter_map(|entry| {
        Some(Bar {
            name: html! {
                (entry.label.as_ref().unwrap_or(&entry.board))
                span class="remedy" { (entry.disk) }
            },
            shown: entry.figure(quantity)?,
            is_slow: false,
        })
    });
    let in_flight = if quantity.is_in_bytes() { "" } else { "One operation in flight. " };
    ranked::section(&ranked::Ranking {
        title: quantity.title(),
        is_in_bytes: quantity.is_in_bytes(),
        note: in_flight,
        of: "board and disk",
        bars: bars.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;
    use rubus_runs::gallery::entries;
    use rubus_vocabulary::result::Outcome;

    #[test]
    fn every_figure_of_every_run_is_there_with_its_interval() {
        let mut other = fixture::slow_sd_card_run();
        other.seed = 8;
        other.results.truncate(2);
        other.results[1].outcome = Outcome::Inconclusive;
        let runs = [(None, fixture::slow_sd_card_run()), (Some("<b>cards & co</b>".into()), other)];
        let page = render(&entries(&runs), "0");
        for words in [
            "2 runs in comparison",
            "Random write, 4 KiB",
            "did not settle",
            "&lt;b&gt;cards &amp; co&lt;/b&gt;",
        ] {
            assert!(page.contains(words), "{words}");
        }
        assert!(!page.contains("<b>cards"));
        let rows = |title: &str| {
            let from = page.find(&format!("<h2 id=\"{title}\"")).unwrap();
            let section = &page[from..];
            section[..section.find("</section>").unwrap()].matches("rowheader").count()
        };
        assert_eq!((rows("sequential-read"), rows("random-write-4-kib")), (2, 1));
    }

    #[test]
    fn a_figure_that_nobody_has_gets_no_section() {
        let mut run = fixture::slow_sd_card_run();
        run.results.truncate(1);
        assert!(!render(&entries(&[(None, run)]), "0").contains("Commits"));
    }
}
