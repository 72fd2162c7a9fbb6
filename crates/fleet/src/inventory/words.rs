//! Words as a POSIX shell splits them, which is how Ansible's INI quotes values.

/// The words of a line up to a comment.
///
/// # Errors
/// When a quote is not closed.
pub fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '#' if word.is_none() => break,
            ' ' | '\t' => words.extend(word.take()),
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

fn quoted(quote: char, letters: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), String> {
    while let Some(letter) = letters.next() {
        match letter {
            _ if letter == quote => return Ok(()),
            '\\' if quote == '"' => word.extend(letters.next()),
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
        assert_eq!(split("a#b c").unwrap(), ["a#b", "c"]);
        assert_eq!(split("x=''").unwrap(), ["x="]);
        assert!(split("a 'b").is_err());
    }
}
