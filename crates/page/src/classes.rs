//! Speed classes: each threshold in the middle of its drawing, what was measured beside it.

use maud::{Markup, html};
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::finding::{Finding, SpeedClass, Threshold};
use rubus_vocabulary::result::Run;

use super::axis::Axis;
use super::charts;
use super::glued;
use super::jobs::section;
use super::latency::labels;
use rubus_draw::words;
use rubus_verdict::text::findings::value;

/// Ratios to the threshold that the axis holds at least.
const RATIOS: [f64; 2] = [0.5, 2.0];

/// The section; nothing where no class was judged.
pub fn draw(run: &Run) -> Markup {
    let found = run.findings.iter().filter_map(|finding| match finding {
        Finding::SpeedClass(class) => Some(class),
        _ => None,
    });
    let found: Vec<&SpeedClass> = found.collect();
    if found.is_empty() {
        return html! {};
    }
    let ratios = found.iter().flat_map(|class| &class.thresholds).flat_map(|threshold| {
        let ratio = ratio(threshold);
        [ratio.low, ratio.value, ratio.high]
    });
    let Some(axis) = Axis::log("", ratios.chain(RATIOS), |ratio| format!("×{ratio}")) else {
        return html! {};
    };
    section(
        "speed-classes",
        "Speed classes",
        html! {
            p class="note" {
                "What was measured as a multiple of what the class asks for, on one logarithmic scale. The heavy line is "
                "the threshold. A class is a promise about one kind of test: this is how it behaves here."
            }
            (table(&found, &axis))
        },
    )
}

/// Measured over asked for.
fn ratio(threshold: &Threshold) -> Estimate {
    threshold.measured.scaled(1.0 / threshold.least.max(f64::MIN_POSITIVE))
}

fn table(classes: &[&SpeedClass], axis: &Axis) -> Markup {
    html! {
        div class="scroll" role="region" aria-label="Thresholds of the speed classes" tabindex="0" {
            table class="figures" role="table" {
                caption { span { "Thresholds of the speed classes" } }
                thead role="rowgroup" { tr role="row" {
                    th scope="col" role="columnheader" { "class" }
                    th scope="col" role="columnheader" class="chart" { (labels(axis)) }
                    th scope="col" role="columnheader" class="n" { "asks for" }
                    th scope="col" role="columnheader" class="n" { "measured" }
                    th scope="col" role="columnheader" { "class is" }
                } }
                tbody role="rowgroup" {
                    @for class in classes { @for (i, threshold) in class.thresholds.iter().enumerate() {
                        tr role="row" {
                            th scope="row" role="rowheader" { (class.class) ", " (threshold.what) }
                            td class="chart" role="cell" { (charts::against(&ratio(threshold), 1.0, axis)) }
                            td class="n" role="cell" data-label="asks for" { (glued(&value(threshold, threshold.least))) }
                            td class="n" role="cell" data-label="measured" {
                                (glued(&value(threshold, threshold.measured.value))) " " (glued(&words::plus_minus(&threshold.measured)))
                            }
                            td class="said" role="cell" { @if i == 0 { (met(class.is_met)) } }
                        }
                    } }
                }
            }
        }
    }
}

fn met(is_met: Option<bool>) -> Markup {
    match is_met {
        Some(true) => html! { span class="word faster" { "met" } },
        Some(false) => html! { span class="word slower" { "not met" } },
        None => html! { span class="word" { "undecided" } },
    }
}
