//! Text on a terminal: cleaned, measured, cut and wrapped.

use unicode_width::UnicodeWidthChar;

/// A text from the machine or the user without anything that a terminal would obey: control
/// characters and marks that turn the writing direction become a replacement character, so that
/// a disk's model name cannot move the cursor or hide words.
pub fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() || turns_direction(c) { '\u{fffd}' } else { c })
        .collect()
}

fn turns_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Columns that a text takes on a terminal: marks that combine with the letter before take none,
/// East Asian letters and pictures take two.
pub fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// Columns that a letter takes; a control character, which [`clean`] replaces, counts as one.
pub fn char_width(c: char) -> usize {
    c.width().unwrap_or(1)
}

/// Names in a sentence: "A1, U1 and V30".
pub fn listed<T: AsRef<str>>(names: &[T]) -> String {
    match names {
        [] => String::new(),
        [only] => only.as_ref().to_string(),
        [most @ .., last] => {
            let most: Vec<&str> = most.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", most.join(", "), last.as_ref())
        }
    }
}

/// The text with its first letter as a capital: the beginning of a sentence.
pub fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// The text with spaces after it up to `columns`.
pub fn pad_right(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// The text with spaces before it up to `columns`.
pub fn pad_left(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

/// The text if it fits into `columns`, else its beginning and an ellipsis.
pub fn shorten(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_string();
    }
    let mut short = String::new();
    let mut used = 0;
    for c in text.chars() {
        if used + char_width(c) + 1 > columns {
            break;
        }
        used += char_width(c);
        short.push(c);
    }
    if columns > 0 {
        short.push('…');
    }
    short
}

/// The text broken at spaces into lines of at most `columns`. A word that is longer than a line
/// is cut into pieces, so no line is ever wider.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(2);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        for piece in pieces(word, columns) {
            let needed = width(&line) + usize::from(!line.is_empty()) + width(&piece);
            if needed > columns && !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&piece);
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    // A no-break space has kept a number and its unit together; now it may be an ordinary one.
    for line in &mut lines {
        *line = line.replace('\u{a0}', " ");
    }
    lines
}

/// A word in pieces of at most `columns`.
fn pieces(word: &str, columns: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut used = 0;
    for c in word.chars() {
        if used + char_width(c) > columns {
            pieces.push(String::new());
            used = 0;
        }
        used += char_width(c);
        // The vector starts with one piece and only grows.
        if let Some(last) = pieces.last_mut() {
            last.push(c);
        }
    }
    pieces
}

/// The text wrapped to `columns` in total, its first line after `first`, the others below its
/// start.
pub fn hang(first: &str, text: &str, columns: usize) -> Vec<String> {
    let indent = width(first);
    let lines = wrap(text, columns.saturating_sub(indent));
    if lines.is_empty() {
        return vec![first.trim_end().to_string()];
    }
    lines
        .into_iter()
        .enumerate()
        .map(|(i, line)| {
            if i == 0 { format!("{first}{line}") } else { format!("{}{line}", " ".repeat(indent)) }
        })
        .collect()
}

/// Keeps every number and the unit after it on one line: the space between them becomes a no-break
/// one, which [`wrap`] turns back.
pub fn bind_units(text: &str) -> String {
    const UNITS: [&str; 26] = [
        "%", "B", "KiB", "MiB", "GiB", "TiB", "kB", "MB", "GB", "TB", "B/s", "kB/s", "MB/s",
        "GB/s", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "ns", "µs", "ms", "s", "k", "MHz", "GHz",
        "°C",
    ];
    let mut bound = String::with_capacity(text.len());
    let mut after_number = false;
    for (i, word) in text.split(' ').enumerate() {
        let bare = word.trim_end_matches([',', '.', ';', ':', ')']);
        if i > 0 {
            bound.push(if after_number && UNITS.contains(&bare) { '\u{a0}' } else { ' ' });
        }
        bound.push_str(word);
        after_number = word.ends_with(|c: char| c.is_ascii_digit());
    }
    bound
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_taken_out() {
        assert_eq!(clean("SSD\x1b[2J\r\n\u{202e}x"), "SSD\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}x");
        assert_eq!(clean("Größe 25 °C"), "Größe 25 °C");
    }

    #[test]
    fn wide_and_combining_letters_count_as_they_show() {
        assert_eq!(width("µs"), 2);
        assert_eq!(width("e\u{301}"), 1);
        assert_eq!(width("漢字"), 4);
        assert_eq!(pad_left("漢", 4), "  漢");
        assert_eq!(shorten("漢字漢字", 6), "漢字…");
        assert_eq!(shorten("abc", 3), "abc");
        assert_eq!(shorten("abcd", 3), "ab…");
    }

    #[test]
    fn no_line_is_wider_than_asked() {
        let text = "/a/very/long/path/that/has/no/space and then some words";
        for columns in 2..60 {
            let lines = wrap(text, columns);
            assert!(lines.iter().all(|line| width(line) <= columns), "{columns}: {lines:?}");
            let letters = |s: &str| s.replace(' ', "");
            assert_eq!(letters(&lines.concat()), letters(text), "{columns}");
        }
    }

    #[test]
    fn a_number_stays_with_its_unit() {
        let text = bind_units("it carries 23.0 MB/s, at most 5 of them");
        assert_eq!(wrap(&text, 17), ["it carries", "23.0 MB/s, at", "most 5 of them"]);
    }

    #[test]
    fn hanging_lines_stand_below_the_first() {
        assert_eq!(hang("- ", "one two three", 9), ["- one two", "  three"]);
        assert_eq!(hang("- ", "", 9), ["-"]);
    }
}
