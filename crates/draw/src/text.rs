//! Text on a terminal: cleaned, measured, cut and wrapped.

use rubus_vocabulary::hidden_letters::is_hidden;
use unicode_width::UnicodeWidthChar;

/// What a line begins with that says what to do next.
pub const TO_DO: &str = "To do: ";

/// A text from the machine or the user without anything that a terminal would obey or not show. Control
/// characters, marks that turn the writing direction and marks without width become a replacement
/// character: a disk's model name cannot move the cursor or hide words.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if is_hidden(c) { '\u{fffd}' } else { c }).collect()
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
/// is cut into pieces, so no line is ever wider. A command in backquotes stays whole where a line can hold it, so that it can
/// be copied.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(2);
    let text = &with_whole_commands(text, columns);
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

/// The text with no-break spaces inside its commands.
fn with_whole_commands(text: &str, columns: usize) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // A backquote without its fellow quotes nothing.
    if parts.len() % 2 == 0 {
        return text.to_string();
    }
    let parts = parts.iter().enumerate().map(|(number, part)| {
        // With both quotes, and a mark behind them.
        let is_whole = number % 2 == 1 && width(part) + 3 <= columns;
        if is_whole { part.replace(' ', "\u{a0}") } else { (*part).to_string() }
    });
    parts.collect::<Vec<_>>().join("`")
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

/// The text with no line wider than `columns`, where its words allow that: what was set for wider terminals. A line is broken at
/// a space and goes on below its last column, or where the text of its first line begins. Sequences for colours take no columns.
pub fn fit(text: &str, columns: usize) -> String {
    let lines = text.split('\n').map(|line| {
        if visible_width(line) <= columns {
            return line.to_string();
        }
        let Some(end) = end_of_command(line) else {
            return broken(line, columns);
        };
        let reason = line[end..].trim_start();
        let below = format!("{}{reason}", " ".repeat(TO_DO.len()));
        if reason.is_empty() {
            line.to_string()
        } else {
            format!("{}\n{}", &line[..end], broken(&below, columns))
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Words from outside in one line: nothing in them moves the cursor or begins a line.
pub fn one_line(words: &str) -> String {
    clean(&words.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>())
}

/// Whether words begin with a program's name as it is typed, and so are a command.
pub fn begins_with_command(words: &str) -> bool {
    const PROGRAMS: [&str; 3] = ["sudo", "rubus", "apt"];
    words.split_once(' ').is_some_and(|(first, _)| PROGRAMS.contains(&first))
}

/// Where the command ends in a line that says what to do next and what for. The command stays whole: pasted, its first half would be
/// another command.
fn end_of_command(line: &str) -> Option<usize> {
    let command = line.strip_prefix(TO_DO)?;
    let shown: String = visible(command).map(|(_, c)| c).collect();
    begins_with_command(&shown).then(|| line.find(" (").unwrap_or(line.len()))
}

fn visible_width(line: &str) -> usize {
    visible(line).map(|(_, c)| char_width(c)).sum()
}

/// The letters that show, with their places: without sequences for colours.
fn visible(line: &str) -> impl Iterator<Item = (usize, char)> {
    let mut is_sequence = false;
    line.char_indices().filter(move |(_, c)| {
        if *c == '\u{1b}' {
            is_sequence = true;
            return false;
        }
        let was_sequence = is_sequence;
        is_sequence &= !c.is_ascii_alphabetic();
        !was_sequence
    })
}

fn broken(line: &str, columns: usize) -> String {
    let indent = indent_below(line, columns);
    let mut text = String::new();
    let (mut start, mut used) = (0, 0);
    // The last space that a line may end at, and the columns before what follows it.
    let mut space: Option<(usize, usize)> = None;
    let mut has_words = false;
    for (at, c) in visible(line) {
        if c == ' ' && has_words {
            space = Some((at, used + 1));
        }
        used += char_width(c);
        has_words |= c != ' ';
        let Some((end, before)) = space.filter(|_| used > columns && c != ' ') else { continue };
        text.push_str(line[start..end].trim_end_matches(' '));
        text.push('\n');
        text.push_str(&" ".repeat(indent));
        start = end + 1;
        used = indent + used - before;
        space = None;
    }
    text.push_str(&line[start..]);
    text
}

/// Where a line goes on: below the last column that leaves a third of it, else below its first word and two columns more.
fn indent_below(line: &str, columns: usize) -> usize {
    let (mut column, mut spaces, mut words_begin, mut last) = (0, 0, None, None);
    for (_, c) in visible(line) {
        if c == ' ' {
            spaces += 1;
        } else {
            match words_begin {
                None => words_begin = Some(column),
                Some(_) if spaces >= 2 && column <= columns * 2 / 3 => last = Some(column),
                Some(_) => {}
            }
            spaces = 0;
        }
        column += char_width(c);
    }
    last.unwrap_or_else(|| words_begin.unwrap_or_default() + 2).min(columns * 2 / 3)
}

/// Keeps every number and the unit after it on one line: the space between them becomes a no-break
/// one, which [`wrap`] turns back.
pub fn bind_units(text: &str) -> String {
    const UNITS: [&str; 27] = [
        "%", "B", "KiB", "MiB", "GiB", "TiB", "kB", "MB", "GB", "TB", "B/s", "kB/s", "MB/s",
        "GB/s", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "ns", "µs", "ms", "s", "min", "k", "MHz",
        "GHz", "°C",
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
        assert_eq!(clean("sd\u{200b}a\u{e0041}\u{feff}"), "sd\u{fffd}a\u{fffd}\u{fffd}");
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

    #[test]
    fn what_was_set_for_a_wider_terminal_fits_a_narrower_one() {
        let wide =
            "title\n  counter        90  once full, the pool takes pages again below this share";
        let below = " ".repeat(21);
        let narrow = format!(
            "title\n  counter        90  once full, the pool\n{below}takes pages again\n{below}below this share"
        );
        assert_eq!(fit(wide, 40), narrow);
        assert_eq!(fit(wide, 80), wide);
        let sentence = "Move the system to a compressed btrfs on a faster disk";
        assert_eq!(
            fit(sentence, 30),
            "Move the system to a\n  compressed btrfs on a faster\n  disk"
        );
        let painted = "\u{1b}[1mMove the system\u{1b}[0m to a disk";
        assert_eq!(fit(painted, 20), "\u{1b}[1mMove the system\u{1b}[0m to a\n  disk");
        let step = "To do: rubus plan swap to=file:/swapfile (it shows each step)";
        let below = "       (it shows each step)";
        assert_eq!(fit(step, 40), format!("To do: rubus plan swap to=file:/swapfile\n{below}"));
        let whole = "To do: rubus plan swap to=file:/swapfile";
        assert_eq!(fit(whole, 20), whole, "a terminal wraps it and copies it as one line");
        // Nothing is lost, and no word is broken.
        let long = format!("{} end", "x".repeat(50));
        assert_eq!(fit(&long, 20), format!("{}\n  end", "x".repeat(50)));
    }
}
