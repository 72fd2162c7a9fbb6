//! Queue-depth sweeps: latency against operations per second with the knee, and operations per
//! second against depth.

use maud::{Markup, html};
use rubus_stats::estimate::Estimate;
use rubus_verdict::findings::knee::fitted_iops;
use rubus_vocabulary::finding::{Finding, Knee};
use rubus_vocabulary::result::{JobResult, Run};
use rubus_vocabulary::units::{duration_ns, iops, rate_si};

use super::axis::{Axis, short_count, short_duration};
use super::jobs::{folded, numbers, section};
use super::plot::{Labels, Look, Plot, Shape, key, key_of_marks, sureness};
use super::{contents, unless_on_top};
use rubus_draw::words;
use rubus_verdict::text::findings::{depth as said, range, sentence};

/// Minimum number of depths for results that differ only in their depth to count as a sweep.
const A_SWEEP: usize = 4;

/// The anchor of the section.
const ID: &str = "queue-depth";

const MEASURED: Look = Look { shape: Shape::Circle, hollow: false };

/// Results of one kind of operation at ascending depths.
pub struct Sweep<'a> {
    /// At least two.
    pub results: Vec<&'a JobResult>,
    knee: Option<&'a Knee>,
}

/// Operations in flight of a result, copies included.
fn depth(result: &JobResult) -> f64 {
    f64::from(result.queue_depth) * f64::from(result.copies.unwrap_or(1).max(1))
}

/// The sweeps of a run: those of which a knee was told, and those that were only measured.
pub fn sweeps(run: &Run) -> Vec<Sweep<'_>> {
    let knees = run.findings.iter().filter_map(|finding| match finding {
        Finding::Knee(knee) => Some(knee),
        _ => None,
    });
    let mut sweeps: Vec<Sweep> = knees
        .map(|knee| Sweep {
            results: knee.jobs.iter().filter_map(|name| run.job(name)).collect(),
            knee: Some(knee),
        })
        .collect();
    let mut others: Vec<Sweep> = Vec::new();
    for result in &run.results {
        let told = |sweep: &Sweep| sweep.results.iter().any(|known| std::ptr::eq(*known, result));
        if result.iops.value <= 0.0 || sweeps.iter().any(told) {
            continue;
        }
        match others.iter_mut().find(|s| alike(s.results[0], result)) {
            Some(sweep) => sweep.results.push(result),
            None => others.push(Sweep { results: vec![result], knee: None }),
        }
    }
    for sweep in &mut others {
        sweep.results.sort_by(|a, b| depth(a).total_cmp(&depth(b)));
        sweep.results.dedup_by(|a, b| depth(a) == depth(b));
    }
    others.retain(|sweep| sweep.results.len() >= A_SWEEP);
    sweeps.extend(others);
    sweeps.retain_mut(|sweep| {
        sweep.results.retain(|result| result.iops.value > 0.0);
        sweep.results.len() >= 2
    });
    sweeps
}

/// Whether two results differ at most in their depth.
fn alike(a: &JobResult, b: &JobResult) -> bool {
    (a.operation, a.direction, a.pattern, a.block_bytes, a.commit)
        == (b.operation, b.direction, b.pattern, b.block_bytes, b.commit)
        && (&a.access, &a.content, &a.on) == (&b.access, &b.content, &b.on)
}

/// Mean latency by Little's law: what is in flight over what is done per second, in nanoseconds.
fn latency_ns(result: &JobResult) -> Estimate {
    let in_flight = depth(result) * 1e9;
    let rate = &result.iops;
    Estimate::new(
        in_flight / rate.value,
        in_flight / rate.high,
        if rate.low > 0.0 { in_flight / rate.low } else { f64::INFINITY },
    )
}

/// The section; nothing where there is no sweep.
pub fn draw(sweeps: &[Sweep]) -> Markup {
    let all = || sweeps.iter().flat_map(|sweep| sweep.results.iter().copied());
    let rates = all().flat_map(|r| [r.iops.low, r.iops.value, r.iops.high]);
    let latencies = all().map(latency_ns).flat_map(|l| [l.low, l.value, l.high]);
    let titles = ("operations per second, logarithmic", "mean latency, logarithmic");
    let (Some(x), Some(y)) =
        (Axis::log(titles.0, rates, short_count), Axis::log(titles.1, latencies, short_duration))
    else {
        return html! {};
    };
    let most = all().map(|r| r.iops.value).fold(0.0, f64::max);
    let Some(depths) =
        Axis::powers_of_two("operations in flight, logarithmic", all().map(depth), short_count)
    else {
        return html! {};
    };
    let curve = Plot { x, y, size: "tall" };
    let gain = Plot {
        x: depths,
        y: Axis::linear("operations per second", most * 1.06, short_count),
        size: "tall",
    };
    let note = "Each point is one queue depth, with its 95\u{a0}% interval; the line is the fitted curve. Dashed: \
                what one operation takes alone, and the most that is ever done per second. Where the two \
                meet is the knee: beyond it, more in flight only waits longer.";
    let shared = "All sweeps are drawn on the same scales.";
    let titles = contents::unique(sweeps.iter().map(title_of).collect());
    section(
        ID,
        "Queue depth",
        html! {
            p class="note" { (note) @if sweeps.len() > 1 { " " (shared) } }
            @for (sweep, title) in sweeps.iter().zip(&titles) { (one(sweep, title, &curve, &gain)) }
        },
    )
}

