//! What a terminal that knows no UTF-8 shows instead.

use super::grid::{Cell, Grid};

/// Replaces every cell that is not ASCII.
pub(super) fn to_ascii(grid: &mut Grid) {
    let mut above = ' ';
    for cell in &mut grid.cells {
        if cell.letter == Cell::BEHIND {
            cell.letter = above;
        } else if !cell.letter.is_ascii() {
            cell.letter = instead(cell.letter);
        }
        cell.marks.clear();
        // Both columns of a wide letter are replaced.
        above = cell.letter;
    }
}

fn instead(letter: char) -> char {
    match letter {
        '█' | '▉' | '▊' => '#',
        '▋' | '▌' | '▍' | '▆' | '▇' => '=',
        '▎' | '▏' | '▃' | '▄' | '▅' => '-',
        '▁' | '▂' => '_',
        '·' => '-',
        '×' => 'x',
        'µ' => 'u',
        '°' => ' ',
        '…' => '~',
        '←' => '<',
        '→' => '>',
        '–' | '−' => '-',
        '\u{a0}' => ' ',
        _ => '?',
    }
}
