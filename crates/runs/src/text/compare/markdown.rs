//! A comparison as markdown, to be pasted into a forum or an issue.

use crate::compare::Comparison;

use rubus_draw::markdown::escape;
use rubus_draw::next_step;

use super::{QUANTITIES, headline, interval, legend, ratio, subject_line, word};
use crate::text::run::markdown::row;

/// The comparison, ending in a line feed.
pub fn markdown(comparison: &Comparison) -> String {
    let mut text = String::new();
    for place in 0..comparison.subjects.len() {
        let role = if place == 0 { "baseline" } else { "against" };
        let line = escape(&subject_line(comparison, place));
        text.push_str(&format!("- {role}: {line}\n"));
    }
    if !comparison.rows.is_empty() {
        for place in 1..comparison.subjects.len() {
            text.push_str(&format!("\n**{}**\n", escape(&headline(comparison, place))));
        }
    }
    text.push_str(&format!("\n{}\n", escape(&next_step::words(&comparison.next))));
    if !comparison.rows.is_empty() {
        for place in 1..comparison.subjects.len() {
            if comparison.subjects.len() > 2 {
                text.push_str(&format!("\n### {}\n", escape(&headline(comparison, place))));
            }
            for quantity in &QUANTITIES {
                text.push_str(&table(comparison, place, quantity));
            }
        }
        text.push_str(&format!("\n{}\n", escape(&legend(comparison))));
    }
    if !comparison.differences.is_empty() {
        text.push_str("\nWhat differs:\n\n");
        let mut cells = vec![String::new()];
        cells.extend(comparison.subjects.iter().map(|s| s.name.clone()));
        text.push_str(&row(&cells));
        text.push_str(&format!("|{}\n", "---|".repeat(cells.len())));
        for difference in &comparison.differences {
            let mut cells = vec![difference.what.clone()];
            let values = difference.values.iter();
            cells.extend(values.map(|value| value.clone().unwrap_or("–".into())));
            text.push_str(&row(&cells));
        }
    }
    for doubt in &comparison.doubts {
        let name = &comparison.subjects[doubt.subject].name;
        let jobs = if doubt.jobs.is_empty() {
            String::new()
        } else {
            format!(" ({})", doubt.jobs.join(", "))
        };
        let only = if doubt.is_of_all { "" } else { " only" };
        let line = escape(&format!("{name}{only}: {}{jobs}", doubt.what));
        text.push_str(&format!("\n> {line}\n"));
    }
    text
}

fn table(comparison: &Comparison, place: usize, quantity: &super::Quantity) -> String {
    let mut rows = String::new();
    for row_of in &comparison.rows {
        let measure = (quantity.of)(row_of);
        let figure = |place: usize| measure.figures.get(place).copied().flatten();
        let (Some(ours), Some(theirs), Some(ratio_of)) =
            (figure(0), figure(place), measure.ratios.get(place).copied().flatten())
        else {
            continue;
        };
        rows.push_str(&row(&[
            row_of.title.clone(),
            (quantity.words)(row_of, ours.value),
            (quantity.words)(row_of, theirs.value),
            ratio(ratio_of.figure.value),
            interval(&ratio_of.figure),
            word(ratio_of.word).0.into(),
        ]));
    }
    if rows.is_empty() {
        return rows;
    }
    let head = row(&[
        quantity.title.to_string(),
        comparison.subjects[0].name.clone(),
        comparison.subjects[place].name.clone(),
        "ratio".into(),
        "95 % interval".into(),
        String::new(),
    ]);
    format!("\n{head}|---|---:|---:|---:|---|---|\n{rows}")
}
