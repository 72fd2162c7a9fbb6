//! The pipe picture as a drawing: one pipe from left to right, as thick as what each stage lets through.
//!
//! The drawing is stretched to the page; numbers stand in HTML below it, names and capacities in the list that follows, so that it fits
//! a phone and is read aloud.

use maud::{Markup, html};
use rubus_verdict::pipes::{Picture, Stage, WidthScale};

use super::glued;
use super::plot::n;
use rubus_verdict::text::picture::capacity;

/// Units of the drawing: so high, and each stage so wide.
const HEIGHT: f64 = 100.0;
const EACH: f64 = 100.0;
/// The part of a stage in which the pipe comes to its width.
const TAPER: f64 = 24.0;
/// What is thinner would vanish.
const HAIR: f64 = 1.2;

/// A picture with its list.
pub fn draw(picture: &Picture, scale: WidthScale) -> Markup {
    let count = picture.stages.len() as f64;
    let label = format!("The pipe: {}.", described(picture, scale));
    html! {
        figure class="picture" {
            svg class="pipe" role="img" aria-label=(label) viewBox={ "0 0 " (n(count * EACH)) " " (n(HEIGHT)) }
                preserveAspectRatio="none" focusable="false" {
                @for (place, stage) in picture.stages.iter().enumerate() {
                    @let before = place.checked_sub(1).map(|place| &picture.stages[place]);
                    path class=(if stage.is_narrowest { "flow here" } else { "flow" }) d=(piece(place, stage, before, scale)) {}
                }
                @let (top, bottom) = edges(scale.wanted());
                path class="need" d={ "M0 " (n(top)) "H" (n(count * EACH)) "M0 " (n(bottom)) "H" (n(count * EACH)) } {}
            }
            ol class="stages" style={ "--stages:" (picture.stages.len()) } {
                @for stage in &picture.stages {
                    li class=[stage.is_narrowest.then_some("narrowest")] {
                        span class="name" {
                            (stage.name)
                            @if stage.is_narrowest { " " span class="badge" { "narrowest" } }
                        }
                        span class="capacity" {
                            (glued(&capacity(stage)))
                            @if scale.cuts(stage.width) { span class="note" { ", wider than drawn" } }
                        }
                    }
                }
            }
        }
    }
}

/// What the drawing means, once for all drawings of a page.
pub fn meaning() -> Markup {
    html! {
        p class="note" {
            "Each stage is as thick as what it lets through (dashed: just enough for its part of the reference work within "
            "a minute). Buses carry everything, so they are drawn by what is read in order."
        }
    }
}

/// Upper and lower edge of a pipe of a share of the height.
fn edges(share: f64) -> (f64, f64) {
    let thick = (share * HEIGHT).max(HAIR);
    ((HEIGHT - thick) / 2.0, (HEIGHT + thick) / 2.0)
}

/// A stage: from the width of the one before it smoothly to its own.
fn piece(place: usize, stage: &Stage, before: Option<&Stage>, scale: WidthScale) -> String {
    let x = place as f64 * EACH;
    let (top, bottom) = edges(scale.share(stage.width));
    let (from_top, from_bottom) =
        before.map_or((top, bottom), |before| edges(scale.share(before.width)));
    let (middle, come, end) = (n(x + TAPER / 2.0), n(x + TAPER), n(x + EACH));
    format!(
        "M{} {}C{middle} {} {middle} {top} {come} {top}H{end}V{bottom}H{come}C{middle} {bottom} {middle} {} {} {}Z",
        n(x),
        n(from_top),
        n(from_top),
        n(from_bottom),
        n(x),
        n(from_bottom),
        top = n(top),
        bottom = n(bottom),
    )
}

/// The stages for a screen reader.
fn described(picture: &Picture, scale: WidthScale) -> String {
    let each = picture.stages.iter().map(|stage| {
        let mark = if stage.is_narrowest { ", the narrowest" } else { "" };
        let cut = if scale.cuts(stage.width) { ", wider than drawn" } else { "" };
        format!("{} {}{mark}{cut}", stage.name, capacity(stage))
    });
    each.collect::<Vec<_>>().join("; ")
}
