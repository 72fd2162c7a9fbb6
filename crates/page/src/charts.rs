//! The drawings that stand in the rows of tables: inline SVG that stretches with its cell, so the text stays outside
//! in HTML where it keeps its size and can be selected and read aloud.

use maud::{Markup, html};
use rubus_stats::estimate::Estimate;

use super::axis::Axis;
use super::plot::n;

/// All drawings are 100 units wide.
const WIDTH: f64 = 100.0;

/// How pipes of very different width are drawn on one scale.
#[derive(Clone, Copy, Debug)]
pub struct PipeScale {
    /// The capacity that fills the whole height.
    widest: f64,
    /// The capacity that is just enough, if there is one.
    need: Option<f64>,
}

impl PipeScale {
    /// A pipe this many times wider than the narrowest is drawn cut off.
    const MAX: f64 = 30.0;

    /// A scale for capacities that all are positive, and for what is needed.
    pub fn of(capacities: &[f64], need: Option<f64>) -> PipeScale {
        let narrowest = capacities.iter().copied().fold(f64::INFINITY, f64::min);
        let widest = capacities.iter().copied().chain(need).fold(0.0, f64::max);
        PipeScale { widest: widest.min(narrowest * Self::MAX).max(f64::MIN_POSITIVE), need }
    }

    /// Whether a pipe is wider than it can be drawn.
    pub fn cuts(self, capacity: f64) -> bool {
        capacity > self.widest * 1.000_1
    }

    fn share(self, capacity: f64) -> f64 {
        (capacity / self.widest).clamp(0.0, 1.0)
    }
}

/// A pipe as thick as its capacity, with the width that is needed dashed over it. Decoration:
/// the numbers stand beside it.
pub fn tube(capacity: f64, scale: PipeScale, narrowest: bool) -> Markup {
    const HEIGHT: f64 = 40.0;
    let band = |share: f64| ((HEIGHT - HEIGHT * share) / 2.0, HEIGHT * share);
    let (top, thick) = band(scale.share(capacity));
    // So thin that it would vanish, it is drawn as a hair.
    let (top, thick) = if thick < 1.0 { (HEIGHT / 2.0 - 0.5, 1.0) } else { (top, thick) };
    let need = scale.need.filter(|need| !scale.cuts(*need)).map(|need| band(scale.share(need)));
    html! {
        svg class=(if narrowest { "tube narrow" } else { "tube" }) viewBox="0 0 100 40"
            preserveAspectRatio="none" aria-hidden="true" focusable="false" {
            rect class="flow" x="0" y=(n(top)) width="100" height=(n(thick)) {}
            @if let Some((top, thick)) = need {
                rect class="need" x="0" y=(n(top)) width="100" height=(n(thick)) {}
            }
        }
    }
}

/// A bar from zero with the interval as a whisker, on a scale up to `most`.
pub fn bar(estimate: &Estimate, most: f64) -> Markup {
    row(html! {
        (filled(estimate.value / most, false))
        (whisker(estimate.low / most, estimate.high / most))
    })
}

/// A bar with its whisker on an axis from zero.
pub fn bar_on(estimate: &Estimate, axis: &Axis) -> Markup {
    bar_in(estimate, axis, false)
}

/// A bar with its whisker on an axis from zero; only outlined where it is the second of a pair.
pub fn bar_in(estimate: &Estimate, axis: &Axis, outlined: bool) -> Markup {
    row(html! {
        (grid(axis))
        (filled(axis.at(estimate.value), outlined))
        (whisker(axis.at(estimate.low), axis.at(estimate.high)))
    })
}

/// A value with its interval on a logarithmic axis.
pub fn dot(estimate: &Estimate, axis: &Axis) -> Markup {
    let x = n(axis.at(estimate.value) * WIDTH);
    row(html! {
        (grid(axis))
        (whisker(axis.at(estimate.low), axis.at(estimate.high)))
        // A short thick stroke, since a circle would be stretched.
        line class="tick median" x1=(x) y1="3" x2=(x) y2="17" {}
    })
}

/// A value with its interval beside the value that it is held against.
pub fn against(estimate: &Estimate, threshold: f64, axis: &Axis) -> Markup {
    let at = n(axis.at(threshold) * WIDTH);
    html! {
        div class="held" {
            (dot(estimate, axis))
            svg class="row over" viewBox="0 0 100 20" preserveAspectRatio="none" aria-hidden="true" focusable="false" {
                line class="threshold" x1=(at) y1="0" x2=(at) y2="20" {}
            }
        }
    }
}

fn row(content: Markup) -> Markup {
    html! {
        svg class="row" viewBox="0 0 100 20" preserveAspectRatio="none" aria-hidden="true" focusable="false" {
            (content)
        }
    }
}

fn filled(share: f64, outlined: bool) -> Markup {
    html! {
        rect class=(if outlined { "flow outlined" } else { "flow" }) x="0" y="3" height="14"
            width=(n((share * WIDTH).clamp(0.0, WIDTH))) {}
    }
}

/// Ends are shares of the width; beyond it, the whisker ends there.
fn whisker(low: f64, high: f64) -> Markup {
    let x = |share: f64| n((share * WIDTH).clamp(0.0, WIDTH));
    let (low, high) = (x(low), x(high));
    html! {
        path class="whisker" d={ "M" (low) " 10H" (high) "M" (low) " 6V14M" (high) " 6V14" } {}
    }
}

fn grid(axis: &Axis) -> Markup {
    html! {
        @for tick in axis.ticks.iter().filter(|tick| !tick.label.is_empty()) {
            @let x = n(tick.at * WIDTH);
            line class="grid" x1=(x) y1="0" x2=(x) y2="20" {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipes_are_to_scale_until_the_narrowest_would_vanish() {
        let near = PipeScale::of(&[0.17, 2.3], Some(1.0));
        assert!((near.share(2.3) - 1.0).abs() < 1e-9 && (near.share(1.15) - 0.5).abs() < 1e-9);
        assert!(!near.cuts(2.3));
        let far = PipeScale::of(&[1.0, 3000.0], None);
        assert!(far.cuts(3000.0) && !far.cuts(1.0));
        assert!((far.share(1.0) - 1.0 / PipeScale::MAX).abs() < 1e-9);
    }
}
