//! Throughput over time: the course of every job with its stalls, and a sustained write with its
//! cliff.

use maud::{Markup, html};
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::finding::{Cliff, Finding, Recovery};
use rubus_vocabulary::result::{JobResult, Run, Series, Stall, StallCause};
use rubus_vocabulary::units::{bytes_si, duration_ns, rate_si};

use super::axis::{Axis, short_rate};
use super::jobs::{Named, folded, section};
use super::plot::{Labels, Plot};
use super::{glued, unless_on_top};
use rubus_draw::text::capitalized;
use rubus_draw::words;
use rubus_verdict::text::findings::sentence;

/// At most this many points per curve; more would not be seen.
const POINTS: usize = 300;
/// At most this many stalls of a job are told one by one.
const STALLS_TOLD: usize = 6;
/// From this number of curves on, only the disturbed ones are shown at once.
const MANY: usize = 12;

/// Rates in bytes per second, neighbouring bins put together until there are few enough, and the
/// length of such a bin.
#[derive(Clone, Debug, PartialEq)]
struct Course {
    rates: Vec<f64>,
    step_s: f64,
}

impl Course {
    /// None where nothing moved.
    fn of(series: &Series) -> Option<Course> {
        let together = series.bytes.len().div_ceil(POINTS).max(1);
        let rates: Vec<f64> = series
            .bytes
            .chunks(together)
            .map(|bins| bins.iter().sum::<u64>() as f64 / (bins.len() as f64 * series.bin_s))
            .collect();
        let moved = series.bin_s > 0.0 && rates.iter().any(|rate| *rate > 0.0);
        moved.then_some(Course { rates, step_s: series.bin_s * together as f64 })
    }

    fn length_s(&self) -> f64 {
        self.rates.len() as f64 * self.step_s
    }

    fn most(&self) -> f64 {
        self.rates.iter().copied().fold(0.0, f64::max)
    }

