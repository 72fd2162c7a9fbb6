//! JSON documents in a text that also holds other lines: warnings and progress before, the normal
//! output of a program behind, several documents one after the other.

use serde_json::Value;

use crate::{json_weight, loose_json};

/// How often what is no document may be read over several lines, as no progress line is.
const MAX_FAILED: usize = 16;

/// Why a text has no documents.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// A document is cut off or malformed.
    #[error("it is not JSON: {0}")]
    Malformed(#[from] serde_json::Error),
    /// It has more values than memory should be taken for.
    #[error("{0}")]
    TooHeavy(String),
}

/// The documents of a text.
#[derive(Debug)]
pub struct Documents {
    /// Those that have an end.
    pub whole: Vec<Value>,
    /// Why the last one behind them has none: the text was cut off within it.
    pub cut_off: Option<serde_json::Error>,
}

/// The documents of a text in their order; a list counts as its elements.
///
/// What JSON does not allow within a document is mended ([`loose_json`]).
///
/// A document begins on a line of its own. A line with an opening bracket that is no JSON is text (a
/// progress line such as `[R(2)][50.0%]`); one with an opening brace that is none is an error, or the document in which the text was
/// cut off.
///
/// # Errors
/// When a document is malformed, or the values are too many.
pub fn documents(text: &str) -> Result<Documents, TextError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if json_weight::of_text(text) > json_weight::MAX_BYTES {
        return Err(TextError::TooHeavy(json_weight::too_heavy()));
    }
    let mut values = Vec::new();
    let mut rest = text;
    let mut is_line_start = true;
    let mut failed = 0;
    while let Some(start) = next_start(rest, is_line_start) {
        rest = &rest[start..];
        let first = first(rest).or_else(|error| {
            let of_mended = is_document(rest).then(|| mended(rest)).flatten();
            of_mended.ok_or(error)
        });
        is_line_start = first.is_ok();
        match first {
            Ok((Value::Array(list), length)) => {
                values.extend(list);
                rest = &rest[length..];
            }
            Ok((value, length)) => {
                values.push(value);
                rest = &rest[length..];
            }
            Err(error) if rest.starts_with('{') || is_cut_list(rest, &error) => {
                // With another one behind it, it is not the last that was cut off.
                let has_end = loose_json::document(rest).is_some() || rest.contains("\n{");
                return if has_end {
                    Err(error.into())
                } else {
                    Ok(Documents { whole: values, cut_off: Some(error) })
                };
            }
            Err(error) => {
                failed += usize::from(error.line() > 1 || is_document(rest));
                if failed > MAX_FAILED {
                    return Err(error.into());
                }
                rest = &rest[1..];
            }
        }
    }
    Ok(Documents { whole: values, cut_off: None })
}

/// The document that a text begins with, and its length.
fn first(text: &str) -> Result<(Value, usize), serde_json::Error> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = stream.next().unwrap_or_else(|| serde_json::from_str(text))?;
    Ok((value, stream.byte_offset()))
}

/// As [`first`], of what is JSON only after it is mended.
fn mended(text: &str) -> Option<(Value, usize)> {
    let (mended, length) = loose_json::document(text)?;
    Some((serde_json::from_str(&mended).ok()?, length))
}

/// Whether what a text begins with is a document, and no bracket of a progress line.
fn is_document(text: &str) -> bool {
    text.starts_with('{') || text[1..].trim_start().starts_with('{')
}

/// Whether a bracket opens a list of documents that has an end nowhere.
fn is_cut_list(rest: &str, error: &serde_json::Error) -> bool {
    error.is_eof() && is_document(rest)
}