fn title_of(sweep: &Sweep) -> String {
    let title = words::job_title(&JobResult { queue_depth: 1, ..sweep.results[0].clone() });
    match &sweep.results[0].on {
        Some(on) => format!("{title} on {on}"),
        None => title,
    }
}

fn one(sweep: &Sweep, title: &str, curve: &Plot, gain: &Plot) -> Markup {
    html! {
        h3 id={ (ID) "-" (contents::anchor(title)) } { (title) }
        @if let Some(knee) = sweep.knee { (unless_on_top(&sentence(&Finding::Knee(knee.clone())))) }
        div class="pair" {
            figure {
                figcaption { "Latency against operations per second" }
                (latency_curve(sweep, curve, title))
            }
            figure {
                figcaption { "Operations per second against depth" }
                (depth_curve(sweep, gain, title))
            }
        }
        (key_of(sweep))
        (folded("Numbers of this sweep", table(sweep, title)))
    }
}

fn key_of(sweep: &Sweep) -> Markup {
    let has_knee = sweep.knee.is_some_and(|knee| !knee.is_one_at_a_time);
    let found = has_knee.then_some("knee, its interval shaded");
    html! {
        (key([(MEASURED, "measured, the depth beside it")]))
        (key_of_marks(sweep.results.iter().copied(), found))
    }
}

/// "6.0 (5.6 to 6.4)".
fn depth_words(depth: &Estimate) -> String {
    format!("{} ({})", said(depth.value), range(depth, said))
}

fn point_words(result: &JobResult) -> String {
    format!(
        "{} in flight: {} per second {}, {} on average",
        depth(result),
        iops(result.iops.value),
        words::plus_minus(&result.iops),
        duration_ns(latency_ns(result).value as u64)
    )
}

fn latency_curve(sweep: &Sweep, plot: &Plot, title: &str) -> Markup {
    let points = || sweep.results.iter().map(|r| (r.iops.value, latency_ns(r).value));
    let mut labels = Labels::default();
    let content = html! {
        @if let Some(knee) = sweep.knee {
            (plot.band_x(knee.ceiling_iops.low, knee.ceiling_iops.high, "interval"))
            (plot.band_y(knee.service_ns.low, knee.service_ns.high, "interval"))
            (plot.upright(knee.ceiling_iops.value, "bound"))
            (plot.level(knee.service_ns.value, "bound"))
        }
        @match sweep.knee {
            Some(knee) => (plot.line(fitted(knee, sweep).into_iter().map(|(depth, iops)| (iops, depth * 1e9 / iops)), "joined")),
            None => (plot.line(points(), "joined")),
        }
        @for result in &sweep.results {
            @let latency = latency_ns(result);
            (plot.whisker_x(result.iops.low, result.iops.high, latency.value, sureness(result)))
            (plot.whisker_y(result.iops.value, latency.low, latency.high, sureness(result)))
            (plot.point(result.iops.value, latency.value, MEASURED, &point_words(result)))
        }
        @if let Some(knee) = sweep.knee.filter(|knee| !knee.is_one_at_a_time) {
            @let words = format!("knee {}", depth_words(&knee.depth));
            (plot.found(knee.ceiling_iops.value, knee.service_ns.value, &words))
            (labels.place(plot, knee.ceiling_iops.value, knee.service_ns.value, (0.0, 20.0), &words))
        }
        @for result in sweep.results.iter().rev() {
            (labels.place(plot, result.iops.value, latency_ns(result).value, (8.0, -6.0), &depth(result).to_string()))
        }
    };
    plot.draw(&curve_label(sweep, title), content)
}

/// What a screen reader says for the curve.
fn curve_label(sweep: &Sweep, title: &str) -> String {
    let at = |result: &JobResult| {
        format!(
            "{} per second at {} on average with {} in flight",
            iops(result.iops.value),
            duration_ns(latency_ns(result).value as u64),
            depth(result)
        )
    };
    let knee = match sweep.knee {
        Some(knee) if knee.is_one_at_a_time => "; no gain from queueing".to_string(),
        Some(knee) => format!("; knee at a depth of {}", depth_words(&knee.depth)),
        None => String::new(),
    };
    match (sweep.results.first(), sweep.results.last()) {
        (Some(first), Some(last)) => format!(
            "Latency against operations per second, {title}: from {} to {}{knee}. The numbers are in the table below.",
            at(first),
            at(last)
        ),
        _ => title.to_string(),
    }
}

