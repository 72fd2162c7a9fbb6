//! Whether a target is as big as it says: what came back, as parts of what was announced.

use maud::{Markup, html};
use rubus_vocabulary::finding::{Capacity, Finding};
use rubus_vocabulary::result::Run;
use rubus_vocabulary::units::{bytes_iec, bytes_si, percent};

use super::jobs::section;
use super::plot::n;
use super::{glued, unless_on_top};
use rubus_verdict::text::findings::sentence;

/// A part of the map: its name, its class in the style sheet, its bytes.
struct Part {
    name: &'static str,
    class: &'static str,
    bytes: u64,
}

/// The section; nothing where the capacity was not tested.
pub fn draw(run: &Run) -> Markup {
    let found = run.findings.iter().filter_map(|finding| match finding {
        Finding::Capacity(capacity) => Some(capacity),
        _ => None,
    });
    let found: Vec<&Capacity> = found.collect();
    if found.is_empty() {
        return html! {};
    }
    section("capacity", "Capacity", html! { @for capacity in found { (one(capacity)) } })
}

fn parts(capacity: &Capacity) -> Vec<Part> {
    let part = |name, class, bytes| Part { name, class, bytes };
    let untested = capacity.announced_bytes.saturating_sub(capacity.tested_bytes);
    vec![
        part("came back as written", "good", capacity.good_bytes),
        part("came back as another place's", "overwritten", capacity.overwritten_bytes),
        part("came back as something never written", "corrupted", capacity.corrupted_bytes),
        part("could not be read or written", "unreadable", capacity.unreadable_bytes),
        part("not tested", "untested", untested),
    ]
}

fn one(capacity: &Capacity) -> Markup {
    let whole = capacity.announced_bytes.max(capacity.tested_bytes).max(1) as f64;
    let share = |bytes: u64| bytes as f64 / whole;
    let parts: Vec<Part> = parts(capacity).into_iter().filter(|part| part.bytes > 0).collect();
    let told = parts.iter().map(|part| format!("{} {}", bytes_si(part.bytes), part.name));
    let label = format!(
        "Of {} announced: {}.",
        bytes_si(capacity.announced_bytes),
        told.collect::<Vec<_>>().join(", ")
    );
    html! {
        (unless_on_top(&sentence(&Finding::Capacity(capacity.clone()))))
        figure {
            figcaption {
                "It claims " (glued(&bytes_si(capacity.announced_bytes))) "; "
                (glued(&bytes_si(capacity.tested_bytes))) " were written and read back."
            }
            div class="map" role="img" aria-label=(label) {
                @for part in &parts {
                    div class={ "part " (part.class) } style={ "width:" (n(share(part.bytes) * 100.0)) "%" } {}
                }
            }
            ul class="key" {
                @for part in &parts {
                    li {
                        span class={ "sample part " (part.class) } aria-hidden="true" {}
                        (glued(&bytes_si(part.bytes))) " (" (glued(&share_words(share(part.bytes)))) ") " (part.name)
                    }
                }
            }
            p class="note" {
                "The parts are as long as their bytes are many; they need not lie in this order."
                @if let Some(offset) = capacity.first_bad_offset {
                    " The first byte that did not come back is byte " (offset)
                    @if offset > 0 { " (" (glued(&bytes_iec(offset))) " from the start)" }
                    "."
                }
                @if let Some(size) = capacity.wraps_at_bytes {
                    " Behind " (glued(&bytes_iec(size))) " it seems to begin at its start again."
                }
            }
        }
    }
}

/// A share that is not nothing is never "0 %".
fn share_words(share: f64) -> String {
    if share > 0.0 && share < 0.0005 { "<0.1 %".into() } else { percent(share) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;

    #[test]
    fn the_parts_are_all_of_it() {
        let run = fixture::capacity_run();
        let Finding::Capacity(capacity) = &run.findings[0] else {
            panic!("the example is about a capacity");
        };
        let sum: u64 = parts(capacity).iter().map(|part| part.bytes).sum();
        assert_eq!(sum, capacity.announced_bytes);
    }
}
