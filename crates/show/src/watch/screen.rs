//! From cells to what a terminal is told: only what changed since the last time, in the control sequences of ECMA-48
//! that every terminal knows.

use std::fmt::Write;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};

use super::ascii::to_ascii;
use super::{View, draw, draw_whole};
use crate::style::Style;

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
    shown: Buffer,
    next: Buffer,
    is_known: bool,
}

impl Screen {
    /// Nothing is known of what stands on it.
    pub fn new(letters: Letters) -> Screen {
        Screen {
            letters,
            shown: Buffer::empty(Rect::ZERO),
            next: Buffer::empty(Rect::ZERO),
            is_known: false,
        }
    }

    /// Forgets what stands on it: everything is drawn anew the next time.
    pub fn forget(&mut self) {
        self.is_known = false;
    }

    /// What the terminal has to be told so that it shows a view on a screen of this size; nothing if it does already.
    pub fn update(&mut self, view: &View<'_>, width: u16, height: u16) -> String {
        let area = Rect::new(0, 0, width, height);
        if self.next.area != area {
            self.next.resize(area);
        }
        draw(view, &mut self.next);
        if !self.letters.utf8 {
            to_ascii(&mut self.next);
        }
        let mut told = String::new();
        if !self.is_known || self.shown.area != area {
            self.shown = Buffer::empty(area);
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
        for (x, y, cell) in self.shown.diff(&self.next) {
            if next != Some((x, y)) {
                // Writing to a String cannot fail.
                let _ = write!(told, "\x1b[{};{}H", y + 1, x + 1);
            }
            if self.letters.colour {
                pen.change(cell, told);
            }
            told.push_str(cell.symbol());
            // How far others than these go is for the terminal to say.
            next = cell.symbol().is_ascii().then_some((x + 1, y));
        }
        pen.put_down(told);
    }
}

/// Colour and weight with which is written now.
#[derive(Default)]
struct Pen {
    fg: Color,
    weight: Modifier,
}

impl Pen {
    fn change(&mut self, cell: &Cell, told: &mut String) {
        if (cell.fg, cell.modifier) == (self.fg, self.weight) {
            return;
        }
        (self.fg, self.weight) = (cell.fg, cell.modifier);
        told.push_str("\x1b[0");
        if self.weight.contains(Modifier::BOLD) {
            told.push_str(";1");
        }
        if self.weight.contains(Modifier::DIM) {
            told.push_str(";2");
        }
        match self.fg {
            Color::Red => told.push_str(";31"),
            Color::Green => told.push_str(";32"),
            Color::Yellow => told.push_str(";33"),
            _ => {}
        }
        told.push('m');
    }

    fn put_down(&mut self, told: &mut String) {
        if (self.fg, self.weight) != (Color::Reset, Modifier::empty()) {
            told.push_str("\x1b[0m");
        }
        *self = Pen::default();
    }
}

/// All of a view as lines of text, for a pipe or a terminal that is not taken over.
pub fn lines(view: &View<'_>, width: u16, utf8: bool, style: Style) -> String {
    let mut buffer = draw_whole(view, width);
    if !utf8 {
        to_ascii(&mut buffer);
    }
    let mut text = String::new();
    for y in 0..buffer.area.height {
        let cells: Vec<&Cell> = (0..width).map(|x| &buffer[(x, y)]).collect();
        let used = cells.iter().rposition(|cell| cell.symbol() != " ");
        let mut pen = Pen::default();
        for cell in &cells[..used.map_or(0, |last| last + 1)] {
            if style.colour {
                pen.change(cell, &mut text);
            }
            text.push_str(cell.symbol());
        }
        pen.put_down(&mut text);
        text.push('\n');
    }
    text
}
