//! A drawing with two axes.
//!
//! Everything is placed by percentages of the drawing, so that it fits any column, while text and
//! symbols keep their size: they stand in nested drawings that do not scale. What is written beside
//! the axes is HTML and keeps the size of the page's text.

use maud::{Markup, html};
use rubus_vocabulary::result::{JobResult, Outcome};

use super::axis::{Axis, Tick};

/// A number as an SVG attribute.
pub fn n(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// A share as a percentage for an attribute.
fn pc(share: f64) -> String {
    format!("{}%", n(share * 100.0))
}

/// The symbols that tell series apart without colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A filled circle.
    Circle,
    Square,
    Triangle,
    /// A diamond: marks what was found, not what was measured.
    Diamond,
}

impl Shape {
    /// The outline around the origin, in pixels.
    fn path(self) -> &'static str {
        match self {
            Shape::Circle => "M-4.5 0A4.5 4.5 0 1 1 4.5 0A4.5 4.5 0 1 1-4.5 0Z",
            Shape::Square => "M-4-4H4V4H-4Z",
            Shape::Triangle => "M0-5.2L5 3.8H-5Z",
            Shape::Diamond => "M0-7L7 0L0 7L-7 0Z",
        }
    }
}

/// How a series looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The symbol at its points.
    pub shape: Shape,
    /// Hollow symbols and a dashed line, instead of filled ones and a whole line.
    pub hollow: bool,
}

impl Look {
    fn class(self) -> &'static str {
        if self.hollow { "mark hollow" } else { "mark" }
    }
}

/// Two axes and the height that the drawing takes.
#[derive(Clone, Debug)]
pub struct Plot {
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// `tall`, `low`, as the style sheet knows them.
    pub size: &'static str,
}

impl Plot {
    /// The drawing with what is in it. `label` is what a screen reader says in its place.
    pub fn draw(&self, label: &str, content: Markup) -> Markup {
        let unwritten = |tick: &&Tick| !tick.label.is_empty();
        html! {
            div class={ "plot " (self.size) } {
                div class="title" aria-hidden="true" { (self.y.title) }
                div class="field" {
                    svg role="img" aria-label=(label) focusable="false" {
                        @for tick in &self.y.ticks {
                            line class="grid" x1="0" x2="100%" y1=(pc(1.0 - tick.at)) y2=(pc(1.0 - tick.at)) {}
                        }
                        @for tick in &self.x.ticks {
                            line class="grid" y1="0" y2="100%" x1=(pc(tick.at)) x2=(pc(tick.at)) {}
                        }
                        (content)
                    }
                    @for tick in self.y.ticks.iter().filter(unwritten) {
                        span class=(if tick.spare { "y spare" } else { "y" }) aria-hidden="true"
                            style={ "bottom:" (pc(tick.at)) } { (tick.label) }
                    }
                    @for tick in self.x.ticks.iter().filter(unwritten) {
                        span class=(if tick.spare { "x spare" } else { "x" }) aria-hidden="true"
                            style={ "left:" (pc(tick.at)) } { (tick.label) }
                    }
                }
                div class="title below" aria-hidden="true" { (self.x.title) }
            }
        }
    }

    /// A symbol at a point; `words` appear when a pointer rests on it.
    pub fn point(&self, x: f64, y: f64, look: Look, words: &str) -> Markup {
        html! {
            svg class="at" x=(pc(self.x.at(x))) y=(pc(1.0 - self.y.at(y))) {
                title { (words) }
                path class=(look.class()) d=(look.shape.path()) {}
            }
        }
    }

    /// The mark of what was found.
    pub fn found(&self, x: f64, y: f64, words: &str) -> Markup {
        html! {
            svg class="at" x=(pc(self.x.at(x))) y=(pc(1.0 - self.y.at(y))) {
                title { (words) }
                path class="found" d=(Shape::Diamond.path()) {}
            }
        }
    }

    /// A whisker from one value to another along the x axis. An end that lies beyond the axis has no
    /// stroke across. `class` says how sure it is.
    pub fn whisker_x(&self, low: f64, high: f64, y: f64, class: &str) -> Markup {
        let ends = [low, high].map(|end| self.x.holds(end).then(|| pc(self.x.at(end))));
        let (from, to, y) = (pc(self.x.at(low)), pc(self.x.at(high)), pc(1.0 - self.y.at(y)));
        html! {
            line class=(class) x1=(from) x2=(to) y1=(y) y2=(y) {}
            @for end in ends.iter().flatten() {
                svg class="at" x=(end) y=(y) { path class="whisker" d="M0-3.5V3.5" {} }
            }
        }
    }

