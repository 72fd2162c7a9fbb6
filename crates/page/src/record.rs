//! The table of records: operations down, record sizes across, the shade and a bar of each cell by
//! its rate.

use maud::{Markup, html};
use rubus_vocabulary::result::{JobResult, Run};
use rubus_vocabulary::units::rate_si;

use super::charts;
use super::glued;
use super::jobs::section;
use rubus_draw::words;

/// Shades of a cell, from the slowest to the fastest.
const SHADES: usize = 5;

/// The suite whose results are a table.
const SUITE: &str = "record";

/// The results of the table by operation, each with ascending record size.
pub struct Table<'a> {
    sizes: Vec<u32>,
    rows: Vec<(&'a str, Vec<Option<&'a JobResult>>)>,
}

impl<'a> Table<'a> {
    /// The table of a run; none if the run is of another suite.
    pub fn of(run: &'a Run) -> Option<Table<'a>> {
        if run.suite != SUITE || run.results.is_empty() {
            return None;
        }
        let mut sizes: Vec<u32> = run.results.iter().map(|r| r.block_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let mut rows: Vec<(&str, Vec<Option<&JobResult>>)> = Vec::new();
        for result in &run.results {
            // Jobs are named "random-read-512k".
            let (operation, _) = result.job.rsplit_once('-').unwrap_or((&result.job, ""));
            let column = sizes.iter().position(|size| *size == result.block_bytes)?;
            let row = match rows.iter().position(|(known, _)| *known == operation) {
                Some(row) => row,
                None => {
                    rows.push((operation, vec![None; sizes.len()]));
                    rows.len() - 1
                }
            };
            rows[row].1[column] = Some(result);
        }
        Some(Table { sizes, rows })
    }

    /// Draws the section.
    pub fn draw(&self) -> Markup {
        let cells = || self.rows.iter().flat_map(|(_, cells)| cells.iter().flatten());
        let rates = || cells().map(|r| r.bytes_per_second.value).filter(|r| *r > 0.0);
        let most = rates().fold(0.0, f64::max);
        let least = rates().fold(f64::INFINITY, f64::min);
        let whisker = |r: &&JobResult| Some(r.bytes_per_second.high).filter(|h| h.is_finite());
        let longest = cells().filter_map(whisker).fold(most, f64::max);
        section(
            "record-sizes",
            "Record sizes",
            html! {
                p class="note" {
                    "One operation at a time, past the page cache where the filesystem allows, flushes included. "
                    "The stronger the shade, the faster; the bars are on one scale from zero, with 95\u{a0}% intervals."
                }
                div class="scroll" role="region" aria-label="Rate of each operation by record size" tabindex="0" {
                    table class="heat" {
                        caption { span { "Rate of each operation by record size" } }
                        thead { tr {
                            th scope="col" { "operation" }
                            @for size in &self.sizes { th scope="col" class="n" { (glued(&words::block(*size))) } }
                        } }
                        tbody {
                            @for (operation, cells) in &self.rows {
                                tr {
                                    th scope="row" { (operation.replace('-', " ")) }
                                    @for cell in cells { (draw_cell(*cell, least, most, longest)) }
                                }
                            }
                        }
                    }
                }
            },
        )
    }
}

fn draw_cell(result: Option<&JobResult>, least: f64, most: f64, longest: f64) -> Markup {
    let Some(result) = result else {
        return html! { td class="n" { "–" } };
    };
    let rate = &result.bytes_per_second;
    html! {
        td class={ "n heat-" (shade(rate.value, least, most)) } {
            (glued(&rate_si(rate.value)))
            span class="note" { " " (glued(&words::plus_minus(rate))) }
            (charts::bar(rate, longest))
        }
    }
}

/// A shade from 0 to `SHADES - 1` on the logarithm of the rate.
fn shade(rate: f64, least: f64, most: f64) -> usize {
    let share = (rate / least).ln() / (most / least).ln();
    if share.is_nan() || share < 0.0 {
        return 0;
    }
    ((share * SHADES as f64) as usize).min(SHADES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;

    #[test]
    fn every_result_of_the_suite_has_its_cell() {
        let run = fixture::record_run();
        let table = Table::of(&run).expect("a table");
        assert_eq!((table.rows.len(), table.sizes.len()), (6, 3));
        assert!(table.rows.iter().all(|(_, cells)| cells.iter().all(Option::is_some)));
        assert_eq!(table.rows[4].0, "random-read");
        assert!(Table::of(&fixture::slow_sd_card_run()).is_none());
    }

    #[test]
    fn shades_span_from_the_slowest_to_the_fastest() {
        let shades = [1.0, 10.0, 99.0, 100.0].map(|rate| shade(rate, 1.0, 100.0));
        assert_eq!(shades, [0, 2, 4, 4]);
        assert_eq!(shade(5.0, 5.0, 5.0), 0);
        assert_eq!(shade(0.0, 1.0, 10.0), 0);
    }
}
