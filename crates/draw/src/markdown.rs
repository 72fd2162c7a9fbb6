//! Texts in Markdown, to be pasted into a forum or an issue.

use crate::text::clean;

/// Text without anything that markdown, or HTML within it, would obey.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => {
                escaped.push('\\');
                escaped.push(c);
            }
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Lines as they are, between fences that none of them ends: a fence is longer than any row of backquotes in them.
pub fn fenced(lines: &str) -> String {
    const LEAST: usize = 3;
    let longest = lines.split(|c: char| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(LEAST.max(longest + 1));
    format!("{fence}\n{lines}{fence}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_its_fence_or_becomes_a_mark() {
        assert_eq!(fenced("a\n"), "```\na\n```\n");
        assert_eq!(fenced("a\n````\n"), "`````\na\n````\n`````\n");
        assert_eq!(escape("<b>*x*\u{202e}"), "&lt;b&gt;\\*x\\*\u{fffd}");
    }
}
