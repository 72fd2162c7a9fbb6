//! A fleet on one page: settings that differ, a table with a row per board, the boards that stand
//! apart with their evidence, then each figure of all boards on one scale.

use maud::{Markup, html};
use rubus_fleet::figures::{Outlier, Outliers, Row, Table};
use rubus_fleet::settings::Difference;
use rubus_fleet::text::{self, Board};
use rubus_runs::gallery::Shown;
use rubus_vocabulary::figure::Unit;
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::units::{counted, iops, rate_si};
use serde::Serialize;

use super::jobs::section;
use super::ranked::{self, Bar};
use super::{contents, data, glued, headlines, shell, verdict};

/// What several boards gave.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Fleet<'a> {
    /// What to do next.
    pub next: &'a NextStep,
    /// "Bench", "Checkup".
    pub title: &'a str,
    /// In the order of the list; rows and outliers name them by their number.
    pub boards: &'a [Board<'a>],
    pub differences: &'a [Difference],
    pub table: &'a Table,
    pub outliers: &'a Outliers,
}

/// The page of a fleet. `version` is that of the program that makes it.
pub fn render(fleet: &Fleet<'_>, version: &str) -> String {
    let boards = counted(fleet.boards.len() as u64, "board", "boards");
    let title = format!("{} of {boards}", fleet.title);
    shell(&title, version, header(fleet, &title), main(fleet), data::embed_json(fleet))
}

fn header(fleet: &Fleet<'_>, title: &str) -> Markup {
    let said = [apart(fleet), failed(fleet)];
    let said: Vec<String> = said.into_iter().flatten().collect();
    html! {
        h1 { (title) }
        (headlines(&[said.join(" ")], None, Some(&text::outliers_basis(fleet.outliers))))
        (verdict::next_step(fleet.next))
    }
}

/// "pi07 and pi12 stand apart from boards of their kind."
fn apart(fleet: &Fleet<'_>) -> Option<String> {
    let mut named: Vec<&str> = Vec::new();
    for one in &fleet.outliers.outliers {
        if !named.contains(&one.board.as_str()) {
            named.push(&one.board);
        }
    }
    match (&named[..], fleet.outliers.comparisons) {
        ([], 0) => None,
        ([], _) => Some("No board stands apart.".into()),
        ([only], _) => Some(format!("{only} stands apart from boards of its kind.")),
        (several, _) => {
            Some(format!("{} stand apart from boards of their kind.", text::names(several)))
        }
    }
}

fn failed(fleet: &Fleet<'_>) -> Option<String> {
    let boards = fleet.boards.iter();
    let count = boards.filter(|board| board.failure.is_some()).count() as u64;
    (count > 0).then(|| format!("{} failed.", counted(count, "board", "boards")))
}

fn main(fleet: &Fleet<'_>) -> Markup {
    // Two jobs may do the same.
    let columns = &fleet.table.columns;
    let titles = contents::unique(columns.iter().map(|one| one.title.clone()).collect());
    html! {
        (differences(fleet.differences))
        (boards(fleet))
        (failures(fleet.boards))
        (outliers(fleet.outliers))
        @for (number, title) in titles.iter().enumerate() {
            (figure(fleet, number, title))
        }
    }
}

fn differences(all: &[Difference]) -> Markup {
    let content = html! {
        @if all.is_empty() {
            p { "Board, device, settings and versions are the same on all boards, as far as known." }
        } @else {
            div class="scroll" role="region" aria-label="Table of differing settings" tabindex="0" {
                table {
                    thead { tr {
                        th scope="col" { "setting" }
                        th scope="col" { "value" }
                        th scope="col" class="n" { "boards" }
                        th scope="col" { "which" }
                    } }
                    @for one in all { tbody {
                        @for (at, value) in one.values.iter().enumerate() { tr {
                            // Seen once, and read aloud with each value.
                            th scope="row" class="wrap" {
                                span class=[(at > 0).then_some("unseen")] { (one.what) }
                            }
                            td class="said" { (value.value.as_deref().unwrap_or("not known")) }
                            td class="n" { (value.boards.len()) }
                            // The usual value is that of all others.
                            td class="said" {
                                @if at == 0 && value.boards.len() > 1 { "all others" }
                                @else { (value.boards.join(", ")) }
                            }
                        } }
                    } }
                }
            }
        }
    };
    section("settings", "Differing settings", content)
}

