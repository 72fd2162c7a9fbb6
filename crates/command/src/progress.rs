//! Lines of progress on standard error, where that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use rubus_draw::text::{clean, width};
use rubus_host::process::standard_error;

use crate::Terminal;

/// One thing that is measured now, on a terminal; gone when it is dropped.
pub struct Line(ProgressBar);

impl Line {
    /// An empty one.
    pub fn new(terminal: Terminal) -> Self {
        let bar = ProgressBar::with_draw_target(None, target(terminal));
        bar.set_style(ProgressStyle::default_spinner());
        Line(bar)
    }

    /// Shows what is measured.
    pub fn says(&self, what: &str) {
        self.0.set_message(what.to_string());
        self.0.tick();
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Lines that live at the end of standard error, where that is a terminal: drawn again in their place, and left there if the program is
/// killed. They are written without anything behind them, so a terminal that gets narrower breaks only what is wider than it.
#[derive(Debug, Default)]
pub struct Region {
    drawn: Vec<String>,
}

impl Region {
    /// Draws these lines in the place of those before.
    pub fn draw(&mut self, lines: Vec<String>) {
        if lines != self.drawn {
            standard_error::write(&frame(&self.drawn, &lines, usize::from(terminal_columns())));
            self.drawn = lines;
        }
    }

    /// Leaves a line above them.
    pub fn leave(&mut self, line: &str) {
        let lines = std::mem::take(&mut self.drawn);
        let columns = usize::from(terminal_columns());
        standard_error::write(&frame(&lines, &[clean(line)], columns));
        self.draw(lines);
    }

    /// Takes them off the terminal.
    pub fn clear(&mut self) {
        self.draw(Vec::new());
    }
}

/// What turns some lines on a terminal of `columns` into others, the cursor below them before and after.
fn frame(before: &[String], lines: &[String], columns: usize) -> String {
    let rows = |line: &String| width(line).max(1).div_ceil(columns.max(1));
    let up: usize = before.iter().map(rows).sum();
    let mut text = String::new();
    if up > 0 {
        text.push_str(&format!("\r\x1b[{up}A\x1b[J"));
    }
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// Where a line lives: on standard error, if that is a terminal.
pub fn target(terminal: Terminal) -> ProgressDrawTarget {
    if terminal.live {
        ProgressDrawTarget::stderr_with_hz(10)
    } else {
        ProgressDrawTarget::hidden()
    }
}

/// A line of words on standard error, if there is a terminal to live on.
pub fn bar(terminal: Terminal) -> ProgressBar {
    let bar = counted(terminal, "{spinner} {msg}");
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

/// A line on standard error that counts, if there is a terminal to live on; `template` is one of indicatif.
pub fn counted(terminal: Terminal, template: &str) -> ProgressBar {
    let target = if terminal.live {
        ProgressDrawTarget::stderr_with_hz(5)
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(None, target);
    // A template that is a constant; were it wrong, the usual one would do.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

/// Width of the terminal on standard error.
pub fn terminal_columns() -> u16 {
    rustix::termios::tcgetwinsize(std::io::stderr())
        .map(|size| size.ws_col)
        .ok()
        .filter(|columns| *columns > 0)
        .unwrap_or(80)
}

#[cfg(test)]
mod tests {
    use super::frame;

    fn lines(of: &[&str]) -> Vec<String> {
        of.iter().map(|line| (*line).to_string()).collect()
    }

    #[test]
    fn what_was_drawn_is_replaced_and_what_is_above_it_stays() {
        let first = lines(&["sequential reads", "", "[1/9]"]);
        assert_eq!(frame(&[], &first, 80), "sequential reads\n\n[1/9]\n");
        assert_eq!(frame(&first, &lines(&["[2/9]"]), 80), "\r\x1b[3A\x1b[J[2/9]\n");
        assert_eq!(frame(&first, &[], 80), "\r\x1b[3A\x1b[J");
    }

    #[test]
    fn a_terminal_that_became_narrower_has_broken_the_lines_that_are_wider() {
        let before = lines(&["sequential reads", "[1/9]"]);
        assert_eq!(frame(&before, &[], 10), "\r\x1b[3A\x1b[J");
    }
}
