//! Text tables: columns as wide as their widest cell, numbers to the right, no lines drawn.

use crate::style::{Style, Tone};
use crate::text::{clean, pad_left, pad_right, width, wrap};

/// To which side a column's cells are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// To the left, for words.
    Left,
    /// To the right, for numbers.
    Right,
}

/// One cell of a table: a text with its tone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// A cell with a tone. The text is cleaned.
    pub fn toned(text: &str, tone: Tone) -> Cell {
        Cell { text: clean(text), tone }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell::toned(text.as_ref(), Tone::Plain)
    }
}

/// A line below the titles.
#[derive(Clone, Debug)]
enum Row {
    /// One cell per column.
    Cells(Vec<Cell>),
    /// Words across all columns, as wide as they are.
    Heading(String),
}

/// A table: columns with a title each, and rows.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Row>,
    gap: usize,
    indent: usize,
}

impl Table {
    /// An empty table. Columns are two spaces apart and start at the left edge. If all titles are
    /// empty, no title line is drawn.
    pub fn new(columns: &[(&str, Align)]) -> Table {
        Table {
            columns: columns.iter().map(|(title, align)| (clean(title), *align)).collect(),
            rows: Vec::new(),
            gap: 2,
            indent: 0,
        }
    }

    /// The same table, moved to the right by some spaces.
    pub fn indented(mut self, spaces: usize) -> Table {
        self.indent = spaces;
        self
    }

    /// The same table with one space between its columns.
    pub fn close(mut self) -> Table {
        self.gap = 1;
        self
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it has not one cell per column: that is a programming error.
    pub fn row(&mut self, cells: Vec<Cell>) {
        assert_eq!(cells.len(), self.columns.len(), "one cell per column");
        self.rows.push(Row::Cells(cells));
    }

    /// Adds a line of words across all columns, about the rows below it. The text is cleaned; it widens no column.
    pub fn heading(&mut self, text: &str) {
        self.rows.push(Row::Heading(clean(text)));
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The lines of the table, without spaces at their ends.
    pub fn lines(&self, style: Style) -> Vec<String> {
        let widths: Vec<usize> = (0..self.columns.len()).map(|i| self.column_width(i)).collect();
        let mut lines = Vec::new();
        if self.columns.iter().any(|(title, _)| !title.is_empty()) {
            let titles = self.columns.iter().map(|(title, _)| Cell::toned(title, Tone::Faint));
            lines.push(self.line(&titles.collect::<Vec<_>>(), &widths, style));
        }
        lines.extend(self.rows.iter().map(|row| match row {
            Row::Cells(cells) => self.line(cells, &widths, style),
            Row::Heading(text) => " ".repeat(self.indent) + text,
        }));
        lines
    }

    /// The same with the last column, of words, wrapped: no line is wider than the terminal, where the other columns leave room.
    pub fn lines_wrapped(&self, style: Style) -> Vec<String> {
        const MIN_ROOM: usize = 20;
        let before = self.columns.len().saturating_sub(1);
        let taken: usize = (0..before).map(|i| self.column_width(i) + self.gap).sum();
        let room = style.columns.saturating_sub(self.indent + taken).max(MIN_ROOM);
        let mut narrow = Table { rows: Vec::new(), ..self.clone() };
        for row in &self.rows {
            match row {
                Row::Cells(cells) => narrow.rows.extend(wrapped(cells, room)),
                Row::Heading(_) => narrow.rows.push(row.clone()),
            }
        }
        narrow.lines(style)
    }

    /// Columns of a terminal that are left for the first column of the table when all others are as wide as their cells.
    pub fn room_of_first(&self, columns: usize) -> usize {
        let others = (1..self.columns.len()).map(|i| self.gap + self.column_width(i));
        columns.saturating_sub(self.indent + others.sum::<usize>())
    }

    fn column_width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| match row {
            Row::Cells(cells) => Some(cells),
            Row::Heading(_) => None,
        });
        cells
            .map(|cells| width(&cells[column].text))
            .chain([width(&self.columns[column].0)])
            .max()
            .unwrap_or(0)
    }

