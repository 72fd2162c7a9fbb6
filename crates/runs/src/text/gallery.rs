//! A gallery of runs as a table.

use crate::gallery::{Entry, Quantity, Shown, answer};
use rubus_draw::next_step;
use rubus_draw::style::{Style, Tone};
use rubus_draw::table::{Align, Cell, Table};
use rubus_draw::text::{bind_units, clean, hang, shorten};
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::units::iops;

/// Columns of the widest table.
const WIDEST: usize = 100;
/// Columns of the figures, the mark and the gaps.
const FIGURES: usize = 46;

/// The entries as a table, in the order given, as wide as the terminal or 100 columns, ending in a line feed.
pub fn render(entries: &[Entry], style: Style) -> String {
    use Align::{Left, Right};
    let columns = style.columns.min(WIDEST);
    // The names of the board and of the disk share what the figures leave.
    let longest_name = (columns.saturating_sub(FIGURES) / 2).max(6);
    let mut table = Table::new(&[
        ("board", Left),
        ("disk", Left),
        ("read", Right),
        ("write", Right),
        ("4k rd", Right),
        ("4k wr", Right),
        ("commit", Right),
        ("", Left),
    ]);
    for entry in entries {
        let figure = |quantity| match entry.figure(quantity) {
            Some(shown) => Cell::from(figure(quantity, shown)),
            None => Cell::from("–"),
        };
        let mut cells: Vec<Cell> = vec![
            Cell::from(shorten(
                &clean(entry.label.as_deref().unwrap_or(&entry.board)),
                longest_name,
            )),
            Cell::from(shorten(&clean(&entry.disk), longest_name)),
        ];
        cells.extend(Quantity::ALL.map(figure));
        cells.push(Cell::toned(if entry.doubts > 0 { "!" } else { "" }, Tone::Warn));
        table.row(cells);
    }
    let mut lines = hang("", &bind_units(&clean(&answer(entries))), style.columns);
    lines.extend(next_step::lines(&next(entries), style));
    lines.push(String::new());
    lines.extend(table.lines(style));
    let legend = "read, write: sequential, MB/s. 4k rd, 4k wr: random, one in flight, per second. commit: per second. \
                  ?: did not settle. –: not measured. !: disturbed. Intervals: --html FILE or --json.";
    let legend = hang("", legend, columns);
    lines.extend(legend.iter().map(|line| style.paint(Tone::Faint, line)));
    lines.join("\n") + "\n"
}

/// What a gallery is for: to choose, or first to have something to choose from.
pub fn next(entries: &[Entry]) -> NextStep {
    match entries {
        [] | [_] => NextStep::command(
            &["rubus", "share", "last", "run.json"],
            "a run of your own as a file, to put beside it",
        ),
        _ => NextStep::command(&["rubus", "advise"], "what one of these would give this machine"),
    }
}

fn figure(quantity: Quantity, shown: Shown) -> String {
    let value = if quantity.is_in_bytes() {
        super::history::megabytes(shown.rate.value)
    } else {
        iops(shown.rate.value)
    };
    if shown.is_settled { value } else { format!("?{value}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallery::entries;
    use rubus_fixtures as fixture;
    use rubus_vocabulary::fact::Fact;
    use rubus_vocabulary::result::Run;

    #[test]
    fn a_gallery_as_a_table() {
        let mut other = fixture::slow_sd_card_run();
        other.seed = 8;
        other.results.truncate(3);
        other.machine.board.model =
            Fact::known("A board with a very long name indeed, Rev 1.0".into(), "a test");
        let runs = [
            (None, fixture::slow_sd_card_run()),
            (Some("the other".into()), other.clone()),
            (None, Run { seed: 9, ..other }),
        ];
        for columns in [70, 80, 100, 140] {
            let text = render(&entries(&runs), Style { columns, ..Style::PLAIN });
            assert!(text.lines().all(|line| rubus_draw::text::width(line) <= columns), "{text}");
        }
        insta::assert_snapshot!(render(&entries(&runs), Style::PLAIN));
    }
}
