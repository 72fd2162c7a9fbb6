//! Texts in CSV (RFC 4180).

use rubus_vocabulary::hidden_letters::is_hidden;

/// A cell, between quotes where it has to be.
pub fn cell(text: &str) -> String {
    if text.contains(['"', ',', '\r', '\n']) { quoted(text) } else { shown(text) }
}

/// A cell between quotes; quotes in it are doubled.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", shown(text).replace('"', "\"\""))
}

/// Without what a terminal would obey or not show; breaks of lines and tabs are part of the format.
fn shown(text: &str) -> String {
    text.replace(|c: char| is_hidden(c) && !matches!(c, '\r' | '\n' | '\t'), "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_read_back_as_one() {
        assert_eq!(cell("plain"), "plain");
        assert_eq!(cell("a,b"), "\"a,b\"");
        assert_eq!(cell("two\nlines"), "\"two\nlines\"");
        assert_eq!(quoted("say \"x\""), "\"say \"\"x\"\"\"");
        assert_eq!(cell("a\u{1b}[2Jb\u{202e}"), "a\u{fffd}[2Jb\u{fffd}");
    }
}
