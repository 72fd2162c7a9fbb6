//! Rows of the live view: words with tones, bars, and tables whose less important columns go first when it is narrow.

use super::grid::Grid;
use rubus_draw::style::Tone;
use rubus_draw::text::{pad_left, pad_right, shorten, width};

/// Column in which the words of a row begin, behind what it is about.
pub(super) const LABEL: usize = 9;

/// One row, in pieces.
#[derive(Clone, Debug, Default)]
pub(super) struct Row(pub(super) Vec<(Tone, String)>);

impl Row {
    pub(super) fn put(&self, grid: &mut Grid, y: u16) {
        let mut x = 0;
        for (tone, piece) in &self.0 {
            x = grid.put(x, y, piece, *tone);
        }
    }

    fn width(&self) -> usize {
        self.0.iter().map(|(_, piece)| width(piece)).sum()
    }

    fn push(&mut self, tone: Tone, piece: impl Into<String>) {
        self.0.push((tone, piece.into()));
    }
}

/// A row of one piece.
pub(super) fn text(tone: Tone, words: &str) -> Row {
    Row(vec![(tone, words.to_string())])
}

/// Pieces from the left with a point between them, as far as they fit beside what stands at the right end. What stands on
/// the left comes first if there is no room for both.
pub(super) fn ends(left: &[(Tone, String)], right: &str, columns: usize) -> Row {
    let mut row = Row::default();
    let needed = left.first().map_or(0, |(_, piece)| width(piece));
    let right = if needed + 2 + width(right) <= columns { right } else { "" };
    let room = columns.saturating_sub(width(right) + 2);
    for (i, (tone, piece)) in left.iter().enumerate() {
        let gap = if i == 0 { "" } else { "  " };
        let free = room.saturating_sub(row.width() + gap.len());
        if i > 0 && free < 8 {
            break;
        }
        row.push(Tone::Plain, gap);
        row.push(*tone, shorten(piece, if i == 0 { columns } else { free }));
    }
    let used = row.width() + width(right);
    row.push(Tone::Plain, " ".repeat(columns.saturating_sub(used)));
    row.push(Tone::Faint, right);
    row
}

/// What it is about, then pieces with a point between them, as many of the first as fit.
pub(super) fn items(label: &str, pieces: Vec<(Tone, String)>, columns: usize) -> Row {
    let mut row = Row(vec![(Tone::Strong, pad_right(label, LABEL))]);
    let mut has_one = false;
    for (tone, piece) in pieces {
        let gap = if has_one { " · " } else { "" };
        if has_one && row.width() + width(gap) + width(&piece) > columns {
            break;
        }
        row.push(Tone::Faint, gap);
        row.push(tone, piece);
        has_one = true;
    }
    row
}

/// The tone of a share of which more is worse.
pub(super) fn tone_of_load(share: f64) -> Tone {
    match share {
        s if s >= 0.9 => Tone::Bad,
        s if s >= 0.6 => Tone::Warn,
        _ => Tone::Good,
    }
}

/// A bar of `columns` columns that is full at 1, in eighths of a column.
pub(super) fn bar(share: f64, columns: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * columns as f64 * 8.0).round() as usize;
    // Something is not nothing.
    let eighths = if share > 0.0 && columns > 0 { eighths.max(1) } else { 0 };
    let drawn = "█".repeat(eighths / 8) + PARTS[eighths % 8];
    pad_right(&drawn, columns)
}

/// A bar with its share behind it, or the share alone where it is narrow.
pub(super) fn gauge(share: f64, columns: usize) -> (Tone, String) {
    let figure = format!("{:.0} %", share * 100.0);
    let drawn = match bar_columns(columns) {
        0 => figure,
        wide => format!("{} {}", bar(share, wide), pad_left(&figure, 5)),
    };
    (tone_of_load(share), drawn)
}

/// Columns of the bars in rows: none where it is narrow.
fn bar_columns(columns: usize) -> usize {
    match columns {
        0..60 => 0,
        60..120 => 15,
        _ => 32,
    }
}

/// A column of a table.
pub(super) struct Column {
    pub(super) name: &'static str,
    /// Columns with a larger number go first when it is narrow.
    pub(super) rank: u8,
    pub(super) is_left: bool,
    pub(super) cells: Vec<(Tone, String)>,
}

/// A table with its heading, not wider than `columns`. The first column is never left out, but shortened.
pub(super) fn table(mut all: Vec<Column>, columns: usize) -> Vec<Row> {
    const GAP: usize = 2;
    let width_of = |column: &Column| {
        let cells = column.cells.iter().map(|(_, cell)| width(cell));
        cells.chain([width(column.name)]).max().unwrap_or(0)
    };
    let total =
        |all: &[Column]| all.iter().map(|c| width_of(c) + GAP).sum::<usize>().saturating_sub(GAP);
    while total(&all) > columns && all.len() > 1 {
        let Some(worst) = (1..all.len()).max_by_key(|&at| (all[at].rank, at)) else {
            break;
        };
        all.remove(worst);
    }
    let rows = all.first().map_or(0, |column| column.cells.len());
    let place = |column: &Column, cell: &str, is_last: bool| {
        let wide = width_of(column).min(columns);
        let cell = shorten(cell, wide);
        if !column.is_left {
            pad_left(&cell, wide)
        } else if is_last {
            cell
        } else {
            pad_right(&cell, wide)
        }
    };
    let row = |cell: &dyn Fn(&Column) -> (Tone, String)| {
        let mut row = Row::default();
        for (at, column) in all.iter().enumerate() {
            let (tone, words) = cell(column);
            row.push(Tone::Plain, if at == 0 { "" } else { "  " });
            row.push(tone, place(column, &words, at + 1 == all.len()));
        }
        row
    };
    let heading = row(&|column| (Tone::Strong, column.name.to_string()));
    let mut drawn = vec![heading];
    drawn.extend((0..rows).map(|at| row(&|column| column.cells[at].clone())));
    drawn
}