    fn least(&self) -> f64 {
        self.rates.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The middle of each bin; the ends of the curve reach the ends of the time.
    fn points(&self) -> Vec<(f64, f64)> {
        let middle = |i: usize| (i as f64 + 0.5) * self.step_s;
        let inner = self.rates.iter().enumerate().map(|(i, rate)| (middle(i), *rate));
        let mut points: Vec<(f64, f64)> = inner.collect();
        if let (Some(first), Some(last)) = (points.first().copied(), points.last().copied()) {
            points.insert(0, (0.0, first.1));
            points.push((self.length_s(), last.1));
        }
        points
    }
}

/// The section with the course of every job but those that have a drawing of their own.
pub fn draw(jobs: &[Named], drawn_elsewhere: &[&str]) -> Markup {
    let curves: Vec<(&Named, Course)> = jobs
        .iter()
        .filter(|named| !drawn_elsewhere.contains(&named.result.job.as_str()))
        .filter_map(|named| Some((named, Course::of(named.result.series.as_ref()?)?)))
        .collect();
    if curves.is_empty() {
        return html! {};
    }
    let is_calm = |named: &Named| curves.len() > MANY && named.result.stalls.is_empty();
    let (calm, shown): (Vec<_>, Vec<_>) = curves.iter().partition(|(named, _)| is_calm(named));
    let summary = format!("{} jobs without a stall", calm.len());
    section(
        "over-time",
        "Over time",
        html! {
            p class="note" {
                "Each with its own scale from zero; dashed the mean. Numbered bands are stalls: times in which "
                "(nearly) nothing moved."
            }
            @if !shown.is_empty() { div class="many" { @for (named, course) in shown { (one(named, course)) } } }
            @if !calm.is_empty() {
                (folded(&summary, html! { div class="many" { @for (named, course) in calm { (one(named, course)) } } }))
            }
        },
    )
}

fn one(named: &Named, course: &Course) -> Markup {
    let result = named.result;
    let plot = plot(course.length_s(), course.most().max(result.bytes_per_second.value), "low");
    let content = html! {
        (stall_bands(&result.stalls, &plot))
        (curve(course, &plot))
        (plot.level(result.bytes_per_second.value, "mean"))
        (stall_numbers(&result.stalls, &plot))
    };
    html! {
        figure {
            figcaption {
                (named.title) ": " (glued(&rate_si(result.bytes_per_second.value))) " "
                (glued(&words::plus_minus(&result.bytes_per_second)))
                (stall_list(result))
            }
            (plot.draw(&described(&named.title, result, course), content))
        }
    }
}

fn plot(length_s: f64, most: f64, size: &'static str) -> Plot {
    Plot {
        x: Axis::time("seconds", length_s),
        y: Axis::linear("bytes per second", most, short_rate),
        size,
    }
}

fn curve(course: &Course, plot: &Plot) -> Markup {
    let points = course.points();
    html! {
        (plot.area(&points, "below"))
        (plot.line(points, "curve"))
    }
}

/// What a screen reader says for a curve.
fn described(title: &str, result: &JobResult, course: &Course) -> String {
    let stalls = match result.stalls.len() {
        0 => "no stall".to_string(),
        1 => "1 stall".to_string(),
        n => format!("{n} stalls"),
    };
    format!(
        "{title} over time: between {} and {} in steps of {} over {}, on average {}; {stalls}.",
        rate_si(course.least()),
        rate_si(course.most()),
        duration_ns((course.step_s * 1e9).round() as u64),
        words::span(course.length_s().max(1.0)),
        rate_si(result.bytes_per_second.value),
    )
}

/// A band is plain where the device is to blame, and outlined and dashed where something else is.
fn stall_bands(stalls: &[Stall], plot: &Plot) -> Markup {
    html! {
        @for stall in stalls {
            @let class = if stall.cause == StallCause::Device { "stall" } else { "stall other" };
            (plot.band_x(stall.start_s, stall.start_s + stall.length_ms / 1000.0, class))
        }
    }
}

fn stall_numbers(stalls: &[Stall], plot: &Plot) -> Markup {
    let mut labels = Labels::default();
    html! {
        @for (i, stall) in stalls.iter().take(STALLS_TOLD).enumerate() {
            (labels.place(plot, stall.start_s, plot.y.end(), (2.0, 12.0), &(i + 1).to_string()))
        }
    }
}

/// The stalls one by one, and what else held the job down.
fn stall_list(result: &JobResult) -> Markup {
    let more = result.stalls.len().saturating_sub(STALLS_TOLD);
    let throttled = result.doubts.iter().filter_map(|doubt| match doubt {
        Doubt::Throttled { .. } | Doubt::Undervoltage => Some(doubt.what()),
        _ => None,
    });
    html! {
        @for (i, stall) in result.stalls.iter().take(STALLS_TOLD).enumerate() {
            span class="note" {
                (i + 1) ": stalled at " (glued(&format!("{:.1} s", stall.start_s))) " for "
                (glued(&duration_ns((stall.length_ms * 1e6) as u64))) ": " (words::stall_cause(stall.cause))
            }
        }
        @if more > 0 {
            @let longest = result.stalls.iter().map(|stall| stall.length_ms).fold(0.0, f64::max);
            span class="note" {
                "and " (more) " more stalls; the longest of all took " (glued(&duration_ns((longest * 1e6) as u64)))
            }
        }
        @for what in throttled { span class="note" { "during this job " (what) } }
    }
}

/// The sustained writes of a run, with the jobs that their drawings show.
pub fn cliffs(run: &Run) -> Vec<&Cliff> {
    let cliffs = run.findings.iter().filter_map(|finding| match finding {
        Finding::Cliff(cliff) => Some(cliff),
        _ => None,
    });
    cliffs.collect()
}

/// The names of the jobs that [`sustained`] draws.
pub fn drawn_with_cliffs(run: &Run) -> Vec<&str> {
    if cliffs(run).is_empty() {
        return Vec::new();
    }
    run.results.iter().filter(|r| writes_on(run, r)).map(|r| r.job.as_str()).collect()
}

/// A job of a cliff, or its repetition after the rest: named like it, with more behind.
fn writes_on(run: &Run, result: &JobResult) -> bool {
    cliffs(run).iter().any(|cliff| result.job.starts_with(&cliff.job))
}

/// The section of sustained writing.
pub fn sustained(run: &Run, jobs: &[Named]) -> Markup {
    let courses: Vec<(&Named, Course)> = jobs
        .iter()
        .filter(|named| writes_on(run, named.result))
        .filter_map(|named| Some((named, Course::of(named.result.series.as_ref()?)?)))
        .collect();
    if courses.is_empty() {
        return html! {};
    }
    let most = courses.iter().map(|(_, course)| course.most()).fold(0.0, f64::max);
    let longest_s = courses.iter().map(|(_, course)| course.length_s()).fold(0.0, f64::max);
    section(
        "sustained",
        "Writing on and on",
        html! {
            p class="note" { "All on the same scales. Numbered bands are stalls." }
            @for cliff in cliffs(run) { (unless_on_top(&sentence(&Finding::Cliff(cliff.clone())))) }
            @for (named, course) in &courses {
                @let cliff = cliffs(run).into_iter().find(|cliff| cliff.job == named.result.job);
                @let plot = plot(longest_s, most, "tall wide");
                @let back = cliffs(run).into_iter().find_map(|cliff| cliff.recovery).filter(|_| cliff.is_none());
                figure {
                    figcaption { (capitalized(&named.result.job.replace('-', " "))) (stall_list(named.result)) }
                    (cliff_curve(named, course, (cliff, back), &plot))
                }
            }
        },
    )
}

/// The curve with its cliff, or with what a rest gave back.
fn cliff_curve(
    named: &Named,
    course: &Course,
    (cliff, back): (Option<&Cliff>, Option<Recovery>),
    plot: &Plot,
) -> Markup {
    let series = named.result.series.as_ref();
    let at = |bytes: f64| series.map_or(0.0, |series| time_of(series, bytes));
    let fall = cliff.and_then(|cliff| Some((cliff, cliff.burst_bytes.as_ref()?)));
    let content = html! {
        @if let Some((_, bytes)) = fall { (plot.band_x(at(bytes.low), at(bytes.high), "interval")) }
        (stall_bands(&named.result.stalls, plot))
        (curve(course, plot))
        @if let Some((cliff, bytes)) = fall {
            @let (at, burst) = (at(bytes.value), cliff.burst_bytes_per_second.value);
            (plot.upright(at, "cliff"))
            (plot.line([(0.0, burst), (at, burst)], "bound"))
            (plot.words(at, plot.y.end(), (6.0, 13.0), &format!("cliff after {}", bytes_si(bytes.value as u64))))
            @if let Some(rate) = &cliff.sustained_bytes_per_second {
                (plot.line([(at, rate.value), (course.length_s(), rate.value)], "bound"))
                (plot.words((at + course.length_s()) / 2.0, rate.value, (0.0, -8.0), &rate_si(rate.value)))
            }
        }
        @if let Some(back) = back {
            @let (at, bytes) = (at(back.burst_bytes as f64), bytes_si(back.burst_bytes));
            (plot.upright(at, "cliff"))
            (plot.words(at, plot.y.end(), (6.0, 13.0), &format!("{bytes} at full speed")))
        }
        (stall_numbers_low(&named.result.stalls, plot))
    };
    let fall = fall.map_or(String::new(), |(cliff, bytes)| {
        format!(
            " The rate falls after {} from {} to {}.",
            bytes_si(bytes.value as u64),
            rate_si(cliff.burst_bytes_per_second.value),
            cliff
                .sustained_bytes_per_second
                .map_or("an unknown rate".into(), |rate| rate_si(rate.value))
        )
    });
    let label = described(&named.title, named.result, course) + &fall;
    plot.draw(&label, content)
}

/// Numbers of stalls at half height, where the words of the cliff are not.
fn stall_numbers_low(stalls: &[Stall], plot: &Plot) -> Markup {
    let mut labels = Labels::default();
    html! {
        @for (i, stall) in stalls.iter().take(STALLS_TOLD).enumerate() {
            (labels.place(plot, stall.start_s, plot.y.end() / 2.0, (3.0, 0.0), &(i + 1).to_string()))
        }
    }
}

/// The time at which `bytes` bytes had been written, in seconds.
fn time_of(series: &Series, bytes: f64) -> f64 {
    let mut written = 0.0;
    for (i, bin) in series.bytes.iter().enumerate() {
        let bin = *bin as f64;
        if bin > 0.0 && written + bin >= bytes {
            return (i as f64 + (bytes - written) / bin) * series.bin_s;
        }
        written += bin;
    }
    series.bytes.len() as f64 * series.bin_s
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;

    #[test]
    fn a_long_series_is_thinned_without_losing_bytes() {
        let series = Series { bin_s: 0.1, bytes: (0..1000).collect() };
        let course = Course::of(&series).expect("something moved");
        assert_eq!(course.rates.len(), 250);
        let bytes: f64 = course.rates.iter().map(|rate| rate * course.step_s).sum();
        assert!((bytes - 499_500.0).abs() < 1e-6);
        let still = Series { bin_s: 0.1, bytes: vec![0; 5] };
        assert_eq!(Course::of(&still), None);
    }

    #[test]
    fn the_time_of_the_cliff_is_when_its_bytes_were_written() {
        let series = Series { bin_s: 0.5, bytes: vec![100, 100, 0, 100] };
        let times = [50.0, 100.0, 200.0, 250.0, 900.0].map(|bytes| time_of(&series, bytes));
        assert_eq!(times, [0.25, 0.5, 1.0, 1.75, 2.0]);
    }

    #[test]
    fn a_repetition_after_the_rest_is_drawn_beside_its_cliff() {
        let run = fixture::sustained_run();
        assert_eq!(drawn_with_cliffs(&run), ["sustained-write", "sustained-write-again"]);
        assert!(drawn_with_cliffs(&fixture::slow_sd_card_run()).is_empty());
    }
}
