//! From cells to what a terminal is told: only what changed since the last time, in the control sequences of ECMA-48
//! that every terminal knows.

use std::fmt::Write;

use super::ascii::to_ascii;
use super::grid::{Cell, Grid};
use super::{View, draw, draw_whole};
use rubus_draw::style::{Style, Tone};

/// What the terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Letters {
    /// Whether it knows UTF-8.
    pub utf8: bool,
    /// Whether colour and weight are wanted.
    pub colour: bool,
}

/// A terminal's screen as it was drawn last.
#[derive(Clone, Debug)]
pub struct Screen {
    letters: Letters,
    shown: Grid,
    next: Grid,
    is_known: bool,
}

impl Screen {
    /// Nothing is known of what stands on it.
    pub fn new(letters: Letters) -> Screen {
        Screen { letters, shown: Grid::empty(0, 0), next: Grid::empty(0, 0), is_known: false }
    }

    /// Forgets the screen's contents: the next update redraws everything.
    pub fn forget(&mut self) {
        self.is_known = false;
    }

    /// What the terminal has to be told so that it shows a view on a screen of this size; nothing if it does already.
    pub fn update(&mut self, view: &View<'_>, width: u16, height: u16) -> String {
        let is_of_this_size = |grid: &Grid| (grid.width, grid.height) == (width, height);
        if !is_of_this_size(&self.next) {
            self.next = Grid::empty(width, height);
        }
        draw(view, &mut self.next);
        if !self.letters.utf8 {
            to_ascii(&mut self.next);
        }
        let mut told = String::new();
        if !self.is_known || !is_of_this_size(&self.shown) {
            self.shown = Grid::empty(width, height);
            told.push_str("\x1b[0m\x1b[2J");
        }
        self.tell_changes(&mut told);
        self.is_known = true;
        std::mem::swap(&mut self.shown, &mut self.next);
        told
    }

    fn tell_changes(&self, told: &mut String) {
        let mut pen = Pen::default();
        let mut next = None;
        for (x, y, cell) in self.shown.changes(&self.next) {
            if next != Some((x, y)) {
                // Writing to a String cannot fail.
                let _ = write!(told, "\x1b[{};{}H", y + 1, x + 1);
            }
            if self.letters.colour {
                pen.change(cell, told);
            }
            cell.tell(told);
            // How far others than these go is for the terminal to say.
            let is_plain = cell.letter.is_ascii() && cell.marks.is_empty();
            next = is_plain.then_some((x + 1, y));
        }
        pen.put_down(told);
    }
}

/// Colour and weight with which is written now.
#[derive(Default)]
struct Pen(Tone);

impl Pen {
    fn change(&mut self, cell: &Cell, told: &mut String) {
        if self.0 != cell.tone {
            self.0 = cell.tone;
            told.push_str(match cell.tone {
                Tone::Plain => "\x1b[0m",
                Tone::Strong => "\x1b[0;1m",
                Tone::Faint => "\x1b[0;2m",
                Tone::Good => "\x1b[0;32m",
                Tone::Warn => "\x1b[0;33m",
                Tone::Bad => "\x1b[0;1;31m",
            });
        }
    }

    fn put_down(&mut self, told: &mut String) {
        if self.0 != Tone::Plain {
            told.push_str("\x1b[0m");
        }
        *self = Pen::default();
    }
}

/// All of a view as lines of text, for a pipe or a terminal that is not taken over.
pub fn lines(view: &View<'_>, width: u16, utf8: bool, style: Style) -> String {
    let mut grid = draw_whole(view, width);
    if !utf8 {
        to_ascii(&mut grid);
    }
    let mut text = String::new();
    for y in 0..grid.height {
        let cells = grid.line(y);
        let used = cells.iter().rposition(|cell| !cell.is_blank());
        let mut pen = Pen::default();
        for cell in &cells[..used.map_or(0, |last| last + 1)] {
            if style.colour {
                pen.change(cell, &mut text);
            }
            cell.tell(&mut text);
        }
        pen.put_down(&mut text);
        text.push('\n');
    }
    text
}
