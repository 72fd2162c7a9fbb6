//! A cluster that was sized: what it holds, which pipe binds, what a loss does, what it costs.

use maud::{Markup, html};
use rubus_cluster::beside::Beside;
use rubus_cluster::ceilings::{Ceiling, Work};
use rubus_cluster::design::Design;
use rubus_cluster::report::Report;
use rubus_cluster::text;
use rubus_vocabulary::basis::{Basis, assumed};
use rubus_vocabulary::units::bytes_iec;

use crate::axis::{Axis, short_count, short_rate};
use crate::charts::{self, PipeScale};
use crate::jobs::{numbers, section};
use crate::latency::labels;
use crate::prose::coded;
use crate::{data, glued, headlines, shell, verdict};

/// The page. `version` is this program's.
pub fn render(report: &Report, version: &str) -> String {
    let title = "A cluster, sized";
    let header = html! {
        h1 { (title) }
        p class="what" { (text::title(&report.design)) }
        (headlines(&[text::answer(report)], reservation(report), None))
        (verdict::next_step(&report.next))
        @for sentence in text::basis(&report.design) { p class="why" { (coded(&sentence)) } }
    };
    let main = html! {
        (pipes(report))
        (ceilings(report))
        @if let Some(found) = &report.beside { (beside(report, found)) }
        (capacity(report))
        (section("loss", "When something fails", list(&report.loss.words)))
        (section("memory", "Memory", sentences(&text::memories(report))))
        (section("rebuild", "Rebuild and risk", sentences(&text::rebuilds(report))))
        (cost(report))
        (section("reservations", "Reservations", list(&report.reservations)))
        p class="note" { (coded(text::LEGEND)) }
    };
    shell(title, version, header, main, data::embed_json(report))
}

fn reservation(report: &Report) -> Option<&'static str> {
    match (report.fits(), text::figures_basis(&report.design)) {
        (false, _) => None,
        (true, Basis::Measured) => None,
        (true, Basis::Published | Basis::Unsettled | Basis::Assumed) => {
            Some("Uncertain: the disks were not measured, and such disks differ by factors.")
        }
    }
}

/// The pipes of large and small writes, each as thick as what it lets through.
fn pipes(report: &Report) -> Markup {
    let drawn = [Work::LargeWrite, Work::SmallWrite];
    let drawn = report.ceilings.iter().filter(|ceiling| drawn.contains(&ceiling.work));
    section(
        "pipes",
        "The pipes",
        html! {
            p class="note" { "Each pipe is as thick as the operations that it lets through alone; the narrowest binds." }
            @for ceiling in drawn { (pipes_of(ceiling, text::figures_basis(&report.design))) }
        },
    )
}

fn pipes_of(ceiling: &Ceiling, basis: Basis) -> Markup {
    let rates = ceiling.pipes.iter().map(|pipe| pipe.per_second.value);
    let scale = PipeScale::of(&rates.collect::<Vec<_>>(), None);
    let caption = format!("Pipes of a {}", ceiling.work.name());
    html! {
        div class="scroll" role="region" aria-label=(caption) tabindex="0" {
            table class="figures" role="table" {
                caption { span { (glued(&caption)) } }
                thead role="rowgroup" { tr role="row" {
                    th scope="col" role="columnheader" { "pipe" }
                    th scope="col" role="columnheader" class="chart words" { "width" }
                    th scope="col" role="columnheader" class="n" { "lets through" }
                } }
                tbody role="rowgroup" {
                    @for pipe in &ceiling.pipes {
                        @let binds = pipe.resource == ceiling.binds;
                        tr role="row" class=[binds.then_some("narrowest")] {
                            th scope="row" role="rowheader" {
                                (pipe.resource.name())
                                @if binds { " " span class="badge" { "binds" } }
                            }
                            td class="chart" role="cell" {
                                (charts::tube(pipe.per_second.value, scale, binds))
                                @if scale.cuts(pipe.per_second.value) { span class="note" { "wider than drawn" } }
                            }
                            td class="n rate" role="cell" { (glued(&basis.figure(&text::amount(ceiling, pipe.per_second.value)))) }
                        }
                    }
                }
            }
        }
    }
}

/// All kinds of work, large and small on a scale each.
fn ceilings(report: &Report) -> Markup {
    let of = |is_large| -> Vec<&Ceiling> {
        let all = report.ceilings.iter();
        all.filter(|ceiling| ceiling.work.is_large() == is_large).collect()
    };
    section(
        "ceilings",
        "Ceilings",
        html! {
            @for is_large in [true, false] { (ceilings_of(&of(is_large), &report.design)) }
            p class="note" { (text::ceilings_note(report.design.in_flight)) }
        },
    )
}