fn depth_curve(sweep: &Sweep, plot: &Plot, title: &str) -> Markup {
    let points = || sweep.results.iter().map(|r| (depth(r), r.iops.value));
    let content = html! {
        @if let Some(knee) = sweep.knee {
            @if !knee.is_one_at_a_time {
                (plot.band_x(knee.depth.low, knee.depth.high, "interval"))
            }
            (plot.level(knee.ceiling_iops.value, "bound"))
            (plot.line(rising(knee, plot), "bound"))
        }
        @match sweep.knee {
            Some(knee) => (plot.line(fitted(knee, sweep), "joined")),
            None => (plot.line(points(), "joined")),
        }
        @for result in &sweep.results {
            (plot.whisker_y(depth(result), result.iops.low, result.iops.high, sureness(result)))
            (plot.point(depth(result), result.iops.value, MEASURED, &point_words(result)))
        }
        @if let Some(knee) = sweep.knee {
            @if knee.is_one_at_a_time {
                (plot.words(plot.x.start(), knee.ceiling_iops.value, (10.0, -14.0), "no gain from queueing"))
            } @else {
                (plot.found(knee.depth.value, knee.ceiling_iops.value, &format!("knee {}", depth_words(&knee.depth))))
            }
        }
    };
    let label = format!(
        "Operations per second against depth, {title}: {}.",
        sweep
            .results
            .iter()
            .map(|r| format!("{} at {}", iops(r.iops.value), depth(r)))
            .collect::<Vec<_>>()
            .join(", ")
    );
    plot.draw(&label, content)
}

/// Steps of a curve over the depths.
const STEPS: u32 = 48;

/// Depths from one to another in equal ratios.
fn depths(from: f64, to: f64) -> impl Iterator<Item = f64> {
    (0..=STEPS).map(move |step| from * (to / from).powf(f64::from(step) / f64::from(STEPS)))
}

/// The rising asymptote, N operations per service time, up to the ceiling. On a logarithmic axis of
/// depths it is a curve.
fn rising(knee: &Knee, plot: &Plot) -> Vec<(f64, f64)> {
    let (from, to) = (plot.x.start(), knee.depth.value.min(plot.x.end()));
    if to <= from || knee.service_ns.value <= 0.0 {
        return Vec::new();
    }
    depths(from, to).map(|depth| (depth, depth * 1e9 / knee.service_ns.value)).collect()
}

/// Depth and operations per second along the fitted curve, over the depths of the sweep.
fn fitted(knee: &Knee, sweep: &Sweep) -> Vec<(f64, f64)> {
    let (Some(first), Some(last)) = (sweep.results.first(), sweep.results.last()) else {
        return Vec::new();
    };
    if knee.service_ns.value <= 0.0 {
        return Vec::new();
    }
    // The model knows whole operations only.
    let mut whole: Vec<u32> =
        depths(depth(first), depth(last)).map(|depth| depth.round() as u32).collect();
    whole.dedup();
    let points = whole.into_iter();
    points.map(|depth| (f64::from(depth), fitted_iops(knee, depth))).collect()
}

fn table(sweep: &Sweep, title: &str) -> Markup {
    let time = |ns: Option<u64>| ns.map_or("–".to_string(), duration_ns);
    let rows = sweep.results.iter().map(|r| {
        let cells = vec![
            iops(r.iops.value),
            words::plus_minus(&r.iops),
            rate_si(r.bytes_per_second.value),
            duration_ns(latency_ns(r).value as u64),
            time(r.latency_ns.p50),
            time(r.latency_ns.p99),
            time(r.latency_ns.max),
        ];
        (depth(r).to_string(), cells)
    });
    numbers(
        &format!("{title} at each depth"),
        "in flight",
        &["per second", "±", "rate", "mean", "p50", "p99", "longest"],
        rows,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;

    #[test]
    fn a_sweep_is_found_with_and_without_its_knee() {
        let mut run = fixture::queue_depth_run();
        let lengths = |run: &Run| -> Vec<(usize, bool)> {
            sweeps(run).iter().map(|s| (s.results.len(), s.knee.is_some())).collect()
        };
        assert_eq!(lengths(&run), [(9, true), (9, true)]);
        run.findings.remove(0);
        assert_eq!(lengths(&run), [(9, true), (9, false)]);
        assert!(sweeps(&fixture::slow_sd_card_run()).is_empty());
        assert!(sweeps(&fixture::block_size_run()).is_empty());
    }

    #[test]
    fn a_sweep_of_a_device_that_failed_halfway_has_the_first_half() {
        let mut run = fixture::queue_depth_run();
        for result in run.results.iter_mut().filter(|r| r.queue_depth > 8) {
            result.iops = Estimate::new(0.0, 0.0, f64::INFINITY);
        }
        assert_eq!(sweeps(&run)[0].results.len(), 4);
    }
}
