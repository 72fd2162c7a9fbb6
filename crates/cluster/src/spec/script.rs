//! A list of commands in the making.

use std::fmt::Write as _;

/// A list of commands in the making.
pub(super) struct Script {
    pub(super) text: String,
}

impl Script {
    pub(super) fn new(what: &str) -> Script {
        Script { text: format!("# {what}\n\n") }
    }

    pub(super) fn comment(&mut self, text: &str) {
        let _ = writeln!(self.text, "# {text}");
    }

    pub(super) fn run(&mut self, command: &str) {
        let _ = writeln!(self.text, "{command}");
    }
}