fn ceilings_of(ceilings: &[&Ceiling], design: &Design) -> Markup {
    let basis = text::figures_basis(design);
    let expected = format!("with {}", design.in_flight);
    let is_large = ceilings.first().is_some_and(|ceiling| ceiling.work.is_large());
    let drawn = |ceiling: &Ceiling| if is_large { ceiling.bytes_per_second } else { ceiling.iops };
    let estimates = ceilings.iter().map(|ceiling| drawn(ceiling));
    let axis = if is_large {
        Axis::linear("", estimates.map(|of| of.high).fold(1.0, f64::max), |rate| {
            // The column beside it has the whole unit; a phone has no room for it here.
            short_rate(rate).replace("/s", "")
        })
    } else {
        Axis::log("", estimates.flat_map(|of| [of.low, of.value, of.high]), |value| {
            format!("{}/s", short_count(value))
        })
        .unwrap_or_else(|| Axis::linear("", 1.0, short_count))
    };
    let caption = if is_large {
        "Operations of 4 MiB, one client"
    } else {
        "Operations of 4 KiB, one client (logarithmic)"
    };
    html! {
        div class="scroll" role="region" aria-label=(caption) tabindex="0" {
            table class="figures" role="table" {
                caption { span { (glued(caption)) } }
                thead role="rowgroup" { tr role="row" {
                    th scope="col" role="columnheader" { "work" }
                    th scope="col" role="columnheader" class="chart" { (labels(&axis)) }
                    th scope="col" role="columnheader" class="n" { "at most" }
                    th scope="col" role="columnheader" class="n" { (expected) }
                    th scope="col" role="columnheader" { "bound by" }
                    th scope="col" role="columnheader" class="n" { "alone" }
                } }
                tbody role="rowgroup" {
                    @for ceiling in ceilings {
                        @let estimate = drawn(ceiling);
                        tr role="row" {
                            th scope="row" role="rowheader" { (glued(ceiling.work.name())) }
                            td class="chart" role="cell" {
                                @if is_large { (charts::bar_on(&estimate, &axis)) } @else { (charts::dot(&estimate, &axis)) }
                            }
                            td class="n" role="cell" data-label="at most" {
                                (glued(&basis.figure(&text::amount(ceiling, ceiling.iops.value))))
                                span class="remedy" { (glued(&text::range(ceiling, basis))) }
                            }
                            td class="n" role="cell" data-label=(expected) {
                                (glued(&basis.figure(&text::amount(ceiling, ceiling.expected_iops.value))))
                            }
                            td class="said" role="cell" { (ceiling.binds.name()) @if !ceiling.is_sure { "?" } }
                            td class="n" role="cell" data-label="alone" {
                                (glued(&assumed(&format!("{:.1} ms", ceiling.latency_floor_s.value * 1e3))))
                            }
                        }
                    }
                }
            }
        }
    }
}

fn beside(report: &Report, found: &Beside) -> Markup {
    let rows = text::besides(found).into_iter().map(|[job, rest @ ..]| (job, rest.to_vec()));
    let columns = ["in flight", "expected", "measured", "one board"];
    section(
        "beside",
        "Expected and measured",
        html! {
            (numbers(&format!("Run {}", found.source), "job", &columns, rows))
            @for sentence in text::besides_note(report, found) { p class="note" { (coded(&sentence)) } }
        },
    )
}

fn capacity(report: &Report) -> Markup {
    let padded = report.capacity.padding.iter().map(|row| {
        let factor = row.stored_bytes as f64 / row.object_bytes as f64;
        (bytes_iec(row.object_bytes), vec![bytes_iec(row.stored_bytes), format!("{factor:.2}")])
    });
    section(
        "capacity",
        "Capacity",
        html! {
            div class="scroll" role="region" aria-label="Table: capacity" tabindex="0" {
                table {
                    thead { tr {
                        th scope="col" { "capacity" }
                        th scope="col" class="n" { "bytes" }
                        th scope="col" { "why" }
                    } }
                    tbody {
                        @for (name, bytes, why) in text::capacities(report) { tr {
                            th scope="row" { (name) }
                            td class="n" { (glued(&text::terabytes(bytes))) }
                            td { (why) }
                        } }
                    }
                }
            }
            (numbers("What an object takes on disk", "object", &["on disk", "per byte"], padded))
        },
    )
}

fn cost(report: &Report) -> Markup {
    let (listed, forgotten) = text::bill(&report.cost);
    let rows =
        |rows: Vec<[String; 3]>| rows.into_iter().map(|[name, each, sum]| (name, vec![each, sum]));
    section(
        "cost",
        "Cost and power",
        html! {
            p { (text::in_all(&report.cost)) " Over " (report.cost.years) " years." }
            (numbers("The shopping list", "part", &["each", "sum"], rows(listed)))
            (numbers("What it forgot", "part", &["each", "sum"], rows(forgotten)))
        },
    )
}

fn list(sentences: &[String]) -> Markup {
    html! { ul class="plain" { @for sentence in sentences { li { (coded(sentence)) } } } }
}

fn sentences(sentences: &[String]) -> Markup {
    html! { @for sentence in sentences { p { (coded(sentence)) } } }
}