    /// A whisker from one value to another along the y axis, as [`Plot::whisker_x`].
    pub fn whisker_y(&self, x: f64, low: f64, high: f64, class: &str) -> Markup {
        let ends = [low, high].map(|end| self.y.holds(end).then(|| pc(1.0 - self.y.at(end))));
        let (from, to, x) = (pc(1.0 - self.y.at(low)), pc(1.0 - self.y.at(high)), pc(self.x.at(x)));
        html! {
            line class=(class) y1=(from) y2=(to) x1=(x) x2=(x) {}
            @for end in ends.iter().flatten() {
                svg class="at" x=(x) y=(end) { path class="whisker" d="M-3.5 0H3.5" {} }
            }
        }
    }

    /// A line through points, `class` says how it looks.
    pub fn line(&self, points: impl IntoIterator<Item = (f64, f64)>, class: &str) -> Markup {
        let mut d = String::new();
        for (i, (x, y)) in points.into_iter().enumerate() {
            d.push(if i == 0 { 'M' } else { 'L' });
            d.push_str(&self.pair(x, y));
        }
        self.stretched(&d, class)
    }

    /// The area below a line.
    pub fn area(&self, points: &[(f64, f64)], class: &str) -> Markup {
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            return html! {};
        };
        let mut d = format!("M{} 100", n(self.x.at(first.0) * 100.0));
        for (x, y) in points {
            d.push('L');
            d.push_str(&self.pair(*x, *y));
        }
        d.push_str(&format!("L{} 100Z", n(self.x.at(last.0) * 100.0)));
        self.stretched(&d, class)
    }

    fn pair(&self, x: f64, y: f64) -> String {
        format!("{} {}", n(self.x.at(x) * 100.0), n(100.0 - self.y.at(y) * 100.0))
    }

    fn stretched(&self, d: &str, class: &str) -> Markup {
        if d.is_empty() {
            return html! {};
        }
        html! {
            svg class="stretched" viewBox="0 0 100 100" preserveAspectRatio="none" {
                path class=(class) d=(d) {}
            }
        }
    }

    /// A band between two values of the x axis over the whole height, never thinner than a hair.
    pub fn band_x(&self, low: f64, high: f64, class: &str) -> Markup {
        let (from, to) = (self.x.at(low), self.x.at(high));
        html! {
            rect class=(class) y="0" height="100%" x=(pc(from)) width=(pc((to - from).max(0.002))) {}
        }
    }

    /// A band between two values of the y axis over the whole width.
    pub fn band_y(&self, low: f64, high: f64, class: &str) -> Markup {
        let (from, to) = (self.y.at(low), self.y.at(high));
        html! {
            rect class=(class) x="0" width="100%" y=(pc(1.0 - to)) height=(pc((to - from).max(0.002))) {}
        }
    }

    /// A line over the whole height.
    pub fn upright(&self, x: f64, class: &str) -> Markup {
        let x = pc(self.x.at(x));
        html! { line class=(class) y1="0" y2="100%" x1=(x) x2=(x) {} }
    }

    /// A line over the whole width.
    pub fn level(&self, y: f64, class: &str) -> Markup {
        let y = pc(1.0 - self.y.at(y));
        html! { line class=(class) x1="0" x2="100%" y1=(y) y2=(y) {} }
    }

    /// Words at a point, moved by (`dx`, `dy`) pixels; to the left of the point in the right half
    /// where they would not fit otherwise.
    pub fn words(&self, x: f64, y: f64, (dx, dy): (f64, f64), text: &str) -> Markup {
        let (at, turned) = (self.x.at(x), self.turns(x, text));
        html! {
            text class=(if turned { "label left" } else { "label" }) x=(pc(at)) y=(pc(1.0 - self.y.at(y)))
                dx=(n(if turned { -dx } else { dx })) dy=(n(dy)) { (text) }
        }
    }
}

impl Plot {
    /// Whether words at `x` stand to the left of it: on the narrowest screen a letter takes about a
    /// fortieth of the width.
    fn turns(&self, x: f64, text: &str) -> bool {
        let at = self.x.at(x);
        at + text.chars().count() as f64 * 0.025 > 0.98 && at > 0.45
    }
}

/// Places labels so that none covers another on the narrowest screen.
#[derive(Debug, Default)]
pub struct Labels {
    /// Left, top, right, bottom, in pixels of that screen.
    taken: Vec<[f64; 4]>,
}

impl Labels {
    /// Pixels of a drawing on the narrowest screen.
    const SIZE: (f64, f64) = (250.0, 230.0);