fn boards(fleet: &Fleet<'_>) -> Markup {
    let columns = &fleet.table.columns;
    let content = html! {
        div class="scroll" role="region" aria-label="Table of boards" tabindex="0" {
            table {
                thead { tr {
                    th scope="col" { "board" }
                    @for column in columns { th scope="col" class="n" { (column.title) } }
                    th scope="col" class="n" { "run" }
                    th scope="col" class="n" { "doubts" }
                } }
                tbody {
                    @for (number, board) in fleet.boards.iter().enumerate() {
                        @for (at, row) in fleet.table.rows.iter().enumerate() {
                            @if row.board == number { (board_row(fleet, at, row)) }
                        }
                        @if board.failure.is_some() { tr {
                            th scope="row" class="wrap" { (board.name) " " span class="badge danger" { "failed" } }
                            @for _ in 0..columns.len() + 2 { td class="n" { "–" } }
                        } }
                    }
                }
            }
        }
        p class="note" {
            "Run: number in the history of the machine that asked for it. ?: did not settle. –: not measured."
        }
    };
    section("boards", "Boards", content)
}

fn failures(boards: &[Board<'_>]) -> Markup {
    let failed = boards.iter();
    let failed: Vec<(&str, &str)> =
        failed.filter_map(|board| Some((board.name, board.failure?))).collect();
    if failed.is_empty() {
        return html! {};
    }
    let content = html! {
        ul class="plain" {
            @for (name, failure) in failed { li { strong { (name) } ": " (failure) } }
        }
    };
    section("failed", "Failed boards", content)
}

fn board_row(fleet: &Fleet<'_>, at: usize, row: &Row) -> Markup {
    let marks: Vec<Option<bool>> =
        (0..fleet.table.columns.len()).map(|column| is_slow(fleet.outliers, at, column)).collect();
    html! {
        tr {
            th scope="row" class="wrap" {
                (name(fleet, row))
                @if marks.contains(&Some(true)) { (badge(true)) }
                @if marks.contains(&Some(false)) { (badge(false)) }
            }
            @for ((cell, column), mark) in row.cells.iter().zip(&fleet.table.columns).zip(&marks) {
                td class="n" {
                    @match (cell, mark) {
                        (None, _) => "–",
                        (Some(shown), Some(_)) => strong { (figure_words(*shown, column.unit)) },
                        (Some(shown), None) => (figure_words(*shown, column.unit)),
                    }
                }
            }
            td class="n" { (row.number.map_or("–".into(), |number| number.to_string())) }
            td class="n" { (row.doubts) }
        }
    }
}

/// Whether a figure stands apart below the median; nothing where it does not stand apart.
fn is_slow(found: &Outliers, row: usize, column: usize) -> Option<bool> {
    let is_it = |one: &&Outlier| one.row == row && one.column == column;
    let one = found.outliers.iter().find(is_it)?;
    Some(one.ratio.value < 1.0)
}

fn badge(is_slow: bool) -> Markup {
    if is_slow {
        html! { " " span class="badge" { "slow" } }
    } else {
        html! { " " span class="badge hint" { "fast" } }
    }
}

fn name(fleet: &Fleet<'_>, row: &Row) -> String {
    text::place(fleet.boards[row.board].name, row.target.as_deref())
}

fn figure_words(shown: Shown, unit: Unit) -> Markup {
    let value = match unit {
        Unit::BytesPerSecond => rate_si(shown.rate.value),
        _ => format!("{} /s", iops(shown.rate.value)),
    };
    html! { @if !shown.is_settled { "?" } (glued(&value)) }
}

fn outliers(found: &Outliers) -> Markup {
    if found.outliers.is_empty() {
        return html! {};
    }
    let content = html! {
        ul class="plain" {
            @for one in &found.outliers { li { (text::evidence(one)) } }
        }
        @if !found.alone.is_empty() {
            p class="note" { "Not compared, too few of their kind: " (found.alone.join(", ")) "." }
        }
    };
    section("outliers", "Outliers", content)
}

/// A figure of all boards that have it, the fastest first.
fn figure(fleet: &Fleet<'_>, number: usize, title: &str) -> Markup {
    let rows = fleet.table.rows.iter().enumerate();
    let mut rows: Vec<(usize, &Row, Shown)> =
        rows.filter_map(|(at, row)| Some((at, row, row.cells[number]?))).collect();
    rows.sort_by(|(.., a), (.., b)| b.rate.value.total_cmp(&a.rate.value));
    let bars = rows.into_iter().map(|(at, row, shown)| {
        let mark = is_slow(fleet.outliers, at, number);
        Bar {
            name: html! { (name(fleet, row)) @if let Some(is_slow) = mark { (badge(is_slow)) } },
            shown,
            is_slow: mark == Some(true),
        }
    });
    ranked::section(&ranked::Ranking {
        title,
        is_in_bytes: fleet.table.columns[number].unit == Unit::BytesPerSecond,
        note: "",
        of: "board",
        bars: bars.collect(),
    })
}
