//! The drawings of the page: inline SVG that stretches with its cell, so the text stays outside
//! in HTML where it keeps its size and can be selected and read aloud.

use maud::{Markup, html};
use rubus_core::estimate::Estimate;
use rubus_core::result::{JobResult, Latency, Series};
use rubus_core::units::rate_si;

use crate::words;

/// All drawings are 100 units wide.
const WIDTH: f64 = 100.0;

/// A number as an SVG attribute.
fn n(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

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
    const MOST: f64 = 30.0;

    /// A scale for capacities that all are positive, and for what is needed.
    pub fn of(capacities: &[f64], need: Option<f64>) -> PipeScale {
        let narrowest = capacities.iter().copied().fold(f64::INFINITY, f64::min);
        let widest = capacities.iter().copied().chain(need).fold(0.0, f64::max);
        PipeScale {
            widest: widest.min(narrowest * Self::MOST).max(f64::MIN_POSITIVE),
            need,
        }
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
    let (top, thick) = if thick < 1.0 {
        (HEIGHT / 2.0 - 0.5, 1.0)
    } else {
        (top, thick)
    };
    let need = scale
        .need
        .filter(|need| !scale.cuts(*need))
        .map(|need| band(scale.share(need)));
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
    let x = |value: f64| n((value / most).clamp(0.0, 1.0) * WIDTH);
    html! {
        svg class="row" viewBox="0 0 100 20" preserveAspectRatio="none" aria-hidden="true" focusable="false" {
            rect class="flow" x="0" y="3" width=(x(estimate.value)) height="14" {}
            (whisker(&x(estimate.low), &x(estimate.high)))
        }
    }
}

fn whisker(low: &str, high: &str) -> Markup {
    html! {
        path class="whisker" d={ "M" (low) " 10H" (high) "M" (low) " 6V14M" (high) " 6V14" } {}
    }
}

/// A logarithmic axis over whole decades.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogAxis {
    first: i32,
    last: i32,
}

impl LogAxis {
    /// From 1 to 10, for when there is nothing to draw.
    pub const ONE_DECADE: LogAxis = LogAxis { first: 0, last: 1 };

    /// The decades that hold all positive values; none if there is no positive value.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<LogAxis> {
        let logs: Vec<f64> = values
            .into_iter()
            .filter(|v| *v > 0.0 && v.is_finite())
            .map(f64::log10)
            .collect();
        let low = logs.iter().copied().reduce(f64::min)?;
        let high = logs.iter().copied().reduce(f64::max)?;
        let first = low.floor() as i32;
        Some(LogAxis {
            first,
            last: (high.ceil() as i32).max(first + 1),
        })
    }

    fn x(self, value: f64) -> f64 {
        if value <= 0.0 {
            return 0.0;
        }
        let share = (value.log10() - f64::from(self.first)) / f64::from(self.last - self.first);
        share.clamp(0.0, 1.0) * WIDTH
    }

    fn decades(self) -> impl Iterator<Item = f64> {
        (self.first..=self.last).map(|exponent| 10_f64.powi(exponent))
    }

    fn grid(self) -> Markup {
        html! {
            @for decade in self.decades() {
                @let x = n(self.x(decade));
                line class="grid" x1=(x) y1="0" x2=(x) y2="20" {}
            }
        }
    }

    /// The labels of the axis, for the head of the column; every second one where they are many.
    pub fn labels(self, words: impl Fn(f64) -> String) -> Markup {
        let step = if self.last - self.first > 3 { 2 } else { 1 };
        html! {
            span class="unseen" { "drawing" }
            div class="axis" aria-hidden="true" {
                @for decade in self.decades().step_by(step) {
                    span style={ "left:" (n(self.x(decade))) "%" } { (words(decade)) }
                }
            }
        }
    }
}

/// A value with its interval on a logarithmic axis.
pub fn dot(estimate: &Estimate, axis: LogAxis) -> Markup {
    let x = |value: f64| n(axis.x(value));
    let at = axis.x(estimate.value);
    html! {
        svg class="row" viewBox="0 0 100 20" preserveAspectRatio="none" aria-hidden="true" focusable="false" {
            (axis.grid())
            (whisker(&x(estimate.low), &x(estimate.high)))
            // A short thick stroke, since a circle would be stretched.
            line class="tick median" x1=(n(at)) y1="3" x2=(n(at)) y2="17" {}
        }
    }
}

/// The percentiles of a latency on a logarithmic axis: thick the median, then p90, p99, p99.9,
/// and the longest.
pub fn percentiles(latency: &Latency, axis: LogAxis) -> Markup {
    let middle = [latency.p90, latency.p99, latency.p99_9];
    let x = |ns: u64| n(axis.x(ns as f64));
    html! {
        svg class="row" viewBox="0 0 100 20" preserveAspectRatio="none" aria-hidden="true" focusable="false" {
            (axis.grid())
            @if let (Some(from), Some(to)) = (latency.p50, latency.max) {
                line class="span" x1=(x(from)) y1="10" x2=(x(to)) y2="10" {}
            }
            @if let Some(max) = latency.max {
                line class="tick max" x1=(x(max)) y1="4" x2=(x(max)) y2="16" {}
            }
            @for ns in middle.into_iter().flatten() {
                line class="tick" x1=(x(ns)) y1="5" x2=(x(ns)) y2="15" {}
            }
            @if let Some(median) = latency.p50 {
                line class="tick median" x1=(x(median)) y1="3" x2=(x(median)) y2="17" {}
            }
        }
    }
}

