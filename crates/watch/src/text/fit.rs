//! What is left out when the screen is too low: first the air, then the ends of long lists, then whole sections, the least
//! important first.

use super::line::{Row, text};
use rubus_draw::style::Tone;

/// Rows that belong together.
#[derive(Clone, Debug, Default)]
pub(super) struct Section {
    pub(super) rows: Vec<Row>,
    /// The fewest of them that are useful on their own: a heading with one line, for instance.
    pub(super) least: usize,
    /// The larger, the sooner it is left out.
    pub(super) rank: u8,
    /// An empty row stands before it where there is room.
    pub(super) has_air: bool,
}

impl Section {
    /// Rows that stand alone.
    pub(super) fn of(rank: u8, rows: Vec<Row>) -> Section {
        Section { least: rows.len().min(1), rows, rank, has_air: false }
    }

    /// A heading and what is below it.
    pub(super) fn list(rank: u8, rows: Vec<Row>) -> Section {
        Section { least: rows.len().min(2), rows, rank, has_air: true }
    }

    fn shrink(&mut self, by: usize) {
        let keep = self.rows.len().saturating_sub(by).max(self.least);
        let left_out = self.rows.len() - keep;
        if left_out == 0 {
            return;
        }
        self.rows.truncate(keep);
        // A list says how much is missing, where that does not cost its only line.
        if self.has_air && keep > self.least {
            self.rows.pop();
            let words = format!("... {} more", left_out + 1);
            self.rows.push(text(Tone::Faint, &words));
        }
    }
}

/// The rows of all sections in `room` rows or fewer.
pub(super) fn fit(mut all: Vec<Section>, room: usize) -> Vec<Row> {
    let count = |all: &[Section]| all.iter().map(|section| section.rows.len()).sum::<usize>();
    let air = all.iter().filter(|section| section.has_air).count();
    let has_air = count(&all) + air <= room;
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(all[at].rank));
    for &at in &order {
        let over = count(&all).saturating_sub(room);
        all[at].shrink(over);
    }
    for &at in &order {
        if count(&all) > room {
            all[at].rows.clear();
        }
    }
    let mut rows = Vec::new();
    for section in all {
        if section.has_air && has_air {
            rows.push(Row::default());
        }
        rows.extend(section.rows);
    }
    rows
}
