//! Layouts, other boards, and ways without Ceph, side by side.

use maud::{Markup, html};
use rubus_cluster::compare::{self, Comparison, Figures, Row};
use rubus_cluster::text;
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::basis::assumed;
use rubus_vocabulary::units::{bytes_si, iops, rate_si};

use crate::axis::{Axis, short_count, short_rate};
use crate::charts;
use crate::jobs::section;
use crate::latency::labels;
use crate::prose::coded;
use crate::{data, glued, headlines, shell, verdict};

/// The page. `version` is this program's.
pub fn render(comparison: &Comparison, version: &str) -> String {
    let title = "Clusters in comparison";
    let header = html! {
        h1 { (title) }
        p class="what" { (comparison.base) }
        (headlines(&headline(comparison), Some("Uncertain: most figures are assumed, see the ranges."), None))
        (verdict::next_step(&comparison.next))
    };
    let main = html! {
        (outcomes(comparison))
        @for quantity in Quantity::ALL { (figure(comparison, quantity)) }
        p class="note" { (coded(compare::LEGEND)) }
    };
    shell(title, version, header, main, data::embed_json(comparison))
}

fn possible(comparison: &Comparison) -> impl Iterator<Item = (&Row, &Figures)> {
    let rows = comparison.rows.iter();
    rows.filter_map(|row| Some((row, row.outcome.as_ref().ok()?)))
}

/// The cheapest bytes, and the cheapest that heal by themselves.
fn headline(comparison: &Comparison) -> Vec<String> {
    let cheapest = |only: fn(&Figures) -> bool| {
        let rows = possible(comparison).filter(|(_, figures)| only(figures));
        rows.min_by(|(_, a), (_, b)| {
            a.total_per_usable_tb.value.total_cmp(&b.total_per_usable_tb.value)
        })
    };
    let said = |(row, figures): (&Row, &Figures)| {
        let per_tb = assumed(&text::money(figures.total_per_usable_tb.value));
        format!("{} ({per_tb} per usable TB)", row.name)
    };
    let Some(all) = cheapest(|_| true) else {
        return Vec::new();
    };
    let healing = cheapest(|figures| figures.heals);
    vec![match healing {
        Some(healing) if healing.0.name == all.0.name => {
            format!("Cheapest, and it heals by itself: {}.", said(all))
        }
        Some(healing) => {
            format!("Cheapest: {}. Cheapest that heals by itself: {}.", said(all), said(healing))
        }
        None => format!("Cheapest: {}. None of them heals by itself.", said(all)),
    }]
}

fn outcomes(comparison: &Comparison) -> Markup {
    section(
        "outcomes",
        "What a loss does",
        html! {
            div class="scroll" role="region" aria-label="Table: what a loss does" tabindex="0" {
                table {
                    thead { tr {
                        th scope="col" { "layout" }
                        th scope="col" class="n" { "may fail" }
                        th scope="col" { "heals" }
                        th scope="col" { "memory" }
                        th scope="col" class="n" { "loss a year" }
                        th scope="col" { "besides" }
                    } }
                    tbody { @for row in &comparison.rows { (outcome(row)) } }
                }
            }
        },
    )
}

fn outcome(row: &Row) -> Markup {
    let name = html! {
        th scope="row" class="wrap" { (row.name) span class="remedy" { (row.group) } }
    };
    match &row.outcome {
        Err(why) => html! { tr {
            (name)
            td class="n" { "–" }
            td { "–" }
            td { "–" }
            td class="n" { "–" }
            td { "Impossible: " (why.replace('\n', ". ")) }
        } },
        Ok(figures) => html! { tr {
            (name)
            td class="n" { (figures.survives) }
            td { @if figures.heals { "yes" } @else { "no" } }
            td { (figures.memory.map_or("–", compare::memory_words)) }
            td class="n" { (glued(&compare::share_of_years(figures.loss_per_year.value))) }
            td { (figures.remark) }
        } },
    }
}

/// What is drawn of each.
#[derive(Clone, Copy, PartialEq)]
enum Quantity {
    Usable,
    LargeWrites,
    SmallWrites,
    PerTerabyte,
}

impl Quantity {
    const ALL: [Quantity; 4] =
        [Quantity::Usable, Quantity::LargeWrites, Quantity::SmallWrites, Quantity::PerTerabyte];

    fn title(self) -> &'static str {
        match self {
            Quantity::Usable => "Usable capacity",
            Quantity::LargeWrites => "Writes of 4 MiB",
            Quantity::SmallWrites => "Writes of 4 KiB",
            Quantity::PerTerabyte => "Cost per usable TB",
        }
    }

    fn id(self) -> &'static str {
        match self {
            Quantity::Usable => "usable",
            Quantity::LargeWrites => "large-writes",
            Quantity::SmallWrites => "small-writes",
            Quantity::PerTerabyte => "cost",
        }
    }

    fn of(self, figures: &Figures) -> Option<Estimate> {
        match self {
            Quantity::Usable => Some(figures.usable_bytes),
            Quantity::LargeWrites => Some(figures.write_bytes_per_second),
            Quantity::SmallWrites => figures.small_write_iops,
            Quantity::PerTerabyte => Some(figures.total_per_usable_tb),
        }
    }

    fn words(self, value: f64) -> String {
        match self {
            Quantity::Usable => bytes_si(value as u64),
            Quantity::LargeWrites => assumed(&rate_si(value)),
            Quantity::SmallWrites => assumed(&iops(value)),
            Quantity::PerTerabyte => assumed(&text::money(value)),
        }
    }

    fn tick(self, value: f64) -> String {
        match self {
            Quantity::Usable if value >= 1e12 => format!("{} TB", value / 1e12),
            // The column beside it has the whole unit; a phone has no room for it here.
            Quantity::Usable | Quantity::LargeWrites => short_rate(value).replace("/s", ""),
            Quantity::SmallWrites => short_count(value),
            Quantity::PerTerabyte => format!("{value:.0}"),
        }
    }
}

fn figure(comparison: &Comparison, quantity: Quantity) -> Markup {
    let rows: Vec<(&Row, Estimate)> = possible(comparison)
        .filter_map(|(row, figures)| Some((row, quantity.of(figures)?)))
        .collect();
    let most = rows.iter().map(|(_, estimate)| estimate.high);
    let axis = Axis::linear("", most.fold(1.0, f64::max), |value| quantity.tick(value));
    let title = quantity.title();
    section(
        quantity.id(),
        title,
        html! {
            div class="scroll" role="region" aria-label={ "Table: " (title) } tabindex="0" {
                table class="figures" role="table" {
                    thead role="rowgroup" { tr role="row" {
                        th scope="col" role="columnheader" { "layout" }
                        th scope="col" role="columnheader" class="chart" { (labels(&axis)) }
                        th scope="col" role="columnheader" class="n" { "value" }
                    } }
                    tbody role="rowgroup" {
                        @for (row, estimate) in &rows { tr role="row" {
                            th scope="row" role="rowheader" { (row.name) span class="remedy" { (row.group) } }
                            td class="chart" role="cell" { (charts::bar_on(estimate, &axis)) }
                            td class="n" role="cell" data-label="value" { (glued(&quantity.words(estimate.value))) }
                        } }
                    }
                }
            }
        },
    )
}
