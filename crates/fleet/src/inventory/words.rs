//! Words as a POSIX shell splits them, which is how Ansible's INI quotes values.

/// The words of a line up to a comment, which begins anywhere outside of quotes, as Python's shlex has it.
///
/// # Errors
/// When a quote is not closed.
pub fn split(line: &str) -> Result<Vec<String>, String> {
    split_with(line, true)
}

/// The words of a program's arguments, which have no comments.
///
/// # Errors
/// When a quote is not closed.
pub fn split_arguments(line: &str) -> Result<Vec<String>, String> {
    split_with(line, false)
}

fn split_with(line: &str, has_comments: bool) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '#' if has_comments => break,
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                quoted(letter, &mut letters, word)?;
            }
            '\\' => word.get_or_insert_default().extend(letters.next()),
            plain => word.get_or_insert_default().push(plain),
        }
    }
    words.extend(word);
    Ok(words)
}

/// A value as Ansible's INI takes it: a literal of Python means what it says there, and everything else stands for itself.
/// Of literals, addresses can have texts, whole numbers and None.
pub fn value(text: &str) -> String {
    let text = text.trim();
    let plain = text.split('#').next().unwrap_or_default().trim_end();
    let is_number = !plain.is_empty() && plain.bytes().all(|byte| byte.is_ascii_digit());
    match literal(text) {
        Some(value) => value,
        None if plain == "None" => String::new(),
        None if is_number && !plain.starts_with('0') => plain.to_string(),
        None => text.to_string(),
    }
}

/// The text of a Python string, if that and a comment is all that there is.
fn literal(text: &str) -> Option<String> {
    let mut letters = text.chars();
    let quote = letters.next().filter(|quote| matches!(quote, '"' | '\''))?;
    let mut value = String::new();
    loop {
        match letters.next()? {
            letter if letter == quote => break,
            '\\' => match letters.next()? {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                next @ ('\\' | '\'' | '"') => value.push(next),
                next => value.extend(['\\', next]),
            },
            plain => value.push(plain),
        }
    }
    let rest = letters.as_str().trim_start();
    (rest.is_empty() || rest.starts_with('#')).then_some(value)
}

fn quoted(quote: char, letters: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), String> {
    while let Some(letter) = letters.next() {
        match letter {
            _ if letter == quote => return Ok(()),
            '\\' if quote == '"' => match letters.next() {
                Some(next) if next == quote || next == '\\' => word.push(next),
                next => word.extend(['\\'].into_iter().chain(next)),
            },
            plain => word.push(plain),
        }
    }
    Err(format!("a {quote} is not closed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_does() {
        let line = r#"pi port=22 args='-o A=b -o C="d"' note="a \"b\" c"  # comment"#;
        let words = ["pi", "port=22", r#"args=-o A=b -o C="d""#, r#"note=a "b" c"#];
        assert_eq!(split(line).unwrap(), words);
        assert_eq!(split("a#b c").unwrap(), ["a"]);
        assert_eq!(split_arguments("a#b c").unwrap(), ["a#b", "c"]);
        assert_eq!(split(r#""a\nb\\c""#).unwrap(), [r"a\nb\c"]);
        assert_eq!(split("x=''").unwrap(), ["x="]);
        assert!(split("a 'b").is_err());
    }

    #[test]
    fn a_value_is_a_literal_of_python_or_stands_for_itself() {
        for (text, expected) in [
            ("It's me", "It's me"),
            ("ab\"cd", "ab\"cd"),
            ("'pi'", "pi"),
            ("\"a b\" # why", "a b"),
            ("2222 # the door", "2222"),
            ("pi # x", "pi # x"),
            ("CORP\\\\joe", "CORP\\\\joe"),
            ("'CORP\\\\joe'", "CORP\\joe"),
            ("None", ""),
            ("022", "022"),
            ("'a' b", "'a' b"),
            ("'", "'"),
            ("-o A=b -o C=d", "-o A=b -o C=d"),
        ] {
            assert_eq!(value(text), expected, "{text}");
        }
    }
}
