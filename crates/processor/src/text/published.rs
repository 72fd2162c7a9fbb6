//! Published figures of a small board beside the machine's own.

use crate::published::{beside, board};
use rubus_vocabulary::processor::ProcessorRun;
use rubus_vocabulary::result::Run;
use rubus_vocabulary::units::rate_si;

use rubus_draw::layout::{heading, paragraph};
use rubus_draw::style::Style;
use rubus_draw::table::{Align, Cell, Table};

pub(super) fn part(run: &Run, processor: &ProcessorRun, style: Style) -> Vec<String> {
    use Align::{Left, Right};
    let model = run.machine.board.model.text().unwrap_or_default();
    let (board, is_same) = board(model);
    let found = beside(processor, board);
    let Some(first) = found.first() else {
        return Vec::new();
    };
    let mut table =
        Table::new(&[("Published", Left), ("there", Right), ("here", Right), ("", Right)]);
    for row in &found {
        // Bits are said above.
        let what = row.what.rsplit_once(", ").map_or(row.what, |(what, _)| what);
        table.row(vec![
            Cell::from(what),
            rate_si(row.published).into(),
            rate_si(row.ours).into(),
            format!("{:.1} ×", row.ours / row.published).into(),
        ]);
    }
    let other = if is_same { "" } else { ", which is another board" };
    let title = format!("Beside a {board} with {} bits{other}", processor.pointer_bits);
    let mut lines = vec![heading(&title, style)];
    lines.extend(table.lines(style));
    lines.extend(paragraph(&format!("From {}; no intervals.", first.source), "  "));
    lines
}
