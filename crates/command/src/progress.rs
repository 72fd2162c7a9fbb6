//! Lines of progress on standard error, where that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

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
    let target = if terminal.live {
        ProgressDrawTarget::stderr_with_hz(5)
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(None, target);
    // A template that is a constant without fields; were it wrong, the usual one would do.
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(250));
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
