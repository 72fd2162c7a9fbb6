//! Several targets alone and all at once: the pipe that they share, as a picture and as bars.

use maud::{Markup, html};
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::finding::{Finding, SharedPipe};
use rubus_vocabulary::result::Run;
use rubus_vocabulary::units::rate_si;

use super::axis::{Axis, short_rate};
use super::charts;
use super::jobs::section;
use super::latency::labels;
use super::plot::n;
use super::{contents, glued, unless_on_top};
use rubus_draw::words;
use rubus_verdict::text::findings::sentence;

/// The section; nothing where no targets were measured together.
pub fn draw(run: &Run) -> Markup {
    let found = run.findings.iter().filter_map(|finding| match finding {
        Finding::SharedPipe(pipe) if !pipe.targets.is_empty() => Some(pipe),
        _ => None,
    });
    let found: Vec<&SharedPipe> = found.collect();
    if found.is_empty() {
        return html! {};
    }
    let targets = found.iter().map(|pipe| pipe.targets.join(" and "));
    let targets = contents::unique(targets.collect());
    section(
        "all-at-once",
        "All at once",
        html! { @for (pipe, targets) in found.iter().zip(&targets) { (one(pipe, targets)) } },
    )
}

fn one(pipe: &SharedPipe, targets: &str) -> Markup {
    html! {
        (unless_on_top(&sentence(&Finding::SharedPipe(pipe.clone()))))
        (picture(pipe))
        (bars(pipe, targets))
    }
}

/// The sum of estimates; its ends are the sums of the ends, which is wider than it has to be.
fn sum(parts: &[Estimate]) -> Estimate {
    let of = |end: fn(&Estimate) -> f64| parts.iter().map(end).sum();
    Estimate::new(of(|e| e.value), of(|e| e.low), of(|e| e.high))
}

/// Height of the picture in its own units.
const HEIGHT: f64 = 60.0;
/// Height on the page for each target, in rem, so that its name fits above its pipe.
const EACH_REM: f64 = 4.5;

/// A pipe for each target, as thick as what it takes alone, filled as far as it is while all run; they
/// run into one that is as thick as all together.
fn picture(pipe: &SharedPipe) -> Markup {
    let (alone, together) = (sum(&pipe.alone).value, sum(&pipe.together).value);
    if alone <= 0.0 || pipe.alone.len() != pipe.together.len() {
        return html! {};
    }
    let joins = pipe.is_shared != Some(false);
    // Half of the height is left between the pipes.
    let scale = HEIGHT * 0.5 / alone;
    let gap = HEIGHT * 0.5 / (pipe.alone.len() + 1) as f64;
    let trunk = if joins { together * scale } else { 0.0 };
    let mut left = gap;
    let mut right = (HEIGHT - trunk) / 2.0;
    let mut tubes = Vec::new();
    for (alone, together) in pipe.alone.iter().zip(&pipe.together) {
        let (outer, inner) = (alone.value * scale, together.value * scale);
        let top = left + (outer - inner) / 2.0;
        let end = if joins { right } else { top };
        tubes.push((left, outer, top, inner, end));
        left += outer + gap;
        right += inner;
    }
    let label = format!(
        "A pipe for each target, as thick as its rate alone ({} in all){}.",
        rate_si(alone),
        if joins {
            format!(", running into one as thick as all together ({})", rate_si(together))
        } else {
            ", side by side to the end".to_string()
        }
    );
    html! {
        figure {
            figcaption { "Outlined: what each does alone. Filled: what it does while all run." }
            div class="joining" style={ "height:" (n(EACH_REM * tubes.len() as f64)) "rem" } {
                svg viewBox="0 0 100 60" preserveAspectRatio="none" role="img" aria-label=(label) focusable="false" {
                    @for (left, outer, top, inner, end) in &tubes {
                        path class="flow" d=(tube(*top, *inner, *end)) {}
                        rect class="need" x="0" y=(n(*left)) width="42" height=(n(*outer)) {}
                    }
                }
                @for (target, (left, ..)) in pipe.targets.iter().zip(&tubes) {
                    span class="above" aria-hidden="true" style={ "bottom:" (n(100.0 - left / HEIGHT * 100.0)) "%" } { (target) }
                }
                span class="above end" aria-hidden="true"
                    style={ "bottom:" (n(50.0 + trunk / HEIGHT * 50.0)) "%" } {
                    @match (&pipe.suspect, joins) {
                        (Some(suspect), true) => (suspect),
                        (None, true) => "what they share",
                        (_, false) => "each on its own way",
                    }
                }
            }
        }
    }
}

/// A band of one thickness from the left end to where it lies at the right end.
fn tube(top: f64, thick: f64, end: f64) -> String {
    let (bottom, end_bottom) = (top + thick, end + thick);
    format!(
        "M0 {}H42C58 {} 54 {} 70 {}H100V{}H70C54 {} 58 {} 42 {}H0Z",
        n(top),
        n(top),
        n(end),
        n(end),
        n(end_bottom),
        n(end_bottom),
        n(bottom),
        n(bottom)
    )
}

fn bars(pipe: &SharedPipe, targets: &str) -> Markup {
    let (alone, together) = (sum(&pipe.alone), sum(&pipe.together));
    let mut rows: Vec<(String, &str, Estimate)> = Vec::new();
    for ((target, alone), together) in pipe.targets.iter().zip(&pipe.alone).zip(&pipe.together) {
        rows.push((target.clone(), "alone", *alone));
        rows.push((target.clone(), "together", *together));
    }
    rows.push(("sum".into(), "alone", alone));
    rows.push(("sum".into(), "together", together));
    let most =
        rows.iter().map(|row| row.2.high).filter(|high| high.is_finite()).fold(0.0, f64::max);
    let axis = Axis::linear("", most, short_rate);
    html! {
        div class="scroll" role="region" aria-label={ "Rates of " (targets) ", alone and together" } tabindex="0" {
            table class="figures" role="table" {
                caption { span { "Rates alone and together, on one scale from zero" } }
                thead role="rowgroup" { tr role="row" {
                    th scope="col" role="columnheader" { "target" }
                    th scope="col" role="columnheader" class="chart" { (labels(&axis)) }
                    th scope="col" role="columnheader" class="n" { "rate" }
                    th scope="col" role="columnheader" class="n" { "±" }
                } }
                tbody role="rowgroup" {
                    @for (target, when, rate) in &rows {
                        tr role="row" class=[(target == "sum").then_some("narrowest")] {
                            th scope="row" role="rowheader" { (target) ", " (when) }
                            td class="chart" role="cell" { (charts::bar_in(rate, &axis, *when == "together")) }
                            td class="n" role="cell" data-label="rate" { (glued(&rate_si(rate.value))) }
                            td class="n" role="cell" data-label="±" { (words::half_width(rate)) }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;

    #[test]
    fn the_sum_has_the_sum_of_the_ends() {
        let total = sum(&[Estimate::new(10.0, 9.0, 12.0), Estimate::new(5.0, 5.0, 6.0)]);
        assert_eq!((total.low, total.value, total.high), (14.0, 15.0, 18.0));
    }

    #[test]
    fn a_target_that_failed_alone_leaves_the_picture_out() {
        let run = fixture::together_run();
        let Finding::SharedPipe(mut pipe) = run.findings[0].clone() else {
            panic!("the example is about a shared pipe");
        };
        assert!(!picture(&pipe).into_string().is_empty());
        pipe.alone = vec![Estimate::exact(0.0), Estimate::exact(0.0)];
        assert!(picture(&pipe).into_string().is_empty());
    }
}
