//! A screen as cells: what stands in each column of each line, and which cells of two screens differ.

use rubus_draw::style::Tone;
use rubus_draw::text::char_width;

/// What stands in one column of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    /// The letter; [`Cell::BEHIND`] in the second column of a wide one.
    pub(super) letter: char,
    /// Marks that combine with the letter.
    pub(super) marks: String,
    pub(super) tone: Tone,
}

impl Cell {
    /// Fills the second column of a letter that takes two.
    pub(super) const BEHIND: char = '\0';

    const fn empty() -> Cell {
        Cell { letter: ' ', marks: String::new(), tone: Tone::Plain }
    }

    /// Appends what a terminal has to be told to show the cell.
    pub(super) fn tell(&self, told: &mut String) {
        if self.letter != Cell::BEHIND {
            told.push(self.letter);
            told.push_str(&self.marks);
        }
    }

    /// Whether it looks like a cell in which nothing was written.
    pub(super) fn is_blank(&self) -> bool {
        self.letter == ' ' && self.marks.is_empty()
    }
}

/// Lines of cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    pub(super) width: u16,
    pub(super) height: u16,
    pub(super) cells: Vec<Cell>,
}

impl Grid {
    /// A screen of this size on which nothing stands.
    pub(super) fn empty(width: u16, height: u16) -> Grid {
        Grid { width, height, cells: vec![Cell::empty(); usize::from(width) * usize::from(height)] }
    }

    /// Removes everything from it.
    pub(super) fn clear(&mut self) {
        self.cells.fill(Cell::empty());
    }

    /// The cells of a line.
    pub(super) fn line(&self, y: u16) -> &[Cell] {
        let width = usize::from(self.width);
        &self.cells[usize::from(y) * width..][..width]
    }

    /// Writes as much of a text as fits into the line from column `x` on, and gives the column behind it.
    pub(super) fn put(&mut self, x: u16, y: u16, text: &str, tone: Tone) -> u16 {
        let width = usize::from(self.width);
        let line = &mut self.cells[usize::from(y) * width..][..width];
        let start = usize::from(x);
        let mut at = start;
        for letter in text.chars() {
            let columns = char_width(letter);
            if columns == 0 {
                // The letter before has one or two columns; one in front of everything is dropped.
                let before = line[start..at].iter_mut();
                if let Some(cell) = before.rev().find(|cell| cell.letter != Cell::BEHIND) {
                    cell.marks.push(letter);
                }
                continue;
            }
            let Some(cells) = line.get_mut(at..at + columns) else {
                break;
            };
            for (place, cell) in cells.iter_mut().enumerate() {
                *cell = Cell {
                    letter: if place == 0 { letter } else { Cell::BEHIND },
                    marks: String::new(),
                    tone,
                };
            }
            at += columns;
        }
        at as u16
    }

    /// The cells of `next`, of the same size, that differ from those here, with their column and line.
    pub(super) fn changes<'a>(
        &'a self,
        next: &'a Grid,
    ) -> impl Iterator<Item = (u16, u16, &'a Cell)> {
        let width = usize::from(self.width).max(1);
        let both = self.cells.iter().zip(&next.cells).enumerate();
        both.filter(|(_, (old, new))| old != new && new.letter != Cell::BEHIND)
            .map(move |(at, (_, new))| ((at % width) as u16, (at / width) as u16, new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(grid: &Grid) -> String {
        let mut told = String::new();
        grid.cells.iter().for_each(|cell| cell.tell(&mut told));
        told
    }

    #[test]
    fn wide_letters_take_two_columns_and_marks_none() {
        let mut grid = Grid::empty(8, 1);
        assert_eq!(grid.put(0, 0, "磁e\u{301}x", Tone::Bad), 4);
        assert_eq!(told(&grid), "磁e\u{301}x    ");
        assert!(grid.cells[4].is_blank() && grid.cells[0].tone == Tone::Bad);
        // A mark without a letter is nowhere.
        assert_eq!(grid.put(4, 0, "\u{301}y", Tone::Plain), 5);
        assert_eq!(told(&grid), "磁e\u{301}xy   ");
    }

    #[test]
    fn nothing_is_written_beyond_the_end_of_a_line() {
        let mut grid = Grid::empty(3, 2);
        assert_eq!(grid.put(0, 0, "abcdef", Tone::Plain), 3);
        // Half a letter is none.
        assert_eq!(grid.put(0, 1, "ab磁", Tone::Plain), 2);
        assert_eq!(told(&grid), "abcab ");
    }

    #[test]
    fn only_what_differs_is_told_and_what_a_wide_letter_covered_is_told_again() {
        let (mut old, mut new) = (Grid::empty(4, 2), Grid::empty(4, 2));
        old.put(0, 1, "磁b", Tone::Plain);
        new.put(0, 1, "a b", Tone::Plain);
        let changes: Vec<_> = old.changes(&new).map(|(x, y, c)| (x, y, c.letter)).collect();
        assert_eq!(changes, [(0, 1, 'a'), (1, 1, ' ')]);
        let back: Vec<_> = new.changes(&old).map(|(x, y, c)| (x, y, c.letter)).collect();
        assert_eq!(back, [(0, 1, '磁')]);
        assert_eq!(old.changes(&old).count(), 0);
    }
}