/// Where the next document may begin: at a brace or bracket that is the first on its line or directly
/// behind a document, else at an object's first key. Looks at nothing behind that place but blanks.
fn next_start(text: &str, mut is_line_start: bool) -> Option<usize> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' if is_line_start || text[at + 1..].trim_start().starts_with('"') => {
                return Some(at);
            }
            b'[' if is_line_start => return Some(at),
            b'\n' | b'\r' => is_line_start = true,
            b' ' | b'\t' => {}
            _ => is_line_start = false,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn documents(text: &str) -> Result<Vec<Value>, TextError> {
        let Documents { whole, cut_off } = super::documents(text)?;
        cut_off.map_or(Ok(whole), |error| Err(error.into()))
    }

    #[test]
    fn text_before_between_and_behind_is_left_out() {
        let text = "hostname=a, be=0, 64-bit\nJobs: 2 (f=2): [R(2)][50.0%][eta 00m:13s]\n\
                    [R(2)][50.0%]\n{\n \"a\" : 1\n}\n\nm: (groupid=0, jobs=1): err= 0\n  \
                    lat (usec): 20=[1%]\n{\"b\": [2]}\n";
        assert_eq!(documents(text).expect("JSON"), [json!({"a": 1}), json!({"b": [2]})]);
    }

    #[test]
    fn progress_that_ends_in_a_carriage_return_is_text() {
        let text = "Jobs: 1: [r] [0.0% done]\rJobs: 1: [r] [eta 00m:00s]{ \"a\" : 1 }\r\n";
        assert_eq!(documents(text).expect("JSON"), [json!({"a": 1})]);
    }

    #[test]
    fn lists_and_documents_in_a_row_are_taken_apart() {
        let text = "[{\"a\":1},{\"a\":2}]\n{\"a\":3}{\"a\":4}";
        let found = documents(text).expect("JSON");
        let numbers: Vec<_> = found.iter().map(|value| value["a"].as_i64().unwrap()).collect();
        assert_eq!(numbers, [1, 2, 3, 4]);
        assert!(documents("[]").expect("JSON").is_empty());
        assert!(documents("no JSON [at all]").expect("JSON").is_empty());
    }

    #[test]
    fn what_json_does_not_have_costs_nothing_but_itself() {
        let text = "fio: don't\n{\n\"a\": -nan,\nJobs: 1 (f=1): [r(1)][eta 00m:01s]\n\"b\": 1\n}\n\
                    {\"c\": Infinity}{\"d\": \"C\\:\\x\"}\nm: (groupid=0): \"\n[{\"e\": inf}]\n";
        let expected = [
            json!({"a": null, "b": 1}),
            json!({"c": null}),
            json!({"d": "C\\:\\x"}),
            json!({"e": null}),
        ];
        assert_eq!(documents(text).expect("JSON"), expected);
    }

    #[test]
    fn a_document_that_is_cut_off_is_an_error() {
        assert!(documents("warning\n{\n \"a\": 1,\n").is_err());
        assert!(documents("[{\"a\": 1},\n").is_err());
        assert!(documents("{\"a\": 1}\n{ fio: error\n}").is_err());
    }

    #[test]
    fn what_stands_before_a_document_that_is_cut_off_is_there() {
        let cuts = ["{\n \"b\" : [1, {\"c\"", "{\"b\": nan, \"x", "{", "{\"b\": 2\nfio: ended\n"];
        for cut in cuts {
            let text = format!("fio-3.33\n{{\"a\": 1}}\n{{\"a\": 2}}\n{cut}");
            let found = super::documents(&text).expect("JSON");
            assert_eq!(found.whole, [json!({"a": 1}), json!({"a": 2})], "{cut}");
            assert!(found.cut_off.is_some(), "{cut}");
        }
        assert!(super::documents("{\"a\": 1}\n").expect("JSON").cut_off.is_none());
        let malformed = "{\"a\": 1}\n{\"a\": 1,,}\n";
        assert!(super::documents(malformed).is_err(), "it has an end");
    }

    #[test]
    fn nested_and_blank_texts_are_read_in_one_pass() {
        // Each of these took the square of its length.
        let many = 300_000;
        for text in [
            "[".repeat(many),
            "[\n".repeat(many),
            "[1,\n".repeat(many),
            "[ {\n".repeat(many),
            "[{x\n".repeat(many),
            "[[{".repeat(many),
            "[{\"\n".repeat(many),
        ] {
            assert!(documents(&text).map_or(true, |found| found.is_empty()), "{}", &text[..8]);
        }
        assert!(documents(&format!("x{}", " ".repeat(many))).expect("JSON").is_empty());
        let objects = documents(&" x {\"a\":1}".repeat(many / 10)).expect("JSON");
        assert_eq!(objects.len(), many / 10);
    }

    #[test]
    fn many_small_values_are_refused_before_they_are_read() {
        let text = format!("[{}]", "{},".repeat(1 << 20));
        assert!(matches!(documents(&text), Err(TextError::TooHeavy(_))));
    }
}
