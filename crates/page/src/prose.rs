//! Sentences as the page shows them: code between backquotes, and risks with their label.

use maud::{Markup, html};
use rubus_draw::text::bind_units;

/// A text in which what stands between backquotes is code, and no line ends between a number and its
/// unit. A single backquote is a character of a file name and stays.
pub fn coded(text: &str) -> Markup {
    let pieces: Vec<&str> = text.split('`').collect();
    let pairs = (pieces.len() - 1) / 2;
    html! {
        @for (i, piece) in pieces.iter().enumerate() {
            @match i {
                i if i > 2 * pairs => { "`" (bind_units(piece)) }
                // Code is copied into a shell, so its spaces stay what they are.
                i if i % 2 == 1 => code { (piece) },
                _ => (bind_units(piece)),
            }
        }
    }
}

/// A risk, with a label that needs no colour.
pub fn risk(text: &str) -> Markup {
    html! { p class="risk" { strong { "Risk:" } " " (coded(text)) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_between_backquotes_is_code() {
        let shown = |text: &str| coded(text).0;
        assert_eq!(shown(""), "");
        assert_eq!(shown("plain"), "plain");
        assert_eq!(
            shown("look at `dmesg`, then `a <b>`."),
            "look at <code>dmesg</code>, then <code>a &lt;b&gt;</code>."
        );
        assert_eq!(shown("`x` and `y"), "<code>x</code> and `y");
        assert_eq!(shown("a`b"), "a`b");
        assert_eq!(shown("34 GB, `sleep 5 s`"), "34\u{a0}GB, <code>sleep 5 s</code>");
    }

    #[test]
    fn a_risk_begins_with_its_label() {
        assert_eq!(
            risk("All of `sda` is lost.").0,
            "<p class=\"risk\"><strong>Risk:</strong> All of <code>sda</code> is lost.</p>"
        );
    }
}
