//! Words as a shell reads them back.
//!
//! A login shell is mostly a POSIX shell (dash, bash, busybox ash, zsh), but it may be fish or a C shell. So every word is written
//! in the way that all of them read alike: plain characters between single quotes; the quote itself, the backslash (which fish
//! interprets between quotes) and the exclamation mark (which C shells do) outside of them, after a backslash.

/// One word that any of these shells reads back as `text`.
///
/// A C shell cannot take a line feed in a word; the others can. No shell can take a NUL.
pub fn quote(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-+./:=,@%".contains(c);
    // A leading `=` means a program's path to zsh; `%` a job, to some.
    if !text.is_empty() && text.chars().all(is_plain) && !text.starts_with(['=', '%']) {
        return text.to_string();
    }
    let mut quoted = String::with_capacity(text.len() + 8);
    let mut inside = false;
    for c in text.chars() {
        let outside = matches!(c, '\'' | '\\' | '!');
        if outside == inside {
            quoted.push('\'');
            inside = !inside;
        }
        if outside {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    if inside {
        quoted.push('\'');
    }
    if quoted.is_empty() {
        quoted.push_str("''");
    }
    quoted
}

/// A command line of words.
pub fn typed<W: AsRef<str>>(words: &[W]) -> String {
    let words: Vec<String> = words.iter().map(|word| quote(word.as_ref())).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_words_stay_and_others_are_wrapped() {
        let cases = [
            ("/home/pi/disk-1", "/home/pi/disk-1"),
            ("", "''"),
            ("two words", "'two words'"),
            ("it's", r"'it'\''s'"),
            (r"a\b", r"'a'\\'b'"),
            ("hey!", r"'hey'\!"),
            ("$(reboot)", "'$(reboot)'"),
            ("~", "'~'"),
            ("=ls", "'=ls'"),
            ("'", r"\'"),
        ];
        for (text, quoted) in cases {
            assert_eq!(quote(text), quoted);
        }
    }
}
