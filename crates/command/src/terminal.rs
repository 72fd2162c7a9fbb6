//! Terminals: what can be drawn on them, and in which letters.

use std::ffi::OsStr;
use std::io::IsTerminal;

use crate::{General, When};

/// Whether a screen can be drawn here; if not, why.
pub fn can_draw() -> Result<(), &'static str> {
    can_draw_on(std::env::var_os("TERM").as_deref())
}

/// Whether the terminal knows UTF-8 and the blocks of which bars are made.
pub fn knows_utf8() -> bool {
    has_blocks(|name| Some(std::env::var_os(name)?.to_string_lossy().into_owned()))
}

/// Columns of texts on standard output. Longer lines than 80 are hard to read, and no table fits into fewer than 60.
pub fn text_columns() -> usize {
    const MAX: usize = 80;
    const MIN: usize = 60;
    columns_of_output().map_or(MAX, |columns| columns.clamp(MIN, MAX))
}

/// Columns of the terminal on standard output; none where it is no terminal.
pub fn columns_of_output() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// How to draw on standard output or standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Colour in the text on standard output.
    pub colour: bool,
    /// A live progress line on standard error.
    pub live: bool,
    /// Drawings of ASCII letters alone.
    pub ascii: bool,
    /// Columns of texts on standard output: 80, or those of a narrower terminal.
    pub columns: usize,
    /// No terminal at all, but another rubus that reads records from standard output.
    pub records: bool,
}

impl Terminal {
    /// What the user and the environment want.
    pub fn of(general: &General) -> Terminal {
        let plain =
            std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) || is_dumb();
        let out = std::io::stdout().is_terminal();
        // What calls itself dumb cannot move its cursor.
        let err = std::io::stderr().is_terminal() && !is_dumb();
        let (colour, live) = match general.color {
            When::Always => (true, err),
            When::Never => (false, err),
            When::Auto => (out && !plain, err),
        };
        Terminal {
            colour,
            ascii: !knows_utf8(),
            columns: text_columns(),
            live: live && !general.quiet && !general.records,
            records: general.records,
        }
    }

    /// How texts on standard output are drawn.
    pub fn style(self) -> rubus_draw::Style {
        rubus_draw::Style { colour: self.colour, ascii: self.ascii, columns: self.columns }
    }
}

fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Whether a screen can be drawn here, on a terminal that calls itself `term`; if not, why.
fn can_draw_on(term: Option<&OsStr>) -> Result<(), &'static str> {
    if !std::io::stdout().is_terminal() {
        return Err("standard output is no terminal");
    }
    if !std::io::stdin().is_terminal() {
        return Err("standard input is no terminal, so that no key could end it");
    }
    match term {
        Some(term) if term != "dumb" && !term.is_empty() => Ok(()),
        _ => Err("this terminal says of itself that it can only print lines (TERM)"),
    }
}

/// Whether the terminal's letters are UTF-8, and it has the blocks of which bars are made. The console of the kernel and what
/// calls itself dumb have few letters whatever the locale says.
fn has_blocks(variable: impl Fn(&str) -> Option<String>) -> bool {
    let mut set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter();
    let locale = set.find_map(|name| variable(name).filter(|value| !value.is_empty()));
    let locale = locale.unwrap_or_default().to_lowercase();
    let is_utf8 = locale.contains("utf-8") || locale.contains("utf8");
    is_utf8 && variable("TERM").is_none_or(|term| term != "linux" && term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::has_blocks;

    #[test]
    fn letters_are_those_of_the_locale_and_the_terminal() {
        let seen = |set: &[(&str, &str)]| {
            has_blocks(|name| {
                let found = set.iter().find(|(other, _)| *other == name);
                found.map(|(_, value)| value.to_string())
            })
        };
        assert!(seen(&[("LANG", "de_DE.UTF-8"), ("TERM", "xterm")]));
        assert!(seen(&[("LC_ALL", ""), ("LANG", "C.utf8")]));
        for poor in [
            &[][..],
            &[("LANG", "C")],
            &[("LC_ALL", "C"), ("LANG", "de_DE.UTF-8")],
            &[("LANG", "de_DE.UTF-8"), ("TERM", "dumb")],
            &[("LANG", "de_DE.UTF-8"), ("TERM", "linux")],
        ] {
            assert!(!seen(poor), "{poor:?}");
        }
    }
}