    fn line(&self, cells: &[Cell], widths: &[usize], style: Style) -> String {
        let last = cells.iter().rposition(|cell| !cell.text.is_empty()).map_or(0, |i| i + 1);
        let mut line = " ".repeat(self.indent);
        for (i, cell) in cells[..last].iter().enumerate() {
            if i > 0 {
                line.push_str(&" ".repeat(self.gap));
            }
            let (before, after) = match self.columns[i].1 {
                Align::Right => (widths[i] - width(&cell.text), 0),
                // Nothing stands after the last cell, so nothing has to be filled.
                Align::Left if i + 1 == last => (0, 0),
                Align::Left => (0, widths[i] - width(&cell.text)),
            };
            line.push_str(&pad_left("", before));
            line.push_str(&style.paint(cell.tone, &cell.text));
            line.push_str(&pad_right("", after));
        }
        line
    }
}

/// A row as several, whose last cells have the words of its last one.
fn wrapped(cells: &[Cell], room: usize) -> Vec<Row> {
    let Some((last, others)) = cells.split_last() else {
        return Vec::new();
    };
    let mut pieces = wrap(&last.text, room);
    if pieces.is_empty() {
        pieces.push(String::new());
    }
    let row = |(number, text): (usize, String)| {
        let mut cells = match number {
            0 => others.to_vec(),
            _ => vec![Cell::default(); others.len()],
        };
        cells.push(Cell { text, tone: last.tone });
        Row::Cells(cells)
    };
    pieces.into_iter().enumerate().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Table {
        let mut table =
            Table::new(&[("job", Align::Left), ("rate", Align::Right), ("", Align::Left)]);
        table.row(vec!["reads".into(), "22.6 MB/s".into(), Cell::default()]);
        table.row(vec!["漢字 writes".into(), "9 kB/s".into(), Cell::toned("slow", Tone::Bad)]);
        table
    }

    #[test]
    fn numbers_stand_to_the_right_and_lines_end_without_spaces() {
        insta::assert_snapshot!(example().indented(2).lines(Style::PLAIN).join("\n"), @r"
        job               rate
        reads        22.6 MB/s
        漢字 writes     9 kB/s  slow
        ");
    }

    #[test]
    fn words_of_the_last_column_are_wrapped_below_each_other() {
        let mut table = Table::new(&[("", Align::Left), ("", Align::Right), ("", Align::Left)]);
        table.row(vec!["pool".into(), "20".into(), "the most memory that it may take".into()]);
        table.row(vec!["on".into(), "Y".into(), Cell::default()]);
        let narrow = Style { columns: 32, ..Style::PLAIN };
        insta::assert_snapshot!(table.indented(2).lines_wrapped(narrow).join("\n"), @r"
        pool  20  the most memory that
                  it may take
        on     Y
        ");
    }

    #[test]
    fn a_heading_goes_across_and_widens_nothing() {
        let mut table = example();
        table.heading("a line that is wider than the first column");
        table.row(vec!["  below".into(), "1 B/s".into(), Cell::default()]);
        insta::assert_snapshot!(table.lines(Style::PLAIN).join("\n"), @r"
        job               rate
        reads        22.6 MB/s
        漢字 writes     9 kB/s  slow
        a line that is wider than the first column
          below          1 B/s
        ");
        // Two gaps, nine columns of rates, four of words.
        assert_eq!(table.room_of_first(40), 40 - 2 - 9 - 2 - 4);
        assert_eq!(table.indented(3).room_of_first(40), 20);
    }

    #[test]
    fn colour_does_not_move_anything() {
        let plain = example().lines(Style::PLAIN);
        let coloured = example().lines(Style { colour: true, ..Style::PLAIN });
        for (plain, coloured) in plain.iter().zip(&coloured) {
            let mut bare = String::new();
            let mut rest = coloured.as_str();
            while let Some(at) = rest.find('\x1b') {
                bare.push_str(&rest[..at]);
                rest = &rest[at + rest[at..].find('m').expect("a whole sequence") + 1..];
            }
            assert_eq!(*plain, bare + rest);
        }
        assert!(coloured[2].contains("\x1b[1;31mslow\x1b[0m"));
    }

    #[test]
    fn a_table_without_titles_has_no_title_line() {
        let mut table = Table::new(&[("", Align::Left), ("", Align::Right)]);
        table.row(vec!["a".into(), "1".into()]);
        assert_eq!(table.lines(Style::PLAIN), ["a  1"]);
    }
}