    /// Keeps words off a mark.
    pub fn keep_off(&mut self, plot: &Plot, x: f64, y: f64) {
        const RADIUS: f64 = 6.0;
        let (x, y) = (plot.x.at(x) * Self::SIZE.0, (1.0 - plot.y.at(y)) * Self::SIZE.1);
        self.taken.push([x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS]);
    }

    /// The words at a point if there is room for them, else nothing.
    pub fn place(
        &mut self,
        plot: &Plot,
        x: f64,
        y: f64,
        (dx, dy): (f64, f64),
        text: &str,
    ) -> Markup {
        let width = text.chars().count() as f64 * 7.0;
        let (at, base) = (plot.x.at(x) * Self::SIZE.0, (1.0 - plot.y.at(y)) * Self::SIZE.1 + dy);
        let left = if plot.turns(x, text) { at - dx - width } else { at + dx };
        let wanted = [left, base - 11.0, left + width, base + 1.0];
        let covers = |other: &[f64; 4]| {
            wanted[0] < other[2]
                && other[0] < wanted[2]
                && wanted[1] < other[3]
                && other[1] < wanted[3]
        };
        if self.taken.iter().any(covers) {
            return html! {};
        }
        self.taken.push(wanted);
        plot.words(x, y, (dx, dy), text)
    }
}

/// How the whisker of a result looks: dotted where it did not settle.
pub fn sureness(result: &JobResult) -> &'static str {
    match result.outcome {
        Outcome::Inconclusive => "whisker unsure",
        Outcome::Converged | Outcome::Capped => "whisker",
    }
}

/// What the dotted whiskers mean, where there are any, and the mark of what was found.
pub fn key_of_marks<'a>(
    results: impl IntoIterator<Item = &'a JobResult>,
    found: Option<&str>,
) -> Markup {
    let unsure = results.into_iter().any(|result| result.outcome == Outcome::Inconclusive);
    html! {
        @if unsure || found.is_some() {
            ul class="key" {
                @if let Some(words) = found {
                    li {
                        svg class="sample" aria-hidden="true" focusable="false" {
                            svg class="at" x="50%" y="50%" { path class="found" d=(Shape::Diamond.path()) {} }
                        }
                        (words)
                    }
                }
                @if unsure {
                    li {
                        svg class="sample" aria-hidden="true" focusable="false" {
                            line class="whisker unsure" x1="0" x2="100%" y1="50%" y2="50%" {}
                        }
                        "interval of a point that did not settle"
                    }
                }
            }
        }
    }
}

/// The key of a drawing: each symbol with its line, and what it stands for.
pub fn key<'a>(entries: impl IntoIterator<Item = (Look, &'a str)>) -> Markup {
    html! {
        ul class="key" {
            @for (look, words) in entries {
                li {
                    svg class="sample" aria-hidden="true" focusable="false" {
                        line class=(if look.hollow { "joined dashed" } else { "joined" }) x1="0" x2="100%" y1="50%" y2="50%" {}
                        svg class="at" x="50%" y="50%" { path class=(look.class()) d=(look.shape.path()) {} }
                    }
                    (words)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::axis::short_count;
    use super::*;

    fn plot() -> Plot {
        Plot {
            x: Axis::linear("x", 100.0, short_count),
            y: Axis::linear("y", 100.0, short_count),
            size: "tall",
        }
    }

    #[test]
    fn numbers_in_drawings_are_short_and_finite() {
        assert_eq!((n(1.0), n(0.126), n(100.0)), ("1".into(), "0.13".into(), "100".into()));
        let wild = plot().line([(f64::NAN, f64::INFINITY), (-1.0, 1e300)], "curve");
        assert!(wild.into_string().contains("M0 0L0 0"));
    }

    #[test]
    fn labels_give_way_to_those_before() {
        let plot = plot();
        let mut labels = Labels::default();
        let first = labels.place(&plot, 50.0, 50.0, (6.0, 0.0), "16");
        let same = labels.place(&plot, 51.0, 50.0, (6.0, 0.0), "32");
        let beside = labels.place(&plot, 70.0, 50.0, (6.0, 0.0), "64");
        let at_the_end = labels.place(&plot, 99.0, 50.0, (6.0, 0.0), "128");
        let turned_into_it = labels.place(&plot, 86.0, 50.0, (6.0, 0.0), "256");
        let all = [first, same, beside, at_the_end, turned_into_it];
        let drawn = all.map(|m| !m.into_string().is_empty());
        assert_eq!(drawn, [true, false, true, true, false]);
    }

    #[test]
    fn a_band_is_never_invisible() {
        let band = plot().band_x(10.0, 10.0, "stall").into_string();
        assert!(band.contains("width=\"0.2%\""), "{band}");
    }
}