/// At most this many points per curve; more would not be seen.
const POINTS: usize = 300;

/// Throughput over time, with the mean dashed and stalls as bands.
pub fn series(result: &JobResult, series: &Series, id: &str) -> Markup {
    let (rates, step_s) = thinned(series);
    let length_s = rates.len() as f64 * step_s;
    let most = rates
        .iter()
        .copied()
        .fold(result.bytes_per_second.value, f64::max);
    if length_s <= 0.0 || most <= 0.0 {
        return html! { p class="note" { "Nothing moved." } };
    }
    const HEIGHT: f64 = 50.0;
    let x = |s: f64| (s / length_s).clamp(0.0, 1.0) * WIDTH;
    let y = |rate: f64| HEIGHT - (rate / most).clamp(0.0, 1.0) * HEIGHT;
    let mut curve = String::new();
    for (i, rate) in rates.iter().enumerate() {
        let middle = x((i as f64 + 0.5) * step_s);
        curve.push_str(&format!(
            "{}{} {}",
            if i == 0 { "M" } else { "L" },
            n(middle),
            n(y(*rate))
        ));
    }
    let first = n(x(0.5 * step_s));
    let last = n(x((rates.len() as f64 - 0.5) * step_s));
    let area = format!("{curve}L{last} 50L{first} 50Z");
    let mean = n(y(result.bytes_per_second.value));
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let (title_id, desc_id) = (format!("{id}-title"), format!("{id}-desc"));
    html! {
        div class="ends" aria-hidden="true" { span { (rate_si(most)) } }
        svg class="series" viewBox="0 0 100 50" preserveAspectRatio="none" role="img"
            aria-labelledby={ (title_id) " " (desc_id) } {
            title id=(title_id) { (words::job_title(result)) " over time" }
            desc id=(desc_id) {
                "Between " (rate_si(least)) " and " (rate_si(most)) " in steps of "
                (n(step_s)) " s over " (n(length_s)) " s; " (result.stalls.len()) (if result.stalls.len() == 1 { " stall." } else { " stalls." })
            }
            @for stall in &result.stalls {
                @let from = x(stall.start_s);
                @let to = x(stall.start_s + stall.length_ms / 1000.0);
                rect class="stall" x=(n(from)) y="0" width=(n((to - from).max(0.4))) height="50" {}
            }
            path class="area" d=(area) {}
            path class="curve" d=(curve) {}
            line class="mean" x1="0" y1=(mean) x2="100" y2=(mean) {}
            line class="grid" x1="0" y1="50" x2="100" y2="50" {}
        }
        div class="ends" aria-hidden="true" { span { "0 s" } span { (format!("{length_s:.1} s")) } }
    }
}

/// Rates in bytes per second per bin, neighbouring bins put together until there are few enough,
/// and the length of such a bin.
fn thinned(series: &Series) -> (Vec<f64>, f64) {
    let together = series.bytes.len().div_ceil(POINTS).max(1);
    let rates = series
        .bytes
        .chunks(together)
        .map(|bins| bins.iter().sum::<u64>() as f64 / (bins.len() as f64 * series.bin_s))
        .collect();
    (rates, series.bin_s * together as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_holds_whole_decades() {
        assert_eq!(
            LogAxis::of([23.0, 1799.0]),
            Some(LogAxis { first: 1, last: 4 })
        );
        assert_eq!(LogAxis::of([100.0]), Some(LogAxis { first: 2, last: 3 }));
        assert_eq!(LogAxis::of([0.0, f64::INFINITY, f64::NAN]), None);
        let axis = LogAxis { first: 1, last: 4 };
        assert_eq!(
            (axis.x(10.0), axis.x(10_000.0), axis.x(0.0)),
            (0.0, 100.0, 0.0)
        );
    }

    #[test]
    fn pipes_are_to_scale_until_the_narrowest_would_vanish() {
        let near = PipeScale::of(&[0.17, 2.3], Some(1.0));
        assert!((near.share(2.3) - 1.0).abs() < 1e-9 && (near.share(1.15) - 0.5).abs() < 1e-9);
        assert!(!near.cuts(2.3));
        let far = PipeScale::of(&[1.0, 3000.0], None);
        assert!(far.cuts(3000.0) && !far.cuts(1.0));
        assert!((far.share(1.0) - 1.0 / PipeScale::MOST).abs() < 1e-9);
    }

    #[test]
    fn a_long_series_is_thinned_without_losing_bytes() {
        let series = Series {
            bin_s: 0.1,
            bytes: (0..1000).collect(),
        };
        let (rates, step_s) = thinned(&series);
        assert_eq!(rates.len(), 250);
        let bytes: f64 = rates.iter().map(|rate| rate * step_s).sum();
        assert!((bytes - 499_500.0).abs() < 1e-6);
    }

    #[test]
    fn numbers_in_drawings_are_short_and_finite() {
        assert_eq!(
            (n(1.0), n(0.126), n(100.0)),
            ("1".into(), "0.13".into(), "100".into())
        );
    }
}
