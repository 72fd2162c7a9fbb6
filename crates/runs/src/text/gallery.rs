//! A gallery of runs as a table.

use crate::gallery::{Entry, Quantity, Shown, answer};
use rubus_draw::next_step;
use rubus_draw::style::{Style, Tone};
use rubus_draw::table::{Align, Cell, Table};
use rubus_draw::text::{bind_units, clean, hang, shorten, width};
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
    let names = names(entries, columns.saturating_sub(FIGURES).max(12));
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
    for (entry, (board, disk)) in entries.iter().zip(names) {
        let figure = |quantity| match entry.figure(quantity) {
            Some(shown) => Cell::from(figure(quantity, shown)),
            None => Cell::from("–"),
        };
        let mut cells = vec![Cell::from(board), Cell::from(disk)];
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

/// What each board and disk is called in this number of columns for both. Where the whole names have no room, what tells the fewest apart
/// goes first: the maker, the revision, the kernel's name of a disk.
fn names(entries: &[Entry], columns: usize) -> Vec<(String, String)> {
    let board = |entry: &Entry| clean(entry.label.as_deref().unwrap_or(&entry.board));
    let whole: Vec<(String, String)> =
        entries.iter().map(|entry| (board(entry), clean(&entry.disk))).collect();
    let longest = |names: &[(String, String)]| {
        let boards = names.iter().map(|(board, _)| width(board)).max().unwrap_or(0);
        (boards, names.iter().map(|(_, disk)| width(disk)).max().unwrap_or(0))
    };
    let (boards, disks) = longest(&whole);
    if boards + disks <= columns {
        return whole;
    }
    let brief: Vec<(String, String)> =
        whole.iter().map(|(board, disk)| (brief_board(board), brief_disk(disk))).collect();
    let (boards, disks) = longest(&brief);
    let for_boards = boards.min((columns / 2).max(columns.saturating_sub(disks)));
    let cut = |(board, disk): &(String, String)| {
        (shorten(board, for_boards), shorten(disk, columns - for_boards))
    };
    brief.iter().map(cut).collect()
}

/// "Pi 3 Model B Plus" of "Raspberry Pi 3 Model B Plus Rev 1.3".
fn brief_board(board: &str) -> String {
    let board = board.strip_prefix("Raspberry ").unwrap_or(board);
    board.split(" Rev ").next().unwrap_or(board).to_owned()
}

/// "SC64G, 63.9 GB" of "mmcblk0 (SC64G, 63.9 GB)"; of a disk without a model only its name tells which it is.
fn brief_disk(disk: &str) -> String {
    let inner = disk.split_once(" (").and_then(|(_, inner)| inner.strip_suffix(')'));
    let begins_with_size = |inner: &&str| {
        let first = inner.split(", ").next().unwrap_or_default();
        first.ends_with('B') && first.starts_with(|c: char| c.is_ascii_digit())
    };
    inner.filter(|inner| !begins_with_size(inner)).unwrap_or(disk).to_owned()
}

/// What a gallery is for: to choose, or first to have something to choose from.
pub fn next(entries: &[Entry]) -> NextStep {
    match entries {
        [] | [_] => NextStep::command(
            &["rubus", "share", "last", "run.json"],
            "a run of your own as a file, to put beside it",
        ),
        _ => NextStep::command(
            &["rubus", "checkup"],
            "your own disk; then `rubus compare last FILE` sets one of these beside it",
        ),
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
    fn a_brief_name_still_tells_which_disk_it_is() {
        assert_eq!(brief_disk("mmcblk0 (SC64G, 63.9 GB)"), "SC64G, 63.9 GB");
        assert_eq!(brief_disk("loop1 (2.15 GB, on vda)"), "loop1 (2.15 GB, on vda)");
        assert_eq!(brief_disk("network disk"), "network disk");
        assert_eq!(brief_board("Raspberry Pi 3 Model B Plus Rev 1.3"), "Pi 3 Model B Plus");
    }

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
