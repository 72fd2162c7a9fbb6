//! JSON that programs write and JSON does not allow: `nan`, a progress line in its middle, a path with single backslashes.

use serde_json::Value;

/// The object or list that a text begins with, made JSON, and its length in the text, in bytes. None where it has no end.
///
/// - A bare word that JSON does not have (`nan`, `-inf`, `1e999`, `0x61`) is null.
/// - A line of another program between its lines is left out: one that begins with a word that is no number.
/// - In strings, a backslash before any other character than JSON's, and a control character, stand for themselves.
pub fn document(text: &str) -> Option<(String, usize)> {
    let mut mended = String::with_capacity(text.len());
    let mut depth = 0_usize;
    let mut at = 0;
    let mut is_line_start = false;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        if is_line_start && is_foreign(rest) {
            at += rest.find(['\n', '\r']).unwrap_or(rest.len());
            continue;
        }
        match first {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        is_line_start = matches!(first, '\n' | '\r') || (is_line_start && first.is_whitespace());
        at += match first {
            '"' => push_string(&mut mended, rest)?,
            _ if is_of_word(first) => push_word(&mut mended, rest),
            _ => {
                mended.push(first);
                first.len_utf8()
            }
        };
        if depth == 0 {
            return Some((mended, at));
        }
    }
    None
}

/// Whether the line that a text begins with is none of a document.
fn is_foreign(text: &str) -> bool {
    let word = text[..word_length(text)].trim_start_matches(['-', '+']).to_ascii_lowercase();
    let is_value = ["true", "false", "null", "nan", "inf", "infinity"].contains(&word.as_str());
    let begins_with_word = text.starts_with(|first: char| first.is_alphabetic());
    (begins_with_word && !is_value) || text.starts_with('\u{1b}')
}

fn is_of_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '+' | '.' | '_')
}

fn word_length(text: &str) -> usize {
    text.find(|next| !is_of_word(next)).unwrap_or(text.len())
}

/// Adds the bare word that a text begins with; its length.
fn push_word(mended: &mut String, text: &str) -> usize {
    let length = word_length(text);
    let word = &text[..length];
    let is_json = serde_json::from_str::<Value>(word).is_ok();
    mended.push_str(if is_json { word } else { "null" });
    length
}

/// Adds the string that a text begins with; its length in the text, its quotes included. None where it has no end.
fn push_string(mended: &mut String, text: &str) -> Option<usize> {
    mended.push('"');
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => {
                mended.push('"');
                return Some(at + 1);
            }
            '\\' => {
                let is_escape = begins_with_escape(&text[at + 1..]);
                mended.push_str(if is_escape { "\\" } else { "\\\\" });
                if is_escape && let Some((_, escaped)) = characters.next() {
                    mended.push(escaped);
                }
            }
            ..=' ' if character != ' ' => {
                mended.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            _ => mended.push(character),
        }
    }
    None
}

/// Whether the text behind a backslash is what JSON has there.
fn begins_with_escape(text: &str) -> bool {
    let hexadecimal = text.strip_prefix('u').and_then(|digits| digits.get(..4));
    text.starts_with(['"', '\\', '/', 'b', 'f', 'n', 'r', 't'])
        || hexadecimal.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn value(text: &str) -> Option<Value> {
        serde_json::from_str(&document(text)?.0).ok()
    }

    #[test]
    fn words_that_json_does_not_have_are_null() {
        let text = r#"{"a": 1e999, "b": [NaN, -inf, -nan, Infinity, 7], "c \" nan": "nan"}"#;
        let expected = json!({"a": null, "b": [null, null, null, null, 7], "c \" nan": "nan"});
        assert_eq!(value(text), Some(expected));
    }

    #[test]
    fn lines_of_others_between_its_lines_are_left_out() {
        let text = "{\n  \"a\" : 1,\nJobs: 1 (f=1): [r(1)][50.0%][r=10MiB/s][eta 00m:03s]\n  \"b\" : [\n\
                    fio: io_u error on file \"x\": {\r\n    nan,\n    true\n  ],\r\
                    Jobs: 1 (f=1): [r(1)][eta 00m:00s]\r  \"c\" : 2\n}";
        assert_eq!(value(text), Some(json!({"a": 1, "b": [null, true], "c": 2})));
    }

    #[test]
    fn strings_keep_what_json_does_not_allow_in_them() {
        let text = "{\"a\": \"C\\:\\disk\\new\", \"b\": \"tab\there\", \"c\": \"\\u00e4\\ux\"}";
        let expected = json!({"a": "C\\:\\disk\new", "b": "tab\there", "c": "ä\\ux"});
        assert_eq!(value(text), Some(expected));
    }

    #[test]
    fn its_length_is_that_in_the_text() {
        let text = "{\"a\": nan} and more {";
        assert_eq!(document(text).map(|(_, length)| length), Some(10));
        for cut in ["{\"a\": nan", "{\"a", "{\"a\\", "[[]", "", "]"] {
            assert_eq!(document(cut), None, "{cut}");
        }
    }

    proptest! {
        #[test]
        fn what_is_json_stays_as_it_is(text in "[ -~äß\n\t]{0,40}", number in any::<f64>()) {
            let whole = json!({"text": text, "list": [number, null, true, {"x": text}]});
            for written in [whole.to_string(), serde_json::to_string_pretty(&whole).unwrap()] {
                let length = written.len();
                prop_assert_eq!(document(&written), Some((written, length)));
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in "[{}\\[\\]\"\\\\a-z:,0-9\u{0}-\u{20}ä]{0,60}") {
            if let Some((_, length)) = document(&text) {
                prop_assert!(text.is_char_boundary(length));
            }
        }
    }
}
